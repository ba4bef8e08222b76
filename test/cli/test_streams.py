"""Standard streams that are closed when the program starts: no file may get the number 0, 1 or
2."""

import os

import bamfile
import generate
from harness import SAMTOOLS, SPILL_BUDGET, CliTest, bytes_of


class Closed(CliTest):
    """Runs with closed standard streams. Files that the program opened once got their numbers."""

    def with_closed(self, streams, *args, budget=SPILL_BUDGET):
        shell = " ".join({0: "<&-", 1: ">&-", 2: "2>&-"}[number] for number in streams)
        return self.run_program(["sh", "-c", f'exec "$0" "$@" {shell}', SAMTOOLS, "rocksort",
                                 *args], budget=budget)

    def test_closed_standard_output_is_an_error(self):
        """A closed standard output is an error. The output once went into a temporary file, with
        exit status 0."""
        source = self.bam_of(generate.odd(9000, seed=81))
        before = bytes_of(source)
        for streams in ((1,), (0, 1), (1, 2), (0, 1, 2)):
            for args in (("--no-resume",), ("--no-resume", "-o", "/dev/stdout"),
                         ("--checksum-only",)):
                with self.subTest(streams=streams, args=args):
                    result = self.with_closed(streams, *args, source)
                    self.assertEqual(result.status, 1, result.err)
                    if 2 not in streams:
                        self.assert_one_message(result)
                    self.assertEqual(os.listdir(self.scratch), [])
        self.assertTrue(bytes_of(source) == before)

    def test_no_other_file_is_read_for_a_closed_standard_input(self):
        for streams in ((0,), (0, 1), (0, 1, 2)):
            with self.subTest(streams=streams):
                out = self.path("out.bam")
                self.assertEqual(self.with_closed(streams, "-o", out).status, 1)
                self.assertFalse(os.path.exists(out))

    def test_output_is_right_with_standard_error_closed(self):
        source = self.bam_of(generate.odd(9000, seed=81))
        want = self.sort_bam("--no-PG", source)
        for streams in ((0,), (1,), (2,), (0, 2), (1, 2), (0, 1), (0, 1, 2)):
            with self.subTest(streams=streams):
                out = self.path("out.bam")
                result = self.with_closed(streams, "--no-PG", "--verbosity", "9", "-o", out, source)
                self.assertEqual(result.status, 0, result.err)
                self.assert_same_bam(bamfile.read(out), want)
                os.unlink(out)
