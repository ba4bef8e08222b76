#!/usr/bin/env python3
"""Compares rocksort with samtools 1.24 (pysam) on random inputs, record for record.

    build/venv/bin/python test/differential.py [--program PATH] [--cases N] [--seconds S]
        [--seed SEED] [--first N] [--orders LIST] [--fixmate PERCENT] [--jobs J] [--keep DIR]
        [--markdup [--options LIST]]

Each case is drawn at random from the seed and the number of the case: an input, an order, options,
formats, and a memory budget that makes small inputs spill. Some inputs are grouped by name: there
rocksort has --fixmate, and samtools fixmate runs before samtools sort. Both programs sort it; exit
status, header and records must be the same. The program's usage text must name the options of all
orders.

With --markdup each case has templates, options of --fixmate and --markdup, and formats instead; it
is compared with samtools fixmate | sort | markdup, also the index and the statistics.

A case with a difference is made smaller, and printed with the smallest input that shows the
difference; with --keep DIR its files stay in DIR. `--seed S --first N --cases 1` with the same
orders and share of --fixmate repeats case N. The exit status is 1 if there was any difference.
"""

import argparse
import collections
import multiprocessing
import os
import pathlib
import queue
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "cli"))

import differential_case  # noqa: E402
import differential_markdup  # noqa: E402

DEFAULT_CASES = 500
MAX_DIFFERENCES = 10  # the run ends after so many, which are enough to find the bug
LAST_TRIES = 10


class Tally:
    """Counts the cases of a run, or of a part of it, by what they tested."""

    def __init__(self):
        self.n_cases = self.n_records = self.n_differences = 0
        self.hits = collections.Counter()  # (what, which) -> cases

    def add(self, case, verdict):
        self.n_cases += 1
        self.n_records += case.n_records
        self.n_differences += verdict.difference is not None
        for what, which in case.facts(verdict):
            if which:
                self.hits[what, which] += 1

    def merge(self, other):
        self.n_cases += other.n_cases
        self.n_records += other.n_records
        self.n_differences += other.n_differences
        self.hits.update(other.hits)

    def print(self, seed):
        for what in ("order", "profile", "option", "input", "output", "index", "regime", "fixmate",
                      "special",
                     "deviation", "not compared"):
            found = sorted((which, n) for (kind, which), n in self.hits.items() if kind == what)
            if found:
                print(f"{what + ':':<13} " + ", ".join(f"{which} {n}" for which, n in found))
        print(f"{self.n_cases} cases, {self.n_records} records, {self.n_differences} differences "
              f"(seed {seed})")


