#!/usr/bin/env python3
"""Compares sorts to columns with sorts to BAM, in time and in size.

    bench/columns.py                            6 M simulated records, 3 repeats
    bench/columns.py --reads a.bam b.bam        6 M real reads, tiled from these

Each sort has two threads and 512 MiB. A result must have all records, if this Python has pyarrow to
count them. Files go to a new directory in --dir, which is removed at the end. Exit code: 0 if all
runs worked, otherwise 1.
"""

import collections
import os
import shlex
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
from bench_input import choose_input, said_of_input
from measure import (MIB, BenchError, check_paths, count_records, find_rocksort, find_upstream,
                     in_turn, machine, make_parser, medians_of, need_disk, output_of, prepare,
                     progress, report, run_main, run_measured, said_of_run, verdict)

MEMORY_MIB = 512
# Input, temporary data and the largest output, for a record.
BYTES_A_RECORD = 1200

# ending: of the output's name. versus: the way that it is compared with; wall, size: the largest
# ratios to that; None: no target.
Way = collections.namedtuple("Way", "name ending options versus wall size", defaults=[None, None])

WAYS = [
    Way("BAM -l 1", "bam", ["-l", "1"], "BAM -l 1"),
    Way("Arrow, LZ4", "arrow", [], "BAM -l 1", 1.0),
    Way("Arrow, uncompressed", "arrow", ["-u"], "BAM -l 1"),
    Way("BAM", "bam", [], "BAM"),
    Way("Arrow, zstd 2", "arrow", ["-l", "2"], "BAM"),
]


# Another process counts: a program's peak memory is never below that of the process which starts it.
COUNT = """
import sys
try:
    import pyarrow.ipc
except ImportError:
    sys.exit()
reader = pyarrow.ipc.open_file(pyarrow.memory_map(sys.argv[1]))
print(sum(reader.get_batch(i).num_rows for i in range(reader.num_record_batches)))
"""


def count_rows(path):
    """None without pyarrow."""
    text = output_of([sys.executable, "-c", COUNT, path])
    return int(text) if text.strip() else None


def run_once(way, words, upstream, source, records, folder, cold_memory):
    output = os.path.join(folder, "out." + way.ending)
    temp_dir = os.path.join(folder, "temp")
    os.mkdir(temp_dir)
    try:
        prepare(source, 0 if cold_memory else 2 * MEMORY_MIB * MIB)
        command = [*words, "-@2", "-m", "%dM" % (MEMORY_MIB // 2), *way.options, "-T",
                   os.path.join(temp_dir, "t"), "-o", output, source]
        result = run_measured(command, temp_dir, output, temp_dir + ".log")
        found = count_records(upstream, output) if way.ending == "bam" else count_rows(output)
        if found not in (records, None):
            raise BenchError("%s has %d records of %d" % (way.name, found, records))
    finally:
        shutil.rmtree(temp_dir, ignore_errors=True)
        if os.path.exists(output):
            os.unlink(output)
    result.update(who=way.name, point="", command=shlex.join(command))
    return result


def measure(args, words, upstream, source, records, folder):
    ways = {way.name: way for way in WAYS}
    runs = []
    for repeat, name in in_turn(list(ways), args.repeats):
        result = run_once(ways[name], words, upstream, source, records, folder, args.cold_memory)
        result["repeat"] = repeat
        runs.append(result)
        progress("columns: " + said_of_run(result, args.repeats))
    return runs


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
        said = {"rocksort": output_of(words + ["--version"]).splitlines()[0]}
        said.update(machine())
        said["input"] = said_of_input(source, records)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    head = "Medians of %d runs each, in turn, two threads, %d MiB; MB are 10^6 bytes.\n" % (
        args.repeats, MEMORY_MIB)
    report(args, "\n".join([head, *table(runs)]), said, records=records, runs=runs)


if __name__ == "__main__":
    sys.exit(run_main("columns", lambda: bench(make_parser(__doc__, "6M").parse_args())))
