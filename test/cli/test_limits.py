"""Limits of the system: address space, open files, size of files, memory of a control group.

A run keeps within the limits, or ends with one message and leaves nothing.
"""

import os
import pathlib
import re
import resource
import subprocess

import bamfile
import generate
from harness import (MIB, RUN_LIMIT_S, SAMTOOLS, SPILL_BUDGET, CliTest, environment,
                     kept_checkpoints, needs_reads, own_lines, own_memory_only)



class LimitTest(CliTest):
    """Runs rocksort under a limit."""

    def setUp(self):
        super().setUp()
        self.source = self.write("in.sam", generate.odd(6000, seed=21))

    def run_limited(self, which, limit, words, budget=None):
        """Runs rocksort with the limit as soft and hard limit."""
        def set_limit():
            resource.setrlimit(which, (limit, limit))
        done = subprocess.run([SAMTOOLS, "rocksort", *map(str, words)], cwd=self.work, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, preexec_fn=set_limit, timeout=RUN_LIMIT_S,
                              env=environment(self.scratch, budget))
        return done.returncode, done.stderr.decode(errors="replace")

    def check(self, which, limit, *options, budget=SPILL_BUDGET):
        """The run has the right output, or one message; returns (exit status, messages)."""
        out = self.path("out.bam")
        status, err = self.run_limited(which, limit, ["--no-PG", *options, "-T", self.scratch, "-o",
                                                      out, self.source], budget)
        with self.subTest(limit=limit, options=options, budget=budget):
            self.assertIn(status, (0, 1), err)
            if status == 0:
                self.assert_same_records(bamfile.read(out).records, self.want.records)
                os.unlink(out)
            else:
                lines = [line for line in own_lines(err) if not kept_checkpoints(line)]
                self.assertEqual(len(lines), 1, err)
                self.drop_kept(err)
            self.assertEqual(os.listdir(self.scratch), [], err)
            self.assertEqual(os.listdir(self.work), ["in.sam"], err)
        return status, err

    def can_start(self, which, limit):
        """Whether the program reaches its main function under this limit."""
        return self.run_limited(which, limit, ["--version"])[0] == 0


@own_memory_only
class AddressSpace(LimitTest):
    """ulimit -v, the size of the address space."""

    def test_any_limit_of_memory_gives_output_or_message(self):
        self.want = self.sort_bam("--no-PG", self.source)
        sizes = [n * MIB for n in (40, 60, 80, 100, 120, 140, 160, 200, 240, 300, 400, 700)]
        ends = set()
        for size in sizes:
            if not self.can_start(resource.RLIMIT_AS, size):
                continue
            for options, budget in ((["-@", "2"], None), (["-@", "2"], SPILL_BUDGET),
                                    (["-@", "8", "-s", "2M"], SPILL_BUDGET)):
                status, _ = self.check(resource.RLIMIT_AS, size, *options, budget=budget)
                ends.add(status)
        self.assertEqual(ends, {0, 1})

    def test_message_says_how_much_memory_was_asked_for(self):
        status, err = self.run_limited(resource.RLIMIT_AS, 600 * MIB,
                                       ["-m", "4G", "-o", self.path("out.bam"), self.source])
        self.assertEqual(status, 1)
        self.assertEqual(len(own_lines(err)), 1, err)
        self.assertIn("-m", err)


class OpenFiles(LimitTest):
    """ulimit -n, the number of open files."""

    def test_any_limit_of_files_gives_output_or_message(self):
        self.want = self.sort_bam("--no-PG", self.source)
        ends = [self.check(resource.RLIMIT_NOFILE, n, "-@", "2")[0]
                for n in (4, 6, 8, 12, 16, 24, 32, 48, 100)]
        self.assertEqual(ends[0], 1)
        self.assertEqual(ends[-1], 0)

    def test_advice_is_to_raise_the_limit(self):
        for n in (5, 6, 7, 8, 10):
            _, err = self.run_limited(resource.RLIMIT_NOFILE, n,
                                      ["-T", self.scratch, "-o", self.path("out.bam"), self.source],
                                      SPILL_BUDGET)
            with self.subTest(n=n):
                line, = [line for line in own_lines(err) if not kept_checkpoints(line)]
                self.assertIn("Too many open files", line)
                self.assertNotIn("-T", line)
                self.assertIn("raise 'ulimit -n'", line)
                self.drop_kept(err)

    def test_advice_for_all_formats(self):
        """In memory, down to the least limit with which the program starts. CRAM needs the most; its
        index once failed without advice."""
        lengths = re.findall(r"^@SQ\tSN:(\S+)\tLN:(\d+)", generate.odd(6000, seed=21), re.M)
        fasta = self.write("ref.fa", "".join(f">{name}\n{'A' * int(n)}\n" for name, n in lengths))
        for fmt in (["-O", "bam"], ["-O", "sam.gz"], ["-O", "cram,no_ref=1"],
                    ["-O", "cram", "--reference", fasta]):
            ends = set()
            for n in range(4, 14):
                out = self.path("out")
                if not self.can_start(resource.RLIMIT_NOFILE, n):
                    continue
                status, err = self.run_limited(resource.RLIMIT_NOFILE, n,
                                               ["--write-index", *fmt, "-o", out, self.source])
                ends.add(status)
                with self.subTest(n=n, fmt=fmt):
                    if status:
                        line, = own_lines(err)
                        self.assertIn("raise 'ulimit -n' to 64", line)
            self.assertIn(1, ends)


