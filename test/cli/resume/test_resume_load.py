"""--resume of a sort that was cut off while it read: it goes on after the last durable run if the
inputs have not changed."""

import glob
import gzip
import os
import re
import shutil
import signal
import subprocess
import time

import bamfile
import generate
import templates
from harness import RUN_LIMIT_S, SPILL_BUDGET, bytes_of, wait_for
from checkpoints import APPEAR_LIMIT_S, KilledTest, ResumeTest


class Load(ResumeTest):
    """Sorts that are cut off while they read, when some runs are durable."""

    def cut_off(self, *args, n_runs=3, number=signal.SIGKILL, places=None, n_cuts=40, **how):
        """Starts sorts until one was killed while it read and had durable runs; returns its
        checkpoint directories and its messages."""
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
            checkpoints = self.checkpoints(*places)
            if status and checkpoints and self.state(checkpoints[0]) == "loading":
                return checkpoints, process.stderr.read().decode()
            for checkpoint in checkpoints:
                shutil.rmtree(checkpoint)
        self.skipTest("this machine is too fast: no sort could be killed in time")

    def test_killed_load_goes_on(self):
        source = self.source(20000)
        want = self.sort_bam("--no-PG", source)
        for order in ([], ["-@", "2"], ["-n"], ["-s", "8M"]):
            want = self.sort_bam("--no-PG", *order, source)
            for n_runs in (1, 6):
                with self.subTest(order=order, n_runs=n_runs):
                    checkpoints, _ = self.cut_off(*order, source, n_runs=n_runs,
                                                  stdin=subprocess.DEVNULL)
                    self.resume(checkpoints[0])
                    self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_fixmate_goes_on_after_a_kill(self):
        source = self.bam_of(templates.Generator(11, odd=0).sam(9000))
        for options in ("--fixmate", "--fixmate=-r -c"):
            want = self.sort_bam("--no-PG", options, source)
            for n_runs in (1, 3, 7):
                with self.subTest(options=options, n_runs=n_runs):
                    checkpoints, _ = self.cut_off(options, source, n_runs=n_runs,
                                                  stdin=subprocess.DEVNULL)
                    self.resume(checkpoints[0])
                    self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_fixmate_goes_on_where_records_were_repaired_and_their_ids_changed(self):
        """The place of a record was once searched among records that had become shorter: some
        records came twice."""
        text = templates.Generator(11, odd=0).sam(9000)
        sources = []
        for name, sam in (("a.bam", text), ("b.bam", text.replace("LB:two", "LB:three"))):
            data = gzip.decompress(bytes_of(self.bam_of(sam, name=name)))
            head = 8 + int.from_bytes(data[4:8], "little")
            n_refs, at = int.from_bytes(data[head:head + 4], "little"), head + 4
            for _ in range(n_refs):
                at += 8 + int.from_bytes(data[at:at + 4], "little")
            out = [data[:at]]
            while at < len(data):
                end = at + 4 + int.from_bytes(data[at:at + 4], "little")
                out.append(bamfile.padded(data[at:end], b"\0" * 5))
                at = end
            sources.append(self.write("padded-" + name, bamfile.bgzf(b"".join(out))))
        want = self.sort_bam("--no-PG", "--fixmate", "-o", "-", *sources)
        for n_runs in (1, 3, 20):
            with self.subTest(n_runs=n_runs):
                checkpoints, _ = self.cut_off("--fixmate", *sources, n_runs=n_runs,
                                              stdin=subprocess.DEVNULL)
                self.resume(checkpoints[0])
                self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_base_modifications_are_cut_as_in_one_sort(self):
        """The options of --fixmate are in the checkpoint: -M goes on without being given again.
        Bases of other records are needed for it, also in a template that does not fit in memory."""
        made = templates.Modified(13)
        sam = made.sam(1500)
        lines = [line for line in made.sam(5000).splitlines() if line[0] != "@"]
        one_name = "".join(f"one{line[line.index(chr(9)):]}\tXP:Z:{'p' * 400}\n" for line in lines)
        for text in (sam + made.sam(1500).partition("LB:two\n")[2], sam + one_name):
            source = self.bam_of(text)
            want = self.sort_bam("--no-PG", "--fixmate=-M -z off", source)
            plain = self.sort_bam("--no-PG", "--fixmate=-z off", source)
            self.assertNotEqual(want.records, plain.records)
            for n_runs in (1, 4):
                with self.subTest(n_runs=n_runs):
                    checkpoint = self.cut_off("--fixmate=-M -z off", source, n_runs=n_runs,
                                              stdin=subprocess.DEVNULL)[0][0]
                    self.assert_error(self.rocksort("--resume", checkpoint, "--fixmate=-z off",
                                                    clean=False), "with --fixmate", "its runs were made without")
                    self.resume(checkpoint)
                    self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_fixmate_options_cannot_change(self):
        source = self.bam_of(templates.Generator(12, odd=0).sam(6000))
        checkpoints, _ = self.cut_off("--fixmate=-r", source, stdin=subprocess.DEVNULL)
        for option in ("--fixmate", "--fixmate=-c"):
            self.assert_error(self.rocksort("--resume", checkpoints[0], option, clean=False),
                              "with --fixmate", "its runs were made without")
        self.resume(checkpoints[0], "--fixmate=-r")
        checkpoints, _ = self.cut_off(source, stdin=subprocess.DEVNULL)
        self.assert_error(self.rocksort("--resume", checkpoints[0], "--fixmate", clean=False),
                          "with --fixmate", "its runs were made without")
        self.resume(checkpoints[0])

    def test_markdup_options_cannot_change(self):
        source = self.bam_of(templates.Generator(13, odd=0).sam(6000))
        checkpoints, _ = self.cut_off("--fixmate", "--markdup=-r", source,
                                      stdin=subprocess.DEVNULL)
        for option in ("--markdup", "--markdup=-S", "--markdup= -r"):
            self.assert_error(self.rocksort("--resume", checkpoints[0], option, clean=False),
                              "with --markdup", "its runs were made without")
        self.resume(checkpoints[0])
        checkpoints, _ = self.cut_off(source, stdin=subprocess.DEVNULL)
        self.assert_error(self.rocksort("--resume", checkpoints[0], "--markdup", clean=False),
                          "with --markdup", "its runs were made without")

    def test_duplicates_are_found_among_records_of_both_processes(self):
        source = self.bam_of(templates.Generator(14, odd=0).sam(9000))
        report = self.path("report.txt")
        for options in (f"-f {report}", f"-S --use-read-groups -f {report}", f"-r -f {report}",
                        f"--barcode-tag BX -S -f {report}", f"--ignore-strand -f {report}",
                        f"--ignore-strand -d 100 --optical-only -S -t -f {report}"):
            arguments = ("--fixmate", "--markdup=" + options)
            want = self.sort_bam("--no-PG", *arguments, source)
            with open(report) as file:
                wanted_report = file.read()
            self.assertNotIn("DUPLICATE TOTAL: 0\n", wanted_report)
            for n_runs in (1, 7):
                with self.subTest(options=options, n_runs=n_runs):
                    os.unlink(report)
                    checkpoints, _ = self.cut_off(*arguments, source, n_runs=n_runs,
                                                  stdin=subprocess.DEVNULL)
                    self.resume(checkpoints[0])
                    self.assert_same_bam(bamfile.read(self.path("out.bam")), want)
                    with open(report) as file:
                        self.assertEqual(file.read(), wanted_report)

    def test_files_of_markdup_stay_where_they_were(self):
        """From another directory the files of --markdup are those that were asked for first, unless
        the option is given again."""
        source = self.bam_of(templates.Generator(14, odd=0).sam(6000))
        option = "--markdup=-f dups --metrics metrics"
        elsewhere = self.work / "elsewhere"
        elsewhere.mkdir()
        for options, folder in (([], self.work), ([option], elsewhere)):
            with self.subTest(options=options):
                checkpoint = self.fails_in_merge("--fixmate", option, source)
                self.resume(checkpoint, *options, "-o", self.path("out.bam"), cwd=elsewhere)
                for name, word in (("dups", "DUPLICATE"), ("metrics", "LIBRARY")):
                    self.assertIn(word, (folder / name).read_text())
                self.assertEqual(sorted(path.name for path in elsewhere.iterdir()),
                                 [] if folder == self.work else ["dups", "metrics"])

    def test_load_goes_on_after_a_signal(self):
        source = self.source(20000)
        want = self.sort_bam("--no-PG", source)
        checkpoints, err = self.cut_off(source, number=signal.SIGTERM, stdin=subprocess.DEVNULL)
        self.assertIn(f"--resume {checkpoints[0]}", err)
        self.resume(checkpoints[0], "-o", self.path("out.bam"))
        self.assert_same_bam(bamfile.read(self.path("out.bam")), want)
        process = self.start("-T", self.where, "-o", self.path("o.bam"), source,
                             budget=SPILL_BUDGET, stdin=subprocess.DEVNULL)
        wait_for(lambda: self.checkpoints() or process.poll() is not None, APPEAR_LIMIT_S,
                 "a checkpoint")
        process.send_signal(signal.SIGINT)
        process.wait(APPEAR_LIMIT_S)
        self.assertEqual(self.checkpoints(), [])

    def test_load_may_be_killed_again_and_again(self):
        source = self.source(30000)
        want = self.sort_bam("--no-PG", source)
        checkpoints, _ = self.cut_off(source, n_runs=2, stdin=subprocess.DEVNULL)
        for n_runs in (8, 16, 24):
            process = self.start("--resume", checkpoints[0], budget=SPILL_BUDGET,
                                 stdin=subprocess.DEVNULL)
            runs = f"{checkpoints[0]}/db-*/*.sst"
            while process.poll() is None and len(glob.glob(runs)) < n_runs:
                time.sleep(0.0005)
            process.kill()
            if process.wait() == 0:
                break
        if self.checkpoints():
            self.resume(checkpoints[0])
        self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_load_into_several_directories_goes_on(self):
        other = self.work / "other"
        other.mkdir()
        source = self.source(20000)
        want = self.sort_bam("--no-PG", source)
        for n_runs in (2, 7):
            checkpoints, _ = self.cut_off(source, n_runs=n_runs, places=[self.where, other],
                                          stdin=subprocess.DEVNULL)
            self.resume(checkpoints[-1])
            self.assert_same_bam(bamfile.read(self.path("out.bam")), want)
            self.assertEqual(self.checkpoints(self.where, other), [])

    def test_several_inputs_are_resumed_with_renamed_read_groups(self):
        sources = [self.bam_of("@RG\tID:1\tSM:x%d\n" % i + generate.odd(9000, seed=90 + i),
                               name=f"in{i}.bam") for i in range(3)]
        want = self.sort_bam("--no-PG", "-o", "-", *sources)
        for n_runs in (2, 5, 9, 14):
            with self.subTest(n_runs=n_runs):
                checkpoints, _ = self.cut_off(*sources, n_runs=n_runs, stdin=subprocess.DEVNULL)
                self.resume(checkpoints[0])
                self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_changed_input_is_refused_and_can_be_written_in_part(self):
        source = self.source(20000)
        whole = bamfile.read(source)
        checkpoints, _ = self.cut_off(source, stdin=subprocess.DEVNULL)
        saved, times = self.path("saved"), os.stat(source)
        os.rename(source, saved)
        self.refused(checkpoints[0], source, "not there")
        shutil.copy(saved, source)
        self.refused(checkpoints[0], source, "changed")
        os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))
        os.truncate(source, times.st_size - 1)
        os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))
        self.refused(checkpoints[0], source, "changed")
        os.unlink(source)
        result = self.resume(checkpoints[0], "--partial", "-O", "bam", "-o", "-")
        count = int(re.search(r"the first (\d+) records", result.err).group(1))
        got = bamfile.parse_file(result.out)
        self.assertEqual(len(bamfile.split(got.records)), count)
        first = self.write("first.bam", bamfile.bgzf(
            bamfile.bam_header(whole.text, whole.refs) +
            b"".join(bamfile.split(whole.records)[:count])))
        self.assert_same_bam(got, self.sort_bam("--no-PG", first))


