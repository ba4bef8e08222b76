"""bench/deflate.py and bench/tail.py: their tables and targets, and what they refuse."""

import json
import os
import shutil
import subprocess
import sys

from harness import ROOT, SAMTOOLS, SLOW, CliTest, environment

DEFLATE_BLOCKS, SIMULATE = ROOT / "bench" / "deflate-blocks", ROOT / "bench" / "simulate-reads"


class BenchTest(CliTest):
    """Runs a benchmark on a small input."""

    def setUp(self):
        super().setUp()
        if not os.access(SIMULATE, os.X_OK) or not os.access(DEFLATE_BLOCKS, os.X_OK):
            self.skipTest("the programs of the benchmarks are not built")
        self.upstream = shutil.which("samtools")
        if not self.upstream:
            self.skipTest("no samtools to compare with")

    def simulate(self, *options):
        path = self.path("in.bam")
        subprocess.run([SIMULATE, "-o", path, *options], check=True)
        return path

    def bench(self, name, *options):
        self.json = self.path("bench.json")
        result = self.run_program(
            [sys.executable, ROOT / "bench" / name, "--cold-memory", "--repeats", "2", "--dir",
             self.scratch, "--rocksort", SAMTOOLS + " rocksort", "--samtools", self.upstream,
             "--json", self.json, *options],
            env_only=environment(self.scratch, extra={"PATH": "/usr/bin:/bin"}),
            limit_s=120 * SLOW)
        self.assertEqual(os.listdir(self.scratch), [], "left behind")
        return result

    def measured(self, key):
        with open(self.json, encoding="utf-8") as file:
            return json.load(file)[key]


class Deflate(BenchTest):
    def methods(self, *options):
        """The table of methods that were measured, {method: fields}."""
        result = self.bench("deflate.py", "--methods", "zlib:1,rocksort:3", *options)
        self.assertEqual(result.status, 0, result.err)
        rows = [line.strip("| ").split(" | ") for line in result.out.decode().splitlines()
                if line.startswith("| in.bam") or line.startswith("| simulated")]
        return {row[1]: row for row in rows}

    def test_methods_of_a_file_and_targets_of_the_default(self):
        rows = self.methods("--reads", self.simulate("-n", "4K"))
        self.assertEqual(list(rows), ["libdeflate:6", "zlib:1", "rocksort:3"])
        self.assertEqual(rows["libdeflate:6"][0], "in.bam (short reads)")
        self.assertEqual(rows["libdeflate:6"][4::2], ["1.000", "1.00", "1.00"])
        self.assertGreater(float(rows["zlib:1"][4]), 1)
        for column, target in ((4, "1.020"), (6, "0.3"), (8, "1.10")):
            self.assertIn(f"(<= {target}", rows["rocksort:3"][column])
        (found,) = self.measured("inputs").values()
        self.assertEqual(found["records"][0], "4000")

    def test_records_longer_than_a_block(self):
        rows = self.methods("--input", self.simulate("-m", "long", "-n", "40"))
        self.assertEqual(rows["rocksort:3"][0], "in.bam (long reads)")
        self.assertIn("(<= 0.975)", rows["rocksort:3"][4])

    def test_only_the_first_bytes(self):
        self.methods("--reads", "simulated", "--records", "4K", "--bytes", "100K")
        (found,) = self.measured("inputs").values()
        payload = found["results"][0]["payload"]
        self.assertTrue(99_000 < payload <= 102_400, payload)

    def test_damaged_input_and_unknown_method(self):
        path = self.simulate("-n", "4K")
        with open(path, "r+b") as file:
            file.truncate(100_000)
        simulated = ["--reads", "simulated", "--records", "1K"]
        for words, message in ((["--reads", path], "' is truncated or damaged"),
                               (simulated + ["--methods", "gzip:3"],
                                "'gzip:3' is not ENGINE:LEVEL")):
            result = self.bench("deflate.py", *words)
            self.assertEqual(result.status, 1)
            self.assertIn(message, result.err)


class Tail(BenchTest):
    def test_all_jobs_tail_and_targets(self):
        result = self.bench("tail.py", "--input", self.simulate("-n", "4K", "-d", "15"), "--rate",
                            "5", "--jobs", "sort:default,one-pass:1,one-pass:default")
        self.assertEqual(result.status, 0, result.err)
        self.assertIn("mako is not installed", result.err)
        rows = [line.strip("| ").split(" | ") for line in result.out.decode().splitlines()
                if line.startswith(("| sort:", "| one-pass:"))]
        self.assertEqual([row[:2] for row in rows],
                         [[job, who] for job in ("sort:default", "one-pass:1", "one-pass:default")
                          for who in ("rocksort", "samtools")])
        self.assertEqual(["(<= 0.3" in row[3] for row in rows], [False, True, False, False, False,
                                                                True])
        for run in self.measured("runs"):
            # 4,000 records are 1.6 MB of SAM, which take 0.3 s.
            self.assertGreater(run["wall_s"] - run["tail_s"], 0.2)
            self.assertGreater(run["tail_s"], 0)
            self.assertGreater(run["late_s"], -0.001)

    def test_program_that_fails(self):
        result = self.bench("tail.py", "--input", self.simulate("-n", "4K"), "--jobs", "sort:1",
                            "--rocksort", "/bin/false")
        self.assertEqual(result.status, 1)
        self.assertIn("exit code 1 from: ", result.err)

    def test_bad_job(self):
        result = self.bench("tail.py", "--jobs", "merge:1")
        self.assertEqual(result.status, 2)
        self.assertIn("'merge:1' is not sort:LEVEL or one-pass:LEVEL", result.err)
