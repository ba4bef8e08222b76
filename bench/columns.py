#!/usr/bin/env python3
"""Compares sorts to columns with sorts to BAM, in time and in size; then what questions cost that are
asked of Parquet and of BAM.

    bench/columns.py                            6 M simulated records, 3 repeats
    bench/columns.py --reads a.bam b.bam        6 M real reads, tiled from these

Each sort has two threads and 512 MiB. A result must have all records. The questions are histograms
of MAPQ and of insert sizes of all reads, and five columns of the reads in 1,000 random regions: by
DuckDB, by samtools view with awk, and by pysam, each in two threads if it can. All must get the same
answer. Without DuckDB, pyarrow and pysam in this Python they are not asked (`make bench-columns`
takes the Python of the tests). Files go to a new directory in --dir, which is removed at the end.
Exit code: 0 if all runs worked, otherwise 1.
"""

import collections
import os
import random
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
from bench_input import choose_input, said_of_input
from measure import (MIB, BenchError, check_paths, count_records, find_rocksort, find_upstream,
                     in_turn, machine, make_parser, medians_of, need_disk, output_of, prepare,
                     progress, report, room_for_run, run_in_turn, run_main, run_measured, verdict)

MEMORY_MIB = 512
# Input, temporary data and the largest output, for a record.
BYTES_A_RECORD = 1200

# ending: the extension of the file. versus: the way that it is compared with. wall, size: the largest
# ratios to that way that are accepted; None: no target.
Way = collections.namedtuple("Way", "name ending options versus wall size", defaults=[None, None])

WAYS = [
    Way("BAM -l 1", "bam", ["-l", "1"], "BAM -l 1"),
    Way("Arrow, LZ4", "arrow", [], "BAM -l 1", 1.0),
    Way("Arrow, uncompressed", "arrow", ["-u"], "BAM -l 1"),
    Way("BAM", "bam", [], "BAM"),
    Way("Arrow, zstd 2", "arrow", ["-l", "2"], "BAM"),
    Way("Parquet", "parquet", [], "BAM", 0.8, 0.95),
]

# A question, who answers it, with which words, and the largest ratios to samtools and to pysam.
Question = collections.namedtuple("Question", "what who command samtools pysam",
                                  defaults=[None, None])

HISTOGRAMS_DUCKDB = """
import sys, duckdb
duckdb.sql("set threads to 2")
duckdb.sql("set enable_progress_bar = false")
for column in ("mapq", "abs(tlen)"):
    rows = duckdb.sql(f"select {column} as x, count(*) from '{sys.argv[1]}' group by x order by x")
    print(column, sum(x * n for x, n in rows.fetchall()))
"""

HISTOGRAMS_PYSAM = """
import collections, sys, pysam
mapqs, sizes = collections.Counter(), collections.Counter()
for read in pysam.AlignmentFile(sys.argv[1], threads=2).fetch(until_eof=True):
    mapqs[read.mapping_quality] += 1
    sizes[abs(read.template_length)] += 1
print("mapq", sum(x * n for x, n in mapqs.items()))
print("abs(tlen)", sum(x * n for x, n in sizes.items()))
"""

HISTOGRAMS_AWK = """{ mapq[$5]++; size[$9 < 0 ? -$9 : $9]++ }
END { for (x in mapq) a += x * mapq[x]; for (x in size) b += x * size[x]
      printf "mapq %d\\nabs(tlen) %d\\n", a, b }"""

# Regions come from argument 2, a file of lines: reference, first and last base.
REGIONS_DUCKDB = """
import sys, duckdb
duckdb.sql("set threads to 2")
duckdb.sql("set enable_progress_bar = false")
rows = duckdb.sql(f'''
    select region, sum(pos), sum(flag), sum(mapq), sum(tlen), sum(length(cigar))
    from (select row_number() over () as region, * from read_csv('{sys.argv[2]}', delim='\\t',
          header=false, names=['name', 'first', 'last'])) join '{sys.argv[1]}' as reads
    on rname = name and pos <= last and "end" >= first
    where flag & 4 = 0 group by region''').fetchall()
print(len(rows), *[sum(row[i] for row in rows) for i in range(1, 6)])
"""

