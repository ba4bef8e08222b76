"""The command line: help, the classic syntax, and options that are refused."""

import os
import pty
import re
import subprocess

import bamfile
import generate
from harness import (SAMTOOLS, SAMTOOLS_ROCKSORT, SLOW, SPILL_BUDGET, CliTest, environment,
                     own_lines)

# --help must name COMMON_OPTIONS, and --help=all the RARE_OPTIONS as well.
COMMON_OPTIONS = ["-@", "-m", "-l", "-u", "-o", "-O", "-T", "-n", "-N", "-t", "--no-PG",
                  "--threads", "--max-memory", "--write-index", "--plan", "--resume",
                  "--help[=all]"]
RARE_OPTIONS = ["-s", "-k", "-f", "--verbosity", "--temp-codec", "--deflate", "--clean",
                "--stats"]


class Help(CliTest):
    def on_terminal(self, argv, stream="stdin"):
        """Runs argv with a terminal as standard input, or as standard output, and pipes for the
        rest."""
        try:
            leader, follower = pty.openpty()
        except OSError as error:
            self.skipTest(f"no terminal can be made here: {error}")
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, stream: follower}
        try:
            return subprocess.run(argv, **pipes, stderr=subprocess.PIPE, cwd=self.work,
                                  env=environment(self.scratch), timeout=20 * SLOW, text=True,
                                  check=False)
        finally:
            os.close(leader)
            os.close(follower)

    def test_bam_is_not_written_to_a_terminal(self):
        source = self.write("in.sam", generate.odd(20))
        for words, name in (([], "BAM"), (["-u"], "BAM"), (["-O", "cram,no_ref=1"], "CRAM"),
                            (["-O", "sam.gz"], "compressed SAM"), (["-O", "bam", "-o", "-"], "BAM"),
                            (["-o", "/dev/stdout"], "BAM")):
            done = self.on_terminal([SAMTOOLS, "rocksort", *words, source], "stdout")
            with self.subTest(words=words):
                self.assertEqual(done.returncode, 1)
                lines = own_lines(done.stderr)
                self.assertEqual(len(lines), 1, done.stderr)
                self.assertRegex(lines[0], rf": {name} .*terminal.*-o FILE.*-O sam")
        for words in (["-O", "sam"], ["-o", self.path("out.bam")], ["--plan"], ["--checksum-only"],
                      ["--verify"], ["--help"]):
            done = self.on_terminal([SAMTOOLS, "rocksort", *words, source], "stdout")
            with self.subTest(words=words):
                self.assertNotIn("terminal:", done.stderr)

    def test_no_arguments_on_a_terminal(self):
        for argv in ([SAMTOOLS, "rocksort"], [SAMTOOLS_ROCKSORT]):
            done = self.on_terminal(argv)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("Usage", done.stdout)
            self.assertIn("rocksort", done.stdout)
            self.assertEqual(done.stderr, "")

    def test_file_on_a_terminal(self):
        source = self.write("in.sam", generate.odd(20))
        done = self.on_terminal([SAMTOOLS, "rocksort", "-O", "sam", source])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("@HD\t", done.stdout)

    def test_help_names_common_options(self):
        for argv in ([SAMTOOLS, "rocksort", "--help"], [SAMTOOLS_ROCKSORT, "--help"],
                     [SAMTOOLS, "help", "rocksort"]):
            result = self.run_program(argv)
            self.assertEqual(result.status, 0, result.err)
            self.assertEqual(result.err, "")
            text = result.out.decode()
            self.assertIn("Usage", text)
            for option in COMMON_OPTIONS:
                self.assertRegex(text, re.escape(option) + r"(?![\w])", option)

    def test_help_fits_two_screens(self):
        """Of 24 lines each; --help=all has every line of it."""
        short = self.run_program([SAMTOOLS_ROCKSORT, "--help"]).out.decode().splitlines()
        whole = self.run_program([SAMTOOLS_ROCKSORT, "--help=all"]).out.decode()
        again = self.run_program([SAMTOOLS_ROCKSORT, "-h"]).out.decode().splitlines()
        self.assertEqual(again, short)
        self.assertLessEqual(len(short), 48)
        self.assertLessEqual(max(map(len, whole.splitlines())), 100)
        self.assertEqual([line for line in whole.splitlines() if line in short], short)
        for option in COMMON_OPTIONS + RARE_OPTIONS:
            self.assertRegex(whole, re.escape(option) + r"(?![\w])", option)
        for codec in ("none", "snappy", "lz4", "zstd"):
            self.assertIn(codec, whole)
        self.assert_error(self.rocksort("--help=some"), "--help", "all", "some")

    def test_standalone_program(self):
        source = self.write("in.sam", generate.odd(2000))
        want = self.sort_bam("--no-PG", "-n", source)
        result = self.run_program([SAMTOOLS_ROCKSORT, "--no-PG", "-n", source])
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(bamfile.parse_file(result.out), want)
        result = self.run_program([SAMTOOLS_ROCKSORT, self.path("absent.bam")])
        self.assert_error(result, "absent.bam")


