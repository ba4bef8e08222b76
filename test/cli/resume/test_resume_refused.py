"""What --resume refuses: directories that are no checkpoint, checkpoints that are in use, damaged
or incomplete, and options that contradict the first sort."""

import fcntl
import glob
import os
import shutil
import time

import bamfile
import generate
from harness import SPILL_BUDGET, bytes_of
from checkpoints import ResumeTest


class Refused(ResumeTest):
    """Checkpoints that cannot be finished."""

    def setUp(self):
        super().setUp()
        self.sam = generate.odd(9000, seed=95).encode()
        self.checkpoint = self.fails_in_merge(stdin=self.sam)

    def test_directory_that_is_no_checkpoint_is_refused(self):
        (self.work / "empty").mkdir(mode=0o700)
        (self.work / "file").write_text("x")
        os.symlink(self.checkpoint, self.work / "link")
        for name, mention in (("empty", "not a checkpoint"), ("file", "not a directory"),
                              ("nothing", "does not exist"), ("link", "link")):
            self.refused(self.path(name), self.path(name), mention)

    def test_checkpoint_in_use_is_refused(self):
        process = self.start("--resume", self.checkpoint, "-u", "-o", "-", budget=SPILL_BUDGET)
        os.read(process.stdout.fileno(), 100)
        self.refused(self.checkpoint, self.checkpoint, "in use")
        process.kill()
        process.wait()
        self.resume(self.checkpoint, "-o", self.path("out.bam"))

    def test_resume_waits_for_a_lock_of_another_process(self):
        with open(os.path.join(self.checkpoint, "LOCK"), "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            process = self.start("--resume", self.checkpoint, "-o", self.path("out.bam"),
                                 budget=SPILL_BUDGET)
            time.sleep(0.1)
            fcntl.flock(lock, fcntl.LOCK_UN)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)

    def test_options_that_contradict_the_first_sort_are_refused(self):
        for options, mention in ((["-n"], "-n: its runs"), (["--shuffle=3"], "--shuffle=3"),
                                 (["-t", "AB"], "-tAB"),
                                 (["--no-resume"], "--no-resume"),
                                 (["--clean", self.work], "--clean"),
                                 (["--checksum-only"], "--checksum-only"),
                                 ([self.write("x.bam", b"")], "input")):
            with self.subTest(options=options):
                self.refused(self.checkpoint, mention, options=options)
        source = self.write("in.sam", self.sam)
        result = self.rocksort("--partial", "-o", self.path("x"), source)
        self.assert_error(result, "--resume")
        result = self.rocksort("--yes", "-o", self.path("x"), source)
        self.assert_error(result, "--clean")
        self.resume(self.checkpoint, "-o", self.path("out.bam"))

    def test_same_order_may_be_given_again(self):
        shutil.rmtree(self.checkpoint)
        checkpoint = self.fails_in_merge("-t", "XI", "-n", stdin=self.sam)
        self.resume(checkpoint, "-t", "XI", "-n", "-o", self.path("out.bam"))

    def test_order_that_did_not_count_may_be_repeated_and_still_does_not(self):
        """Of two orders the last one counts. The first one, repeated, once became the last, also in
        the checkpoint."""
        shutil.rmtree(self.checkpoint)
        checkpoint = self.fails_in_merge("--template-coordinate", "-n", stdin=self.sam)
        result = self.rocksort("--resume", checkpoint, "--template-coordinate", "-o", "/dev/full",
                               clean=False)
        self.assertIn("/dev/full", result.err)
        self.resume(checkpoint, "-o", self.path("out.bam"))
        self.assertEqual(bamfile.read(self.path("out.bam")).records,
                         self.sort_bam("-n", stdin=self.sam).records)

    def test_damaged_state_file_is_refused(self):
        path = os.path.join(self.checkpoint, "STORE")
        good = bytes_of(path)
        cases = [(b"", "STORE file"), (b"hello\n", "STORE file"), (good[:-1], "damaged"),
                 (good[: len(good) // 2], "damaged"), (good + b"x", "damaged"),
                 (good.replace(b"loaded", b"loadet"), "damaged"),
                 (good.replace(b"rocksort-store 8", b"rocksort-store 7"), "version")]
        for data, mention in cases:
            with open(path, "wb") as file:
                file.write(data)
            self.refused(self.checkpoint, self.checkpoint, mention)
        os.unlink(path)
        self.refused(self.checkpoint, self.checkpoint, "no STORE file")
        os.mkfifo(path, 0o600)
        self.refused(self.checkpoint, self.checkpoint, "STORE file")
        os.unlink(path)
        os.symlink("/etc/passwd", path)
        self.refused(self.checkpoint, self.checkpoint, "no STORE file")
        os.unlink(path)
        with open(path, "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(good)
        self.resume(self.checkpoint, "-o", self.path("out.bam"))

    def copies(self):
        """Yields each file of the databases, in a new copy of the checkpoint, to be damaged."""
        saved = self.path("saved")
        shutil.copytree(self.checkpoint, saved)
        files = sorted(path for path in glob.glob(f"{saved}/db-*/*") if os.path.getsize(path))
        for path in files:
            shutil.rmtree(self.checkpoint, ignore_errors=True)
            shutil.copytree(saved, self.checkpoint)
            yield path.replace(saved, self.checkpoint)

    def test_damaged_databases_are_never_a_shorter_output(self):
        want = self.sort_bam("--no-PG", stdin=self.sam)
        n_refused = 0
        for path in self.copies():
            kind = os.path.basename(path).split("-")[0].split(".")[-1]
            for damage in ("remove", "cut", "change"):
                if kind == "sst" and n_refused > 12 and damage != "remove":
                    continue
                size = os.path.getsize(path)
                good = bytes_of(path)
                if damage == "remove":
                    os.unlink(path)
                elif damage == "cut":
                    os.truncate(path, size // 2)
                else:
                    with open(path, "r+b") as file:
                        file.seek(size // 3)
                        file.write(bytes(byte ^ 255 for byte in good[size // 3: size // 3 + 8]))
                out = self.path("out.bam")
                result = self.rocksort("--resume", self.checkpoint, "-o", out, clean=False, budget=
                                       SPILL_BUDGET)
                with self.subTest(file=os.path.basename(path), damage=damage):
                    if result.status:
                        n_refused += 1
                        self.assertEqual(result.status, 1, result.err)
                        self.assertFalse(os.path.exists(out))
                    else:               # a file that is not needed, such as RocksDB's options
                        self.assertNotEqual(kind, "sst")
                        self.assert_same_bam(bamfile.read(out), want)
                        os.unlink(out)
                        break
                with open(path, "wb") as file:
                    file.write(good)
        self.assertGreater(n_refused, 10)

    def test_missing_database_is_refused(self):
        shutil.rmtree(os.path.join(self.checkpoint, "db-0"))
        self.refused(self.checkpoint, self.checkpoint, "lacks")

    def test_missing_directory_is_refused(self):
        shutil.rmtree(self.checkpoint)
        other = self.work / "other"
        other.mkdir()
        self.rocksort("-T", self.where, "-T", other, "-o", "/dev/full", clean=False,
                      stdin=self.sam, budget=SPILL_BUDGET)
        first, second = self.checkpoints() + self.checkpoints(other)
        os.rename(first, self.path("away"))
        self.refused(second, second, "does not exist")
        # Another checkpoint has its place.
        shutil.copytree(self.path("away"), first)
        path = os.path.join(first, "STORE")
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        with open(path, "wb") as file:
            file.write(b"x")
        self.refused(second, second, "belongs to another sort")
        shutil.rmtree(first)
        os.rename(self.path("away"), first)
        self.resume(second, "-o", self.path("out.bam"))
