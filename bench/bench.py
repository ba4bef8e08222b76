#!/usr/bin/env python3
"""Compares `samtools rocksort` with the `samtools sort` on PATH: time, memory, disk.

At each point both programs get the same input, level, threads and total memory. They run in turn,
and each repeat swaps their order. The input is read into the page cache before each run. The table
shows medians, and the ratios rocksort / samtools beside their targets. Each result of rocksort is
checked (quickcheck, record count).

    bench/bench.py                            all points, 6 M simulated records, 3 repeats
    bench/bench.py --points l1-64M,u-512M     some points
    bench/bench.py --list                     names of all points
    bench/bench.py --reads a.bam b.bam        6 M real reads, tiled from these
    bench/bench.py --reads debian-long        real long reads of a Debian package, as many bytes

Tiled reads stay in --dir for the next benchmark (bench/tile-reads.py says what tiling is).

Before each run a helper process touches and frees as much memory as the run may need. The reason: a
virtual machine gives memory that has been free for some seconds back to its host (free page
reporting, balloons), and the program that touches it next pays ten times as much as on a machine
that owns its memory. `--cold-memory` leaves this out, for comparison.

All other files go to a new directory in --dir, which is removed at the end. Exit code: 0 if all runs
worked, even if a target was missed, otherwise 1.
"""

import collections
import os
import shlex
import subprocess
import sys

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
from bench_input import prepared
from measure import (MIB, BenchError, add_list, describe, make_parser, medians_at, name_list,
                     need_records, prepare, report, room_for_run, run_in_turn, run_main,
                     run_measured, verdict)

# options: for both programs; ours: for rocksort only. wall, cpu, rss: the largest ratios of wall
# and CPU, and the largest peak RSS in MiB (None: no target).
Point = collections.namedtuple("Point", "name title options ours wall cpu rss",
                               defaults=[None, None, None])

# By default rocksort deflates as users get it: at level 1 by igzip, where that is built in, and at
# the default level by its own encoder.
SAME_LIBRARY = ["--deflate", "libdeflate"]
POINTS = [
    Point("l1-512M", "`-l 1`, 512 MB", ["-l", "1", "-@2", "-m256M"], [], 0.43, 0.47, 576),
    Point("l1-512M-libdeflate", "`-l 1`, 512 MB, `--deflate libdeflate`",
          ["-l", "1", "-@2", "-m256M"], SAME_LIBRARY, 0.55, 0.62, 576),
    Point("l1-64M", "`-l 1`, 64 MB", ["-l", "1", "-@2", "-m32M"], [], 0.45, 0.50, 128),
    Point("u-512M", "`-u`, 512 MB", ["-u", "-@2", "-m256M"], [], 0.42, 0.50, 576),
    Point("default-512M", "default level, 512 MB", ["-@2", "-m256M"], [], 0.44, 0.42, 576),
    Point("default-512M-libdeflate", "default level, 512 MB, `--deflate libdeflate`",
          ["-@2", "-m256M"], SAME_LIBRARY, 0.76, 0.78, 576),
    Point("l1-memory", "`-l 1`, all in memory (3 GB)", ["-l", "1", "-@2", "-m1536M"], [],
          0.52, 0.60, 3072 + 64),
    Point("n-512M", "`-n -l 1`, 512 MB", ["-n", "-l", "1", "-@2", "-m256M"], [], None, None, 576),
    Point("cram-512M", "CRAM, `no_ref=1`, 512 MB",
          ["-O", "cram,no_ref=1", "-@2", "-m256M"], [], 0.65, None, 576),
]
# No sort: shows what decoding and encoding alone cost.
COPY = Point("copy", "plain copy: `samtools view -b -1 -@2`", ["-b", "-1", "-@2"], [])

# Output and temporary data of a run, for a byte of the input: 4 for long reads, 6.4 for short ones.
RUN_BYTES_A_BYTE = 4
# Input bytes a record that only long reads have. There are no targets for them.
LONG_BYTES = 1000

