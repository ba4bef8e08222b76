"""What tests of checkpoints share: sorts that fail or are killed at a chosen moment, and --resume.

KilledTest makes sorts fail, or be killed, at a chosen system call.
"""

import glob
import os
import re
import signal

import generate
from harness import SAMTOOLS, SLOW, SPILL_BUDGET, CliTest, needs_faults, own_lines, text_of

APPEAR_LIMIT_S = 20 * SLOW


class ResumeTest(CliTest):
    """Sorts that end early and leave checkpoints in the directory `where`."""

    bam = None

    def setUp(self):
        super().setUp()
        self.where = self.work / "where"
        self.where.mkdir()

    def source(self, records=9000, name="in.bam"):
        sam = generate.odd(records, seed=81)
        return self.bam_of(sam, name=name)

    def checkpoints(self, *folders):
        return sorted(path for folder in folders or [self.where]
                      for path in glob.glob(f"{folder}/*rocksort.*.??????") if os.path.isdir(path))

    def state(self, checkpoint):
        """The state that the file STORE of a checkpoint says, or None without that file."""
        try:
            store = text_of(os.path.join(checkpoint, "STORE"), "latin-1")
            return re.search(r"\bstate (\w+)\0", store).group(1)
        except FileNotFoundError:
            return None

    def fails_in_merge(self, *args, **how):
        """Runs a sort whose output device is full; returns the checkpoint that it leaves."""
        how.setdefault("budget", SPILL_BUDGET)
        result = self.rocksort("--no-PG", "-T", self.where, *args, "-o", "/dev/full", clean=False,
                               **how)
        self.assertEqual(result.status, 1, result.err)
        checkpoint, = self.checkpoints()
        lines = own_lines(result.err)
        self.assertEqual(len(lines), 2, result.err)
        self.assertIn("/dev/full", lines[0])
        self.assertIn(f"--resume {checkpoint}", lines[1])
        return checkpoint

    def clean(self, *args, **how):
        """Runs --clean, which must succeed without a message; returns what it prints."""
        result = self.run_program([SAMTOOLS, "rocksort", "--clean", *args], **how)
        self.assertEqual((result.status, result.err), (0, ""))
        return result.out.decode()

    def resume(self, checkpoint, *args, **how):
        """Resumes a checkpoint: this must succeed and remove the checkpoint."""
        how.setdefault("budget", SPILL_BUDGET)
        result = self.sort_ok("--resume", checkpoint, *args, clean=False, **how)
        self.assertFalse(os.path.exists(checkpoint), "the finished checkpoint was not removed")
        return result

    def refused(self, checkpoint, *mentions, options=()):
        """--resume is refused, makes no output and does not change the checkpoint."""
        before = sorted(os.listdir(checkpoint)) if os.path.isdir(checkpoint) else None
        out = self.path("refused.bam")
        result = self.rocksort("--resume", checkpoint, *options, "-o", out, clean=False,
                               budget=SPILL_BUDGET)
        self.assert_error(result, *mentions)
        self.assertFalse(os.path.exists(out))
        if before is not None:
            after = [name for name in sorted(os.listdir(checkpoint)) if name != "STORE.new"]
            self.assertEqual(after, before)
        return result

    def killed_in_merge(self, *args, number=signal.SIGKILL, **how):
        """Kills a sort while it writes into a pipe; returns its checkpoints and its messages."""
        how.setdefault("budget", SPILL_BUDGET)
        fifo = self.path("fifo")
        if not os.path.exists(fifo):
            os.mkfifo(fifo)
        process = self.start("--no-PG", "-u", "-T", self.where, *args, "-o", fifo, **how)
        with open(fifo, "rb") as pipe:
            self.assertTrue(pipe.read(100))
            process.send_signal(number)
            self.assert_died_of(process, number)
        return self.checkpoints(), process.stderr.read().decode()


@needs_faults
class KilledTest(ResumeTest):
    """Sorts that end at a chosen system call and leave a checkpoint in `where`."""

    def killed(self, fault, *args, **how):
        """Runs a sort that is killed at a system call; returns its checkpoint."""
        how.setdefault("budget", SPILL_BUDGET)
        result = self.rocksort("--no-PG", "-T", self.where, *args, clean=False,
                               env=self.faulty(fault), **how)
        self.assertEqual(result.status, -signal.SIGKILL, result.err)
        checkpoint, = self.checkpoints()
        return checkpoint

    def cut_load(self, *args, n_runs=3, **how):
        """Runs a sort that is killed when n_runs runs are durable; returns its checkpoint."""
        checkpoint = self.killed(f"link:{n_runs + 1}:kill:.sst", *args, "-o", self.path("out.bam"),
                                 **how)
        self.assertEqual(self.state(checkpoint), "loading")
        return checkpoint
