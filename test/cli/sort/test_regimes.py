"""The same input gives the same output with any memory, threads, codec, level, and any kind of
input and output."""

import gzip
import os

import bamfile
import generate
from harness import (SPILL_BUDGET, CliTest, needs_pysam, reference_sort, reference_view, sam_split,
                     text_of)

CODECS = ("none", "snappy", "lz4", "zstd")


class Regimes(CliTest):
    """Memory, threads and codecs do not change the output."""

    def check(self, base, variants, source):
        """Each variant (options, budget) gives the same bytes as base."""
        want = self.sort_bam("--no-PG", *base, source)
        for options, budget in variants:
            with self.subTest(options=options, budget=budget):
                got = self.sort_bam("--no-PG", *base, *options, source, budget=budget)
                self.assertEqual(got.text, want.text)
                self.assert_same_records(got.records, want.records)

    def test_memory_threads_and_codec_do_not_change_the_output(self):
        source = self.write("in.sam", generate.odd(12000))
        self.check([], [
            *((["-@", threads, "--temp-codec", codec], SPILL_BUDGET)
              for threads in "13" for codec in CODECS),
            *(([option, threads], None) for option, threads in (
                ("-@", "0"), ("-@", "3"), ("--threads", "1"), ("--threads", "8"))),
            *((["-s", size], budget) for size in ("1", "100K", "1G", "5T")
              for budget in (SPILL_BUDGET, None)),
            *((options, None) for options in (
                ["-m", "1M"], ["-m", "2000000"], ["-m", "1024K", "-@", "2"], ["-m", "1G"],
                ["--max-memory", "2M"], ["--max-memory", "1G", "-@", "3"]))], source)
        for order in ([], ["-n"], ["-N"]):
            self.check(order, [(["-@", threads], budget) for threads, budget in (
                ("0", 300_000), ("2", 300_000), ("2", 1_000_000), ("0", 4_000_000))], source)

    def test_in_memory_opens_no_database(self):
        source = self.write("in.sam", generate.odd(500))
        self.sort_ok("-k", "-o", self.path("out.bam"), "-T", str(self.scratch), source, clean=False)
        self.assertEqual(os.listdir(self.scratch), [])


class Levels(CliTest):
    def test_level_does_not_change_the_records(self):
        source = self.write("in.sam", generate.odd(6000))
        sizes, want = {}, self.sort_bam("--no-PG", source)
        for level in (*"0123456789", None, "u"):
            options = ["-u"] if level == "u" else ["-l", level] if level else []
            with self.subTest(level=level):
                out = self.path("out.bam")
                self.sort_ok("--no-PG", *options, "-o", out, source)
                sizes[level] = os.path.getsize(out)
                self.assertEqual(bamfile.read(out), want)
        self.assertEqual(sizes[None], sizes["3"], "the default is -l 3")
        self.assertEqual(sizes["u"], sizes["0"], "-u is -l 0")
        self.assertGreater(sizes["0"], len(want.records), "-l 0 does not compress")
        self.assertLess(sizes["1"], sizes["0"] / 2)
        self.assertLess(sizes["9"], sizes["1"])
        for options in (["-u"], ["-l", "1"], ["-l", "9"]):
            self.assertEqual(self.sort_bam("--no-PG", *options, source, budget=SPILL_BUDGET), want)

    def test_blocks_have_the_bc_field_and_at_most_64_kib(self):
        source = self.write("in.sam", generate.odd(9000))
        for options in ([], ["-u"]):
            for budget in (None, SPILL_BUDGET):
                data = self.sort_ok(*options, source, budget=budget).out
                offsets = bamfile.bgzf_block_offsets(data)
                self.assertEqual(offsets[-1], len(data))
                for begin, end in zip(offsets, offsets[1:]):
                    self.assertEqual(data[begin : begin + 4], b"\x1f\x8b\x08\x04")
                    self.assertLessEqual(int.from_bytes(data[end - 4 : end], "little"), 65536)
                self.assertEqual(data[offsets[-2] :], bamfile.EOF_BLOCK)
                self.assertEqual(data.count(bamfile.EOF_BLOCK), 1)


