"""--merge: sorted inputs become one sorted output.

The output must have the records and the header that sorting the same inputs, one behind the other,
gives.
"""

import os
import random
import struct

import bamfile
import generate
from harness import (bytes_of, json_of, needs_pysam, own_memory_only, pysam, reference_ok,
                     reference_view, sam_split, text_of)
from test_index import index_bytes
from test_inputs import FORMATS, ORDERS, SQ, InputsTest, bam_bytes, lane, number_of, tie

LEAST = ("-@", "1", "--max-memory", "16M")


class MergeTest(InputsTest):
    def merged(self, *args, **how):
        return self.sort_bam("--merge", "--no-PG", "-o", "-", *args, **how)

    def sorted_input(self, name, sam, *options, form="bam", block_bytes=None):
        """A file of these records in an order, in blocks of so many bytes; returns its path."""
        source = self.write("unsorted.sam", sam)
        bam = self.path(name + ".bam")
        self.sort_ok("--no-PG", *options, "-o", bam, source)
        if form == "bam" and block_bytes:
            content = bamfile.read(bam)
            raw = bamfile.bam_header(content.text, content.refs) + content.records
            self.write(name + ".bam", bamfile.bgzf(raw, step=block_bytes))
        if form == "bam":
            return bam
        path = self.in_format(form, reference_view(bam), name + ".x")
        os.unlink(bam)
        return path

    def assert_merges(self, paths, *options, what="", **how):
        """The merge of the inputs is what sorting them gives. Returns it."""
        want = self.sort_bam("--no-PG", "-o", "-", *options, *paths)
        got = self.merged(*options, *paths, **how)
        self.assert_same_bam(got, want, what)
        return got


class Orders(MergeTest):
    @needs_pysam
    def test_every_order_merges_every_format(self):
        for order, options in (*ORDERS.items(), ("minimiser", ["-M", "-R"]),
                               ("shuffle", ["--shuffle=4"])):
            paths = [self.sorted_input(f"in{i}", lane(i + 1, 150), *options, form=form)
                     for i, form in enumerate(FORMATS)]
            for n_threads in ("1", "3"):
                with self.subTest(order=order, threads=n_threads):
                    self.assert_merges(paths, *options, "-@", n_threads, what=order)

    def test_blocks_may_end_anywhere_in_a_record(self):
        for options in ([], ["-n"], ["-t", "XT"]):
            for block_bytes in (7, 64, 997, 5000):
                paths = [self.sorted_input(f"in{i}", lane(i + 1, 40 if block_bytes < 64 else 400),
                                           *options, block_bytes=block_bytes) for i in range(3)]
                with self.subTest(options=options, block_bytes=block_bytes):
                    self.assert_merges(paths, *options, "-@", "2")

    def test_records_longer_than_a_piece_of_input_are_merged(self):
        rng = random.Random(2)
        paths = []
        for i in range(3):
            records = []
            for k in range(i, 40, 3):
                value = rng.randbytes(rng.choice((10, 300_000))).hex().encode()
                records.append(bamfile.record(f"r{k}", 0, 0, k, "5M", "ACGTA",
                                              b"XZZ" + value + b"\0"))
            paths.append(self.write(f"in{i}.bam", bam_bytes(records)))
        for options in (LEAST, ("-@", "3")):
            self.assert_merges(paths, *options)

    def test_values_that_agree_in_many_bytes_are_merged(self):
        for n_same in (500, 2000):
            paths = []
            for i in range(3):
                values = sorted(b"a" * n_same + b"%03d" % (7 * k % 100) for k in range(i, 300, 3))
                records = [bamfile.record(f"r{k}", 4, aux=b"XTZ" + value + b"\0")
                           for k, value in enumerate(values)]
                paths.append(self.write(f"in{i}.bam", bam_bytes(records)))
            for threads in ("1", "3"):
                self.assert_merges(paths, "-t", "XT", "-@", threads)

    def test_inputs_that_overlap_or_follow_each_other_are_merged(self):
        rng = random.Random(5)
        places = [sorted(rng.choices(range(4900), k=6000)) for _ in range(3)]
        places += [[100] * 5000, list(range(4000, 4900)), []]
        paths = [self.write(f"in{i}.bam", bam_bytes(
            bamfile.record(f"r{i}.{k}", 0, 0, place, "5M", "ACGTA", b"XTZ" + b"x" * 40 + b"\0")
            for k, place in enumerate(some))) for i, some in enumerate(places)]
        for options in (LEAST, ("-@", "4")):
            self.assert_merges(paths, *options)
            self.assert_merges(paths[::-1], *options)

    def test_odd_records_are_merged(self):
        whole = generate.odd(2000, seed=8)
        header, lines = sam_split(whole)
        for options in ([], ["-n"], ["-M", "-R"], ["-t", "Xi"]):
            paths = [self.sorted_input(
                f"in{i}", header + "".join(line + "\n" for line in lines[i::4]), *options)
                for i in range(4)]
            self.assert_merges(paths, *options, "-@", "2", what=options)


