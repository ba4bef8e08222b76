#!/usr/bin/env python3
"""Compares sorts to columns with sorts to BAM, in time and in size; then what questions cost that
are asked of Parquet and of BAM.

    bench/columns.py                            6 M simulated records, 3 repeats
    bench/columns.py --reads a.bam b.bam        6 M real reads, tiled from these
    bench/columns.py --questions --input a.bam  only the questions

Each sort has --threads threads, each with 256 MiB. A result must have all records. The questions
are those of doc/column-questions.md, with 1,000 random regions: asked by DuckDB in its shell and in
Python, by Polars, by pysam, and by samtools view with awk, each in two threads if it can. All must
get the same answer. Without all these for this Python they are not asked (`make bench-columns` takes
the Python of the tests). Files go to a new directory in --dir, which is removed at the end. Exit
code: 0 if all runs worked, otherwise 1.
"""

import collections
import os
import random
import shlex
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
from bench_input import prepared
from column_questions import find_shell, read_titles, shell_words
from measure import (MIB, BenchError, count_records, describe, in_turn, make_parser, medians_at,
                     output_of, parse_positive, prepare, progress, report, room_for_run,
                     run_in_turn, run_main, run_measured, verdict)

QUESTIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "column_questions.py")
THREAD_MIB = 256                # memory of a thread
# Input, temporary data and the largest output, for a record.
BYTES_A_RECORD = 1200

# ending: the extension of the file. versus: the way that it is compared with. wall, size: the
# largest ratios to that way that are accepted; None: no target.
Way = collections.namedtuple("Way", "name ending options versus wall size", defaults=[None, None])

WAYS = [
    Way("BAM -l 1", "bam", ["-l", "1"], "BAM -l 1"),
    Way("Arrow, LZ4", "arrow", [], "BAM -l 1", 1.0),
    Way("Arrow, uncompressed", "arrow", ["-u"], "BAM -l 1"),
    Way("BAM", "bam", [], "BAM"),
    Way("Arrow, zstd 2", "arrow", ["-l", "2"], "BAM"),
    Way("Parquet", "parquet", [], "BAM", 0.8, 0.95),
]

# The largest ratios of the time of DuckDB's shell to that of samtools and awk, and to that of pysam,
# by the number of a question on the page.
TARGETS = {1: {"awk": 0.05, "pysam": 0.02}, 6: {"pysam": 0.5}}
WAY_NAMES = {"shell": "DuckDB's shell", "duckdb": "DuckDB in Python", "polars": "Polars",
             "pysam": "pysam", "awk": "samtools and awk"}


# Another process counts the rows: Linux reports for a child at least the peak memory of its parent,
# so this process must stay small.
COUNT = """
import sys
try:
    import pyarrow.ipc, pyarrow.parquet
except ImportError:
    sys.exit()
if sys.argv[1].endswith(".parquet"):
    print(pyarrow.parquet.read_metadata(sys.argv[1]).num_rows)
    sys.exit()
reader = pyarrow.ipc.open_file(pyarrow.memory_map(sys.argv[1]))
print(sum(reader.get_batch(i).num_rows for i in range(reader.num_record_batches)))
"""


def count_rows(path):
    """None without pyarrow."""
    text = output_of([sys.executable, "-c", COUNT, path])
    return int(text) if text.strip() else None


def run_once(args, way, setting):
    with room_for_run(setting.scratch, way.ending) as room:
        prepare(setting.input, 0 if args.cold_memory else 2 * args.threads * THREAD_MIB * MIB)
        command = [*setting.rocksort, "-@%d" % args.threads, "-m", "%dM" % THREAD_MIB,
                   *way.options, "-T", room.temp_dir, "-o", room.output, setting.input]
        result = run_measured(command, room)
        found = (count_records(setting.samtools, room.output) if way.ending == "bam"
                 else count_rows(room.output))
        if found not in (setting.records, None):
            raise BenchError("%s has %d records of %d" % (way.name, found, setting.records))
    result.update(who=way.name, point="", command=shlex.join(command))
    return result


def table(runs):
    yield "| output | wall s | CPU s | peak RSS MiB | MB | wall (target) | CPU | size (target) | of |"
    yield "|---|---|---|---|---|---|---|---|---|"
    got = {way.name: medians_at(runs, "", way.name) for way in WAYS}
    for way in WAYS:
        m, other = got[way.name], got[way.versus]
        yield "| %s | %.2f | %.2f | %.0f | %.1f | %s | %.2f | %s | %s |" % (
            way.name, m["wall_s"], m["cpu_s"], m["rss_bytes"] / MIB, m["output_bytes"] / 1e6,
            verdict(m["wall_s"] / other["wall_s"], way.wall), m["cpu_s"] / other["cpu_s"],
            verdict(m["output_bytes"] / other["output_bytes"], way.size), way.versus)


# ---- questions ----


