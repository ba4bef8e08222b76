"""--resume finishes a merge that failed or was killed; the output is that of an undisturbed run."""

import glob
import gzip
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

import bamfile
import generate
from harness import (ROOT, SAMTOOLS_ROCKSORT, SLOW, SPILL_BUDGET, CliTest, bytes_of, own_lines,
                     sam_split)
from checkpoints import APPEAR_LIMIT_S, ResumeTest

ORDERS = [[], ["-n"], ["-N"], ["-t", "XI"], ["-t", "XZ", "-n"], ["-M"], ["-M", "-K", "9", "-R"],
          ["--shuffle=7"], ["-@", "3"]]


class Merge(ResumeTest):
    """Sorts that fail or are killed after the input was read."""

    def test_orders(self):
        """Header and records are those of an undisturbed run."""
        sam = generate.odd(9000, seed=82).encode()
        for order in ORDERS:
            with self.subTest(order=order):
                want = self.sort_bam("--no-PG", "-l", "1", *order, stdin=sam)
                checkpoint = self.fails_in_merge("-l", "1", *order, stdin=sam)
                self.assertEqual(self.state(checkpoint), "loaded")
                self.resume(checkpoint, "-o", self.path("out.bam"))
                self.assertEqual(bamfile.read(self.path("out.bam")), want)

    def test_template_coordinate(self):
        sam = "".join(re.sub(r"^(\S+)\t\d+", r"\1\t16" if i % 3 else r"\1\t0", line)
                      for i, line in enumerate(generate.reads(3000, generate.reference())
                                               .splitlines(keepends=True)))
        want = self.sort_bam("--no-PG", "--template-coordinate", stdin=sam.encode())
        checkpoint = self.fails_in_merge("--template-coordinate", stdin=sam.encode())
        self.resume(checkpoint, "-o", self.path("out.bam"))
        self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_minimiser_index(self):
        """--resume does not need the reference of -I."""
        refs = generate.reference()
        sam = generate.reads(2000, refs)
        unplaced = "".join(re.sub(r"\t(\d+)\t\S+\t\d+\t\d+\t\S+\t", "\t4\t*\t0\t0\t*\t", line, 1)
                           for line in sam.splitlines(keepends=True) if not line.startswith("@"))
        fasta = self.write("ref.fa", generate.fasta(refs))
        want = self.sort_bam("--no-PG", "-I", fasta, stdin=unplaced.encode())
        checkpoint = self.fails_in_merge("-I", fasta, stdin=unplaced.encode())
        os.unlink(fasta)
        self.resume(checkpoint, "-o", self.path("out.bam"))
        self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_killed(self):
        """After SIGKILL, which leaves no message, the checkpoint can be resumed. File and pipe."""
        source = self.source()
        want = self.sort_bam("--no-PG", source)
        for pipe in (False, True):
            with self.subTest(pipe=pipe), open(source, "rb") as file:
                checkpoints, _ = self.killed_in_merge("-" if pipe else source, stdin=file)
                self.assertEqual(len(checkpoints), 1)
                self.resume(checkpoints[0], "-o", self.path("out.bam"))
                self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_signals(self):
        """After SIGTERM and other signals of schedulers the checkpoint is kept, and a message says
        so. After Ctrl-C it is removed, except with -k."""
        source = self.source()
        want = self.sort_bam("--no-PG", source)
        kept = [(number, ()) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGXCPU,
                                            signal.SIGUSR1, signal.SIGUSR2)]
        kept += [(number, ("-k",)) for number in (signal.SIGINT, signal.SIGQUIT)]
        for number, options in kept:
            with self.subTest(signal=number.name):
                checkpoints, err = self.killed_in_merge(*options, source, number=number)
                self.assertEqual(len(checkpoints), 1)
                self.assertIn(f"--resume {checkpoints[0]}", err)
                self.resume(checkpoints[0], "-o", self.path("out.bam"))
                self.assert_same_bam(bamfile.read(self.path("out.bam")), want)
        for number in (signal.SIGINT, signal.SIGQUIT):
            with self.subTest(signal=number.name):
                checkpoints, err = self.killed_in_merge(source, number=number)
                self.assertEqual((checkpoints, err), ([], ""))

    def test_closed_standard_output(self):
        """With -k; else nothing stays (test_temp.py)."""
        source = self.source()
        process = self.start("-k", "-u", "--no-PG", "-T", self.where, source, budget=SPILL_BUDGET,
                             stdin=subprocess.DEVNULL)
        os.read(process.stdout.fileno(), 100)
        process.stdout.close()
        process.wait(APPEAR_LIMIT_S)
        checkpoint, = self.checkpoints()
        self.assertIn(f"--resume {checkpoint} -o FILE", process.stderr.read().decode())
        want = self.sort_bam("--no-PG", source)
        # What was there before stays when the reader leaves once more.
        process = self.start("--resume", checkpoint, "-u", "-o", "-", budget=SPILL_BUDGET)
        os.read(process.stdout.fileno(), 100)
        process.stdout.close()
        process.wait(APPEAR_LIMIT_S)
        self.assertIn(f"--resume {checkpoint} -o FILE", process.stderr.read().decode())
        self.resume(checkpoint, "-o", self.path("out.bam"))
        self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_format_under_new_name(self):
        """The format of the first -O is kept for a new name whose extension names this format, or
        no format."""
        source = self.source()
        for name, first in (("o.sam", b"@HD"), ("o.x", b"@HD"), ("o.bam", b"\x1f\x8b"),
                            ("o.sam.gz", b"\x1f\x8b")):
            with self.subTest(name=name):
                checkpoint = self.fails_in_merge("-O", "sam", source)
                self.resume(checkpoint, "-o", self.path(name))
                with open(self.path(name), "rb") as file:
                    self.assertTrue(file.read(3).startswith(first))

    def test_format_without_index(self):
        """The first sort had --write-index, and no option can undo that: if the new output is SAM,
        a warning says that no index is written. Once such a sort could not be finished as SAM."""
        source = self.source()
        want = self.sort_ok("--no-PG", "-O", "sam", source).out
        checkpoint = self.fails_in_merge("--write-index", source)
        self.refused(checkpoint, "--write-index", options=["--write-index", "-O", "sam"])
        result = self.resume(checkpoint, "-o", self.path("out.sam"))
        self.assertIn("no index is written", result.err)
        self.assertEqual((self.work / "out.sam").read_bytes(), want)
        checkpoint = self.fails_in_merge("--write-index", source)
        self.resume(checkpoint, "-o", self.path("out.bam"))
        self.assertTrue(os.path.exists(self.path("out.bam.csi")))

    def test_same_output(self):
        """Without options the output has the name, format, level, index and header of the first
        sort. What the killed run left of its output is removed."""
        source = self.source()
        for name, options in (("o.bam", ["--write-index", "-l", "3"]),
                              ("o.sam.gz", ["--write-index"]), ("o.x", ["-O", "sam"]),
                              ("o.bam##idx##o.bai", ["--write-index"])):
            file = name.split("##")[0]
            command = ["-T", self.where, *options, "-o", name, source]
            self.sort_ok(*command, budget=SPILL_BUDGET)
            made = {entry: (self.work / entry).read_bytes() for entry in os.listdir(self.work)
                    if entry.startswith("o.")}
            for entry in made:
                os.unlink(self.work / entry)
            self.kill_when(command, lambda: glob.glob(f"{self.work}/o.*.tmp"))
            with self.subTest(name=name):
                checkpoint, = self.checkpoints()
                os.chdir("/")
                self.resume(checkpoint)
                got = {entry: (self.work / entry).read_bytes() for entry in os.listdir(self.work)
                       if entry.startswith("o.")}
                self.assertEqual(sorted(got), sorted(made), "and no temporary file")
                # Compared uncompressed: the ends of BGZF blocks depend on timing.
                got, want = (gzip.decompress(files[file]) if "sam" not in options else files[file]
                             for files in (got, made))
                self.assertTrue(got == want, "not the same content")
            for entry in os.listdir(self.work):
                if entry.startswith("o."):
                    os.unlink(self.work / entry)
            for checkpoint in self.checkpoints():
                shutil.rmtree(checkpoint)

    def kill_when(self, command, condition):
        """Starts a sort and kills it when the condition is true. Tries again until a sort was
        killed before its end."""
        for _ in range(50):
            process = self.start(*command, budget=SPILL_BUDGET, stdin=subprocess.DEVNULL)
            while process.poll() is None and not condition():
                time.sleep(0.0005)
            process.kill()
            if process.wait() == -signal.SIGKILL and self.checkpoints():
                return
            for path in glob.glob(f"{self.work}/o.*"):
                os.unlink(path)
        self.skipTest("this machine is too fast: no sort could be killed in time")

    def test_other_settings(self):
        """--resume may have other threads, memory, output, format, level and codec."""
        sam = generate.odd(9000, seed=83).encode()
        want = self.sort_bam("--no-PG", stdin=sam)
        for options in (["-@", "3", "--max-memory", "8M"], ["-l", "0"], ["-s", "off"],
                        ["--temp-codec", "none"]):
            with self.subTest(options=options):
                checkpoint = self.fails_in_merge(stdin=sam)
                self.resume(checkpoint, *options, "-o", self.path("out.bam"))
                self.assert_same_bam(bamfile.read(self.path("out.bam")), want)
        checkpoint = self.fails_in_merge(stdin=sam)
        result = self.resume(checkpoint, "-o", "-", "-O", "sam")
        text = self.sort_ok("--no-PG", "-O", "sam", stdin=sam).out
        self.assertTrue(result.out == text)

    def test_fails_again(self):
        """The checkpoint stays until --resume succeeds."""
        sam = generate.odd(9000, seed=84).encode()
        want = self.sort_bam("--no-PG", stdin=sam)
        checkpoint = self.fails_in_merge(stdin=sam)
        for _ in range(3):
            result = self.rocksort("--resume", checkpoint, clean=False, budget=SPILL_BUDGET)
            self.assertEqual(result.status, 1)
            self.assertIn(f"--resume {checkpoint}", own_lines(result.err)[1])
        process = self.start("--resume", checkpoint, "-u", "-o", "-", budget=SPILL_BUDGET)
        os.read(process.stdout.fileno(), 100)
        process.send_signal(signal.SIGINT)
        self.assert_died_of(process, signal.SIGINT)
        self.resume(checkpoint, "-o", self.path("out.bam"))
        self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_checksum(self):
        sam = generate.odd(9000, seed=85).encode()
        want = self.sort_ok("--checksum", "-o", self.path("want.bam"), stdin=sam)
        checkpoint = self.fails_in_merge(stdin=sam)
        result = self.resume(checkpoint, "--checksum", "-o", self.path("out.bam"))
        line = next(line for line in want.err.splitlines() if line.startswith("xxh3sum"))
        self.assertIn(line, result.err.splitlines())

    def test_several_directories(self):
        other = self.work / "other"
        other.mkdir()
        sam = generate.odd(15000, seed=86).encode()
        want = self.sort_bam("--no-PG", stdin=sam)
        for i in (0, 1):
            result = self.rocksort("--no-PG", "-T", self.where, "-T", other, "-o", "/dev/full",
                                   clean=False, stdin=sam, budget=SPILL_BUDGET)
            self.assertEqual(result.status, 1)
            checkpoints = self.checkpoints(self.where, other)
            self.assertEqual(len(checkpoints), 2)
            self.resume(checkpoints[i], "-o", self.path("out.bam"))
            self.assert_same_bam(bamfile.read(self.path("out.bam")), want)
            self.assertEqual(self.checkpoints(self.where, other), [])

    def test_moved_checkpoint(self):
        sam = generate.odd(9000, seed=87).encode()
        want = self.sort_bam("--no-PG", stdin=sam)
        checkpoint = self.fails_in_merge(stdin=sam)
        os.rename(checkpoint, self.path("moved"))
        self.resume(self.path("moved"), "-o", self.path("out.bam"))
        self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_pipe_that_ends_in_memory(self):
        """Before the merge, the last records of a pipe are written to the disk. Those of a file may
        stay in memory, because they can be read again."""
        header, lines = sam_split(generate.odd(9000, seed=81))
        source = self.bam_of(header + "".join(line + "\n" for line in 5 * lines))
        want = self.sort_bam("--no-PG", source)
        bam = bytes_of(source)
        for how, state in (({"stdin": bam}, "loaded"), ({}, "loading")):
            with self.subTest(state=state):
                checkpoint = self.fails_in_merge("-s", "6M", "-" if how else source,
                                                 budget=3_000_000,
                                                 **how)
                self.assertEqual(self.state(checkpoint), state)
                self.resume(checkpoint, "-o", self.path("out.bam"))
                self.assert_same_bam(bamfile.read(self.path("out.bam")), want)


