"""The command line: help, the classic syntax, and options that are refused."""

import os
import re

import bamfile
import generate
from harness import SAMTOOLS, SAMTOOLS_ROCKSORT, CliTest, own_lines

# --help must name COMMON_OPTIONS, and --help=all the RARE_OPTIONS as well.
COMMON_OPTIONS = ["-@", "-m", "-l", "-u", "-o", "-O", "-T", "-n", "-N", "-t", "--no-PG",
                  "--threads", "--max-memory", "--write-index", "--plan", "--resume",
                  "--help[=all]"]
RARE_OPTIONS = ["-s", "-k", "-f", "--verbosity", "--temp-codec", "--deflate", "--clean",
                "--report"]


class Help(CliTest):
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

    def test_usage_is_shown_on_a_terminal_without_arguments(self):
        for argv in ([SAMTOOLS, "rocksort"], [SAMTOOLS_ROCKSORT]):
            done = self.on_terminal(argv)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("Usage", done.stdout)
            self.assertIn("rocksort", done.stdout)
            self.assertEqual(done.stderr, "")

    def test_file_is_sorted_on_a_terminal(self):
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

    def test_standalone_program_sorts(self):
        source = self.write("in.sam", generate.odd(200))
        want = self.sort_bam("--no-PG", "-n", source)
        result = self.run_program([SAMTOOLS_ROCKSORT, "--no-PG", "-n", source])
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(bamfile.parse_file(result.out), want)
        result = self.run_program([SAMTOOLS_ROCKSORT, self.path("absent.bam")])
        self.assert_error(result, "absent.bam")


class Classic(CliTest):
    """The classic syntax, samtools rocksort - out: the output gets .bam (test_input_names.py)."""

    def test_prefix_with_an_extension_is_warned_of(self):
        source = self.write("in.sam", generate.odd(50))
        want = self.sort_bam("--no-PG", source)
        for name in ("x.bam", "x.sam", "x.cram", "x.sam.gz", ".x.bam"):
            result = self.sort_ok("--no-PG", source, name)
            self.assertEqual(bamfile.read(self.path(name + ".bam")), want)
            warnings = [line for line in result.err.splitlines() if ": warning:" in line]
            self.assertEqual(len(warnings), 1, result.err)
            self.assertRegex(warnings[0], rf"'{re.escape(name)}\.bam'.* -o ")
            self.assertIn(f"written to '{name}.bam'", result.err)
        os.mkdir(self.path("d"))
        for words in (["out"], ["x.bams"], ["-f", "x.bam"], ["."], [".bam"], ["d/.bam"]):
            result = self.rocksort("--no-PG", source, *words)
            self.assertNotIn("warning", result.err)


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