def can_ask():
    words = [sys.executable, "-c", "import duckdb, polars, pyarrow, pysam; print('yes')"]
    return find_shell() is not None and output_of(words).strip() == "yes"


def make_regions(upstream, path, out):
    """1,000 random regions of 1,000 bases, in order; fewer on a small genome."""
    lengths = [line.split("\t")[:2] for line in
               output_of([upstream, "idxstats", path]).splitlines() if line[0] != "*"]
    lengths = [(name, int(length)) for name, length in lengths if int(length) > 2000]
    rng = random.Random(1)
    weights = [length for _, length in lengths]
    regions = {(name, rng.randrange(length - 1000))
               for name, length in rng.choices(lengths, weights, k=1000)}
    with open(out, "w", encoding="ascii") as file:
        for name, start in sorted(regions):
            file.write("%s\t%d\t%d\n" % (name, start, start + 1000))


def ask_once(way, number, upstream, folder):
    """(seconds, the sorted rows as text) of a question that one way answers, with the start of its
    program: Python, but for DuckDB's shell, which needs none."""
    words = shell_words(number) if way == "shell" else [sys.executable, "-B", QUESTIONS, way,
                                                        str(number), upstream]
    begin = time.monotonic()
    done = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          check=False)
    wall_s = time.monotonic() - begin
    if done.returncode != 0:
        raise BenchError("%s cannot answer question %d" % (WAY_NAMES[way], number))
    return wall_s, sorted(done.stdout.splitlines())


def ask(args, setting):
    """The runs of all questions. Answers must agree."""
    folder, upstream = setting.scratch, setting.samtools
    bam, parquet = (os.path.join(folder, "sample." + ending) for ending in ("bam", "parquet"))
    done = subprocess.run([*setting.rocksort, "--quiet", "-@2", "-o", bam, "--write-index",
                           "--also", parquet, "--columns", "all,SA", setting.input], check=False)
    if done.returncode != 0:
        raise BenchError("cannot make %s and %s" % (bam, parquet))
    make_regions(upstream, bam, os.path.join(folder, "regions.bed"))
    ways, runs = list(WAY_NAMES), []
    for number in read_titles():
        prepare(bam, 0)
        prepare(parquet, 0)
        answer = None
        # The first question warms up: each way is loaded from the disk.
        warm_up = [(0, way) for way in ways if number == 1]
        for repeat, way in [*warm_up, *in_turn(ways, args.repeats)]:
            wall_s, rows = ask_once(way, number, upstream, folder)
            if answer not in (None, rows):
                raise BenchError("question %d: %s has another answer than the way before it"
                                 % (number, WAY_NAMES[way]))
            answer = rows
            if repeat:
                runs.append({"number": number, "who": way, "wall_s": wall_s, "repeat": repeat})
            progress("columns: question %d, %s: %.2f s, %d rows"
                     % (number, WAY_NAMES[way], wall_s, len(rows)))
    return runs


def question_table(runs):
    names = " | ".join(name + " s" for name in WAY_NAMES.values())
    yield "\n| question | %s | DuckDB's shell, of samtools (target) | of pysam (target) |" % names
    yield "|---" * (len(WAY_NAMES) + 3) + "|"
    for number, title in read_titles().items():
        wall_s = {way: statistics.median(run["wall_s"] for run in runs
                                         if (run["number"], run["who"]) == (number, way))
                  for way in WAY_NAMES}
        targets = TARGETS.get(number, {})
        ratios = [verdict(wall_s["shell"] / wall_s[other], targets.get(other), "%.3f")
                  for other in ("awk", "pysam")]
        yield "| %d. %s | %s | %s | %s |" % (
            number, title, " | ".join("%.2f" % wall_s[way] for way in WAY_NAMES), *ratios)


def bench(args):
    with prepared("columns", args, BYTES_A_RECORD) as setting:
        runs = [] if args.questions else run_in_turn(
            "columns", [("", WAYS)], args.repeats, lambda way, _: run_once(args, way, setting))
        asked = ask(args, setting) if can_ask() else []
    said = dict(describe(setting.rocksort, setting.samtools), input=setting.said)
    head = "Medians of %d runs each, in turn, %d threads, %d MiB; MB are 10^6 bytes.\n" % (
        args.repeats, args.threads, args.threads * THREAD_MIB)
    lines = [head, *(table(runs) if runs else ()), *(question_table(asked) if asked else ())]
    report(args, "\n".join(lines), said, records=setting.records, runs=runs, questions=asked)


def main():
    parser = make_parser(__doc__, "6M")
    parser.add_argument("--threads", metavar="N", type=parse_positive, default=2,
                        help="of each sort [2]")
    parser.add_argument("--questions", action="store_true", help="only ask the questions")
    return bench(parser.parse_args())


if __name__ == "__main__":
    sys.exit(run_main("columns", main))
