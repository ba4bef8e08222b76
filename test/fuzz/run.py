#!/usr/bin/env python3
"""Runs the fuzz targets of test/fuzz: run.py replay|probe|fuzz [options]

replay  runs every target on random inputs, always the same, on its seeds and on inputs that once
        made it fail (test/fuzz/regressions), with the programs that make check builds.
probe   fails, after a message, if --cc has no libFuzzer.
fuzz    runs each target for --seconds, two at a time, with the programs that make fuzz-targets
        builds. Inputs that make a target fail are kept below build/fuzz-found; the corpus grows
        below build/fuzz-corpus. With --short each target makes a fixed number of runs with a fixed
        seed and a corpus that starts empty: for the same program nearly the same inputs each
        time. (libFuzzer learns from values that are compared, addresses among them, and from the
        code that was reached, which threads make differ.)

Prints one line for each target; exit status 1 if one failed.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SHARED = {"fuzz_messages", "fuzz_file", "fuzz_record"}
# An input that takes longer is a failure: an endless loop, or far too much work. No input needs so
# long, even on a busy machine.
INPUT_LIMIT_S = 60
MEMORY_LIMIT_MB = 2560
REPLAY_LIMIT_S = 300 * float(os.environ.get("ROCKSORT_TEST_SLOW_FACTOR", "1"))
# The runs of --short, about half a minute on one core of 2023 for each target; their first inputs
# are the seeds and regressions.
SHORT_RUNS = {"store": 400, "deflate": 6000, "sort": 1000, "index": 3000, "reader": 4000, "merge": 10000,
              "columns": 20000}
SHORT_RUNS_OTHERS = 60000
SHORT_SEED = 1
# Random inputs of a replay; each one of these two targets takes threads or a database.
RANDOM_INPUTS = {"sort": 0, "store": 0}
RANDOM_INPUTS_OTHERS = 20 if os.environ.get("ROCKSORT_TEST_WRAPPER") else 3000
# What the command line begins with: valgrind and its options (make check VALGRIND=1).
WRAPPER = os.environ.get("ROCKSORT_TEST_WRAPPER", "").split()


def targets():
    """Names of all targets."""
    names = {path.stem for path in HERE.glob("fuzz_*.c")} - SHARED
    return sorted(name[len("fuzz_"):] for name in names)


def inputs_of(target, seeds):
    """Directories with inputs of a target."""
    folders = [pathlib.Path(seeds).resolve() / target, HERE / "regressions" / target]
    return [str(folder) for folder in folders if folder.is_dir()]


def environment():
    """The environment of a target: no look-ups of references on the network, and limits for the
    sanitizers. RocksDB keeps a few objects to the end on purpose; htslib is not instrumented."""
    env = dict(os.environ, REF_PATH=":", REF_CACHE=":", LC_ALL="C")
    env.setdefault("ASAN_OPTIONS", "allocator_may_return_null=1:detect_odr_violation=0:"
                   "quarantine_size_mb=16:max_allocation_size_mb=2000")
    env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
    return env


def replay(target, args):
    """Runs one target on its inputs. Returns (succeeded, line, output)."""
    program = pathlib.Path(args.programs).resolve() / f"replay_{target}"
    n_random = RANDOM_INPUTS.get(target, RANDOM_INPUTS_OTHERS)
    command = [*WRAPPER, str(program), f"-{n_random}", *inputs_of(target, args.seeds)]
    with tempfile.TemporaryDirectory(prefix="rocksort-fuzz-") as folder:
        try:
            done = subprocess.run(command, capture_output=True, env=environment(), check=False,
                                  timeout=REPLAY_LIMIT_S, cwd=folder, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return False, f"{target}: does not end", ""
    err = done.stderr.decode(errors="replace")
    if done.returncode:
        return False, f"{target}: failed with status {done.returncode}", err[-4000:]
    count = re.search(rb"(\d+) inputs", done.stdout)
    return True, f"{target}: {count.group(1).decode() if count else '?'} inputs", ""


def statistic(name, text):
    """A number from the statistics that libFuzzer prints at the end."""
    found = re.search(rf"stat::{name}:\s+(\d+)", text)
    return int(found.group(1)) if found else 0


def fuzz(target, args):
    """Fuzzes one target. Returns (succeeded, line, output)."""
    found = ROOT / "build/fuzz-found" / target
    found.mkdir(parents=True, exist_ok=True)
    command = [str(pathlib.Path(args.programs).resolve() / f"fuzz_{target}"),
               f"-timeout={INPUT_LIMIT_S}", f"-rss_limit_mb={MEMORY_LIMIT_MB}",
               "-malloc_limit_mb=100000", f"-artifact_prefix={found}/", "-max_len=16384",
               "-print_final_stats=1", "-close_fd_mask=1"]
    words = pathlib.Path(args.seeds).resolve() / f"{target}.dict"
    if words.exists():
        command.append(f"-dict={words}")
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rocksort-fuzz-") as folder, \
            tempfile.TemporaryFile() as log:
        if args.short:
            corpus = pathlib.Path(folder) / "corpus"
            command += [f"-runs={SHORT_RUNS.get(target, SHORT_RUNS_OTHERS)}",
                        f"-seed={SHORT_SEED}"]
        else:
            corpus = ROOT / "build/fuzz-corpus" / target
            command += [f"-max_total_time={args.seconds}", f"-seed={args.seed}"]
        corpus.mkdir(parents=True, exist_ok=True)
        command += [str(corpus), *inputs_of(target, args.seeds)]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=log, env=environment(),
                              check=False, cwd=folder, stdin=subprocess.DEVNULL)
        log.seek(max(0, log.seek(0, os.SEEK_END) - 20000))
        text = log.read().decode(errors="replace")
    n_runs = statistic("number_of_executed_units", text)
    cover = re.findall(r"cov: (\d+)", text)
    line = (f"{target}: {n_runs} executions in {time.monotonic() - begin:.0f} s, "
            f"{statistic('new_units_added', text)} new inputs, "
            f"coverage {cover[-1] if cover else '?'}, "
            f"{statistic('peak_rss_mb', text)} MB")
    if done.returncode == 0:
        return True, line, ""
    return False, f"{target}: FAILED; the input is in {found}", text[-6000:]


def has_libfuzzer(compiler):
    """Whether the compiler links libFuzzer."""
    with tempfile.TemporaryDirectory(prefix="rocksort-fuzz-") as folder:
        source = pathlib.Path(folder) / "x.c"
        source.write_text("int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n)\n"
                          "{\n    return d && n ? 0 : 0;\n}\n", encoding="ascii")
        try:
            done = subprocess.run(
                [compiler, "-fsanitize=fuzzer,address,undefined", str(source), "-o", f"{folder}/x"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        except OSError:
            return False
        return done.returncode == 0


def run_all(one, args, jobs):
    """Runs all targets, or those that were named; returns the exit status."""
    names = [name for name in targets() if not args.only or name in args.only.split(",")]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for succeeded, line, output in pool.map(lambda name: one(name, args), names):
            print(f"{output}{line}" if succeeded else f"{output}\nFAIL {line}", flush=True)
            failed += not succeeded
    print(f"{len(names) - failed} fuzz targets passed, {failed} failed")
    return 1 if failed or not names else 0


def main():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("replay", "probe", "fuzz"))
    parser.add_argument("--programs", help="where the targets are built")
    parser.add_argument("--seeds", help="made by make_seeds.py")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--short", action="store_true", help="the same short run each time")
    parser.add_argument("--seed", type=int, default=0,
                        help="of libFuzzer's random numbers; 0, the default: a new one each time")
    parser.add_argument("--only", default="", help="targets, with commas between")
    parser.add_argument("--jobs", type=int, default=2, help="targets at a time")
    parser.add_argument("--cc", default="clang")
    args = parser.parse_args()
    if args.what == "probe":
        if has_libfuzzer(args.cc):
            return 0
        print(f"fuzz: skipped: {args.cc} with libFuzzer is not installed "
              "(sh scripts/install-deps.sh fuzz)")
        return 1
    if not args.programs or not args.seeds:
        parser.error("--programs and --seeds are needed")
    return run_all(fuzz if args.what == "fuzz" else replay, args, args.jobs)


if __name__ == "__main__":
    sys.exit(main())
