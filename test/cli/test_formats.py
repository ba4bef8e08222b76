"""Formats of input and output: compression levels, CRAM with and without a reference, filters of
the input, FASTQ."""

import gzip
import os
import pathlib
import random
import re

import bamfile
import generate
from harness import (SPILL_BUDGET, CliTest, needs_pysam, own_lines, reference, reference_ok,
                     reference_sort, reference_view, sam_split, without_pg)


class Formats(CliTest):
    """Levels and formats of the output."""

    def size(self, *options, sam=generate.reads(400, generate.reference())):
        return len(self.sort_ok("--no-PG", *options, stdin=sam.encode()).out)

    def test_level_in_the_format_wins(self):
        plain = {level: self.size("-l", str(level)) for level in (0, 1, 6, 9)}
        self.assertEqual(sorted(plain.values(), reverse=True), list(plain.values()))
        for level, size in plain.items():
            for options in (["--output-fmt-option", f"level={level}"], ["-O", f"bam,level={level}"],
                            ["-l", "3", "--output-fmt-option", f"level={level}"],
                            ["--output-fmt-option", f"level={level}", "-l", "3"],
                            ["-O", "bam,level=3", "--output-fmt-option", f"level={level}"]):
                with self.subTest(options=options):
                    self.assertEqual(self.size(*options), size)

    def test_level_of_compressed_sam(self):
        plain = {level: self.size("-O", "sam.gz", "-l", str(level)) for level in (0, 1, 6, 9)}
        self.assertEqual(sorted(plain.values(), reverse=True), list(plain.values()))
        self.assertGreater(plain[0], 3 * plain[1])
        for level, size in plain.items():
            for options in (["-O", f"sam.gz,level={level}"],
                            ["-O", "sam.gz", "--output-fmt-option", f"level={level}"]):
                with self.subTest(options=options):
                    self.assertEqual(self.size(*options), size)
        self.assertEqual(self.size("-O", "sam.gz", "-u"), plain[0])

    def test_sam_is_plain_text_whatever_the_level(self):
        sam = generate.pairs(300).encode()
        want = self.sort_ok("--no-PG", "-O", "sam", stdin=sam).out
        self.assertEqual(want.count(b"\n"), 5 + 600)
        for options in (["-l", "9"], ["-u"], ["-l", "0"]):
            self.assertEqual(self.sort_ok("--no-PG", "-O", "sam", *options, stdin=sam).out, want)
        for options in (["-O", "sam.gz"], ["-O", "sam.gz", "-l0"], ["--output-fmt", "sam.gz"],
                        ["-O", "sam.gz,level=9", "-@3"]):
            for budget in (None, 40_000):
                got = self.sort_ok("--no-PG", *options, stdin=sam, budget=budget).out
                self.assertEqual(gzip.decompress(got), want, options)
                self.assertTrue(got.endswith(bamfile.EOF_BLOCK))
        for name in ("o.sam", "o.sam.gz", "o.SAM"):
            self.sort_ok("--no-PG", "-o", self.path(name), stdin=sam)
            data = pathlib.Path(self.path(name)).read_bytes()
            if name.endswith("gz"):
                data = gzip.decompress(data)
            if name != "o.SAM":
                self.assertEqual(data, want, name)

    @needs_pysam
    def test_sam_with_a_level_is_compressed(self):
        source = self.write("in.sam", generate.pairs(300))
        for options in (["-O", "sam,level=6"], ["-O", "sam,level=0"],
                        ["-O", "sam", "--output-fmt-option", "level=6"]):
            with self.subTest(options=options):
                reference_ok("sort", "--no-PG", *options, "-o", self.path("want"), source)
                want = pathlib.Path(self.path("want")).read_bytes()
                got = self.sort_ok("--no-PG", *options, source).out
                if want[:2] == b"\x1f\x8b":
                    self.assertEqual(got[:2], want[:2], "not compressed")
                    got, want = gzip.decompress(got), gzip.decompress(want)
                self.assertTrue(got == want)

    def test_reference_too_long_for_bam(self):
        sam = b"@SQ\tSN:long\tLN:3000000000\nr\t0\tlong\t250\t9\t4M\t*\t0\t0\tACGT\tFFFF\n"
        result = self.rocksort("-o", self.path("out.bam"), stdin=sam)
        self.assert_error(result, "long", "-O sam")
        self.assert_no_result(self.path("out.bam"))
        self.sort_ok("-O", "sam", stdin=sam)


