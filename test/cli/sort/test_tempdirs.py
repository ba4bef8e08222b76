"""Several temporary directories (-T A -T B), some of them full, and the choice of the codec."""

import glob
import os
import re
import shutil
import signal
import subprocess
import time

import bamfile
import generate
from harness import SLOW, SPILL_BUDGET, CliTest, own_lines, wait_for

APPEAR_LIMIT_S = 20 * SLOW


class DirsTest(CliTest):
    """Tests with two temporary directories, a and b."""

    def setUp(self):
        super().setUp()
        self.dirs = [self.work / name for name in "ab"]
        for path in self.dirs:
            path.mkdir()
        self.options = [word for path in self.dirs for word in ("-T", path)]

    def assert_empty(self):
        """Nothing is left in a and b."""
        for path in self.dirs:
            self.assertEqual(os.listdir(path), [], path)


class Several(DirsTest):
    """Several directories that have enough space."""

    def test_both_directories_are_used(self):
        source = self.write("in.sam", generate.odd(15000, seed=71))
        want = self.sort_bam("--no-PG", source)
        for order in ([], ["-@", "3"]):
            result = self.sort_ok("--no-PG", "-k", *order, *self.options, source,
                                  budget=SPILL_BUDGET)
            self.assert_same_bam(bamfile.parse_file(result.out), want)
            for path in self.dirs:
                kept = os.listdir(path)
                self.assertEqual(len(kept), 1)
                self.assertIn(kept[0], result.err, "-k says where all databases are")
                files = [name for _, _, names in os.walk(path) for name in names]
                self.assertTrue(any(name.endswith(".sst") for name in files), files)
                shutil.rmtree(path / kept[0])

    def test_nothing_is_left(self):
        source = self.write("in.sam", generate.odd(9000, seed=72))
        one, two = self.dirs
        for order, dirs in (([], self.dirs), (["-n"], (one, one)),
                            (["-s", "2M"], (one / "pre", two)),
                            (["--shuffle=3", "-@", "2"], self.dirs)):
            want = self.sort_bam("--no-PG", *order, source)
            options = [word for path in dirs for word in ("-T", path)]
            got = self.sort_bam("--no-PG", *order, *options, source, budget=SPILL_BUDGET)
            self.assert_same_bam(got, want, order)
            self.assert_empty()

    def test_directories_that_nobody_meant_are_not_used_in_silence(self):
        source = self.write("in.sam", generate.odd(15000, seed=71))
        out, there = self.path("out.bam"), sorted(os.listdir("/"))
        for prefix in ("/no-such-rocksort", "/tmp/../no-such-rocksort"):
            result = self.rocksort("-T", self.dirs[0], "-T", prefix, "-o", out, "in.sam")
            if result.status == 0:
                self.assertIn(f"warning: '{prefix}' is not a directory: temporary data go into '/'",
                              result.err)
            else:               # the user may not write there
                self.assert_error(result, prefix, "-T")
        for prefix in ("tmp", "./tmp", f"{self.work}/tmp", "/tmp", "a/"):
            self.assertNotIn("warning", self.sort_ok("-T", prefix, "-o", out, source).err)
        for prefix in ("/no-such-rocksort/", "/no-such-rocksort/x", "missing/x"):
            self.assert_error(self.rocksort("-T", prefix, "-o", out, source), prefix, "No such file")
        result = self.rocksort(source, budget=SPILL_BUDGET, env={"TMPDIR": "/no-such-rocksort"})
        self.assert_error(result, "'/no-such-rocksort/rocksort.", "No such file")
        self.assertEqual(sorted(os.listdir("/")), there)

    def test_as_many_directories_as_allowed_are_used(self):
        """32 directories, also with few open files: each database needs some files of its own."""
        source = self.write("in.sam", generate.odd(15000, seed=73))
        want = self.sort_bam("--no-PG", source)
        options = []
        for i in range(32):
            os.mkdir(self.dirs[0] / str(i))
            options += ["-T", self.dirs[0] / str(i)]
        for limit in ("c 0", "n 256"):
            out = self.path("out.bam")
            result = self.limited(limit, "--no-PG", *options, "-o", out, source,
                                  budget=SPILL_BUDGET)
            with self.subTest(limit=limit):
                self.assertEqual(result.status, 0, result.err)
                self.assert_same_bam(bamfile.read(out), want)
        self.assertEqual([names for _, _, names in os.walk(self.dirs[0]) if names], [])