class AtACall(KilledTest):
    """Sorts that are cut off at a chosen system call while they read."""

    def test_mates_of_several_inputs_go_on_at_a_template(self):
        """Reading goes on at a template of a BAM file whose read groups are renamed. Once it went
        on within some other record, or within a BGZF block."""
        texts = [templates.Generator(20 + i, odd=0).sam(3000) for i in range(3)]
        sources = [self.bam_of(text.replace("LB:", f"LB:{i}"), name=f"in{i}.bam")
                   for i, text in enumerate(texts)]
        for options in ("--fixmate", "--fixmate=-r"):
            want = self.sort_bam("--no-PG", options, "-o", "-", *sources)
            for n_runs in (2, 9, 13, 17):
                with self.subTest(options=options, n_runs=n_runs):
                    checkpoint = self.cut_load(options, *sources, n_runs=n_runs)
                    self.resume(checkpoint)
                    self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_load_goes_on_after_hundreds_of_runs(self):
        """Runs become part of the database several at a time. If a sort is killed while RocksDB
        takes such a group in, --resume goes on with the runs before the group."""
        source = self.bam_of(templates.Generator(27, odd=0).sam(9000))
        want = self.sort_bam("--no-PG", "--fixmate", source)
        env = dict(self.faulty("link:301:kill:.sst"), ROCKSORT_TEST_SORT_BUFFER="8K")
        result = self.rocksort("--no-PG", "--fixmate", "-T", self.where,
                               "-o", self.path("out.bam"), source, clean=False, env=env,
                               budget=64 << 20)
        self.assertEqual(result.status, -signal.SIGKILL, result.err)
        checkpoint, = self.checkpoints()
        linked = glob.glob(f"{checkpoint}/db-0/*.sst")
        waiting = glob.glob(f"{checkpoint}/run-*.sst")
        self.assertEqual(len(linked), 300)
        self.assertGreater(len(waiting), 1, "no group was being taken in")
        resumed = self.resume(checkpoint)
        n_runs = int(re.search(r"(\d+) runs on disk", resumed.err).group(1))
        self.assertGreater(n_runs, 290, "it did not go on with the runs that were there")
        self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_runs_after_a_missing_one_are_ignored(self):
        source = self.source(18000)
        want = self.sort_bam("--no-PG", source)
        other = self.work / "other"
        other.mkdir()
        for lost in (0, 1):
            with self.subTest(lost=lost):
                self.killed("link:8:kill:.sst", "-T", other, "-o", self.path("out.bam"), source)
                checkpoints = self.checkpoints(self.where, other)
                databases = [os.path.join(checkpoint, "db-0") for checkpoint in checkpoints]
                self.assertEqual([os.path.isdir(path) for path in databases], [True, True])
                shutil.rmtree(databases[lost])
                self.resume(checkpoints[0])
                self.assert_same_bam(bamfile.read(self.path("out.bam")), want)
                self.assertEqual(self.checkpoints(self.where, other), [])

    def test_killed_while_directories_are_removed(self):
        """The output is complete, and of two directories the first is partly removed: neither is a
        checkpoint any more."""
        other = self.work / "other"
        other.mkdir()
        self.killed("unlinkat:1:kill:MANIFEST", "-T", other, "-o", self.path("out.bam"),
                    self.source())
        left = self.checkpoints(self.where, other)
        first, = self.checkpoints()
        self.assertFalse(os.path.exists(os.path.join(first, "STORE")))
        self.assertEqual([bool(os.listdir(os.path.join(path, "db-0"))) for path in left],
                         [True, True])
        for path in left:
            self.assert_error(self.rocksort("--resume", path, clean=False), path)
        for place in (self.where, other):
            self.rocksort("--clean", place, "--yes")
        self.assertEqual(self.checkpoints(self.where, other), [])
        self.assert_same_bam(bamfile.read(self.path("out.bam")),
                             self.sort_bam("--no-PG", self.source()))

    def test_file_of_a_run_with_two_names(self):
        """The file of a run is in the database and still has its first name, too. The next run that
        gets the first name must be another file."""
        source = self.source()
        want = self.sort_bam("--no-PG", source)
        checkpoint = self.killed("unlink:1:kill:run-0-", "-o", self.path("out.bam"), source)
        self.assertGreater(os.stat(f"{checkpoint}/run-0-000000.sst").st_nlink, 1)
        self.resume(checkpoint)
        self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_references_without_text_are_resumed(self):
        whole = bamfile.read(self.source())
        lines = [line for line in whole.text.splitlines(keepends=True) if line[:3] != "@SQ"]
        source = self.write("in.bam", bamfile.bgzf(bamfile.bam_header("".join(lines), whole.refs) +
                                                   whole.records))
        want = self.sort_bam("--no-PG", source)
        for end in (self.cut_load, self.fails_in_merge):
            self.resume(end(source), "-o", self.path("out.bam"))
            self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_moved_while_it_is_written(self):
        """If a sort fails because its directory was moved, the message must not offer --resume, as
        it once did."""
        for what in ("", "STORE"):
            with self.subTest(what=what):
                process = self.start("--no-PG", "-T", self.where, "-o", self.path("out.bam"),
                                     self.source(), budget=SPILL_BUDGET,
                                     env=self.faulty("link:3:1500ms:.sst,link:4:EIO:.sst"))
                # When the database has a second file, the first run is durable.
                wait_for(lambda: any(len(glob.glob(f"{checkpoint}/db-0/*.sst")) > 1
                                     for checkpoint in self.checkpoints()), RUN_LIMIT_S, "runs")
                checkpoint, = self.checkpoints()
                os.rename(os.path.join(checkpoint, what), self.path("moved"))
                _, err = process.communicate(timeout=RUN_LIMIT_S)
                self.assertEqual(process.returncode, 1, err)
                self.assertIn("the directory or its STORE file was moved or deleted", err.decode())
                self.assertNotIn("--resume", err.decode())
                for path in (self.path("moved"), checkpoint):
                    if os.path.isdir(path):
                        shutil.rmtree(path)

    def test_read_only_disk_is_named(self):
        """The disk has become read-only: the message says that the checkpoint cannot be locked. It
        once said that it is no checkpoint of rocksort."""
        source = self.source()
        checkpoint = self.cut_load(source)
        result = self.rocksort("--resume", checkpoint, env=self.faulty("openat:1:EROFS:LOCK"),
                               clean=False)
        self.assert_error(result, checkpoint, "cannot be locked")
        for yes in ([], ["--yes"]):
            result = self.rocksort("--clean", self.where, *yes, clean=False,
                                   env=self.faulty("openat:1:EROFS:LOCK"))
            self.assert_error(result, checkpoint, "cannot be locked")
            self.assertEqual(result.out, b"")
        self.resume(checkpoint)


