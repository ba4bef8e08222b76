#!/usr/bin/env python3
"""Compares `samtools rocksort --fixmate --markdup` with chains of programs for the same job.

The job is what follows an aligner: mates, sorting, duplicates. The input is grouped by name, as an
aligner writes it; 15 % of the simulated pairs are duplicates. All ways get the same input, threads
and memory, and run in turn; each repeat swaps their order. The first table has medians, and ratios
to the way `one pass` of the same level; the second holds the ratios of rocksort's own ways against
their targets. All files are deflated by libdeflate, as samtools does it, unless --deflate names
others for rocksort: then each of its ways runs with each of them. Igzip has level 1 only; auto is
what users get.

    bench/one_pass.py                             rocksort and the samtools on PATH
    bench/one_pass.py --peers                     also the others that are installed
    bench/one_pass.py --ways one-pass,samtools --levels 1,default --input in.bam --repeats 5
    bench/one_pass.py --levels 1 --deflate libdeflate,igzip
    bench/one_pass.py --reads a.bam b.bam         6 M real reads, tiled from these
    bench/one_pass.py --list                      names of all ways

Each first result is checked: bench/bamcheck.py finds it sorted, it has as many records as the
input, and as many primary duplicates as that of `one pass`, within what the program promises. The
memory is the sum of all programs of a chain that run at the same time.

As in bench.py the input is in the page cache, and memory is touched before each run. Tiled reads
stay in --dir for the next benchmark; all other files go to a new directory there, which is removed
at the end. Exit code: 0 if all results are right,
even if a target was missed, otherwise 1.
"""

import collections
import re
import shlex
import sys

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
from bench_input import prepared
from compare import scan
from measure import (MIB, BenchError, add_list, count_records, machine, make_parser, medians_at,
                     name_list, need_records, prepare, progress, report, room_for_run, run_in_turn,
                     run_main, run_measured, verdict)
from peers import CHAINS, ChainJob, chain_version, find_chain

N_THREADS = 2
MEMORY_BYTES = 512 * MIB
DEFAULT_LEVEL = 6
DUPLICATE_PERCENT = 15
WARM_MEMORY_BYTES = 4 << 30

# A chain, and what deflates the result of one that rocksort writes, else None. The first of
# --deflate is not in the name, so that targets and the number of duplicates find it.
Way = collections.namedtuple("Way", "name title chain engine")
ENGINES = ("libdeflate", "auto", "igzip", "zlib")

# Ratios of two ways at one level: the largest of wall clock and of CPU, or None.
Target = collections.namedtuple("Target", "level way other wall cpu")
TARGETS = [
    Target("1", "one-pass", "samtools", 0.42, 0.52),
    Target("default", "one-pass", "samtools", 0.65, None),
    Target("default", "one-pass:auto", "samtools", 0.48, None),
    Target("1", "one-pass", "dupblaster-mako", 0.75, 0.80),
    Target("1", "one-pass", "sort", 1.15, 1.20),
    Target("1", "one-pass-S", "sort", 1.25, 1.25),
    Target("1", "one-pass-reports", "one-pass", 1.02, 1.02),
]


def parse_arguments():
    parser = make_parser(__doc__, "6M")
    known = {chain.name: chain for chain in CHAINS}
    parser.add_argument("--ways", metavar="LIST", type=name_list("way", known),
                        help="comma-separated names of --list [those that need only samtools]")
    parser.add_argument("--peers", action="store_true", help="all ways whose programs are there")
    parser.add_argument("--levels", metavar="LIST", default=["1", "default"],
                        type=name_list("level", [*"0123456789", "default"]),
                        help="compression levels [1,default]")
    parser.add_argument("--deflate", metavar="LIST", default=["libdeflate"],
                        type=name_list("encoder", ENGINES),
                        help="what deflates rocksort's results, of %s; with several there are "
                        "several ways [libdeflate]" % ", ".join(ENGINES))
    add_list(parser, {chain.name: chain.title for chain in CHAINS})
    args = parser.parse_args()
    names = args.ways or [chain.name for chain in CHAINS if args.peers or not chain.executables]
    if args.deflate == ["igzip"] and args.levels != ["1"]:
        parser.error("--deflate igzip has level 1 only: give --levels 1, or name others, too")
    args.chains = [known[name] for name in names]
    return args


def ways_of(args, level):
    """The ways at a level."""
    engines = [engine for engine in args.deflate if engine != "igzip" or level == "1"]
    found = []
    for chain in args.chains:
        for engine in engines if chain.writes else [None]:
            is_first = engine in (None, engines[0])
            found.append(Way(chain.name if is_first else "%s:%s" % (chain.name, engine),
                             chain.title + (", " + engine if engine else ""), chain, engine))
    return found


# ---- checking a result ----


