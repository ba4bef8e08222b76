"""What all tests use: runs the built programs and the reference samtools, and checks each run.

A test gets a working directory (self.work) and an empty directory for temporary data (self.scratch,
which is TMPDIR). After each run self.scratch must be empty and self.work must have no new
directory, unless the test says otherwise. ROCKSORT_TEST_SLOW_FACTOR multiplies the time limits
(for sanitizer builds).

ROCKSORT_TEST_BUDGET is a setting of the program for these tests only: it sets the memory budget in
bytes. Tests make it so small that a few megabytes of input are spilled as many runs.
"""

import functools
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from collections import namedtuple

import bamfile

try:
    import pysam
except ImportError:
    pysam = None

BUILD = pathlib.Path(os.environ.get("ROCKSORT_BUILD_DIR", ".")).resolve()
# The repository. Special builds use the tools and data of the plain build, which are here.
ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMTOOLS = str(BUILD / "samtools")
SAMTOOLS_ROCKSORT = str(BUILD / "samtools-rocksort")
SLOW = float(os.environ.get("ROCKSORT_TEST_SLOW_FACTOR", "1"))
RUN_LIMIT_S = 60 * SLOW
# A normal build must end within 5 seconds after a signal.
DIE_LIMIT_S = 5 * SLOW
# The command that runs the program, such as valgrind (make check VALGRIND=1).
WRAPPER = os.environ.get("ROCKSORT_TEST_WRAPPER", "").split()
SPILL_BUDGET = 400_000
MIB = 1 << 20
# What a run may take beyond its budget.
ALLOWANCE_MIB = 64
SIMULATE = ROOT / "bench" / "simulate-reads"
LIBRARY = ROOT / "build" / "fault_inject.so"
ORDERS = {"coordinate": [], "natural": ["-n"], "lexicographical": ["-N"]}

# Linux counts the memory of a child before its exec, too, so that no peak would be smaller than the
# process of the tests. So a small process starts the program. It prints the peak in KiB to the
# descriptor argv[1].
MEASURE = """import os, sys
pid = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(pid, 0)
os.write(int(sys.argv[1]), b"%d" % usage.ru_maxrss)
os._exit(max(os.waitstatus_to_exitcode(status), -1) & 255)
"""

needs_pysam = unittest.skipUnless(pysam, "pysam (the reference samtools) is not installed")
needs_reads = unittest.skipUnless(os.access(SIMULATE, os.X_OK), f"no {SIMULATE}: build it")
needs_faults = unittest.skipUnless(os.access(LIBRARY, os.R_OK),
                                   f"no {LIBRARY}: make build/fault_inject.so")
Result = namedtuple("Result", "status out err")


def bytes_of(path):
    return pathlib.Path(path).read_bytes()


def text_of(path, encoding="utf-8"):
    return pathlib.Path(path).read_text(encoding)


def json_of(path):
    return json.loads(text_of(path))


def sanitized(*kinds):
    """Whether the program is built with one of kinds ("asan": AddressSanitizer, "tsan":
    ThreadSanitizer), or with either if no kind is given. Tests do not judge the memory use
    of such builds."""
    program = bytes_of(SAMTOOLS)
    return any(f"__{kind}_init".encode() in program for kind in kinds or ("asan", "tsan"))


MULTIQC = pathlib.Path(sys.prefix) / "bin/multiqc"
needs_multiqc = unittest.skipUnless(MULTIQC.exists(), "MultiQC is not installed")

own_memory_only = unittest.skipIf(os.access(SAMTOOLS, os.R_OK) and sanitized(),
                                  "a sanitizer's memory is not ours")


def wrapped(argv):
    """argv, run by the wrapper if there is one and argv runs our program."""
    words = [str(word) for word in argv]
    return WRAPPER + words if words[0] in (SAMTOOLS, SAMTOOLS_ROCKSORT) else words


