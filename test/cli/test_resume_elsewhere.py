"""--resume takes threads and memory of the sort; with -T further runs go to another place."""

import glob
import json
import os
import re
import shutil

import bamfile
import generate
from harness import SPILL_BUDGET, kept_checkpoints
from checkpoints import KilledTest

MIB = 1 << 20


class Resources(KilledTest):
    """Threads and memory of a resumed sort."""

    def test_taken_from_the_sort(self):
        """A resumed sort once took 768M for one thread."""
        source = self.source(40000)
        want = self.sort_bam("--no-PG", source)
        for given, cases in (
                (["-@", "2", "-m", "1M"], [([], 2, 2), (["-m", "2M"], 2, 4), (["-@", "3"], 3, 3),
                                           (["--max-memory", "5M"], 2, 5)]),
                (["-@", "2", "--max-memory", "3M"], [([], 2, 3), (["-@", "4"], 4, 3),
                                                     (["-m", "2M"], 2, 4)])):
            checkpoint = self.cut_load(*given, source, n_runs=1, budget=None)
            saved = self.path("saved")
            shutil.move(checkpoint, saved)
            for options, threads, mib in cases:
                with self.subTest(given=given, options=options):
                    copy = self.path("copy.rocksort.1.abcdef")
                    shutil.copytree(saved, copy)
                    stats = self.path("stats.json")
                    self.resume(copy, *options, "--stats", stats, budget=None)
                    with open(stats, encoding="utf-8") as file:
                        data = json.load(file)
                    self.assertEqual(data["options"]["threads"], threads)
                    self.assertEqual(data["options"]["memory_bytes"], mib * MIB)
                    self.assertEqual(data["memory"]["budget_bytes"], mib * MIB)
                    self.assert_same_bam(bamfile.read(self.path("out.bam")), want)
            shutil.rmtree(saved)

    def test_the_latest_count(self):
        """What --resume was told counts when that is resumed, too."""
        source = self.source(40000)
        checkpoint = self.cut_load("-@", "2", "-m", "1M", source, n_runs=1, budget=None)
        result = self.rocksort("--resume", checkpoint, "-@", "3", clean=False,
                               env=self.faulty("link:1:kill:.sst"))
        self.assertLess(result.status, 0, result.err)
        stats = self.path("stats.json")
        self.resume(checkpoint, "--stats", stats, budget=None)
        with open(stats, encoding="utf-8") as file:
            data = json.load(file)
        self.assertEqual((data["options"]["threads"], data["options"]["memory_bytes"]),
                         (3, 3 * MIB))


