#!/usr/bin/env python3
"""Compares the reports of `samtools rocksort` with the programs that write the same ones from the
finished file.

Each report is measured as what it adds to one pass (--fixmate --markdup, level 1, 512 MB): CPU time
with the report minus CPU time without. The other programs read the file that the pass has written.
The chain is samtools fixmate, sort, markdup and index, then flagstat, idxstats, stats and mosdepth.
All programs have two threads.

    bench/qc.py                            6 M simulated records, 3 repeats
    bench/qc.py --reads a.bam b.bam        6 M real reads, tiled from these

mosdepth and riker are left out where they are not installed. All files go to a new directory in
--dir, which is removed at the end. Exit code: 0 if all runs worked, otherwise 1.
"""

import collections
import os
import shlex
import shutil
import sys

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
from bench_input import prepared
from measure import (MIB, describe, make_parser, medians_at, need_records, prepare, progress,
                     report, room_for_run, run_in_turn, run_main, run_measured, verdict)

WARM_MEMORY_BYTES = 3 << 30
# The sorted file, an output, temporary data of the chain, and reports, for a record.
BYTES_A_RECORD = 900
PASS = "{rocksort} --fixmate --markdup -@ 2 -m 256M -l 1 --write-index -T {temp}/t -o {out} {input}"
CHAIN = ("{samtools} fixmate -@ 2 -m -u {input} - | "
         "{samtools} sort -@ 2 -m 256M -u -T {temp}/t - | "
         "{samtools} markdup -@ 2 -l 1 --write-index - {out} && "
         "{samtools} flagstat -@ 2 {out} > {report}.flagstat && "
         "{samtools} idxstats {out} > {report}.idxstats && "
         "{samtools} stats -@ 2 {out} > {report}.stats && "
         "mosdepth -t 2 -n -x --by 500 {report} {out}")

# needs: a program on PATH, or None. text: the command. of: what it adds to, or None. versus: the
# way that does the same. cpu, wall: the largest ratio to that way; None: no target.
Way = collections.namedtuple("Way", "name needs text of versus cpu wall",
                             defaults=[None, None, None, None])


def added(option, versus, cpu):
    return Way("rocksort " + option.split("=")[0], None,
               PASS.replace(" -o ", " " + option.replace("OUT", "{report}") + " -o "), "one pass",
               versus, cpu)


def finished(name, needs, text):
    return Way(name, needs, text + " && ln -f {sorted} {out}")


WAYS = [
    Way("one pass", None, PASS),
    added("--stats=OUT.stats", "samtools stats", 0.35),
    finished("samtools stats", None, "{samtools} stats -@ 2 {sorted} > {report}.stats"),
    added("--mosdepth='-n -x --by 500 OUT'", "mosdepth", 0.25),
    finished("mosdepth", "mosdepth", "mosdepth -t 2 -n -x --by 500 {report} {sorted}"),
    added("--mosdepth='-x --by 500 OUT'", "mosdepth, per base", 0.40)._replace(
        name="rocksort --mosdepth, per base"),
    finished("mosdepth, per base", "mosdepth", "mosdepth -t 2 -x --by 500 {report} {sorted}"),
    added("--picard=OUT", "riker multi", 0.60),
    finished("riker multi", "riker", "riker multi -t 2 -i {sorted} -o {report}"),
    Way("rocksort --qc", None, PASS.replace(" -o ", " --qc={report} -o "), None, "one pass", 1.40),
    Way("rocksort --qc, wall", None, PASS.replace(" -o ", " --qc={report} -o "), None,
        "samtools and mosdepth", None, 0.40),
    Way("samtools and mosdepth", "mosdepth", CHAIN),
]


def run_once(way, setting, sorted_bam):
    with room_for_run(setting.scratch) as room:
        text = way.text.format(
            rocksort=shlex.join(setting.rocksort), samtools=shlex.quote(setting.samtools),
            input=shlex.quote(setting.input), out=shlex.quote(room.output),
            temp=shlex.quote(room.temp_dir), sorted=shlex.quote(sorted_bam),
            report=shlex.quote(os.path.join(room.temp_dir, "report")))
        prepare(setting.input, 0 if setting.cold_memory else WARM_MEMORY_BYTES)
        result = run_measured(["bash", "-o", "pipefail", "-c", text], room)
        need_records(setting.samtools, room.output, setting.records, way.name)
        if not os.path.exists(sorted_bam):
            for ending in ("", ".bai", ".csi"):
                if os.path.exists(room.output + ending):
                    os.link(room.output + ending, sorted_bam + ending)
    result.update(who=way.name, point="qc", command=text)
    return result


def measure(args, setting):
    ways = {}
    for way in WAYS:
        if way.needs and not shutil.which(way.needs):
            progress("qc: %s is not installed" % way.needs)
        else:
            ways[way.name] = way
    sorted_bam = os.path.join(setting.scratch, "sorted.bam")
    run_once(ways["one pass"], setting, sorted_bam)
    return run_in_turn("qc", [("qc", ways)], args.repeats,
                       lambda name, _: run_once(ways[name], setting, sorted_bam))


def table(runs):
    yield "| way | wall s | CPU s | added CPU s | peak RSS MiB | ratio (target) | to |"
    yield "|---|---|---|---|---|---|---|"
    got = {way.name: medians_at(runs, "qc", way.name) for way in WAYS}
    for way in WAYS:
        m, other, base = got[way.name], got.get(way.versus), got.get(way.of)
        if not m:
            continue
        cpu = m["cpu_s"] - (base["cpu_s"] if base else 0)
        ratio = ""
        if other:
            ratio = verdict(m["wall_s"] / other["wall_s"] if way.wall else cpu / other["cpu_s"],
                            way.wall or way.cpu)
        yield "| %s | %.2f | %.2f | %s | %.0f | %s | %s |" % (
            way.name, m["wall_s"], m["cpu_s"], "%.2f" % cpu if base else "", m["rss_bytes"] / MIB,
            ratio, way.versus or "")


def bench(args):
    with prepared("qc", args, BYTES_A_RECORD) as setting:
        runs = measure(args, setting)
    said = dict(describe(setting.rocksort, setting.samtools), input=setting.said)
    head = "Medians of %d runs each, in turn, 2 threads. Ratios: CPU time; the last: wall.\n"
    report(args, "\n".join([head % args.repeats, *table(runs)]), said, records=setting.records,
           runs=runs)


if __name__ == "__main__":
    sys.exit(run_main("qc", lambda: bench(make_parser(__doc__, "6M").parse_args())))