REGIONS_PYSAM = """
import sys, pysam
bam = pysam.AlignmentFile(sys.argv[1])
found, sums = 0, [0] * 5
for line in open(sys.argv[2]):
    name, first, last = line.split()
    n = 0
    for read in bam.fetch(name, int(first) - 1, int(last)):
        if read.flag & 4:
            continue
        n += 1
        sums[0] += read.reference_start + 1
        sums[1] += read.flag
        sums[2] += read.mapping_quality
        sums[3] += read.template_length
        sums[4] += len(read.cigarstring or "")
    found += n > 0
print(found, *sums)
"""


def python(script):
    return lambda upstream, path, regions: [sys.executable, "-c", script, path, regions]


def view_and_awk(upstream, path, _):
    return ["sh", "-c", "\"$0\" view -@2 \"$1\" | awk \"$2\"", upstream, path, HISTOGRAMS_AWK]


HISTOGRAMS, REGIONS = "histograms of all reads", "1,000 regions, 5 columns"
QUESTIONS = [
    Question(HISTOGRAMS, "DuckDB", python(HISTOGRAMS_DUCKDB), 0.05, 0.02),
    Question(HISTOGRAMS, "samtools", view_and_awk),
    Question(HISTOGRAMS, "pysam", python(HISTOGRAMS_PYSAM)),
    Question(REGIONS, "DuckDB", python(REGIONS_DUCKDB), None, 0.5),
    Question(REGIONS, "pysam", python(REGIONS_PYSAM)),
]


# Another process counts the rows: Linux reports for a child at least the peak memory of its parent, so
# this process must stay small.
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


def run_once(way, words, upstream, source, records, folder, cold_memory):
    with room_for_run(folder, way.ending) as room:
        prepare(source, 0 if cold_memory else 2 * MEMORY_MIB * MIB)
        command = [*words, "-@2", "-m", "%dM" % (MEMORY_MIB // 2), *way.options, "-T",
                   room.temp_dir, "-o", room.output, source]
        result = run_measured(command, room)
        found = (count_records(upstream, room.output) if way.ending == "bam"
                 else count_rows(room.output))
        if found not in (records, None):
            raise BenchError("%s has %d records of %d" % (way.name, found, records))
    result.update(who=way.name, point="", command=shlex.join(command))
    return result


def measure(args, words, upstream, source, records, folder):
    ways = {way.name: way for way in WAYS}
    return run_in_turn("columns", list(ways), args.repeats,
                       lambda name: run_once(ways[name], words, upstream, source, records, folder,
                                             args.cold_memory))


def table(runs):
    yield "| output | wall s | CPU s | peak RSS MiB | MB | wall (target) | CPU | size (target) | of |"
    yield "|---|---|---|---|---|---|---|---|---|"
    got = {way.name: medians_of([r for r in runs if r["who"] == way.name]) for way in WAYS}
    for way in WAYS:
        m, other = got[way.name], got[way.versus]
        yield "| %s | %.2f | %.2f | %.0f | %.1f | %s | %.2f | %s | %s |" % (
            way.name, m["wall_s"], m["cpu_s"], m["rss_bytes"] / MIB, m["output_bytes"] / 1e6,
            verdict(m["wall_s"] / other["wall_s"], way.wall), m["cpu_s"] / other["cpu_s"],
            verdict(m["output_bytes"] / other["output_bytes"], way.size), way.versus)


# ---- questions ----


def can_ask():
    words = [sys.executable, "-c", "import duckdb, pyarrow, pysam; print('yes')"]
    return output_of(words).strip() == "yes"


def make_regions(upstream, path, out):
    """1,000 random regions of 1,000 bases, in order."""
    lengths = [line.split("\t")[:2] for line in
               output_of([upstream, "idxstats", path]).splitlines() if line[0] != "*"]
    lengths = [(name, int(length)) for name, length in lengths if int(length) > 2000]
    rng = random.Random(1)
    weights = [length for _, length in lengths]
    regions = []
    for name, length in rng.choices(lengths, weights, k=1000):
        first = rng.randrange(1, length - 1000)
        regions.append((name, first, first + 999))
    with open(out, "w", encoding="ascii") as file:
        for region in sorted(regions):
            file.write("%s\t%d\t%d\n" % region)


def ask(args, words, upstream, source, folder):
    """The runs of all questions. Answers must agree."""
    bam, parquet = os.path.join(folder, "q.bam"), os.path.join(folder, "q.parquet")
    regions = os.path.join(folder, "regions")
    for path in (bam, parquet):
        done = subprocess.run([*words, "--quiet", "-@2", *(["--write-index"] if path == bam else []),
                               "-o", path, source], check=False)
        if done.returncode != 0:
            raise BenchError("cannot make %s" % path)
    make_regions(upstream, bam, regions)
    runs, answers = [], {}
    for repeat, number in in_turn(list(range(len(QUESTIONS))), args.repeats):
        question = QUESTIONS[number]
        path = parquet if question.who == "DuckDB" else bam
        command = question.command(upstream, path, regions)
        prepare(path, 0)
        log = os.path.join(folder, "answer")
        begin = time.monotonic()
        with open(log, "w+b") as out:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, check=False)
            wall_s = time.monotonic() - begin
            out.seek(0)
            answer = out.read()
        if done.returncode != 0 or answers.setdefault(question.what, answer) != answer:
            raise BenchError("%s: %s answers %r, another one %r" % (
                question.what, question.who, answer, answers.get(question.what)))
        runs.append({"what": question.what, "who": question.who, "wall_s": wall_s,
                     "repeat": repeat})
        progress("columns: %s, %s: %.2f s" % (question.what, question.who, wall_s))
    return runs