class Checker:
    """Checks the first result of each way. `duplicates`: primary ones, by the way's name."""

    def __init__(self, setting):
        self.setting = setting
        self.duplicates = {}

    def check(self, way, path):
        if way.name in self.duplicates:
            return
        got = scan(path)
        if "error" in got:
            raise BenchError("the result of %s %s" % (way.name, got["error"]))
        if got["first_unsorted"] is not None:
            raise BenchError("the result of %s is not sorted: record %d comes before the one in "
                             "front of it" % (way.name, got["first_unsorted"] + 1))
        need_records(self.setting.samtools, path, self.setting.records, way.name)
        n = count_records(self.setting.samtools, path, "-f", "1024", "-F", "2304")
        want = self.duplicates.get("one-pass")
        tolerance = way.chain.tolerance
        if tolerance is not None and want is not None:
            if abs(n - want) > tolerance * want:
                raise BenchError("%s marked %d reads, one pass %d" % (way.name, n, want))
        self.duplicates[way.name] = n


# ---- running ----


def run_once(way, level, setting, checker):
    number = DEFAULT_LEVEL if level == "default" else int(level)
    if way.engine == "auto" and level == "default":
        number = None           # rocksort's own
    rocksort = setting.rocksort + (["--deflate", way.engine] if way.engine else [])
    with room_for_run(setting.scratch) as room:
        job = ChainJob(shlex.quote(setting.input), shlex.quote(room.output),
                       shlex.quote(room.temp_dir), MEMORY_BYTES, N_THREADS, number,
                       shlex.join(rocksort), shlex.quote(setting.samtools))
        text = way.chain.command(job)
        prepare(setting.input, 0 if setting.cold_memory else WARM_MEMORY_BYTES)
        # exec: a way of one program is one process. A chain fails if one of its programs does.
        shell = ["bash", "-o", "pipefail", "-c", text if re.search("[|&;]", text)
                 else "exec " + text]
        result = run_measured(shell, room)
        checker.check(way, room.output)
    result.update(who=way.name, point=level, command=text, deflate=way.engine)
    return result


# ---- tables ----


def level_title(level):
    return "default" if level == "default" else "`-l %s`" % level


def table(runs, args, duplicates):
    yield ("| level | way | wall s | ratio | CPU s | ratio | peak RSS MiB | temporary MB "
           "| output MB | duplicates |")
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for level in args.levels:
        base = medians_at(runs, level, "one-pass")
        for way in ways_of(args, level):
            m = medians_at(runs, level, way.name)
            ratios = ["%.2f" % (m[key] / base[key]) if base else "-" for key in ("wall_s", "cpu_s")]
            yield "| %s | %s | %.2f | **%s** | %.2f | %s | %.0f | %.0f | %.1f | %d |" % (
                level_title(level), way.title, m["wall_s"], ratios[0], m["cpu_s"], ratios[1],
                m["rss_bytes"] / MIB, m["temp_bytes"] / 1e6, m["output_bytes"] / 1e6,
                duplicates.get(way.name, 0))


def target_table(runs):
    yield "| level | way | against | wall ratio (target) | CPU ratio (target) |"
    yield "|---|---|---|---|---|"
    for t in TARGETS:
        mine, other = medians_at(runs, t.level, t.way), medians_at(runs, t.level, t.other)
        if mine and other:
            yield "| %s | %s | %s | %s | %s |" % (
                level_title(t.level), t.way, t.other,
                verdict(mine["wall_s"] / other["wall_s"], t.wall),
                verdict(mine["cpu_s"] / other["cpu_s"], t.cpu))


def bench(args):
    missing = {chain.name: chain.install for chain in args.chains if not find_chain(chain)}
    args.chains = [chain for chain in args.chains if chain.name not in missing]
    for name, install in missing.items():
        progress("one_pass: %s is not installed: %s" % (name, install))
    # Sambamba sorts into an uncompressed file.
    with prepared("one_pass", args, 1500, 8, ["-d", str(DUPLICATE_PERCENT)]) as setting:
        checker = Checker(setting)
        runs = run_in_turn("one_pass", [(level, ways_of(args, level)) for level in args.levels],
                           args.repeats, lambda way, level: run_once(way, level, setting, checker))
    said = {chain.name: chain_version(chain, setting.rocksort, setting.samtools)
            for chain in args.chains}
    said["input"] = setting.said
    said.update(machine())
    head = ("Medians of %d runs each, in turn, %d threads, %d MiB; ratios are to `one pass` of the "
            "same level. MB are 10^6 bytes.\n" % (args.repeats, N_THREADS, MEMORY_BYTES // MIB))
    left_out = ["- %s was left out: it needs `%s`" % item for item in missing.items()]
    report(args, "\n".join([head, *table(runs, args, checker.duplicates), "", *target_table(runs),
                            "", *left_out]).rstrip("\n"), said, records=setting.records, runs=runs)


if __name__ == "__main__":
    sys.exit(run_main("one_pass", lambda: bench(parse_arguments())))
