"""Input files that are changed or replaced while they, or other inputs, are read."""

import os
import signal
import struct

import bamfile
import generate
from harness import SPILL_BUDGET, bytes_of, wait_for
from checkpoints import KilledTest


def end_of_block(data, at_least):
    """The end of the first BGZF block that ends at_least bytes or more into the file."""
    end = 0
    while end < at_least:
        end += struct.unpack_from("<H", data, end + 16)[0] + 1
    return end


class ChangedInputs(KilledTest):
    """Sorts of a file that the test changes or replaces during the run."""

    def setUp(self):
        super().setUp()
        self.file = self.bam_of(generate.odd(20000, seed=91))

    def change(self, how):
        """Sorts the file and calls how(content of the file) while it is being read."""
        data = bytes_of(self.file)
        process = self.start("--no-PG", "-T", self.where, "-o", self.path("out.bam"), self.file,
                             budget=SPILL_BUDGET, env=self.faulty("read:5:2000ms:in.bam"))

        def place():
            """How far the file has been read."""
            for fd in os.listdir(f"/proc/{process.pid}/fd"):
                try:
                    if os.path.realpath(f"/proc/{process.pid}/fd/{fd}") == self.file:
                        with open(f"/proc/{process.pid}/fdinfo/{fd}", encoding="ascii") as info:
                            return int(info.readline().split()[1])
                except FileNotFoundError:
                    pass        # another file, which was closed after listdir()
            return 0

        # Not the end of the file: htslib looks at it first.
        wait_for(lambda: 100_000 < place() < 700_000, 20, "its records to be read")
        how(data)
        _, err = process.communicate(timeout=60)
        return process.returncode, err.decode()

    def test_input_truncated_between_blocks_while_read_is_an_error(self):
        status, err = self.change(lambda data: os.truncate(self.file, end_of_block(data, 750_000)))
        self.assertEqual(status, 1, err)
        self.assertIn(f"'{self.file}' was changed while it was read: it had ", err)
        self.assertNotIn("--resume", err)
        self.assertEqual((self.checkpoints(), os.path.exists(self.path("out.bam"))), ([], False))

    def test_replaced_file_is_read_to_its_end(self):
        want = self.sort_bam("--no-PG", self.file)

        def replace(data):
            os.rename(self.write("new", data[:9000]), self.file)

        status, err = self.change(replace)
        self.assertEqual(status, 0, err)
        self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_replaced_before_it_is_described(self):
        """A checkpoint must describe the file that was opened. It once described the file that had
        the name after the header was read: --resume then mixed records of both files, with exit
        status 0."""
        new = self.bam_of(generate.odd(20000, seed=92), name="new.bam")
        process = self.start("--no-PG", "-T", self.where, "-o", self.path("out.bam"), self.file,
                             budget=SPILL_BUDGET,
                             env=self.faulty("read:1:2000ms:in.bam,link:4:kill:.sst"))

        def is_open():
            return any(os.path.realpath(f"/proc/{process.pid}/fd/{fd}") == self.file
                       for fd in os.listdir(f"/proc/{process.pid}/fd"))

        wait_for(is_open, 20, "the file to be opened")
        os.rename(new, self.file)
        self.assert_died_of(process, signal.SIGKILL)
        checkpoint, = self.checkpoints()
        self.assertEqual(self.state(checkpoint), "loading")
        self.refused(checkpoint, self.file, "changed")

    def test_replaced_file_gets_its_own_references_and_read_groups(self):
        data = bytes_of(self.file)
        lines = bamfile.read(self.file).text.splitlines(keepends=True)
        line = "r\t0\tchr10\t5\t9\t4M\t*\t0\t0\tACGT\tFFFF\tRG:Z:g\n"
        group = "@RG\tID:g\tLB:%s\n"
        for what, new in (("references", lines[::-1] + [group % "x"]),
                          ("read groups", lines + [group % "y"])):
            second = self.bam_of("".join(lines) + group % "x" + line, name="second.bam")
            new = self.bam_of("".join(new) + line, name="new.bam")
            process = self.start("-o", self.path("out.bam"), "-", second)
            # The data is larger than all buffers: when the write returns, records are being read.
            process.stdin.write(data[:-40])
            process.stdin.flush()
            os.rename(new, second)
            _, err = process.communicate(data[-40:], timeout=60)
            with self.subTest(what=what):
                self.assertEqual(process.returncode, 1, err)
                self.assertIn(f"'{second}' was replaced while others were read", err.decode())
                self.assertFalse(os.path.exists(self.path("out.bam")))
