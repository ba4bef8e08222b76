#!/usr/bin/env python3
"""Repeats the experiments of 2014, scaled: data many times as large as memory, on modelled disks.

`samtools rocksort` and the samtools on PATH sort the same BAM with the command lines of 2014.
Input, temporary data and output are on one disk of 2014, which bench/spindle models. A limit holds
for the memory of the program and its page cache together. The ratio of data to memory is that of
2014.

    bench/bench-2014.py                                all, about an hour (make bench-2014)
    bench/bench-2014.py --scale small                  a quick run that shows that it works
    bench/bench-2014.py --experiment little-memory --data-gb 3.2 --memory-mib 32

Experiments:
    low-coverage    4 rotating drives, 8 GB : 512 MiB
    deep-ssd        2 SSDs, 8 GB : 512 MiB, also at the default level, and a plain copy
    little-memory   4 rotating drives, 12.8 GB : 128 MiB, rocksort with -s given and -s auto
    storage         cloud volumes, 2 GB : 128 MiB: time and cost of one step of a pipeline

The size of data is that of the uncompressed records; a GB is 10^9 bytes. A program is given `-m`
times `-@` of memory. Program and page cache together may use 1.4 times that and 64 MiB: the machine
of 2014 had 7 GiB, of which the program was given 5, and the 64 MiB are for memory that does not
shrink with the data (code, stacks, buffers of a fixed size for each file). The kernel reads 128 KiB
ahead, which is the default. For an array like that of c1.xlarge Linux would choose 4 MiB
(--readahead 4M); samtools takes a quarter longer with that, since read-ahead for so many files does
not fit the page cache.

Programs (--programs): rocksort (its defaults), rocksort-auto (-s auto), rocksort-given (-s and the
size), rocksort-off (-s off), samtools, copy (samtools view).

Inputs are simulated and kept in --data-dir. Results go to --out: results.md, results.json,
series/*.json (a sample each second, for scripts/plot-run.py) and a PNG for each experiment. Each
output is checked with bench/bamcheck.py and `rocksort --checksum-only`. Exit code: 0 if all are
right, even if a target was missed, otherwise 1.
"""

import argparse
import collections
import json
import math
import os
import shlex
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
import report_2014
from bam_files import Outputs, find_input
from measure import (MIB, ROOT, BenchError, find_rocksort, find_upstream, need_disk, parse_positive,
                     prepare, progress, run_main, warm_memory)
from modelled_run import SPINDLE, Disk, can_bound, run_sampled

# Bytes of a simulated record: uncompressed, and at most in a BAM of level 1 or 6.
RAW_BYTES, BAM_BYTES = 346.55, 115

# See the top of this file.
CACHE_FACTOR, CACHE_BYTES = 1.4, 64 * MIB

C1_XLARGE = ("c1.xlarge: 4 striped 7200 rpm drives", ["--device", "c1.xlarge"])
SSD_PAIR = ("2 striped Samsung 840 Pro",
            ["--device", "samsung-840-pro", "--devices", "2", "--stripe", "512K"])

Experiment = collections.namedtuple("Experiment", "name title in_2014 disk data_gb memory_mib "
                                    "levels programs wall_target seeks_target ratio_2014")

EXPERIMENTS = [
    Experiment("low-coverage", "A low-coverage genome",
               "80 GiB : 5 GiB on 4 rotating drives, `samtools sort` 34 min, rocksort 27 min",
               C1_XLARGE, 8, 512, ["1"], ["rocksort", "samtools"], 0.60, None, 27 / 34),
    Experiment("deep-ssd", "A deep genome on SSDs",
               "512 GiB : 32 GiB on 2 SSDs, `samtools sort` 2h50, rocksort 2h07",
               SSD_PAIR, 8, 512, ["1", "default"], ["rocksort", "samtools", "copy"], 0.70, None,
               127 / 170),
    Experiment("little-memory", "A deep genome with little memory",
               "512 GiB : 5 GiB on 4 rotating drives, `samtools sort` 22h37, rocksort `-s 512G` "
               "3h46", C1_XLARGE, 12.8, 128, ["1"],
               ["rocksort-given", "rocksort-auto", "samtools"], 0.30, 0.10, 226 / 1357),
]

