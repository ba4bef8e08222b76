"""bench/spindle, the disk model: it serves files as any file system does, and counts accesses."""

import errno
import fcntl
import hashlib
import json
import mmap
import os
import pathlib
import random
import signal
import subprocess
import sys
import unittest

import bamfile
import generate
from harness import ROOT, SLOW, SPILL_BUDGET, CliTest, environment, wait_for

SPINDLE = str(ROOT / "bench" / "spindle")
NO_FUSE, NO_CGROUP = 77, 78
MIB = 1 << 20
LIMIT_S = 60 * SLOW


def reason_to_skip():
    """The reason why spindle cannot be tested here, or an empty string."""
    if not os.access(SPINDLE, os.X_OK):
        return "bench/spindle is not built (it needs libfuse3-dev: make bench/spindle)"
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as e:
        return f"no FUSE here: /dev/fuse: {e.strerror}"
    return ""


def write_all(fd, data):
    """Calls os.write() until all is written."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view):]


@unittest.skipIf(reason_to_skip(), reason_to_skip())
class SpindleTest(CliTest):
    """A test with a mount at self.mount. It has no delays unless the test sets them."""

    options = ("--device", "nvme")

    def setUp(self):
        super().setUp()
        self.backing, self.mount = self.work / "backing", self.work / "mount"
        self.backing.mkdir()
        self.mount.mkdir()
        self.is_mounted = False
        self.addCleanup(self.unmount)
        self.mount_with(*self.options)

    def spindle(self, *args, status=0):
        """Runs bench/spindle; returns its standard output."""
        done = subprocess.run([SPINDLE, *map(str, args)], capture_output=True, text=True,
                              timeout=LIMIT_S, check=False)
        self.assertEqual(done.returncode, status, f"{args}: {done.stderr}")
        return done.stdout

    def mount_with(self, *options):
        """Mounts it again with other options."""
        self.unmount()
        done = subprocess.run([SPINDLE, *options, str(self.backing), str(self.mount)],
                              capture_output=True, text=True, timeout=LIMIT_S, check=False)
        if done.returncode == NO_FUSE:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.is_mounted = True

    def unmount(self):
        if self.is_mounted:
            self.spindle("--unmount", self.mount)
            self.is_mounted = False

    def counts(self):
        """The counters since the last reset."""
        return json.loads((self.mount / ".spindle/report.json").read_text())["current"]

    def counted(self, action, label="test"):
        """The counters of an action, from cold caches until all is on the device."""
        self.spindle("--reset", self.mount, label)
        action()
        self.spindle("--reset", self.mount, "after")
        return json.loads(self.spindle("--report", self.mount, "--json"))["history"][-1]


class PassThrough(SpindleTest):
    """Programs see an ordinary file system."""

    def test_big_file(self):
        """Odd pieces are written; a cold read gives them back, as does the backing folder."""
        data = random.Random(1).randbytes(20 * MIB + 12345)
        path = self.mount / "big"
        with open(path, "wb", buffering=0) as file:
            at, step = 0, 1
            while at < len(data):
                at += file.write(data[at:at + step])
                step = step * 3 % 1000003
        self.spindle("--reset", self.mount)
        want = hashlib.sha256(data).digest()
        self.assertEqual(hashlib.sha256(path.read_bytes()).digest(), want)
        self.assertEqual(hashlib.sha256((self.backing / "big").read_bytes()).digest(), want)
        self.assertEqual(path.stat().st_size, len(data))

    def test_random_writes(self):
        """The file equals a model in memory, also after truncations and cold reads."""
        rng, model = random.Random(2), bytearray()
        fd = os.open(self.mount / "file", os.O_RDWR | os.O_CREAT)
        self.addCleanup(os.close, fd)
        for step in range(300):
            at, data = rng.randrange(2 * MIB), rng.randbytes(rng.randrange(1, 60000))
            if step % 40 == 39:
                os.ftruncate(fd, at)
                model = model[:at] + bytes(max(0, at - len(model)))
            else:
                os.pwrite(fd, data, at)
                model += bytes(max(0, at + len(data) - len(model)))
                model[at:at + len(data)] = data
            if step % 100 == 50:
                os.fsync(fd)
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            self.assertEqual(os.fstat(fd).st_size, len(model))
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        self.assertEqual(os.pread(fd, len(model) + 1, 0), bytes(model))

    def test_links(self):
        one, two, folder = self.mount / "one", self.mount / "two", self.mount / "folder"
        folder.mkdir()
        one.write_text("text")
        os.link(one, folder / "two")
        self.assertEqual(one.stat().st_ino, (folder / "two").stat().st_ino)
        self.assertEqual(one.stat().st_nlink, 2)
        one.unlink()
        self.assertEqual((folder / "two").stat().st_nlink, 1)
        (folder / "two").rename(two)
        self.assertEqual(two.read_text(), "text")
        os.symlink("two", self.mount / "soft")
        self.assertEqual(os.readlink(self.mount / "soft"), "two")
        self.assertEqual((self.mount / "soft").read_text(), "text")
        self.assertEqual(sorted(os.listdir(self.mount)), ["folder", "soft", "two"])

    def test_rename_over(self):
        """A file that is replaced while open can still be read."""
        old, new = self.mount / "old", self.mount / "new"
        old.write_text("old")
        new.write_text("new")
        with open(old, encoding="ascii") as file:
            new.rename(old)
            self.assertEqual(old.read_text(), "new")
            self.assertFalse(new.exists())
            self.assertEqual(file.read(), "old")

    def test_unlinked_while_open(self):
        path = self.mount / "gone"
        with open(path, "w+b", buffering=0) as file:
            write_all(file.fileno(), b"x" * 300000)
            path.unlink()
            write_all(file.fileno(), b"y" * 300000)
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            self.assertEqual(os.pread(file.fileno(), 600001, 0), b"x" * 300000 + b"y" * 300000)
            self.assertEqual(os.fstat(file.fileno()).st_nlink, 0)
        self.assertEqual(os.listdir(self.backing), [])

    def test_mmap(self):
        path = self.mount / "mapped"
        path.write_bytes(bytes(3 * MIB))
        with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
            mapped[MIB:MIB + 5] = b"hello"
            mapped.flush()
            self.assertEqual(mapped[2 * MIB], 0)
        self.spindle("--reset", self.mount)
        with open(path, "rb") as file, \
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            self.assertEqual(mapped[MIB - 1:MIB + 6], b"\0hello\0")

    def test_fallocate_and_holes(self):
        fd = os.open(self.mount / "file", os.O_RDWR | os.O_CREAT)
        self.addCleanup(os.close, fd)
        os.posix_fallocate(fd, 0, 5 * MIB)
        self.assertEqual(os.fstat(fd).st_size, 5 * MIB)
        self.assertGreaterEqual(os.fstat(fd).st_blocks * 512, 5 * MIB)
        os.pwrite(fd, b"end", 50 * MIB)
        self.assertEqual(os.pread(fd, 4, 20 * MIB), bytes(4))
        self.assertLess(os.fstat(fd).st_blocks * 512, 6 * MIB)

    def test_direct(self):
        """O_DIRECT works with page-aligned memory."""
        with mmap.mmap(-1, MIB) as memory:
            memory[:] = random.Random(3).randbytes(MIB)
            fd = os.open(self.mount / "file", os.O_RDWR | os.O_CREAT | os.O_DIRECT)
            try:
                self.assertEqual(os.pwrite(fd, memory, 0), MIB)
                with mmap.mmap(-1, MIB) as back:
                    self.assertEqual(os.preadv(fd, [back], 0), MIB)
                    self.assertEqual(back[:], memory[:])
            finally:
                os.close(fd)

    def test_attributes(self):
        path = self.mount / "file"
        path.write_text("text")
        os.chmod(path, 0o640)
        os.utime(path, ns=(10**18, 2 * 10**18 + 1))
        for seen in (path.stat(), (self.backing / "file").stat()):
            self.assertEqual(seen.st_mode & 0o7777, 0o640)
            self.assertEqual(seen.st_mtime_ns, 2 * 10**18 + 1)
        os.truncate(path, 2)
        self.assertEqual((self.backing / "file").read_text(), "te")
        with self.assertRaises(FileNotFoundError):
            (self.mount / "other").stat()
        with open(path, "ab") as file:
            file.write(b"!")
        self.assertEqual(path.read_text(), "te!")

    def test_locks(self):
        path = self.mount / "LOCK"
        with open(path, "w", encoding="ascii") as one, open(path, "w", encoding="ascii") as two:
            fcntl.flock(one, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with self.assertRaises(BlockingIOError):
                fcntl.flock(two, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(two, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def test_many_files(self):
        folder = self.mount / "many"
        folder.mkdir()
        for i in range(3000):
            (folder / f"file-{i}").write_bytes(b"%d" % i)
        self.spindle("--reset", self.mount)
        self.assertEqual(len(os.listdir(folder)), 3000)
        for i in range(0, 3000, 7):
            self.assertEqual((folder / f"file-{i}").read_bytes(), b"%d" % i)
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        self.assertEqual(os.listdir(self.backing), [])

    def test_what_was_there(self):
        self.unmount()
        (self.backing / "sub").mkdir()
        (self.backing / "sub/file").write_bytes(b"before" * 100000)
        self.mount_with(*self.options)
        self.assertEqual((self.mount / "sub/file").read_bytes(), b"before" * 100000)

    def test_sorting(self):
        """Both programs give the same order with temporary data on the mount as on a plain disk."""
        source = self.write("in.sam", generate.odd(15000))
        want = self.sort_bam("--no-PG", source)
        options = ["--no-PG", "-@", "2", "-T", str(self.mount)]
        self.assertEqual(self.sort_bam(*options, source, budget=SPILL_BUDGET), want)
        done = self.run_program(["samtools", "sort", "-m", "1M", "--no-PG", "-u", "-T",
                                 self.mount / "prefix", source])
        self.assertEqual(done.status, 0, done.err)
        self.assert_same_records(bamfile.parse_file(done.out).records, want.records)
        self.assertEqual(os.listdir(self.mount), [])
        self.assertGreater(self.counts()["write_bytes"], 0)


class Counters(SpindleTest):
    """The counters of a fast drive with seeks."""

    options = ("--device", "barracuda", "--read-rate", "2000", "--write-rate", "2000",
               "--read-iops", "2000", "--write-iops", "2000")

    def make(self, name, n_bytes):
        path = self.mount / name
        path.write_bytes(bytes(n_bytes))
        return path

    def read_directly(self, path):
        """Reads with O_DIRECT: the page cache may lose a page early and read it again."""
        with open(path, "rb", buffering=0, opener=lambda name, flags: os.open(
                name, flags | os.O_DIRECT)) as file, mmap.mmap(-1, 4 * MIB) as memory:
            while file.readinto(memory):
                pass

    def test_sequential(self):
        """One seek; a few are allowed, as something else may write a block."""
        path = self.mount / "file"
        wrote = self.counted(lambda: path.write_bytes(bytes(40 * MIB)))
        self.assertEqual(wrote["write_bytes"], 40 * MIB)
        self.assertLessEqual(wrote["seeks"], 3)
        self.assertGreater(wrote["consecutive_ratio"], 0.9)
        self.assertGreater(wrote["mean_write_bytes"], 200000)
        read = self.counted(lambda: path.read_bytes())
        # Pages that the page cache lost before they were copied are read again, one by one.
        again = read["small_reads"]
        self.assertEqual((read["reads"] - again) * 128 * 1024, 40 * MIB, "128 KiB of read-ahead")
        self.assertGreaterEqual(read["read_bytes"], 40 * MIB)
        self.assertLessEqual(read["read_bytes"], 40 * MIB + again * 32 * 1024)
        self.assertLessEqual(read["seeks"], 3 + 2 * again)
        self.assertAlmostEqual(read["busy_s"], 40 * MIB / 2e9, delta=0.01 + again / 1000)
        self.assertEqual(read["writes"], 0)

    def test_random(self):
        path = self.make("file", 64 * MIB)

        def read():
            fd = os.open(path, os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
            for i in random.Random(4).sample(range(64 * 16), 200):
                os.pread(fd, 4096, i * 65536)
            os.close(fd)

        got = self.counted(read)
        self.assertEqual(got["reads"], 200)
        self.assertEqual(got["small_reads"], 200)
        self.assertEqual(got["read_bytes"], 200 * 4096)
        self.assertGreaterEqual(got["seeks"] + got["skips"], 199)
        self.assertAlmostEqual(got["busy_s"], 200 / 2000, delta=0.02)
        self.assertAlmostEqual(got["small_read_busy_s"], got["busy_s"], places=5)

    def test_advice(self):
        """POSIX_FADV_SEQUENTIAL doubles the read-ahead, as on any file system."""
        path = self.make("file", 16 * MIB)

        def read():
            fd = os.open(path, os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_SEQUENTIAL)
            while os.read(fd, 65536):
                pass
            os.close(fd)

        self.assertAlmostEqual(self.counted(read)["reads"], 64, delta=3)

    def test_two_at_once(self):
        """Two files that grow together are contiguous by pieces."""
        def write():
            with open(self.mount / "a", "wb") as a, open(self.mount / "b", "wb") as b:
                for _ in range(40):
                    a.write(bytes(MIB))
                    b.write(bytes(MIB))

        self.assertLess(self.counted(write)["seeks"], 40)
        read = self.counted(lambda: self.read_directly(self.mount / "a"))
        self.assertEqual(read["read_bytes"], 40 * MIB)
        self.assertLess(read["seeks"], 16)

    def test_fsync(self):
        """fsync waits for the device and for the journal."""
        def write():
            with open(self.mount / "file", "wb", buffering=0) as file:
                for _ in range(20):
                    file.write(bytes(4096))
                    os.fsync(file.fileno())
                    self.assertGreaterEqual(self.counts()["writes"], 2)

        got = self.counted(write)
        self.assertEqual(got["syncs"], 20)
        self.assertGreaterEqual(got["seeks"], 39)
        self.assertGreater(got["elapsed_s"], 40 / 2000 * 0.7)

    def test_fdatasync(self):
        """No journal write for data in place, nor for what another fsync has committed."""
        path = self.make("file", MIB)

        def overwrite():
            fd = os.open(path, os.O_RDWR)
            for i in range(10):
                os.pwrite(fd, bytes(4096), i * 65536)
                os.fdatasync(fd)
            os.close(fd)

        self.spindle("--reset", self.mount)
        with open(path, "rb") as file:
            os.fsync(file.fileno())
        self.assertEqual(self.counted(overwrite)["writes"], 10)

        def commit_twice():
            one = os.open(self.mount / "one", os.O_RDWR | os.O_CREAT)
            two = os.open(self.mount / "two", os.O_RDWR | os.O_CREAT)
            folder = os.open(self.mount, os.O_RDONLY)
            for fd in (one, two, folder):
                os.fsync(fd)
                os.close(fd)

        self.assertEqual(self.counted(commit_twice)["writes"], 1)

    def test_deleted_in_time(self):
        """Data that are deleted while in the write buffer are not written."""
        self.mount_with("--device", "barracuda", "--write-rate", "5")

        def write():
            path = self.make("file", 12 * MIB)
            self.assertEqual((self.mount / "file").stat().st_size, 12 * MIB)
            path.unlink()

        got = self.counted(write)
        self.assertLess(got["write_bytes"], 6 * MIB)
        self.assertGreater(got["discarded_bytes"], 6 * MIB)

    def test_read_from_the_write_buffer(self):
        self.mount_with("--device", "barracuda", "--write-rate", "5")
        path = self.make("file", 4 * MIB)
        fd = os.open(path, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
        os.pread(fd, 4096, 3 * MIB)
        os.close(fd)
        self.assertGreaterEqual(self.counts()["buffer_hits"], 1)
        self.assertEqual(self.counts()["reads"], 0)

    def test_stripes(self):
        """Four drives share a file."""
        self.mount_with("--device", "c1.xlarge", "--read-rate", "500", "--write-rate", "500")
        path = self.make("file", 32 * MIB)
        got = self.counted(lambda: self.read_directly(path))
        self.assertEqual(got["read_bytes"], 32 * MIB)
        self.assertLessEqual(got["seeks"], 8)

    def test_metered(self):
        """Operations of at most 256 KiB: 1 MiB is four."""
        self.mount_with("--device", "ebs-gp2")
        path = self.make("file", 4 * MIB)
        got = self.counted(lambda: path.read_bytes())
        self.assertAlmostEqual(got["busy_s"], 16 / 300, delta=0.015)


class Interface(SpindleTest):
    """Reports, the command line, --size, run."""

    NUMBERS = ("requests reads writes read_bytes write_bytes seeks read_seeks skips consecutive "
               "small_reads syncs buffer_hits buffer_hit_bytes absorbed_bytes discarded_bytes "
               "stalls max_buffered_bytes begin_unix_s end_unix_s elapsed_s busy_s read_busy_s "
               "write_busy_s small_read_busy_s read_wait_s stall_s mean_read_bytes "
               "mean_write_bytes consecutive_ratio read_iops write_iops utilisation "
               "bandwidth_utilisation spindle_cpu_s").split()

    def test_report(self):
        (self.mount / "a").write_bytes(bytes(MIB))
        self.spindle("--reset", self.mount, 'second "program"')
        report = json.loads(self.spindle("--report", self.mount, "--json"))
        self.assertEqual(set(report), {"device", "history", "current"})
        self.assertEqual(report["device"]["name"], "nvme")
        self.assertIs(report["device"]["rotational"], False)
        self.assertEqual([r["label"] for r in report["history"]], ["start"])
        self.assertEqual(report["current"]["label"], "second program")
        for record in report["history"] + [report["current"]]:
            self.assertEqual(sorted(record), sorted(self.NUMBERS + ["label"]))
        self.assertEqual(report["history"][0]["write_bytes"], MIB)
        self.assertEqual(report["current"]["write_bytes"], 0)
        lines = self.spindle("--report", self.mount).splitlines()
        self.assertEqual([line.split()[0] for line in lines], ["program", "start", "second"])

    def test_control_files(self):
        self.assertEqual(os.listdir(self.mount), [])
        self.assertEqual((self.mount / ".spindle/rotational").read_text(), "0\n")
        (self.mount / ".spindle/reset").write_text("by hand\n")
        self.assertEqual(self.counts()["label"], "by hand")
        with self.assertRaises(OSError):
            (self.mount / ".spindle/other").write_text("x")
        with self.assertRaises(OSError):
            os.unlink(self.mount / ".spindle/reset")
        self.mount_with("--device", "barracuda")
        self.assertEqual((self.mount / ".spindle/rotational").read_text(), "1\n")

    def test_mount(self):
        """Other programs find name and read-ahead where they look for them."""
        lines = [line for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
                 if f" {self.mount} " in line]
        self.assertEqual(len(lines), 1)
        self.assertIn(" - fuse.spindle spindle:nvme ", lines[0])
        bdi = pathlib.Path("/sys/class/bdi") / lines[0].split()[2] / "read_ahead_kb"
        if bdi.exists():
            self.assertEqual(bdi.read_text().strip(), "128")

    def test_full(self):
        """write() itself fails, as on a local file system. Deleted files free their space."""
        self.mount_with("--device", "nvme", "--size", "4M")
        fd = os.open(self.mount / "file", os.O_WRONLY | os.O_CREAT)
        with self.assertRaises(OSError) as caught:
            for _ in range(100):
                write_all(fd, bytes(100000))
        self.assertEqual(caught.exception.errno, errno.ENOSPC)
        size = os.fstat(fd).st_size
        self.assertAlmostEqual(size, 4 * MIB, delta=16384)
        self.assertEqual(os.pwrite(fd, b"again", 1000), 5)
        os.close(fd)
        st = os.statvfs(self.mount)
        self.assertEqual(st.f_blocks * st.f_frsize, 4 * MIB)
        self.assertLess(st.f_bavail * st.f_frsize, 16384)
        os.unlink(self.mount / "file")
        (self.mount / "file").write_bytes(bytes(3 * MIB))

    def test_full_for_rocksort(self):
        """rocksort prints one message and leaves no file."""
        self.mount_with("--device", "nvme", "--size", "1M")
        source = self.write("in.sam", generate.odd(15000))
        result = self.rocksort("-T", self.mount, "-o", self.path("out.bam"), source,
                               budget=SPILL_BUDGET)
        self.assertEqual(result.status, 1)
        self.assertIn("space", result.err)
        self.assertEqual(os.listdir(self.mount), [])

    def test_run(self):
        """The page cache of the mount counts as the program's memory."""
        (self.mount / "file").write_bytes(bytes(64 * MIB))
        self.spindle("--reset", self.mount, "cat")
        done = subprocess.run([SPINDLE, "run", "--memory", "24M", "--", "sh", "-c",
                               'cat "$1" "$1" | wc -c; exit 3', "sh", self.mount / "file"],
                              capture_output=True, text=True, timeout=LIMIT_S, check=False)
        if done.returncode == NO_CGROUP:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(done.stdout.strip(), str(128 * MIB))
        self.assertGreater(self.counts()["read_bytes"], 110 * MIB)

    def test_run_out_of_memory(self):
        """The command is killed, and a message says why."""
        code = "x = b'x' * (100 << 20)"
        done = subprocess.run([SPINDLE, "run", "--memory", "24M", "--", sys.executable, "-c", code],
                              capture_output=True, text=True, timeout=LIMIT_S, check=False)
        if done.returncode == NO_CGROUP:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 128 + signal.SIGKILL, done.stderr)
        self.assertIn("out of --memory", done.stderr)

    def test_signal(self):
        """SIGTERM makes the server unmount."""
        pid = int((self.mount / ".spindle/pid").read_text())
        self.is_mounted = False
        os.kill(pid, signal.SIGTERM)
        wait_for(lambda: not os.path.ismount(self.mount), 10 * SLOW, "the unmount")
        self.mount_with("--device", "nvme")

    def test_errors(self):
        for args in (["--device", "floppy", self.backing, self.mount], [self.backing],
                     ["--stripe", "x", self.backing, self.mount], ["--report", self.backing],
                     ["--devices", "2", self.backing, self.backing],
                     ["--read-rate", "-1", self.backing, self.backing],
                     [self.backing, self.work / "missing"], ["run", "--memory", "1M"],
                     ["--write-buffer", "0", self.backing, self.backing]):
            self.spindle(*args, status=1)
        self.assertIn("barracuda", self.spindle("--list"))

    def test_self_test_interrupted(self):
        """A signal ends it without leaving a mount, server or file."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(signal=number.name), \
                    subprocess.Popen([SPINDLE, "--self-test", "ebs-st1"],
                                     env=environment(self.work), stdout=subprocess.DEVNULL,
                                     stderr=subprocess.PIPE) as process:
                wait_for(lambda: any(map(os.path.ismount, self.work.glob("spindle-*/mount"))),
                         LIMIT_S, "the mount")
                process.send_signal(number)
                _, err = process.communicate(timeout=LIMIT_S)
                self.assertEqual(process.returncode, -number, err)
                self.assertEqual(list(self.work.glob("spindle-*")), [])

    def test_rates(self):
        """A slow preset reaches its figures, at the second attempt at the latest."""
        for attempt in (1, 2):
            done = subprocess.run([SPINDLE, "--self-test", "ebs-st1"], capture_output=True,
                                  text=True, timeout=LIMIT_S, check=False)
            if done.returncode == 0:
                return
        self.fail(f"attempt {attempt}: {done.stdout}{done.stderr}")
