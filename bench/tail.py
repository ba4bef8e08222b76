#!/usr/bin/env python3
"""Measures the tail of sorting after an aligner: from its last byte to the finished file.

Feeds SAM at a rate to the standard input of each program, as an aligner does. A program that stalls
the feeder may catch up, as an aligner has batches ahead of its output; `late` is by how much the
last byte went in after it was due, and is no part of the tail. All programs have 2 threads and
512 MB, and run in turn. rocksort deflates as users get it.

    bench/tail.py                              all jobs, 6 M reads: 20 minutes
    bench/tail.py --jobs sort:1 --rate 200     some, at another rate in MB/s

The SAM file is in the page cache. It and all results go to a new directory in --dir, which is
removed at the end. Exit code: 0 if all runs worked and kept the number of records, even if a target
was missed, otherwise 1.
"""

import itertools
import os
import shlex
import statistics
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
from bench_input import prepared
from measure import (MIB, BenchError, machine, make_parser, name_list, need_records,
                     parse_positive, prepare, progress, report, room_for_run, run_in_turn, run_main,
                     run_measured, verdict)
from peers import CHAINS, PROGRAMS, ChainJob, Job, find_all, version_of

N_THREADS = 2
MEMORY_BYTES = 512 * MIB
WARM_MEMORY_BYTES = 2 << 30
DEFAULT_LEVEL = 6
PACE_S = 0.01

JOBS = ["sort:default", "sort:1", "one-pass:default", "one-pass:1"]
SORTERS = {p.name.replace("-auto", ""): p for p in PROGRAMS
           if p.name in ("rocksort-auto", "samtools", "mako")}
CHAINED = {c.name.replace("one-pass", "rocksort"): c for c in CHAINS
           if c.name in ("one-pass", "samtools")}

# The largest ratios of rocksort's tail to another's.
TARGETS = {("sort:default", "samtools"): 0.38, ("sort:default", "mako"): 0.38,
           ("one-pass:default", "samtools"): 0.35}


def parse_arguments():
    parser = make_parser(__doc__, "6M")
    parser.add_argument("--rate", metavar="N", type=parse_positive, default=100,
                        help="MB of SAM a second [100]")
    known = ["%s:%s" % job for job in itertools.product(("sort", "one-pass"),
                                                        [*"123456789", "default"])]
    parser.add_argument("--jobs", metavar="LIST", type=name_list("job", known), default=JOBS,
                        help="comma-separated sort:LEVEL and one-pass:LEVEL [%s]" % ",".join(JOBS))
    return parser.parse_args()


class Feeder(threading.Thread):
    """Moves a file into a pipe, its pages without a copy. `end`: when the last byte was written."""

    def __init__(self, path, rate):
        super().__init__(daemon=True)
        self.path, self.bytes_a_second, self.size = path, rate * 1e6, os.stat(path).st_size
        reader, self.writer = os.pipe()
        self.reader = open(reader, "rb", buffering=0)
        self.begin = self.end = None

    def run(self):
        sent, self.begin = 0, time.monotonic()
        try:
            with open(self.path, "rb", buffering=0) as f:
                while sent < self.size:
                    due = int((time.monotonic() - self.begin) * self.bytes_a_second)
                    if due < min(sent + PACE_S * self.bytes_a_second, self.size):
                        time.sleep(PACE_S)
                        continue
                    while sent < min(due, self.size):
                        sent += os.splice(f.fileno(), self.writer, min(due, self.size) - sent)
            self.end = time.monotonic()
        except BrokenPipeError:
            pass  # the program has ended
        finally:
            os.close(self.writer)


def command_of(kind, level, who, words, room):
    """The command as a list of words; a chain runs in a shell."""
    number = int(level) if level != "default" else None if who == "rocksort" else DEFAULT_LEVEL
    if kind == "sort":
        job = Job("-", room.output, room.temp_dir, MEMORY_BYTES, N_THREADS,
                  SORTERS[who].level(number), 0)
        return words[who] + [str(word) for word in SORTERS[who].command(job)]
    return ["bash", "-o", "pipefail", "-c", CHAINED[who].command(ChainJob(
        "-", shlex.quote(room.output), shlex.quote(room.temp_dir), MEMORY_BYTES, N_THREADS, number,
        shlex.join(words["rocksort"]), shlex.join(words["samtools"])))]


def run_once(args, words, setting, sam, name, who):
    with room_for_run(setting.scratch) as room:
        command = command_of(*name.split(":"), who, words, room)
        prepare(sam, 0 if setting.cold_memory else WARM_MEMORY_BYTES)
        feeder = Feeder(sam, args.rate)
        feeder.start()
        begin = time.monotonic()
        result = run_measured(command, room, source=feeder.reader)
        feeder.join()
        if not feeder.end:
            raise BenchError("%s has not read all" % shlex.join(command))
        need_records(setting.samtools, room.output, setting.records, who)
    late_s = feeder.end - feeder.begin - feeder.size / feeder.bytes_a_second
    result.update(who=who, point=name, command=shlex.join(command), late_s=late_s,
                  # On a busy machine the feeder may learn late that the last byte is in.
                  tail_s=max(0.001, begin + result["wall_s"] - feeder.end))
    progress("tail: %.2f s, %.2f s late" % (result["tail_s"], late_s))
    return result


def table(runs):
    yield "| job | program | tail s | rocksort's to it (target) | late s | CPU s | output MB |"
    yield "|---|---|---|---|---|---|---|"
    keys = ("tail_s", "late_s", "cpu_s", "output_bytes")
    of = {(name, who): [statistics.median(r[key] for r in runs if (r["point"], r["who"])
                                          == (name, who)) for key in keys]
          for name, who in dict.fromkeys((r["point"], r["who"]) for r in runs)}
    for (name, who), (tail_s, late_s, cpu_s, size) in of.items():
        ratio = verdict(of[name, "rocksort"][0] / tail_s, TARGETS.get((name, who)))
        yield "| %s | %s | %.2f | %s | %.2f | %.2f | %.1f |" % (
            name, who, tail_s, ratio, late_s, cpu_s, size / 1e6)


def bench(args):
    short = {program.name: who for who, program in SORTERS.items()}
    with prepared("tail", args, input_factor=12, options=["-d", "15"]) as setting:
        found, _ = find_all("tail", SORTERS.values(), args)
        words = {short[f.program.name]: f.words for f in found}
        sam = os.path.join(setting.scratch, "in.sam")
        view = [setting.samtools, "view", "-h", "-@2", "-o", sam, setting.input]
        if subprocess.run(view, check=False).returncode != 0:
            raise BenchError("samtools cannot read %s" % setting.input)
        jobs = [(name, [who for who in words if name.startswith("sort") or who in CHAINED])
                for name in args.jobs]
        runs = run_in_turn("tail", jobs, args.repeats,
                           lambda who, name: run_once(args, words, setting, sam, name, who))
        said = {who: version_of(SORTERS[who], words[who]) for who in words}
        said["input"] = "%s; as SAM %.1f MB, at %d MB/s" % (
            setting.said, os.stat(sam).st_size / 1e6, args.rate)
    head = ("Medians of %d runs each, in turn, %d threads, %d MiB. MB are 10^6 bytes.\n"
            % (args.repeats, N_THREADS, MEMORY_BYTES // MIB))
    report(args, "\n".join([head, *table(runs)]), dict(said, **machine()), runs=runs)


if __name__ == "__main__":
    sys.exit(run_main("tail", lambda: bench(parse_arguments())))
