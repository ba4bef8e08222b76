"""What a failed or killed sort leaves, and that it can be finished, or is refused with a reason."""

import fcntl
import glob
import gzip
import os
import re
import shutil
import signal
import stat
import subprocess
import threading
import time
import unittest

import bamfile
import generate
from harness import (ROOT, SAMTOOLS, SAMTOOLS_ROCKSORT, SLOW, SPILL_BUDGET, CliTest, own_lines,
                     wait_for)

APPEAR_LIMIT_S = 20 * SLOW
ORDERS = [[], ["-n"], ["-N"], ["-t", "XI"], ["-t", "XZ", "-n"], ["-M"], ["-M", "-K", "9", "-R"],
          ["--shuffle=7"], ["-@", "3"]]


class ResumeTest(CliTest):
    """Sorts that end before their time, with stores in the directory `where`."""

    bam = None

    def setUp(self):
        super().setUp()
        self.where = self.work / "where"
        self.where.mkdir()

    def source(self, records=9000, name="in.bam"):
        """A BAM of odd records, made once."""
        sam = generate.odd(records, seed=81)
        return self.bam_of(sam, name=name)

    def stores(self, *folders):
        """The directories of stores."""
        return sorted(path for folder in folders or [self.where]
                      for path in glob.glob(f"{folder}/*rocksort.*.??????") if os.path.isdir(path))

    def state(self, store):
        """The state that the record of a store has, or None."""
        try:
            with open(os.path.join(store, "STORE"), encoding="latin-1") as file:
                return re.search(r"^state (\w+)$", file.read(), re.M).group(1)
        except FileNotFoundError:
            return None

    def fails_in_merge(self, *args, **how):
        """A sort whose output device is full: returns the store that it leaves."""
        how.setdefault("budget", SPILL_BUDGET)
        result = self.rocksort("--no-PG", "-T", self.where, *args, "-o", "/dev/full", clean=False,
                               **how)
        self.assertEqual(result.status, 1, result.err)
        store, = self.stores()
        lines = own_lines(result.err)
        self.assertEqual(len(lines), 2, result.err)
        self.assertIn("/dev/full", lines[0])
        self.assertIn(f"--resume {store}", lines[1])
        return store

    def resume(self, store, *args, **how):
        """Resumes a store, which must work and go."""
        how.setdefault("budget", SPILL_BUDGET)
        result = self.sort_ok("--resume", store, *args, clean=False, **how)
        self.assertFalse(os.path.exists(store), "the store is gone after it was finished")
        return result

    def refused(self, store, *mentions, options=()):
        """--resume is refused, makes no output and changes nothing."""
        before = sorted(os.listdir(store)) if os.path.isdir(store) else None
        out = self.path("refused.bam")
        result = self.rocksort("--resume", store, *options, "-o", out, clean=False,
                               budget=SPILL_BUDGET)
        self.assert_error(result, *mentions)
        self.assertFalse(os.path.exists(out))
        if before is not None:
            self.assertEqual([name for name in sorted(os.listdir(store)) if name != "STORE.new"],
                             before)
        return result

    def killed_in_merge(self, *args, number=signal.SIGKILL, **how):
        """A sort into a pipe that nobody reads, killed there: its store and what it said."""
        how.setdefault("budget", SPILL_BUDGET)
        fifo = self.path("fifo")
        if not os.path.exists(fifo):
            os.mkfifo(fifo)
        process = self.start("--no-PG", "-u", "-T", self.where, *args, "-o", fifo, **how)
        with open(fifo, "rb") as pipe:
            self.assertTrue(pipe.read(100))
            process.send_signal(number)
            self.assert_died_of(process, number)
        return self.stores(), process.stderr.read().decode()


