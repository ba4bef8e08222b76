"""Power failures: a checkpoint that has only its synced data is resumed correctly, or refused."""

import os
import pathlib
import shutil

import bamfile
import generate
from harness import SPILL_BUDGET
from checkpoints import KilledTest


class PowerFailure(KilledTest):
    """Removes all data of a checkpoint that were not synced: bytes of files, and names in
    directories."""

    def setUp(self):
        super().setUp()
        self.synced, self.sam = self.work / "synced", generate.odd(9000, seed=81)
        self.synced.mkdir()

    def faulty(self, fault, **more):
        return super().faulty(fault, FAULT_SYNCED=str(self.synced), ROCKSORT_TEST_DURABLE="0",
                              **more)

    def rebuild(self, name, path):
        """Makes a file or directory anew with its synced content; empty if nothing was synced."""
        left = self.synced / name
        if name.startswith("d"):
            os.mkdir(path, 0o700)
            for line in left.read_text().splitlines() if left.exists() else ():
                self.rebuild(line.split(" ", 1)[0], os.path.join(path, line.split(" ", 1)[1]))
        else:
            pathlib.Path(path).write_bytes(left.read_bytes() if left.exists() else b"")
            os.chmod(path, 0o600)

    def power_fails(self, checkpoint):
        """Replaces the checkpoint by what a power failure would leave of it."""
        names = [path.name for path in self.synced.glob(f"d-{os.stat(checkpoint).st_ino}-*")]
        shutil.rmtree(checkpoint)
        self.assertLessEqual(len(names), 1)
        self.rebuild(*names or ["d"], checkpoint)

    def forget(self):
        """Forgets what earlier sorts have synced."""
        for path in self.synced.iterdir():
            path.unlink()

    def test_run_counts_as_durable_when_all_its_directories_are_synced(self):
        for n_dirs in (1, 2):
            with self.subTest(directories=n_dirs):
                more = ["-T", self.where / "b"] * (n_dirs - 1)
                (self.where / "b").mkdir(exist_ok=True)
                self.forget()
                self.rocksort("--no-PG", "-k", "-T", self.where, *more, "-o", self.path("out.bam"),
                              stdin=self.sam.encode(), env=self.faulty("link:6:kill:.sst"),
                              budget=SPILL_BUDGET, clean=False)
                checkpoints = self.checkpoints(self.where, self.where / "b")
                self.assertEqual(len(checkpoints), n_dirs)
                self.sort_ok("--resume", checkpoints[0], "--partial", "-k", "-o",
                             self.path("want.bam"),
                             clean=False)
                for checkpoint in checkpoints:
                    self.power_fails(checkpoint)
                self.resume(checkpoints[0], "--partial", "-o", self.path("out.bam"))
                want = bamfile.read(self.path("want.bam"))
                self.assertGreater(len(want.records), 100_000)
                self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_resume_after_a_power_failure_is_right_or_refused(self):
        source = self.source(18_000)
        want = self.sort_bam("--no-PG", source)
        for kind, numbers in (("fsync", (1, 2, 5, 9, 14, 20)), ("fdatasync", (1, 3, 8, 15))):
            for number in numbers:
                with self.subTest(kind=kind, number=number):
                    self.forget()
                    checkpoint = self.killed(f"{kind}:{number}:kill", "-o",
                                             self.path("out.bam"), source)
                    self.power_fails(checkpoint)
                    result = self.rocksort("--resume", checkpoint, "-o", self.path("out.bam"),
                                           clean=False)
                    if result.status:
                        self.assert_error(result, "cannot resume")
                        shutil.rmtree(checkpoint)
                    else:
                        self.assert_same_bam(bamfile.read(self.path("out.bam")), want)


class Synced(KilledTest):
    """What --resume syncs."""

    def test_synced(self):
        """--resume syncs files that the process before could not sync before it ended."""
        source, report = self.source(), self.scratch / "report"
        checkpoint = self.cut_load(source)
        old = sorted(path.name for path in pathlib.Path(checkpoint).glob("db-0/*.sst"))[0]
        self.resume(checkpoint, env={**self.faulty(f"fsync:9999:EIO:/{old}"),
                                     "FAULT_REPORT": str(report)})
        self.assertEqual(self.n_faults(report), [1])