class Classic(CliTest):
    """The classic syntax: samtools rocksort -@ 8 -m 640M -s 512G - out"""

    def setUp(self):
        super().setUp()
        self.sam = generate.odd(6000).encode()
        self.want = self.sort_bam("--no-PG", stdin=self.sam)

    def files(self):
        return sorted(os.listdir(self.work))

    def test_prefix_names_the_output(self):
        for budget in (None, SPILL_BUDGET):
            result = self.sort_ok("--no-PG", "-@", "2", "-m", "2M", "-s", "1G", "-", "out",
                                  stdin=self.sam, budget=budget)
            self.assertEqual(result.out, b"")
            self.assertEqual(self.files(), ["out.bam"])
            self.assertEqual(bamfile.read(self.path("out.bam")), self.want)

    def test_prefix_with_dots_and_directories(self):
        os.mkdir(self.work / "d")
        source = self.write("in.sam", self.sam)
        self.sort_ok("--no-PG", source, "d/out.sorted")
        self.assertEqual(bamfile.read(self.path("d/out.sorted.bam")), self.want)
        self.sort_ok("--no-PG", source, self.path("x.bam"))
        self.assertEqual(bamfile.read(self.path("x.bam.bam")), self.want)

    def test_prefix_with_an_extension_is_warned_of(self):
        source = self.write("in.sam", self.sam)
        for name in ("x.bam", "x.sam", "x.cram", "x.sam.gz", ".x.bam"):
            result = self.sort_ok("--no-PG", source, name)
            self.assertEqual(bamfile.read(self.path(name + ".bam")), self.want)
            warnings = [line for line in result.err.splitlines() if ": warning:" in line]
            self.assertEqual(len(warnings), 1, result.err)
            self.assertRegex(warnings[0], rf"'{re.escape(name)}\.bam'.* -o ")
            self.assertIn(f"written to '{name}.bam'", result.err)
        os.mkdir(self.path("d"))
        for words in (["out"], ["x.bams"], ["-f", "x.bam"], ["."], [".bam"], ["d/.bam"]):
            result = self.rocksort("--no-PG", source, *words)
            self.assertNotIn("warning", result.err)

    def test_whole_name(self):
        self.sort_ok("--no-PG", "-f", "-", "out.name", stdin=self.sam)
        self.assertEqual(self.files(), ["out.name"])
        self.assertEqual(bamfile.read(self.path("out.name")), self.want)

    def test_options_after_names(self):
        self.sort_ok("-", "out", "--no-PG", "-@", "2", stdin=self.sam)
        self.assertEqual(bamfile.read(self.path("out.bam")), self.want)

    def test_one_name_goes_to_standard_output(self):
        source = self.write("in.sam", self.sam)
        self.assertEqual(self.sort_bam("--no-PG", source), self.want)
        self.assertEqual(self.files(), ["in.sam"])

    def test_by_name(self):
        source = self.write("in.sam", self.sam)
        self.sort_ok("--no-PG", "-n", source, "byname")
        want = self.sort_bam("--no-PG", "-n", source)
        self.assertEqual(bamfile.read(self.path("byname.bam")), want)

    def test_existing_output_is_overwritten(self):
        self.write("out.bam", b"x" * 1000000)
        self.sort_ok("--no-PG", "-", "out", stdin=self.sam)
        self.assertEqual(bamfile.read(self.path("out.bam")), self.want)


class Values(CliTest):
    """Values that are taken; test_messages.py has those that are refused."""

    def test_sizes_as_people_write_them(self):
        source = self.write("in.sam", generate.odd(20))
        for words in (["-m", "768MB"], ["-m", "1.5M"], ["--max-memory", "0.25GiB"],
                      ["-s", "1.5gb"], ["-m", "2mib"]):
            self.sort_ok(*words, "-o", self.path("out.bam"), source)

    def test_name_of_another_format_is_refused(self):
        source = self.write("in.sam", generate.odd(20))
        for name, format_name in (("x.fastq.gz", "FASTQ"), ("x.fq", "FASTQ"), ("x.fa", "FASTA"),
                                  ("x.vcf.gz", "VCF"), ("x.bed", "BED"), ("x.bam.bai", "index"),
                                  ("x.sam.bz2", "SAM")):
            result = self.rocksort("-o", self.path(name), source)
            with self.subTest(name=name):
                self.assert_error(result, f"{name}'", format_name, ".bam")
                self.assertFalse(os.path.exists(self.path(name)))
        self.assert_error(self.rocksort("-o", self.path("x.fq.gz"), source), "'samtools fastq'")
        self.assert_error(self.rocksort("-f", source, "x.vcf"), "'x.vcf'", "-O")
        for words in (["-O", "bam", "-o", "x.fastq"], ["-o", "x.txt.gz"], ["-o", "x.sorted"],
                      ["-o", "fastq"]):
            self.sort_ok("--no-PG", *words, source)
            self.assertTrue(bamfile.looks_complete(self.path(words[-1])))