class Signals(DirsTest):
    """A signal leaves no data in either directory."""

    def test_signal_empties_all_directories(self):
        sam = generate.odd(15000).encode()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            for options in ([], ["-s", "2M"]):
                process = self.start(*self.options, *options, "-o", self.path("out.bam"),
                                     budget=SPILL_BUDGET)
                self.feed(process, sam)
                wait_for(lambda: all(os.listdir(path) for path in self.dirs), APPEAR_LIMIT_S,
                         "temporary data")
                time.sleep(0.2)
                process.send_signal(number)
                with self.subTest(signal=number.name, options=options):
                    self.assert_died_of(process, number)
                    self.assert_empty()
                    self.assert_no_result(self.path("out.bam"))


class Full(DirsTest):
    """One or both of the directories have little space."""

    # These make runs of 0.2 MB and of 1.4 MB. Runs of 0.2 MB fit into the buffer of their file.
    BUDGETS = (SPILL_BUDGET, 4_000_000)

    def setUp(self):
        super().setUp()
        self.source = self.write("in.sam", generate.incompressible(6000))

    def check(self, budget, first, want):
        """Directory a has little space: a warning names it, and b gets the rest of the data."""
        order = self.dirs if first else self.dirs[::-1]
        options = [word for path in order for word in ("-T", path)]
        codec, out = ("none", "zstd")[budget == SPILL_BUDGET], self.path("out.bam")
        result = self.rocksort("--no-PG", "--temp-codec", codec, *options, "-o", out, self.source,
                               budget=budget)
        with self.subTest(budget=budget, first=first, codec=codec):
            self.assertEqual(result.status, 0, result.err)
            warnings = [line for line in result.err.splitlines() if "warning" in line]
            # If a is the second directory, the program may see early that a is too small, and not
            # use it: then there is no warning.
            self.assertIn(len(warnings), (1,) if first else (0, 1), result.err)
            self.assertTrue(all(str(self.dirs[0]) in line for line in warnings), warnings)
            self.assert_same_records(bamfile.read(out).records, want.records)
            self.assertEqual([name for name in os.listdir(self.dirs[0]) if name != "filler"], [])
            self.assertEqual(os.listdir(self.dirs[1]), [])

    def fill_first_directory(self):
        with open(self.dirs[0] / "filler", "wb", buffering=0) as file:
            try:
                while file.write(bytes(4096)):
                    pass
            except OSError:
                pass

    def test_disk_of_two_megabytes_is_enough(self):
        """The sort works on a disk of 2 MB. RocksDB once reserved up to 4 MB of the disk for the
        manifest of each database."""
        image, where = self.path("image"), str(self.dirs[0])
        with open(image, "wb") as file:
            file.truncate(2 << 20)
        commands = (["mkfs.ext4", "-q", "-m", "0", image], ["mount", "-o", "loop", image, where])
        if not shutil.which("mkfs.ext4") or any(
                subprocess.run(command, capture_output=True, check=False).returncode
                for command in commands):
            self.skipTest("cannot make a small file system on a disk (not root)")
        self.addCleanup(subprocess.run, ["umount", where], check=False)
        sam = generate.odd(9000, seed=81).encode()
        self.sort_ok("-T", where, "-o", self.path("out.bam"), stdin=sam, budget=SPILL_BUDGET)
        self.assertEqual(os.listdir(where), ["lost+found"])

    def test_small_directory_is_left_for_the_other(self):
        self.mount(self.dirs[0], "1m")
        want = self.sort_bam("--no-PG", self.source)
        for budget in self.BUDGETS:
            for first in (True, False):
                self.check(budget, first, want)

    def test_directory_that_fills_up_is_left_for_the_other(self):
        """One directory becomes full after it got some runs.

        Each run goes to the directory that has been faster, and together the runs take 8.6 MB. On a
        busy machine the small one got less than 6.5 MB of them and never became full."""
        self.mount(self.dirs[0], "3m")
        want = self.sort_bam("--no-PG", self.source)
        self.check(SPILL_BUDGET, True, want)

    def test_load_that_ends_when_the_first_disk_is_full_can_be_resumed(self):
        """The checkpoint says in the other directory that it has all records of the pipe."""
        self.mount(self.dirs[0], "6m")
        sam = generate.incompressible(6000).encode()
        process = self.start("--no-PG", *self.options, "-o", "/dev/full", budget=SPILL_BUDGET)
        process.stdin.write(sam[:len(sam) // 2])
        process.stdin.flush()
        wait_for(lambda: glob.glob(f"{self.dirs[1]}/rocksort.*/db-*/*.sst"), APPEAR_LIMIT_S,
                 "a run in b")
        self.fill_first_directory()
        _, err = process.communicate(sam[len(sam) // 2:], timeout=APPEAR_LIMIT_S)
        checkpoint, = glob.glob(f"{self.dirs[0]}/rocksort.*")
        self.assertIn(f"--resume {checkpoint}\n".encode(), err)
        os.unlink(self.dirs[0] / "filler")
        out = self.path("out.bam")
        self.sort_ok("--resume", checkpoint, "-o", out)
        self.assert_same_records(bamfile.read(out).records,
                                 self.sort_bam("--no-PG", stdin=sam).records)
        self.assert_empty()

    def test_full_directory_is_left_for_the_other(self):
        self.mount(self.dirs[0], "1m")
        want = self.sort_bam("--no-PG", self.source)
        self.fill_first_directory()
        for budget in self.BUDGETS:
            self.check(budget, True, want)
        # The message must name the second directory. It once named the full one, which has no file
        # STORE and cannot be resumed.
        options = [word for path in self.dirs for word in ("-T", path)]
        result = self.rocksort("--no-PG", *options, "-o", "/dev/full", self.source,
                               budget=SPILL_BUDGET, clean=False)
        self.assertEqual(result.status, 1)
        checkpoint, = glob.glob(f"{self.dirs[1]}/rocksort.*")
        self.assertIn(f"--resume {checkpoint}\n", result.err)
        out = self.path("out.bam")
        self.sort_ok("--resume", checkpoint, "-o", out)
        self.assert_same_records(bamfile.read(out).records, want.records)
        self.assertEqual(os.listdir(self.dirs[0]), ["filler"])

    def test_two_small_directories_are_an_error(self):
        for path in self.dirs:
            self.mount(path, "1m")
        for budget in self.BUDGETS:
            for order in ([], ["-n", "-@", "3"], ["-s", "12M"]):
                with self.subTest(budget=budget, order=order):
                    result = self.rocksort("--temp-codec", "none", *order, *self.options, "-o",
                                           self.path("out.bam"), self.source, budget=budget)
                    self.assert_error(result, "No space left", "-T")
                    self.assert_no_result(self.path("out.bam"))
                    self.assert_empty()


class Codec(DirsTest):
    """The codec of --temp-codec, named or chosen."""

    def runs_of_codecs(self, result):
        """({codec: number of runs}, reason) from the details of --verbosity 4."""
        line = next(line for line in own_lines(result.err) if "codec:" in line)
        counts = {name: int(n) for n, name in re.findall(r"(\d+) (?:runs )?(\w+)[,;]", line)}
        return counts, line.split("because ")[1]

    def test_auto_compresses_nothing_in_memory(self):
        self.mount(self.dirs[0], "64m")
        source = self.write("in.sam", generate.odd(9000, seed=74))
        want = self.sort_bam("--no-PG", source)
        for options in ([], ["--temp-codec", "auto"], ["--temp-codec", "zstd", "--temp-codec",
                                                      "auto"]):
            result = self.sort_ok("--no-PG", "--verbosity", "4", *options, "-T", self.dirs[0],
                                  source, budget=SPILL_BUDGET)
            self.assert_same_bam(bamfile.parse_file(result.out), want)
            counts, reason = self.runs_of_codecs(result)
            self.assertGreater(counts["none"], 5)
            self.assertEqual(sum(counts.values()), counts["none"], counts)
            self.assertIn("memory", reason)

    def test_auto_compresses_what_comes_from_a_pipe_in_little_memory(self):
        self.mount(self.dirs[0], "1668k")
        sam = generate.odd(15000, seed=73).encode()
        fixed = ["--temp-codec", "none"], ["--temp-codec", "lz4"]
        for options, status in ((fixed[0], 1), (fixed[1], 0), ([], 0), (["-s", "100K"], 0)):
            result = self.rocksort(*options, "--no-resume", "-T", self.dirs[0], "-o",
                                   self.path("out.bam"), "-", stdin=sam, budget=SPILL_BUDGET)
            with self.subTest(options=options):
                self.assertEqual(result.status, status, result.err)
                self.assertEqual(os.listdir(self.dirs[0]), [])

    def test_named_codec_is_taken(self):
        source = self.write("in.sam", generate.odd(9000, seed=74))
        for codec in ("none", "snappy", "lz4", "zstd"):
            result = self.sort_ok("--verbosity", "4", "--temp-codec", codec, source,
                                  budget=SPILL_BUDGET)
            counts, reason = self.runs_of_codecs(result)
            self.assertEqual([name for name, n in counts.items() if n], [codec])
            self.assertIn("--temp-codec", reason)

    def test_auto_does_not_change_the_result(self):
        source = self.write("in.sam", generate.odd(15000, seed=75))
        want = self.sort_bam("--no-PG", source)
        for options in ([], self.options, ["-@", "3"]):
            got = self.sort_bam("--no-PG", "--temp-codec", "auto", *options, source,
                                budget=SPILL_BUDGET)
            self.assert_same_bam(got, want)