class Threads(CliTest):
    """Options that would start threads of htslib beside our own."""

    def setUp(self):
        super().setUp()
        self.sam = generate.reads(20000, generate.reference())
        self.source = self.bam_of(self.sam, name="in.bam")

    def test_thread_options(self):
        """nthreads gets a warning and is ignored. It once started a reader thread of htslib that
        took blocks from our reader: records were lost."""
        sam_gz = self.write("in.sam.gz", bamfile.bgzf(self.sam.encode()))
        for options in (["--input-fmt-option", "nthreads=2"], ["--output-fmt-option", "nthreads=2"],
                        ["-O", "bam,nthreads=2"],
                        ["--input-fmt-option", "nthreads=2",
                         "--input-fmt-option", "filter=mapq>=0"]):
            for inputs in ([self.source], [sam_gz], [self.source, sam_gz]):
                with self.subTest(options=options, inputs=len(inputs)):
                    result = self.sort_ok(*options, "-o", self.path("out.bam"), *inputs)
                    self.assertIn("nthreads", result.err)
                    records = bamfile.split(bamfile.read(self.path("out.bam")).records)
                    self.assertEqual(len(records), 40000 * len(inputs))


@needs_pysam
class Cram(CliTest):
    """Reads and writes CRAM with the reference in a file, in the CRAM, or without a reference."""

    OUTPUTS = (["-O", "cram,no_ref=1"], ["-O", "cram", "--output-fmt-option", "no_ref=1"],
               ["-O", "cram", "--reference", "{fasta}"], ["-O", "cram,reference={fasta}"],
               ["-O", "cram,embed_ref=1", "--reference", "{fasta}"],
               ["-O", "cram,version=2.1,no_ref=1"], ["-O", "cram,no_ref=1,level=9"],
               ["-O", "cram,no_ref=1,seqs_per_slice=100", "-@", "3"])

    def setUp(self):
        super().setUp()
        # Neither the program nor the reference samtools may fetch sequences from the network.
        for name in ("REF_PATH", "REF_CACHE"):
            old = os.environ.get(name)
            os.environ[name] = ":"
            self.addCleanup(os.environ.__setitem__ if old else os.environ.pop, name,
                            *([old] if old else [None]))
        refs = generate.reference(n_bases=5000)
        self.fasta = self.write("ref.fa", generate.fasta(refs))
        self.source = self.write("in.sam", generate.reads(600, refs))
        self.want = {}

    def cram(self, name, *options):
        reference_ok("view", "--no-PG", "-C", *options, "-o", self.path(name), self.source)
        return self.path(name)

    def lose_reference(self):
        """Moves the FASTA, so that the UR field of the header is wrong; returns its new path."""
        os.rename(self.fasta, self.path("moved.fa"))
        if os.path.exists(self.fasta + ".fai"):
            os.unlink(self.fasta + ".fai")
        return self.path("moved.fa")

    def plain(self, line):
        """The fields of a record that CRAM keeps: CRAM changes the order of tags and makes MD and
        NM anew."""
        fields = line.split("\t")
        return fields[:11] + sorted(tag for tag in fields[11:] if tag[:2] not in ("MD", "NM"))

    def check_records(self, path, *options, order=(), source=None):
        """The file has the records of the reference's output; options are needed to read it."""
        source = source or self.source
        if (order, source) not in self.want:
            out = self.path("want.bam")
            reference_ok("sort", "--no-PG", *order, "-O", "bam", "-o", out, source)
            self.want[order, source] = sam_split(reference_view(out))
        header, records = sam_split(reference_view(path, *options))
        want_header, want_records = self.want[order, source]
        self.assertEqual(len(records), len(want_records))
        for got, want in zip(records, want_records):
            self.assertEqual(self.plain(got), self.plain(want))
        # M5 and UR fields may have been added.
        strip = re.compile(r"\t(M5|UR):[^\t\n]*")
        self.assertEqual(without_pg(strip.sub("", header)),
                         without_pg(strip.sub("", want_header)))

    def test_cram_keeps_the_records(self):
        for words in self.OUTPUTS:
            words = [word.format(fasta=self.fasta) for word in words]
            with self.subTest(words=words):
                out = self.path("out.cram")
                self.sort_ok("--no-PG", *words, "-o", out, self.source, budget=100_000)
                self.check_records(out, "-T", self.fasta)

    def test_out_in_other_orders(self):
        for order in (("-n",), ("-t", "XI"), ("--shuffle",)):
            out = self.path("out.cram")
            self.sort_ok("--no-PG", *order, "-O", "cram", "--reference", self.fasta, "-o", out,
                         self.source)
            if order != ("--shuffle",):
                self.check_records(out, "-T", self.fasta, order=order)

    def test_size_of_a_cram_depends_on_where_its_reference_is(self):
        sizes = {}
        for kind, words in (("none", ["no_ref=1"]), ("embedded", ["embed_ref=1"]), ("file", [])):
            out = self.path(kind + ".cram")
            options = [word for one in words for word in ("--output-fmt-option", one)]
            self.sort_ok("--no-PG", "-O", "cram", *options, "--reference", self.fasta, "-o", out,
                         self.source)
            sizes[kind] = os.path.getsize(out)
        self.assertLess(sizes["file"], sizes["embedded"])
        self.assertLess(sizes["embedded"], sizes["none"])
        moved = self.lose_reference()
        for kind in ("none", "embedded"):
            self.check_records(self.path(kind + ".cram"))
        self.check_records(self.path("file.cram"), "-T", moved)
        self.assertFalse(reference("view", "-o", os.devnull, self.path("file.cram")))

    def test_cram_without_reference_is_read(self):
        for name, options in (("none.cram", ["--output-fmt-option", "no_ref=1"]),
                              ("embedded.cram", ["-T", self.fasta, "--output-fmt-option",
                                                 "embed_ref=1"])):
            source = self.cram(name, *options)
            for words in (["-O", "sam"], ["-O", "cram,no_ref=1"], ["-n", "-u"]):
                with self.subTest(name=name, words=words):
                    out = self.path("out")
                    self.sort_ok("--no-PG", "-@", "2", *words, "-o", out, source, budget=100_000)
                    self.check_records(out, order=("-n",) if "-n" in words else ())

    def test_reference_is_found_by_ur_or_named_or_missing(self):
        source = self.cram("in.cram", "-T", self.fasta)
        out = self.path("out")
        self.sort_ok("--no-PG", "-O", "bam", "-o", out, source)
        self.check_records(out)
        moved = self.lose_reference()
        result = self.rocksort("--no-PG", "-O", "bam", "-o", self.path("not.bam"), source)
        self.assertEqual(result.status, 1)
        self.assertEqual(len(own_lines(result.err)), 1, result.err)
        self.assertIn("in.cram", own_lines(result.err)[0])
        self.assertFalse(os.path.exists(self.path("not.bam")))
        for words in (["--reference", moved], ["--input-fmt-option", f"reference={moved}"]):
            for budget in (None, 100_000):
                with self.subTest(words=words, budget=budget):
                    self.sort_ok("--no-PG", "-O", "bam", *words, "-o", out, source, budget=budget)
                    self.check_records(out)
        # CRAM in and CRAM out.
        self.sort_ok("--no-PG", "-O", "cram", "--reference", moved, "-o", out, source)
        self.check_records(out, "-T", moved)
        # CRAM from standard input.
        with open(source, "rb") as file:
            self.sort_ok("--no-PG", "-O", "bam", "--reference", moved, "-o", out, stdin=file)
        self.check_records(out)

    def test_reference_is_used_for_each_input(self):
        header, records = sam_split(pathlib.Path(self.source).read_text(encoding="ascii"))
        names = []
        for at in range(2):
            self.source = self.write("part.sam", header + "\n".join(records[at::2]) + "\n")
            names.append(self.cram(f"in{at}.cram", "-T", self.fasta))
        whole = self.write("in.sam", header + "\n".join(records[::2] + records[1::2]) + "\n")
        moved = self.lose_reference()
        out = self.path("out")
        for words in (["-O", "bam"], ["-O", "cram"]):
            self.sort_ok("--no-PG", *words, "--reference", moved, "-o", out, *names,
                         budget=100_000)
            self.check_records(out, "-T", moved, source=whole)

    def test_embedding_needs_a_reference(self):
        result = self.rocksort("-O", "cram,embed_ref=1", "-o", self.path("out.cram"), self.source)
        self.assert_error(result, "out.cram")
        self.assertFalse(os.path.exists(self.path("out.cram")))

    def test_missing_reference_is_named_instead_of_the_input(self):
        source = self.cram("in.cram", "--output-fmt-option", "no_ref=1")
        for words, name in ((["-O", "cram"], self.source), (["-O", "bam"], source)):
            self.assert_refused(*words, "--reference", self.path("none.fa"), source=name,
                               mention=["none.fa"])

    def test_tags_that_are_made_up(self):
        """decode_md=0 reaches the reader of the CRAM, which then makes no MD tags."""
        source = self.cram("in.cram", "-T", self.fasta)
        for value, made in (("0", 0), ("1", 1)):
            got = self.sort_ok("-O", "sam", "--input-fmt-option", f"decode_md={value}", source).out
            self.assertEqual(b"\tMD:Z:" in got, bool(made))

    def test_reference_with_another_checksum_is_refused(self):
        source = self.cram("in.cram", "-T", self.fasta)
        other = self.write("other.fa", generate.fasta(generate.reference(seed=9, n_bases=5000)))
        result = self.rocksort("--reference", other, "-o", self.path("out.bam"), source)
        self.assertEqual(result.status, 1)
        self.assertEqual(len(own_lines(result.err)), 1, result.err)
        self.assertFalse(os.path.exists(self.path("out.bam")))