# Device, and price of the whole instance in $ a month. The first price is 100 %.
STORAGE = [
    ("ebs-gp2", "EBS gp2, 100 GB", 174.11),
    ("ebs-magnetic", "EBS magnetic", 174.43),
    ("ebs-piops-100", "EBS, 100 provisioned IOPS", 184.61),
    ("ebs-st1", "EBS throughput-optimised HDD", 189.01),
    ("nvme", "NVMe of the instance", 191.79),
    ("ebs-piops-500", "EBS, 500 provisioned IOPS", 215.01),
]
STORAGE_NAME, STORAGE_GB, STORAGE_MIB = "storage", 2, 128

# GB and MiB at --scale small. The ratios are those of the full scale, except for little-memory: the
# number of seeks depends on the ratio, and with the same ratio it would take 10 minutes.
SMALL = {"low-coverage": (1, 64), "deep-ssd": (1, 64), "little-memory": (1, 32),
         STORAGE_NAME: (0.25, 16)}

# Log lines that become marks in the series.
MARKS = [(r"bam_sort_core\] merging from", "merge")]


# ---- the command line ----


def parse_gb(text):
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < 1e5:
        raise argparse.ArgumentTypeError("%r is not a number of GB like 12.8" % text)
    return value


def parse_level(text):
    if text != "default" and (not text.isdecimal() or int(text) > 9):
        raise argparse.ArgumentTypeError("%r is not a level from 0 to 9, nor `default`" % text)
    return text


def make_parser():
    first, _, rest = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(description=first, epilog=rest,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--experiment", metavar="LIST", default="all",
        help="names with commas between them [all]")
    add("--scale", choices=("full", "small"), default="full", help="[full]")
    add("--data-gb", metavar="N", type=parse_gb, help="uncompressed data, 10^9 bytes")
    add("--memory-mib", "--memory-mb", metavar="N", type=parse_positive, dest="memory_mib",
        help="memory given to a program, 2^20 bytes")
    add("--level", metavar="N", type=parse_level, help="0 to 9, or `default`")
    add("--threads", metavar="N", type=parse_positive, default=2, help="[2]")
    add("--programs", metavar="LIST", help="which, see below")
    add("--device", metavar="NAME", help="another device of `spindle --list`; not for storage")
    add("--own-disk", action="store_true",
        help="the machine's own disk instead of modelled ones; not for storage")
    add("--storage", metavar="LIST", default=",".join(device for device, _, _ in STORAGE),
        help="devices of the storage table, the first is 100 %% [%(default)s]")
    add("--repeats", metavar="N", type=parse_positive, default=1,
        help="runs of each program, in turn [1]")
    add("--input", metavar="BAM", help="an unsorted BAM instead of a simulated one")
    add("--input-elsewhere", action="store_true",
        help="put the input on the machine's own disk, not on the modelled one")
    add("--page-cache", metavar="MIB", type=parse_positive,
        help="limit for memory and page cache [1.4 x memory + 64]")
    add("--unbounded", action="store_true", help="set no limit")
    add("--write-buffer", metavar="SIZE", default="64M",
        help="dirty data that wait for the modelled disk [64M]")
    add("--readahead", metavar="SIZE", default="128K",
        help="of the kernel, for a file; Linux takes 4M for the array of c1.xlarge [128K]")
    add("--check", choices=("full", "content", "none"), default="full",
        help="of outputs; content: by rocksort's checksum, not their order [full]")
    add("--rocksort-options", metavar="WORDS", default="",
        help="options that every rocksort gets, in one word")
    add("--out", metavar="DIR", default=os.path.join(ROOT, "build", "bench-2014"),
        help="for the results [build/bench-2014]")
    add("--data-dir", metavar="DIR", default=os.path.join(ROOT, "build", "bench-data"),
        help="where simulated inputs are kept [build/bench-data]")
    add("--dir", metavar="DIR",
        help="where the scratch directory is made [--data-dir]; inputs are linked to it or copied")
    add("--rocksort", metavar="CMD",
        default=shlex.quote(os.path.join(ROOT, "samtools")) + " rocksort",
        help="command to measure [./samtools rocksort]")
    add("--samtools", metavar="FILE",
        help="samtools to compare with [the first on PATH that is not ours]")
    add("--spindle", metavar="FILE", default=SPINDLE, help="[bench/spindle]")
    return parser


