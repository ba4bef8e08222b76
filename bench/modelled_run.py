"""Runs a command for bench-2014.py on a modelled disk, with a limit of memory, and samples it.

A Disk is a directory that bench/spindle serves at the speed of a modelled device. Without FUSE or
bench/spindle it is a plain directory, and `why_plain` says why. Each run gets a new Disk, so that
files lie at the same places for all programs.

A run is a shell command line in that directory. If a memory cgroup can be made, it limits memory
and page cache (`spindle run`). A thread takes a sample each second: CPU and memory of all processes
from /proc, and the disk's counters. The samples become a series, which scripts/plot-run.py draws.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time

from measure import PAGE_BYTES, ROOT, BenchError, bytes_below, tail_of

SAMPLE_S = 1.0
NO_FUSE, NO_CGROUP = 77, 78
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
SPINDLE = os.path.join(ROOT, "bench", "spindle")

# Columns of a series. Those in COUNTED count from the start of the run.
COUNTED = ("cpu_s", "read_bytes", "write_bytes", "seeks", "busy_s")
COLUMNS = ("t_s",) + COUNTED + ("rss_bytes", "temp_bytes")


# ---- the disk ----


def first_error(done):
    return done.stdout.decode(errors="replace").strip().split("\n")[-1]


def call(words):
    return subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)


class Disk:
    """A context manager. Programs see `folder`; its files are in `backing`."""

    def __init__(self, scratch, device_options, spindle=SPINDLE):
        self.backing = os.path.join(scratch, "backing")
        self.folder = os.path.join(scratch, "disk")
        self.spindle, self.device_options = spindle, device_options
        self.why_plain = None

    def __enter__(self):
        os.mkdir(self.backing)
        return self

    def __exit__(self, *_):
        if self.is_modelled():
            # A killed program that was writing may keep the mount busy for a moment.
            for _ in range(20):
                done = call([self.spindle, "--unmount", self.folder])
                # If it is unmounted, only its process has not ended yet, which is no error.
                if done.returncode == 0 or not os.path.ismount(self.folder):
                    break
                time.sleep(0.5)
            else:
                raise BenchError("cannot unmount %s: %s" % (self.folder, first_error(done)))
            os.rmdir(self.folder)
        shutil.rmtree(self.backing, ignore_errors=True)

    def is_modelled(self):
        return self.folder != self.backing

    def mount(self):
        """Mounts the disk. Files that programs are to find must be in `backing` before."""
        if not os.access(self.spindle, os.X_OK):
            return self.stay_plain("%s is missing: run `make bench/spindle`" % self.spindle)
        os.mkdir(self.folder)
        # A pipe for its output would stay open as long as it is mounted.
        log = self.backing + ".log"
        with open(log, "wb") as f:
            done = subprocess.run([self.spindle] + self.device_options
                                  + [self.backing, self.folder], stdin=subprocess.DEVNULL,
                                  stdout=f, stderr=f, check=False)
        if done.returncode == 0:
            return None
        os.rmdir(self.folder)
        said = tail_of(log, 1)
        if done.returncode == NO_FUSE:
            return self.stay_plain(said)
        self.folder = self.backing
        raise BenchError("spindle: exit code %d: %s" % (done.returncode, said))

    def stay_plain(self, why):
        self.folder = self.backing
        self.why_plain = why

    def report(self):
        """The report of spindle; None on a plain disk."""
        if not self.is_modelled():
            return None
        with open(os.path.join(self.folder, ".spindle", "report.json"), encoding="ascii") as f:
            return json.load(f)

    def finish(self, label):
        """Writes all dirty data. Returns the counters since the last call, or since the mount, and
        the seconds that the writing took."""
        start = time.monotonic()
        if not self.is_modelled():
            os.sync()
            return None, time.monotonic() - start
        done = call([self.spindle, "--reset", self.folder, label])
        if done.returncode != 0:
            raise BenchError("spindle --reset: " + first_error(done))
        return self.report()["history"][-1], time.monotonic() - start


# ---- samples ----


def processes_below(root):
    """The process and its descendants. Some may end meanwhile."""
    found, pids = [], [root]
    while pids:
        pid = pids.pop()
        try:
            for task in os.listdir("/proc/%d/task" % pid):
                with open("/proc/%d/task/%s/children" % (pid, task), encoding="ascii") as f:
                    pids += map(int, f.read().split())
            found.append(pid)
        except (OSError, ValueError):
            pass
    return found


def process_use(pid):
    """(CPU seconds with those of children it waited for, resident bytes, bytes read from disks,
    bytes written to them); None if it has ended."""
    folder = "/proc/%d/" % pid
    try:
        with open(folder + "stat", encoding="ascii", errors="replace") as f:
            # The name in brackets may have blanks.
            fields = f.read().rpartition(")")[2].split()
        with open(folder + "io", encoding="ascii") as f:
            io = dict(re.findall(r"(\w+): (\d+)", f.read()))
    except OSError:
        return None
    ticks = sum(int(field) for field in fields[11:15])
    return (ticks / TICKS_A_SECOND, int(fields[21]) * PAGE_BYTES, int(io.get("read_bytes", 0)),
            int(io.get("write_bytes", 0)))


class Sampler(threading.Thread):
    """Samples a process tree, a Disk and the temporary directory once a second.

    `marks` are [regular expression, label]: when a line of the log matches, the time is noted.
    """

    def __init__(self, disk, temp_dir, log_path, marks):
        super().__init__(daemon=True)
        self.disk, self.temp_dir, self.log_path = disk, temp_dir, log_path
        self.waiting_for = list(marks)
        self.marks = []
        self.columns = {name: [] for name in COLUMNS}
        self.pid, self.start_s = None, 0.0
        self.io_of = {}
        self.done = threading.Event()

    def begin(self, pid):
        self.pid, self.start_s = pid, time.monotonic()
        self.start()

    def end(self):
        self.done.set()
        if self.ident is not None:      # it was interrupted before the thread started
            self.join()

    def run(self):
        due = 0.0
        while True:
            # After a late sample the next one comes a whole second later.
            due = max(due + SAMPLE_S, time.monotonic() - self.start_s)
            if self.done.wait(due - (time.monotonic() - self.start_s)):
                return
            self.sample()

    def sample(self):
        row = {"t_s": time.monotonic() - self.start_s, "rss_bytes": 0, "cpu_s": 0.0, "seeks": 0,
               "busy_s": 0.0, "temp_bytes": bytes_below(self.temp_dir)}
        for pid in processes_below(self.pid):
            use = process_use(pid)
            if use:
                row["cpu_s"] += use[0]
                # The largest process is the sorter: shells and cat are small.
                row["rss_bytes"] = max(row["rss_bytes"], use[1])
                self.io_of[pid] = use[2:]
        try:
            report = self.disk.report()
        except (OSError, ValueError):
            return
        if report:
            now = report["current"]
            row.update({name: now[name] for name in COUNTED if name in now})
        else:
            row["read_bytes"] = sum(io[0] for io in self.io_of.values())
            row["write_bytes"] = sum(io[1] for io in self.io_of.values())
        self.add(row)
        self.look_for_marks(row)

    def add(self, row):
        for name, values in self.columns.items():
            value = row[name]
            # The parent counts the CPU of an ended process a moment later.
            if name in COUNTED and values:
                value = max(value, values[-1])
            values.append(round(value, 3) if isinstance(value, float) else value)

    def add_end(self, wall_s, cpu_s, counters):
        """Takes the last sample, which is the only one of a short run."""
        row = {name: values[-1] if values else 0 for name, values in self.columns.items()}
        row.update({name: counters[name] for name in COUNTED if counters and name in counters})
        row.update(t_s=wall_s, cpu_s=cpu_s)
        self.add(row)

    def look_for_marks(self, row):
        if not self.waiting_for:
            return
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            text = f.read()
        for expression, label in list(self.waiting_for):
            if re.search(expression, text):
                self.waiting_for.remove((expression, label))
                self.marks.append({"t_s": round(row["t_s"], 3), "label": label,
                                   "temp_bytes": row["temp_bytes"]})


# ---- one run ----


def bounded(command, memory_bytes, spindle):
    """The words that run a shell command line in a cgroup with this limit."""
    return [spindle, "run", "--memory", str(memory_bytes), "--", "sh", "-c", command]


def can_bound(spindle):
    """Whether cgroups can be made here; else why not."""
    if not os.access(spindle, os.X_OK):
        return "%s is missing" % spindle
    done = call(bounded("true", 64 << 20, spindle))
    return None if done.returncode == 0 else first_error(done) or "it failed"


def stop(child):
    """Ends all processes of a session. SIGTERM comes first, so that they remove temporary files."""
    for number, seconds in ((signal.SIGTERM, 10), (signal.SIGKILL, 10)):
        try:
            os.killpg(child.pid, number)
            child.wait(seconds)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue
        return


def run_sampled(disk, command, memory_bytes, log_path, marks=(), spindle=SPINDLE):
    """Runs a shell command line on a mounted disk, with DISK/tmp for temporary files.

    memory_bytes 0: no limit. Returns (result, series). result["disk"] has the disk's counters,
    taken after all dirty data were written; it is None on a plain disk.
    """
    temp_dir = os.path.join(disk.backing, "tmp")
    words = bounded(command, memory_bytes, spindle) if memory_bytes else ["sh", "-c", command]
    sampler = Sampler(disk, temp_dir, log_path, marks)
    disk.finish("mounted")
    with open(log_path, "wb") as log:
        start = time.monotonic()
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                 cwd=disk.folder, start_new_session=True,
                                 env=dict(os.environ, TMPDIR=os.path.join(disk.folder, "tmp")))
        try:
            sampler.begin(child.pid)
            _, status, usage = os.wait4(child.pid, 0)
            wall = time.monotonic() - start
        except BaseException:
            stop(child)
            raise
        finally:
            sampler.end()
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        why = " (killed: more than its memory?)" if child.returncode in (137, -9) else ""
        raise BenchError("exit code %d%s from: %s\n%s" % (child.returncode, why, command,
                                                          tail_of(log_path)))
    counters, sync_s = disk.finish("run")
    cpu = usage.ru_utime + usage.ru_stime
    sampler.add_end(wall, cpu, counters)
    result = {"wall_s": wall, "cpu_s": cpu, "rss_bytes": usage.ru_maxrss * 1024, "sync_s": sync_s,
              "temp_peak_bytes": max(sampler.columns["temp_bytes"], default=0),
              "disk": counters, "marks": sampler.marks}
    return result, {"columns": sampler.columns, "marks": sampler.marks}