class Lists(MergeTest):
    def numbers(self, *args, **how):
        return [number_of(raw) for raw in bamfile.split(self.merged(*args, **how).records)]

    def test_equal_keys_come_by_input_then_by_place(self):
        paths = [self.write(f"in{i}.bam", bam_bytes(map(tie, range(1000 * i, 1000 * i + n))))
                 for i, n in enumerate((900, 1, 0, 700))]
        want = [*range(900), 1000, *range(3000, 3700)]
        self.assertEqual(self.numbers(*paths), want)
        self.assertEqual(self.numbers(*paths, paths[1]), want + [1000])
        self.assertEqual(self.numbers(paths[2], paths[2]), [])

    def test_one_input_is_merged(self):
        source = self.sorted_input("in", lane(1, 300))
        self.assert_merges([source])
        with open(source, "rb") as stdin:
            got = self.merged("-", stdin=stdin)
        self.assert_same_bam(got, bamfile.read(source))

    def test_output_may_replace_an_input(self):
        paths = [self.sorted_input(f"in{i}", lane(i + 1, 200)) for i in range(2)]
        want = self.merged(*paths)
        self.sort_ok("--merge", "--no-PG", "-o", paths[1], *paths)
        self.assert_same_bam(bamfile.read(paths[1]), want)

    def test_colliding_read_groups_are_renamed(self):
        sams = [lane(i + 1, 100, SQ + f"@RG\tID:x\tSM:{i}\n@PG\tID:p\tPN:p{i}\n").replace(
            "\tXI:i", "\tRG:Z:x\tPG:Z:p\tXI:i") for i in range(3)]
        paths = [self.sorted_input(f"in{i}", sam) for i, sam in enumerate(sams)]
        got = self.assert_merges(paths)
        self.assertIn("@RG\tID:x-2\tSM:1", got.text)

    def test_more_inputs_than_may_be_open_are_merged(self):
        paths = [self.write(f"in{i}.bam", bam_bytes(map(tie, range(20 * i, 20 * i + 20))))
                 for i in range(300)]
        out = self.path("out.bam")
        words = ["--merge", "--max-memory", "512M", "-o", out, *paths]
        result = self.limited("Sn 64", *words)
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual([number_of(raw) for raw in bamfile.split(bamfile.read(out).records)],
                         list(range(6000)))
        os.unlink(out)
        result = self.limited("n 64", *words)
        self.assert_error(result, "300 inputs cannot be open", "'ulimit -n' from 64 to 332")
        self.assert_no_result(out)
        result = self.rocksort("--merge", *LEAST, "-o", out, *paths)
        self.assert_error(result, "16 MiB of memory are too little to merge 300 inputs")
        self.assert_no_result(out)


