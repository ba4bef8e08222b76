"""The same input gives the same output with any memory, threads, codec, level, and any kind of
input and output."""

import gzip
import os

import bamfile
import generate
from harness import (SPILL_BUDGET, CliTest, bytes_of, environment, needs_pysam, reference_ok,
                     reference_sort, reference_view, sam_split, text_of)

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

    def test_threads_and_codecs(self):
        source = self.write("in.sam", generate.odd(20000))
        self.check([], [(["-@", threads, "--temp-codec", codec], SPILL_BUDGET)
                        for threads in "123" for codec in CODECS], source)

    def test_budget_does_not_change_the_output(self):
        source = self.write("in.sam", generate.odd(30000, seed=41))
        budgets = (300_000, SPILL_BUDGET, 1_000_000, 4_000_000, None)
        for order in ([], ["-n"], ["-N"]):
            self.check(order, [(["-@", threads], budget) for threads in ("0", "2")
                               for budget in budgets], source)

    def test_threads_in_memory(self):
        source = self.write("in.sam", generate.odd(12000, seed=42))
        self.check([], [([option, threads], None) for option in ("-@", "--threads")
                        for threads in ("0", "1", "2", "3", "8")], source)

    def test_equal_keys_keep_their_order(self):
        source = self.write("in.sam", generate.ties(25000))
        self.check([], [(["-@", threads], budget) for threads in "13"
                        for budget in (SPILL_BUDGET, 1_000_000)], source)

    def test_size_estimate(self):
        source = self.write("in.sam", generate.odd(15000, seed=43))
        self.check([], [(["-s", size], budget) for size in ("1", "100K", "4M", "1G", "512G", "5T")
                        for budget in (SPILL_BUDGET, None)], source)

    def test_memory_options(self):
        source = self.write("in.sam", generate.odd(9000, seed=44))
        self.check([], [(options, None) for options in (
            ["-m", "1M"], ["-m", "2000000"], ["-m", "2m"], ["-m", "1024K", "-@", "2"], ["-m", "1G"],
            ["--max-memory", "2M"], ["--max-memory", "100M"], ["--max-memory", "1G", "-@", "3"])],
            source)

    def test_really_spills(self):
        """The tests above would test nothing if the tiny budget did not cause runs on disk."""
        source = self.write("in.sam", generate.odd(12000, seed=45))
        for options in ([], ["-n"], ["-N"]):
            self.sort_ok("-k", *options, "-o", self.path("out.bam"), "-T", self.scratch, source,
                         budget=SPILL_BUDGET, clean=False)
            kept = os.listdir(self.scratch)
            self.assertEqual(len(kept), 1, "-k keeps the temporary database")
            files = os.listdir(self.scratch / kept[0] / "db-0")
            self.assertTrue(any(name.endswith(".sst") for name in files), files)
            for folder, _, names in os.walk(self.scratch, topdown=False):
                for name in names:
                    os.unlink(os.path.join(folder, name))
                if folder != str(self.scratch):
                    os.rmdir(folder)

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

    def test_levels_spilled(self):
        source = self.write("in.sam", generate.odd(9000))
        want = self.sort_bam("--no-PG", source)
        for options in (["-u"], ["-l", "1"], ["-l", "9"]):
            with self.subTest(options=options):
                got = self.sort_bam("--no-PG", *options, source, budget=SPILL_BUDGET)
                self.assertEqual(got, want)

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

    def test_sam_without_final_newline(self):
        sam = generate.odd(100)
        want = self.sort_bam("--no-PG", self.write("want.sam", sam))
        self.check("in.sam", sam.rstrip("\n").encode(), want)

    def test_bam_from_files_and_pipes(self):
        want = self.sort_bam("--no-PG", self.write("want.sam", generate.odd(9000)))
        raw = bamfile.bam_header(want.text, want.refs) + want.records
        for level in (0, 1, 9):
            self.check(f"in{level}.bam", bamfile.bgzf(raw, level), want)

    def test_bam_in_odd_blocks(self):
        """Tiny blocks that cut records, and empty blocks in the middle. The first block is not
        tiny, because htslib 1.16 recognises the format from that block alone."""
        want = self.sort_bam("--no-PG", self.write("want.sam", generate.odd(3000)))
        raw = bamfile.bam_header(want.text, want.refs) + want.records
        blocks, at, step = [], 0, 101
        while at < len(raw):
            blocks.append(bamfile.bgzf_block(raw[at : at + step]))
            if step % 5 == 0:
                blocks.append(bamfile.EOF_BLOCK)
            at, step = at + step, step * 7 % 4001 + 1
        self.check("in.bam", b"".join(blocks) + bamfile.EOF_BLOCK, want)

    def test_uncompressed_and_gzip_bam(self):
        """BAM compressed with plain gzip, and uncompressed BAM: htslib reads both, so must we."""
        want = self.sort_bam("--no-PG", self.write("want.sam", generate.odd(3000)))
        raw = bamfile.bam_header(want.text, want.refs) + want.records
        self.check("in.gzip.bam", gzip.compress(raw, 1), want)
        self.check("in.raw.bam", raw, want)

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

    def test_output_can_be_the_input(self):
        want = self.sort_bam("--no-PG", self.write("want.sam", generate.odd(6000)))
        raw = bamfile.bam_header(want.text, want.refs)
        raw += b"".join(bamfile.split(want.records)[::-1])
        for budget in (None, SPILL_BUDGET):
            path = self.write("same.bam", bamfile.bgzf(raw))
            self.sort_ok("--no-PG", "-n", "-o", path, path, budget=budget)
            self.sort_ok("--no-PG", "-o", path, path, budget=budget)
            got = bamfile.read(path)
            self.assertEqual(sorted(bamfile.split(got.records)),
                             sorted(bamfile.split(want.records)))


