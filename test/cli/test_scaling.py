"""bench/scaling.py: its tables and files, what it says of threads, wrong results, the time limit;
and the names of rocksort's threads, which it reads.

A fake program of the name of a peer stands for it, as in test_peers.py. A fake rocksort has threads
that take a known CPU time, and then lets the real one sort.
"""

import json
import os
import pathlib
import re
import sys
import unittest

from harness import (ROOT, SAMTOOLS, SLOW, SPILL_BUDGET, WRAPPER, CliTest, environment, wait_for)
from test_peers import FAKE, unsorted_bam

# Threads of these names take CPU seconds in turn; all stay until the end. The first argument is the
# real program.
BUSY = """#!{python} -B
import ctypes, subprocess, sys, threading, time
done = threading.Event()
def start(name, cpu_s):
    def run():
        ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)
        while time.thread_time() < cpu_s:
            pass
        ready.set()
        done.wait()
    ready = threading.Event()
    threading.Thread(target=run, daemon=True).start()
    ready.wait()
if "-o" in sys.argv:
    start("worker", 0.8)
    start("spiller", 0.4)
    start("run ender", 0.2)
    time.sleep(0.5)
    start("writer", 0.6)
    time.sleep(0.5)
status = subprocess.run({real!r} + sys.argv[1:]).returncode
done.set()
sys.exit(status)
"""

# rocksort checks the order of strands at one position, too. Python's sort is stable.
BY_STRAND = """
def key(record):
    tid, pos, flag, _ = bamfile.fields(record)
    return tid & 0xffffffff, pos, flag & 16
records.sort(key=key)
"""


