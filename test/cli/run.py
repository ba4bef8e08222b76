#!/usr/bin/env python3
"""Runs the CLI tests: run.py [--build-dir DIR] [--only PATTERNS] [--jobs N] [--list]

Each test_*.py here is one job with its own process. Two run at a time, since most tests wait for
something. For each failure the messages of the test are printed, and one line at their end; then a
line for each reason to skip; and last `N passed, N failed, N skipped`. Exit status 1 if one failed.
"""

import argparse
import collections
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
# The longest first, so that both processes end at about the same time.
LONGEST_FIRST = ["test_memory", "test_faults", "test_errors", "test_regimes", "test_real",
                 "test_orders", "test_workflows"]


class Collector(unittest.TestResult):
    """Counts test methods. One with failed subtests counts as one failure."""

    def __init__(self):
        super().__init__()
        self.outcome, self.begin, self.seconds = {}, 0.0, {}

    def startTest(self, test):
        super().startTest(test)
        self.begin = time.monotonic()

    def stopTest(self, test):
        super().stopTest(test)
        self.outcome.setdefault(test.id(), ["passed", ""])
        self.seconds[test.id()] = time.monotonic() - self.begin

    def failed(self, name, err, test):
        """Adds a failure to those that the test already has."""
        story = self._exc_info_to_string(err, test)
        old = self.outcome.get(name, ["", ""])[1]
        self.outcome[name] = ["failed", old + story]

    def addError(self, test, err):
        self.failed(test.id(), err, test)

    def addFailure(self, test, err):
        self.failed(test.id(), err, test)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            story = self._exc_info_to_string(err, test)
            old = self.outcome.get(test.id(), ["", ""])[1]
            self.outcome[test.id()] = ["failed", f"{old}{subtest._subDescription()}\n{story}"]

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.outcome.setdefault(test.id(), ["skipped", reason])


def select(suite, pattern):
    """The tests of a suite whose id contains a word of pattern or matches it with wildcards. Commas
    divide the words."""
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from select(item, pattern)
        elif any(word in item.id() or fnmatch.fnmatch(item.id(), word)
                 for word in pattern.split(",")):
            yield item


def run_module(name, pattern, report):
    """Runs the tests of one module in this process and writes their outcomes to report."""
    result = Collector()
    suite = unittest.defaultTestLoader.loadTestsFromName(name)
    unittest.TestSuite(select(suite, pattern)).run(result)
    with open(report, "w", encoding="utf-8") as file:
        json.dump({"outcome": result.outcome, "seconds": result.seconds}, file)


def start_module(name, args, folder):
    """Runs one module in a child process; returns its outcomes and times."""
    report = folder / (name + ".json")
    command = [sys.executable, "-B", str(HERE / "run.py"), "--build-dir", args.build_dir,
               "--only", args.only, "--module", name, "--report", str(report)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          text=True, errors="replace")
    try:
        loaded = json.loads(report.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        loaded = {"outcome": {name: ["failed", f"exit {done.returncode}\n{done.stdout}"]},
                  "seconds": {}}
    return loaded


def main():
    """Reads the command line, runs all, prints the summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build-dir", default=".", help="where samtools was built")
    parser.add_argument("--only", default="", metavar="PATTERNS", help="parts of tests' ids")
    parser.add_argument("--jobs", type=int, default=2, help="modules at a time")
    parser.add_argument("--list", action="store_true", help="name the tests with their times")
    parser.add_argument("--module", help=argparse.SUPPRESS)
    parser.add_argument("--report", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.build_dir = str(pathlib.Path(args.build_dir).resolve())
    os.environ["ROCKSORT_BUILD_DIR"] = args.build_dir
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(HERE))
    if args.module:
        run_module(args.module, args.only, args.report)
        return 0

    for program in ("samtools", "samtools-rocksort"):
        if not os.access(os.path.join(args.build_dir, program), os.X_OK):
            print(f"run.py: no {program} in {args.build_dir}: build it first", file=sys.stderr)
            return 1
    names = sorted((path.stem for path in HERE.glob("test_*.py")),
                   key=lambda name: (LONGEST_FIRST + [name]).index(name))
    outcome, seconds = {}, {}
    with tempfile.TemporaryDirectory(prefix="rocksort-cli-run-") as folder, \
            concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        jobs = [pool.submit(start_module, name, args, pathlib.Path(folder)) for name in names]
        for job in jobs:
            outcome.update(job.result()["outcome"])
            seconds.update(job.result()["seconds"])
    return print_summary(outcome, seconds, args.list)


def print_summary(outcome, seconds, with_list):
    """Prints failures, reasons to skip and the closing line; returns the exit status."""
    counts, reasons = collections.Counter(), collections.Counter()
    for name, (state, story) in outcome.items():
        counts[state] += 1
        if state == "skipped":
            reasons[story] += 1
        if with_list:
            print(f"{state} {seconds.get(name, 0):6.2f} s {name}")
    for name, (state, story) in outcome.items():
        if state == "failed":
            last = story.strip().splitlines()[-1] if story.strip() else ""
            print(f"{story.rstrip()}\nFAIL {name}: {last[:300]}\n")
    for reason, count in reasons.items():
        print(f"skipped {count}: {reason}")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] or not outcome else 0


if __name__ == "__main__":
    sys.exit(main())
