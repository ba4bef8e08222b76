"""What bench.py, compare.py and others share: programs and machine, the input, one measured run.

A BenchError is a message for the user; run_main() prints it and returns exit code 1. Progress goes
to standard error.

A run is measured from outside: wall clock; CPU by wait4(), for the program and all descendants that
it waited for. Every 50 ms a thread looks how many bytes the temporary directory has and, if the
program has become several processes, how much memory they have together.
"""

import argparse
import collections
import contextlib
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
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MIB = 1 << 20

# Bytes of a simulated record.
RECORD_BYTES = 348
# Rounded up: those of the input (110 measured), and besides it those of the largest output (-u) and
# of the temporary files of a program that does not compress them.
INPUT_BYTES_A_RECORD = 115
RUN_BYTES_A_RECORD = 720

# What --reads takes besides files; bench_input.py makes them.
READS = ("simulated", "simulated-long", "debian", "debian-long")

POLL_S = 0.05
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICK_S = 1 / os.sysconf("SC_CLK_TCK")

MEASURES = ("wall_s", "cpu_s", "rss_bytes", "temp_bytes", "output_bytes")


class BenchError(Exception):
    """A message for the user, printed without a traceback."""


# ---- the command line ----


def parse_records(text):
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    if not match or int(match[1]) == 0:
        raise argparse.ArgumentTypeError("%r is not a number of records like 600K or 6M" % text)
    return int(match[1]) * {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}[match[2]]


def parse_size(text, nor=""):
    """Bytes. nor: what else the text could have been, for the message."""
    match = re.fullmatch(r"(\d+)([KMG]?)B?", text)
    if not match or int(match[1]) == 0:
        raise argparse.ArgumentTypeError("%r is not a size like 512M%s" % (text, nor))
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]]


def parse_positive(text):
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError("%r is not a positive number" % text)
    return int(text)


def parse_level(text):
    """0 to 9, or the word default."""
    if text != "default" and not re.fullmatch("[0-9]", text):
        raise argparse.ArgumentTypeError("%r is not a level from 0 to 9, nor `default`" % text)
    return text


def name_list(what, known):
    """The parser of a list of known names with commas between them."""
    def parse(text):
        for name in text.split(","):
            if name not in known:
                raise argparse.ArgumentTypeError("no %s %r; there are: %s"
                                                 % (what, name, ", ".join(known)))
        return text.split(",")
    return parse


def add_list(parser, titles):
    """Adds --list, which prints names and titles."""
    class List(argparse.Action):
        def __call__(self, *_):
            for name, title in titles.items():
                print("%-18s %s" % (name, title.replace("`", "")))
            sys.exit(0)
    parser.add_argument("--list", action=List, nargs=0, help="print the names and stop")


def add_programs(parser):
    parser.add_argument("--rocksort", metavar="CMD",
                        default=shlex.quote(os.path.join(ROOT, "samtools")) + " rocksort",
                        help="command to measure [./samtools rocksort]")
    parser.add_argument("--samtools", metavar="FILE",
                        help="samtools to compare with [the first on PATH that is not ours]")


def bare_parser(doc):
    """A parser whose help is the text at the top of a program."""
    first, _, rest = doc.partition("\n\n")
    return argparse.ArgumentParser(description=first, epilog=rest,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)


def make_parser(doc, records):
    """A parser with the options of all benchmarks. records: the default number of records."""
    parser = bare_parser(doc)
    parser.add_argument("--dir", metavar="DIR", default=os.environ.get("TMPDIR") or "/var/tmp",
                        help="where the scratch directory is made [$TMPDIR or /var/tmp]")
    parser.add_argument("--records", metavar="N", type=parse_records,
                        default=parse_records(records),
                        help="records to simulate or to tile, K, M or G allowed [%s]" % records)
    parser.add_argument("--repeats", metavar="N", type=parse_positive, default=3,
                        help="runs of each program at each point [3]")
    parser.add_argument("--json", metavar="FILE", help="also write every single run to FILE")
    parser.add_argument("--cold-memory", action="store_true",
                        help="do not touch memory before each run")
    add_programs(parser)
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--reads", metavar="WHAT", nargs="+", default=["simulated"],
                        help="simulated or simulated-long; debian or debian-long: real reads of a "
                        "Debian package, tiled; or BAM files, whose reads are tiled [simulated]")
    source.add_argument("--input", metavar="BAM", help="an unsorted BAM, taken as it is")
    return parser


