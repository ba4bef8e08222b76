#!/usr/bin/env python3
"""Compares `samtools rocksort --merge` with other programs that merge sorted BAM files.

Two inputs are made of the reads, with 8 files each: `lanes` cover the same places, so their records
have to be merged; `pieces` follow each other, so their blocks can be copied (`copy` in the table).
Lanes are written at level 1. All programs have two threads.

    bench/merge.py                            6 M simulated records, 3 repeats
    bench/merge.py --reads a.bam b.bam        6 M real reads, tiled from these

Lanes: rocksort deflates as users get it (at level 1 by igzip, where that is built in), and by the
library of samtools. Programs that are not installed are left out. Each result must have all
records, and `rocksort --verify` must say that it is in order.

All files go to a new directory in --dir, which is removed at the end. Exit code: 0 if all runs
worked, otherwise 1.
"""

import collections
import os
import shlex
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
from bench_input import prepared
from measure import (MIB, BenchError, count_records, describe, make_parser, medians_at,
                     need_records, prepare, progress, report, room_for_run, run_in_turn, run_main,
                     run_measured, verdict)

N_FILES = 8
N_THREADS = 2
WARM_MEMORY_BYTES = 3 << 30
# Sorted files, an output and a copy in the making, for a record.
BYTES_A_RECORD = 700

# command(job): words. what: lanes or pieces. executables: one of them must be on PATH; empty: it is
# rocksort's or samtools' own. versus, wall: the largest ratio to that way; None: no target.
Way = collections.namedtuple("Way", "name what executables command versus wall",
                             defaults=[None, None])
Job = collections.namedtuple("Job", "rocksort samtools program inputs output temp_dir",
                             defaults=[None, None])


def rocksort(*options):
    return lambda job: [*job.rocksort, "--merge", "-@", str(N_THREADS), *options, "-o", job.output,
                        *job.inputs]


def samtools(job):
    return [job.samtools, "merge", "-@", str(N_THREADS), "-l", "1", "-o", job.output, *job.inputs]


def sambamba(job):
    return [job.program, "merge", "-t", str(N_THREADS), "-l", "1", job.output, *job.inputs]


def picard(job):
    inputs = [word for path in job.inputs for word in ("-I", path)]
    return [job.program, "MergeSamFiles", "-ASSUME_SORTED", "true", "-USE_THREADING", "true",
            "-COMPRESSION_LEVEL", "1", "-VALIDATION_STRINGENCY", "SILENT", "-TMP_DIR",
            job.temp_dir, "-O", job.output, *inputs]


WAYS = [
    Way("rocksort", "lanes", (), rocksort("-l", "1"), "samtools", 0.50),
    Way("rocksort, libdeflate", "lanes", (), rocksort("-l", "1", "--deflate", "libdeflate"),
        "samtools"),
    Way("samtools", "lanes", (), samtools),
    Way("sambamba", "lanes", ("sambamba",), sambamba, "samtools"),
    Way("picard", "lanes", ("PicardCommandLine", "picard"), picard, "samtools"),
    Way("rocksort, copy", "pieces", (), rocksort("--write-index"), "rocksort, default level", 0.10),
    Way("rocksort, -l 1", "pieces", (), rocksort("--write-index", "-l", "1"),
        "rocksort, default level"),
    Way("rocksort, default level", "pieces", (), rocksort("--write-index", "-l", "6"),
        "rocksort, default level"),
]


# ---- the inputs ----


def run(command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          check=False)
    if done.returncode != 0:
        raise BenchError("exit code %d from: %s" % (done.returncode, command))


def make_lanes(words, upstream, source, folder):
    """Sorted files, each of a random eighth of the reads."""
    paths = []
    for i in range(N_FILES):
        part = os.path.join(folder, "part.bam")
        paths.append(os.path.join(folder, "lane%d.bam" % i))
        run([upstream, "view", "-@2", "-s", "%d.125" % i, "-b", "-1", "--no-PG", "-o", part,
             source])
        run([*words, "--quiet", "--no-PG", "-@2", "-l", "1", "--deflate", "libdeflate", "-o",
             paths[-1], part])
        os.unlink(part)
    return paths


