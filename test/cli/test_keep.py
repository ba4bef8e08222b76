"""What a sort keeps: with and without -k, with --no-resume, and if STORE cannot be written."""

import os
import stat

import bamfile
import generate
from harness import SPILL_BUDGET, bytes_of
from checkpoints import KilledTest, ResumeTest


class Keep(ResumeTest):
    def test_merged_again(self):
        source = self.source()
        want = self.sort_bam("--no-PG", source)
        for option in ("-k", "--keep"):
            result = self.sort_ok("--no-PG", option, "-T", self.where, "-o", self.path("a.bam"),
                                  source, clean=False, budget=SPILL_BUDGET)
            checkpoint, = self.checkpoints()
            self.assertIn(checkpoint, result.err)
            self.assertEqual(self.state(checkpoint), "loaded")
            os.rename(source, self.path("away"))
            self.sort_ok("--resume", checkpoint, "-k", "-o", self.path("b.bam"), clean=False,
                         budget=SPILL_BUDGET)
            self.resume(checkpoint, "-o", self.path("c.bam"))
            os.rename(self.path("away"), source)
            for name in ("a.bam", "b.bam", "c.bam"):
                self.assert_same_bam(bamfile.read(self.path(name)), want, name)

    def test_sort_in_memory_leaves_nothing(self):
        for options in ([], ["-k"]):
            result = self.rocksort(*options, "-T", self.where, "-o", "/dev/full",
                                   stdin=generate.odd(100).encode())
            self.assert_error(result, "/dev/full")

    def test_no_resume_keeps_nothing(self):
        sam = generate.odd(9000, seed=88).encode()
        result = self.rocksort("--no-resume", "-T", self.where, "-o", "/dev/full", stdin=sam,
                               budget=SPILL_BUDGET)
        self.assert_error(result, "/dev/full")
        self.assertEqual(self.checkpoints(), [])
        self.assert_same_bam(self.sort_bam("--no-PG", "--no-resume", stdin=sam,
                                           budget=SPILL_BUDGET),
                             self.sort_bam("--no-PG", stdin=sam))
        self.sort_ok("--no-resume", "-k", "-T", self.where, "-o", self.path("o.bam"), stdin=sam,
                     budget=SPILL_BUDGET, clean=False)
        checkpoint, = self.checkpoints()
        self.assertIsNone(self.state(checkpoint))
        self.refused(checkpoint, "--no-resume")

    def test_damaged_input_keeps_nothing(self):
        data = bytes_of(self.source(9000))
        cut = self.write("cut.bam", data[:-2000])
        result = self.rocksort("-T", self.where, "-o", self.path("out.bam"), cut,
                               budget=SPILL_BUDGET)
        self.assert_error(result, "cut.bam")

    def test_only_the_user_can_read_a_checkpoint(self):
        checkpoint = self.fails_in_merge(stdin=generate.odd(9000, seed=97).encode())
        self.assertEqual(stat.S_IMODE(os.stat(checkpoint).st_mode), 0o700)
        for name in ("STORE", "LOCK"):
            self.assertEqual(stat.S_IMODE(os.stat(os.path.join(checkpoint, name)).st_mode), 0o600)


class StateFile(KilledTest):
    """The file STORE of a checkpoint, which says what the checkpoint has."""

    def test_no_space_to_update_it(self):
        """All records of a pipe are on the disk, but the file STORE cannot be updated, and the
        merge fails, too. Everything was once removed then; now the checkpoint is kept."""
        sam = generate.odd(9000, seed=81).encode()
        want = self.sort_bam("--no-PG", stdin=sam)
        for n, state, options in (("2", "loaded", []), ("2+", "loading", ["--partial"])):
            with self.subTest(n=n):
                result = self.rocksort("--no-PG", "-T", self.where, "-o", "/dev/full", stdin=sam,
                                       env=self.faulty(f"openat:{n}:ENOSPC:STORE.new"),
                                       budget=SPILL_BUDGET, clean=False)
                self.assert_error(result, "/dev/full")
                self.assertEqual(result.err.count("tried again"), 1, result.err)
                checkpoint, = self.checkpoints()
                self.assertIn(" ".join(["--resume", checkpoint, *options]) + "\n", result.err)
                self.assertEqual(self.state(checkpoint), state)
                self.resume(checkpoint, *options, "-o", self.path("out.bam"))
                self.assert_same_bam(bamfile.read(self.path("out.bam")), want)
