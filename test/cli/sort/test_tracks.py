"""--bedgraph and --bigwig: the depth of the output is what bedtools genomecov and samtools view say,
in all formats, with all options."""

import os
import random
import shutil
import struct
import subprocess
import unittest

import bamfile
import bigwig_layout
from checkpoints import KilledTest
from harness import (MIB, CliTest, bytes_of, needs_pysam, own_memory_only, reference_ok,
                     text_of)

try:
    import pyBigWig
except ImportError:
    pyBigWig = None

SPILLING = 100_000
needs_bedtools = unittest.skipUnless(shutil.which("bedtools"), "bedtools is not installed")
needs_pybigwig = unittest.skipUnless(pyBigWig, "pyBigWig is not installed")


def random_sam(seed, n_records, n_refs=3, longest=3000):
    """Random records with gaps and introns; none begins with a gap, where bedtools counts a base
    that is not there."""
    rng = random.Random(seed)
    refs = [(f"c{i * 7919 % n_refs}", rng.randint(1, longest)) for i in range(n_refs)]
    lines = ["@HD\tVN:1.6"] + [f"@SQ\tSN:{name}\tLN:{n}" for name, n in refs]
    for i in range(n_records):
        name, n = rng.choice(refs[:n_refs * 2 // 3 or 1])
        cigar = "".join(f"{rng.randint(1, 30)}{op}" for op in rng.choice((
            "M", "M", "SM", "MDM", "MNM", "MIM", "=XM", "MNMNMS", "MDNM", "MPMD", "HMN")))
        if rng.random() < 0.1:
            cigar = f"{rng.randint(1, 9)}M{rng.randint(1, longest)}N{rng.randint(1, 9)}M"
        flag = rng.choice((0, 16, 99, 147, 83, 163, 1024, 256, 2064, 512, 4, 1 | 64, 1 | 128 | 16))
        lines.append(f"q{i}\t{flag}\t{name}\t{rng.randint(1, n)}\t{rng.choice((0, 9, 60))}\t{cigar}"
                     "\t*\t0\t0\t*\t*")
    return "\n".join(lines) + "\n"


def runs_of(text):
    return [(name, int(begin), int(end), float(value)) for name, begin, end, value in
            (line.split("\t") for line in text.splitlines())]


def bedtools(bam, *options):
    return subprocess.run(["bedtools", "genomecov", "-bg", "-ibam", bam, *options], check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True).stdout


class TracksTest(CliTest):
    def setUp(self):
        super().setUp()
        self.out = self.path("out.bam")

    def bedgraph(self, source, options="", *args, **how):
        """The text that a sort writes."""
        self.sort_ok("--no-PG", "--bedgraph", f"{options} {self.path('bg')}".strip(), *args, "-o",
                     self.out, source, **how)
        text = text_of(self.path("bg"))
        os.unlink(self.path("bg"))
        return text

    def bigwig(self, source, options="", *args, **how):
        self.sort_ok("--no-PG", "--bigwig", f"{options} {self.path('bw')}".strip(), *args, "-o",
                     self.out, source, **how)
        return bigwig_layout.read(self.path("bw"))

    def assert_near(self, got, want, tolerance):
        self.assertEqual([run[:3] for run in got], [run[:3] for run in want])
        for a, b in zip(got, want):
            for x, y in zip(a[3:], b[3:]):
                self.assertAlmostEqual(x, y, delta=tolerance * abs(y), msg=f"{a} {b}")

    def check_bigwig(self, got, want, tolerance=1e-6):
        """The runs, the sum of all, and each zoom level."""
        self.assert_near(got.runs, want, tolerance)
        total = [0, 0, 0]
        for _, begin, end, value in want:
            total = [total[0] + end - begin, total[1] + (end - begin) * value, max(total[2], value)]
        self.assertEqual(got.total[0], total[0])
        self.assertAlmostEqual(got.total[3], total[1], delta=tolerance * total[1])
        self.assertAlmostEqual(got.total[2], total[2], delta=tolerance * total[2])
        for window, found in got.zooms:
            wanted = bigwig_layout.summaries(want, window)
            order = {name: i for i, name in enumerate(dict.fromkeys(run[0] for run in want))}
            self.assert_near(found, sorted(wanted, key=lambda s: (order[s[0]], s[1])), 1e-5)


class Bedtools(TracksTest):
    @needs_bedtools
    @needs_pysam
    def test_depth_is_that_of_bedtools(self):
        for seed, options in enumerate(("", "-split", "-ignoreD", "-split -ignoreD", "-strand +",
                                        "-strand -", "-strand + -du", "-split -strand - -du")):
            sam = random_sam(seed, (1, 30, 3000)[seed % 3], (1, 3, 60)[seed // 3])
            for budget in (None, SPILLING):
                with self.subTest(options=options, budget=budget):
                    source = self.bam_of(sam)
                    got = self.bedgraph(source, options, "-@", "2", budget=budget)
                    want = bedtools(self.out, *options.split())
                    self.assertEqual(got, want)
                    self.check_bigwig(self.bigwig(source, options, budget=budget), runs_of(want))

    def test_least_value_is_that_of_the_greatest_depth_if_the_scale_is_negative(self):
        source = self.write("in.sam", "@SQ\tSN:c\tLN:400\n"
                            "a\t0\tc\t1\t9\t50M\t*\t0\t0\t*\t*\n"
                            "b\t0\tc\t21\t9\t50M\t*\t0\t0\t*\t*\n")
        got = self.bigwig(source, "--scale -2")
        self.assertEqual(got.total[:4], (70, -4, -2, -200))
        self.assertEqual([summary[4:6] for summary in got.zooms[0][1]], [(-4, -2)])

    @needs_bedtools
    @needs_pysam
    def test_filters_leave_records_out(self):
        source = self.bam_of(random_sam(31, 2000))
        for options, view in (("-F 1796", "-F 1796"), ("-i READ1,DUP", "--rf 1088"),
                              ("-Q 10", "-q 10"),
                              ("-F DUP -i 0x93 -Q 9", "-F 1024 --rf 0x93 -q 9")):
            with self.subTest(options=options):
                got = self.bedgraph(source, options)
                reference_ok("view", "-b", *view.split(), "-o", self.path("some.bam"), self.out)
                self.assertEqual(got, bedtools(self.path("some.bam")))
                self.assertTrue(got)

    @needs_bedtools
    @needs_pysam
    def test_scaled_depth_is_that_of_bedtools(self):
        source = self.bam_of(random_sam(32, 2000))
        got = self.bedgraph(source, "-scale 0.37 -split")
        self.assertEqual(got, bedtools(self.out, "-scale", "0.37", "-split"))

    @needs_bedtools
    @needs_pysam
    def test_other_formats_and_merge_have_the_same_depth(self):
        sam = random_sam(33, 2000)
        source = self.bam_of(sam)
        want = self.bedgraph(source)
        self.assertEqual(want, bedtools(self.out))
        again = self.path("again.bam")
        os.rename(self.out, again)
        self.assertEqual(self.bedgraph(again, "", "--merge"), want)
        self.assertEqual(self.bedgraph(source, "", "-O", "sam"), want)

    @needs_pybigwig
    @needs_bedtools
    @needs_pysam
    def test_pybigwig_reads_the_runs(self):
        source = self.bam_of(random_sam(34, 3000, 700))
        runs = runs_of(self.bedgraph(source))
        refs = self.bigwig(source).refs
        with pyBigWig.open(self.path("bw")) as file:
            self.assertEqual(file.chroms(), refs)
            self.assertEqual(file.header()["nBasesCovered"], sum(run[2] - run[1] for run in runs))
            for name in refs:
                self.assertEqual([(name, *run) for run in file.intervals(name) or ()],
                                 [run for run in runs if run[0] == name])


class Values(TracksTest):
    def test_bins_have_the_mean_depth(self):
        source = self.write("in.sam", random_sam(41, 3000, 5, 30000))
        depths, refs = {}, self.bigwig(source).refs
        for name, begin, end, depth in runs_of(self.bedgraph(source)):
            depths.setdefault(name, [0] * refs[name])[begin:end] = [depth] * (end - begin)
        for bases in (2, 50, 1000, 100000):
            want = []
            for name, values in depths.items():
                for begin in range(0, len(values), bases):
                    some = values[begin : begin + bases]
                    run = (name, begin, begin + len(some), sum(some) / len(some))
                    if want and want[-1][0] == name and want[-1][2:] == (begin, run[3]):
                        want[-1] = (name, want[-1][1], run[2], run[3])
                    elif run[3] > 0:
                        want.append(run)
            for budget in (None, SPILLING):
                with self.subTest(bases=bases, budget=budget):
                    got = runs_of(self.bedgraph(source, f"--bin {bases}", budget=budget))
                    self.assert_near(got, want, 6e-6)
                    got = self.bigwig(source, f"--bin {bases}", "-@", "3", budget=budget)
                    self.check_bigwig(got, want)

    def test_cpm_divides_by_all_counted_records(self):
        source = self.write("in.sam", random_sam(42, 3000))
        n = sum(not int(line.split("\t")[1]) & 0x404 for line in text_of(source).splitlines()
                if line[0] != "@")
        for options in ("-F DUP", "-F DUP -strand +"):
            want = [(*run[:3], run[3] * 1e6 / n) for run in runs_of(self.bedgraph(source, options))]
            for budget in (None, SPILLING):
                with self.subTest(options=options, budget=budget):
                    scaled = f"{options} --scale CPM"
                    got = runs_of(self.bedgraph(source, scaled, "-@", "2", budget=budget))
                    self.assert_near(got, want, 6e-6)
                    self.check_bigwig(self.bigwig(source, scaled, budget=budget), want)

    def test_duplicates_count_as_they_are_marked(self):
        line = "{}\t0\tc\t11\t60\t9M\t*\t0\t0\tACGTACGTA\tIIIIIIIII\n"
        source = self.write("in.sam", "@SQ\tSN:c\tLN:99\n" + line.format("a") + line.format("b"))
        for options, depth in (("", 2), ("-F 1024", 1)):
            got = self.bedgraph(source, options, "--fixmate", "--markdup")
            self.assertEqual(got, f"c\t10\t19\t{depth}\n")

    def test_large_depth_has_all_digits(self):
        rec = bamfile.record(flag=0, tid=0, pos=5, cigar="3M") * 1234567
        source = self.write("in.bam", bamfile.bam_file("", [("c", 9)], [rec]))
        self.assertEqual(self.bedgraph(source), "c\t5\t8\t1234567\n")
        self.assertEqual(self.bigwig(source).runs, [("c", 5, 8, 1234567)])

    def test_input_without_depth_gives_empty_tracks(self):
        for sam in ("@SQ\tSN:c\tLN:9\n", "@SQ\tSN:c\tLN:9\nq\t4\t*\t0\t0\t*\t*\t0\t0\t*\t*\n"):
            source = self.write("in.sam", sam)
            for options in ("", "--scale CPM --bin 5"):
                with self.subTest(sam=sam, options=options):
                    self.assertEqual(self.bedgraph(source, options), "")
                    got = self.bigwig(source, options)
                    self.assertEqual((got.runs, got.zooms, got.total[0]), ([], [], 0))

    def test_long_references_fit_in_bedgraph_only(self):
        n = 1 << 32
        line = f"q\t0\tc\t{n - 4}\t60\t3M\t*\t0\t0\t*\t*\n"
        source = self.write("in.sam", f"@SQ\tSN:c\tLN:{n}\n{line}")
        self.assertEqual(self.bedgraph(source, "", "-O", "sam"), f"c\t{n - 5}\t{n - 2}\t1\n")
        self.assert_error(self.rocksort("--bigwig", self.path("bw"), "-O", "sam", "-o", self.out,
                                        source), "'c' is longer than 4294967295", "--bedgraph")
        source = self.write("in.sam", f"@SQ\tSN:c\tLN:{n - 1}\n{line}")
        self.assertEqual(self.bigwig(source, "", "-O", "sam").runs, [("c", n - 5, n - 2, 1)])


class Files(TracksTest):
    def test_bedgraph_goes_to_standard_output(self):
        source = self.write("in.sam", "@SQ\tSN:c\tLN:9\nq\t0\tc\t3\t0\t2M\t*\t0\t0\t*\t*\n")
        result = self.sort_ok("--bedgraph", "-split -", "-o", self.out, source)
        self.assertEqual(result.out, b"c\t2\t4\t1\n")

    def test_wrong_options_are_refused_before_the_sort(self):
        source = self.write("in.sam", random_sam(51, 3))
        for kind, text, *words in (
                ("bigwig", "-strand x {}", "--strand takes + or -, not 'x'"),
                ("bedgraph", "-scale 0 {}", "--scale takes a number other than 0, or CPM"),
                ("bedgraph", "-scale 1x {}", "not '1x'"), ("bedgraph", "--bin 0 {}", "--bin takes"),
                ("bigwig", "-F 70000 {}", "-F takes flags"),
                ("bigwig", "-F 64,DUP {}", "-F takes flags"),
                ("bigwig", "-i QQ {}", "-i takes flags"),
                ("bigwig", "-bga {}", "--bigwig does not take -bga"),
                ("bedgraph", "-split more {}", "not 'more'"),
                ("bigwig", "-", "'standard output' must be a file on a disk")):
            with self.subTest(text=text):
                result = self.rocksort(f"--{kind}", text.format(self.path("track")), "-o", self.out,
                                       source)
                self.assert_error(result, *words)
                self.assertFalse(os.path.exists(self.out) or os.path.exists(self.path("track")))

    def test_full_disk_leaves_no_track(self):
        source = self.write("in.sam", random_sam(52, 3000))
        for kind in ("bedgraph", "bigwig"):
            for fault in ("write:1:ENOSPC", "pwrite:1:ENOSPC"):
                if kind == "bedgraph" and fault[0] == "p":
                    continue
                with self.subTest(kind=kind, fault=fault):
                    result = self.rocksort(f"--{kind}", self.path("track"), "-o", self.out, source,
                                           env=self.faulty(f"{fault}:track"))
                    self.assert_error(result, "track", "No space left")
                    self.assertFalse(os.path.exists(self.path("track")))

    @own_memory_only
    def test_400000_references_take_little_memory(self):
        refs = [(f"ref{i}", 1000) for i in range(400_000)]
        records = (bamfile.record(flag=0, tid=tid, pos=tid % 900, cigar="90M")
                   for tid in range(len(refs)))
        source = self.write("in.bam", bamfile.bam_file("", refs, [b"".join(records)]))
        args = ("-@", "2", "-m", "50M", "-l", "1", "-o", "/dev/null", source)
        without, _ = self.peak(*args)
        for options in ("--scale CPM --bin 7 -split", ""):
            peak, _ = self.peak("--bigwig", f"{options} {self.path('bw')}".strip(), *args)
            self.assertLess(peak, without + 40)
        self.assertEqual(len(bigwig_layout.read(self.path("bw")).runs), 400_000)


class Resumed(KilledTest):
    @needs_pysam
    def test_resumed_sort_writes_the_same_track(self):
        source = self.bam_of(random_sam(61, 20000, 4, 30000))
        out = self.path("out.bam")
        self.sort_ok("--no-PG", "--bedgraph", f"-split {self.path('bg')}", "-o", out, source,
                     budget=SPILLING)
        want = bytes_of(self.path("bg"))
        os.unlink(self.path("bg"))
        checkpoint = self.killed("link:4:kill:.sst", "--bedgraph", f"-split {self.path('bg')}",
                                 "-o", out, source, budget=SPILLING)
        self.assertFalse(os.path.exists(self.path("bg")))
        self.resume(checkpoint, budget=SPILLING)
        self.assertEqual(bytes_of(self.path("bg")), want)
