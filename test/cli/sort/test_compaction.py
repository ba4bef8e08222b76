"""Compaction of runs: -s SIZE, auto and off, and the limit of open files.

Compaction never changes the output. The tests measure how much is rewritten and how many files the
final scan reads, with reads of bench/simulate-reads and a budget that makes a hundred runs.
"""

import gzip
import hashlib
import math
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import bamfile
import generate
from harness import (ALLOWANCE_MIB, MIB, RUN_LIMIT_S, SAMTOOLS, SIMULATE, SPILL_BUDGET, CliTest,
                     needs_pysam, needs_reads, own_memory_only, reference_sort, sanitized)

# About 69 MB uncompressed, in runs of 0.5 MB with this budget.
N_READS, INPUT_SIZE, BUDGET = "200K", "69M", 6_000_000
# Two threads, and one codec for all runs, so that they have about the same size.
USUAL = ["--no-PG", "-@", "2", "-l", "0", "--temp-codec", "lz4", "--verbosity", "4"]
LINE = re.compile(r"(\d+) runs on disk, ([\d.]+) MB temporary, ([\d.]+) MB compacted")


class Report:
    """The figures of the closing line and the details of --verbosity 4."""

    def __init__(self, err):
        self.n_runs, self.temporary, self.compacted = (float(x) for x in LINE.search(err).groups())
        found = re.search(r"compaction (on|off), because (.*)", err)
        self.state, self.reason = found.groups() if found else (None, None)
        found = re.search(r"the merge read (\d+) files", err)
        self.n_files = int(found.group(1)) if found else 0
        self.peak_bytes = float(re.search(r"([\d.]+) MiB peak", err).group(1)) * MIB

    def amplification(self):
        """All temporary bytes written, divided by the bytes of the runs."""
        return (self.temporary + self.compacted) / self.temporary


def digest(path):
    """A hash of the uncompressed content of the BAM, which does not depend on its blocks."""
    with gzip.open(path) as file:
        return hashlib.file_digest(file, "sha1").hexdigest()


class Orders(CliTest):
    """Small inputs that spill many runs: the output is the same as without compaction."""

    ORDERS = (([], "4M"), (["-n"], "40K"), (["-t", "NM"], "4M"), (["-M"], "4M"),
              (["--shuffle=7"], "40K"))

    def test_every_order_is_kept(self):
        odd = self.write("odd.sam", generate.odd(22000, seed=61))
        ties = self.write("ties.sam", generate.ties(25000))
        for source, order, size in (*((odd, *one) for one in self.ORDERS), (ties, [], "2M")):
            want = self.sort_bam("--no-PG", "-s", "off", *order, source)
            with self.subTest(order=order, size=size):
                result = self.sort_ok("--no-PG", "-@", "2", "-s", size, "--verbosity", "4",
                                      *order, source, budget=SPILL_BUDGET)
                self.assert_same_bam(bamfile.parse_file(result.out), want)
                self.assertGreater(Report(result.err).compacted, 0, result.err)

    @needs_pysam
    def test_compacted_sort_is_that_of_samtools(self):
        source = self.bam_of(generate.odd(15000, seed=62))
        for order in ([], ["-n"], ["-N"]):
            want = reference_sort(source, self.path("want.bam"), *order)
            got = self.sort_bam("--no-PG", "-s", "4M", *order, source, budget=SPILL_BUDGET)
            self.assert_same_bam(got, want, order)

    def test_last_size_counts(self):
        source = self.write("in.sam", generate.odd(12000, seed=63))
        result = self.sort_ok("-s", "3M", "-s", "off", "--verbosity", "4", source,
                              budget=SPILL_BUDGET)
        self.assertEqual(Report(result.err).state, "off")
        self.assertIn("because -s off", result.err)


