#!/usr/bin/env python3
"""Compares the encoders that deflate BAM: size, CPU time to deflate and to inflate.

Runs bench/deflate-blocks, which deflates the blocks of an input by each method in turn, in one
thread, and takes the shortest time of --repeats for each 16 blocks. Ratios are to libdeflate at
-l 6, the default of samtools.

    bench/deflate.py --reads debian debian-long simulated
    bench/deflate.py --reads a.bam b.bam --libdeflate libdeflate-1.26/libdeflate.so.0

BAM files are taken as they are; other reads are sorted by position first. The tables say which
libdeflate it is: --libdeflate or LD_LIBRARY_PATH gives another one. Exit code: 0 if all methods
worked, even if a target was missed, otherwise 1.
"""

import argparse
import collections
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
from bench_input import choose_input
from measure import (ROOT, BenchError, check_paths, find_rocksort, machine, make_parser,
                     parse_size, progress, report, run_main, shared_libraries, verdict)

PROGRAM = os.path.join(ROOT, "bench", "deflate-blocks")
BASE, OURS = "libdeflate:6", "rocksort:3"
METHODS = [BASE, "libdeflate:5", "libdeflate:1", "igzip:1", "rocksort:2", OURS, "rocksort:4",
           "rocksort:5"]
LONG_RECORD_BYTES = 2000  # a mean

# The largest ratios of rocksort's default to libdeflate's -l 6. CPU: of real short reads, to a
# libdeflate before 1.19 and to a newer one.
SIZE_TARGETS = {"short reads": 1.02, "single cell": 1.035, "long reads": 0.975, "simulated": 1.02}
CPU_TARGETS = {"short reads": (0.30, 0.34), "single cell": (0.30, 0.34)}
INFLATE_TARGET = 1.10
# A method's bytes of payloads and of blocks; ns a byte.
Result = collections.namedtuple("Result", "method payload blocks deflate inflate")


def parse_arguments():
    parser = make_parser(__doc__, "600K")
    parser.set_defaults(repeats=5)
    parser.add_argument("--bytes", metavar="SIZE", type=parse_size, default="64M",
                        help="how much of each input is deflated [64M]")
    parser.add_argument("--methods", metavar="LIST", default=",".join(METHODS),
                        help="comma-separated ENGINE:LEVEL; %s is always there [%s]"
                        % (BASE, ",".join(METHODS)))
    parser.add_argument("--libdeflate", metavar="FILE", help="the libdeflate.so to measure")
    args = parser.parse_args()
    args.methods = list(dict.fromkeys([BASE] + args.methods.split(",")))
    if args.libdeflate and not os.path.isfile(args.libdeflate):
        parser.error("no file %s" % args.libdeflate)
    return args


def input_of(args, word, scratch):
    """(path, name, what it is) of one word of --reads."""
    if os.path.isfile(word):
        return word, os.path.basename(word), word
    args = argparse.Namespace(**dict(vars(args), reads=[word], input=None))
    check_paths(args)
    source = choose_input("deflate", args, scratch)
    path = os.path.join(scratch, "sorted.bam")
    sort = ["--quiet", "-u", "-T", scratch, "-o", path, source.path]
    if subprocess.run(find_rocksort(args.rocksort) + sort, check=False).returncode != 0:
        raise BenchError("cannot sort %s" % source.path)
    return path, "simulated" if source.said.startswith("simulated") else word, source.said


def measure(args, path):
    """{"records": fields, "libdeflate": fields, "results": Results} of a BAM file."""
    env = dict(os.environ)
    if args.libdeflate:
        env["LD_PRELOAD"] = os.path.abspath(args.libdeflate)
    done = subprocess.run([PROGRAM, str(args.bytes), str(args.repeats), path, *args.methods],
                          env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False,
                          universal_newlines=True)
    if done.returncode != 0:
        raise BenchError("deflate-blocks failed on %s" % path)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    found = {row[0]: row[1:] for row in rows}
    if "libdeflate" not in found:
        raise BenchError("libdeflate is not built in")
    found["results"] = [Result(row[1], *map(float, row[2:])) for row in rows if row[0] == "method"]
    return found


def kind_of(name, found):
    records, barcoded = map(int, found["records"])
    if found["results"][0].payload / records > LONG_RECORD_BYTES:
        return "long reads"
    return ("single cell" if barcoded > records / 2 else
            name if name in SIZE_TARGETS else "short reads")


def table(inputs):
    yield ("| input | method | payload MB | BGZF MB | ratio (target) | deflate ns/byte "
           "| ratio (target) | inflate ns/byte | ratio (target) |")
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, found in inputs.items():
        version, kind, base = found["libdeflate"][0], kind_of(name, found), found["results"][0]
        is_new = "newer" in version or tuple(map(int, version.split("."))) >= (1, 19)
        for r in found["results"]:
            targets = (SIZE_TARGETS[kind], CPU_TARGETS.get(kind, (None, None))[is_new],
                       INFLATE_TARGET) if r.method == OURS else (None, None, None)
            yield "| %s | %s | %.1f | %.2f | %s | %.2f | %s | %.2f | %s |" % (
                "%s (%s)" % (name, kind), r.method, r.payload / 1e6, r.blocks / 1e6,
                verdict(r.blocks / base.blocks, targets[0], "%.3f"), r.deflate,
                verdict(r.deflate / base.deflate, targets[1]), r.inflate,
                verdict(r.inflate / base.inflate, targets[2]))


def bench(args):
    if not os.access(PROGRAM, os.X_OK):
        raise BenchError("%s is missing: run `make bench/deflate-blocks`" % PROGRAM)
    inputs, said = {}, machine()
    for word in [args.input] if args.input else args.reads:
        with tempfile.TemporaryDirectory(prefix="rocksort-deflate-", dir=args.dir) as scratch:
            path, name, said_of_input = input_of(args, word, scratch)
            name = word if name in inputs else name
            progress("deflate: measuring %s" % name)
            inputs[name], said[name] = measure(args, path), said_of_input
    version = inputs[name]["libdeflate"][0]
    said["libdeflate"] = args.libdeflate or shared_libraries(PROGRAM)["libdeflate"]
    head = ("One thread; the shortest of %d runs of each 16 blocks; ratios are to %s of libdeflate "
            "%s, samtools' default. MB are 10^6 bytes.\n" % (args.repeats, BASE, version))
    report(args, "\n".join([head, *table(inputs)]), said,
           inputs={name: dict(found, results=[r._asdict() for r in found["results"]])
                   for name, found in inputs.items()})


if __name__ == "__main__":
    sys.exit(run_main("deflate", lambda: bench(parse_arguments())))