class Worker:
    """One process of the run: takes case numbers, tries them, reports differences."""

    def __init__(self, args, folder, results):
        self.args, self.folder, self.results = args, folder, results
        self.cases = args.kind

    def fails_like(self, kind):
        """Returns a function that says whether a case still has a difference of this kind."""
        def fails(case):
            try:
                verdict = self.cases.try_case(case, self.args.program, self.folder)
            except self.cases.ReferenceTrouble:
                return False
            return verdict.difference is not None and verdict.difference.kind == kind
        return fails

    def report(self, number, case, difference):
        """Makes a failing case smaller; returns the report about it."""
        keep = self.args.keep and f"{self.args.keep}/case-{number}"
        if keep:
            shutil.rmtree(keep, ignore_errors=True)
            shutil.copytree(self.folder, f"{keep}/first")
        shrinker = self.cases.Shrinker(case, self.fails_like(difference.kind))
        case = shrinker.run()
        # Runs the smallest case again for its files and messages; a race may need several tries.
        for _ in range(LAST_TRIES):
            verdict = self.cases.try_case(case, self.args.program, self.folder)
            if verdict.difference:
                break
        if keep:
            shutil.copytree(self.folder, f"{keep}/smallest")
        now = verdict.difference or cases.Difference("unstable", "it did not show again")
        report = (f"== case {number} of seed {self.args.seed}: {difference.kind}\n"
                  f"{difference.text[:3000]}\n"
                  f"-- smallest, after {shrinker.n_tries} tries: {now.kind}\n{now.text[:3000]}\n"
                  f"{self.cases.show_commands(case, self.args.program, '..')}\n"
                  f"{self.cases.show_input(case)}")
        if keep:
            pathlib.Path(f"{keep}/report.txt").write_text(report, encoding="utf-8")
        return report

    def try_number(self, number, tally):
        """Draws and tries one case."""
        case = self.args.draw(self.args.seed, number)
        try:
            verdict = self.cases.try_case(case, self.args.program, self.folder)
        except self.cases.ReferenceTrouble as trouble:
            tally.hits["not compared", str(trouble)] += 1
            return
        tally.add(case, verdict)
        if verdict.difference:
            self.results.put(self.report(number, case, verdict.difference))

    def run(self, counter, end):
        """Tries cases until no number is left, then sends the tally."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles it and ends us
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        tally = Tally()
        try:
            while time.monotonic() < end:
                with counter.get_lock():
                    number = counter.value
                    counter.value += 1
                if number >= self.args.first + self.args.cases:
                    break
                self.try_number(number, tally)
            self.results.put(tally)
        except Exception:  # pylint: disable=broad-except
            self.results.put(RuntimeError(f"case {number}:\n{traceback.format_exc()}"))


def collect(processes, results, counter):
    """Prints differences as they come and returns the Tally of all workers. After too many
    differences the workers get no more numbers."""
    total, n_waiting, n_shown = Tally(), len(processes), 0
    while n_waiting:
        try:
            item = results.get(timeout=5)
        except queue.Empty:
            if not all(process.is_alive() or process.exitcode == 0 for process in processes):
                raise RuntimeError("a worker died") from None
            continue
        if isinstance(item, RuntimeError):
            raise item
        if isinstance(item, Tally):
            total.merge(item)
            n_waiting -= 1
            continue
        print(item, flush=True)
        n_shown += 1
        if n_shown == MAX_DIFFERENCES:
            print(f"{MAX_DIFFERENCES} differences: the run ends here", flush=True)
            with counter.get_lock():
                counter.value = 2**40
    return total


def run(args, top):
    counter = multiprocessing.Value("q", args.first)
    results = multiprocessing.Queue()
    end = time.monotonic() + args.seconds
    processes = []
    try:
        for i in range(args.jobs):
            worker = Worker(args, f"{top}/{i}", results)
            processes.append(multiprocessing.Process(target=worker.run, args=(counter, end)))
            processes[-1].start()
        return collect(processes, results, counter)
    finally:
        for process in processes:
            process.terminate()
            process.join()


def set_orders(parser, args):
    """Sets which orders are drawn."""
    cases = differential_case
    lacking = cases.lacking_orders(args.program)
    if lacking:         # once they were left out silently, when --help became shorter
        parser.error(f"the usage text lacks options of: {', '.join(lacking)}")
    orders = args.orders.split(",") if args.orders else list(cases.ORDERS)
    unknown = [name for name in orders if name not in cases.ORDERS]
    if unknown:
        parser.error(f"no such orders: {', '.join(unknown)}")
    args.kind = cases
    args.draw = lambda seed, number: cases.draw_case(seed, number, orders, args.fixmate / 100)


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default=str(HERE.parent / "samtools-rocksort"),
                        help="the program to test [the samtools-rocksort of this tree]")
    parser.add_argument("--cases", type=int, default=None,
                        help=f"number of cases [{DEFAULT_CASES}, or unlimited with --seconds]")
    parser.add_argument("--seconds", type=float, default=float("inf"),
                        help="start no case after so many seconds")
    parser.add_argument("--seed", type=int, default=None, help="any number [a random one]")
    parser.add_argument("--first", type=int, default=0, help="number of the first case [0]")
    parser.add_argument("--orders", default="", help="comma-separated list of: " +
                        " ".join(differential_case.ORDERS) + " [all]")
    parser.add_argument("--fixmate", type=float, default=20, metavar="PERCENT",
                        help="how many cases have --fixmate [20]")
    parser.add_argument("--markdup", action="store_true",
                        help="compare --fixmate and --markdup with samtools fixmate, sort, markdup")
    parser.add_argument("--options", help="with --markdup: draw only some of: " +
                        " ".join(differential_markdup.OPTIONS))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--keep", help="directory for the files of failing cases")
    args = parser.parse_args()
    if args.cases is None:
        args.cases = 2**40 if args.seconds < float("inf") else DEFAULT_CASES
    if args.seed is None:
        args.seed = random.SystemRandom().randrange(10**6)
    args.program = str(pathlib.Path(args.program).resolve())
    if args.markdup:
        args.kind, groups = differential_markdup, args.options.split(",") if args.options else []
        if not set(groups) <= set(args.kind.OPTIONS):
            parser.error("--options takes some of: " + " ".join(args.kind.OPTIONS))
        args.draw = lambda seed, number: args.kind.draw_case(seed, number, groups)
    else:
        set_orders(parser, args)
    return args


def main():
    if not differential_case.pysam:
        sys.exit("differential.py needs pysam: run it with build/venv/bin/python")
    args = parse_args()
    # SIGTERM ends the script normally, so that its directories are removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="rocksort-differential-") as top:
        tally = run(args, top)
    tally.print(args.seed)
    sys.exit(1 if tally.n_differences else 0)


if __name__ == "__main__":
    main()