def question_table(runs):
    yield "\n| question | asked by | wall s | of samtools and awk (target) | of pysam (target) |"
    yield "|---|---|---|---|---|"
    got = {}
    for run in runs:
        got.setdefault((run["what"], run["who"]), []).append(run["wall_s"])
    got = {key: statistics.median(values) for key, values in got.items()}
    for question in QUESTIONS:
        wall_s = got[question.what, question.who]
        ratios = [verdict(wall_s / got[question.what, other], target, "%.3f")
                  if (question.what, other) in got else ""
                  for other, target in (("samtools", question.samtools), ("pysam", question.pysam))]
        yield "| %s | %s | %.2f | %s | %s |" % (question.what, question.who, wall_s, *ratios)


def bench(args):
    upstream = find_upstream(args.samtools)
    words = find_rocksort(args.rocksort)
    check_paths(args)
    scratch = tempfile.mkdtemp(prefix="rocksort-columns-", dir=args.dir)
    try:
        source = choose_input("columns", args, scratch)
        records = source.records or count_records(upstream, source.path)
        need_disk(args.dir, records * BYTES_A_RECORD)
        runs = measure(args, words, upstream, source.path, records, scratch)
        asked = ask(args, words, upstream, source.path, scratch) if can_ask() else []
        said = {"rocksort": output_of(words + ["--version"]).splitlines()[0]}
        said.update(machine())
        said["input"] = said_of_input(source, records)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    head = "Medians of %d runs each, in turn, two threads, %d MiB; MB are 10^6 bytes.\n" % (
        args.repeats, MEMORY_MIB)
    lines = [head, *table(runs), *(question_table(asked) if asked else ())]
    report(args, "\n".join(lines), said, records=records, runs=runs, questions=asked)


if __name__ == "__main__":
    sys.exit(run_main("columns", lambda: bench(make_parser(__doc__, "6M").parse_args())))
