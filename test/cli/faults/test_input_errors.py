"""Errors of inputs: headers that disagree, damaged files, SAM that is not sound. The message names the
file."""

import gzip
import os
import random
import struct

import bamfile
from harness import SPILL_BUDGET, bytes_of, json_of, needs_pysam, sam_split, text_of
from test_errors import ErrorTest
from test_inputs import REFS, SQ, bam_bytes, tie


class Disagreement(ErrorTest):
    """Inputs with different @SQ lines are refused before anything is sorted."""

    OTHERS = {
        "length": ([("chr1", 5000), ("chr2", 901)], ["reference 2", "900", "901"]),
        "name": ([("chr1", 5000), ("Chr2", 900)], ["reference 2", "'chr2'", "'Chr2'"]),
        "order": ([("chr2", 900), ("chr1", 5000)], ["reference 1", "'chr1'", "'chr2'"]),
        "fewer": ([("chr1", 5000)], ["reference 2", "'chr2'"]),
        "more": (REFS + [("chr3", 7)], ["reference 3", "'chr3'"]),
        "none": ([], ["reference 1", "'chr1'"]),
    }

    def test_disagreeing_references_are_named(self):
        first = self.write("first.bam", bam_bytes([tie(1)]))
        for name, (refs, mentions) in self.OTHERS.items():
            text = bamfile.sq_text(refs)
            line = "r\t4\t*\t0\t0\t*\t*\t0\t0\t*\t*\n"
            for other in (self.write(f"{name}.bam", bam_bytes([], text, refs)),
                          self.write(f"{name}.sam", text + line)):
                mentions = [*mentions, os.path.basename(other), "first.bam"]
                for args in ([first, other], [first, first, other], [other, first]):
                    with self.subTest(name, args=args):
                        result = self.rocksort("-o", self.path("out.bam"), *args)
                        self.assert_error(result, *mentions)
                        self.assertFalse(os.path.exists(self.path("out.bam")))
                        self.assert_error(self.rocksort("--checksum-only", *args), *mentions)
                mentions = mentions[:-2]

    def test_message_calls_standard_input_so(self):
        first = self.write("first.bam", bam_bytes([tie(1)]))
        other = bam_bytes([], bamfile.sq_text(REFS[:1]), REFS[:1])
        for args in ([first, "-"], ["-", first]):
            self.assert_error(self.rocksort("-o", self.path("out.bam"), *args, stdin=other),
                              "first.bam", "standard input")

    def test_fields_of_the_first_input_win_where_lines_differ(self):
        texts = [SQ.replace("LN:900", f"LN:900\t{tags}") for tags in ("M5:0f0f\tSP:x", "UR:y", "")]
        for i, text in enumerate(texts):
            self.write(f"in{i}.bam", bam_bytes([tie(i)], text.replace("\t\n", "\n")))
        paths = [self.path(f"in{i}.bam") for i in range(3)]
        result = self.sort_ok("--no-PG", "-O", "sam", "-o", "-", *paths).out.decode()
        self.assertEqual(sam_split(result)[0].splitlines()[1:], texts[0].splitlines())