class Outputs(MergeTest):
    @needs_pysam
    def test_merged_output_has_an_index(self):
        paths = [self.sorted_input(f"in{i}", lane(i + 1, 800)) for i in range(4)]
        for name, kind in (("out.bam", "csi"), ("out.bam##idx##out.bam.bai", "bai")):
            self.sort_ok("--merge", "--write-index", "-o", self.path(name), *paths)
            want = self.path("want." + kind)
            reference_ok("index", "-c" if kind == "csi" else "-b", "-o", want, self.path("out.bam"))
            self.assertEqual(index_bytes(self.path("out.bam." + kind)), index_bytes(want))

    @needs_pysam
    def test_merged_output_has_each_format(self):
        paths = [self.sorted_input(f"in{i}", lane(i + 1, 200)) for i in range(3)]
        want = reference_view(self.write("want.bam", self.sort_ok("--no-PG", "-o", "-",
                                                                  *paths).out))
        for form in ("sam", "sam.gz", "cram,no_ref=1"):
            out = self.path("out." + form.split(",")[0])
            self.sort_ok("--merge", "--no-PG", "-O", form.replace("sam.gz", "sam"), "-o", out,
                         *paths)
            self.assertEqual(reference_view(out), want)

    @needs_pysam
    def test_reports_of_a_merge_are_those_of_a_sort(self):
        paths = [self.sorted_input(f"in{i}", lane(i + 1, 200)) for i in range(3)]
        texts = []
        for way in (["--merge"], []):
            self.sort_ok(*way, "--flagstat", self.path("flagstat"), "--idxstats",
                         self.path("idxstats"), "--report", self.path("report.json"),
                         "--coverage", self.path("coverage"), "-o", self.path("out.bam"), *paths)
            texts.append([text_of(self.path(name)) for name in ("flagstat", "idxstats", "coverage")])
        self.assertEqual(*texts)

    def test_duplicates_are_those_of_a_sort_of_all(self):
        rng = random.Random(3)
        lines = []
        for i in range(600):
            left = rng.randint(1, 60)
            right = left + rng.choice((100, 101))
            score = rng.choice("5:?D")
            for flag, pos, mate in ((99, left, right), (147, right, left)):
                size = right + 30 - left if flag == 99 else left - right - 30
                lines.append(f"q{i}\t{flag}\tchr1\t{pos}\t60\t30M\t=\t{mate}\t{size}\t{'A' * 30}\t"
                             f"{score * 30}\tMC:Z:30M\tms:i:{30 * (ord(score) - 33)}")
        rng.shuffle(lines)
        paths = [self.sorted_input(f"in{i}", SQ + "".join(line + "\n" for line in lines[i::3]))
                 for i in range(3)]
        for options in ("", "-S", "-d 100 -t", "--ignore-strand -t", "-r"):
            for threads in ("1", "3"):
                got = self.assert_merges(paths, "--markdup=" + options, "-@", threads)
        self.assertLess(len(bamfile.split(got.records)), 600)
        self.assertGreater(len(bamfile.split(got.records)), 100)
        self.assert_merges(paths[:1], "--markdup")
        self.sort_ok("--merge", "--markdup", "--report", self.path("stats"), "-o",
                     self.path("out.bam"), *paths)
        phases = json_of(self.path("stats"))["phases"]
        self.assertGreater(phases["mark"]["wall_s"], 0)
        self.assertGreater(phases["merge"]["wall_s"], 0)


REFS = [("chr1", 3_000_000), ("chr2", 3_000_000), ("chr3", 50_000)]
SORTED = "@HD\tVN:1.6\tSO:coordinate\n" + bamfile.sq_text(REFS)


def piece(records, text=SORTED, **how):
    """A BAM whose records begin in a block of their own, as programs of htslib write it."""
    head = bamfile.bgzf_blocks(bamfile.bam_header(text, REFS))
    return b"".join(head + bamfile.bgzf_blocks(b"".join(records), **how)) + bamfile.EOF_BLOCK


def reads(tid, places, cigar="5M"):
    return [bamfile.record(f"r{tid}.{k}", 0, tid, place, cigar, "ACGTA")
            for k, place in enumerate(places)]


