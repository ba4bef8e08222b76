"""bench/one_pass.py: its table, what deflates, programs that are not installed, wrong results, which
it must find; and the duplicates of bench/simulate-reads.

A fake sambamba calls the real rocksort, and may spoil what it makes.
"""

import json
import os
import shutil
import subprocess
import sys
import unittest

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
        found = duplicates.pop("rocksort alone (no mates, no duplicates), libdeflate")
        self.assertEqual(found, 0)
        self.assertEqual(len(set(duplicates.values())), 1, duplicates)
        self.assertTrue(0.15 * 20000 < min(duplicates.values()) < 0.25 * 20000, duplicates)

    def test_deflate(self):
        """Each of rocksort's ways runs with each library, igzip at level 1 only; targets are for
        the first."""
        out = self.path("one-pass.json")
        result = self.bench("--ways", "one-pass,sort,samtools", "--levels", "1,default",
                            "--deflate", "libdeflate,igzip", "--json", out)
        self.assertEqual(result.status, 0, result.err)
        with open(out, encoding="utf-8") as file:
            runs = json.load(file)["runs"]
        ways = ["one-pass", "one-pass:igzip", "sort", "sort:igzip", "samtools"]
        self.assertEqual([(run["point"], run["who"]) for run in runs],
                         [("1", way) for way in ways]
                         + [("default", way) for way in ways if "igzip" not in way])
        for run in runs:
            if run["who"] == "samtools":
                self.assertIsNone(run["deflate"])
                self.assertNotIn("--deflate", run["command"])
            else:
                engine = "igzip" if "igzip" in run["who"] else "libdeflate"
                self.assertEqual(run["deflate"], engine)
                self.assertIn(f"--deflate {engine} ", run["command"])
        rows = [line.split(" | ") for line in result.out.decode().splitlines()
                if line.startswith(("| `-l 1` | ", "| default | "))]
        self.assertIn(["| `-l 1`", "rocksort --fixmate --markdup, igzip"], [r[:2] for r in rows])
        self.assertEqual([row[:3] for row in rows if len(row) == 5],
                         [["| `-l 1`", "one-pass", "samtools"], ["| default", "one-pass", "samtools"],
                          ["| `-l 1`", "one-pass", "sort"]])

    def test_bad_deflate(self):
        for words, message in ((["--deflate", "gzip"], "there are: libdeflate, auto, igzip, zlib"),
                               (["--deflate", "igzip", "--levels", "1,6"], "has level 1 only")):
            result = self.bench(*words)
            self.assertEqual(result.status, 2)
            self.assertIn(message, result.err)

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
