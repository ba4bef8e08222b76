"""--resume takes threads and memory of the sort; with -T further runs go to another place."""

import fcntl
import glob
import os
import re
import shlex
import shutil
import subprocess

import bamfile
import generate
from harness import BUILD, SPILL_BUDGET, environment, json_of, kept_checkpoints, text_of
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
                    stats = self.path("report.json")
                    self.resume(copy, *options, "--report", stats, budget=None)
                    data = json_of(stats)
                    self.assertEqual(data["options"]["threads"], threads)
                    self.assertEqual(data["options"]["memory_bytes"], mib * MIB)
                    self.assertEqual(data["memory"]["budget_bytes"], mib * MIB)
                    self.assert_same_bam(bamfile.read(self.path("out.bam")), want)
            shutil.rmtree(saved)

    def test_codec_and_fsync_are_remembered(self):
        """--temp-codec and --fsync were once forgotten."""
        source = self.source(20000)
        saved = self.path("saved")
        shutil.move(self.cut_load("--temp-codec", "zstd", "--fsync", source), saved)
        report = self.path("report")
        for options, codec in (([], "zstd"), (["--temp-codec", "lz4"], "lz4"),
                               (["--temp-codec", "auto"], "auto")):
            copy = self.path("copy.rocksort.1.abcdef")
            shutil.copytree(saved, copy)
            stats = self.path("report.json")
            self.resume(copy, *options, "--report", stats,
                        env={**self.faulty("fsync:1+:skip:out.bam"), "FAULT_REPORT": report})
            self.assertEqual(json_of(stats)["options"]["temp_codec"], codec)
            self.assertRegex(text_of(report), r"(?m)^fault0 [1-9]")

    def test_latest_settings_count(self):
        """What --resume was told counts when that is resumed, too."""
        source = self.source(40000)
        checkpoint = self.cut_load("-@", "2", "-m", "1M", source, n_runs=1, budget=None)
        result = self.rocksort("--resume", checkpoint, "-@", "3", clean=False,
                               env=self.faulty("link:1:kill:.sst"))
        self.assertLess(result.status, 0, result.err)
        stats = self.path("report.json")
        self.resume(checkpoint, "--report", stats, budget=None)
        data = json_of(stats)
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

    def test_added_directory_is_resumed_by_either_name(self):
        for named in (0, 1):
            with self.subTest(named=named):
                old = self.cut_load(self.bam)
                before = self.databases(old)
                checkpoints = [old, self.add(old, self.places[0], 2)]
                self.assertEqual(self.databases(old), before)
                self.assertEqual(len(glob.glob(f"{checkpoints[1]}/db-*/*.sst")), 2)
                self.finish(checkpoints[named])

    def test_directory_may_be_added_after_another(self):
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

    def test_without_an_added_directory_resume_is_refused(self):
        old = self.cut_load(self.bam)
        new = self.add(old, self.places[0], 2)
        saved = self.path("saved")
        shutil.move(new, saved)
        self.assertRegex(self.clean(old), rf"\Adamaged .*{old} .*part 1 of 2.*\n.*'{new}'\n\Z")
        self.refused(old, old, new, "does not exist", "sort the input again")
        shutil.move(saved, new)
        self.finish(old)

    def test_checkpoint_that_lost_a_directory_is_damaged(self):
        """All records are in the runs, or the first directory is lost: --clean says that the
        checkpoint is damaged, and does not offer to resume it."""
        self.rocksort("--no-PG", "-T", self.where, "-T", self.places[0], "-o", "/dev/full", self.bam,
                      clean=False, budget=SPILL_BUDGET)
        loaded = self.checkpoints(self.where, *self.places)
        self.assertEqual([self.state(path) for path in loaded], ["loading", "loaded"])
        for lost, kept in (loaded, loaded[::-1]):
            saved = self.path("saved")
            shutil.move(lost, saved)
            self.refused(kept, kept, lost, "sort the input again")
            out = self.clean(kept)
            self.assertRegex(out, rf"\Adamaged .*{kept} .*\n.*cannot be finished .*'{lost}'\n\Z")
            shutil.move(saved, lost)
        self.resume(loaded[0], "-o", self.path("out.bam"))
        self.assert_same_bam(bamfile.read(self.path("out.bam")), self.want)
        old = self.cut_load(self.bam)
        new = self.add(old, self.places[0], 1)
        shutil.rmtree(old)
        self.refused(new, new, old, "sort the input again")
        self.assertRegex(self.clean(new), r"\Adamaged ")

    def test_clean_removes_all_parts_or_none(self):
        """What --clean removes is of no use in parts: it removes all, or says what it cannot
        reach."""
        old = self.cut_load(self.bam)
        new = self.add(old, self.places[0], 1)
        lines = self.clean(new).splitlines()
        self.assertEqual(len([line for line in lines if "(part " in line]), 2, lines)
        lines = self.clean(new, "--yes").splitlines()
        self.assertEqual(len([line for line in lines if line.endswith("of 2), removed")]), 2, lines)
        self.assertEqual(self.checkpoints(self.where, *self.places), [])
        old = self.cut_load(self.bam)
        new = self.add(old, self.places[0], 1)
        shutil.move(new, self.path("saved"))
        self.assertIn(f"'{new}' is not on this host", self.clean(old, "--yes"))

    def test_clean_with_a_part_in_use(self):
        """A process locks the first directory as long as any: all stay."""
        old = self.cut_load(self.bam)
        new = self.add(old, self.places[0], 1)
        with open(old + "/LOCK", "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for named in (old, new, self.places[0]):
                self.assertRegex(self.clean(named, "--yes"), rf"\Ain use +{old}\n\Z")
        self.finish(old)

    def test_resume_goes_on_elsewhere_if_the_disk_is_full(self):
        """What the messages say can be done: the disk is full, and stays so."""
        part = os.path.basename(self.where)
        result = self.rocksort("--no-PG", "-T", self.where, "-o", self.path("out.bam"), self.bam,
                               clean=False, budget=SPILL_BUDGET,
                               env=self.faulty(f"write:40+:ENOSPC:{part}/"))
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

    def test_kill_while_a_directory_is_added_loses_nothing(self):
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
                        self.assertEqual(action, "kill")
                        self.assertIn("removed", self.clean(left, "--yes"))

    def test_impossible_place_is_refused(self):
        checkpoint = self.cut_load(self.bam)
        self.refused(checkpoint, "/nowhere/x", "-T", options=["-T", "/nowhere/x"])
        self.finish(checkpoint)

    def test_nothing_more_is_written(self):
        checkpoint = self.fails_in_merge(self.bam)
        result = self.resume(checkpoint, "-T", self.places[0], "-o", self.path("out.bam"))
        self.assertRegex(result.err, "warning: -T is ignored")
        self.assert_same_bam(bamfile.read(self.path("out.bam")), self.want)
        self.assertEqual(self.checkpoints(*self.places), [])

    def test_directory_is_not_added_for_a_pipe(self):
        """With -k and --partial as well: nothing is read, so nothing is written."""
        sam = generate.odd(9000, seed=5).encode()
        checkpoint = self.cut_load("-k", "-", stdin=sam)
        result = self.resume(checkpoint, "--partial", "-T", self.places[0])
        self.assertRegex(result.err, "-T is ignored")
        self.assertTrue(re.search(r"first \d+ records", result.err))


class FullDisks(KilledTest):
    """The command that a sort prints when a disk is full, pasted as it is."""

    def setUp(self):
        super().setUp()
        self.bam = self.bam_of(generate.incompressible(3500))
        self.want = self.sort_bam("--no-PG", self.bam)
        self.other = self.work / "other disk"           # a shell must see the name in quotes
        self.other.mkdir()
        self.disks = [self.mount(self.work / name, "2m") for name in ("small", "second")]

    def paste(self, result):
        """Runs the printed command in a shell. Returns its words."""
        self.assertEqual(result.status, 1, result.err)
        command = re.search(r"finish.*: (samtools rocksort --resume .*)$", result.err, re.M).group(1)
        done = subprocess.run(command, shell=True, cwd=self.other, capture_output=True, text=True,
                              check=False, env={**environment(self.scratch, SPILL_BUDGET),
                                                "PATH": f"{BUILD}:{os.environ['PATH']}"})
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stderr}")
        return shlex.split(command)

    def check(self, temp, out, options, also=None, env=None, reports=()):
        """Sorts with a full disk. The printed command has just these options, and finishes."""
        words = ["--also", also] if also else []
        for option, place in reports:
            words += [option, place]
        result = self.rocksort("--no-PG", "-T", temp / "t", "-o", out, *words, self.bam,
                               clean=False, budget=SPILL_BUDGET, cwd=self.other, env=env)
        given = self.paste(result)[4:]
        places = dict(zip(given[::2], given[1::2]))
        self.assertEqual(sorted(places), sorted(options), result.err)
        for option, place in (("-o", out), ("--also", also)):
            if place:
                place = places.get(option, place)
                self.assert_same_bam(bamfile.read(place), self.want)
                os.unlink(place)
        for option, place in reports:
            self.assertGreater(os.path.getsize(places.get(option, place)), 0, option)
        self.assertEqual(glob.glob(f"{self.work}/*/*rocksort*"), [])

    def fill(self, disk):
        with open(disk / "rest", "wb", buffering=0) as file:
            while True:
                try:
                    file.write(bytes(4096))
                except OSError:
                    return

    def test_full_temporary_disk_gives_advice_with_t(self):
        self.check(self.disks[0], self.other / "o.bam", ["-T"])

    def test_full_output_disk_gives_advice_with_o(self):
        self.check(self.other, self.disks[0] / "o.bam", ["-o"])

    def test_disk_of_the_second_output(self):
        self.check(self.other, self.other / "o.bam", ["--also"], also=self.disks[0] / "also.bam")

    def test_one_disk_for_both(self):
        self.check(self.disks[0], self.disks[0] / "o.bam", ["-T", "-o"])

    def test_two_small_disks_give_advice_with_both(self):
        """The output's disk is not full yet, but the output will not fit there."""
        self.check(self.disks[0], self.disks[1] / "o.bam", ["-T", "-o"])

    def test_exceeded_quota_gives_advice_with_t(self):
        self.check(self.disks[0], self.other / "o.bam", ["-T"],
                   env=self.faulty("pwrite:40+:EDQUOT:/db-0/,write:40+:EDQUOT:/db-0/"))

    def test_disk_of_a_report(self):
        report = self.path("full.txt")
        for error in ("ENOSPC", "EDQUOT"):
            result = self.rocksort("--coverage", report, "-T", self.where, "-o", self.path("r.bam"),
                                   self.source(), budget=SPILL_BUDGET, clean=False,
                                   env=self.faulty(f"write:1:{error}:full.txt"))
            self.assert_error(result, report, "free space, or give --coverage another file")
            checkpoint, = self.checkpoints()
            self.resume(checkpoint, "--coverage", self.path("elsewhere.txt"))
            self.assertGreater(os.path.getsize(self.path("elsewhere.txt")), 0)

    def test_command_writes_reports_to_another_disk_than_the_full_one(self):
        self.fill(self.disks[0])
        reports = [("--flagstat", self.disks[0] / "f.txt"), ("--coverage", self.disks[0] / "c.txt"),
                   ("--idxstats", self.other / "i.txt")]
        self.check(self.other, self.other / "o.bam", ["--coverage", "--flagstat"], reports=reports)

    def test_command_moves_reports_from_the_full_disk_of_the_output(self):
        self.check(self.other, self.disks[0] / "o.bam", ["--flagstat", "-o"],
                   reports=[("--flagstat", self.disks[0] / "f.txt")])

    def test_command_gives_files_of_one_name_different_names(self):
        """Reports have the name of the sample, each kind in its directory. Once all got the same
        name, and the command was refused. One report lies where the others go."""
        places = [("--flagstat", self.disks[0] / "f"), ("--idxstats", self.disks[0] / "i"),
                  ("--coverage", self.other)]
        for _, place in places:
            place.mkdir(exist_ok=True)
        self.check(self.other, self.disks[0] / "s1.bam", ["--flagstat", "--idxstats", "-o"],
                   reports=[(option, place / "s1.txt") for option, place in places])

    def test_existing_file_is_not_proposed_as_output(self):
        (self.other / "o.bam").write_bytes(b"of the user")
        result = self.rocksort("-T", self.other / "t", "-o", self.disks[0] / "o.bam", self.bam,
                               clean=False, budget=SPILL_BUDGET, cwd=self.other,
                               env={"HOME": str(self.other)})
        self.assertIn("to finish", result.err)
        self.assertNotIn(f"{self.other}/o.bam", result.err)