class Inputs(KilledTest):
    """The input of --resume must be the one that the first sort read, and read in the same way."""

    def test_input_replaced_after_its_check_is_refused(self):
        source, other = self.source(), self.source(9001, name="other.bam")
        checkpoint = self.cut_load(source)
        process = self.start("--resume", checkpoint, env=self.faulty("open:1:1500ms:/in.bam"),
                             budget=SPILL_BUDGET)
        time.sleep(0.7)
        os.replace(other, source)
        self.assertEqual(process.wait(RUN_LIMIT_S), 1)
        self.assertIn("has changed since", process.stderr.read().decode())
        self.assertFalse(os.path.exists(self.path("out.bam")))

    def test_input_of_another_kind(self):
        """The input has another format, but the same size and time of change: an error. SAM was
        once read as BAM, and the program crashed."""
        source = self.source()
        checkpoint = self.cut_load(source)
        was = os.stat(source)
        sam = bamfile.read(source).text.encode() + b"@CO\t"
        sam += b"x" * (was.st_size - len(sam) - 1) + b"\n"
        for name, data in (("SAM", sam), ("gzip", gzip.compress(sam, 0)),
                           ("zeros", bytes(len(sam)))):
            with open(source, "wb") as file:
                file.write(data)
            os.truncate(source, was.st_size)
            os.utime(source, ns=(was.st_atime_ns, was.st_mtime_ns))
            with self.subTest(name=name):
                result = self.rocksort("--resume", checkpoint, clean=False, budget=SPILL_BUDGET)
                self.assert_error(result)
                self.assertNotIn("free()", result.err)
                self.assertFalse(os.path.exists(self.path("out.bam")))

    def test_changed_reference_is_refused(self):
        """If the reference of -I has changed, the remaining records would get other minimisers."""
        fasta = self.write("ref.fa", ">r\n" + "ACGTTGCAACGTAGGT" * 40 + "\n")
        checkpoint = self.cut_load("-M", "-I", fasta, self.source())
        before = os.stat(fasta)
        os.utime(fasta)
        self.refused(checkpoint, "ref.fa", "has changed since")
        os.utime(fasta, ns=(before.st_atime_ns, before.st_mtime_ns))
        self.resume(checkpoint)

    def test_filter_is_refused_with_resume(self):
        source = self.source()
        want = self.sort_bam("--no-PG", source)
        checkpoint = self.cut_load(source)
        for option in ("filter=mapq>100", "required_fields=3"):
            self.refused(checkpoint, "--input-fmt-option", options=["--input-fmt-option", option])
        self.resume(checkpoint)
        self.assert_same_bam(bamfile.read(self.path("out.bam")), want)