def bai(*refs):
    """A BAI with (bins, windows) for each reference; bins are {number: [(begin, end)]}."""
    out = [b"BAI\1", struct.pack("<i", len(refs))]
    for bins, windows in refs:
        out.append(struct.pack("<i", len(bins)))
        for number, chunks in bins.items():
            out.append(struct.pack("<Ii", number, len(chunks)))
            out += [struct.pack("<QQ", *chunk) for chunk in chunks]
        out.append(struct.pack(f"<i{len(windows)}Q", len(windows), *windows))
    return b"".join(out) + struct.pack("<Q", 0)


@needs_pysam
class Copies(MergeTest):
    """Inputs that overlap no other: their blocks are copied, their index is shifted."""

    def indexed(self, name, records, kind="-c", text=SORTED, **how):
        path = self.write(name, piece(records, text, **how))
        reference_ok("index", kind, path)
        return path

    def merge(self, paths, n_copied, kind="csi"):
        """Merges into out.bam with an index, and checks what was copied, and the records."""
        out = self.path("out.bam")
        self.sort_ok("--merge", "--no-PG", "--report", self.path("report.json"), "--write-index",
                     "-o", f"{out}##idx##{out}.{kind}", *paths)
        stats = json_of(self.path("report.json"))
        self.assertEqual(stats["merge"]["inputs_copied"], n_copied)
        got = bamfile.read(out)
        self.assertEqual(stats["input"]["records"], len(bamfile.split(got.records)))
        self.assert_same_bam(got, self.merged("-l", "6", *paths))
        return out

    def assert_answers(self, out, kind="csi"):
        """The index finds the reads that samtools' index of the file finds."""
        want = self.path("want." + kind)
        reference_ok("index", "-c" if kind == "csi" else "-b", "-o", want, out)
        answers = []
        for index in (f"{out}.{kind}", want):
            with pysam.AlignmentFile(out, index_filename=index) as bam:
                names = [[read.query_name for read in bam.fetch(name, begin, begin + 900)]
                         for name, length in REFS for begin in range(0, length - 900, 12_345)]
                names.append([read.query_name for read in bam.fetch("*")])
                answers.append((names, bam.get_index_statistics(), bam.nocoordinate))
        self.assertEqual(*answers)

    def test_reads_that_reach_into_next_pieces_are_merged(self):
        """A CSI does not say how far reads reach. One reaches into the next two pieces."""
        places = ([100_000], range(100_001, 100_400), [140_000, 500_000], [600_000, 601_000])
        pieces = [reads(0, some, "2M520000N3M" if k == 0 else "5M")
                  for k, some in enumerate(places)]
        paths = [self.indexed("in0.bam", pieces[0] + pieces[1], step=3000),
                 self.indexed("in1.bam", pieces[2]), self.indexed("in2.bam", pieces[3])]
        self.assert_answers(self.merge(paths, 3))

    def test_inputs_with_the_index_of_another_file_are_merged(self):
        one, other = reads(0, range(0, 20_000, 10)), reads(1, range(0, 20_000, 10))
        turned = one[:]
        random.Random(1).shuffle(turned)
        unplaced = [bamfile.record("u", 4)]
        cases = {
            "shorter": (one, one[:100]), "longer": (one[:100], one), "other": (one, other),
            "another end": (one + other, one + reads(2, range(0, 20_000, 10))),
            "unplaced": (one, one + unplaced), "none": (one, []), "empty": ([], one),
        }
        second = self.indexed("in1.bam", reads(2, [40_000]))
        for name, (records, indexed) in cases.items():
            with self.subTest(name):
                self.indexed("other.bam", indexed, step=3000)
                path = self.write("in0.bam", piece(records, step=3000))
                os.replace(self.path("other.bam.csi"), path + ".csi")
                self.assert_answers(self.merge([path, second], 0))
        # More references than the file.
        longer = REFS + [(f"more{k}", 10) for k in range(9)]
        data = piece(one).replace(bamfile.bgzf_block(bamfile.bam_header(SORTED, REFS)),
                                  bamfile.bgzf_block(bamfile.bam_header(
                                      SORTED + bamfile.sq_text(longer[3:]), longer)))
        reference_ok("index", "-c", self.write("other.bam", data))
        path = self.write("in0.bam", piece(one))
        os.replace(self.path("other.bam.csi"), path + ".csi")
        self.assert_answers(self.merge([path, second], 0))
        # An old index of a file that was sorted otherwise since.
        path = self.indexed("in0.bam", one, level=0)
        self.write("in0.bam", piece(turned, SORTED.replace("coordinate", "queryname"), level=0))
        os.utime(path + ".csi")
        result = self.rocksort("--merge", "-o", self.path("out2.bam"), path, second)
        self.assert_error(result, "in0.bam' is not sorted by coordinate")

    def test_inputs_with_odd_indexes_are_merged(self):
        """What other programs may write, and what none should."""
        records = reads(0, range(0, 3000, 10))
        path = self.write("in0.bam", piece(records, step=3000))
        second = self.indexed("in1.bam", reads(1, [5]), "-b")
        offsets = bamfile.bgzf_block_offsets(piece(records, step=3000))
        begin, end = offsets[1] << 16, offsets[-2] << 16
        counts = {37450: [(begin, end), (300, 0)]}
        nothing = ({37450: [(0, 0), (0, 0)]}, [])
        chunks = {4681: [(begin, end)], **counts}
        for name, refs, n_copied in (
                ("sound", [(chunks, [begin]), ({}, []), ({}, [])], 2),
                ("counts of nothing", [(chunks, [begin]), nothing, nothing], 2),
                ("no windows", [(chunks, []), nothing, nothing], 1),
                ("no chunks", [(counts, [begin]), nothing, nothing], 1),
                ("not in order", [({4681: [(begin, end)], 4682: [(begin - 1, end)], **counts},
                                   [begin, begin - 1]), nothing, nothing], 1)):
            with self.subTest(name):
                self.write("in0.bam.bai", bai(*refs))
                # An input that is merged may begin and end anywhere.
                out = self.merge([path, second], n_copied if n_copied == 2 else 0, "bai")
                self.assert_answers(out, "bai")
        os.unlink(path + ".bai")
        os.mkfifo(path + ".bai")
        self.merge([path, second], 0, "bai")

    def test_index_with_places_in_no_block_is_refused(self):
        """Seen while blocks are copied: the index is that of another file after all."""
        records = [bamfile.record(f"r{k:04}", 0, 0, 10 * k, "5M", "ACGTA") for k in range(4000)]
        data = piece(records, step=100 * len(records[0]))       # each block begins with a record
        path = self.write("in0.bam", data)
        offsets = bamfile.bgzf_block_offsets(data)
        begin, inside, end = offsets[1] << 16, offsets[2] + 1 << 16, offsets[-2] << 16
        last = offsets[-3] << 16
        counts = {37450: [(begin, end), (4000, 0)]}
        for name, chunks, windows in (
                ("chunk", [(begin, begin + 9), (inside, end)], [begin, last]),
                ("window", [(begin, end)], [begin, inside, last])):
            with self.subTest(name):
                self.write("in0.bam.bai", bai(({4681: chunks, **counts}, windows), ({}, []),
                                              ({}, [])))
                result = self.rocksort("--merge", "-o", self.path("out.bam"), path)
                self.assert_error(result, "the index of", "in0.bam' is not that of the file")
                self.assert_no_result(self.path("out.bam"))