# Program and output of the largest point together.
WARM_MEMORY_BYTES = 5 << 30


def parse_arguments():
    parser = make_parser(__doc__, "6M")
    known = {p.name: p for p in POINTS + [COPY]}
    parser.add_argument("--points", metavar="LIST", type=name_list("point", known),
                        default=list(known), help="comma-separated names of --list [all]")
    add_list(parser, {p.name: p.title for p in known.values()})
    args = parser.parse_args()
    args.points = [known[name] for name in args.points]
    return args


def check_result(upstream, path, records):
    done = subprocess.run([upstream, "quickcheck", "-v", path], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        raise BenchError("samtools quickcheck rejects rocksort's result: "
                         + done.stdout.decode(errors="replace"))
    need_records(upstream, path, records, "rocksort")


def run_once(who, point, setting):
    """One run of `who` (rocksort, samtools or copy) at the point."""
    with room_for_run(setting.scratch) as room:
        if who == "copy":
            command = [setting.samtools, "view"] + point.options
        else:
            command = ([*setting.rocksort, *point.ours] if who == "rocksort"
                       else [setting.samtools, "sort"])
            command = command + point.options + ["-T", room.temp_dir]
        command = command + ["-o", room.output, setting.input]
        prepare(setting.input, 0 if setting.cold_memory else WARM_MEMORY_BYTES)
        result = run_measured(command, room)
        if who == "rocksort":
            check_result(setting.samtools, room.output, setting.records)
            left = os.listdir(room.temp_dir)
            if left:
                raise BenchError("rocksort left temporary files: %s" % ", ".join(left[:5]))
    result.update(who=who, point=point.name, command=shlex.join(command))
    return result


def programs_of(point):
    return ["copy"] if point.name == "copy" else ["rocksort", "samtools"]


def table(runs, points):
    yield ("| point | program | wall s | CPU s | peak RSS MiB | temp MB | output MB "
           "| wall ratio (target) | CPU ratio (target) |")
    yield "|---|---|---|---|---|---|---|---|---|"
    for point in points:
        got = {who: medians_at(runs, point.name, who) for who in programs_of(point)}
        for who, m in got.items():
            ratios = ("", "")
            rss = "%.0f" % (m["rss_bytes"] / MIB)
            if who == "rocksort":
                other = got["samtools"]
                ratios = (verdict(m["wall_s"] / other["wall_s"], point.wall),
                          verdict(m["cpu_s"] / other["cpu_s"], point.cpu))
                rss = verdict(m["rss_bytes"] / MIB, point.rss, "%.0f")
            yield "| %s | %s | %.2f | %.2f | %s | %.0f | %.1f | %s | %s |" % (
                point.title, "samtools" if who == "copy" else who, m["wall_s"], m["cpu_s"], rss,
                m["temp_bytes"] / 1e6, m["output_bytes"] / 1e6, *ratios)


def bench(args):
    with prepared("bench", args, input_factor=RUN_BYTES_A_BYTE) as setting:
        runs = run_in_turn("bench", [(point, programs_of(point)) for point in args.points],
                           args.repeats, lambda who, point: run_once(who, point, setting))
    said = dict(describe(setting.rocksort, setting.samtools), input=setting.said)
    said["free memory"] = "as it comes" if args.cold_memory else "touched before each run"
    has_targets = setting.size / setting.records < LONG_BYTES
    head = ("Medians of %d runs each, programs in turn, 2 threads; MB are 10^6 bytes, the memory "
            "in the points' names 2^20.%s\n"
            % (args.repeats, " The targets are for 6 M short reads." if has_targets else ""))
    points = [p if has_targets else p._replace(wall=None, cpu=None) for p in args.points]
    report(args, "\n".join([head, *table(runs, points)]), said, records=setting.records, runs=runs)


if __name__ == "__main__":
    sys.exit(run_main("bench", lambda: bench(parse_arguments())))