class Damage(ErrorTest):
    """The second input is damaged: the message names it and counts the records of this input."""

    N_FIRST, N_GOOD = 1500, 2345

    def setUp(self):
        super().setUp()
        rng = random.Random(1)
        self.records = [bamfile.record(f"r{i}", 0, 0, rng.randrange(4000), "60M", "ACGTA" * 12,
                                       b"RGZx\0") for i in range(4000)]
        self.first = self.write("first.bam", self.bam(self.N_FIRST, "first"))

    def raw(self, n_records, sample):
        """Uncompressed BAM. If the inputs have different samples, read groups are renamed."""
        return bamfile.bam_header(SQ + f"@RG\tID:x\tSM:{sample}\n", REFS) + b"".join(
            self.records[:n_records])

    def bam(self, n_records, sample):
        return bamfile.bgzf(self.raw(n_records, sample))

    def check_second(self, data, name="second.bam", number=None, mentions=()):
        """A sort whose second input of three is data fails: from a file and on standard input."""
        source = self.write(name, data)
        runs = [([self.first, source, self.first], None, name),
                ([self.first, "-", self.first], data, "standard input")]
        for args, stdin, seen in runs:
            for budget in (None, SPILL_BUDGET):
                with self.subTest(args=args, budget=budget):
                    out = self.path("out.bam")
                    result = self.rocksort("-o", out, "-@", "2", *args, stdin=stdin, budget=budget)
                    self.assert_error(result, seen, *mentions)
                    self.assertFalse(os.path.exists(out))
                    if number:
                        self.assert_record_number(result, number)

    def test_input_that_is_no_alignment_is_named(self):
        for data in (b"", b"nothing aligned today\n", self.bam(9, "first")[:40]):
            self.check_second(data, mentions=["not an alignment file"])

    def test_truncated_second_input_is_named(self):
        for sample in ("first", "second"):
            raw = self.raw(self.N_GOOD, sample) + self.records[0][:50]
            self.check_second(bamfile.bgzf(raw), number=self.N_GOOD + 1)
            self.check_second(raw, number=self.N_GOOD + 1)
            data = self.bam(4000, sample)
            self.check_second(data[: len(data) // 2], mentions=["truncated"])

    def test_bad_record_is_counted_in_its_input(self):
        bad = bytearray(self.records[0])
        struct.pack_into("<i", bad, 4, len(REFS))
        size = struct.pack("<i", 12) + self.records[0][4:]
        for sample in ("first", "second"):
            good = self.raw(self.N_GOOD, sample)
            self.check_second(good + bad + b"".join(self.records[:1000]), number=self.N_GOOD + 1)
            for tail in (bad + b"".join(self.records[:1000]), size):
                self.check_second(bamfile.bgzf(good + tail), number=self.N_GOOD + 1)

    def test_flipped_byte_is_an_error(self):
        for sample in ("first", "second"):
            data = bytearray(self.bam(4000, sample))
            data[len(data) // 2] ^= 4
            self.check_second(bytes(data))

    def test_bad_line_is_counted_in_its_input(self):
        line = "r\t0\tchr1\t5\t9\t4M\t*\t0\t0\tACGT\tFFFF\tRG:Z:x\n"
        for sample in ("first", "second"):
            text = SQ + f"@RG\tID:x\tSM:{sample}\n" + line * self.N_GOOD
            text = (text + "r\t0\tchr1\n" + line * 100).encode()
            self.check_second(text, "second.sam", self.N_GOOD + 1)
            self.check_second(gzip.compress(text), "second.sam.gz", self.N_GOOD + 1)
            cut = bamfile.bgzf(text)[:-60]
            self.check_second(cut, "second.sam.gz", mentions=["damaged"])

    def test_bad_header_is_not_called_lack_of_memory(self):
        for line, problem in (("@RG\tSM:x", "no ID"), ("@PG\tID:a\tb", "TAG:VALUE"),
                              ("@XX\tyy", "TAG:VALUE"), ("@SQme/SN:xLN:22", "no tab"),
                              ("@1Q\tSN:x", "is not one of @HD"),
                              ("@SQ\tLN:5", "no name"), ("@COtext", "no tab")):
            data = bamfile.bgzf(bamfile.bam_header(SQ + line + "\n@CO\tx\n", REFS))
            self.check_second(data, mentions=["header", "damaged", "line 3, '" +
                                              line.replace("\t", "\\x09") + "'", problem])

    def test_joined_bam_files_are_refused(self):
        head = bamfile.bam_header(SQ + "@RG\tID:x\tSM:second\n", REFS)
        for n_first in (self.N_GOOD, 0):
            mention = f"a second BAM file after record {n_first} "
            for sample in ("first", "second"):
                raw = self.raw(n_first, sample)
                seconds = (raw, head, bamfile.bam_header("", REFS) + self.records[0],
                           bamfile.bam_header("", []), raw + self.records[0] * 50_000)
                joined = [bamfile.bgzf(raw) + bamfile.bgzf(second) for second in seconds]
                for data in joined + [raw + raw, raw + bamfile.bgzf(raw)]:
                    self.check_second(data, mentions=[mention, "both files"])
        self.check_second(bamfile.bgzf(self.raw(5, "first")) + head,
                          mentions=["a second BAM file after byte "])

    def test_second_header_across_pieces_is_found(self):
        """The magic of the second one lies across two pieces of the input, which are of 64 KiB: for
        mates, --merge and others."""
        head, piece_blocks = self.raw(0, "first"), -(-65536 // len(bamfile.bgzf_block(b"x")))
        filled = [bamfile.record(f"r{i}", seq="A" * 200) for i in range(piece_blocks // 400)]
        for n_before in range(17):
            n_more = piece_blocks - n_before - len(b"".join(filled)) - len(bamfile.record("r")) - 4
            tail = b"".join(filled) + bamfile.record("r", aux=b"XXZ" + b"x" * n_more + b"\0")
            source = self.write("in.bam", bamfile.bgzf(head)[:-28] + bamfile.bgzf(tail + head, 1, 1))
            for options in (["--fixmate"], ["--shuffle", "--merge"], ["-n"], ["--checksum-only"]):
                out = [] if "--checksum-only" in options else ["-o", self.path("out.bam")]
                with self.subTest(n_before=n_before, options=options):
                    budget = 3 << 20 if "--merge" in options else SPILL_BUDGET
                    self.assert_error(self.rocksort(*options, *out, source, budget=budget),
                                      f"a second BAM file after record {len(filled) + 1} ")

    @needs_pysam
    def test_joined_cram_files_are_refused(self):
        sam = SQ + "".join(f"r{i}\t4\t*\t0\t0\t*\t*\t0\t0\tACGT\tFFFF\n" for i in range(30))
        path = self.bam_of(sam, "-C", "--output-fmt-option", "no_ref=1", name="one.cram")
        data = bytes_of(path)
        self.check_second(data + data, "second.cram", mentions=["a second CRAM file"])

    @needs_pysam
    def test_damaged_cram_is_named(self):
        sam = SQ + "@RG\tID:x\tSM:second\n" + "".join(
            f"r{i}\t0\tchr1\t{i + 1}\t9\t4M\t*\t0\t0\tACGT\tFFFF\tRG:Z:x\n" for i in range(3000))
        path = self.bam_of(sam, "-C", "--output-fmt-option", "no_ref=1", name="whole.cram")
        data = bytes_of(path)
        self.check_second(data[: len(data) // 2], "second.cram", mentions=["truncated"])

    def test_missing_eof_block_gives_one_warning(self):
        source = self.write("second.bam", self.bam(500, "first")[:-28])
        result = self.rocksort("-o", self.path("out.bam"), self.first, source, self.first)
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(result.err.count("EOF marker"), 1, result.err)


LINES = ["r%d\t0\tchr1\t%d\t9\t4M\t*\t0\t0\tACGT\tFFFF\tNM:i:12" % (i, 100 + i) for i in range(1, 4)]


class Sam(ErrorTest):
    """SAM that ends within a line, or has lines that are not records."""

    def forms(self, text, name="in.sam"):
        """(arguments, standard input, name in messages) of the text as a file, from a pipe, and
        compressed."""
        data = text.encode("latin-1")
        for n, packed in ((name, data), (f"{name}.gz", gzip.compress(data)),
                          (f"bgzf.{name}.gz", bamfile.bgzf(data))):
            yield self.write(n, packed), b"", n
            yield "-", packed, "standard input"

    def warned(self, result, *mentions):
        """Success, with one warning."""
        self.assertEqual(result.status, 0, result.err)
        warnings = [line for line in result.err.splitlines() if "warning" in line]
        self.assertEqual(len(warnings), 1, result.err)
        for mention in ("no newline", *mentions):
            self.assertIn(mention, warnings[0])

    def test_last_line_without_newline_is_kept_with_a_warning(self):
        """The record is kept, with a warning that names it, in the closing line and in --report."""
        text = SQ + "\n".join(LINES)
        other = self.write("other.sam", SQ + LINES[0] + "\n")
        out, stats = self.path("out.sam"), self.path("report.json")
        for cut in (text, text[:-1], text[:-8], SQ + LINES[2][:-1]):
            for source, stdin, name in self.forms(cut):
                for args in ([], ["-n", "-@", "2"], ["--fixmate"], ["--merge", other], [other]):
                    with self.subTest(cut=cut[-9:], name=name, args=args):
                        result = self.rocksort("--report", stats, "-o", out, *args, source,
                                               stdin=stdin)
                        self.warned(result, name, "(read 'r3')")
                        self.assertIn("; 1 input is probably truncated; ", result.err)
                        self.assertEqual(json_of(stats)["input"]["truncated"], 1)
                        self.assertIn(cut.split("\n")[-1] + ("" if args == ["--fixmate"] else "\n"),
                                      text_of(out))
                for args in (["--verify=coordinate"], ["--checksum-only"], ["--plan"]):
                    with self.subTest(cut=cut[-9:], name=name, args=args):
                        if args != ["--plan"] or not stdin:
                            self.warned(self.rocksort(*args, source, stdin=stdin), name, "'r3'")

    def test_whole_files_give_no_warning(self):
        for text in (SQ, SQ + "\n".join(LINES) + "\n", "\r\n".join([*SQ.splitlines(), *LINES, ""])):
            for source, stdin, name in self.forms(text):
                with self.subTest(text=text[-9:], name=name):
                    result = self.sort_ok("-o", self.path("out.bam"), source, stdin=stdin)
                    self.assertNotIn("newline", result.err)
                    self.assertNotIn("truncated", result.err)

    def test_header_without_newline_is_warned_of(self):
        for source, stdin, name in self.forms(SQ[:-2]):
            result = self.rocksort("-o", self.path("out.bam"), source, stdin=stdin)
            self.warned(result, name, "line 2 of its header")

    def test_what_htslib_reads_is_warned_of_once(self):
        """FASTQ, FASTA and filtered SAM, in files, give the same warning, once. A pipe is read as it
        is. Headers of filtered SAM have the same messages."""
        drop, filtered = (["--input-fmt-option", f"filter=qname=={name}"] for name in ('"x"', '"r3"'))
        for name, text, args in (("in.fq", "@r1\nAC\n+\nII\n@r3\nAC\n+\nII", []),
                                 ("in.fa", ">r1\nAC\n>r3\nAC", []),
                                 ("in.sam", SQ + "\n".join(LINES), filtered),
                                 ("in.sam", SQ + "\n".join(LINES), drop)):
            for options in ([], ["-@", "4"], ["--checksum-only"]):
                with self.subTest(name=name, args=args, options=options):
                    result = self.rocksort(*args, *options, self.write(name, text))
                    self.warned(result, name, "(read 'r3')")
                    if options != ["--checksum-only"]:
                        self.assertIn("; 1 input is probably truncated; ", result.err)
                    whole = self.write(name, text + "\n")
                    self.assertNotIn("newline", self.sort_ok(*args, *options, whole).err)
                    result = self.rocksort(*args, *options, "-", stdin=text.encode())
                    if name == "in.sam":
                        self.warned(result, "standard input", "(read 'r3')")
                    else:
                        self.assertNotIn("newline", result.err)
        self.warned(self.rocksort(*drop, self.write("in.sam", SQ[:-2])), "line 2 of its header")
        self.assert_error(self.rocksort(*drop, self.write("in.sam", SQ + "@PG\tPN:x\n" + LINES[0])),
                          "line 3, '@PG", "has no ID")

    def test_compressed_text_without_newline_gives_the_warning(self):
        """FASTQ, FASTA and filtered SAM, as files and pipes; blocks end anywhere. Once only text
        that is not compressed gave it."""
        def reads(count):
            return "".join(f"@q{i}\nACGTA\n+\nIIIII\n" for i in range(count))
        keep = ["--input-fmt-option", 'filter=qname=="r3"']
        texts = [("fq", reads(n) + "@r3\nAC\n+\nII", []) for n in (0, 1, 3277, 8000)]
        texts += [("fa", ">r1\nAC\n>r3\nAC", []), ("fa", ">r3\nAC", []),
                  ("sam", SQ + "\n".join(LINES), keep)]
        for kind, text, args in texts:
            cut, whole = text.encode(), text.encode() + b"\n"
            packers = (gzip.compress, bamfile.bgzf,
                       lambda data: gzip.compress(data[:7]) + gzip.compress(data[7:]))
            for i, pack in enumerate(packers):
                for options in ([], ["-@", "4"]):
                    with self.subTest(kind=kind, n=len(cut), packer=i, options=options):
                        words = [*args, *options, "-o", self.path("out.bam")]
                        self.warned(self.rocksort(*words, self.write("cut", pack(cut))),
                                    "(read 'r3')")
                        if kind == "sam" or (len(cut) < 60_000):
                            self.warned(self.rocksort(*words, "-", stdin=pack(cut)),
                                        "standard input", "(read 'r3')")
                        for source in (self.write("whole", pack(whole)), "-"):
                            result = self.sort_ok(*words, source, stdin=pack(whole))
                            self.assertNotIn("newline", result.err)

    def test_last_newline_alone_in_a_block_gives_no_warning(self):
        """Nor do other ends in a block of their own. Once the newline passed for htslib's count of
        one that is missing."""
        def read(n_bytes):
            name = "@r3" + "x" * (n_bytes % 2)
            n_bases = (n_bytes - len(name) - len("\n\n+\n\n")) // 2
            return f"{name}\n{'A' * n_bases}\n+\n{'I' * n_bases}\n"

        for block, pack in ((0xff00, bamfile.bgzf), (1 << 16, gzip.compress)):
            for n_last in (0, 1, 2, 9):
                text = (read(2 * block + n_last - 61) + read(61))[:-1]
                self.assertEqual(len(text) + 1, 2 * block + n_last)
                packed = pack(text.encode() + b"\n")
                for options in ([], ["-@", "4"]):
                    with self.subTest(block=block, n_last=n_last, options=options):
                        words = [*options, "-o", self.path("out.bam")]
                        result = self.sort_ok(*words, self.write("whole.fq.gz", packed))
                        self.assertNotIn("newline", result.err)
                        cut = self.write("cut.fq.gz", pack(text.encode()))
                        self.warned(self.rocksort(*words, cut), "cut.fq.gz", "(read 'r3")

    def test_bad_line_of_filtered_sam_gives_the_reason(self):
        """Lines that the filter drops count as lines. Once there was htslib's word only, without
        the line; a FLAG that is too large was changed."""
        keep = ["--input-fmt-option", 'filter=qname=="r3"']
        bad = LINES[0].split("\t")
        for field, value, reason in ((3, "x", "its POS is not valid: 'x'"),
                                     (1, "70000", "its FLAG is above 65535")):
            line = "\t".join([*bad[:field], value, *bad[field + 1:]])
            text = SQ + "\n".join([*LINES, line, LINES[0]]) + "\n"
            data = text.encode()
            for name, data in (("in.sam", data), ("in.sam.gz", gzip.compress(data))):
                for options in ([], ["-@", "3"], ["--checksum-only"]):
                    with self.subTest(reason=reason, name=name, options=options):
                        result = self.rocksort(*keep, *options, self.write(name, data))
                        number = len(LINES) + 1
                        self.assert_error(result, name, f"record {number}", reason,
                                          f"line {SQ.count(chr(10)) + number}: '{bad[0]}")

    def test_file_cut_anywhere_is_named(self):
        """Each cut is an error that names record and line, or a warning that names the read."""
        text = SQ + "\n".join(LINES)
        for n in range(len(SQ) + len(LINES[0]) + 2, len(text)):
            cut, stdin = text[:n], (text[:n].encode() if n % 2 else b"")
            if cut.endswith("\n"):
                continue
            number = cut.count("\n") - 1
            source = "-" if stdin else self.write("cut.sam", cut)
            with self.subTest(cut=cut[-20:]):
                result = self.rocksort("-o", self.path("out.bam"), source, stdin=stdin)
                if result.status == 0:
                    self.warned(result, f"(read 'r{number}')")
                else:
                    self.assert_error(result, f"is truncated: it ends within record {number}",
                                      f"line {number + 2}: 'r")

    def test_bad_line_is_named_with_reason_read_and_number(self):
        """Each message has the reason, the read, and the number and beginning of the line, also
        where htslib's lines are hidden."""
        good = LINES[0].rsplit("\t", 1)[0]
        for line, *mentions in (
                (good + "\tlength=150", "(read 'r1')", "'length=150' is not a tag"),
                (good.replace("4M", "288301114H4M"), "(read 'r1')", "CIGAR is not valid: '288301114H4M'"),
                (good.replace("FFFF", "FF"), "(read 'r1')", "QUAL has 2 values for 4 bases"),
                (good.replace("\t9\t", "\tx\t"), "(read 'r1')", "MAPQ is not valid: 'x'"),
                ("[M::mem_pestat] skip \x1b orientation RF", "message of another program", "2>&1",
                 "'[M::mem_pestat] skip \\x1b ori"),
                ("bwa: Killed", "message of another program", "2>&1", "'bwa: Killed'"),
                (SQ.split("\n", maxsplit=1)[0], "header of a second file", "both files as inputs")):
            for source, stdin, name in self.forms(SQ + f"{LINES[1]}\n{line}\n{LINES[2]}\n"):
                with self.subTest(line=line, name=name):
                    for level in ([], ["--verbosity", "0"]):
                        self.assert_error(self.rocksort(*level, source, stdin=stdin), name,
                                          "record 2 of ", "line 4: '", *mentions)

    def test_lines_without_references_are_refused(self):
        source = self.write("in.sam", "@HD\tVN:1.6\n" + LINES[0] + "\n")
        self.assert_error(self.rocksort("--verbosity", "0", source), "(read 'r1')", "on 'chr1'",
                          "no @SQ lines", "line 2: 'r1\\x090")

    def test_bad_header_lines_are_named(self):
        for line, *mentions in (
                ("@PG\tPN:bwa\tVN:2.0", "@PG\\x09PN:bwa", "no ID"),
                ("@RG\tSM:s", "@RG\\x09SM:s", "no ID"),
                ("@SQ\tLN:5", "@SQ\\x09LN:5", "no name (SN)"),
                ("@PG\tID:x\tbwa", "@PG\\x09ID:x\\x09bwa", "TAG:VALUE"),
                ("@XX\tAB:c", "@XX\\x09AB:c", "is not one of @HD"),
                ("@" + LINES[0], "'@r1\\x090", "read names must not begin with @")):
            for source, stdin, name in self.forms(SQ + line + "\n" + LINES[0] + "\n"):
                with self.subTest(line=line, name=name):
                    self.assert_error(self.rocksort("--verbosity", "0", source, stdin=stdin),
                                      f"{name}' is damaged: line 3, '", *mentions)

    def test_without_header_a_read_whose_name_begins_with_at_is_refused(self):
        """htslib takes the first line alone for FASTQ; it was left out, with exit status 0."""
        unmapped = "r\t4\t*\t0\t0\t*\t*\t0\t0\tACGT\tIIII\n"
        for source, stdin, name in self.forms("@" + unmapped + unmapped):
            with self.subTest(name=name):
                self.assert_error(self.rocksort(source, stdin=stdin), f"{name}' is damaged",
                                  "line 1, '", "read names must not begin with @")
