"""SAMTOOLS_SORT=rocksort: our program runs in place of `samtools sort`."""

import os
import pathlib
import pty
import subprocess

import bamfile
import generate
from harness import (SAMTOOLS, SAMTOOLS_ROCKSORT, SLOW, CliTest, environment, pg_lines, sam_split)


class AsSamtoolsSort(CliTest):
    """Runs SAMTOOLS_SORT=rocksort samtools sort."""

    FAKE = "#!/bin/sh\necho \"fake $*\"\nexit 37\n"

    def setUp(self):
        super().setUp()
        self.source = self.write("in.sam", generate.pairs(200))
        folder = self.work / "bin"
        folder.mkdir()
        (folder / "samtools").write_text(self.FAKE)
        (folder / "samtools").chmod(0o755)

    def samtools(self, *args, sort="rocksort", program=SAMTOOLS, **how):
        """Runs the front end, with or without SAMTOOLS_SORT; the upstream is a fake."""
        env = environment(self.scratch, extra={"PATH": str(self.work / "bin")})
        env.pop("SAMTOOLS_SORT", None)
        if sort is not None:
            env["SAMTOOLS_SORT"] = sort
        before = self.directories()
        result = self.run_program([program, *args], env_only=env, **how)
        self.assert_clean(before, result)
        return result

    def files(self):
        """The files in work."""
        return sorted(set(os.listdir(self.work)) - {"bin"})

    def test_sorts_as_rocksort(self):
        for options in ([], ["-n"], ["-N"], ["-t", "XS"], ["-n", "-t", "XI"], ["-M", "-K10"],
                        ["--template-coordinate"], ["-@", "2", "-m", "3M", "-l", "1"],
                        ["-O", "sam"], ["--threads=2", "--output-fmt=bam,level=0"]):
            with self.subTest(options=options):
                want = self.sort_ok("--no-PG", *options, self.source).out
                result = self.samtools("sort", "--no-PG", *options, self.source)
                self.assertEqual(result.status, 0, result.err)
                self.assertEqual(result.out, want)
                out = self.path("out")
                form = [] if "-O" in options else ["-O", "bam"]
                result = self.samtools("sort", "--no-PG", *options, *form, "-o", out, self.source)
                self.assertEqual(result.out, b"")
                if "--output-fmt=bam,level=0" not in options:
                    self.assertEqual(pathlib.Path(out).read_bytes(), want)

    def test_standard_input(self):
        data = pathlib.Path(self.source).read_bytes()
        want = self.sort_ok("--no-PG", self.source).out
        for args in ([], ["-"], ["-o", "-"], ["-", "-o", "-"]):
            result = self.samtools("sort", "--no-PG", *args, stdin=data)
            self.assertEqual(result.out, want, args)

    def test_command_line_in_the_header(self):
        result = self.samtools("sort", "-n", "-O", "sam", "in.sam")
        text = sam_split(result.out.decode())[0]
        self.assertEqual([line["CL"] for line in pg_lines(text)],
                         ["samtools sort -n -O sam in.sam"])
        self.assertEqual(pg_lines(text)[0]["PN"], "samtools-rocksort")

    def test_two_names_without_output_are_refused(self):
        self.write("other.sam", generate.pairs(10))
        for args in (["in.sam", "out"], ["in.sam", "other.sam"], ["in.sam", "out.bam"],
                     ["-n", "in.sam", "out"], ["-f", "in.sam", "out"], ["-", "out"],
                     ["in.sam", "in.sam", "in.sam"], ["in.sam", "-"]):
            with self.subTest(args=args):
                result = self.samtools("sort", *args, stdin=generate.pairs(5).encode())
                self.assert_error(result, "-o")
                self.assertEqual(result.out, b"")
                self.assertEqual(self.files(), ["in.sam", "other.sam"])

    def test_several_files_with_a_name(self):
        self.write("other.sam", generate.pairs(10, seed=2))
        result = self.samtools("sort", "--no-PG", "-o", "out.bam", "in.sam", "other.sam")
        self.assertEqual(result.status, 0, result.err)
        want = self.sort_bam("--no-PG", "-o", "-", "in.sam", "other.sam")
        self.assertEqual(bamfile.read(self.path("out.bam")), want)

    def test_usage_is_that_of_samtools_sort(self):
        for args in (["--help"], ["-h"]):
            result = self.samtools("sort", *args)
            self.assertEqual(result.status, 0, result.err)
            self.assertIn("Usage: samtools sort", result.out.decode())
            self.assertNotIn("prefix", result.out.decode().split("Order:", maxsplit=1)[0])

    def test_whole_name_is_an_option_of_the_classic_syntax_only(self):
        result = self.samtools("sort", "-f", self.write("one.sam", "@SQ\tSN:c\tLN:9\n"))
        self.assertEqual((result.status, result.out), (1, b""))
        self.assertIn("-f", result.err)

    def test_usage_has_no_options_of_the_classic_form(self):
        text = self.samtools("sort", "--help").out.decode()
        self.assertNotRegex(text, r"(?m)^ +-f\b")

    def test_no_arguments_on_a_terminal(self):
        try:
            leader, follower = pty.openpty()
        except OSError as error:
            self.skipTest(f"no terminal can be made here: {error}")
        try:
            done = subprocess.run([SAMTOOLS, "sort"], stdin=follower, capture_output=True,
                                  env=environment(self.scratch, extra={"SAMTOOLS_SORT": "rocksort",
                                                                       "PATH": "/nowhere"}),
                                  timeout=20 * SLOW, check=False)
        finally:
            os.close(leader)
            os.close(follower)
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"Usage: samtools sort", done.stdout)

    def test_unknown_option(self):
        for option in ("--nonsense", "-Q", "-Z"):
            result = self.samtools("sort", option, self.source)
            self.assertEqual(result.status, 1)
            self.assertEqual(result.out, b"")
            self.assertIn("Usage: samtools sort", result.err)
            self.assertIn(option.lstrip("-"), result.err.split("Usage")[0])

    def test_errors_leave_no_file(self):
        result = self.samtools("sort", "-o", "out.bam", "absent.bam")
        self.assert_error(result, "absent.bam")
        result = self.samtools("sort", "-o", "out.bam", "-t", "R", "in.sam")
        self.assert_error(result, "-t")
        result = self.samtools("sort", "-o", "out.bam", stdin=b"")
        self.assert_error(result, "failed to read header")
        self.assertEqual(self.files(), ["in.sam"])

    def test_no_upstream_is_needed(self):
        os.unlink(self.work / "bin" / "samtools")
        result = self.samtools("sort", "--no-PG", self.source)
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(result.out, self.sort_ok("--no-PG", self.source).out)

    def test_other_values_hand_over(self):
        for value in (None, "", "samtools", "ROCKSORT", "rocksort ", "rocksort2", "1", "upstream"):
            with self.subTest(value=value):
                result = self.samtools("sort", "-n", self.source, sort=value)
                self.assertEqual(result.out.decode(), f"fake sort -n {self.source}\n")
                self.assertEqual(result.status, 37)

    def test_other_commands_hand_over(self):
        for args in (["view", "sort"], ["sorted"], ["Sort"], ["merge", "-n", "x"], ["help", "sort"],
                     ["collate", "-o", "x", "y"]):
            with self.subTest(args=args):
                result = self.samtools(*args)
                self.assertEqual(result.out.decode(), "fake " + " ".join(args) + "\n")
                self.assertEqual(result.status, 37)

    def test_rocksort_keeps_its_own_syntax(self):
        for program, words in ((SAMTOOLS, ["rocksort"]), (SAMTOOLS_ROCKSORT, [])):
            result = self.samtools(*words, "--no-PG", "in.sam", "out", program=program)
            self.assertEqual(result.status, 0, result.err)
            self.assertEqual(self.files(), ["in.sam", "out.bam"])
            os.unlink(self.path("out.bam"))