class Elsewhere(KilledTest):
    """--resume DIR -T PLACE: DIR stays where it is, and gets no more runs."""

    def setUp(self):
        super().setUp()
        self.bam = self.source(20000)
        self.want = self.sort_bam("--no-PG", self.bam)
        self.places = [self.work / "other", self.work / "third"]
        for place in self.places:
            place.mkdir()

    def databases(self, checkpoint):
        """Names and sizes of all files of a checkpoint but its own two."""
        return sorted((os.path.relpath(path, checkpoint), os.path.getsize(path))
                      for path in glob.glob(f"{checkpoint}/**", recursive=True)
                      if os.path.isfile(path) and os.path.dirname(path) != checkpoint)

    def no_space(self, checkpoint):
        """Faults that let nobody write into the databases of a checkpoint."""
        part = os.path.basename(checkpoint) + "/db-"
        return ",".join(f"{call}:1+:ENOSPC:{part}" for call in ("write", "pwrite", "rename", "link"))

    def add(self, checkpoint, place, n_runs, faults=""):
        """Resumes with -T, and kills that when n_runs more runs are durable. Returns the new
        directory."""
        fault = f"link:{n_runs + 1}:kill:{place.name}" + (f",{faults}" if faults else "")
        result = self.rocksort("--resume", checkpoint, "-T", place, clean=False, budget=SPILL_BUDGET,
                               env=self.faulty(fault))
        self.assertEqual(result.status, -9, result.err)
        new, = self.checkpoints(place)
        return new

    def finish(self, checkpoint, *options, **how):
        self.resume(checkpoint, *options, **how)
        self.assert_same_bam(bamfile.read(self.path("out.bam")), self.want)
        self.assertEqual(self.checkpoints(self.where, *self.places), [])

    def test_added(self):
        """Killed and resumed again, by the name of either directory."""
        for named in (0, 1):
            with self.subTest(named=named):
                old = self.cut_load(self.bam)
                before = self.databases(old)
                checkpoints = [old, self.add(old, self.places[0], 2)]
                self.assertEqual(self.databases(old), before)
                self.assertEqual(len(glob.glob(f"{checkpoints[1]}/db-*/*.sst")), 2)
                self.finish(checkpoints[named])

    def test_added_twice(self):
        old = self.cut_load(self.bam)
        new = self.add(old, self.places[0], 1)
        before = self.databases(new)
        third = self.add(new, self.places[1], 1)
        self.assertEqual(self.databases(new), before)
        out = self.sort_ok("--clean", old, clean=False).out.decode()
        self.assertIn("(part 1 of 3)", out)
        out = self.sort_ok("--clean", third, clean=False).out.decode()
        self.assertIn("(part 3 of 3)", out)
        self.finish(old)

    def test_disk_is_full(self):
        """What the messages say can be done: the disk is full, and stays so."""
        part = os.path.basename(self.where)
        result = self.rocksort("--no-PG", "-T", self.where, "-o", self.path("out.bam"), self.bam,
                               clean=False, budget=SPILL_BUDGET,
                               env=self.faulty(f"write:60+:ENOSPC:{part}/"))
        self.assertEqual(result.status, 1)
        self.assertIn("free space or change -T", result.err)
        checkpoint, = kept_checkpoints(result.err)
        faults = self.no_space(checkpoint)
        result = self.rocksort("--resume", checkpoint, clean=False, budget=SPILL_BUDGET,
                               env=self.faulty(faults))
        self.assertEqual(result.status, 1, result.err)
        self.assertIn("free space or change -T", result.err)
        self.assertTrue(os.path.exists(checkpoint))
        self.add(checkpoint, self.places[0], 1, faults)
        self.finish(checkpoint, "-T", self.places[1], env=self.faulty(faults))

    def test_no_space_for_the_list(self):
        """If the old directory cannot name the new one, it would be taken for the whole checkpoint:
        nothing is done."""
        checkpoint = self.cut_load(self.bam)
        env = self.faulty("write:1+:ENOSPC:STORE.new")
        result = self.rocksort("--resume", checkpoint, "-T", self.places[0], clean=False,
                               budget=SPILL_BUDGET, env=env)
        self.assert_error(result, f"{checkpoint}/STORE", "free a little space")
        self.assertEqual(self.checkpoints(*self.places), [])
        self.finish(checkpoint)

    def test_killed_between(self):
        """Killed while the new list is being written: the checkpoint is as it was, or has the new
        directory."""
        for n in (1, 2):
            for action in ("kill", "term"):
                with self.subTest(n=n, action=action):
                    checkpoint = self.cut_load(self.bam)
                    result = self.rocksort("--resume", checkpoint, "-T", self.places[0], clean=False,
                                           budget=SPILL_BUDGET,
                                           env=self.faulty(f"unlinkat:{n}:{action}:STORE.new"))
                    self.assertLess(result.status, 0, result.err)
                    self.resume(checkpoint)
                    self.assert_same_bam(bamfile.read(self.path("out.bam")), self.want)
                    for left in self.checkpoints(*self.places):
                        self.assertEqual((n, action), (1, "kill"))
                        shutil.rmtree(left)

    def test_impossible_place(self):
        checkpoint = self.cut_load(self.bam)
        self.refused(checkpoint, "/nowhere/x", "-T", options=["-T", "/nowhere/x"])
        self.finish(checkpoint)

    def test_nothing_more_is_written(self):
        """A checkpoint that has all records needs no other place."""
        checkpoint = self.fails_in_merge(self.bam)
        result = self.resume(checkpoint, "-T", self.places[0], "-o", self.path("out.bam"))
        self.assertRegex(result.err, "warning: -T is ignored")
        self.assert_same_bam(bamfile.read(self.path("out.bam")), self.want)
        self.assertEqual(self.checkpoints(*self.places), [])

    def test_pipe(self):
        """With -k and --partial as well: nothing is read, so nothing is written."""
        sam = generate.odd(9000, seed=5).encode()
        checkpoint = self.cut_load("-k", "-", stdin=sam)
        result = self.resume(checkpoint, "--partial", "-T", self.places[0])
        self.assertRegex(result.err, "-T is ignored")
        self.assertTrue(re.search(r"first \d+ records", result.err))
