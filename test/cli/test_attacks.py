"""What a reviewer who set out to break the program found: one test a fault."""

import os
import resource
import unittest

import bamfile
import generate
from harness import SAMTOOLS, SPILL_BUDGET, CliTest, own_lines, sanitized


class Attacks(CliTest):
    """Each of these went wrong once."""

    def setUp(self):
        super().setUp()
        self.sam = generate.reads(20000, generate.reference())

    @unittest.skipIf(os.access(SAMTOOLS, os.R_OK) and sanitized("tsan"),
                     "ThreadSanitizer's address space has no room for 4T")
    def test_memory_beyond_the_machine(self):
        """The budget is a bound, not a demand."""
        self.sort_ok("--max-memory", "4T", "-o", self.path("out.bam"), stdin=self.sam.encode())

    def test_memory_that_overflows(self):
        result = self.rocksort("-m", "4194304T", "-@", "4", stdin=self.sam.encode())
        self.assert_error(result, "memory")

    def test_numbers_are_strict(self):
        for options in (["-@", " 4"], ["-@", "+4"], ["-l", " 4"], ["-l", "+4"], ["-l", "-"]):
            with self.subTest(options=options):
                self.assert_error(self.rocksort(*options, stdin=b""), options[0])

    def test_file_size_limit(self):
        """SIGXFSZ would kill the program before it could tidy up."""
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        source = self.write("in.sam", self.sam)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
        try:
            for budget in (SPILL_BUDGET, None):
                with self.subTest(budget=budget):
                    out = self.path("out.bam")
                    self.assert_error(self.rocksort("-o", out, source, budget=budget), "File too large")
                    self.assertEqual(sorted(os.listdir(self.work)), ["in.sam"])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    def test_open_file_limit(self):
        source = self.write("in.sam", self.sam)
        shell = ["sh", "-c", 'ulimit -n 20 && exec "$0" "$@"', SAMTOOLS, "rocksort"]
        result = self.run_program([*shell, "-o", self.path("out.bam"), source], budget=SPILL_BUDGET)
        self.assert_error(result, "-m", "ulimit -n")
        self.assertEqual(os.listdir(self.scratch), [])
        self.assert_no_result(self.path("out.bam"))

    def test_reference_too_long_for_bam(self):
        sam = b"@SQ\tSN:long\tLN:3000000000\nr\t0\tlong\t250\t9\t4M\t*\t0\t0\tACGT\tFFFF\n"
        result = self.rocksort("-o", self.path("out.bam"), stdin=sam)
        self.assert_error(result, "long", "-O sam")
        self.assert_no_result(self.path("out.bam"))
        self.sort_ok("-O", "sam", stdin=sam)

    def test_output_to_a_device(self):
        """Temporary data do not go where devices are."""
        result = self.rocksort("-k", "-o", "/dev/null", stdin=self.sam.encode(), budget=SPILL_BUDGET,
                               clean=False)
        self.assertEqual(result.status, 0, result.err)
        self.assertIn(str(self.scratch), result.err)

    def test_format_option_level(self):
        sizes = [len(self.sort_ok("-O", f"bam,level={level}", stdin=self.sam.encode()).out)
                 for level in (0, 1, 9)]
        self.assertGreater(sizes[0], sizes[1])
        self.assertGreater(sizes[1], sizes[2])

    def test_cram_whose_reader_leaves(self):
        """htslib's CRAM writer crashed under its own threads."""
        for _ in range(5):
            process = self.start("-O", "cram,no_ref=1", "-@", "3", "-", stderr=None)
            process.stdout.close()
            try:
                process.stdin.write(self.sam.encode())
                process.stdin.close()
            except BrokenPipeError:
                pass
            self.assertIn(process.wait(30), (1, -13, 141))
            self.assertEqual(os.listdir(self.scratch), [])

    def test_no_word_at_a_signal(self):
        """Threads that miss the files removed under them keep quiet."""
        sam = self.sam.encode()
        for _ in range(10):
            process = self.start("-", "-o", self.path("out.bam"), budget=SPILL_BUDGET)
            process.stdin.write(sam)
            process.stdin.flush()
            process.terminate()
            process.stdin.close()
            self.assert_died_of(process, 15)
            err = process.stderr.read().decode()
            # What becomes of the store, if it got so far, and nothing else.
            said = [line for line in own_lines(err) if "what was sorted so far" not in line]
            self.assertEqual(said, [])
            self.drop_kept(err)


class Readers(CliTest):
    """htslib's own threads at work behind ours."""

    def setUp(self):
        super().setUp()
        self.sam = generate.reads(20000, generate.reference())
        self.source = self.bam_of(self.sam, name="in.bam")

    def test_thread_options(self):
        """nthreads started a reader of htslib's that took blocks away: records were lost."""
        sam_gz = self.write("in.sam.gz", bamfile.bgzf(self.sam.encode()))
        for options in (["--input-fmt-option", "nthreads=2"], ["--output-fmt-option", "nthreads=2"],
                        ["-O", "bam,nthreads=2"],
                        ["--input-fmt-option", "nthreads=2", "--input-fmt-option", "filter=mapq>=0"]):
            for inputs in ([self.source], [sam_gz], [self.source, sam_gz]):
                with self.subTest(options=options, inputs=len(inputs)):
                    result = self.sort_ok(*options, "-o", self.path("out.bam"), *inputs)
                    self.assertIn("nthreads", result.err)
                    records = bamfile.split(bamfile.read(self.path("out.bam")).records)
                    self.assertEqual(len(records), 40000 * len(inputs))

    def test_truncated_input_with_a_filter(self):
        """The end within a block looked like the end of the file."""
        with open(self.source, "rb") as file:
            data = file.read()
        starts = bamfile.bgzf_block_offsets(data)
        cut = self.write("cut.bam", data[:starts[len(starts) // 2] + 1000])
        for n_threads in ("1", "4"):
            result = self.rocksort("-@", n_threads, "--input-fmt-option", "filter=mapq>=0",
                                   "-o", self.path("out.bam"), cut)
            self.assert_error(result, "cut.bam", "after record")
            self.assert_no_result(self.path("out.bam"))

    def test_output_name_as_long_as_can_be(self):
        """Temporary names are longer than the output's."""
        for n in (220, 232, 251):
            for budget in (None, SPILL_BUDGET):
                with self.subTest(n=n, budget=budget):
                    out = self.path("n" * n + ".bam")
                    self.sort_ok("-o", out, self.source, budget=budget)
                    self.assertEqual(len(bamfile.split(bamfile.read(out).records)), 40000)
                    os.unlink(out)
