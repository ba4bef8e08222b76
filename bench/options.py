#!/usr/bin/env python3
"""Measures what options of `samtools rocksort` cost or save, compared with a sort without them.

An experiment has several ways to sort. They run in turn on the same input, and each repeat swaps
their order. The table shows medians, and the median of the ratios to the first way.

    bench/options.py                          all but slow-levels, 6 M records, 5 repeats
    bench/options.py --experiments codec      some experiments
    bench/options.py --list                   names of all experiments

Sorts that can be resumed cost more in two ways, which --no-resume avoids: RocksDB syncs its files
from half a minute after the first run on, and records from a pipe are written even if they would
fit into memory.
The way `no syncs` also leaves out the syncs of the output, by build/fault_inject.so.

All files go to a new directory in --dir, which is removed at the end. Exit code: 0 if all runs
worked, otherwise 1.
"""

import collections
import os
import shlex
import statistics
import sys

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
from bench_input import prepared
from measure import (MIB, ROOT, BenchError, add_list, machine, make_parser, medians_of, name_list,
                     prepare, report, room_for_run, run_in_turn, run_main, run_measured)

FAULTS = os.path.join(ROOT, "build", "fault_inject.so")
# Both ways load the library, since it takes some time itself.
COUNTED = "fsync:1000000000:skip"
SKIPPED = "fsync:1+:skip,fdatasync:1+:skip"

WARM_MEMORY_BYTES = 3 << 30

# `ways`: {name: options}; others are compared with the first. `faults`: {name: faults}.
# `buffers`: {name: bytes of a sort buffer, each of which becomes a run}.
Experiment = collections.namedtuple("Experiment", "title options ways pipe faults buffers",
                                    defaults=[False, {}, {}])

SMALL = ["-l", "1", "-@2", "-m32M"]
LARGE = ["-l", "1", "-@2", "-m256M"]
LEVELED = ["--deflate", "libdeflate", "-@2", "-m256M"]
DURABLE = {"as it is": [], "--no-resume": ["--no-resume"], "no syncs": ["--no-resume"]}
NO_SYNCS = {"as it is": COUNTED, "--no-resume": COUNTED, "no syncs": SKIPPED}
CODECS = {codec: ["--temp-codec", codec] for codec in ("auto", "none", "snappy", "lz4", "zstd")}
DEFLATE = {engine: ["--deflate", engine] for engine in ("libdeflate", "igzip", "zlib")}
LEVELS = {"-l %d" % level: ["-l", str(level)] for level in (6, 1, 2, 3, 4, 5, 7)}
SLOW_LEVELS = {"-l %d" % level: ["-l", str(level)] for level in (6, 8, 9)}
# A run is about two thirds of a sort buffer. The smallest make 10,000 runs of the 6 M records
# that are the default; with this budget so many are not compacted.
BUFFERS = {"sort buffers of 64 MB": "64M", "of 4 MB": "4M", "of 1 MB": "1M", "of 96 KB": "96K"}
BUFFERS_BUDGET = "1600M"
COMPACTION = {"-s off": ["-s", "off"], "-s auto": ["-s", "auto"]}

EXPERIMENTS = {
    "durable": Experiment("resumable, 64 MB", SMALL, DURABLE, False, NO_SYNCS),
    "durable-512M": Experiment("resumable, 512 MB", LARGE, DURABLE, False, NO_SYNCS),
    "durable-pipe": Experiment("resumable, a pipe, 512 MB", LARGE, DURABLE, True, NO_SYNCS),
    "reports": Experiment("reports, 64 MB", SMALL,
                          {"--quiet": ["--quiet"],
                           "--progress --report": ["--progress", "--report", "{temp}/stats"],
                           "--flagstat --idxstats --coverage":
                               ["--flagstat", "{temp}/f", "--idxstats", "{temp}/i", "--coverage",
                                "{temp}/c"]}),
    "codec": Experiment("codec, 64 MB", SMALL, CODECS),
    "codec-512M": Experiment("codec, 512 MB", LARGE, CODECS),
    "compaction": Experiment("compaction, 64 MB", SMALL, COMPACTION),
    "compaction-pipe": Experiment("compaction, a pipe, 64 MB", SMALL, COMPACTION, True),
    "runs": Experiment("many runs", SMALL, dict.fromkeys(BUFFERS, []), buffers=BUFFERS),
    "deflate": Experiment("-l 1, 512 MB", LARGE, DEFLATE),
    "levels": Experiment("level, 512 MB", LEVELED, LEVELS),
    "slow-levels": Experiment("level, 512 MB", LEVELED, SLOW_LEVELS),
}
ONLY_IF_NAMED = ("slow-levels",)        # minutes a run