@needs_pysam
class Formats(CliTest):
    """Formats whose tests need the reference samtools: CRAM, FASTQ, SAM as output."""

    def test_bam_levels_in(self):
        sam = generate.odd(5000)
        want = reference_sort(self.write("want.sam", sam), self.path("want.bam"))
        for options in (["-b", "--output-fmt-option", "level=1"], ["-b"], ["-u"]):
            source = self.bam_of(sam, *options)
            for budget in (None, SPILL_BUDGET):
                with self.subTest(options=options, budget=budget):
                    self.assert_same_bam(self.sort_bam(source, budget=budget), want)

    def test_cram_in_without_reference(self):
        for name, sam in (("odd", generate.odd(4000, seed=51)),
                          ("reads", generate.reads(3000, generate.reference()))):
            source = self.bam_of(sam, "-C", "--output-fmt-option", "no_ref=1", name="in.cram")
            self.check_against_reference(name, source)

    def test_cram_in_with_reference(self):
        refs = generate.reference()
        fasta = self.write("ref.fa", generate.fasta(refs))
        source = self.bam_of(generate.reads(4000, refs), "-C", "-T", fasta, name="in.cram")
        self.check_against_reference("cram", source)

    def check_against_reference(self, name, source):
        """Compares two orders with the reference: in memory and spilled, from file and pipe."""
        data = bytes_of(source)
        for options in ([], ["-n"]):
            want = reference_sort(source, self.path("want.bam"), *options)
            for budget in (None, SPILL_BUDGET):
                with self.subTest(name, options=options, budget=budget):
                    got = self.sort_bam("--no-PG", *options, source, budget=budget)
                    self.assert_same_bam(got, want, "file")
                    got = self.sort_bam("--no-PG", *options, stdin=data, budget=budget)
                    self.assert_same_bam(got, want, "pipe")

    def test_fastq_in(self):
        lines = []
        for i in range(2000):
            bases = "ACGTTGCA" * (i % 9 + 1)
            lines.append(f"@r{i * 7 % 2000}/{i % 2 + 1}\n{bases}\n+\n{'F' * len(bases)}\n")
        source = self.write("in.fastq", "".join(lines))
        self.check_against_reference("fastq", source)

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

    def test_cram_has_the_records_of_the_sorted_bam(self):
        refs = generate.reference()
        fasta = self.write("ref.fa", generate.fasta(refs))
        # The input is a CRAM because its header says where the reference is.
        source = self.bam_of(generate.reads(4000, refs), "-C", "-T", fasta, name="in.cram")
        for order in ([], ["-n"]):
            reference_sort(source, self.path("want.bam"), *order)
            reference_ok("view", "--no-PG", "-C", "-T", fasta, "-o", self.path("want.cram"),
                         self.path("want.bam"))
            want = sam_split(reference_view(self.path("want.cram"), "-T", fasta))[1]
            for budget in (None, SPILL_BUDGET):
                for options, out in ((["-O", "cram"], None), ([], "out.cram"),
                                     (["-O", "cram"], "x.bam")):
                    with self.subTest(order=order, options=options, out=out, budget=budget):
                        target = ["-o", self.path(out)] if out else []
                        result = self.sort_ok("--no-PG", *order, *options, *target, source,
                                              budget=budget)
                        path = self.path(out) if out else self.write("stdout.cram", result.out)
                        with open(path, "rb") as file:
                            self.assertEqual(file.read(4), b"CRAM")
                        reference_ok("quickcheck", path)
                        got = sam_split(reference_view(path, "-T", fasta))[1]
                        self.assertEqual(got, want)

    def test_pipe_into_samtools_view(self):
        source = self.write("in.sam", generate.odd(2000))
        want = self.sort_bam("--no-PG", source)
        with open(source, "rb") as file:
            process = self.start("-u", "--no-PG", "-", stdin=file)
        out, _ = process.communicate()
        self.assertEqual(process.returncode, 0)
        self.assertEqual(bamfile.parse_file(out), want)
        self.assertNotIn("ROCKSORT_TEST_BUDGET", environment(self.scratch))