def check_paths(args):
    words = [args.input] if args.input else args.reads if args.reads[0] not in READS else []
    for word in words:
        if not os.path.isfile(word):
            raise BenchError("no file %s" % word)
    if args.reads[0] in READS and len(args.reads) > 1:
        raise BenchError("--reads %s stands alone, without %s" % tuple(args.reads[:2]))
    if not os.path.isdir(args.dir):
        raise BenchError("no directory %s" % args.dir)
    args.dir = os.path.abspath(args.dir)


def run_main(name, bench):
    """Calls bench(), which returns an exit code or None. Returns the exit code of the program."""
    # These do what Ctrl-C does: end the child, remove the scratch directory, unmount the disk.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup
            signal.signal(number, signal.default_int_handler)
    try:
        return bench() or 0
    except (BenchError, OSError) as e:
        print("%s: %s" % (name, e), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("%s: interrupted" % name, file=sys.stderr)
        return 130


def progress(text):
    print(text, file=sys.stderr, flush=True)


# ---- what is compared ----


def find_upstream(wanted, must_exist=True):
    """The samtools to compare with, but not the front end that `make` builds. None if there is none
    and must_exist is false."""
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
    if must_exist:
        raise BenchError("no samtools on PATH to compare with: apt-get install samtools")
    return None


def find_rocksort(command):
    words = shlex.split(command)
    if not words or not shutil.which(words[0]):
        raise BenchError("no program %s: run `make` first" % (words[0] if words else "''"))
    words[0] = shutil.which(words[0])
    if os.path.dirname(words[0]):
        words[0] = os.path.abspath(words[0])
    return words


def output_of(command, timeout_s=60):
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False, universal_newlines=True,
                              errors="replace", timeout=timeout_s)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


def package_version(path):
    """The Debian package and version that a file came with, or an empty string."""
    # With a merged /usr the file has two names, of which dpkg knows one.
    real = os.path.realpath(path)
    for name in (path, real, "/usr" + path, re.sub("^/usr", "", real)):
        match = re.match(r"([\w.+:-]+): /", output_of(["dpkg-query", "-S", name]))
        if match:
            return output_of(["dpkg-query", "-W", "-f", "${Package} ${Version}", match[1]]).strip()
    return ""


def shared_libraries(program):
    """Paths and package versions, by ldd, of the libraries that matter for speed."""
    found = {}
    for line in output_of(["ldd", program]).splitlines():
        match = re.match(r"\s*lib(hts|deflate|rocksdb|isal|z)\.so\S* => (\S+)", line)
        if match:
            version = package_version(match[2])
            found["lib" + match[1]] = match[2] + (" (%s)" % version if version else "")
    return found