def environment(scratch, budget=None, extra=None):
    """The environment of a run: that of the tests without settings that change what a run does."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("ROCKSORT_")}
    env.pop("SAMTOOLS_UPSTREAM", None)
    env.update(TMPDIR=str(scratch), LC_ALL="C", REF_PATH=":", REF_CACHE=":")
    if budget:
        env["ROCKSORT_TEST_BUDGET"] = str(budget)
        env["ROCKSORT_TEST_FILE"] = "32K"       # with two threads or more, runs are several files
    env.update(extra or {})
    return env


def ends_at_once():
    """Variables for a run that ends as a crash would, with threads that nobody joins: ThreadSanitizer
    calls these a leak."""
    return {"TSAN_OPTIONS": os.environ.get("TSAN_OPTIONS", "") + ":report_thread_leaks=0"}


def own_lines(err):
    """The lines on standard error that are the program's own messages but not warnings. htslib
    prints there, too, and its threads mix their lines: it is not enough to look at how a line
    begins."""
    return [line for line in err.splitlines()
            if re.match("samtools|rocksort", line) and ": warning:" not in line]


def kept_checkpoints(err):
    """The checkpoints that a failed run says it keeps."""
    return re.findall(r"^samtools rocksort: temporary files kept; .* --resume (\S+)", err,
                      re.M)


def without_pg(text):
    """The lines of a header without @PG."""
    return [line for line in text.splitlines() if not line.startswith("@PG")]


def pg_lines(text):
    """The @PG lines of a header, each as a dict of its fields."""
    return [dict(field.split(":", 1) for field in line.split("\t")[1:])
            for line in text.splitlines() if line.startswith("@PG")]


def sam_split(text):
    """(header, list of record lines) of SAM text."""
    lines = text.splitlines(keepends=True)
    n_header = next((i for i, line in enumerate(lines) if not line.startswith("@")), len(lines))
    return "".join(lines[:n_header]), [line.rstrip("\n") for line in lines[n_header:]]


def wait_for(condition, limit_s, what):
    """Polls until condition() is true and returns its value; fails after limit_s."""
    end = time.monotonic() + limit_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {limit_s:g} s for {what}")
        time.sleep(0.01)


def default_signals():
    """Lets programs that are started from now on begin with the default handlers. If the tests run
    under nohup or in the background of a shell, they would otherwise ignore some signals. This
    process goes on ignoring these."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)      # exec() restores the default