@needs_reads
class ManyRuns(CliTest):
    """Sorts with a hundred runs and more."""

    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.mkdtemp(prefix="rocksort-cli-runs-")
        cls.addClassCleanup(shutil.rmtree, cls.place, ignore_errors=True)
        cls.source = os.path.join(cls.place, "in.bam")
        subprocess.run([SIMULATE, "-n", N_READS, "-O", "bam", "-l", "1", "-o", cls.source],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       timeout=RUN_LIMIT_S)
        cls.want = None

    def sort(self, *args, **how):
        """Sorts the reads and compares the output with that of a sort in memory; returns the
        Report."""
        return self.check([SAMTOOLS, "rocksort", *USUAL, *args], args, **how)

    def limited(self, limit, *args, **how):
        """The same under `ulimit -LIMIT`."""
        return self.check(["/bin/sh", "-c", f'ulimit -{limit} || exit 9; exec "$0" "$@"', SAMTOOLS,
                           "rocksort", *USUAL, *args], (limit, args), **how)

    def check(self, command, what, budget=BUDGET, clean=True, **how):
        """Runs the command, which must give the right result; returns its Report."""
        out = self.path("out.bam")
        if ManyRuns.want is None:
            self.sort_ok(*USUAL, "-s", "off", "-o", out, self.source)
            ManyRuns.want = digest(out)
        result = self.run_program([*command, "-o", out, self.source], budget=budget, **how)
        self.assertEqual(result.status, 0, f"{what}: {result.err}")
        self.assertEqual(digest(out), ManyRuns.want, what)
        if clean:
            self.assertEqual(os.listdir(self.scratch), [])
        return Report(result.err)

    def test_with_a_size_each_byte_is_rewritten_about_once(self):
        report = self.sort("-s", INPUT_SIZE)
        k = math.floor(math.sqrt(report.n_runs)) + 1
        self.assertGreater(report.n_runs, 80)
        self.assertEqual((report.state, report.reason), ("on", "-s was given"))
        self.assertGreater(report.amplification(), 1.3)
        self.assertLessEqual(report.amplification(), 2.2)
        self.assertLessEqual(report.n_files, 2.5 * k)

    def test_off_compacts_nothing(self):
        report = self.sort("-s", "off")
        self.assertEqual((report.state, report.reason), ("off", "-s off"))
        self.assertEqual(report.compacted, 0)
        self.assert_not_compacted(report)

    def assert_not_compacted(self, report):
        # Where seeks are not slow two threads write each run as two files (ROCKSORT_TEST_FILE).
        self.assertIn(report.n_files, (report.n_runs, 2 * report.n_runs))

    @unittest.skipUnless(os.path.isdir("/dev/shm"), "no directory in memory")
    def test_merge_reads_the_files_of_all_runs(self):
        """Where seeks take no time a run is as many files as two packs for each allow, up to four;
        with -s it is one."""
        with tempfile.TemporaryDirectory(prefix="rocksort-cli-", dir="/dev/shm") as place:
            for threads, n_files in (("1", 1), ("2", 2), ("4", 3), ("6", 4), ("12", 4)):
                with self.subTest(threads=threads):
                    report = self.sort("-s", "off", "-@", threads, "-T", place, budget=30 * MIB)
                    self.assertEqual(report.n_files, n_files * report.n_runs)
            report = self.sort("-s", "1G", "-@", "4", "-T", place, budget=30 * MIB)
            self.assertEqual(report.n_files, report.n_runs)
            self.assertEqual(os.listdir(place), [])

    def test_auto_compacts_only_where_seeks_are_slow(self):
        report = self.sort()
        if report.state == "off":
            self.assertEqual(report.reason, "it would take longer than the seeks that it saves")
            self.assertEqual(report.compacted, 0)
            self.assert_not_compacted(report)
        else:
            self.assertEqual(report.reason, "it takes less time than the seeks that it saves")

    def test_runs_are_compacted_in_each_directory(self):
        for name in "ab":
            os.mkdir(self.scratch / name)
        args = ["-T", self.scratch / "a", "-T", self.scratch / "b"]
        report = self.sort("-s", INPUT_SIZE, *args, clean=False)
        self.assertEqual(report.state, "on")
        self.assertLess(report.n_files, report.n_runs / 2)
        for name in "ab":
            self.assertEqual(os.listdir(self.scratch / name), [])

    def test_kept_runs_are_as_many_files_as_reported(self):
        report = self.sort("-k", "-s", INPUT_SIZE, "-T", self.scratch, clean=False)
        kept = [os.path.join(folder, name) for folder, _, names in os.walk(self.scratch)
                for name in names if name.endswith(".sst")]
        self.assertEqual(len(kept), report.n_files)
        shutil.rmtree(self.scratch)
        os.mkdir(self.scratch)

    def test_runs_are_compacted_if_they_are_more_than_open_files(self):
        for limit, args in (("n 64", []), ("n 100", ["-s", "off"]), ("n 128", ["-s", INPUT_SIZE])):
            with self.subTest(limit=limit, args=args):
                report = self.limited(limit, *args)
                self.assertEqual(report.state, "on")
                self.assertLess(report.n_files, int(limit[2:]))
                if INPUT_SIZE not in args:
                    self.assertEqual(report.reason, "of the limit of open files")

    def test_hundreds_of_runs_in_little_memory(self):
        report = self.limited("n 96", budget=16 * MIB, env={"ROCKSORT_TEST_SORT_BUFFER": "64K"})
        self.assertGreater(report.n_runs, 150)
        self.assertLess(report.n_files, 96)
        self.assertEqual(report.reason, "of the limit of open files")
        self.assertLessEqual(report.amplification(), 5)
        if not sanitized():
            self.assertLessEqual(report.peak_bytes, 16 * MIB + ALLOWANCE_MIB * MIB)

    def test_hundreds_of_runs_and_sixteen_files(self):
        """Of so few files hardly any are neighbours of one size: 860 runs were rewritten 79 times."""
        report = self.limited("n 64", budget=16 * MIB, env={"ROCKSORT_TEST_SORT_BUFFER": "32K"})
        self.assertGreater(report.n_runs, 300)
        self.assertLessEqual(report.amplification(), 11)

    def test_runs_are_longer_where_few_files_may_be_open(self):
        """A run is rewritten less often if there are fewer of them. It was 354 runs."""
        report = self.limited("n 64", budget=8 * MIB, env={"ROCKSORT_TEST_SORT_BUFFER": "64K"})
        self.assertEqual(report.reason, "of the limit of open files")
        self.assertLess(report.n_runs, 250)

    def test_runs_of_several_files_are_compacted(self):
        """As nobody knows how many runs a pipe will make, the first ones are several files. Later
        there are too many, and files of both kinds are compacted together."""
        out = self.path("out.bam")
        self.sort("-s", "off")          # which makes `want`
        script = ('ulimit -n 260 || exit 9; cat "$SOURCE" | '
                  'ROCKSORT_TEST_SORT_BUFFER=64K ROCKSORT_TEST_FILE=16K "$0" "$@"')
        result = self.run_program(["/bin/sh", "-c", script, SAMTOOLS, "rocksort", *USUAL, "-@", "4",
                                   "-o", out, "-"], budget=16 * MIB, env={"SOURCE": self.source})
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(digest(out), ManyRuns.want)
        report = Report(result.err)
        self.assertEqual(report.reason, "of the limit of open files")
        self.assertGreater(report.n_runs, 150)
        self.assertLess(report.n_files, 260)

    def test_soft_limit_is_raised(self):
        report = self.limited("Sn 64", "-s", "off")
        self.assertEqual(report.state, "off")
        self.assertGreater(report.n_files, 64)

    @own_memory_only
    def test_compaction_respects_the_memory_limit(self):
        for args, budget in ((["-s", "10M"], 2_000_000), (["-s", INPUT_SIZE], 8 * MIB)):
            report = self.sort(*args, budget=budget)
            self.assertGreater(report.compacted, 0, (args, budget))
            self.assertLessEqual(report.peak_bytes, budget + ALLOWANCE_MIB * MIB, (args, budget))