def parse_arguments():
    parser = make_parser()
    args = parser.parse_args()
    known = [e.name for e in EXPERIMENTS] + [STORAGE_NAME]
    args.experiments = known if args.experiment == "all" else args.experiment.split(",")
    for name in args.experiments:
        if name not in known:
            parser.error("no experiment %r; there are: %s" % (name, ", ".join(known)))
    if args.own_disk and STORAGE_NAME in args.experiments:
        parser.error("--own-disk is not for %s: choose with --experiment" % STORAGE_NAME)
    if args.programs:
        args.programs = args.programs.split(",")
        for name in args.programs:
            if name not in PROGRAMS:
                parser.error("no program %r; there are: %s" % (name, ", ".join(PROGRAMS)))
    args.storage = args.storage.split(",")
    for device in args.storage:
        if device not in [name for name, _, _ in STORAGE]:
            parser.error("no price of %r; there are: %s" % (
                device, ", ".join(name for name, _, _ in STORAGE)))
    return args


# ---- programs ----

# Parts of a program's command line.
Job = collections.namedtuple("Job", "rocksort samtools source threads memory_mib level raw_bytes "
                             "rocksort_options")


def resources(job):
    level = [] if job.level == "default" else ["-l", job.level]
    kib = job.memory_mib * 1024 // job.threads
    memory = "%dK" % kib if kib % 1024 else "%dM" % (kib // 1024)
    return ["-@", str(job.threads), "-m", memory] + level


def rocksort_command(job, options):
    # The syntax of 2014: the name of the output is given without .bam.
    return (job.rocksort + resources(job) + options + job.rocksort_options
            + ["--verbosity", "4", "-T", "tmp", "-", "out"])


def size_of(job):
    """A size as a user writes it: whole MiB."""
    return "%dM" % math.ceil(job.raw_bytes / MIB)


PROGRAMS = {
    "rocksort": lambda job: rocksort_command(job, []),
    "rocksort-auto": lambda job: rocksort_command(job, ["-s", "auto"]),
    "rocksort-given": lambda job: rocksort_command(job, ["-s", size_of(job)]),
    "rocksort-off": lambda job: rocksort_command(job, ["-s", "off"]),
    "samtools": lambda job: ([job.samtools, "sort"] + resources(job)
                             + ["-T", "tmp/sort", "-o", "out.bam", "-"]),
    "copy": lambda job: [job.samtools, "view", "-@", str(job.threads), "-O",
                         "bam" if job.level == "default" else "bam,level=" + job.level,
                         "-o", "out.bam", "-"],
}


# ---- running ----


class Bench:
    """The state that all experiments share. Makes one run."""

    def __init__(self, args, scratch):
        self.args, self.scratch = args, scratch
        self.samtools = find_upstream(args.samtools)
        self.rocksort = self.copy_of(find_rocksort(args.rocksort))
        self.outputs = Outputs(self.rocksort, args.threads, args.check,
                               os.path.join(scratch, "outputs"))
        # Printed once, and in the report.
        self.why_plain = None
        self.why_unbounded = "--unbounded" if args.unbounded else can_bound(args.spindle)
        if self.why_unbounded:
            progress("bench-2014: memory is not limited: " + self.why_unbounded)

    def copy_of(self, rocksort):
        """Copies our program: it may be built again while the experiments run."""
        if not rocksort[0].startswith(ROOT + os.sep):
            return rocksort
        path = os.path.join(self.scratch, "bin", os.path.basename(rocksort[0]))
        os.mkdir(os.path.dirname(path))
        shutil.copy(rocksort[0], path)
        return [path] + rocksort[1:]

    def said_of_memory(self):
        """The lines of the report about memory."""
        if self.why_unbounded:
            return "not limited: " + self.why_unbounded
        if self.args.page_cache:
            return "program and page cache limited to %d MiB by a cgroup" % self.args.page_cache
        return ("program and page cache limited to %.1f x the given memory and %d MiB by a cgroup"
                % (CACHE_FACTOR, CACHE_BYTES // MIB))

    def input_of(self, experiment):
        n_records = math.ceil(experiment.data_gb * 1e9 / RAW_BYTES / 1000) * 1000
        given = self.args.input and os.path.isfile(self.args.input)
        size = os.path.getsize(self.args.input) if given else n_records * BAM_BYTES
        need_disk(self.args.dir, size * (4 + len(experiment.programs)))
        return find_input(self.args.input, n_records, self.args.data_dir, self.rocksort,
                          self.args.threads)

    def memory_limit(self, memory_mib):
        """Bytes for program and page cache; 0: no limit."""
        if self.why_unbounded:
            return 0
        if self.args.page_cache:
            return self.args.page_cache * MIB
        return int(memory_mib * MIB * CACHE_FACTOR) + CACHE_BYTES

    def job_of(self, experiment, source, level):
        elsewhere = self.args.input_elsewhere
        return Job(self.rocksort, self.samtools, source.path if elsewhere else "in.bam",
                   self.args.threads, experiment.memory_mib, level, source.raw_bytes,
                   shlex.split(self.args.rocksort_options))

    def run_once(self, experiment, source, name, level):
        """Makes one run. Returns its result, with "wrong", and its series."""
        job = self.job_of(experiment, source, level)
        command = "cat %s | %s" % (shlex.quote(job.source), shlex.join(PROGRAMS[name](job)))
        limit = self.memory_limit(experiment.memory_mib)
        result = {"who": name, "level": level, "command": self.shown(command),
                  "limit_bytes": limit, "wrong": None, "load_before": os.getloadavg()[0]}
        log = os.path.join(self.scratch, "log")
        options = experiment.disk[1] + ["--write-buffer", self.args.write_buffer,
                                        "--readahead", self.args.readahead]
        with Disk(self.scratch, options, self.args.spindle) as disk:
            os.mkdir(os.path.join(disk.backing, "tmp"))
            if self.args.input_elsewhere:
                prepare(source.path, 0)
            else:
                lay(source.path, os.path.join(disk.backing, "in.bam"))
            if self.args.own_disk:
                disk.stay_plain("--own-disk was given")
            else:
                disk.mount()
            self.note_plain(disk)
            warm_memory(limit or experiment.memory_mib * 2 * MIB)
            try:
                measured, series = run_sampled(disk, command, limit, log, MARKS,
                                               self.args.spindle)
            except BenchError as e:
                result["wrong"] = "failed: %s" % e
                return result, None
            result.update(measured)
            result["output_bytes"] = os.stat(os.path.join(disk.backing, "out.bam")).st_size
            self.read_log(result, series, log)
            left = os.listdir(os.path.join(disk.backing, "tmp"))
            if left:
                result["wrong"] = "left temporary files: " + ", ".join(left[:5])
            report = disk.report()
            result["device"] = report["device"] if report else None
            self.outputs.take(os.path.join(disk.backing, "out.bam"), result, name == "copy")
        return result, series

    def shown(self, command):
        """The command as one would type it in the source directory."""
        return command.replace(os.path.join(self.scratch, "bin"), ".").replace(ROOT + os.sep, "./")

    def note_plain(self, disk):
        if disk.why_plain and not self.why_plain:
            self.why_plain = disk.why_plain
            progress("bench-2014: on the plain disk: " + disk.why_plain)

    def read_log(self, result, series, log):
        with open(log, encoding="utf-8", errors="replace") as f:
            result.update(report_2014.said_in(f.read()))
        report_2014.note_amplification(result)
        load = result.get("load_s")
        if load:
            series["marks"].append({"t_s": load, "label": "merge"})

    def run_all(self, experiment):
        """Makes all runs of an experiment: levels one after the other, programs in turn."""
        source = self.input_of(experiment)
        runs = []
        for level in experiment.levels:
            for repeat in range(1, self.args.repeats + 1):
                names = experiment.programs
                for name in names[::-1] if repeat % 2 == 0 else names:
                    run, series = self.run_once(experiment, source, name, level)
                    run["repeat"] = repeat
                    runs.append(run)
                    progress("bench-2014: %s: %s" % (experiment.name, report_2014.said_of(run)))
                    if series:
                        run["series"] = self.write_series(experiment, run, series)
        self.outputs.check_all(source)
        for run in runs:
            if run["wrong"]:
                progress("bench-2014: %s: WRONG: %s" % (run["who"], run["wrong"]))
        return {"experiment": experiment._asdict(), "input": source.said(), "runs": runs}

    def write_series(self, experiment, run, series):
        """Writes a series. Returns the name of its file below --out."""
        where = experiment.name
        if where == STORAGE_NAME:
            where += "-" + experiment.disk[1][1]
        name = "series/%s-%s-l%s-%d.json" % (where, run["who"], run["level"], run["repeat"])
        path = os.path.join(self.args.out, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            title = "%s%s: %s" % (experiment.title, "" if self.why_plain else ", modelled",
                                  experiment.disk[0])
            json.dump(dict(label=run["who"], title=title,
                           limit={"rss_bytes": experiment.memory_mib * MIB,
                                  "label": "%d MiB given" % experiment.memory_mib}, **series), f)
            f.write("\n")
        return name


def lay(source, path):
    """Puts the input on the disk: as a hard link if that is possible, otherwise as a copy."""
    try:
        os.link(source, path)
    except OSError:
        shutil.copyfile(source, path)


# ---- main ----


def as_asked(experiment, args):
    """An experiment, changed by the options of the command line."""
    change = {}
    if args.scale == "small":
        change["data_gb"], change["memory_mib"] = SMALL[experiment.name]
    if args.data_gb:
        change["data_gb"] = args.data_gb
    if args.memory_mib:
        change["memory_mib"] = args.memory_mib
    if args.level:
        change["levels"] = [args.level]
    if args.programs:
        change["programs"] = args.programs
    if args.device and experiment.name != STORAGE_NAME:
        change["disk"] = (args.device, ["--device", args.device])
    if args.own_disk:
        gb, mib = (change.get(name, getattr(experiment, name)) for name in ("data_gb", "memory_mib"))
        change["title"] = "%g GB of records in %d MiB" % (gb, mib)
        change["disk"] = ("this machine's own disk", [])
    return experiment._replace(**change)


def storage_experiments(args):
    titles = {device: title for device, title, _ in STORAGE}
    for device in args.storage:
        yield as_asked(Experiment(STORAGE_NAME, "One step of a pipeline", None,
                                  (titles[device], ["--device", device]), STORAGE_GB, STORAGE_MIB,
                                  ["1"], ["rocksort", "samtools"], None, None, None), args)


def run_experiments(bench, args):
    """Runs all experiments. Writes the report after each one, since all take long."""
    report = report_2014.report_of(bench, args)
    for experiment in EXPERIMENTS:
        if experiment.name in args.experiments:
            report["experiments"].append(bench.run_all(as_asked(experiment, args)))
            report_2014.write(report, bench, args.out)
    if STORAGE_NAME in args.experiments:
        report["prices"] = {device: price for device, _, price in STORAGE}
        for experiment in storage_experiments(args):
            report["storage"].append(bench.run_all(experiment))
            report_2014.write(report, bench, args.out)
    report["done"] = True
    report_2014.write(report, bench, args.out)
    return report


def main():
    args = parse_arguments()
    os.makedirs(args.data_dir, exist_ok=True)
    os.makedirs(args.out, exist_ok=True)
    if args.input:
        args.input = os.path.abspath(args.input)
    # Programs run on the modelled disk, where a relative path has another meaning.
    args.data_dir = os.path.abspath(args.data_dir)
    args.dir = os.path.abspath(args.dir or args.data_dir)
    if not os.path.isdir(args.dir):
        raise BenchError("no directory %s" % args.dir)
    scratch = tempfile.mkdtemp(prefix="bench-2014-", dir=args.dir)
    try:
        report = run_experiments(Bench(args, scratch), args)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    with open(os.path.join(args.out, "results.md"), encoding="utf-8") as f:
        print(f.read(), end="")
    return 1 if any(run["wrong"] for part in report["experiments"] + report["storage"]
                    for run in part["runs"]) else 0


if __name__ == "__main__":
    sys.exit(run_main("bench-2014", main))
