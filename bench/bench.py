#!/usr/bin/env python3
"""Compares `samtools rocksort` with the `samtools sort` on PATH: time, memory, disk.

The input is simulated once. At each point both programs get the same input, level, threads and
total memory and run alternately, the order swapped from repeat to repeat, the input read into the
page cache before each run. The table shows medians, and the ratios rocksort / samtools with the
targets of issue 2 beside them. Each result of rocksort is checked (quickcheck, record count).

    bench/bench.py                            all points, 6 M records, 3 repeats
    bench/bench.py --points l1-64M,u-512M     some
    bench/bench.py --list                     which there are

Before each run a helper process touches and frees as much memory as the run may need. A virtual
machine hands memory that has been free for some seconds back to its host (free page reporting,
balloons); to touch it again costs ten times as much as on a machine that owns its memory, charged
to whichever program comes by (`--cold-memory` leaves this out, for comparison).

Everything it writes goes to a directory of its own in --dir and is removed at the end. Exit code:
0 if all runs worked (whether or not a target was reached), 1 otherwise.
"""

import argparse
import collections
import json
import os
import platform
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MIB = 1 << 20

# `targets`: at most so much of samtools' wall and CPU, and of peak RSS in MiB (None: no target).
Point = collections.namedtuple("Point", "name title options wall cpu rss")

POINTS = [
    Point("l1-512M", "`-l 1`, 512 MB", ["-l", "1", "-@2", "-m256M"], 0.70, 0.74, 576),
    Point("l1-64M", "`-l 1`, 64 MB", ["-l", "1", "-@2", "-m32M"], 0.66, 0.66, 128),
    Point("u-512M", "`-u`, 512 MB", ["-u", "-@2", "-m256M"], 0.58, 0.62, 576),
    Point("default-512M", "default level, 512 MB", ["-@2", "-m256M"], 0.90, 0.90, 576),
    Point("l1-memory", "`-l 1`, all in memory (3 GB)", ["-l", "1", "-@2", "-m1536M"],
          0.78, 0.78, 3072 + 64),
]
# No sort at all: what decoding and encoding alone cost.
COPY = Point("copy", "plain copy: `samtools view -b -1 -@2`", ["-b", "-1", "-@2"],
             None, None, None)

# Bytes a record, rounded up: the input (109 measured), and on top of it the largest output (-u,
# 347) with the temporary files of a program that does not compress them (347).
INPUT_BYTES_A_RECORD = 115
RUN_BYTES_A_RECORD = 720

# The largest point's program and output together.
WARM_MEMORY_BYTES = 5 << 30


class BenchError(Exception):
    """A message for the user; no traceback."""


def parse_records(text):
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    if not match or int(match[1]) == 0:
        raise argparse.ArgumentTypeError("%r is not a number of records like 600K or 6M" % text)
    return int(match[1]) * {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}[match[2]]


def parse_positive(text):
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError("%r is not a positive number" % text)
    return int(text)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0], epilog="\n\n".join(__doc__.split("\n\n")[1:]),
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", metavar="DIR", default=os.environ.get("TMPDIR") or "/var/tmp",
                        help="where the scratch directory is made [$TMPDIR or /var/tmp]")
    parser.add_argument("--records", metavar="N", type=parse_records, default=parse_records("6M"),
                        help="records to simulate, K, M or G allowed [6M]")
    parser.add_argument("--repeats", metavar="N", type=parse_positive, default=3,
                        help="runs of each program at each point [3]")
    parser.add_argument("--points", metavar="LIST",
                        help="comma-separated names of --list [all]")
    parser.add_argument("--list", action="store_true", help="name the points and stop")
    parser.add_argument("--json", metavar="FILE", help="also write every single run to FILE")
    parser.add_argument("--cold-memory", action="store_true",
                        help="do not touch memory before each run")
    parser.add_argument("--rocksort", metavar="CMD",
                        default=shlex.quote(os.path.join(ROOT, "samtools")) + " rocksort",
                        help="command to measure [./samtools rocksort]")
    parser.add_argument("--samtools", metavar="FILE",
                        help="samtools to compare with [the first on PATH that is not ours]")
    parser.add_argument("--input", metavar="BAM",
                        help="an unsorted BAM to use instead of a simulated one")
    args = parser.parse_args()
    known = {p.name: p for p in POINTS + [COPY]}
    if args.list:
        for point in known.values():
            print("%-14s %s" % (point.name, point.title.replace("`", "")))
        sys.exit(0)
    names = args.points.split(",") if args.points else list(known)
    for name in names:
        if name not in known:
            parser.error("no point %r; there are: %s" % (name, ", ".join(known)))
    args.points = [known[name] for name in names]
    return args


