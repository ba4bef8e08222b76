#!/usr/bin/env python3
"""Damages files at random and compares rocksort with samtools 1.24: hostile.py [--cases N]

The long version of test/cli/test_hostile.py: sorts the named cases in all ways that it knows, and
then N random cases. The seed is a new one each time unless --seed names one. With --random the
named cases are left out, so that a sweep can be run in pieces. --jobs processes share the work.

Files that show a problem are kept below build/hostile-found. Prints the number of files with each
result. The exit status is 1 if there was a problem.
"""

import argparse
import multiprocessing
import os
import pathlib
import random
import sys
import time
from collections import Counter

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE / "cli"))


def work(job):
    """Judges one share of the cases; returns (problems, counts)."""
    import hostile_check
    import hostile_files
    seed, first, step, n_cases, random_only, found = job
    base = hostile_files.Base(1500)
    named = list(hostile_files.named_cases(base))
    judge = hostile_check.Judge()
    ways, problems = hostile_check.WAYS, []
    try:
        for number in range(first + len(named) * random_only, len(named) + n_cases, step):
            is_named = number < len(named)
            rng = random.Random(seed * 1000003 + number)
            case = named[number] if is_named else hostile_files.random_case(rng, base)
            of_case = judge.judge(case, ways if is_named else rng.sample(ways, 2))
            if of_case:
                pathlib.Path(found).mkdir(parents=True, exist_ok=True)
                kept = pathlib.Path(found) / f"{seed}-{number}.{case.extension}"
                kept.write_bytes(case.data)
                problems += [f"{kept}: {problem}" for problem in of_case]
                for problem in of_case:
                    print(f"{kept}: {problem}"[:1000], flush=True)
    finally:
        judge.close()
    return problems, judge.counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build-dir", default=".", help="where samtools was built")
    parser.add_argument("--cases", type=int, default=2000, help="random cases")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--random", action="store_true", help="random cases alone")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    os.environ["ROCKSORT_BUILD_DIR"] = str(pathlib.Path(args.build_dir).resolve())
    import hostile_check
    if hostile_check.harness.pysam is None or not hostile_check.ForkServer.path():
        print("hostile.py: pysam and fork-server are needed: run `make hostile`", file=sys.stderr)
        return 1
    found = str(HERE.parent / "build/hostile-found")
    print(f"seed {args.seed}", flush=True)
    start, problems, counts = time.monotonic(), [], Counter()
    jobs = [(args.seed, i, args.jobs, args.cases, args.random, found) for i in range(args.jobs)]
    with multiprocessing.get_context("spawn").Pool(args.jobs) as pool:
        for some, count in pool.imap_unordered(work, jobs):
            problems += some
            counts.update(count)
    for name, number in sorted(counts.items()):
        print(f"{number:8} {name}")
    print(f"{len(problems)} problems in {time.monotonic() - start:.0f} s")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