def read_text(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def usable_cores():
    return len(os.sched_getaffinity(0))


def memory_of_machine(what):
    """Bytes of MemTotal, or of MemAvailable: without swapping."""
    return int(re.search(what + r":\s+(\d+) kB", read_text("/proc/meminfo"))[1]) << 10


def machine():
    """Facts about the machine that the figures depend on."""
    model = re.search(r"(?m)^model name\s*: (.*)", read_text("/proc/cpuinfo"))
    return {"CPU": "%s, %d usable" % (model[1] if model else platform.machine(), usable_cores()),
            "memory": "%.1f GiB" % (memory_of_machine("MemTotal") / (1 << 30)),
            "system": platform.platform()}


def commit():
    """The commit of the source tree, marked if files were changed since, or an empty string."""
    git = ["git", "-C", ROOT]
    text = output_of(git + ["rev-parse", "HEAD"]).strip()
    if not re.fullmatch("[0-9a-f]{40}", text):
        return ""
    changed = output_of(git + ["status", "--porcelain", "--untracked-files=no"]).strip()
    return text + (" and changes" if changed else "")


def describe(rocksort, samtools):
    """Facts about the programs and the machine."""
    said = {}
    for name, words in (("rocksort", rocksort), ("samtools", [samtools])):
        # A stand-in may have no --version.
        lines = output_of(words + ["--version"]).strip().splitlines()[:2]
        said[name] = "%s: %s" % (shlex.join(words), ", ".join(line[:99] for line in lines))
        for library, path in sorted(shared_libraries(words[0]).items()):
            said["%s's %s" % (name, library)] = path
    return dict(said, **machine())


def find_plotter(name):
    """The first Python that has matplotlib: this one or Debian's; None after a message."""
    for python in (sys.executable, "/usr/bin/python3",
                   os.path.join(ROOT, "build/venv/bin/python")):
        if output_of([python, "-c", "import matplotlib, PIL; print('there')"]).endswith("there\n"):
            return python
    progress("%s: no plot, since there is no matplotlib: apt-get install python3-matplotlib" % name)
    return None


# ---- one run ----


def bytes_below(folder):
    """Bytes of all files in a folder; hard links count once. Files may vanish meanwhile."""
    seen = {}
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                st = os.lstat(os.path.join(path, name))
            except OSError:
                continue
            seen[(st.st_dev, st.st_ino)] = st.st_size
    return sum(seen.values())


def unnamed_bytes(pid, folder):
    """Bytes of files of a folder that a process has open, but that have no name any more. Files and
    process may vanish meanwhile."""
    found = {}
    try:
        for fd in os.listdir("/proc/%s/fd" % pid):
            path = "/proc/%s/fd/%s" % (pid, fd)
            name = os.readlink(path)
            if name.startswith(folder + "/") and name.endswith(" (deleted)"):
                st = os.stat(path)
                found[(st.st_dev, st.st_ino)] = st.st_blocks * 512
    except OSError:
        pass
    return sum(found.values())


def tree_memory(root):
    """(their ids, their resident bytes) of a process and its descendants.

    A page that two processes share counts twice. Processes may end meanwhile.
    """
    found, resident = [], 0
    pids = [root]
    while pids:
        folder = "/proc/%s" % pids.pop()
        try:
            with open(folder + "/statm", encoding="ascii") as f:
                resident += int(f.read().split()[1]) * PAGE_BYTES
            found.append(int(folder[len("/proc/"):]))
            for task in os.listdir(folder + "/task"):
                with open("%s/task/%s/children" % (folder, task), encoding="ascii") as f:
                    pids += f.read().split()
        except (OSError, IndexError):
            pass
    return found, resident


class Watch(threading.Thread):
    """Watches a directory and a program until it is told to stop.

    `temp_bytes` is the largest size of the directory, with the files that were opened there and
    have no name any more. `tree_bytes` is the largest memory that the
    processes of the program had together while there were several: wait4() knows the largest
    process only.
    """

    def __init__(self, folder):
        super().__init__(daemon=True)
        self.folder = folder
        self.pid = None
        self.temp_bytes = self.tree_bytes = 0
        self.done = threading.Event()

    def run(self):
        while not self.done.wait(POLL_S):
            self.look()

    def look(self):
        temp_bytes = bytes_below(self.folder)
        if self.pid:
            pids, resident = tree_memory(self.pid)
            temp_bytes += sum(unnamed_bytes(pid, self.folder) for pid in pids)
            if len(pids) > 1:
                self.tree_bytes = max(self.tree_bytes, resident)
        self.temp_bytes = max(self.temp_bytes, temp_bytes)


def tail_of(path, n_lines=6):
    return "\n".join(read_text(path).rstrip().split("\n")[-n_lines:])


# temp_dir: an empty directory; output: the path of the result; log: that of what is said.
Room = collections.namedtuple("Room", "temp_dir output log")


@contextlib.contextmanager
def room_for_run(scratch, ending="bam"):
    """A Room below `scratch` for one run. Afterwards the temporary directory and the result are
    removed, with an index if the program has written one."""
    room = Room(*(os.path.join(scratch, name) for name in ("temp", "out." + ending, "log")))
    os.mkdir(room.temp_dir)
    try:
        yield room
    finally:
        shutil.rmtree(room.temp_dir, ignore_errors=True)
        for name in os.listdir(scratch):
            if name.startswith("out."):
                os.unlink(os.path.join(scratch, name))


def terminate(child):
    """Ends a child, which removes its temporary files."""
    child.terminate()
    child.wait()


def wait_measured(child, stop):
    """Waits for a child. Returns when it ended, by time.monotonic, and what it used. Calls
    stop(child) if the waiting ends early."""
    try:
        _, status, usage = os.wait4(child.pid, 0)
        end = time.monotonic()
    except BaseException:
        stop(child)
        raise
    child.returncode = os.waitstatus_to_exitcode(status)
    return end, usage


def run_measured(command, room, watch=None, source=None):
    """Runs the command to its end. Returns wall, CPU, peak RSS, temporary bytes and output size.

    watch: a Watch of room.temp_dir that was not started; it learns the process in `pid`. source: an
    open file for standard input, which is closed here.
    Linux also counts the memory of a child before its exec: no peak is below that of this Python.
    """
    watch = watch or Watch(room.temp_dir)
    with open(room.log, "wb") as log:
        watch.start()
        start = time.monotonic()
        try:
            with source or open(os.devnull, "rb") as stdin:
                child = subprocess.Popen(command, stdin=stdin, stdout=log, stderr=log,
                                         env=dict(os.environ, TMPDIR=room.temp_dir))
            watch.pid = child.pid
            end, usage = wait_measured(child, terminate)
            wall = end - start
        finally:
            watch.done.set()
            watch.join()
    if child.returncode != 0:
        raise BenchError("exit code %d from: %s\n%s" % (child.returncode, shlex.join(command),
                                                        tail_of(room.log)))
    if not os.path.exists(room.output):
        raise BenchError("no output from: %s\n%s" % (shlex.join(command), tail_of(room.log)))
    return {"wall_s": wall, "cpu_s": usage.ru_utime + usage.ru_stime,
            "rss_bytes": max(usage.ru_maxrss * 1024, watch.tree_bytes),
            "temp_bytes": watch.temp_bytes, "output_bytes": os.stat(room.output).st_size}


def prepare(source, memory_bytes):
    """Makes runs alike: no data left to write, the input in the page cache, memory backed.

    memory_bytes: how much the program and its files may need; with 0 no memory is touched.
    """
    os.sync()  # otherwise writes of the last run would slow this one
    with open(source, "rb", buffering=0) as f:
        while f.read(8 * MIB):
            pass
    if memory_bytes:
        warm_memory(memory_bytes)


def warm_memory(size):
    """Touches free memory in a child process. When it ends the memory is free but backed."""
    size = min(size, memory_of_machine("MemAvailable") // 2)
    subprocess.run([sys.executable, "-c", "import sys; b'x' * int(sys.argv[1])", str(size)],
                   stdin=subprocess.DEVNULL, check=False)


def medians_of(runs):
    return {key: statistics.median(r[key] for r in runs) for key in MEASURES}


def medians_at(runs, point, who):
    """The medians of the runs of one program at one point; None if there are none."""
    mine = [r for r in runs if r["point"] == point and r["who"] == who]
    return medians_of(mine) if mine else None


def in_turn(names, repeats):
    """(repeat from 1, name) of every run. The names come in turn, and each repeat swaps their
    order."""
    for repeat in range(repeats):
        for name in names[::-1] if repeat % 2 else names:
            yield repeat + 1, name


def run_in_turn(program, points, repeats, run_once):
    """The results of run_once(name, point) for the names of each point. points: (point, names)
    pairs. program: who measures, for the progress."""
    runs = []
    for point, names in points:
        for repeat, name in in_turn(list(names), repeats):
            result = dict(run_once(name, point), repeat=repeat)
            runs.append(result)
            progress("%s: %s" % (program, said_of_run(result, repeats)))
    return runs


def said_of_run(result, repeats):
    """Prints a finished run in one line."""
    return "%-12s %d/%d  %-8s  wall %6.2f s  CPU %6.2f s  RSS %5.0f MiB  temp %5.0f MB" % (
        result["point"], result["repeat"], repeats, result["who"], result["wall_s"],
        result["cpu_s"], result["rss_bytes"] / MIB, result["temp_bytes"] / 1e6)


def verdict(value, target, form="%.2f"):
    """A ratio or a size, and whether it is at most its target; None: it has none."""
    if target is None:
        return form % value
    return "%s (<= %s) %s" % (form % value, form % target, "ok" if value <= target else "**MISS**")


def cell(form, value, scale=1):
    return "-" if value is None else form % (value / scale)


def write_json(value, path):
    """Replaces the file as a whole: it is there even if the machine is taken away."""
    if path:
        with open(path + ".part", "w", encoding="utf-8") as f:
            json.dump(value, f, indent=1)
            f.write("\n")
        os.replace(path + ".part", path)


def report(args, text, said, **measured):
    """Prints the results, then what is said of programs, machine and input. With --json all of it
    and what was measured goes to a file, too."""
    print(text + "\n")
    for key, value in said.items():
        print("- %s: %s" % (key, value))
    write_json(dict({"environment": said}, **measured), args.json)


# ---- the input ----


def count_records(upstream, path, *options):
    """The records of a file that `samtools view` counts with these options."""
    done = subprocess.run([upstream, "view", "-c", "-@2", *options, path],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise BenchError("samtools cannot read %s" % path)
    return int(done.stdout)


def need_records(upstream, path, records, who):
    """Checks the number of records of a result."""
    found = count_records(upstream, path)
    if found != records:
        raise BenchError("the result of %s has %d records instead of %d" % (who, found, records))


def checksum(rocksort, path, *options):
    """What rocksort says of a file's records: checksum, number and bytes."""
    said = output_of(rocksort + [*options, "-@", str(usable_cores()), path], timeout_s=3600)
    match = re.search(r"xxh3sum:\w+ records:\d+ bytes:\d+", said)
    if not match:
        raise BenchError("rocksort cannot read %s: %s" % (path, said.strip()))
    return match[0]


def count(rocksort, path):
    """(checksum, records, bytes of the records) of the input."""
    said = checksum(rocksort, path, "--checksum-only")
    records, n_bytes = map(int, re.search(r"records:(\d+) bytes:(\d+)", said).groups())
    if records == 0:
        raise BenchError("%s has no records" % path)
    return said, records, n_bytes


def need_disk(folder, need):
    free = shutil.disk_usage(folder).free
    if free < need:
        raise BenchError("%s has %.1f GB free, %.1f GB may be needed: name a roomier directory "
                         "with --dir, or sort fewer records" % (folder, free / 1e9, need / 1e9))


def simulate(name, records, scratch, options=()):
    """Writes simulated reads to in.bam in `scratch`."""
    program = os.path.join(ROOT, "bench", "simulate-reads")
    if not os.access(program, os.X_OK):
        raise BenchError("%s is missing: run `make %s`" % (program, os.path.relpath(program, ROOT)))
    path = os.path.join(scratch, "in.bam")
    progress("%s: simulating %d records" % (name, records))
    done = subprocess.run([program, "-n", str(records), "-@", str(usable_cores()), "-O", "bam",
                           "-o", path, *options], stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise BenchError("simulate-reads failed")
    return path