@needs_pysam
class Filter(CliTest):
    """--input-fmt-option filter=EXPRESSION: only some of the records are sorted."""

    EXPRESSIONS = ("flag.unmap", "pos>5000", '[XS]=="x" && mapq==9', "1", "0", "qname=~\"^q0\"")

    def test_filter_takes_the_same_records_of_each_format(self):
        sam = generate.pairs(1500)
        source = self.write("in.sam", sam)
        for name, words in (("in.bam", ["-b"]), ("in.cram", ["-C", "--output-fmt-option",
                                                             "no_ref=1"])):
            reference_ok("view", "--no-PG", *words, "-o", self.path(name), source)
        self.write("in.sam.gz", bamfile.bgzf(sam.encode()))
        for expression in self.EXPRESSIONS:
            words = ["--input-fmt-option", f"filter={expression}"]
            want = reference_sort(source, self.path("want.bam"), *words)
            for name in ("in.sam", "in.bam", "in.cram", "in.sam.gz"):
                budget = SPILL_BUDGET if name == "in.bam" else None
                with self.subTest(expression=expression, name=name):
                    got = self.sort_bam("--no-PG", "-@", "2", *words, self.path(name),
                                        budget=budget)
                    if name == "in.cram":
                        # CRAM changes the order of the tags and may add fields to the header.
                        self.assertEqual([raw[:36] for raw in bamfile.split(got.records)],
                                         [raw[:36] for raw in bamfile.split(want.records)])
                    else:
                        self.assert_same_bam(got, want)

    def test_several_inputs(self):
        sources = [self.write(f"in{seed}.sam", generate.pairs(200, seed=seed)) for seed in (1, 2)]
        sources.append(self.bam_of(generate.pairs(200, seed=3)))
        words = ["--input-fmt-option", "filter=flag.unmap"]
        got = self.sort_bam("--no-PG", *words, "-o", "-", *sources)
        n_want = sum(bool(bamfile.fields(raw)[2] & 4) for raw in bamfile.split(
            self.sort_bam("--no-PG", "-o", "-", *sources).records))
        records = bamfile.split(got.records)
        self.assertEqual(len(records), n_want)
        self.assertTrue(all(bamfile.fields(raw)[2] & 4 for raw in records))

    def test_bad_expression(self):
        for source in (self.write("in.sam", generate.pairs(50)), self.bam_of(generate.pairs(50))):
            for expression in ("(((", "nonsense>1", "pos>"):
                with self.subTest(source=source, expression=expression):
                    result = self.rocksort("--input-fmt-option", f"filter={expression}", "-o",
                                           self.path("out.bam"), source)
                    self.assertEqual(result.status, 1)
                    self.assertEqual(len(own_lines(result.err)), 1, result.err)
                    self.assertFalse(os.path.exists(self.path("out.bam")))


