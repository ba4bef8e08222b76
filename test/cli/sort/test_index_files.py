"""--write-index: the name of the index; and the index is complete, or there is none."""

import os
import resource
import signal
import stat
import subprocess
import time

import bamfile
import generate
from harness import DIE_LIMIT_S, SPILL_BUDGET, bytes_of, needs_pysam, pysam, reference, reference_ok
from checkpoints import KilledTest
from test_index import (BUDGETS, REFS, IndexTest, index_bytes, index_kind, make_read, names_in,
                        random_reads)


class Files(IndexTest):
    """Names of the index, replaced files, and sorts that write no index."""

    def setUp(self):
        super().setUp()
        self.reads = random_reads(500, REFS, seed=20)
        self.source = self.bam(self.reads, REFS)

    def test_name_of_the_index_follows_the_output(self):
        for name, files, kind in (
                ("o.bam", ["o.bam", "o.bam.csi"], "csi"),
                ("o", ["o", "o.csi"], "csi"),
                ("o.bam##idx##o.bam.bai", ["o.bam", "o.bam.bai"], "bai"),
                ("o.bam##idx##o.bai", ["o.bam", "o.bai"], "bai"),
                ("o.bam##idx##o.bam.csi", ["o.bam", "o.bam.csi"], "csi"),
                ("o.bam##idx##index", ["o.bam", "index"], "csi"),
                ("o.bam##idx##bai", ["o.bam", "bai"], "csi")):
            with self.subTest(name=name):
                self.sort_indexed(self.source, name)
                self.assert_files("in.bam", *files)
                self.assertEqual(index_kind(self.path(files[1])), kind)
                for file in files:
                    os.unlink(self.path(file))

    @needs_pysam
    def test_index_is_found_by_the_name_of_the_file(self):
        for name in ("o.bam", "o.bam##idx##o.bam.bai", "o.bam##idx##o.bai"):
            with self.subTest(name=name):
                path = self.sort_indexed(self.source, name)
                with pysam.AlignmentFile(path) as file:
                    self.assertTrue(file.has_index())
                    got = [read.query_name for read in file.fetch("chr2", 100, 5000)]
                self.assertEqual(sorted(got), names_in(self.reads, (3, 100, 5000)))
                for left in ("o.bam.csi", "o.bam.bai", "o.bai"):
                    if os.path.exists(self.path(left)):
                        os.unlink(self.path(left))

    def test_name_of_an_index_without_the_option_is_ignored(self):
        self.sort_ok("-o", self.path("o.bam##idx##o.bai"), self.source)
        self.assert_files("in.bam", "o.bam")

    def test_names_of_output_and_index_may_be_relative(self):
        os.mkdir(self.path("d"))
        os.mkdir(self.path("e"))
        self.sort_ok("--write-index", "-o", "d/o.bam##idx##e/o.bai", "in.bam")
        self.assertEqual(os.listdir(self.path("d")), ["o.bam"])
        self.assertEqual(os.listdir(self.path("e")), ["o.bai"])

    def test_index_of_the_classic_form_follows_its_output(self):
        self.sort_ok("--write-index", self.source, "o")
        self.assert_files("in.bam", "o.bam", "o.bam.csi")
        self.sort_ok("--write-index", "-f", self.source, "p.bam##idx##p.bai")
        self.assert_files("in.bam", "o.bam", "o.bam.csi", "p.bai", "p.bam")

    def test_link_of_the_index_is_followed(self):
        os.symlink("real.bai", self.path("link.bai"))
        self.write("real.bai", b"old")
        self.sort_ok("--write-index", "-o", self.path("o.bam##idx##link.bai"), self.source)
        self.assertTrue(os.path.islink(self.path("link.bai")))
        self.assertEqual(index_kind(self.path("real.bai")), "bai")

    def test_device_is_not_replaced_by_an_index(self):
        try:
            os.mknod(self.path("null"), 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        except PermissionError:
            self.skipTest("only root makes devices")
        self.sort_ok("--write-index", "-o", self.path("o.bam##idx##" + self.path("null")),
                     self.source)
        self.assertTrue(stat.S_ISCHR(os.stat(self.path("null")).st_mode))

    def test_index_has_permissions_of_a_new_file(self):
        old = os.umask(0o027)
        self.addCleanup(os.umask, old)
        self.sort_indexed(self.source, "o.bam")
        self.assertEqual(stat.S_IMODE(os.stat(self.path("o.bam.csi")).st_mode), 0o640)

    def test_other_orders_have_no_index_and_a_warning(self):
        orders = (["-n"], ["-N"], ["-t", "XI"], ["-t", "XI", "-n"], ["--shuffle"])
        for options in orders:
            with self.subTest(options=options):
                result = self.sort_ok("--write-index", *options, "-o", self.path("o.bam"),
                                      self.source)
                self.assertRegex(result.err, "warning: no index.*order")
                self.assert_files("in.bam", "o.bam")
                self.assertEqual(len(bamfile.split(bamfile.read(self.path("o.bam")).records)), 500)
        sam = b"@SQ\tSN:a\tLN:9\nq\t0\ta\t1\t9\t4M\t*\t0\t0\tACGT\t*\n"
        result = self.sort_ok("--write-index", "--template-coordinate", "-o", "o.bam", stdin=sam)
        self.assertRegex(result.err, "warning: no index.*order")
        self.assert_files("in.bam", "o.bam")

    def test_standard_output_has_no_index_and_a_warning(self):
        for options in ([], ["-o", "-"]):
            result = self.sort_ok("--write-index", *options, self.source)
            self.assertRegex(result.err, "warning: no index")
            self.assertEqual(len(bamfile.split(bamfile.parse_file(result.out).records)), 500)
            self.assert_files("in.bam")

    def test_uncompressed_sam_is_refused(self):
        self.write("o.sam", b"old")
        for options, out in (([], "o.sam"), (["-O", "sam"], "o.x"), (["-O", "sam"], "o.sam.gz")):
            with self.subTest(options=options, out=out):
                result = self.rocksort("--write-index", *options, "-o", self.path(out), self.source)
                self.assert_error(result, "--write-index", "sam.gz")
                self.assert_files("in.bam", "o.sam")
        self.assertEqual(bytes_of(self.path("o.sam")), b"old")


class Failures(IndexTest):
    """A run that fails leaves no incomplete index and no incomplete sorted file."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.reads = random_reads(4000, REFS, seed=30)

    def setUp(self):
        super().setUp()
        self.source = self.bam(self.reads, REFS)

    def test_index_that_cannot_be_written_is_refused(self):
        cram = ["-O", "cram,no_ref=1"]
        os.mkdir(self.path("d"))
        self.write("in.sam", generate.reads(50, generate.reference()))
        before = self.files()
        for name, options, mentions in (
                ("o.bam##idx##none/o.bai", [], ("none/o.bai'", "No such file")),
                ("o.sam.gz##idx##none/o.csi", [], ("none/o.csi'", "No such file")),
                ("o.cram##idx##none/o.crai", cram, ("none/o.crai'", "No such file")),
                ("o.bam##idx##d", [], ("d'",)), ("o.bam##idx##o.bam", [], ()),
                ("o.bam##idx##./o.bam", [], ()), ("o.bam##idx##", [], ()),
                ("##idx##o.bai", [], ())):
            for budget in BUDGETS:
                with self.subTest(name=name, budget=budget):
                    result = self.rocksort("--write-index", *options, "-o", name,
                                           "in.sam" if options else self.source, budget=budget)
                    left = set(self.files()) - set(before)
                    for file in left:
                        os.unlink(self.path(file))
                    self.assert_error(result, *mentions)
                    self.assertEqual(left, set())

    def test_index_that_does_not_fit_is_an_error(self):
        """A read far into a long reference: the BAM is small, but the BAI has all windows before
        the read. The sorted file may stay because it is complete (manual page, EXIT STATUS)."""
        refs = [("a", 500_000_000)]
        source = self.bam([make_read("q", 0, 499_999_000, "100M", "A" * 100)], refs, "far.bam")
        os.unlink(self.source)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        for old in (False, True):
            if old:
                self.write("o.bai", b"old")
                os.utime(self.path("o.bai"), (1e9, 1e9))
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
            try:
                result = self.rocksort("--write-index", "-o", "o.bam##idx##o.bai", source)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, before)
            with self.subTest(old_index=old):
                left = set(os.listdir(self.work)) - {"far.bam"}
                self.assert_error(result, "o.bai", "File too large")
                self.assertLessEqual(left, {"o.bam", "o.bai"} if old else {"o.bam"})
                if "o.bam" in left:
                    self.assertTrue(bamfile.looks_complete(self.path("o.bam")))
                    os.unlink(self.path("o.bam"))
                if "o.bai" in left:
                    self.assertEqual(os.path.getsize(self.path("o.bai")), 3)

    def test_damaged_input_leaves_the_old_output_and_index(self):
        data = bytes_of(self.source)
        self.write("cut.bam", data[: len(data) * 2 // 3])
        for name, index in (("o.bam##idx##o.bai", "o.bai"), ("o.bam", "o.bam.csi")):
            for budget in BUDGETS:
                with self.subTest(name=name, budget=budget):
                    self.write("o.bam", b"old file")
                    self.write(index, b"old index")
                    result = self.rocksort("--write-index", "-o", name, "cut.bam", budget=budget)
                    self.assert_error(result, "cut.bam")
                    self.assert_files("cut.bam", "in.bam", "o.bam", index)
                    for file, text in (("o.bam", b"old file"), (index, b"old index")):
                        self.assertEqual(bytes_of(self.path(file)), text)
                        os.unlink(self.path(file))

    @needs_pysam
    def test_signal_at_any_moment_leaves_no_wrong_index(self):
        for name, index, options in (
                ("o.bam##idx##o.bai", "o.bai", ["-@", "2"]),
                ("o.cram", "o.cram.crai", ["-O", "cram,no_ref=1"])):
            source = self.source
            if "-O" in options:
                source = self.write("in.sam", generate.reads(2000, generate.reference()))
            before = set(os.listdir(self.work))
            words = ["--write-index", *options, "-o", name, source]
            begin = time.monotonic()
            self.sort_ok(*words, budget=SPILL_BUDGET)
            whole_s = time.monotonic() - begin
            for moment in range(5):
                for file in set(os.listdir(self.work)) - before:
                    os.unlink(self.path(file))
                process = self.start(*words, budget=SPILL_BUDGET, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL)
                time.sleep(whole_s * (0.55 + moment / 8))
                if process.poll() is None:
                    process.send_signal(signal.SIGTERM)
                status = process.wait(DIE_LIMIT_S)
                self.drop_kept(process.stderr.read().decode())
                with self.subTest(name=name, moment=moment, status=status):
                    self.assertIn(status, (0, -signal.SIGTERM, 128 + signal.SIGTERM))
                    self.assert_whole_or_nothing(name.split("##")[0], index, before, status)

    def assert_whole_or_nothing(self, name, index, before, status):
        """There is no temporary file. The sorted file and the index are complete if they exist."""
        left = set(os.listdir(self.work)) - before
        self.assertEqual(os.listdir(self.scratch), [])
        self.assertLessEqual(left, {name, index})
        if status == 0:
            self.assertEqual(left, {name, index})
        if name in left:
            self.assertTrue(reference("quickcheck", self.path(name)))
        if index in left:
            self.assertIn(name, left)
            self.ask(self.path(name), self.path(index), [(0, 0, 1000)])

    @needs_pysam
    def test_signal_while_merging_leaves_no_index(self):
        """A signal that certainly comes during the merge: the output is a pipe that is not read."""
        os.mkfifo(self.path("pipe"))
        process = self.start("--write-index", "-u", "-o", self.path("pipe##idx##o.bai"),
                             self.source, budget=SPILL_BUDGET, stdin=subprocess.DEVNULL)
        with open(self.path("pipe"), "rb") as pipe:
            self.assertTrue(pipe.read(1000))
            time.sleep(0.2)
            process.send_signal(signal.SIGTERM)
            self.assert_died_of(process, signal.SIGTERM)
        self.drop_kept(process.stderr.read().decode())
        self.assert_files("in.bam", "pipe")
        self.assertEqual(os.listdir(self.scratch), [])

    @needs_pysam
    def test_output_to_a_pipe_has_an_index(self):
        """The index of a piped output fits the file that has the bytes of the pipe."""
        os.mkfifo(self.path("pipe"))
        process = self.start("--write-index", "-o", self.path("pipe##idx##o.bai"), self.source,
                             stdin=subprocess.DEVNULL)
        self.write("o.bam", bytes_of(self.path("pipe")))
        self.assertEqual(process.wait(DIE_LIMIT_S), 0)
        want = self.path("want.bai")
        reference_ok("index", "-b", "-o", want, self.path("o.bam"))
        self.assertTrue(index_bytes(self.path("o.bai")) == index_bytes(want))


class Killed(KilledTest):
    """Sorts that are killed after the output is renamed and before its index is."""

    def old_pair(self, name, *options):
        """Makes an output and its index; returns a function that reads both, None if missing, and
        the words of the sort that is to replace them."""
        words = ["--write-index", "--no-PG", *options, "-o", name]
        self.sort_ok(*words, stdin=generate.odd(100, seed=1).encode())
        index = name + (".crai" if options else ".csi")

        def read():
            return [open(self.path(each), "rb").read() if os.path.exists(self.path(each)) else None
                    for each in (name, index)]
        return read, words

    def test_output_that_gets_no_name_keeps_the_old_index(self):
        """If the output cannot get its name, or a signal comes at that moment, the old output keeps
        its index, or all is new. The old index once went before the new output came."""
        for name, options in (("out.bam", []), ("out.cram", ["-O", "cram,no_ref=1"])):
            read, words = self.old_pair(name, *options)
            old = read()
            self.assertNotIn(None, old)
            for fault in (f"rename:1:EIO:{name}", f"rename:2:EIO:{name}", "rename:2:EIO:.csi"):
                if options and ".csi" in fault:
                    continue
                with self.subTest(name=name, fault=fault):
                    result = self.rocksort(*words, stdin=generate.odd(200, seed=2).encode(),
                                           env=self.faulty(fault))
                    self.assertEqual(result.status, 1, result.err)
                    if fault.endswith(name):
                        self.assertEqual(read(), old)
                        self.assertEqual(sorted(os.listdir(self.work)), sorted(
                            each for each in os.listdir(self.work) if not each.endswith(".tmp")))
                    else:
                        self.assertNotEqual(read()[0], old[0])
                        self.assertIsNone(read()[1])
                        self.sort_ok(*words, stdin=generate.odd(100, seed=1).encode())

    def test_sort_ended_at_the_renames_leaves_no_wrong_index(self):
        for number in (1, 2, 3):
            for action in ("kill", "term"):
                read, words = self.old_pair("out.bam")
                old = read()
                with self.subTest(number=number, action=action):
                    result = self.rocksort(*words, stdin=generate.odd(200, seed=2).encode(),
                                           env=self.faulty(f"rename:{number}:{action}:out.bam"))
                    self.assertLess(result.status, 0, result.err)
                    new = read()
                    if new[0] != old[0]:
                        self.assertNotEqual(new[1], old[1])
                    elif action == "term":
                        self.assertEqual(new, old)
                self.sort_ok("--clean", "--yes", "out.bam")
                self.assertEqual([each for each in os.listdir(self.work) if ".tmp" in each], [])

    def test_output_written_in_place_loses_its_old_index_at_once(self):
        read, words = self.old_pair("out.bam")
        with open(self.path("out.bam"), "r+b") as file:
            words[-1] = f"/dev/fd/{file.fileno()}##idx##{self.path('out.bam.csi')}"
            process = self.start(*words, pass_fds=[file.fileno()],
                                 env=self.faulty("write:1:EIO:out.bam"))
            _, err = process.communicate(generate.odd(200, seed=2).encode())
        self.assertEqual(process.returncode, 1, err)
        self.assertIsNone(read()[1])


class Stale(KilledTest):
    """Indexes of an older output beside the new one: those that htslib would find go, no others."""

    NAMES = ["out.bam.bai", "out.bam.csi", "out.bai", "out.csi", "out.bam.crai", "out.cram.crai",
             "out.crai", "out.sam.csi", "out.sam.gz.csi", "elsewhere.csi"]

    def gone(self, *words, status=0, fault=None):
        """Runs a sort beside all of these; returns those that are gone or new."""
        for name in self.NAMES:
            self.write(name, "old")
        result = self.rocksort("--no-PG", *words, stdin=generate.odd(50, seed=1).encode(),
                               env=self.faulty(fault) if fault else None)
        self.assertEqual(result.status, status, result.err)
        self.assertNotIn("is older", result.err)
        self.assertEqual([name for name in os.listdir(self.work) if ".rocksort." in name], [])
        return [name for name in sorted(self.NAMES) if not os.path.exists(self.path(name)) or
                os.path.getsize(self.path(name)) > 3]

    def test_stale_index_is_removed(self):
        of_bam = ["out.bai", "out.bam.bai", "out.bam.csi", "out.csi"]
        of_cram = ["out.crai", "out.cram.crai"]
        cram = ["-O", "cram,no_ref=1"]
        for words, want in (
                (["-o", "out.bam"], of_bam), (["-n", "-o", "out.bam"], of_bam),
                (["-o", "out.bam", "--write-index"], of_bam),
                (["-o", "out.bam##idx##out.bai", "--write-index"], of_bam),
                (["-o", "out.bam##idx##elsewhere.csi", "--write-index"],
                 ["elsewhere.csi", *of_bam]),
                (["-o", "out.cram", *cram], of_cram),
                (["-o", "out.sam.gz"], ["out.sam.csi", "out.sam.gz.csi"]),
                (["-o", "out.sam"], []), (["-o", "other.bam"], []),
                (["-o", "other.bam", "--also", "out.bam"], of_bam)):
            with self.subTest(words=words):
                self.assertEqual(self.gone(*words), want)
                if "--write-index" not in words:
                    self.assertFalse(os.path.exists(self.path("out.bam.csi")) and
                                     "out.bam.csi" in want)

    def test_stale_index_beside_a_link_is_removed(self):
        os.symlink("elsewhere", self.path("out.bam"))
        self.assertEqual(self.gone("-o", "out.bam"), ["elsewhere.csi", "out.bai", "out.bam.bai",
                                                      "out.bam.csi", "out.csi"])

    def test_index_that_may_be_of_a_bcf_stays(self):
        """x.csi may be that of x.bcf."""
        self.write("out.bcf", "")
        self.assertEqual(self.gone("-o", "out.bam"), ["out.bai", "out.bam.bai", "out.bam.csi"])

    def test_failed_output_keeps_old_indexes(self):
        self.write("out.bam", "old")
        for fault in ("write:1:EIO:out.bam.rocksort", "rename:2:EIO:out.", "rename:5:EIO:out."):
            self.assertEqual(self.gone("-o", "out.bam", status=1, fault=fault), [])

    def test_stale_index_that_cannot_be_removed_is_warned_of(self):
        """An index of another user in a directory like /tmp: a warning."""
        self.write("out.bai", "old")
        result = self.sort_ok("-o", "out.bam", stdin=generate.odd(50, seed=1).encode(),
                              env=self.faulty("rename:1:EPERM:out.bai"))
        self.assertRegex(result.err, "warning: the index '[^']*out.bai' is older than '[^']*out.bam'")
