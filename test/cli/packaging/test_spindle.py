"""bench/spindle, the disk of 2014: it serves files as any file system does, and counts accesses."""

import os
import random
import struct
import subprocess
import time
import unittest

import bamfile
import generate
from harness import ROOT, SLOW, SPILL_BUDGET, CliTest, bytes_of, wait_for

SPINDLE = str(ROOT / "bench" / "spindle")
MIB = 1 << 20
LIMIT_S = 60 * SLOW
COUNTERS = ("n_drives reads writes read_bytes write_bytes seeks syncs busy_ns "
            "buffered_bytes").split()


def reason_to_skip():
    """The reason why spindle cannot be tested here, or an empty string."""
    if not os.access(SPINDLE, os.X_OK):
        return "bench/spindle is not built (it needs libfuse3-dev: make bench/spindle)"
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as e:
        return f"no FUSE here: /dev/fuse: {e.strerror}"
    return ""


@unittest.skipIf(reason_to_skip(), reason_to_skip())
class SpindleTest(CliTest):
    """A test with a mount at self.mount, which has no delays unless `device` is another."""

    device = "nvme"

    def setUp(self):
        super().setUp()
        self.backing, self.mount = self.work / "backing", self.work / "mount"
        self.backing.mkdir()
        self.mount.mkdir()
        self.server = None
        self.addCleanup(self.unmount)
        self.mount_with(self.device)

    def mount_with(self, device):
        self.unmount()
        self.server = subprocess.Popen(
            [SPINDLE, "-f", "-o", f"device={device},counters={self.work / 'counters'}",
             self.backing, self.mount], stderr=subprocess.PIPE, text=True)
        wait_for(lambda: os.path.ismount(self.mount) or self.server.poll() is not None, LIMIT_S,
                 "the mount")
        if self.server.poll() not in (None, 1):
            self.skipTest(f"no FUSE here: {self.server.communicate()[1]}")
        self.assertIsNone(self.server.poll())

    def unmount(self):
        if self.server:
            self.server.terminate()
            self.server.communicate(timeout=LIMIT_S)
            self.assertFalse(os.path.ismount(self.mount))
            self.server = None

    def counts(self):
        return dict(zip(COUNTERS, struct.unpack("9Q", bytes_of(self.work / "counters"))))

    def counted(self, action):
        """What an action did, until all is on the device."""
        before = self.counts()
        action()
        os.sync()
        wait_for(lambda: not self.counts()["buffered_bytes"], LIMIT_S, "the write buffer")
        return {name: value - before[name] for name, value in self.counts().items()}


class PassThrough(SpindleTest):
    """Programs see an ordinary file system."""

    def test_random_writes_and_truncations(self):
        rng, model = random.Random(2), bytearray()
        fd = os.open(self.mount / "file", os.O_RDWR | os.O_CREAT)
        self.addCleanup(os.close, fd)
        for step in range(300):
            at, data = rng.randrange(12 * MIB), rng.randbytes(rng.randrange(1, 60000))
            if step % 40 == 39:
                os.ftruncate(fd, at)
                model = model[:at] + bytes(max(0, at - len(model)))
            else:
                os.pwrite(fd, data, at)
                model += bytes(max(0, at + len(data) - len(model)))
                model[at:at + len(data)] = data
            self.assertEqual(os.fstat(fd).st_size, len(model))
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        self.assertEqual(os.pread(fd, len(model) + 1, 0), bytes(model))
        self.assertEqual((self.backing / "file").read_bytes(), bytes(model))

    def test_order_is_the_same_on_the_mount(self):
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
    """What devices count. A few accesses more are allowed: something else may write a block, and
    the page cache may lose a page early and read it again."""

    device = "barracuda"

    def make(self, name, n_bytes):
        (self.mount / name).write_bytes(bytes(n_bytes))
        return self.mount / name

    def read_cold(self, path, offsets=None):
        """Reads a file that is not in the page cache, or 4 KiB at each of these offsets."""
        fd = os.open(path, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        if offsets:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
            for at in offsets:
                os.pread(fd, 4096, at)
        else:
            while os.read(fd, MIB):
                pass
        os.close(fd)

    def test_sequential_reads_take_no_seeks(self):
        path = self.mount / "file"
        wrote = self.counted(lambda: path.write_bytes(bytes(20 * MIB)))
        self.assertEqual(wrote["write_bytes"], 20 * MIB)
        self.assertLessEqual(wrote["seeks"], 4)
        read = self.counted(lambda: self.read_cold(path))
        self.assertGreaterEqual(read["read_bytes"], 20 * MIB)
        self.assertLessEqual(read["read_bytes"], 22 * MIB)
        self.assertLessEqual(read["seeks"], 10)
        self.assertEqual(read["writes"], 0)

    def test_random_reads_take_seeks(self):
        """79 accesses a second; a gap ahead may be passed over in less time."""
        path = self.make("file", 64 * MIB)
        self.counted(lambda: None)
        offsets = [i * 65536 for i in random.Random(4).sample(range(64 * 16), 50)]
        start = time.monotonic()
        got = self.counted(lambda: self.read_cold(path, offsets))
        self.assertEqual((got["reads"], got["read_bytes"]), (50, 50 * 4096))
        self.assertTrue(40 <= got["seeks"] <= 50, got)
        self.assertAlmostEqual(got["busy_ns"] / 1e9, 50 / 79, delta=0.1)
        self.assertGreater(time.monotonic() - start, 0.9 * got["busy_ns"] / 1e9)

    def test_fsync_waits_for_the_disk(self):
        """It waits for the data and, if the file has grown, for the journal."""
        def write():
            with open(self.mount / "file", "wb", buffering=0) as file:
                for _ in range(10):
                    file.write(bytes(4096))
                    os.fsync(file.fileno())
                os.pwrite(file.fileno(), bytes(4096), 0)
                os.fsync(file.fileno())

        got = self.counted(write)
        self.assertEqual(got["syncs"], 11)
        self.assertEqual(got["writes"], 21)
        self.assertGreaterEqual(got["seeks"], 19)
