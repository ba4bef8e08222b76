"""--clean DIR: lists the checkpoints that dead sorts left, and removes them with --yes."""

import fcntl
import os
import subprocess
import time

import bamfile
import generate
from harness import SAMTOOLS, SPILL_BUDGET, wait_for
from checkpoints import APPEAR_LIMIT_S, KilledTest, ResumeTest


class Clean(ResumeTest):
    """What --clean lists and removes."""

    def clean(self, *args):
        """Runs --clean; returns its output as {directory: words before it}."""
        result = self.run_program([SAMTOOLS, "rocksort", "--clean", *args])
        self.assertEqual((result.status, result.err), (0, ""))
        return result.out.decode()

    def test_nothing(self):
        self.assertIn("no temporary data", self.clean(self.where))
        self.assertIn("no temporary data", self.clean(self.where, "--yes"))

    def test_list_and_remove(self):
        sam = generate.odd(9000, seed=96).encode()
        checkpoint = self.fails_in_merge(stdin=sam)
        foreign = self.where / "rocksort.1.abcdef"
        foreign.mkdir(mode=0o700)
        (foreign / "mine").write_text("x")
        os.symlink(checkpoint, self.where / "rocksort.2.abcdef")
        process = self.start("-T", self.where, budget=SPILL_BUDGET)
        writer = self.feed(process, sam)
        busy, = wait_for(lambda: [path for path in self.checkpoints()
                                  if path not in (checkpoint, str(foreign), str(self.where /
                                                                                "rocksort.2.abcdef"))
                                  and os.path.exists(path + "/STORE")], APPEAR_LIMIT_S,
                         "a checkpoint")
        for args in ((), ("--yes",)):
            lines = self.clean(self.where, *args).splitlines()
            self.assertEqual(len(lines), 2, lines)
            state = {line.split()[-1] if "removed" not in line else line.split()[-2].rstrip(","):
                     line.split()[0] for line in lines}
            self.assertEqual(state, {checkpoint: "complete", busy: "in"}, lines)
            self.assertIn("MB", next(line for line in lines if checkpoint in line))
            self.assertEqual(os.path.exists(checkpoint), not args)
        self.assertTrue(os.path.exists(busy))
        self.assertTrue((foreign / "mine").exists())
        self.assertTrue(os.path.islink(self.where / "rocksort.2.abcdef"))
        process.kill()
        process.wait()
        writer.join(5)
        self.assertIn("partial", self.clean(busy))
        self.assertIn("removed", self.clean(busy, "--yes"))
        self.assertFalse(os.path.exists(busy))

    def test_no_state_file(self):
        """A checkpoint without its file STORE: the sort ended before it was written, or while the
        checkpoint was being removed."""
        sam = generate.odd(9000, seed=96).encode()
        checkpoint = self.fails_in_merge(stdin=sam)
        os.unlink(os.path.join(checkpoint, "STORE"))
        self.assertIn("useless", self.clean(self.where))
        self.clean(self.where, "--yes")
        self.assertEqual(self.checkpoints(), [])

    def test_errors(self):
        result = self.rocksort("--clean", self.path("nothing"))
        self.assert_error(result, "nothing")
        result = self.rocksort("--clean", self.where, self.path("more"))
        self.assert_error(result, "--clean")
        with open("/dev/full", "wb") as full:
            done = subprocess.run([SAMTOOLS, "rocksort", "--clean", self.where], stdout=full,
                                  stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output", done.stderr)


class NamesAndLocks(KilledTest):
    """Names of checkpoints, and the locks that show whether they are in use."""

    def clean(self, *args, **how):
        """Runs --clean."""
        return self.run_program([SAMTOOLS, "rocksort", "--clean", *args], **how)

    def test_without_locks(self):
        """On a file system without locks --clean refuses to remove checkpoints. It once removed one
        that was in use there."""
        source = self.source()
        checkpoint = self.fails_in_merge(source)
        for errno in ("ENOLCK", "ENOTSUP", "EINVAL"):
            with self.subTest(errno=errno):
                result = self.clean(self.where, "--yes", env=self.faulty(f"flock:1+:{errno}"))
                self.assert_error(result, checkpoint, "locks")
                self.assertIn(f"{checkpoint}\n", result.out.decode())
                result = self.clean(self.where, env=self.faulty(f"flock:1+:{errno}"))
                self.assertEqual((result.status, result.err), (0, ""))
        want = self.sort_bam("--no-PG", source)
        self.resume(checkpoint, "-o", self.path("out.bam"), env=self.faulty("flock:1+:ENOLCK"))
        self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_name_with_slashes(self):
        """The name of a directory may end with slashes, as shells complete it."""
        checkpoint = self.fails_in_merge(self.source())
        self.assertIn(checkpoint, self.clean(checkpoint + "/").out.decode())
        self.assertIn("removed", self.clean(checkpoint + "//", "--yes").out.decode())
        self.assertEqual(self.checkpoints(), [])

    def test_name_with_control_characters(self):
        """A name is printed on one line and without control characters."""
        checkpoint = self.fails_in_merge(self.source())
        os.rename(checkpoint, self.where / ("a\nb\033[31m" + "c.rocksort.1.abcdef"))
        out = self.clean(self.where).out.decode()
        self.assertEqual(out.count("\n"), 1)
        self.assertNotIn("\033", out)
        out = self.clean(self.where, "--yes").out.decode()
        self.assertRegex(out, "c.rocksort.1.abcdef, removed\n")
        self.assertEqual(self.checkpoints(), [])
        self.assertEqual(self.clean(f"{self.where}/a\nb").err.count("\n"), 1)

    def test_locked_by_another_clean(self):
        """Two --clean that list at the same time: one holds the lock for a moment. The other once
        said that the checkpoint was in use."""
        checkpoint = self.fails_in_merge(stdin=generate.odd(9000, seed=95).encode())
        with open(os.path.join(checkpoint, "LOCK"), "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            process = self.start("--clean", self.where)
            time.sleep(0.1)
            fcntl.flock(lock, fcntl.LOCK_UN)
        listed, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        self.assertRegex(listed.decode(), r"\Acomplete .*\n\Z")
