"""bench/one_pass.py: its table, programs that are not installed, wrong results, which it must find;
and bench/tile-reads.py, and the duplicates of bench/simulate-reads.

A fake sambamba calls the real rocksort, and may spoil what it makes.
"""

import os
import shutil
import subprocess
import sys
import unittest

import bamfile
from harness import ROOT, SAMTOOLS, SLOW, CliTest, environment

SIMULATE = ROOT / "bench" / "simulate-reads"
FAKE = """#!/bin/sh
case "$1" in
--version) echo "sambamba 9.8.7" ;;
sort) while [ $# -gt 1 ]; do [ "$1" = -o ] && out=$2; shift; done; cp "$1" "$out" ;;
markdup) while [ $# -gt 2 ]; do shift; done; {samtools} rocksort {options} -o "$2" "$1" ;;
esac
"""


@unittest.skipUnless(os.access(SIMULATE, os.X_OK), "no simulate-reads")
class OnePass(CliTest):
    """Runs one_pass.py on a small input."""

    def setUp(self):
        super().setUp()
        self.bin = self.work / "bin"
        self.bin.mkdir()
        self.upstream = shutil.which("samtools")
        if not self.upstream:
            self.skipTest("no samtools to compare with")
        (self.bin / "samtools").symlink_to(self.upstream)
        self.input = self.path("in.bam")
        subprocess.run([SIMULATE, "-n", "20K", "-d", "20", "-o", self.input], check=True)

    def fake(self, options):
        path = self.bin / "sambamba"
        path.write_text(FAKE.format(samtools=SAMTOOLS, options=options))
        path.chmod(0o755)

    def bench(self, *options):
        env = environment(self.scratch, extra={"PATH": f"{self.bin}:/usr/bin:/bin"})
        return self.run_program(
            [sys.executable, ROOT / "bench" / "one_pass.py", "--input", self.input,
             "--cold-memory", "--repeats", "1", "--levels", "1", "--dir", self.scratch,
             "--rocksort", SAMTOOLS + " rocksort", *options], env_only=env, limit_s=120 * SLOW)

    def test_table(self):
        result = self.bench("--ways", "one-pass,sort,samtools")
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(os.listdir(self.scratch), [], "left behind")
        out = result.out.decode()
        rows = [line.split(" | ") for line in out.splitlines() if line.startswith("| `-l 1` | ")]
        # Three ways, and the targets against two of them.
        self.assertEqual(len(rows), 5, out)
        duplicates = {row[1]: int(row[-1].rstrip(" |")) for row in rows[:3]}
        found = duplicates.pop("rocksort alone (no mates, no duplicates)")
        self.assertEqual(found, 0)
        self.assertEqual(len(set(duplicates.values())), 1, duplicates)
        self.assertTrue(0.15 * 20000 < min(duplicates.values()) < 0.25 * 20000, duplicates)

    def test_wrong_number_of_duplicates(self):
        self.fake("")
        result = self.bench("--ways", "one-pass,sambamba")
        self.assertEqual(result.status, 1)
        self.assertRegex(result.err, r"sambamba marked 0 reads, one pass \d+")

    def test_right_fake(self):
        self.fake("--fixmate --markdup")
        result = self.bench("--ways", "one-pass,sambamba")
        self.assertEqual(result.status, 0, result.err)
        self.assertIn("sambamba 9.8.7", result.out.decode())

    def test_wrong_order(self):
        self.fake("-n --fixmate")
        result = self.bench("--ways", "one-pass,sambamba")
        self.assertEqual(result.status, 1)
        self.assertRegex(result.err, r"the result of sambamba is not sorted: record \d+ comes before")


class Tiles(CliTest):
    """tile-reads.py with a piece of a file."""

    def test_copies(self):
        refs = [("chr1", 1_000_000)]
        records = []
        for i in range(20):
            at = 500_000 + 100 * i
            records.append(bamfile.record(f"r{i}", flag=99, tid=0, pos=at, cigar="40M",
                                          seq="ACGT" * 10, mate=(0, at + 60, 100)))
            if i:  # r0 has lost its mate
                records.append(bamfile.record(f"r{i}", flag=147, tid=0, pos=at + 60, cigar="40M",
                                              seq="ACGT" * 10, mate=(0, at, -100)))
            records.append(bamfile.record(f"r{i}", flag=2147, tid=0, pos=at, cigar="20M20H",
                                          seq="ACGT" * 5, mate=(0, at + 60, 100)))
        source = self.write("in.bam", bamfile.bgzf(
            bamfile.bam_header("@HD\tVN:1.6\n" + bamfile.sq_text(refs), refs) + b"".join(records)))
        out = self.path("out.bam")
        result = self.run_program([sys.executable, ROOT / "bench" / "tile-reads.py", source,
                                   "-n", "100", "-o", out, "--window", "5000"], limit_s=60 * SLOW)
        self.assertEqual(result.status, 0, result.err)
        with open(out, "rb") as file:
            bam = bamfile.parse(bamfile.gzip.decompress(file.read()))
        places = [bamfile.fields(record) for record in bamfile.split(bam.records)]
        self.assertEqual(len(places), 100)
        windows = {pos // 5000 for _, pos, *_ in places}
        self.assertEqual(windows, {0, 1, 2})
        # The second read of a pair follows the first, 60 bases to the right.
        self.assertEqual({b[1] - a[1] for a, b in zip(places[::2], places[1::2])}, {60})
        self.assertNotEqual(places, sorted(places))
