#!/usr/bin/env python3
"""Repeats the experiments of 2014, scaled: data many times as large as memory, on modelled disks.

`samtools rocksort` and the samtools on PATH sort the same BAM with the command lines of 2014.
Input, temporary data and output are on one disk of 2014, which bench/spindle models. The ratio of
data to memory is that of 2014.

    bench/bench-2014.py                                all, about an hour (make bench-2014)
    bench/bench-2014.py --scale small                  a quick run that shows that it works
    bench/bench-2014.py --experiment little-memory --data-gb 3.2 --memory-mib 32

Experiments:
    low-coverage    4 rotating drives, 8 GB : 512 MiB
    deep-ssd        2 SSDs, 8 GB : 512 MiB, also at the default level, and a plain copy
    little-memory   4 rotating drives, 12.8 GB : 128 MiB, rocksort with -s given and -s auto
    storage         cloud volumes, 2 GB : 128 MiB: time and cost of one step of a pipeline

Programs: rocksort (its defaults), rocksort-auto (-s auto), rocksort-given (-s and the size),
rocksort-off (-s off), samtools, copy (samtools view).

A GB is 10^9 bytes of uncompressed records. A program is given `-m` times `-@` of memory. A cgroup
limits program and page cache together to 1.4 times that and 64 MiB: the machine of 2014 had 7 GiB,
of which the program was given 5; the 64 MiB are for what does not shrink with the data. The kernel
reads 128 KiB ahead, its default. Without FUSE the plain disk is used; the report says so.

Simulated inputs are kept in --data-dir. Results go to --out: results.md, results.json,
series/*.json (a sample each second) and a PNG for each experiment (scripts/plot-run.py). Each
output must have the input's records, in order. Exit code: 0 if all are right, even if a target was
missed, otherwise 1.
"""

import argparse
import collections
import math
import os
import re
import shlex
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
from measure import (MIB, PAGE_BYTES, ROOT, TICK_S, BenchError, add_programs, cell, checksum,
                     commit, count, describe, find_plotter, find_rocksort, find_upstream, in_turn,
                     name_list, need_disk, parse_level, parse_positive, prepare, progress, run_main,
                     simulate, tail_of, tree_memory, verdict, wait_measured, warm_memory,
                     write_json)

SPINDLE = os.path.join(ROOT, "bench", "spindle")

# Bytes of a simulated record: uncompressed, and at most in a BAM of level 1 or 6.
RAW_BYTES, BAM_BYTES = 347.7, 115
CACHE_FACTOR, CACHE_BYTES = 1.4, 64 * MIB
# The kernel lets FUSE have so many bytes of dirty pages: by default it depends on the machine.
DIRTY_BYTES = 32 * MIB
SAMPLE_S = 1.0
COUNTERS = ("n_drives", "reads", "writes", "read_bytes", "write_bytes", "seeks", "syncs", "busy_ns",
            "buffered_bytes")
COLUMNS = ("t_s", "cpu_s", "read_bytes", "write_bytes", "seeks", "rss_bytes")
# The figures of a run whose median is in a table.
FIGURES = ("wall_s", "cpu_s", "rss_bytes", "amplification", "busy_s", "seeks", "read_bytes",
           "write_bytes", "bytes_a_read")
HOURS_A_MONTH = 730

Experiment = collections.namedtuple("Experiment", "name title in_2014 disk device data_gb "
                                    "memory_mib levels programs wall_target seeks_target")
EXPERIMENTS = [
    Experiment("low-coverage", "A low-coverage genome",
               "80 GiB : 5 GiB on 4 rotating drives, `samtools sort` 34 min, rocksort 27 (0.79)",
               "4 striped 7200 rpm drives", "c1.xlarge", 8, 512, ["1"], ["rocksort", "samtools"],
               0.60, None),
    Experiment("deep-ssd", "A deep genome on SSDs",
               "512 GiB : 32 GiB on 2 SSDs, `samtools sort` 2h50, rocksort 2h07 (0.75)",
               "2 striped Samsung 840 Pro", "840-pro-pair", 8, 512, ["1", "default"],
               ["rocksort", "samtools", "copy"], 0.70, None),
    Experiment("little-memory", "A deep genome with little memory",
               "512 GiB : 5 GiB on 4 rotating drives, `samtools sort` 22h37, rocksort `-s 512G` "
               "3h46 (0.17)", "4 striped 7200 rpm drives", "c1.xlarge", 12.8, 128, ["1"],
               ["rocksort-given", "rocksort-auto", "samtools"], 0.30, 0.10),
]
# Device, and price of the whole instance in $ a month. The first is 100 %.
STORAGE = {"ebs-gp2": ("EBS gp2, 100 GB", 174.11), "ebs-magnetic": ("EBS magnetic", 174.43),
           "ebs-piops-100": ("EBS, 100 provisioned IOPS", 184.61),
           "ebs-st1": ("EBS throughput-optimised HDD", 189.01),
           "nvme": ("NVMe of the instance", 191.79),
           "ebs-piops-500": ("EBS, 500 provisioned IOPS", 215.01)}