class Merge(ResumeTest):
    """Failures after the input was read."""

    def test_orders(self):
        """Header and records are those that an undisturbed run would have written."""
        sam = generate.odd(9000, seed=82).encode()
        for order in ORDERS:
            with self.subTest(order=order):
                want = self.sort_bam("--no-PG", "-l", "1", *order, stdin=sam)
                store = self.fails_in_merge("-l", "1", *order, stdin=sam)
                self.assertEqual(self.state(store), "loaded")
                self.resume(store, "-o", self.path("out.bam"))
                self.assertEqual(bamfile.read(self.path("out.bam")), want)

    def test_template_coordinate(self):
        sam = "".join(re.sub(r"^(\S+)\t\d+", r"\1\t16" if i % 3 else r"\1\t0", line)
                      for i, line in enumerate(generate.reads(3000, generate.reference())
                                               .splitlines(keepends=True)))
        want = self.sort_bam("--no-PG", "--template-coordinate", stdin=sam.encode())
        store = self.fails_in_merge("--template-coordinate", stdin=sam.encode())
        self.resume(store, "-o", self.path("out.bam"))
        self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_minimiser_index(self):
        """The reference of -I is not needed any more."""
        refs = generate.reference()
        sam = generate.reads(2000, refs)
        unplaced = "".join(re.sub(r"\t(\d+)\t\S+\t\d+\t\d+\t\S+\t", "\t4\t*\t0\t0\t*\t", line, 1)
                           for line in sam.splitlines(keepends=True) if not line.startswith("@"))
        fasta = self.write("ref.fa", generate.fasta(refs))
        want = self.sort_bam("--no-PG", "-I", fasta, stdin=unplaced.encode())
        store = self.fails_in_merge("-I", fasta, stdin=unplaced.encode())
        os.unlink(fasta)
        self.resume(store, "-o", self.path("out.bam"))
        self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_killed(self):
        """Nobody could say anything: the store alone speaks. File and pipe."""
        source = self.source()
        want = self.sort_bam("--no-PG", source)
        for pipe in (False, True):
            with self.subTest(pipe=pipe), open(source, "rb") as file:
                stores, _ = self.killed_in_merge("-" if pipe else source, stdin=file)
                self.assertEqual(len(stores), 1)
                self.resume(stores[0], "-o", self.path("out.bam"))
                self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_signals(self):
        """SIGTERM and others of schedulers leave the store and say so; whoever presses Ctrl-C wants
        it gone, unless -k says otherwise."""
        source = self.source()
        want = self.sort_bam("--no-PG", source)
        kept = [(number, ()) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGXCPU,
                                            signal.SIGUSR1, signal.SIGUSR2)]
        kept += [(number, ("-k",)) for number in (signal.SIGINT, signal.SIGQUIT)]
        for number, options in kept:
            with self.subTest(signal=number.name):
                stores, err = self.killed_in_merge(*options, source, number=number)
                self.assertEqual(len(stores), 1)
                self.assertIn(f"--resume {stores[0]}", err)
                self.resume(stores[0], "-o", self.path("out.bam"))
                self.assert_same_bam(bamfile.read(self.path("out.bam")), want)
        for number in (signal.SIGINT, signal.SIGQUIT):
            with self.subTest(signal=number.name):
                stores, err = self.killed_in_merge(source, number=number)
                self.assertEqual((stores, err), ([], ""))

    def test_closed_standard_output(self):
        source = self.source()
        process = self.start("-u", "--no-PG", "-T", self.where, source, budget=SPILL_BUDGET,
                             stdin=subprocess.DEVNULL)
        os.read(process.stdout.fileno(), 100)
        process.stdout.close()
        process.wait(APPEAR_LIMIT_S)
        store, = self.stores()
        self.assertIn(f"--resume {store} -o FILE", process.stderr.read().decode())
        want = self.sort_bam("--no-PG", source)
        self.resume(store, "-o", self.path("out.bam"))
        self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_format_under_new_name(self):
        """What -O said of the first output holds for another name of that format, or of none."""
        source = self.source()
        for name, first in (("o.sam", b"@HD"), ("o.x", b"@HD"), ("o.bam", b"\x1f\x8b"),
                            ("o.sam.gz", b"\x1f\x8b")):
            with self.subTest(name=name):
                store = self.fails_in_merge("-O", "sam", source)
                self.resume(store, "-o", self.path(name))
                with open(self.path(name), "rb") as file:
                    self.assertTrue(file.read(3).startswith(first))

    def test_format_without_index(self):
        """A store whose output was to have an index could not be finished as SAM: nothing takes
        --write-index back."""
        source = self.source()
        want = self.sort_ok("--no-PG", "-O", "sam", source).out
        store = self.fails_in_merge("--write-index", source)
        self.refused(store, "--write-index", options=["--write-index", "-O", "sam"])
        result = self.resume(store, "-o", self.path("out.sam"))
        self.assertIn("no index is written", result.err)
        self.assertEqual((self.work / "out.sam").read_bytes(), want)
        store = self.fails_in_merge("--write-index", source)
        self.resume(store, "-o", self.path("out.bam"))
        self.assertTrue(os.path.exists(self.path("out.bam.csi")))

    def test_same_output(self):
        """Without options the output is what it was to be: name, format, level, index, header. What
        the dead run left of it goes."""
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
                store, = self.stores()
                os.chdir("/")
                self.resume(store)
                got = {entry: (self.work / entry).read_bytes() for entry in os.listdir(self.work)
                       if entry.startswith("o.")}
                self.assertEqual(sorted(got), sorted(made), "and no temporary file")
                # Where BGZF blocks end is a matter of moments.
                got, want = (gzip.decompress(files[file]) if "sam" not in options else files[file]
                             for files in (got, made))
                self.assertTrue(got == want, "not the same content")
            for entry in os.listdir(self.work):
                if entry.startswith("o."):
                    os.unlink(self.work / entry)
            for store in self.stores():
                shutil.rmtree(store)

    def kill_when(self, command, condition):
        """Starts a sort and kills it when the condition holds, again and again until that was in
        time."""
        for _ in range(50):
            process = self.start(*command, budget=SPILL_BUDGET, stdin=subprocess.DEVNULL)
            while process.poll() is None and not condition():
                time.sleep(0.0005)
            process.kill()
            if process.wait() == -signal.SIGKILL and self.stores():
                return
            for path in glob.glob(f"{self.work}/o.*"):
                os.unlink(path)
        self.skipTest("this machine is too fast: no sort could be killed in time")

    def test_other_settings(self):
        """Threads, memory, output, format, level and codec may differ."""
        sam = generate.odd(9000, seed=83).encode()
        want = self.sort_bam("--no-PG", stdin=sam)
        for options in (["-@", "3", "--max-memory", "8M"], ["-l", "0"], ["-s", "off"],
                        ["--temp-codec", "none"]):
            with self.subTest(options=options):
                store = self.fails_in_merge(stdin=sam)
                self.resume(store, *options, "-o", self.path("out.bam"))
                self.assert_same_bam(bamfile.read(self.path("out.bam")), want)
        store = self.fails_in_merge(stdin=sam)
        result = self.resume(store, "-o", "-", "-O", "sam")
        text = self.sort_ok("--no-PG", "-O", "sam", stdin=sam).out
        self.assertTrue(result.out == text)

    def test_fails_again(self):
        """It stays as long as it is needed."""
        sam = generate.odd(9000, seed=84).encode()
        want = self.sort_bam("--no-PG", stdin=sam)
        store = self.fails_in_merge(stdin=sam)
        for _ in range(3):
            result = self.rocksort("--resume", store, clean=False, budget=SPILL_BUDGET)
            self.assertEqual(result.status, 1)
            self.assertIn(f"--resume {store}", own_lines(result.err)[1])
        process = self.start("--resume", store, "-u", "-o", "-", budget=SPILL_BUDGET)
        os.read(process.stdout.fileno(), 100)
        process.send_signal(signal.SIGINT)
        self.assert_died_of(process, signal.SIGINT)
        self.resume(store, "-o", self.path("out.bam"))
        self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_checksum(self):
        sam = generate.odd(9000, seed=85).encode()
        want = self.sort_ok("--checksum", "-o", self.path("want.bam"), stdin=sam)
        store = self.fails_in_merge(stdin=sam)
        result = self.resume(store, "--checksum", "-o", self.path("out.bam"))
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
            stores = self.stores(self.where, other)
            self.assertEqual(len(stores), 2)
            self.resume(stores[i], "-o", self.path("out.bam"))
            self.assert_same_bam(bamfile.read(self.path("out.bam")), want)
            self.assertEqual(self.stores(self.where, other), [])

    def test_moved(self):
        sam = generate.odd(9000, seed=87).encode()
        want = self.sort_bam("--no-PG", stdin=sam)
        store = self.fails_in_merge(stdin=sam)
        os.rename(store, self.path("moved"))
        self.resume(self.path("moved"), "-o", self.path("out.bam"))
        self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_in_memory(self):
        """What never was on disk cannot stay there; with or without -k."""
        for options in ([], ["-k"]):
            result = self.rocksort(*options, "-T", self.where, "-o", "/dev/full",
                                   stdin=generate.odd(100).encode())
            self.assert_error(result, "/dev/full")

    def test_no_resume(self):
        """Nothing is kept, nothing is written down."""
        sam = generate.odd(9000, seed=88).encode()
        result = self.rocksort("--no-resume", "-T", self.where, "-o", "/dev/full", stdin=sam,
                               budget=SPILL_BUDGET)
        self.assert_error(result, "/dev/full")
        self.assertEqual(self.stores(), [])
        self.assert_same_bam(self.sort_bam("--no-PG", "--no-resume", stdin=sam,
                                           budget=SPILL_BUDGET),
                             self.sort_bam("--no-PG", stdin=sam))
        self.sort_ok("--no-resume", "-k", "-T", self.where, "-o", self.path("o.bam"), stdin=sam,
                     budget=SPILL_BUDGET, clean=False)
        store, = self.stores()
        self.assertIsNone(self.state(store))
        self.refused(store, "--no-resume")