class Refused(MergeTest):
    def assert_merge_fails(self, *args, mentions):
        out = self.path("out.bam")
        result = self.rocksort("--merge", "--write-index", "-o", out, *args)
        self.assert_error(result, *mentions)
        self.assert_no_result(out)
        self.assertFalse(os.path.exists(out + ".csi"))

    def test_unsorted_input_is_refused(self):
        good = self.write("good.bam", bam_bytes(
            bamfile.record("g", 0, 0, k, "5M", "ACGTA") for k in range(1000)))
        for n, at in ((10, 3), (9000, 8999), (20000, 12345)):
            records = [bamfile.record(f"r{k}", 0, 0, 10 + k // 10, "5M", "ACGTA") for k in range(n)]
            records[at] = bamfile.record("wrong", 0, 0, 5, "5M", "ACGTA")
            bad = self.write("bad.bam", bam_bytes(records))
            for paths in ([good, bad], [bad]):
                with self.subTest(n=n, at=at, inputs=len(paths)):
                    self.assert_merge_fails(
                        *paths, "-@", "3",
                        mentions=("bad.bam' is not sorted by coordinate", f"record {at} (read 'r",
                                  f"record {at + 1} (read 'wrong'", "chr1:6)"))

    def test_disorder_between_blocks_is_found(self):
        first = bam_bytes(bamfile.record(f"a{k}", 0, 0, 500, "5M", "ACGTA") for k in range(700))
        second = b"".join(bamfile.record(f"b{k}", 0, 0, 400, "5M", "ACGTA") for k in range(9))
        data = first[: -len(bamfile.EOF_BLOCK)] + bamfile.bgzf(second)
        self.assert_merge_fails(self.write("bad.bam", data), *LEAST,
                                mentions=("record 700 (read 'a699'", "record 701 (read 'b0'"))

    def test_input_in_another_order_is_refused(self):
        source = self.sorted_input("in", lane(1, 300))
        for options, words in ((["-n"], "is not sorted by natural name"),
                               (["-t", "XI"], "is not sorted by tag XI")):
            result = self.rocksort("--merge", *options, "-o", self.path("out.bam"), source)
            self.assertEqual(result.status, 1)
            self.assertIn("in.bam' is not sorted by", result.err, words)

    def test_damaged_input_is_refused(self):
        good = self.sorted_input("good", lane(1, 3000))
        data = bytes_of(good)
        offsets = bamfile.bgzf_block_offsets(data)
        self.assertGreater(len(offsets), 8)
        flipped = bytearray(data)
        flipped[offsets[3] + 500] ^= 0x40
        cases = {
            "cut": (data[: offsets[4] + 100], "is truncated"),
            "flipped": (bytes(flipped), "is damaged"),
            "text": (b"no BAM\n", "bad.bam"),
        }
        for name, (content, words) in cases.items():
            with self.subTest(name):
                self.assert_merge_fails(good, self.write("bad.bam", content),
                                        mentions=("bad.bam", words))
        raw = bam_bytes(map(tie, range(50)))
        whole = bamfile.parse_file(raw)
        cut = bamfile.bgzf(bamfile.bam_header(whole.text, whole.refs) + whole.records[:-9])
        self.assert_merge_fails(good, self.write("bad.bam", cut),
                                mentions=("truncated", "within record 50"))
        self.assert_merge_fails(good, self.path("missing.bam"), mentions=("missing.bam",))

    def test_bad_records_are_refused(self):
        damaged = bytearray(tie(7))
        struct.pack_into("<i", damaged, 4, 9)       # no such reference
        paths = [self.write("good.bam", bam_bytes([tie(1)])),
                 self.write("bad.bam", bam_bytes([tie(1), bytes(damaged)]))]
        self.assert_merge_fails(*paths, mentions=("record 2 of", "bad.bam", "is damaged"))
        line = "tie\t0\tchr1\t100\t0\t5M\t*\t0\t0\tACGTA\t*\n"
        paths[1] = self.write("bad.sam", SQ + line + line.replace("5M", "5Q"))
        self.assert_merge_fails(*paths, mentions=("record 2 of", "bad.sam"))
        # Of two damaged records in one piece the first is named: the second one has no size.
        self.write("bad.bam", bam_bytes([tie(1), bytes(damaged), tie(1), bytes(4)]))
        self.assert_merge_fails(paths[0], self.path("bad.bam"),
                                mentions=("record 2 of", "bad.bam", "is damaged"))
        untagged = self.write("bad.bam", bam_bytes([tie(1)]))
        result = self.rocksort("--merge", "--template-coordinate", "-o", self.path("out.bam"),
                               untagged)
        self.assertEqual(result.status, 0, result.err)

    def test_other_references_are_refused(self):
        other = self.write("other.bam", bam_bytes([], "@SQ\tSN:chr9\tLN:10\n", [("chr9", 10)]))
        self.assert_merge_fails(self.sorted_input("in", lane(1, 9)), other, mentions=("other.bam",))

    def test_options_that_do_not_go_with_merge_are_refused(self):
        source = self.sorted_input("in", lane(1, 9))
        for options, words in (
                (["-k"], "--merge cannot be used"), (["--plan"], "--merge cannot be used"),
                (["--verify"], "--merge cannot be used"),
                (["--checksum-only"], "--merge cannot be used"),
                (["--fixmate"], "--fixmate needs reads of one name together"),
                (["-n", "--markdup"], "--markdup needs the order by coordinate"),
                (["-M", "-I", source], "-I without -R")):
            with self.subTest(options=options):
                self.assert_refused("--merge", *options, source=source, mention=(words,))
        self.assert_error(self.rocksort("--merge", source, source), "name the output with -o")
        result = self.rocksort("--merge", "--markdup", "-o", self.path("out.bam"), source, "-",
                               stdin=bytes_of(source))
        self.assert_error(result, "reads its inputs twice", "standard input")
        with open(source, "rb") as file:        # a file, but it cannot be opened again
            result = self.rocksort("--merge", "--markdup", "-o", self.path("out.bam"), source, "-",
                                   stdin=file)
        self.assert_error(result, "reads its inputs twice", "standard input")


@own_memory_only
class Memory(MergeTest):
    def test_merge_keeps_the_memory_promise(self):
        rng = random.Random(4)
        records = [bamfile.record(f"r{k:07}", 0, 0, k // 10, "5M", "ACGTA",
                                  b"XZZ" + rng.randbytes(150).hex().encode() + b"\0")
                   for k in range(40_000)]
        few = self.write("in.bam", bam_bytes(records))
        for n, memory in ((4, 24), (60, 96)):
            self.assert_peak(memory, "--merge", "-@", "2", "--max-memory", f"{memory}M", "-o",
                             "/dev/null", *[few] * n)

    def test_keys_that_are_made_ahead_count(self):
        """Keys of 1 KB, as large as their records: they took some 15 MiB too much."""
        records = [bamfile.record(f"r{k:05}", 4, aux=b"XXZ%08d" % k + b"a" * 1000 + b"\0")
                   for k in range(20_000)]
        source = self.write("in.bam", bam_bytes(records))
        self.assert_peak(256, "--merge", "-t", "XX", "-@", "4", "--max-memory", "256M", "-l", "1",
                         "-o", "/dev/null", *[source] * 40)

    def test_headers_of_many_references_stay_within_the_limit(self):
        refs = [(f"contig-number-{i:06}", 1_000_000) for i in range(20_000)]
        text = "@HD\tVN:1.6\tSO:coordinate\n" + "".join(
            f"@SQ\tSN:{name}\tLN:{length}\tM5:{i:032x}\n" for i, (name, length) in enumerate(refs))
        source = self.write("in.bam", bam_bytes([bamfile.record("r", 0, 0, 5, "5M", "ACGTA")], text,
                                                refs))
        for options in ([], ["--markdup"]):
            self.assert_peak(96, "--merge", *options, "-@", "2", "--max-memory", "96M", "-o",
                             "/dev/null", *[source] * 60)

    def test_long_records_stay_within_the_limit(self):
        raw = bamfile.record("r", 0, 0, 7, "5M", "ACGTA", b"XZZ" + b"x" * 10_000_000 + b"\0")
        source = self.path("in.bam")
        with open(source, "wb") as file:
            file.write(bam_bytes([])[: -len(bamfile.EOF_BLOCK)])
            blocks = b"".join(bamfile.bgzf_blocks(raw))
            file.write(3 * blocks + bamfile.EOF_BLOCK)
        self.assert_peak(192, "--merge", "-@", "8", "--max-memory", "192M", "-o", "/dev/null",
                         *[source] * 6)