class WaysIn(CliTest):
    """The same records from a file, a pipe and a redirection, in all formats without reference."""

    def check(self, name, data, want):
        """Sorts data from a named file, a pipe (no argument and -) and a redirection."""
        source = self.write(name, data)
        for budget in (None, SPILL_BUDGET):
            with self.subTest(name, budget=budget):
                with open(source, "rb") as file:
                    for way, args, stdin in (("file", [source], None), ("pipe", [], data),
                                             ("pipe -", ["-"], data), ("< file", [], file)):
                        got = self.sort_bam("--no-PG", *args, stdin=stdin, budget=budget)
                        self.assert_same_bam(got, want, way)

    def test_sam_from_files_and_pipes(self):
        sam = generate.odd(9000).encode()
        want = self.sort_bam("--no-PG", self.write("want.sam", sam))
        self.check("in.sam", sam, want)
        self.check("in.gz.sam", gzip.compress(sam, 1), want)
        self.check("in.bgzf.sam", bamfile.bgzf(sam), want)

    def test_bam_from_files_and_pipes(self):
        want = self.sort_bam("--no-PG", self.write("want.sam", generate.odd(9000)))
        raw = bamfile.bam_header(want.text, want.refs) + want.records
        for level in (0, 1, 9):
            self.check(f"in{level}.bam", bamfile.bgzf(raw, level), want)

    def test_bam_shorter_than_its_end_marker(self):
        tiny = self.write("tiny.bam", b"BAM\1" + bytes(8))
        self.assertEqual(self.sort_bam("--no-PG", tiny).records, b"")

    def test_short_read_is_not_the_end_of_the_input(self):
        want = self.sort_bam("--no-PG", self.write("want.sam", generate.odd(600)))
        data = bamfile.bgzf(bamfile.bam_header(want.text, want.refs) + want.records)
        process = self.start("--no-PG")
        for at in range(0, len(data), 997):
            process.stdin.write(data[at : at + 997])
            process.stdin.flush()
        out, err = process.communicate()
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(bamfile.parse_file(out), want)


@needs_pysam
class Formats(CliTest):
    """Formats whose tests need the reference samtools: CRAM, FASTQ, SAM as output."""

    def test_sam_is_that_of_htslib(self):
        source = self.write("in.sam", generate.odd(6000, seed=52))
        reference_sort(source, self.path("want.bam"))
        want = reference_view(self.path("want.bam"))
        for budget in (None, SPILL_BUDGET):
            for options, out in ((["-O", "sam"], None), (["-O", "SAM"], None), ([], "out.sam"),
                                 (["-O", "sam"], "out.bam"), (["--output-fmt", "sam"], None)):
                with self.subTest(options=options, out=out, budget=budget):
                    target = ["-o", self.path(out)] if out else []
                    result = self.sort_ok("--no-PG", *options, *target, source, budget=budget)
                    text = result.out.decode("latin-1")
                    if out:
                        text = text_of(self.path(out), "latin-1")
                    self.assertEqual(sam_split(text)[0], sam_split(want)[0])
                    self.assertEqual(sam_split(text)[1], sam_split(want)[1])

    def test_output_is_bam_unless_named_otherwise(self):
        source = self.write("in.sam", generate.odd(300))
        want = self.sort_bam("--no-PG", source)
        for options, out in ((["-O", "bam"], "x.sam"), (["-O", "BAM"], "x.cram"), ([], "x.bam"), ([], "x"), ([], "x.txt")):
            with self.subTest(out=out):
                self.sort_ok("--no-PG", *options, "-o", self.path(out), source)
                self.assertEqual(bamfile.read(self.path(out)), want)
        self.assertEqual(bamfile.parse_file(self.sort_ok("--no-PG", "-o", "-", source).out), want)
