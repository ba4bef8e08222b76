"""--stats: byte for byte what samtools stats 1.24 prints of the output, apart from two comment
lines. Random cases are those of `test/differential_counts.py`, with a fixed seed.
"""

import argparse
import pathlib
import random
import sys

from harness import ROOT, SAMTOOLS_ROCKSORT, CliTest, needs_pysam, reference, text_of

sys.path.insert(0, str(ROOT / "test"))

import differential_counts  # noqa: E402

SPILLING = 200_000


def report_lines(path):
    return [line for line in text_of(path, "latin-1").splitlines()
            if "This file was produced by" not in line and "The command line was" not in line]


@needs_pysam
class LikeSamtools(CliTest):
    def check(self, sam, *options, budget=None):
        """Sorts with --stats and compares its report with that of samtools."""
        out, got, want = self.path("out.bam"), self.path("got"), self.path("want")
        words = " ".join((*options, got))
        self.sort_ok("--stats=" + words, "-l", "1", "-@", "2", "-o", out,
                     self.write("in.sam", sam), budget=budget)
        self.assertTrue(reference("stats", *options, out, save_stdout=want))
        self.assertEqual(report_lines(got), report_lines(want))
        return report_lines(got)

    def test_reports_of_random_records_are_those_of_samtools(self):
        args = argparse.Namespace(program=str(SAMTOOLS_ROCKSORT), seed=31, kinds=["stats"])
        n_same = 0
        for number in range(30):
            folder = pathlib.Path(self.path(f"case-{number}"))
            folder.mkdir()
            what, text = differential_counts.try_case(args, number, folder)
            with self.subTest(number=number):
                self.assertIn(what, ("same", "not compared"), text)
            n_same += what == "same"
        self.assertGreater(n_same, 20)

    def test_depths_are_right_where_output_chunks_meet(self):
        """Piles, introns that reach into later chunks, and reads that make the ring grow."""
        rng = random.Random(5)
        lines = ["@SQ\tSN:a\tLN:90000\n@SQ\tSN:b\tLN:400\n@SQ\tSN:c\tLN:90000\n"]
        for i in range(6000):
            n = rng.choice((50, 50, 50, 299, 301, 500 + i // 4))
            cigar = rng.choice((f"{n}M", f"{n}M", f"20M{rng.randint(1, 4000)}N{n - 20}M"))
            ref = rng.choice("aaac")
            pos = rng.choice((1, 40000, rng.randint(1, 60000)))
            lines.append(f"q{i}\t0\t{ref}\t{pos}\t60\t{cigar}\t*\t0\t0\t{'ACGT' * 600}"[:-2400 + n]
                         + f"\t{'I' * n}\n")
        sam = "".join(lines)
        for budget in (None, SPILLING):
            report = self.check(sam, budget=budget)
        self.assertGreater(sum(line.startswith("COV") for line in report), 30)

    def test_a_count_at_the_end_of_the_ring_is_treated_as_in_samtools(self):
        """A read whose last base is at the last position of the ring, before a far read, and before
        another reference."""
        head = "@SQ\tSN:a\tLN:90000\n@SQ\tSN:b\tLN:90000\n@SQ\tSN:c\tLN:90000\n"
        seq = "ACGTACGTAC\tIIIIIIIIII\n"
        far = f"q1\t0\ta\t1000\t60\t5M1490N5M\t*\t0\t0\t{seq}q2\t0\ta\t9000\t60\t10M\t*\t0\t0\t{seq}"
        end = f"q3\t0\tb\t7\t60\t5M1490N5M\t*\t0\t0\t{seq}q4\t0\tc\t1\t60\t10M\t*\t0\t0\t{seq}"
        for sam in (head + far, head + end, head + far + end,
                    head + end.replace("q4\t0\tc\t1\t", "q4\t0\tc\t3000\t")):
            with self.subTest(sam=sam):
                self.check(sam)

    def test_mismatches_beyond_two_to_the_31_are_those_of_samtools(self):
        """The FASTA file has a hole where no record is."""
        n_bases, tail, fasta = (1 << 31) + 4000, b"ACGTTGCA" * 500, self.path("a.fa")
        with open(fasta, "wb") as file:
            file.write(b">a\n")
            file.seek(n_bases - len(tail), 1)
            file.write(tail + b"\n")
        self.write("a.fa.fai", f"a\t{n_bases}\t3\t{n_bases}\t{n_bases + 1}\n")
        sam = (f"@SQ\tSN:a\tLN:{n_bases}\n"
               f"q\t0\ta\t{n_bases - 3199}\t60\t8M\t*\t0\t0\tACGTTGCC\tIIIIIIII\n")
        out, got, want = self.path("out.sam"), self.path("got"), self.path("want")
        self.sort_ok(f"--stats=-r {fasta} {got}", "-o", out, self.write("in.sam", sam))
        self.assertTrue(reference("stats", "-r", fasta, out, save_stdout=want))
        report = report_lines(got)
        self.assertEqual(report, report_lines(want))
        self.assertTrue(any("1" in line.split("\t")[2:] for line in report
                            if line.startswith("MPC")))

    def test_long_deletions_take_no_memory(self):
        fasta = self.write("a.fa", ">a\nACGTACGTAC\n")
        deleted = "268435455D" * 20_000
        sam = self.write("in.sam", "@SQ\tSN:a\tLN:10\n"
                         f"q\t0\ta\t1\t60\t5M{deleted}5M\t*\t0\t0\tACGTTACGTA\t*\n")
        report = self.path("report")
        self.sort_ok(f"--stats=-r {fasta} {report}", "-o", self.path("out.bam"), sam)
        mismatches = [line.split("\t")[1:] for line in report_lines(report)
                      if line.startswith("MPC")]
        self.assertEqual([row[0] for row in mismatches if "1" in row[1:]], ["5"])

    def test_only_what_samtools_says_by_order_is_left_out_in_other_orders(self):
        records = differential_counts.Records(random.Random(9))
        source = self.write("in.sam", records.sam(400))
        for order in (["-n"], ["-N"], ["--shuffle=3"]):
            with self.subTest(order=order):
                self.sort_ok("--stats", self.path("got"), *order, "-o", self.path("out.bam"),
                             source, budget=SPILLING)
                self.assertTrue(reference("stats", self.path("out.bam"),
                                          save_stdout=self.path("want")))
                got = report_lines(self.path("got"))
                self.assertEqual(got, report_lines(self.path("want")))
                self.assertTrue("SN\tis sorted:\t0\t# not sorted by coordinate" in got)
                self.assertFalse([line for line in got if line.startswith("COV")])

    def test_format_of_the_output_does_not_matter(self):
        records = differential_counts.Records(random.Random(12))
        source = self.write("in.sam", records.sam(500))
        texts = []
        for out in ("out.bam", "out.sam", "out.sam.gz"):
            self.sort_ok("--stats", self.path("got"), "-o", self.path(out), source)
            texts.append(report_lines(self.path("got")))
        self.assertEqual(texts, [texts[0]] * 3)

    def test_duplicates_are_counted_as_they_are_marked(self):
        records = differential_counts.Records(random.Random(14))
        head = records.header()
        name, n = records.refs[0]
        pair = (f"p{{0}}\t99\t{name}\t50\t60\t20M\t=\t90\t60\t{'A' * 20}\t{'I' * 20}\n"
                f"p{{0}}\t147\t{name}\t90\t60\t20M\t=\t50\t-60\t{'C' * 20}\t{'I' * 20}\n")
        self.assertGreaterEqual(n, 200)
        source = self.write("in.sam", head + "".join(pair.format(i) for i in range(5)))
        self.sort_ok("--fixmate", "--markdup", "--stats", self.path("got"), "-o",
                     self.path("out.bam"), source)
        self.assertTrue(reference("stats", self.path("out.bam"), save_stdout=self.path("want")))
        got = report_lines(self.path("got"))
        self.assertEqual(got, report_lines(self.path("want")))
        self.assertTrue("SN\treads duplicated:\t8\t# PCR or optical duplicate bit set" in got)


class Options(CliTest):
    def setUp(self):
        super().setUp()
        self.source = self.write("in.sam", "@SQ\tSN:a\tLN:90\n@RG\tID:one\tSM:s\n"
                                 "r\t0\ta\t1\t9\t4M\t*\t0\t0\tACGT\tIIII\n")
        self.out = self.path("out.bam")

    def refused(self, request, *words, order=()):
        result = self.rocksort(f"--stats={request}", *order, "-o", self.out, self.source)
        self.assert_error(result, "--stats", *words)

    def test_options_that_are_not_offered_are_refused_by_name(self):
        for option in ("-X", "-S RG", "-P prefix", "--ref-stats", "-@ 2", "--reference x.fa"):
            with self.subTest(option=option):
                self.refused(f"{option} {self.path('x')}", option.split()[0])

    def test_wrong_values_are_refused(self):
        for option, value in (("-c", "1,2"), ("-c", "5,1,1"), ("-c", "1,9,0"), ("-f", "NOFLAG"),
                              ("-F", "x"), ("-f", "2x"), ("-l", "-3"), ("-m", "1.5"),
                              ("-q", "a"), ("-i", "-1"), ("--GC-depth", "0")):
            with self.subTest(option=option, value=value):
                self.refused(f"{option} {value} {self.path('x')}", option, f"'{value}'")
        self.refused(f"-g 3 {self.path('x')}", "-g needs the targets of -t")
        self.refused(f"-I nobody {self.path('x')}", "no read group or sample 'nobody'")

    def test_files_that_cannot_be_read_are_named_before_the_sort(self):
        self.refused(f"-t {self.path('absent')} {self.path('x')}", self.path("absent"))
        targets = self.write("targets", "a\t5\n")
        self.refused(f"-t {targets} {self.path('x')}", targets, "line 1")
        self.write("targets", "b\t5\t9\n")
        self.refused(f"-t {targets} {self.path('x')}", targets, "no targets")
        fasta = self.write("ref.fa", ">b\nACGT\n")
        self.refused(f"-r {fasta} {self.path('x')}", fasta, "lacks the reference 'a'")

    def test_options_that_need_coordinate_order_are_refused_in_others(self):
        fasta = self.write("ref.fa", ">a\nACGT\n")
        targets = self.write("targets", "a\t5\t9\n")
        for option in ("-p", f"-t {targets}", f"-r {fasta}"):
            with self.subTest(option=option):
                self.refused(f"{option} {self.path('x')}", option.split()[0], "coordinate order",
                             order=["-n"])

    def test_the_report_is_known_as_one_of_samtools_stats(self):
        report = self.path("report")
        self.sort_ok(f"--stats=-x {report}", "-o", self.out, self.source)
        lines = text_of(report, "latin-1").splitlines()
        self.assertRegex(lines[0], "^# This file was produced by samtools stats .* and can be "
                         "plotted using plot-bamstats$")
        self.assertRegex(lines[2], "^# The command line was:  .*rocksort")