def make_pieces(words, upstream, source, records, folder):
    """The sorted reads, cut into files with an index each."""
    whole, header = os.path.join(folder, "whole.bam"), os.path.join(folder, "header.sam")
    run([*words, "--quiet", "--no-PG", "-@2", "-l", "1", "-o", whole, source])
    run([upstream, "view", "-H", "--no-PG", "-o", header, whole])
    cut = ("{s} view -@2 {w} | split -l {n} -d -a 2 --filter='cat {h} - | {s} view -@2 --no-PG -b "
           "-1 -o \"$FILE.bam\"' - {p}").format(
               s=shlex.quote(upstream), w=shlex.quote(whole), n=-(-records // N_FILES),
               h=shlex.quote(header), p=shlex.quote(os.path.join(folder, "piece")))
    run(["bash", "-c", "set -o pipefail; " + cut])
    os.unlink(whole)
    paths = sorted(os.path.join(folder, name) for name in os.listdir(folder)
                   if name.startswith("piece"))
    for path in paths:
        run([upstream, "index", "-c", path])
    return paths


# ---- running ----


def run_once(way, job, scratch, records, cold_memory):
    """job: all but the places of the result and of temporary files."""
    with room_for_run(scratch) as room:
        for path in job.inputs:
            prepare(path, 0)
        prepare(job.inputs[0], 0 if cold_memory else WARM_MEMORY_BYTES)
        command = way.command(job._replace(output=room.output, temp_dir=room.temp_dir))
        result = run_measured(command, room)
        need_records(job.samtools, room.output, records, way.name)
        run([*job.rocksort, "--quiet", "--verify", "-@2", room.output])
    result.update(who=way.name, point=way.what, command=shlex.join(command))
    return result


def measure(args, setting):
    inputs = {"lanes": make_lanes(setting.rocksort, setting.samtools, setting.input,
                                  setting.scratch),
              "pieces": make_pieces(setting.rocksort, setting.samtools, setting.input,
                                    setting.records, setting.scratch)}
    ways = {}
    for way in WAYS:
        program = next(filter(None, map(shutil.which, way.executables)), None)
        if way.executables and not program:
            progress("merge: %s is not installed" % way.name)
            continue
        ways[way.name] = (way, Job(setting.rocksort, setting.samtools, program, inputs[way.what]))
    counts = {what: sum(count_records(setting.samtools, path) for path in paths)
              for what, paths in inputs.items()}

    def run_way(name, _):
        way, job = ways[name]
        return run_once(way, job, setting.scratch, counts[way.what], setting.cold_memory)

    return run_in_turn("merge", [(None, ways)], args.repeats, run_way)


def table(runs):
    yield "| inputs | way | wall s | CPU s | peak RSS MiB | output MB | wall ratio (target) | to |"
    yield "|---|---|---|---|---|---|---|---|"
    got = {way.name: medians_at(runs, way.what, way.name) for way in WAYS}
    for way in WAYS:
        m, other = got[way.name], got[way.versus or way.name]
        if not m:
            continue
        ratio = verdict(m["wall_s"] / other["wall_s"], way.wall) if other else ""
        yield "| %s | %s | %.2f | %.2f | %.0f | %.1f | %s | %s |" % (
            way.what, way.name, m["wall_s"], m["cpu_s"], m["rss_bytes"] / MIB,
            m["output_bytes"] / 1e6, ratio, way.versus or "")


def bench(args):
    with prepared("merge", args, BYTES_A_RECORD) as setting:
        runs = measure(args, setting)
    said = dict(describe(setting.rocksort, setting.samtools), input=setting.said)
    head = "Medians of %d runs each, in turn, %d files, %d threads; MB are 10^6 bytes.\n" % (
        args.repeats, N_FILES, N_THREADS)
    report(args, "\n".join([head, *table(runs)]), said, records=setting.records, runs=runs)


if __name__ == "__main__":
    sys.exit(run_main("merge", lambda: bench(make_parser(__doc__, "6M").parse_args())))