class FileSize(LimitTest):
    """ulimit -f: its signal, SIGXFSZ, would kill a process that does not ignore it."""

    def test_output_beyond_the_limit_is_an_error(self):
        for options in ([], ["-O", "sam"], ["-u", "--write-index"], ["--fsync"]):
            for budget in (SPILL_BUDGET, None):
                status, err = self.check(resource.RLIMIT_FSIZE, 100_000, *options, budget=budget)
                self.assertEqual(status, 1)
                self.assertIn("File too large", err)

    def test_run_beyond_the_limit_is_an_error(self):
        status, err = self.check(resource.RLIMIT_FSIZE, 20_000, "--temp-codec", "none")
        self.assertEqual(status, 1)
        self.assertIn("File too large", err)


class Inherited(CliTest):
    """Limits that the sort inherits from the process that starts it."""

    def setUp(self):
        super().setUp()
        self.sam = generate.reads(20000, generate.reference())

    def test_file_size_limit(self):
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        source = self.write("in.sam", self.sam)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
        try:
            for budget in (SPILL_BUDGET, None):
                with self.subTest(budget=budget):
                    out = self.path("out.bam")
                    result = self.rocksort("-o", out, source, budget=budget)
                    self.assert_error(result, "File too large")
                    self.assertEqual(sorted(os.listdir(self.work)), ["in.sam"])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    def test_open_file_limit(self):
        source = self.write("in.sam", self.sam)
        shell = ["sh", "-c", 'ulimit -n 20 && exec "$0" "$@"', SAMTOOLS, "rocksort"]
        result = self.run_program([*shell, "-o", self.path("out.bam"), source], budget=SPILL_BUDGET)
        self.assert_error(result, "-m", "ulimit -n")
        self.assertEqual(os.listdir(self.scratch), [])
        self.assert_no_result(self.path("out.bam"))


class PendingSignals(LimitTest):
    """ulimit -i: how many signals may be pending for all processes of a user."""

    def test_sort_ends_without_real_time_signals(self):
        """No real-time signal can be sent then. Such a signal once ended the thread that waits for
        signals: without it the sort never ended."""
        self.want = self.sort_bam("--no-PG", self.source)
        for budget in (SPILL_BUDGET, None):
            self.assertEqual(self.check(resource.RLIMIT_SIGPENDING, 0, budget=budget)[0], 0)


@own_memory_only
class Stack(LimitTest):
    """ulimit -s, which sets the stack size of all threads. With 72 KiB, stacks once overflowed."""

    def test_stack_below_128_kib_is_refused(self):
        self.want = self.sort_bam("--no-PG", self.source)
        for kib, options in ((64, []), (127, []), (128, []), (128, ["-@", "3", "-s", "2M"])):
            status, err = self.check(resource.RLIMIT_STACK, kib << 10, *options)
            self.assertEqual(status, kib < 128, err)
            self.assertEqual("raise 'ulimit -s' to 128 KiB" in err, kib < 128, err)


def make_control_group(n_bytes):
    """Makes a control group below ours with a memory limit; returns its directory, or None."""
    for line in pathlib.Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "memory":
            top, limit = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
        elif controllers == "":
            top, limit = "/sys/fs/cgroup", "memory.max"
        else:
            continue
        group = pathlib.Path(f"{top}{path}") / f"rocksort-test-{os.getpid()}"
        try:
            group.mkdir()
            try:
                (group / limit).write_text(str(n_bytes), encoding="ascii")
                return group
            except OSError:
                group.rmdir()
        except OSError:
            continue
    return None


@own_memory_only
@needs_reads
class ControlGroup(CliTest):
    """A container whose memory limit is the budget plus 128 MiB, including the page cache and the
    memory of all libraries."""

    def test_budget_and_128_mib(self):
        group = make_control_group((32 + 128) * MIB)
        if not group:
            self.skipTest("cannot make a control group with a limit of memory")
        self.addCleanup(group.rmdir)
        source = self.simulate("150K")
        want = self.run_program([SAMTOOLS, "rocksort", "--checksum-only", source]).out

        def join():
            (group / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")

        for options in (["-l", "1", "--write-index"], ["-n", "-s", "60M", "-l", "1"]):
            out = self.path("out.bam")
            done = subprocess.run(
                [SAMTOOLS, "rocksort", "-@", "2", "-m", "16M", *options, "-T", str(self.scratch),
                 "-o", out, source], preexec_fn=join, stdin=subprocess.DEVNULL, check=False,
                stderr=subprocess.PIPE, env=environment(self.scratch), timeout=RUN_LIMIT_S)
            with self.subTest(options=options):
                self.assertEqual(done.returncode, 0, done.stderr.decode())
                got = self.run_program([SAMTOOLS, "rocksort", "--checksum-only", out]).out
                self.assertEqual(got, want)