# ---- what is compared ----


def find_upstream(wanted):
    """The samtools to compare with, never the front end that `make` built."""
    if wanted:
        path = shutil.which(wanted)
        if not path:
            raise BenchError("no program %s" % wanted)
        return path
    ours = os.path.join(ROOT, "samtools")
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, "samtools")
        if not os.access(path, os.X_OK) or os.path.isdir(path):
            continue
        if os.path.exists(ours) and os.path.samefile(path, ours):
            continue
        return path
    raise BenchError("no samtools on PATH to compare with: apt-get install samtools")


def find_rocksort(command):
    words = shlex.split(command)
    if not words or not shutil.which(words[0]):
        raise BenchError("no program %s: run `make` first" % (words[0] if words else "''"))
    words[0] = shutil.which(words[0])
    if os.path.dirname(words[0]):
        words[0] = os.path.abspath(words[0])
    return words


def output_of(command):
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False, universal_newlines=True,
                              errors="replace", timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


def package_version(path):
    """The Debian package and version that a file came with, or an empty string."""
    # A merged /usr has the file under both names, dpkg knows one of them.
    real = os.path.realpath(path)
    for name in (path, real, "/usr" + path, re.sub("^/usr", "", real)):
        match = re.match(r"([\w.+:-]+): /", output_of(["dpkg-query", "-S", name]))
        if match:
            return output_of(["dpkg-query", "-W", "-f", "${Package} ${Version}", match[1]]).strip()
    return ""


def shared_libraries(program):
    """Path and package version of the libraries that decide the speed, by ldd."""
    found = {}
    for line in output_of(["ldd", program]).splitlines():
        match = re.match(r"\s*lib(hts|deflate|rocksdb|isal|z)\.so\S* => (\S+)", line)
        if match:
            version = package_version(match[2])
            found["lib" + match[1]] = match[2] + (" (%s)" % version if version else "")
    return found


def cpu_model():
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as f:
            for line in f:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def total_memory():
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return 0