class CliTest(unittest.TestCase):
    """A test with its own directories and functions that run rocksort."""

    maxDiff = 2000

    def setUp(self):
        top = pathlib.Path(tempfile.mkdtemp(prefix="rocksort-cli-"))
        self.addCleanup(shutil.rmtree, top, ignore_errors=True)
        self.work, self.scratch = top / "work", top / "scratch"
        self.work.mkdir()
        self.scratch.mkdir()

    # Files

    def write(self, name, data):
        """Writes text or bytes to a file in work and returns its path."""
        path = self.work / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return str(path)

    def files(self):
        """The names of the files in work."""
        return sorted(os.listdir(self.work))

    def path(self, name):
        return str(self.work / name)

    def bam_of(self, sam, *options, name="in.bam"):
        """The SAM text as a BAM, or in the format that options name, by the reference samtools."""
        source = self.write(name + ".source.sam", sam)
        out = self.path(name)
        reference_ok("view", "--no-PG", *(options or ("-b",)), "-o", out, source)
        os.unlink(source)
        return out

    def simulate(self, n_records, mode="short", form="bam"):
        """A file of so many simulated reads ("240K") of a kind."""
        path = self.path(f"{mode}.{form}")
        subprocess.run([SIMULATE, "-n", n_records, "-m", mode, "-O", form, "-l", "1", "-o", path],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       timeout=RUN_LIMIT_S)
        return path

    def mount(self, path, size):
        """Mounts a file system in memory, of this size, at a new or empty directory; skips the test
        if that is not possible."""
        os.makedirs(path, exist_ok=True)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(path)],
                          capture_output=True, check=False).returncode:
            self.skipTest("cannot mount a small file system (not root)")
        self.addCleanup(subprocess.run, ["umount", str(path)], check=False)
        return path

    # Running

    def directories(self):
        """The directories in work. A run must not add any."""
        return sorted(entry.name for entry in os.scandir(self.work) if entry.is_dir())

    def run_program(self, argv, *, stdin=None, budget=None, env=None, cwd=None, limit_s=None,
                    env_only=None):
        """Runs argv with stdin as bytes, an open file or nothing; returns a Result."""
        source = {"input": stdin} if isinstance(stdin, bytes) else {
            "stdin": stdin if stdin is not None else subprocess.DEVNULL}
        done = subprocess.run(
            wrapped(argv), **source, capture_output=True, cwd=cwd or self.work,
            env=env_only if env_only is not None else environment(self.scratch, budget, env),
            timeout=limit_s or RUN_LIMIT_S, check=False)
        return Result(done.returncode, done.stdout, done.stderr.decode(errors="replace"))

    def rocksort(self, *args, clean=True, **how):
        """Runs `samtools rocksort args`. With clean, the run must leave no temporary data."""
        before = self.directories()
        result = self.run_program([SAMTOOLS, "rocksort", *args], **how)
        if clean:
            self.assert_clean(before, result)
        return result

    def sort_ok(self, *args, **how):
        """Runs rocksort, which must succeed."""
        result = self.rocksort(*args, **how)
        self.assertEqual(result.status, 0, f"rocksort {args}: {result.err[-2000:]}")
        return result

    def sort_bam(self, *args, **how):
        """Runs rocksort with BAM on standard output and returns the Bam."""
        return bamfile.parse_file(self.sort_ok(*args, **how).out)

    def on_terminal(self, argv, stream="stdin", **env):
        """Runs argv with a terminal as standard input, or as standard output, and pipes for the
        rest."""
        try:
            leader, follower = pty.openpty()
        except OSError as error:
            self.skipTest(f"no terminal can be made here: {error}")
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, stream: follower}
        try:
            return subprocess.run(argv, **pipes, stderr=subprocess.PIPE, cwd=self.work,
                                  env=environment(self.scratch, extra=env), timeout=RUN_LIMIT_S,
                                  text=True, check=False)
        finally:
            os.close(leader)
            os.close(follower)

    def multiqc(self, folder):
        """What MultiQC says of the reports in a folder: its data, which the report shows."""
        found = self.path("found")
        done = self.run_program([MULTIQC, "--no-report", "--quiet", "--outdir", found, folder],
                                limit_s=300,    # its first start compiles Python
                                env={"HOME": self.path("")})
        self.assertEqual(done.status, 0, done.err)
        return json_of(f"{found}/multiqc_data/multiqc_data.json")

    def limited(self, limit, *args, **how):
        """Runs rocksort under `ulimit -LIMIT`: "n 64" sets the hard and the soft limit of open files,
        "Sn 64" the soft one only."""
        return self.run_program(["/bin/sh", "-c", f'ulimit -{limit} || exit 9; exec "$0" "$@"',
                                 SAMTOOLS, "rocksort", *args], **how)

    def faulty(self, fault, **more):
        """The environment that makes a run fail as fault says."""
        return {"LD_PRELOAD": str(LIBRARY), "FAULT": fault, **more,
                "ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")}

    def n_faults(self, report):
        """How many calls were counted for each fault, from a file of FAULT_REPORT."""
        counts = dict(line.split() for line in text_of(report).splitlines())
        os.unlink(report)
        return [int(counts[name]) for name in sorted(counts) if name.startswith("fault")]

    def peak(self, *args, budget=None, stdout=subprocess.DEVNULL, read_output=None,
             program=(SAMTOOLS, "rocksort")):
        """(peak memory in MiB, messages) of a run, which must succeed in time. If stdout is a pipe,
        read_output(process) reads it."""
        with open(self.path("stderr"), "w+b") as err, open(self.path("peak"), "w+b") as peak:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", MEASURE, str(peak.fileno()),
                 *map(str, (*program, *args))], stdin=subprocess.DEVNULL, stdout=stdout, stderr=err,
                cwd=self.work, pass_fds=[peak.fileno()], env=environment(self.scratch, budget))
            killer = threading.Timer(RUN_LIMIT_S, process.kill)    # wait4() has no time limit
            killer.start()
            try:
                if read_output:
                    read_output(process)
                process.wait()
            finally:
                killer.cancel()
                if process.stdout:
                    process.stdout.close()
        said = text_of(self.path("stderr"), "latin-1")
        self.assertEqual(process.returncode, 0, f"{program} {args}: {said}")
        self.assertEqual(os.listdir(self.scratch), [])
        return int(text_of(self.path("peak")) or 0) / 1024, said

    def assert_peak(self, mib, *args, **how):
        """The peak of a run is at most its budget and what it may take beyond. Returns its messages."""
        peak, said = self.peak(*args, **how)
        with self.subTest(args=args):
            self.assertLessEqual(peak, mib + ALLOWANCE_MIB)
        return said

    def start(self, *args, budget=None, env=None, cwd=None, **how):
        """Starts rocksort with pipes for all three streams; kills it when the test ends."""
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        default_signals()
        how = {**pipes, **how}
        process = subprocess.Popen(
            wrapped([SAMTOOLS, "rocksort", *args]), cwd=cwd or self.work,
            env=environment(self.scratch, budget, env), **how)

        def stop():
            if process.poll() is None:
                process.kill()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    try:
                        stream.close()
                    except OSError:
                        pass  # the process died before it read all input, as the test wanted
            process.wait()

        self.addCleanup(stop)
        return process

    def feed(self, process, data, close=False):
        """Writes data in a thread, since the pipe may become full. Afterwards the pipe is closed
        if close is true, and stays open otherwise."""
        def write():
            try:
                process.stdin.write(data)
                process.stdin.flush()
                if close:
                    process.stdin.close()
            except OSError:
                pass  # the process died, as it must in tests of signals
        thread = threading.Thread(target=write, daemon=True)
        thread.start()
        self.addCleanup(thread.join, 5)
        return thread

    # Checks

    def drop_kept(self, err):
        """Removes the checkpoint that a failed run says it keeps, and checks that its directories
        exist. The message names one directory; a checkpoint can have several."""
        for checkpoint in kept_checkpoints(err):
            store = text_of(os.path.join(checkpoint, "STORE"), "latin-1")
            for path in re.findall("\0path ([^\0]*)", store):
                self.assertTrue(os.path.isdir(path), path)
                shutil.rmtree(path)

    def assert_clean(self, before, result):
        """Nothing is in scratch, and work has no new directory. A checkpoint that the run says it
        keeps is allowed; it is removed here."""
        if result.status:
            self.drop_kept(result.err)
        left = os.listdir(self.scratch)
        self.assertEqual(left, [], f"left in the temporary directory; stderr: {result.err[-500:]}")
        self.assertEqual(self.directories(), before, "left in the working directory")

    def assert_same_bam(self, got, want, what=""):
        """Both have the same header (@PG lines aside), references and records, byte for byte."""
        self.assertEqual(without_pg(got.text), without_pg(want.text), what)
        self.assertEqual(got.refs, want.refs, what)
        self.assert_same_records(got.records, want.records, what)

    def assert_same_records(self, got, want, what=""):
        """Both have the same raw records. On failure prints the first difference only."""
        if got == want:
            return
        got, want = bamfile.split(got), bamfile.split(want)
        if len(got) != len(want):
            self.fail(f"{what}: {len(got)} records instead of {len(want)}")
        for i, (mine, theirs) in enumerate(zip(got, want)):
            if mine != theirs:
                self.fail(f"{what}: record {i} is {bamfile.fields(mine)} {mine[-40:]!r} instead of "
                          f"{bamfile.fields(theirs)} {theirs[-40:]!r}")

    def assert_one_message(self, result, *mentions):
        """The program printed one message, which contains all of mentions. If it kept a checkpoint,
        a second message says so."""
        lines = [line for line in own_lines(result.err) if not kept_checkpoints(line)]
        self.assertEqual(len(lines), 1, f"one message expected, got: {result.err[-2000:]!r}")
        for mention in mentions:
            self.assertIn(str(mention), lines[0])

    def assert_error(self, result, *mentions):
        """Exit status 1 and one message."""
        self.assertEqual(result.status, 1, result.err[-2000:])
        self.assert_one_message(result, *mentions)

    def assert_refused(self, *args, source, mention=()):
        """The run ends with status 1 and one message, and makes no file."""
        before = set(os.listdir(self.work))
        with self.subTest(args=args):
            result = self.rocksort(*args, "-o", self.path("out.bam"), source)
            after = set(os.listdir(self.work))
            if os.path.exists(self.path("out.bam")):
                os.unlink(self.path("out.bam"))
            self.assert_error(result, *mention)
            self.assertEqual(after, before)

    def assert_no_result(self, path):
        """There is no file at path that a reader or samtools quickcheck takes for complete."""
        self.assertFalse(bamfile.looks_complete(path), f"{path} looks complete")
        if pysam and os.path.isfile(path):
            self.assertFalse(reference("quickcheck", path), f"quickcheck accepts {path}")

    def assert_died_of(self, process, number):
        """The process ends in time, by the signal or with the status that a shell reports then."""
        try:
            status = process.wait(DIE_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.fail(f"still alive {DIE_LIMIT_S:g} s after {signal.Signals(number).name}")
        self.assertIn(status, (-number, 128 + number))


# Runs each command of pysam's samtools that comes as a line of JSON in a new child, and answers with
# a character. Forking this small process costs a tenth of forking pytest and its libraries.
REFERENCE = """import json, os, signal, sys, pysam
lines, answers, null = os.fdopen(os.dup(0)), os.dup(1), os.open(os.devnull, os.O_RDWR)
for number in range(3):
    os.dup2(null, number)
for line in lines:
    command, args, how, cwd, env, limit_s = json.loads(line)
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(limit_s)
            os.chdir(cwd)
            os.environ.clear()
            os.environ.update(env)
            getattr(pysam, command)(*args, **how)
            os._exit(0)
        finally:
            os._exit(1)
    os.write(answers, b"0" if os.waitpid(child, 0)[1] else b"1")
"""


@functools.cache
def reference_server():
    return subprocess.Popen([sys.executable, "-c", REFERENCE], bufsize=0, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE)


def reference(command, *args, save_stdout=None):
    """Runs a command of pysam's samtools and returns whether it succeeded. save_stdout: the file
    that gets what it prints. Each command gets a new process because samtools keeps the sort order
    in global variables: in the same process `-n` after `-N` sorts by `-N`."""
    how = {"save_stdout": save_stdout} if save_stdout else {"catch_stdout": False}
    server = reference_server()
    server.stdin.write(json.dumps([command, [str(arg) for arg in args], how, os.getcwd(),
                                   dict(os.environ), int(RUN_LIMIT_S)]).encode() + b"\n")
    return server.stdout.read(1) == b"1"


def reference_ok(command, *args):
    """Runs a command of pysam's samtools, which must succeed."""
    if not reference(command, *args):
        raise AssertionError(f"the reference samtools failed: {command} {args}")


def reference_sort(source, out, *options):
    """Sorts with the reference samtools and returns the Bam."""
    reference_ok("sort", "--no-PG", *options, "-O", "bam", "-o", out, source)
    return bamfile.read(out)


def reference_view(path, *options):
    """The file as SAM text, by the reference samtools, which adds no @PG line."""
    out = str(path) + ".view.sam"
    reference_ok("view", "--no-PG", "-h", *options, "-o", out, path)
    text = text_of(out, "latin-1")
    os.unlink(out)
    return text