# GB and MiB at --scale small. For little-memory the ratio is smaller: with its own, seeks take
# 10 minutes.
SMALL = {"low-coverage": (1, 64), "deep-ssd": (1, 64), "little-memory": (1, 32),
         "storage": (0.25, 16)}


# ---- the command line ----


def parse_arguments():
    first, _, rest = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(description=first, epilog=rest,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    known = [e.name for e in EXPERIMENTS] + ["storage"]
    add = parser.add_argument
    add("--experiment", metavar="LIST", type=name_list("experiment", known), default=known,
        help="names with commas between them [all]")
    add("--scale", choices=("full", "small"), default="full", help="[full]")
    add("--data-gb", metavar="N", type=float, help="uncompressed data, 10^9 bytes")
    add("--memory-mib", metavar="N", type=parse_positive,
        help="memory given to a program, 2^20 bytes")
    add("--level", metavar="N", type=parse_level, help="0 to 9, or `default`")
    add("--threads", metavar="N", type=parse_positive, default=2, help="[2]")
    add("--programs", metavar="LIST", type=name_list("program", PROGRAMS), help="which, see below")
    add("--device", metavar="NAME",
        help="another device of bench/spindle.c; of storage only this one")
    add("--own-disk", action="store_true", help="the machine's own disk instead of modelled ones")
    add("--repeats", metavar="N", type=parse_positive, default=1,
        help="runs of each program, in turn [1]")
    add("--input", metavar="BAM", help="an unsorted BAM instead of a simulated one")
    add("--input-elsewhere", action="store_true",
        help="put the input on the machine's own disk, not on the modelled one")
    add("--readahead", metavar="KIB", type=parse_positive, default=128,
        help="of the kernel, for a file; Linux takes 4096 for the array of c1.xlarge [128]")
    add("--rocksort-options", metavar="WORDS", default="",
        help="options that every rocksort gets, in one word")
    add("--out", metavar="DIR", default=os.path.join(ROOT, "build", "bench-2014"),
        help="for the results [build/bench-2014]")
    add("--data-dir", metavar="DIR", default=os.path.join(ROOT, "build", "bench-data"),
        help="for simulated inputs and all that runs write [build/bench-data]")
    add_programs(parser)
    return parser.parse_args()


def chosen_experiments(args):
    """The experiments, as the options change them; those of storage one for each volume."""
    experiments = list(EXPERIMENTS)
    experiments += [Experiment("storage", "One step of a pipeline", None, title, device, 2, 128,
                               ["1"], ["rocksort", "samtools"], None, None)
                    for device, (title, _) in STORAGE.items() if args.device in (None, device)]
    for e in experiments:
        if e.name not in args.experiment:
            continue
        gb, mib = SMALL[e.name] if args.scale == "small" else (e.data_gb, e.memory_mib)
        e = e._replace(data_gb=args.data_gb or gb, memory_mib=args.memory_mib or mib,
                       levels=[args.level] if args.level else e.levels,
                       programs=args.programs or e.programs)
        if args.own_disk:
            e = e._replace(disk="this machine's own disk", device=None)
        elif args.device and e.name != "storage":
            e = e._replace(disk=args.device, device=args.device)
        yield e


# ---- programs ----

# source: the input's path; size: its uncompressed bytes.
Job = collections.namedtuple("Job", "rocksort samtools source size threads memory_mib level "
                             "options")


def resources(job):
    kib = job.memory_mib * 1024 // job.threads
    return ["-@", str(job.threads), "-m", "%dK" % kib if kib % 1024 else "%dM" % (kib // 1024),
            *([] if job.level == "default" else ["-l", job.level])]


def rocksort(*words):
    # The syntax of 2014: the name of the output is given without .bam.
    return lambda job: [*job.rocksort, *resources(job),
                        *(word.format(mib=math.ceil(job.size / MIB)) for word in words),
                        *job.options, "--verbosity", "4", "-T", "tmp", "-", "out"]


PROGRAMS = {
    "rocksort": rocksort(),
    "rocksort-auto": rocksort("-s", "auto"),
    "rocksort-given": rocksort("-s", "{mib}M"),
    "rocksort-off": rocksort("-s", "off"),
    "samtools": lambda job: [job.samtools, "sort", *resources(job), "-T", "tmp/sort", "-o",
                             "out.bam", "-"],
    "copy": lambda job: [job.samtools, "view", "-@", str(job.threads), "-O",
                         "bam" if job.level == "default" else "bam,level=" + job.level,
                         "-o", "out.bam", "-"],
}


# ---- the disk ----


class Disk:
    """Programs see `folder`; its files are in `backing`. Each run gets a new one, so that files lie
    at the same places for all programs. device None: the plain disk."""

    def __init__(self, scratch, device, readahead_kib):
        self.backing = self.folder = os.path.join(scratch, "backing")
        self.scratch, self.device, self.readahead_kib = scratch, device, readahead_kib
        self.counts, self.server, self.why_plain = os.path.join(scratch, "counts"), None, None

    def __enter__(self):
        os.makedirs(os.path.join(self.backing, "tmp"))
        return self

    def mount(self):
        """Mounts it. What programs are to find must be in `backing` before."""
        if not self.device:
            self.why_plain = "--own-disk was given"
        elif not os.access(SPINDLE, os.X_OK):
            self.why_plain = "bench/spindle is missing: run `make bench/spindle`"
        else:
            self.folder = os.path.join(self.scratch, "disk")
            os.mkdir(self.folder)
            self.serve()

    def serve(self):
        log = os.path.join(self.scratch, "spindle.log")
        with open(log, "wb") as f:
            self.server = subprocess.Popen(
                [SPINDLE, "-f", "-o", "device=%s,counters=%s" % (self.device, self.counts),
                 self.backing, self.folder], stdin=subprocess.DEVNULL, stdout=f, stderr=f,
                start_new_session=True)
        while not os.path.ismount(self.folder):
            if self.server.poll() is not None:
                said, status = tail_of(log, 1), self.server.returncode
                os.rmdir(self.folder)
                self.folder, self.server, self.why_plain = self.backing, None, "no FUSE: " + said
                if status == 1:  # its own errors
                    raise BenchError(said)
                return
            time.sleep(0.01)
        dev = os.stat(self.folder).st_dev
        for name, value in (("read_ahead_kb", self.readahead_kib), ("max_bytes", DIRTY_BYTES)):
            try:
                write_text("/sys/class/bdi/%d:%d/%s" % (os.major(dev), os.minor(dev), name), value)
            except OSError:
                pass  # not root, or an older kernel

    def __exit__(self, *_):
        if self.server:
            self.server.terminate()
            self.server.wait()
            os.rmdir(self.folder)
        shutil.rmtree(self.backing, ignore_errors=True)

    def counters(self):
        """What the drives have done; None on a plain disk."""
        if not self.server:
            return None
        with open(self.counts, "rb") as f:
            return dict(zip(COUNTERS, struct.unpack("%dQ" % len(COUNTERS), f.read())))

    def finish(self):
        """Waits until all data are on the disk."""
        os.sync()
        before = self.counters()
        while before:
            time.sleep(0.1)
            now = self.counters()
            if now == before and not now["buffered_bytes"]:
                return
            before = now


# ---- the limit of memory ----


def read_text(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def write_text(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(str(text))


def memory_cgroups():
    """(whether it is of version 2, folders where a memory cgroup may be made)."""
    for line in read_text("/proc/self/mountinfo").splitlines():
        mount, (kind, _, options) = line.split()[4], line.split(" - ")[1].split()[:3]
        is_v2 = kind == "cgroup2"
        if is_v2:
            options = read_text(mount + "/cgroup.controllers").replace(" ", ",").strip()
        if kind in ("cgroup", "cgroup2") and "memory" in options.split(","):
            for own in read_text("/proc/self/cgroup").splitlines():
                _, controllers, path = own.split(":", 2)
                if "memory" in controllers.split(",") or (is_v2 and not controllers):
                    return is_v2, [mount + path, os.path.dirname(mount + path), mount]
    return False, []


class Cgroup:
    """Limits the memory of a shell and its children together with their page cache. `path` is None
    if that is not possible."""

    def __init__(self, n_bytes):
        self.n_bytes, self.path = n_bytes, None

    def __enter__(self):
        self.is_v2, folders = memory_cgroups()
        for folder in folders:
            path = os.path.join(folder, "bench-2014-%d" % os.getpid())
            try:
                if self.is_v2:
                    write_text(folder + "/cgroup.subtree_control", "+memory")
                os.mkdir(path)
                self.path = path
                write_text(path + ("/memory.max" if self.is_v2 else "/memory.limit_in_bytes"),
                           self.n_bytes)
                return self
            except OSError:
                self.__exit__()
        return self

    def __exit__(self, *_):
        for _ in range(100 if self.path else 0):
            try:
                if not self.is_v2:
                    write_text(self.path + "/memory.force_empty", 0)  # it keeps the page cache
                os.rmdir(self.path)
                break
            except OSError:
                time.sleep(0.05)
        self.path = None

    def words(self, command):
        enter = "echo $$ >%s && " % shlex.quote(self.path + "/cgroup.procs") if self.path else ""
        return ["sh", "-c", enter + command]


# ---- one run ----


class Sampler(threading.Thread):
    """Takes a sample of a process tree and a disk each second. `mark`: when the log said that
    samtools merges."""

    def __init__(self, disk, log, pid):
        super().__init__(daemon=True)
        self.disk, self.log, self.pid = disk, log, pid
        self.start_s, self.done = time.monotonic(), threading.Event()
        self.columns, self.io, self.mark = {name: [] for name in COLUMNS}, {}, None

    def run(self):
        while not self.done.wait(SAMPLE_S):
            self.sample()

    def sample(self, **known):
        row = dict.fromkeys(COLUMNS, 0)
        for pid in tree_memory(self.pid)[0]:
            try:
                # The name in brackets may have blanks.
                fields = read_text("/proc/%d/stat" % pid).rpartition(")")[2].split()
                io = read_text("/proc/%d/io" % pid)
            except OSError:
                continue
            row["cpu_s"] += sum(map(int, fields[11:15])) * TICK_S
            # The largest process is the sorter.
            row["rss_bytes"] = max(row["rss_bytes"], int(fields[21]) * PAGE_BYTES)
            self.io[pid] = [int(n) for n in re.findall(r"\n(?:read|write)_bytes: (\d+)", io)]
        row["read_bytes"], row["write_bytes"] = map(sum, zip(*self.io.values(), (0, 0)))
        counters = self.disk.counters() or {}
        row.update((name, counters[name]) for name in COLUMNS if name in counters)
        row["t_s"] = time.monotonic() - self.start_s
        row.update(known)
        for name, values in self.columns.items():
            # The parent counts the CPU of an ended process a moment later.
            value = max(row[name], values[-1] if values and name != "rss_bytes" else 0)
            values.append(round(value, 3))
        if self.mark is None and "bam_sort_core] merging from" in read_text(self.log):
            self.mark = row["t_s"]


def stop(child):
    """Ends all processes of a session. SIGTERM comes first, so that they remove temporary files."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, number)
            child.wait(10)
            return
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass


def run_sampled(disk, words, log):
    """Runs a command on a disk. Returns its figures, and the Sampler."""
    before = disk.counters()
    with open(log, "wb") as f:
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=f, stderr=f,
                                 cwd=disk.folder, start_new_session=True,
                                 env=dict(os.environ, TMPDIR=os.path.join(disk.folder, "tmp")))
    sampler = Sampler(disk, log, child.pid)
    sampler.start()
    try:
        end_s, usage = wait_measured(child, stop)
    finally:
        sampler.done.set()
        sampler.join()
    if child.returncode != 0:
        why = " (killed: more than its memory?)" if child.returncode in (137, -9) else ""
        raise BenchError("exit code %d%s\n%s" % (child.returncode, why, tail_of(log)))
    disk.finish()
    figures = {"wall_s": end_s - sampler.start_s, "cpu_s": usage.ru_utime + usage.ru_stime,
               "rss_bytes": usage.ru_maxrss * 1024}
    sampler.sample(t_s=figures["wall_s"], cpu_s=figures["cpu_s"])
    if before:
        figures.update((name, disk.counters()[name] - before[name]) for name in COUNTERS[1:-1])
        figures["busy_s"] = figures["busy_ns"] / 1e9 / before["n_drives"]
        figures["bytes_a_read"] = figures["read_bytes"] / max(1, figures["reads"])
    return figures, sampler


def said_in(log):
    """What a log says: all lines, and rocksort's write amplification and loading time."""
    found = {"said": [re.sub(r"^samtools rocksort: ", "", line) for line in log.splitlines()][:60]}
    match = re.search(r"runs on disk, ([\d.]+) MB temporary, ([\d.]+) MB compacted;.*"
                      r"\(load ([\d.]+), merge", log)
    if match:
        spilled, compacted, found["load_s"] = map(float, match.groups())
        found["amplification"] = (spilled + compacted) / spilled if spilled else None
    return found


class Bench:
    """What all experiments share."""

    def __init__(self, args, scratch):
        self.args, self.scratch = args, scratch
        self.samtools, self.rocksort = find_upstream(args.samtools), find_rocksort(args.rocksort)
        self.why_plain = self.is_unbounded = None

    def input_of(self, experiment):
        """(path, checksum, bytes of the records) of the input."""
        n_records = math.ceil(experiment.data_gb * 1e9 / RAW_BYTES / 1000) * 1000
        path = self.args.input or os.path.join(self.args.data_dir, "simulated-%d.bam" % n_records)
        size = os.path.getsize(path) if os.path.exists(path) else n_records * BAM_BYTES
        need_disk(self.args.data_dir, size * 4)
        if not os.path.exists(path):
            if self.args.input:
                raise BenchError("no file %s" % path)
            os.rename(simulate("bench-2014", n_records, self.scratch), path)
        want, _, raw_bytes = count(self.rocksort, path)
        return path, want, raw_bytes

    def run_once(self, experiment, source, name, level):
        """The figures of one run, with "wrong"; a failure is a result, too."""
        path, want, raw_bytes = source
        job = Job(self.rocksort, self.samtools, path if self.args.input_elsewhere else "in.bam",
                  raw_bytes, self.args.threads, experiment.memory_mib, level,
                  shlex.split(self.args.rocksort_options))
        command = "cat %s | %s" % (shlex.quote(job.source), shlex.join(PROGRAMS[name](job)))
        run = {"who": name, "level": level, "command": command, "wrong": None}
        limit = int(experiment.memory_mib * MIB * CACHE_FACTOR) + CACHE_BYTES
        log = os.path.join(self.scratch, "log")
        with Disk(self.scratch, experiment.device, self.args.readahead) as disk, \
                Cgroup(limit) as cgroup:
            if self.args.input_elsewhere:
                prepare(path, 0)
            else:
                lay(path, os.path.join(disk.backing, "in.bam"))
            disk.mount()
            disk.finish()
            self.why_plain, self.is_unbounded = disk.why_plain, not cgroup.path
            warm_memory(limit)
            try:
                figures, sampler = run_sampled(disk, cgroup.words(command), log)
                run.update(figures, **said_in(read_text(log)))
                run["series"] = self.write_series(experiment, run, sampler)
                run["wrong"] = None if name == "copy" else self.fault_of(disk.backing, want)
            except BenchError as e:
                run["wrong"] = str(e)
        return run

    def fault_of(self, folder, want):
        """What is wrong with an output, or None."""
        left = os.listdir(os.path.join(folder, "tmp"))
        if left:
            return "left temporary files: " + ", ".join(left[:5])
        got = checksum(self.rocksort, os.path.join(folder, "out.bam"), "--verify=coordinate",
                       "--checksum")
        return None if got == want else "%s instead of %s" % (got, want)

    def write_series(self, experiment, run, sampler):
        """Writes a series for scripts/plot-run.py. Returns its name below --out."""
        mark = run.get("load_s") or sampler.mark
        name = "series/%s-%s-%s-l%s.json" % (experiment.name, experiment.device, run["who"],
                                             run["level"])
        os.makedirs(os.path.join(self.args.out, "series"), exist_ok=True)
        write_json({"label": run["who"],
                    "title": "%s: %s" % (experiment.title, experiment.disk),
                    "limit": {"rss_bytes": experiment.memory_mib * MIB,
                              "label": "%d MiB given" % experiment.memory_mib},
                    "marks": [{"t_s": mark, "label": "merge"}] if mark else [],
                    "columns": sampler.columns}, os.path.join(self.args.out, name))
        return name

    def run_all(self, experiment):
        """Makes all runs of an experiment: levels one after the other, programs in turn."""
        source, runs = self.input_of(experiment), []
        for level in experiment.levels:
            for _, name in in_turn(experiment.programs, self.args.repeats):
                run = self.run_once(experiment, source, name, level)
                runs.append(run)
                progress("bench-2014: %s: %-14s level %-7s %s" % (
                    experiment.name, name, level, "WRONG: " + run["wrong"] if run["wrong"] else
                    "wall %.1f s  CPU %.1f s  %d seeks" % (run["wall_s"], run["cpu_s"],
                                                          run.get("seeks", 0))))
        return {"experiment": experiment._asdict(), "raw_bytes": source[2], "runs": runs,
                "rows": rows_of(runs)}


def lay(source, path):
    """Puts the input on the disk: as a hard link if that is possible, otherwise as a copy."""
    try:
        os.link(source, path)
    except OSError:
        shutil.copyfile(source, path)


# ---- tables ----


def rows_of(runs):
    """Medians by level and program, in the order of the runs, and ratios to samtools."""
    rows = {}
    for run in runs:
        rows.setdefault((run["level"], run["who"]), []).append(run)
    for (level, who), mine in rows.items():
        row = {"level": level, "who": who,
               "wrong": next((run["wrong"] for run in mine if run["wrong"]), None)}
        for key in FIGURES:
            values = [run[key] for run in mine if run.get(key) is not None]
            row[key] = statistics.median(values) if values else None
        rows[level, who] = row
    for (level, _), row in rows.items():
        base = rows.get((level, "samtools"), {})
        for key, name in (("wall_s", "wall_ratio"), ("seeks", "seeks_ratio")):
            row[name] = row[key] / base[key] if row[key] and base.get(key) else None
    return list(rows.values())


def result_of(row):
    return "**WRONG**: " + row["wrong"].split("\n", 1)[0] if row["wrong"] else "ok"


def experiment_text(part, plots):
    e = part["experiment"]
    yield "## %s: %s" % (e["name"], e["title"])
    yield ""
    yield "2014: %s. Here: %.2f GB : %d MiB on %s." % (
        e["in_2014"], part["raw_bytes"] / 1e9, e["memory_mib"], e["disk"])
    yield ""
    yield ("| level | program | wall s | ratio to samtools | CPU s | peak RSS MiB | disk busy s "
           "| seeks | ratio | MB read | MB written | KiB a read | write amplification | result |")
    yield "|---|---|" + "---|" * 12
    for row in part["rows"]:
        # Targets are for level 1.
        has_target = row["who"].startswith("rocksort") and row["level"] == "1"
        ratios = ["-" if row[name] is None else verdict(row[name], target if has_target else None)
                  for name, target in (("wall_ratio", e["wall_target"]),
                                       ("seeks_ratio", e["seeks_target"]))]
        yield "| %s |" % " | ".join([
            row["level"], row["who"], cell("%.1f", row["wall_s"]), ratios[0],
            cell("%.1f", row["cpu_s"]), cell("%.0f", row["rss_bytes"], MIB),
            cell("%.1f", row["busy_s"]), cell("%.0f", row["seeks"]), ratios[1],
            cell("%.0f", row["read_bytes"], 1e6), cell("%.0f", row["write_bytes"], 1e6),
            cell("%.0f", row["bytes_a_read"], 1024), cell("%.2f", row["amplification"]),
            result_of(row)])
    yield ""
    for name in plots:
        yield "![%s](%s)" % (name, name)
        yield ""
    for run in part["runs"]:
        yield "    " + run["command"].replace(ROOT + os.sep, "./")
        yield from ("        " + line for line in run.get("said", ()))
    yield ""


def storage_text(parts):
    yield "## storage: one step of a pipeline"
    yield ""
    yield ("%.2f GB : %d MiB. The price is that of the whole instance with the storage; cost = "
           "price / %d h x time. 100 %% is samtools on %s." % (
               parts[0]["raw_bytes"] / 1e9, parts[0]["experiment"]["memory_mib"], HOURS_A_MONTH,
               parts[0]["experiment"]["disk"]))
    yield ""
    yield ("| storage | $ a month | program | wall s | ratio to samtools | $ for 1000 runs | cost "
           "| seeks | result |")
    yield "|---|---|---|---|---|---|---|---|---|"
    base = None
    for part in parts:
        title, price = STORAGE[part["experiment"]["device"] or "nvme"]
        costs = {row["who"]: price / HOURS_A_MONTH / 3.6 * row["wall_s"]
                 for row in part["rows"] if row["wall_s"]}
        base = base or costs.get("samtools")
        for row in part["rows"]:
            cost = costs.get(row["who"])
            yield "| %s | %.2f | %s | %s | %s | %s | %s | %s | %s |" % (
                title, price, row["who"], cell("%.1f", row["wall_s"]),
                cell("%.2f", row["wall_ratio"]), cell("%.2f", cost),
                cell("**%.0f %%**", cost / base * 100 if cost and base else None),
                cell("%.0f", row["seeks"]), result_of(row))
    yield ""


def draw(part, folder):
    """Draws a PNG for each level. Returns their names."""
    python, drawn = find_plotter("bench-2014"), []
    name, levels = part["experiment"]["name"], list(dict.fromkeys(r["level"] for r in part["runs"]))
    for level in levels if python else ():
        series = {run["who"]: os.path.join(folder, run["series"]) for run in part["runs"]
                  if run["level"] == level and "series" in run and run["who"] != "copy"}
        png = "%s%s.png" % (name, "" if len(levels) == 1 else "-l" + level)
        if series and subprocess.run(
                [python, "-B", os.path.join(ROOT, "scripts", "plot-run.py"), "-o",
                 os.path.join(folder, png), *series.values()], check=False).returncode == 0:
            drawn.append(png)
    return drawn


def write_report(bench, parts, plots):
    """Writes the results so far, since all take long. Returns the text."""
    args = bench.args
    said = {"disk": "modelled by bench/spindle; %d KiB of read-ahead; the input lies %s" % (
                args.readahead, "elsewhere" if args.input_elsewhere else "on it"),
            "limit": "program and page cache limited to %.1f x the given memory and %d MiB by a "
            "cgroup" % (CACHE_FACTOR, CACHE_BYTES // MIB)}
    if bench.why_plain:
        said["disk"] = "**the machine's own, no modelled one**: " + bench.why_plain
    if bench.is_unbounded:
        said["limit"] = "none: no memory cgroup can be made here (are you root?)"
    said.update(describe(bench.rocksort, bench.samtools))
    lines = ["# The experiments of 2014 again, scaled", "",
             "%s, `%s`. Scale: %s; %d run(s) of each program, `-@ %d`. Wall clock and CPU are "
             "those of the pipeline, with `cat`. Disk: busy seconds (mean of the drives) and seeks "
             "until the last byte was on it." % (time.strftime("%Y-%m-%d", time.gmtime()),
                                           commit() or "unknown commit", args.scale, args.repeats,
                                           args.threads), ""]
    for part in parts:
        if part["experiment"]["name"] != "storage":
            lines += experiment_text(part, plots.get(part["experiment"]["name"], ()))
    storage = [part for part in parts if part["experiment"]["name"] == "storage"]
    lines += storage_text(storage) if storage else ()
    lines += ["- %s: %s" % item for item in said.items()]
    text = "\n".join(lines) + "\n"
    write_json({"environment": said, "experiments": parts}, os.path.join(args.out, "results.json"))
    with open(os.path.join(args.out, "results.md"), "w", encoding="utf-8") as f:
        f.write(text)
    return text


def main():
    args = parse_arguments()
    for folder in (args.data_dir, args.out):
        os.makedirs(folder, exist_ok=True)
    # Programs run on the modelled disk, where a relative path has another meaning.
    args.data_dir = os.path.abspath(args.data_dir)
    args.input = args.input and os.path.abspath(args.input)
    parts, plots, text = [], {}, ""
    with tempfile.TemporaryDirectory(prefix="bench-2014-", dir=args.data_dir) as scratch:
        bench = Bench(args, scratch)
        for experiment in chosen_experiments(args):
            parts.append(bench.run_all(experiment))
            if experiment.name != "storage":
                plots[experiment.name] = draw(parts[-1], args.out)
            text = write_report(bench, parts, plots)
    print(text, end="")
    return int(any(run["wrong"] for part in parts for run in part["runs"]))


if __name__ == "__main__":
    sys.exit(run_main("bench-2014", main))