def available_memory():
    """Bytes that could be had without swapping; 0 if the system does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii", errors="replace") as f:
            for line in f:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) << 10
    except (OSError, ValueError):
        pass
    return 0


def describe(rocksort, upstream):
    versions = output_of(rocksort + ["--version"]).strip().splitlines()
    # A stand-in such as `samtools sort` answers --version with an error; then say that instead.
    first = versions[0] if versions and len(versions[0]) < 100 else "(no version)"
    said = {
        "rocksort": "%s: %s" % (shlex.join(rocksort), first),
        "samtools": "%s: %s" % (upstream, ", ".join(
            output_of([upstream, "--version"]).splitlines()[:2])),
    }
    for name, program in (("rocksort", rocksort[0]), ("samtools", upstream)):
        for library, path in sorted(shared_libraries(program).items()):
            said["%s's %s" % (name, library)] = path
    said["CPU"] = "%s, %d usable" % (cpu_model(), len(os.sched_getaffinity(0)))
    said["memory"] = "%.1f GiB" % (total_memory() / (1 << 30))
    said["system"] = platform.platform()
    return said


# ---- one run ----


def bytes_below(folder):
    """Bytes of all files there, hard links once. Files may go while this looks."""
    seen = {}
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                st = os.lstat(os.path.join(path, name))
            except OSError:
                continue
            seen[(st.st_dev, st.st_ino)] = st.st_size
    return sum(seen.values())


class PeakBytes(threading.Thread):
    """Watches a directory until told to stop; `peak` is the most it held at one time."""

    def __init__(self, folder):
        super().__init__(daemon=True)
        self.folder = folder
        self.peak = 0
        self.done = threading.Event()

    def run(self):
        while not self.done.wait(0.05):
            self.peak = max(self.peak, bytes_below(self.folder))


def tail_of(path, n_lines=6):
    with open(path, encoding="utf-8", errors="replace") as f:
        return "".join(collections.deque(f, n_lines)).rstrip()


def run_measured(command, temp_dir, output, log_path):
    """Runs the command to its end; its wall, CPU, peak RSS, temporary bytes and output size."""
    watch = PeakBytes(temp_dir)
    with open(log_path, "wb") as log:
        watch.start()
        start = time.monotonic()
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            _, status, usage = os.wait4(child.pid, 0)
            wall = time.monotonic() - start
        except BaseException:
            child.terminate()  # so that it can remove its temporary files
            child.wait()
            raise
        finally:
            watch.done.set()
            watch.join()
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise BenchError("exit code %d from: %s\n%s" % (child.returncode, shlex.join(command),
                                                        tail_of(log_path)))
    rss = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {"wall_s": wall, "cpu_s": usage.ru_utime + usage.ru_stime, "rss_bytes": rss,
            "temp_bytes": watch.peak, "output_bytes": os.stat(output).st_size}


def warm_file(path):
    with open(path, "rb", buffering=0) as f:
        while f.read(8 * MIB):
            pass


def warm_memory():
    """Touches free memory, in a process of its own, so that it is free again but backed."""
    size = min(WARM_MEMORY_BYTES, available_memory() // 2)
    subprocess.run([sys.executable, "-c", "import sys; b'x' * int(sys.argv[1])", str(size)],
                   stdin=subprocess.DEVNULL, check=False)


def check_result(upstream, path, records):
    done = subprocess.run([upstream, "quickcheck", "-v", path], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        raise BenchError("samtools quickcheck rejects rocksort's result: "
                         + done.stdout.decode(errors="replace"))
    count = count_records(upstream, path)
    if count != records:
        raise BenchError("rocksort's result has %d records instead of %d" % (count, records))


def count_records(upstream, path):
    done = subprocess.run([upstream, "view", "-c", "-@2", path], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise BenchError("samtools cannot read %s" % path)
    return int(done.stdout)


def run_once(who, point, setting):
    """One run of `who` (rocksort, samtools or copy) at the point."""
    temp_dir = os.path.join(setting.scratch, "temp")
    output = os.path.join(setting.scratch, "out.bam")
    os.mkdir(temp_dir)
    if who == "copy":
        command = [setting.upstream, "view"] + point.options
    else:
        command = setting.rocksort if who == "rocksort" else [setting.upstream, "sort"]
        command = command + point.options + ["-T", temp_dir]
    command = command + ["-o", output, setting.input]
    os.sync()  # else the last run's writes would be done at this one's cost
    warm_file(setting.input)
    if not setting.cold_memory:
        warm_memory()
    try:
        result = run_measured(command, temp_dir, output, os.path.join(setting.scratch, "log"))
        if who == "rocksort":
            check_result(setting.upstream, output, setting.records)
            left = os.listdir(temp_dir)
            if left:
                raise BenchError("rocksort left temporary files: %s" % ", ".join(left[:5]))
    finally:
        shutil.rmtree(temp_dir, ignore_errors=True)
        if os.path.exists(output):
            os.unlink(output)
    result.update(who=who, point=point.name, command=shlex.join(command))
    return result


# ---- the whole ----


Setting = collections.namedtuple("Setting", "rocksort upstream scratch input records cold_memory")


def progress(text):
    print(text, file=sys.stderr, flush=True)


def need_disk(folder, records, simulate):
    need = records * (RUN_BYTES_A_RECORD + (INPUT_BYTES_A_RECORD if simulate else 0))
    free = shutil.disk_usage(folder).free
    if free < need:
        raise BenchError("%s has %.1f GB free, %.1f GB may be needed: name a roomier directory "
                         "with --dir, or use fewer --records" % (folder, free / 1e9, need / 1e9))


def need_memory(points):
    """Only warns: a machine short of memory swaps, and its numbers mean nothing."""
    most = max([p.rss or 0 for p in points]) * MIB
    if 0 < total_memory() < most * 1.2:
        progress("bench: warning: this machine's %.1f GiB of memory are few for a point that uses "
                 "%.1f GiB" % (total_memory() / (1 << 30), most / (1 << 30)))


def simulate(args, scratch):
    program = os.path.join(ROOT, "bench", "simulate-reads")
    if not os.access(program, os.X_OK):
        raise BenchError("%s is missing: run `make bench`" % program)
    path = os.path.join(scratch, "in.bam")
    progress("bench: simulating %d records" % args.records)
    done = subprocess.run([program, "-n", str(args.records), "-@", "2", "-O", "bam", "-o", path],
                          stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise BenchError("simulate-reads failed")
    return path


def measure(args, setting):
    """Every run: point by point, and within a point the programs in turn, order swapped."""
    runs = []
    for point in args.points:
        for repeat in range(args.repeats):
            order = ["copy"] if point is COPY else ["rocksort", "samtools"]
            for who in order[::-1] if repeat % 2 else order:
                result = run_once(who, point, setting)
                result["repeat"] = repeat + 1
                runs.append(result)
                progress("bench: %-12s %d/%d  %-8s  wall %6.2f s  CPU %6.2f s  RSS %5.0f MiB  "
                         "temp %5.0f MB" % (point.name, repeat + 1, args.repeats, who,
                                            result["wall_s"], result["cpu_s"],
                                            result["rss_bytes"] / MIB,
                                            result["temp_bytes"] / 1e6))
    return runs


def medians(runs, point, who):
    mine = [r for r in runs if r["point"] == point.name and r["who"] == who]
    return {key: statistics.median(r[key] for r in mine)
            for key in ("wall_s", "cpu_s", "rss_bytes", "temp_bytes", "output_bytes")}


def verdict(value, target, form):
    if target is None:
        return form % value
    return "%s (<= %s) %s" % (form % value, form % target, "ok" if value <= target else "**MISS**")


def table(runs, points):
    yield ("| point | program | wall s | CPU s | peak RSS MiB | temp MB | output MB "
           "| wall ratio (target) | CPU ratio (target) |")
    yield "|---|---|---|---|---|---|---|---|---|"
    for point in points:
        got = {who: medians(runs, point, who)
               for who in (["copy"] if point is COPY else ["rocksort", "samtools"])}
        for who, m in got.items():
            ratios = ("", "")
            rss = "%.0f" % (m["rss_bytes"] / MIB)
            if who == "rocksort":
                other = got["samtools"]
                ratios = (verdict(m["wall_s"] / other["wall_s"], point.wall, "%.2f"),
                          verdict(m["cpu_s"] / other["cpu_s"], point.cpu, "%.2f"))
                rss = verdict(m["rss_bytes"] / MIB, point.rss, "%.0f")
            yield "| %s | %s | %.2f | %.2f | %s | %.0f | %.1f | %s | %s |" % (
                point.title, "samtools" if who == "copy" else who, m["wall_s"], m["cpu_s"], rss,
                m["temp_bytes"] / 1e6, m["output_bytes"] / 1e6, *ratios)


def bench(args):
    upstream = find_upstream(args.samtools)
    rocksort = find_rocksort(args.rocksort)
    if args.input and not os.path.isfile(args.input):
        raise BenchError("no file %s" % args.input)
    if not os.path.isdir(args.dir):
        raise BenchError("no directory %s" % args.dir)
    scratch = tempfile.mkdtemp(prefix="rocksort-bench-", dir=args.dir)
    try:
        if args.input:
            path = os.path.abspath(args.input)
            records = count_records(upstream, path)
        else:
            need_disk(args.dir, args.records, True)
            path = simulate(args, scratch)
            records = args.records
        need_disk(args.dir, records, False)
        need_memory(args.points)
        said = describe(rocksort, upstream)
        runs = measure(args, Setting(rocksort, upstream, scratch, path, records,
                                     args.cold_memory))
        said["input"] = "%s, %d records, %.1f MB, in the page cache" % (
            "simulated" if not args.input else path, records, os.stat(path).st_size / 1e6)
        said["free memory"] = "as it comes" if args.cold_memory else "touched before each run"
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print("Medians of %d runs each, programs in turn, 2 threads; MB are 10^6 bytes, the memory in "
          "the points' names 2^20. The targets are for 6 M records.\n" % args.repeats)
    print("\n".join(table(runs, args.points)) + "\n")
    for key, value in said.items():
        print("- %s: %s" % (key, value))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump({"environment": said, "records": records, "runs": runs}, f, indent=1)
            f.write("\n")


def main():
    # As Ctrl-C: the child is ended and the scratch directory removed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        bench(parse_arguments())
    except BenchError as e:
        print("bench: %s" % e, file=sys.stderr)
        return 1
    except OSError as e:
        print("bench: %s" % e, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bench: interrupted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