def parse_arguments():
    parser = make_parser(__doc__, "6M")
    parser.set_defaults(repeats=5)
    parser.add_argument("--experiments", metavar="LIST", type=name_list("experiment", EXPERIMENTS),
                        default=[name for name in EXPERIMENTS if name not in ONLY_IF_NAMED],
                        help="comma-separated names of --list [all but slow-levels]")
    add_list(parser, {name: "%s: %s" % (e.title, ", ".join(e.ways))
                      for name, e in EXPERIMENTS.items()})
    return parser.parse_args()


def run_once(name, way, setting):
    """One run of an experiment in one of its ways."""
    experiment = EXPERIMENTS[name]
    words = [word.format(temp=setting.scratch) for word in experiment.ways[way]]
    faults, buffer = experiment.faults.get(way), experiment.buffers.get(way)
    with room_for_run(setting.scratch) as room:
        command = (setting.rocksort + experiment.options + words
                   + ["-T", room.temp_dir, "-o", room.output])
        if faults:
            command = ["env", "LD_PRELOAD=" + FAULTS, "FAULT=" + faults] + command
        if buffer:
            command = ["env", "ROCKSORT_TEST_SORT_BUFFER=" + buffer,
                       "ROCKSORT_TEST_BUDGET=" + BUFFERS_BUDGET] + command
        if experiment.pipe:
            command = ["sh", "-c", "cat %s | exec %s -" % (shlex.quote(setting.input),
                                                           shlex.join(command))]
        else:
            command = command + [setting.input]
        prepare(setting.input, 0 if setting.cold_memory else WARM_MEMORY_BYTES)
        result = run_measured(command, room)
    result.update(who=way, point=name, command=shlex.join(command))
    return result


def ratio(runs, others, key):
    """Median, smallest and largest of the ratios of all repeats."""
    ratios = sorted(a[key] / b[key] for a, b in zip(runs, others))
    return "%.3f (%.2f-%.2f)" % (statistics.median(ratios), ratios[0], ratios[-1])


def table(runs, names):
    yield ("| experiment | way | wall s | ratio (least-most) | CPU s | ratio | RSS MiB | temp MB "
           "| output MB | ratio |")
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for name in names:
        first = None
        for way in EXPERIMENTS[name].ways:
            mine = [r for r in runs if r["point"] == name and r["who"] == way]
            first = first or mine
            m = medians_of(mine)
            yield "| %s | %s | %.2f | %s | %.2f | %s | %.0f | %.0f | %.1f | %.3f |" % (
                EXPERIMENTS[name].title, way, m["wall_s"], ratio(mine, first, "wall_s"),
                m["cpu_s"], ratio(mine, first, "cpu_s"), m["rss_bytes"] / MIB,
                m["temp_bytes"] / 1e6, m["output_bytes"] / 1e6,
                m["output_bytes"] / medians_of(first)["output_bytes"])


def bench(args):
    if any(EXPERIMENTS[name].faults for name in args.experiments) and not os.path.exists(FAULTS):
        raise BenchError("%s is missing: run `make %s`" % (FAULTS, os.path.relpath(FAULTS, ROOT)))
    with prepared("options", args, input_factor=4) as setting:
        runs = run_in_turn("options", [(name, EXPERIMENTS[name].ways) for name in args.experiments],
                           args.repeats, lambda way, name: run_once(name, way, setting))
    said = dict(machine(), input=setting.said)
    head = "Medians of %d runs each, in turn, 2 threads.\n" % args.repeats
    report(args, "\n".join([head, *table(runs, args.experiments)]), said, runs=runs)


if __name__ == "__main__":
    sys.exit(run_main("options", lambda: bench(parse_arguments())))