class ManySorts(ResumeTest):
    """Many sorts at the same time in one directory."""

    def test_twenty_sorts_in_one_directory(self):
        """Twenty sorts in one directory do not disturb each other; some are killed and resumed."""
        source = self.source(4000)
        want = self.sort_bam("--no-PG", source)
        processes = [self.start("--no-PG", "-T", self.where, "-o", self.path(f"{i}.bam"), source,
                                budget=SPILL_BUDGET, stdin=subprocess.DEVNULL)
                     for i in range(20)]
        time.sleep(0.1)
        for process in processes[::5]:
            process.kill()
        for i, process in enumerate(processes):
            status = process.wait(60 * SLOW)
            if i % 5:
                self.assertEqual(status, 0, process.stderr.read())
                self.assert_same_bam(bamfile.read(self.path(f"{i}.bam")), want, i)
        for checkpoint in self.checkpoints():
            if self.state(checkpoint):
                self.rocksort("--resume", checkpoint, clean=False, budget=SPILL_BUDGET)
        for i in range(0, 20, 5):
            if os.path.exists(self.path(f"{i}.bam")):
                self.assert_same_bam(bamfile.read(self.path(f"{i}.bam")), want, i)


class KillSweep(CliTest):
    """A short kill sweep; `make kill-sweep N=200` runs a long one."""

    @unittest.skipUnless(os.access(ROOT / "bench/simulate-reads", os.X_OK), "no simulate-reads")
    def test_nine_sorts(self):
        done = subprocess.run(
            ["python3", "-B", str(ROOT / "test/kill_sweep.py"), "--program", SAMTOOLS_ROCKSORT,
             "-n", "11", "--seed", "5", "--records", "20000", "--memory", "1000000"],
            capture_output=True, text=True, check=False, timeout=600 * SLOW)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-3000:])
        self.assertIn("all 11 outputs are right", done.stdout)