class Scaling(CliTest):
    """Runs scaling.py on a small input."""

    def setUp(self):
        super().setUp()
        self.bin = self.work / "bin"
        self.bin.mkdir()
        self.input = self.write("in.bam", unsorted_bam())

    def program(self, name, text):
        path = self.bin / name
        path.write_text(text)
        path.chmod(0o755)
        return str(path)

    def fake(self, spoil=""):
        return self.program("fgumi", FAKE.format(
            python=sys.executable, here=os.path.dirname(__file__),
            tail="", spoil=BY_STRAND + spoil))

    def scaling(self, *options, rocksort=SAMTOOLS + " rocksort", source=None):
        """Returns (status, report or None, text, messages)."""
        out = self.path("scaling.json")
        source = source or ("--input", self.input)
        result = self.run_program(
            [sys.executable, ROOT / "bench" / "scaling.py", *source, "--cold-memory",
             "--dir", self.scratch, "--rocksort", rocksort, "--json", out,
             "--programs", "rocksort", "--settings", "16M:1", "--threads", "1,2",
             *options], env_only=environment(self.scratch), limit_s=120 * SLOW)
        self.assertEqual(os.listdir(self.scratch), [], "left behind")
        report = json.loads(pathlib.Path(out).read_text()) if os.path.exists(out) else None
        return result.status, report, result.out.decode(), result.err

    def test_report(self):
        """Each program runs at each number of threads, the largest first. Ratios and efficiency
        follow from the times."""
        fgumi = self.fake()
        status, report, text, err = self.scaling(
            "--programs", "rocksort,fgumi=" + fgumi, "--settings", "16M:1,all:default",
            "--repeats", "2", "--markdown", self.path("scaling.md"))
        self.assertEqual(status, 0, err)
        self.assertEqual([setting["level"] for setting in report["settings"]], [1, 6])
        order = [(run["point"], run["threads"], run["who"]) for run in report["runs"]]
        self.assertEqual(order, [(point, n, who) for point in ("16M:1", "all:default")
                                 for n in (2, 1)
                                 for who in ("rocksort", "fgumi", "fgumi", "rocksort")])
        rows = {(row["point"], row["threads"], row["who"]): row for row in report["summary"]}
        self.assertEqual(set(rows), set(order))
        for (point, n, who), row in rows.items():
            one = rows[point, 1, who]
            self.assertAlmostEqual(row["efficiency"], one["wall_s"] / row["wall_s"] / n)
            self.assertAlmostEqual(row["wall_ratio"],
                                   row["wall_s"] / rows[point, n, "rocksort"]["wall_s"])
        commands = [run["command"] for run in report["runs"] if run["point"] == "16M:1"]
        for command in commands:  # the same memory for every number of threads
            self.assertRegex(command, r"--max-memory 16777216 |-m 16MiB ")
        self.assertEqual(text, pathlib.Path(self.path("scaling.md")).read_text())
        self.assertEqual(len(re.findall(r"(?m)^\| [12] \| (?:rocksort|fgumi) \|", text)), 8)
        self.assertEqual((report["records"], report["skipped"]), (3000, []))

    def test_threads_by_role(self):
        """Phases end when `writer` begins, and the busiest thread outside the pool is named."""
        rocksort = self.program("rocksort", BUSY.format(
            python=sys.executable, real=[SAMTOOLS, "rocksort"]))
        status, report, text, err = self.scaling("--threads", "2", rocksort=rocksort)
        self.assertEqual(status, 0, err)
        phases = report["runs"][0]["phases"]
        load, merge = phases["load"], phases["merge"]
        for phase, role, cpu_s in ((load, "worker", 0.8), (load, "spiller", 0.4),
                                   (load, "run ender", 0.2), (merge, "writer", 0.6)):
            self.assertAlmostEqual(phase["roles"][role][0], cpu_s, delta=0.15, msg=role)
        self.assertEqual((load["busiest"], merge["busiest"]), ("spiller", "writer"))
        self.assertLess(merge["roles"]["spiller"][0], 0.15)
        bound = report["bounds"]["16M:1"]["2"]["load"]
        self.assertAlmostEqual(bound["serial_s_per_million"], load["busiest_s"] / 0.003)
        self.assertAlmostEqual(bound["cores"], load["cpu_s"] / load["busiest_s"])
        self.assertRegex(text, r"(?m)^\| load \| spiller \| \d+\.\d{3} \(\d+\.\d{3}\) \|$")
        self.assertRegex(text, r"(?m)^- serial bound at -@ 2, load: spiller, ")
        self.assertRegex(text, r"(?m)^- serial bound at -@ 2, whole sort: spiller and writer, ")

    def test_wrong_result(self):
        fgumi = self.fake(spoil="records[77] = records[77][:-1] + b'!'")
        status, _, _, err = self.scaling("--programs", "fgumi=" + fgumi)
        self.assertEqual(status, 1)
        self.assertIn("fgumi's result is wrong: xxh3sum:", err)

    def test_not_sorted(self):
        fgumi = self.fake(spoil="records[0:2] = records[1::-1]")
        status, _, _, err = self.scaling("--programs", "fgumi=" + fgumi)
        self.assertEqual(status, 1)
        self.assertIn("is not sorted by coordinate", err)

    def test_order_of_strands(self):
        """Not all programs have samtools' order there, which is no fault of theirs."""
        fake = self.program("sambamba", FAKE.format(
            python=sys.executable, here=os.path.dirname(__file__), tail="", spoil=""))
        status, _, _, err = self.scaling("--programs", "sambamba=" + fake)
        self.assertEqual(status, 0, err)

    def test_time_is_over(self):
        """A run that lasts too long is ended; it and those after it are named. The others stay."""
        fgumi = self.fake(spoil="import time; time.sleep(1000)")
        status, report, text, err = self.scaling(
            "--programs", "rocksort,fgumi=" + fgumi, "--stop-after", str(int(6 * SLOW)))
        self.assertEqual(status, 0, err)
        self.assertEqual([(run["threads"], run["who"]) for run in report["runs"]],
                         [(2, "rocksort")])
        self.assertEqual([(run["threads"], run["who"]) for run in report["skipped"]],
                         [(2, "fgumi"), (1, "rocksort"), (1, "fgumi")])
        self.assertIn("left out: fgumi, 16M:1, -@ 2: it was ended: time is over", text)
        self.assertRegex(text, "left out: rocksort, 16M:1, -@ 1: it would take ")

    def test_simulated_input(self):
        status, report, _, err = self.scaling(
            "--threads", "2", "--simulator", str(ROOT / "bench" / "simulate-reads"),
            source=("--records", "2K"))
        self.assertEqual(status, 0, err)
        self.assertEqual(report["records"], 2000)

    def test_bad_words(self):
        for option, word, message in (("--threads", "0", "not a positive number"),
                                      ("--programs", "sort",
                                       "there are: rocksort, rocksort-auto, samtools"),
                                      ("--programs", "fgumi=/no/such", "no program /no/such"),
                                      ("--rocksort", "/no/such", "no program /no/such")):
            status, _, _, err = self.scaling(option, word)
            self.assertIn(status, (1, 2))
            self.assertIn(message, re.sub(r"\s+", " ", err))


@unittest.skipIf(WRAPPER, "the wrapper's threads have its names")
class Names(CliTest):
    """The names of rocksort's threads."""

    def wait_for_names(self, process, wanted):
        folder = pathlib.Path(f"/proc/{process.pid}/task")

        def names():
            found = set()
            for task in folder.iterdir():
                try:
                    found.add((task / "comm").read_text().strip())
                except OSError:
                    pass  # the thread has ended
            return wanted <= found
        wait_for(names, 20 * SLOW, f"threads {sorted(wanted)}")

    def test_names(self):
        """While it loads, and while it merges into a pipe that nobody reads."""
        data = unsorted_bam(30_000)
        process = self.start("-@2", "-u", "-", budget=SPILL_BUDGET)
        self.feed(process, data[:-28])
        self.wait_for_names(process, {"samtools", "worker", "spiller", "run ender", "signals"})
        process.stdin.write(data[-28:])
        process.stdin.close()
        process.stdin = None
        self.wait_for_names(process, {"samtools", "worker", "writer", "feeder", "signals"})
        process.communicate(timeout=60 * SLOW)
        self.assertEqual(process.returncode, 0)


if __name__ == "__main__":
    unittest.main()