@needs_pysam
class Fastq(CliTest):
    """FASTQ input: unmapped reads; names say which read of a pair each is."""

    def setUp(self):
        super().setUp()
        rng = random.Random(6)
        self.texts = {"pairs": "", "one": "", "casava": "", "tags": "", "fasta": ""}
        for i in rng.sample(range(500), 300):
            bases = "".join(rng.choices("ACGTN", k=rng.choice((1, 30, 80))))
            qual = "".join(rng.choices("!#,:F~", k=len(bases)))
            body = f"\n{bases}\n+\n{qual}\n"
            self.texts["pairs"] += f"@r{i}/1{body}@r{i}/2{body}"
            self.texts["one"] += f"@r{i} a comment{body}"
            self.texts["casava"] += f"@r{i} {1 + i % 2}:{'NY'[i % 3 == 0]}:0:ACGT{body}"
            self.texts["tags"] += f"@r{i}\tRG:Z:g{i % 3}\tBC:Z:ACGT{body}"
            self.texts["fasta"] += f">r{i} a comment\n{bases[:20]}\n{bases[20:]}\n"

    def check(self, source, *options):
        """The output is the same as that of samtools sort."""
        with self.subTest(source=source, options=options):
            want = reference_sort(source, self.path("want.bam"), *options)
            for budget in (None, 40_000):
                got = self.sort_bam("--no-PG", *options, source, budget=budget)
                self.assert_same_bam(got, want)
            return want

    def test_single_and_paired_reads_are_sorted(self):
        for kind, text in self.texts.items():
            source = self.write(kind + (".fa" if kind == "fasta" else ".fq"), text)
            for order in (["-n", "-@", "2"], ["-M"]):
                self.check(source, *order)

    def test_compressed_fastq_is_read(self):
        data = self.texts["pairs"].encode()
        self.check(self.write("a.fq.gz", gzip.compress(data)), "-n")
        self.check(self.write("b.fq.gz", bamfile.bgzf(data)), "-n")

    def test_input_options(self):
        for kind in ("one", "casava", "tags"):
            source = self.write(kind + ".fq", self.texts[kind])
            for words in (["fastq_aux=RG"], ["fastq_name2"], ["fastq_casava", "fastq_barcode=RX"]):
                options = [word for one in words for word in ("--input-fmt-option", one)]
                self.check(source, *options)
        source = self.write("tags.fq", self.texts["tags"])
        want = self.check(source, "-t", "RG", "--input-fmt-option", "fastq_aux=1")
        self.assertIn(b"RGZg2", want.records)

    def test_fastq_is_sorted_as_by_samtools_import_and_sort(self):
        for kind, option in (("one", "-0"), ("pairs", "-s")):
            source = self.write(kind + ".fq", self.texts[kind])
            reference_ok("fqimport", "--no-PG", option, source, "-o", self.path("imported.bam"))
            for order in (["-n"], ["-M"]):
                want = reference_sort(self.path("imported.bam"), self.path("want.bam"), *order)
                got = self.sort_bam("--no-PG", *order, source)
                self.assert_same_records(got.records, want.records, kind)

    def test_standard_input(self):
        data = self.texts["pairs"].encode()
        want = self.sort_bam("--no-PG", "-n", self.write("a.fq", data))
        self.assertEqual(self.sort_bam("--no-PG", "-n", stdin=data), want)

    def test_cut_fastq_gives_no_output(self):
        data = self.texts["one"].encode()
        source = self.write("cut.fq", data[: data.rindex(b"+")] + b"+\nFF")
        self.assertEqual(reference("sort", "-o", self.path("want.bam"), source), False)
        result = self.rocksort("-o", self.path("out.bam"), source)
        self.assert_error(result, "cut.fq")
        self.assertFalse(os.path.exists(self.path("out.bam")))