class Keep(ResumeTest):
    """-k, --keep"""

    def test_merged_again(self):
        source = self.source()
        want = self.sort_bam("--no-PG", source)
        for option in ("-k", "--keep"):
            result = self.sort_ok("--no-PG", option, "-T", self.where, "-o", self.path("a.bam"),
                                  source, clean=False, budget=SPILL_BUDGET)
            store, = self.stores()
            self.assertIn(store, result.err)
            self.assertEqual(self.state(store), "loaded")
            os.rename(source, self.path("away"))
            self.sort_ok("--resume", store, "-k", "-o", self.path("b.bam"), clean=False,
                         budget=SPILL_BUDGET)
            self.resume(store, "-o", self.path("c.bam"))
            os.rename(self.path("away"), source)
            for name in ("a.bam", "b.bam", "c.bam"):
                self.assert_same_bam(bamfile.read(self.path(name)), want, name)


class Load(ResumeTest):
    """Loads that are cut off."""

    def cut_off(self, *args, n_runs=3, number=signal.SIGKILL, places=None, n_cuts=40, **how):
        """Starts sorts until one could be killed while it was loading, with runs that are durable;
        returns its stores, what it said and whether it was killed at all."""
        places = places or [self.where]
        options = [word for place in places for word in ("-T", place)]
        for _ in range(n_cuts):
            process = self.start("--no-PG", *options, *args, "-o", self.path("out.bam"),
                                 budget=SPILL_BUDGET, **how)
            while process.poll() is None:
                files = [path for place in places for path in glob.glob(f"{place}/*/db-*/*.sst")]
                if len(files) >= n_runs:
                    break
                time.sleep(0.0005)
            if process.poll() is None:
                process.send_signal(number)
            status = process.wait(APPEAR_LIMIT_S)
            stores = self.stores(*places)
            if status and stores and self.state(stores[0]) == "loading":
                return stores, process.stderr.read().decode()
            for store in stores:
                shutil.rmtree(store)
        self.skipTest("this machine is too fast: no sort could be killed in time")

    def test_killed(self):
        source = self.source(20000)
        want = self.sort_bam("--no-PG", source)
        for order in ([], ["-@", "2"], ["-n"], ["-s", "8M"]):
            want = self.sort_bam("--no-PG", *order, source)
            for n_runs in (1, 6):
                with self.subTest(order=order, n_runs=n_runs):
                    stores, _ = self.cut_off(*order, source, n_runs=n_runs,
                                             stdin=subprocess.DEVNULL)
                    self.resume(stores[0])
                    self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_signal(self):
        source = self.source(20000)
        want = self.sort_bam("--no-PG", source)
        stores, err = self.cut_off(source, number=signal.SIGTERM, stdin=subprocess.DEVNULL)
        self.assertIn(f"--resume {stores[0]}", err)
        self.resume(stores[0], "-o", self.path("out.bam"))
        self.assert_same_bam(bamfile.read(self.path("out.bam")), want)
        process = self.start("-T", self.where, "-o", self.path("o.bam"), source,
                             budget=SPILL_BUDGET, stdin=subprocess.DEVNULL)
        wait_for(lambda: self.stores() or process.poll() is not None, APPEAR_LIMIT_S, "a store")
        process.send_signal(signal.SIGINT)
        process.wait(APPEAR_LIMIT_S)
        self.assertEqual(self.stores(), [])

    def test_again_and_again(self):
        """Each time a few runs more."""
        source = self.source(30000)
        want = self.sort_bam("--no-PG", source)
        stores, _ = self.cut_off(source, n_runs=2, stdin=subprocess.DEVNULL)
        for n_runs in (8, 16, 24):
            process = self.start("--resume", stores[0], budget=SPILL_BUDGET,
                                 stdin=subprocess.DEVNULL)
            while process.poll() is None and len(glob.glob(f"{stores[0]}/db-*/*.sst")) < n_runs:
                time.sleep(0.0005)
            process.kill()
            if process.wait() == 0:
                break
        if self.stores():
            self.resume(stores[0])
        self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_several_directories(self):
        other = self.work / "other"
        other.mkdir()
        source = self.source(20000)
        want = self.sort_bam("--no-PG", source)
        for n_runs in (2, 7):
            stores, _ = self.cut_off(source, n_runs=n_runs, places=[self.where, other],
                                     stdin=subprocess.DEVNULL)
            self.resume(stores[-1])
            self.assert_same_bam(bamfile.read(self.path("out.bam")), want)
            self.assertEqual(self.stores(self.where, other), [])

    def test_several_inputs(self):
        """Of which the records are renamed, too."""
        sources = [self.bam_of("@RG\tID:1\tSM:x%d\n" % i + generate.odd(9000, seed=90 + i),
                               name=f"in{i}.bam") for i in range(3)]
        want = self.sort_bam("--no-PG", "-o", "-", *sources)
        for n_runs in (2, 5, 9, 14):
            with self.subTest(n_runs=n_runs):
                stores, _ = self.cut_off(*sources, n_runs=n_runs, stdin=subprocess.DEVNULL)
                self.resume(stores[0])
                self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_changed_input(self):
        """Refused; what there is can be had."""
        source = self.source(20000)
        whole = bamfile.read(source)
        stores, _ = self.cut_off(source, stdin=subprocess.DEVNULL)
        saved, times = self.path("saved"), os.stat(source)
        os.rename(source, saved)
        self.refused(stores[0], source, "not there")
        shutil.copy(saved, source)
        self.refused(stores[0], source, "changed")
        os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))
        os.truncate(source, times.st_size - 1)
        os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))
        self.refused(stores[0], source, "changed")
        os.unlink(source)
        result = self.resume(stores[0], "--partial", "-O", "bam", "-o", "-")
        count = int(re.search(r"the first (\d+) records", result.err).group(1))
        got = bamfile.parse_file(result.out)
        self.assertEqual(len(bamfile.split(got.records)), count)
        first = self.write("first.bam", bamfile.bgzf(
            bamfile.bam_header(whole.text, whole.refs) +
            b"".join(bamfile.split(whole.records)[:count])))
        self.assert_same_bam(got, self.sort_bam("--no-PG", first))

    def test_pipe(self):
        """Cannot be read again: the store goes, or with -k stays and can be had as a part."""
        with open(self.source(9000), "rb") as file:
            data = file.read()
        for keep in ([], ["-k"]):
            process = self.start("--no-PG", "-T", self.where, *keep, "-o", self.path("out.bam"),
                                 budget=SPILL_BUDGET)
            writer = self.feed(process, data[:-3000])
            wait_for(lambda: len(glob.glob(f"{self.where}/*/db-*/*.sst")) > 3, APPEAR_LIMIT_S,
                     "runs")
            process.send_signal(signal.SIGTERM)
            self.assert_died_of(process, signal.SIGTERM)
            err = process.stderr.read().decode()
            writer.join(5)
            if not keep:
                self.assertEqual(self.stores(), [])
                self.assertIn("-k would have kept it", err)
                continue
            store, = self.stores()
            self.assertIn("--partial", err)
            self.refused(store, "cut off", "--partial")
            result = self.resume(store, "--partial", "-o", self.path("part.bam"))
            count = int(re.search(r"the first (\d+) records", result.err).group(1))
            self.assertGreater(count, 0)
            got = bamfile.read(self.path("part.bam"))
            self.assertEqual(len(bamfile.split(got.records)), count)

    def test_pipe_in_memory(self):
        """With -k what is still in memory when a signal comes is saved before the process ends."""
        lines = generate.odd(40000, seed=99).encode().splitlines(keepends=True)
        header = [line for line in lines if line.startswith(b"@")]
        n_sent = (len(lines) - len(header)) // 2
        sent, rest = lines[:len(header) + n_sent], lines[len(header) + n_sent:]
        for number in (signal.SIGTERM, signal.SIGINT):
            process = self.start("--no-PG", "-T", self.where, "-k", "-o", self.path("out.bam"))
            self.feed(process, b"".join(sent)).join(APPEAR_LIMIT_S)
            process.send_signal(number)
            writer = threading.Thread(target=self.drip, args=(process, rest), daemon=True)
            writer.start()
            self.assert_died_of(process, number)
            writer.join(5)
            self.assertIn("--partial", process.stderr.read().decode())
            store, = self.stores()
            result = self.resume(store, "--partial", "-o", self.path("part.bam"))
            count = int(re.search(r"the first (\d+) records", result.err).group(1))
            self.assertGreater(count, n_sent // 2)
            first = b"".join(lines[:len(header) + count])
            self.assert_same_bam(bamfile.read(self.path("part.bam")),
                                 self.sort_bam("--no-PG", stdin=first))

    def test_pipe_second_signal(self):
        """Does not wait for an input that gives nothing; and the first one not for long."""
        head = b"@HD\tVN:1.6\n@SQ\tSN:1\tLN:1000\n"
        for n_signals, most_seconds in ((2, 3 * SLOW), (1, 20 * SLOW)):
            process = self.start("-T", self.where, "-k", "-o", self.path("out.bam"))
            records = b"r\t4\t*\t0\t0\t*\t*\t0\t0\tA\t*\n" * 9000
            self.feed(process, head + records).join(APPEAR_LIMIT_S)
            for _ in range(n_signals):
                process.send_signal(signal.SIGTERM)
                time.sleep(0.3)
            process.wait(most_seconds)
            self.assert_died_of(process, signal.SIGTERM)
            # The signal may have come when the reader was just not waiting: then all is saved.
            for store in self.stores():
                self.assertEqual(self.state(store), "partial")
                shutil.rmtree(store)

    @staticmethod
    def drip(process, lines):
        """Writes lines, slowly, until nobody reads them."""
        try:
            for line in lines:
                process.stdin.write(line)
                process.stdin.flush()
                time.sleep(0.001)
        except OSError:
            pass

    def test_damaged_input(self):
        """Would be no better a second time: nothing is kept."""
        with open(self.source(9000), "rb") as file:
            data = file.read()
        cut = self.write("cut.bam", data[:-2000])
        result = self.rocksort("-T", self.where, "-o", self.path("out.bam"), cut,
                               budget=SPILL_BUDGET)
        self.assert_error(result, "cut.bam")


class Refused(ResumeTest):
    """What is no store that could be finished."""

    def setUp(self):
        super().setUp()
        self.sam = generate.odd(9000, seed=95).encode()
        self.store = self.fails_in_merge(stdin=self.sam)

    def test_not_a_store(self):
        (self.work / "empty").mkdir(mode=0o700)
        (self.work / "file").write_text("x")
        os.symlink(self.store, self.work / "link")
        for name, mention in (("empty", "not a store"), ("file", "not a directory"),
                              ("nothing", "does not exist"), ("link", "link")):
            self.refused(self.path(name), self.path(name), mention)

    def test_busy(self):
        process = self.start("--resume", self.store, "-u", "-o", "-", budget=SPILL_BUDGET)
        os.read(process.stdout.fileno(), 100)
        self.refused(self.store, self.store, "in use")
        process.kill()
        process.wait()
        self.resume(self.store, "-o", self.path("out.bam"))

    def test_looked_at(self):
        """Whoever lists stores, or begins a sort beside one, has its lock for a moment."""
        with open(os.path.join(self.store, "LOCK"), "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            process = self.start("--resume", self.store, "-o", self.path("out.bam"),
                                 budget=SPILL_BUDGET)
            time.sleep(0.1)
            fcntl.flock(lock, fcntl.LOCK_UN)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)

    def test_listed_while_looked_at(self):
        """--clean took a store that another one only looked at for one in use."""
        with open(os.path.join(self.store, "LOCK"), "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            process = self.start("--clean", self.where)
            time.sleep(0.1)
            fcntl.flock(lock, fcntl.LOCK_UN)
        listed, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        self.assertRegex(listed.decode(), r"\Acomplete .*\n\Z")

    def test_contradictions(self):
        for options, mention in ((["-n"], "order"), (["--shuffle=3"], "order"), (["-t", "AB"], ""),
                                 (["-T", self.work], "-T"), (["--no-resume"], "--no-resume"),
                                 (["--clean", self.work], "--clean"),
                                 (["--checksum-only"], "--checksum-only"),
                                 ([self.write("x.bam", b"")], "input")):
            with self.subTest(options=options):
                self.refused(self.store, mention, options=options)
        source = self.write("in.sam", self.sam)
        result = self.rocksort("--partial", "-o", self.path("x"), source)
        self.assert_error(result, "--resume")
        result = self.rocksort("--yes", "-o", self.path("x"), source)
        self.assert_error(result, "--clean")
        self.resume(self.store, "-o", self.path("out.bam"))

    def test_same_order_given(self):
        """The whole command line again is no contradiction."""
        shutil.rmtree(self.store)
        store = self.fails_in_merge("-t", "XI", "-n", stdin=self.sam)
        self.resume(store, "-t", "XI", "-n", "-o", self.path("out.bam"))

    def test_bad_records(self):
        path = os.path.join(self.store, "STORE")
        with open(path, "rb") as file:
            good = file.read()
        cases = [(b"", "STORE file"), (b"hello\n", "STORE file"), (good[:-1], "damaged"),
                 (good[: len(good) // 2], "damaged"), (good + b"x", "damaged"),
                 (good.replace(b"loaded", b"loadet"), "damaged"),
                 (good.replace(b"rocksort-store 1", b"rocksort-store 2"), "version")]
        for data, mention in cases:
            with open(path, "wb") as file:
                file.write(data)
            self.refused(self.store, self.store, mention)
        os.unlink(path)
        self.refused(self.store, self.store, "no STORE file")
        os.mkfifo(path, 0o600)
        self.refused(self.store, self.store, "STORE file")
        os.unlink(path)
        os.symlink("/etc/passwd", path)
        self.refused(self.store, self.store, "no STORE file")
        os.unlink(path)
        with open(path, "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(good)
        self.resume(self.store, "-o", self.path("out.bam"))

    def copies(self):
        """Copies of the store's files, to be damaged one after the other."""
        saved = self.path("saved")
        shutil.copytree(self.store, saved)
        files = sorted(path for path in glob.glob(f"{saved}/db-*/*") if os.path.getsize(path))
        for path in files:
            shutil.rmtree(self.store, ignore_errors=True)
            shutil.copytree(saved, self.store)
            yield path.replace(saved, self.store)

    def test_damaged_databases(self):
        """A file that is missing, cut off or changed: an error, never a shorter output."""
        want = self.sort_bam("--no-PG", stdin=self.sam)
        n_refused = 0
        for path in self.copies():
            kind = os.path.basename(path).split("-")[0].split(".")[-1]
            for damage in ("remove", "cut", "change"):
                if kind == "sst" and n_refused > 12 and damage != "remove":
                    continue
                size = os.path.getsize(path)
                with open(path, "rb") as file:
                    good = file.read()
                if damage == "remove":
                    os.unlink(path)
                elif damage == "cut":
                    os.truncate(path, size // 2)
                else:
                    with open(path, "r+b") as file:
                        file.seek(size // 3)
                        file.write(bytes(byte ^ 255 for byte in good[size // 3: size // 3 + 8]))
                out = self.path("out.bam")
                result = self.rocksort("--resume", self.store, "-o", out, clean=False, budget=
                                       SPILL_BUDGET)
                with self.subTest(file=os.path.basename(path), damage=damage):
                    if result.status:
                        n_refused += 1
                        self.assertEqual(result.status, 1, result.err)
                        self.assertFalse(os.path.exists(out))
                    else:               # one that nobody needs, such as RocksDB's options
                        self.assertNotEqual(kind, "sst")
                        self.assert_same_bam(bamfile.read(out), want)
                        os.unlink(out)
                        break
                with open(path, "wb") as file:
                    file.write(good)
        self.assertGreater(n_refused, 10)

    def test_missing_database(self):
        shutil.rmtree(os.path.join(self.store, "db-0"))
        self.refused(self.store, self.store, "lacks")

    def test_missing_directory(self):
        shutil.rmtree(self.store)
        other = self.work / "other"
        other.mkdir()
        self.rocksort("-T", self.where, "-T", other, "-o", "/dev/full", clean=False,
                      stdin=self.sam, budget=SPILL_BUDGET)
        first, second = self.stores(self.where, other)
        os.rename(first, self.path("away"))
        self.refused(second, second, "does not exist")
        # A store of another sort in its place.
        shutil.copytree(self.path("away"), first)
        path = os.path.join(first, "STORE")
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        with open(path, "wb") as file:
            file.write(b"x")
        self.refused(second, first, "STORE file")
        shutil.rmtree(first)
        os.rename(self.path("away"), first)
        self.resume(second, "-o", self.path("out.bam"))


class Clean(ResumeTest):
    """--clean DIR"""

    def clean(self, *args):
        """What it prints, as {directory: words before it}."""
        result = self.run_program([SAMTOOLS, "rocksort", "--clean", *args])
        self.assertEqual((result.status, result.err), (0, ""))
        return result.out.decode()

    def test_nothing(self):
        self.assertIn("no temporary data", self.clean(self.where))
        self.assertIn("no temporary data", self.clean(self.where, "--yes"))

    def test_list_and_remove(self):
        sam = generate.odd(9000, seed=96).encode()
        store = self.fails_in_merge(stdin=sam)
        foreign = self.where / "rocksort.1.abcdef"
        foreign.mkdir(mode=0o700)
        (foreign / "mine").write_text("x")
        os.symlink(store, self.where / "rocksort.2.abcdef")
        process = self.start("-T", self.where, budget=SPILL_BUDGET)
        writer = self.feed(process, sam)
        busy, = wait_for(lambda: [path for path in self.stores()
                                  if path not in (store, str(foreign), str(self.where /
                                                                           "rocksort.2.abcdef"))
                                  and os.path.exists(path + "/STORE")], APPEAR_LIMIT_S, "a store")
        for args in ((), ("--yes",)):
            lines = self.clean(self.where, *args).splitlines()
            self.assertEqual(len(lines), 2, lines)
            state = {line.split()[-1] if "removed" not in line else line.split()[-2].rstrip(","):
                     line.split()[0] for line in lines}
            self.assertEqual(state, {store: "complete", busy: "in"}, lines)
            self.assertIn("MB", next(line for line in lines if store in line))
            self.assertEqual(os.path.exists(store), not args)
        self.assertTrue(os.path.exists(busy))
        self.assertTrue((foreign / "mine").exists())
        self.assertTrue(os.path.islink(self.where / "rocksort.2.abcdef"))
        process.kill()
        process.wait()
        writer.join(5)
        self.assertIn("partial", self.clean(busy))
        self.assertIn("removed", self.clean(busy, "--yes"))
        self.assertFalse(os.path.exists(busy))

    def test_half_made(self):
        """A run that ended before it had a record, or while it was removed."""
        sam = generate.odd(9000, seed=96).encode()
        store = self.fails_in_merge(stdin=sam)
        os.unlink(os.path.join(store, "STORE"))
        self.assertIn("useless", self.clean(self.where))
        self.clean(self.where, "--yes")
        self.assertEqual(self.stores(), [])

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


class Leftovers(ResumeTest):
    """A process that was killed could not say what it left: the next sort of the same does."""

    def said(self, *args, source, **how):
        """What a sort, which must work, says of earlier ones."""
        how.setdefault("budget", SPILL_BUDGET)
        result = self.sort_ok("-T", self.where, *args, source, clean=False, **how)
        return [line for line in own_lines(result.err) if "earlier" in line]

    def test_same_input(self):
        source = self.source()
        (store,), _ = self.killed_in_merge(source, stdin=subprocess.DEVNULL)
        line, = self.said("-o", self.path("other.bam"), source=source)
        self.assertIn(f"sort to '{self.path('fifo')}'", line)
        self.assertTrue(line.endswith(f"to write it: samtools rocksort --resume {store}"), line)
        # Nobody asks: --quiet, other inputs, no temporary data, another place.
        other = self.bam_of(generate.odd(9000, seed=99), name="other-input.bam")
        elsewhere = self.work / "elsewhere"
        elsewhere.mkdir()
        self.assertEqual(self.said("--quiet", "-o", self.path("o.bam"), source=source), [])
        self.assertEqual(self.said("-o", self.path("o.bam"), source=other), [])
        self.assertEqual(self.said("-o", self.path("o.bam"), source=source, budget=None), [])
        result = self.sort_ok("-T", elsewhere, "-o", self.path("o.bam"), source, clean=False,
                              budget=SPILL_BUDGET)
        self.assertNotIn("earlier", result.err)
        self.resume(store, "-o", self.path("out.bam"))
        self.assertEqual(self.said("-o", self.path("o.bam"), source=source), [])

    def test_same_output(self):
        """Of a pipe all is lost but what -k keeps; the space can be had back. Beside the output, with
        its index, and by a relative name."""
        sam = generate.odd(20000, seed=98).encode()
        out = self.path("out.bam")
        process = self.start("--no-PG", "--write-index", "-o", out, budget=SPILL_BUDGET)
        writer = self.feed(process, sam)
        store, = wait_for(lambda: [path for path in self.stores(self.work)
                                   if os.path.exists(path + "/STORE")], APPEAR_LIMIT_S, "a store")
        # As long as it is at work there is nothing to tell.
        other = self.sort_ok("-o", out, self.source(), clean=False, budget=SPILL_BUDGET)
        self.assertNotIn("earlier", other.err)
        process.kill()
        process.wait()
        writer.join(5)
        again = self.sort_ok("-o", "out.bam", self.source(), clean=False, budget=SPILL_BUDGET,
                             cwd=self.work)
        line, = [line for line in own_lines(again.err) if "earlier" in line]
        self.assertIn(f"sort to '{out}' has left", line)
        self.assertTrue(line.endswith(f"samtools rocksort --partial --resume {store}"), line)
        shutil.rmtree(store)

    def test_pipes_are_never_the_same(self):
        """Two samples, each through the same descriptor, as the shell's <(...) has it: what -k has
        kept of one is not told of to the other."""
        for sample in ("a", "b"):
            sam = self.path(f"{sample}.sam")
            with open(sam, "w", encoding="ascii") as file:
                file.write(generate.odd(9000, seed=ord(sample)))
            script = f'"$@" -o {sample}.bam /dev/fd/9 9< <(cat {sam})'
            result = self.run_program(
                ["bash", "-c", script, "bash", SAMTOOLS, "rocksort", "-k", "-T", self.where],
                budget=SPILL_BUDGET)
            self.assertEqual(result.status, 0, result.err)
            self.assertNotIn("earlier", result.err)
        for store in self.stores():
            shutil.rmtree(store)

    def test_several_directories(self):
        """Told once."""
        source = self.source()
        places = [self.where, self.work / "more"]
        places[1].mkdir()
        options = [word for place in places[1:] for word in ("-T", place)]
        _, _ = self.killed_in_merge(*options, source, stdin=subprocess.DEVNULL)
        stores = self.stores(*places)
        self.assertEqual(len(stores), 2)
        line, = self.said("-T", self.where, *options, "-o", self.path("o.bam"), source=source)
        self.assertIn("--resume", line)
        self.resume(stores[0], "-o", self.path("out.bam"))

    def test_first_directory_was_full(self):
        """It has no record: nobody was told of the store."""
        source = self.source()
        places = [self.where, self.work / "more"]
        places[1].mkdir()
        options = ["-T", places[1]]
        _, _ = self.killed_in_merge(*options, source, stdin=subprocess.DEVNULL)
        (first,), (second,) = (self.stores(place) for place in places)
        os.unlink(os.path.join(first, "STORE"))
        line, = self.said("-T", self.where, *options, "-o", self.path("o.bam"), source=source)
        self.assertIn(f"--resume {second}", line)
        self.resume(second, "-o", self.path("out.bam"))


class Together(ResumeTest):
    """Many at once in one place."""

    def test_permissions(self):
        """Everything is ours alone."""
        store = self.fails_in_merge(stdin=generate.odd(9000, seed=97).encode())
        self.assertEqual(stat.S_IMODE(os.stat(store).st_mode), 0o700)
        for name in ("STORE", "LOCK"):
            self.assertEqual(stat.S_IMODE(os.stat(os.path.join(store, name)).st_mode), 0o600)

    def test_twenty(self):
        """Twenty runs in one directory do not touch each other; some are killed and resumed."""
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
        for store in self.stores():
            if self.state(store):
                self.rocksort("--resume", store, clean=False, budget=SPILL_BUDGET)
        for i in range(0, 20, 5):
            if os.path.exists(self.path(f"{i}.bam")):
                self.assert_same_bam(bamfile.read(self.path(f"{i}.bam")), want, i)


class KillSweep(CliTest):
    """A short one; `make kill-sweep N=200` is the long one."""

    @unittest.skipUnless(os.access(ROOT / "bench/simulate-reads", os.X_OK), "no simulate-reads")
    def test_few(self):
        done = subprocess.run(
            ["python3", "-B", str(ROOT / "test/kill_sweep.py"), "--program", SAMTOOLS_ROCKSORT,
             "-n", "9", "--seed", "5", "--records", "20000", "--memory", "1000000"],
            capture_output=True, text=True, check=False, timeout=600 * SLOW)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-3000:])
        self.assertIn("all 9 outputs are right", done.stdout)
