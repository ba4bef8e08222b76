"""What a reviewer who set out to lose records found, mostly by resuming: one test a fault.

Loads are cut off by a library that kills at a certain call (test_faults.py)."""

import gzip
import os
import pathlib
import shutil
import signal
import time
import unittest

import bamfile
import generate
from harness import RUN_LIMIT_S, SAMTOOLS, SPILL_BUDGET, CliTest, sam_split, wait_for
from test_faults import LIBRARY
from test_resume import ResumeTest


@unittest.skipUnless(os.access(LIBRARY, os.R_OK), f"no {LIBRARY}: make build/fault_inject.so")
class LostTest(ResumeTest):
    """Sorts that end at a certain call, with a store in `where`."""

    def faulty(self, fault):
        """The environment of a run with a fault."""
        return {"LD_PRELOAD": str(LIBRARY), "FAULT": fault,
                "ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")}

    def killed(self, fault, *args, **how):
        """A sort that is killed at a call: returns its store."""
        how.setdefault("budget", SPILL_BUDGET)
        result = self.rocksort("--no-PG", "-T", self.where, *args, clean=False,
                               env=self.faulty(fault), **how)
        self.assertEqual(result.status, -signal.SIGKILL, result.err)
        store, = self.stores()
        return store

    def cut_load(self, *args, n_runs=3, **how):
        """A sort of a file that is killed when so many runs are durable."""
        store = self.killed(f"link:{n_runs + 1}:kill:.sst", *args, "-o", self.path("out.bam"),
                            **how)
        self.assertEqual(self.state(store), "loading")
        return store


class Resumed(LostTest):
    """Stores that are resumed."""

    def test_synced(self):
        """What a process left that did not come to syncing it is synced by the next one."""
        source, report = self.source(), self.scratch / "report"
        store = self.cut_load(source)
        old = sorted(path.name for path in pathlib.Path(store).glob("db-0/*.sst"))[0]
        self.resume(store, env={**self.faulty(f"fsync:9999:EIO:/{old}"),
                                "FAULT_REPORT": str(report)})
        with open(report, encoding="ascii") as file:
            counts = dict(line.split() for line in file)
        self.assertEqual(int(counts["fault0"]), 1)

    def test_gap(self):
        """Runs behind one that is not there any more do not count, and nor do their numbers."""
        source = self.source()
        want = self.sort_bam("--no-PG", source)
        other = self.work / "other"
        other.mkdir()
        for lost in (0, 1):
            with self.subTest(lost=lost):
                self.killed("link:8:kill:.sst", "-T", other, "-o", self.path("out.bam"), source)
                stores = self.stores(self.where, other)
                databases = [os.path.join(store, "db-0") for store in stores]
                self.assertEqual([os.path.isdir(path) for path in databases], [True, True])
                shutil.rmtree(databases[lost])
                self.resume(stores[0])
                self.assert_same_bam(bamfile.read(self.path("out.bam")), want)
                self.assertEqual(self.stores(self.where, other), [])

    def test_killed_between_records(self):
        """Of several directories one may say already that all is there, and the others not yet."""
        sam = generate.odd(9000, seed=81).encode()
        want = self.sort_bam("--no-PG", stdin=sam)
        other = self.work / "other"
        other.mkdir()
        for number in (0, 1):
            with self.subTest(resumed=number):
                self.killed("openat:4:kill:STORE.new", "-T", other, "-o", self.path("out.bam"),
                            stdin=sam)
                stores = self.stores(self.where, other)
                self.assertEqual(sorted(self.state(store) for store in stores),
                                 ["loaded", "loading"])
                self.resume(stores[number])
                self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_replaced_while_opened(self):
        """The input was what it was, and the file that is opened then is another one."""
        source, other = self.source(), self.source(9001, name="other.bam")
        store = self.cut_load(source)
        process = self.start("--resume", store, env=self.faulty("open:1:1500ms:/in.bam"),
                             budget=SPILL_BUDGET)
        time.sleep(0.7)
        os.replace(other, source)
        self.assertEqual(process.wait(RUN_LIMIT_S), 1)
        self.assertIn("has changed since", process.stderr.read().decode())
        self.assertFalse(os.path.exists(self.path("out.bam")))

    def test_moved_while_it_is_written(self):
        """A sort that failed since its directory had been moved said that it could be finished."""
        for what in ("", "STORE"):
            with self.subTest(what=what):
                process = self.start("--no-PG", "-T", self.where, "-o", self.path("out.bam"),
                                     self.source(), budget=SPILL_BUDGET,
                                     env=self.faulty("link:3:1500ms:.sst,link:4:EIO:.sst"))
                wait_for(lambda: any(os.path.exists(f"{store}/run-0-000002.sst")
                                     for store in self.stores()), RUN_LIMIT_S, "runs")
                store, = self.stores()
                os.rename(os.path.join(store, what), self.path("moved"))
                _, err = process.communicate(timeout=RUN_LIMIT_S)
                self.assertEqual(process.returncode, 1, err)
                self.assertIn("cannot be resumed as it is: somebody has moved", err.decode())
                self.assertNotIn("--resume", err.decode())
                for path in (self.path("moved"), store):
                    if os.path.isdir(path):
                        shutil.rmtree(path)

    def test_labels_that_cannot_be_read(self):
        """Runs whose labels are not there do not count: they must not pass for such."""
        store = self.killed("link:6:kill:.sst", "-k", "-o", self.path("out.bam"),
                            stdin=generate.odd(9000, seed=81).encode())
        want = bamfile.parse_file(self.sort_ok("--resume", store, "--partial", "-k", "-o", "-",
                                               clean=False).out)
        n_failed = 0
        for number in range(24, 60, 2):
            result = self.rocksort("--resume", store, "--partial", "-k", "-o", "-", clean=False,
                                   env=self.faulty(f"pread:{number}:EIO:.sst"))
            n_failed += result.status
            if result.status == 0:
                self.assert_same_bam(bamfile.parse_file(result.out), want, number)
        self.assertGreater(n_failed, 5)

    def test_references_without_text(self):
        """A header may have its references in binary form alone."""
        whole = bamfile.read(self.source())
        lines = [line for line in whole.text.splitlines(keepends=True) if line[:3] != "@SQ"]
        source = self.write("in.bam", bamfile.bgzf(bamfile.bam_header("".join(lines), whole.refs) +
                                                   whole.records))
        want = self.sort_bam("--no-PG", source)
        for end in (self.cut_load, self.fails_in_merge):
            self.resume(end(source), "-o", self.path("out.bam"))
            self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_read_only_disk(self):
        """A store on a disk that had become so was none of rocksort's."""
        source = self.source()
        store = self.cut_load(source)
        result = self.rocksort("--resume", store, env=self.faulty("openat:1:EROFS:LOCK"),
                               clean=False)
        self.assert_error(result, store, "cannot be locked")
        for yes in ([], ["--yes"]):
            result = self.rocksort("--clean", self.where, *yes, clean=False,
                                   env=self.faulty("openat:1:EROFS:LOCK"))
            self.assert_error(result, store, "cannot be locked")
            self.assertEqual(result.out, b"")
        self.resume(store)

    def test_second_name(self):
        """A run is in the database when its first name is still there: the file that will have that
        name must be another one."""
        source = self.source()
        want = self.sort_bam("--no-PG", source)
        store = self.killed("unlink:1:kill:run-0-", "-o", self.path("out.bam"), source)
        self.assertGreater(os.stat(f"{store}/run-0-000000.sst").st_nlink, 1)
        self.resume(store)
        self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_pipe_that_ends_in_memory(self):
        """What of a file could stay in memory while it is merged must of a pipe be on the disk."""
        header, lines = sam_split(generate.odd(9000, seed=81))
        source = self.bam_of(header + "".join(line + "\n" for line in 5 * lines))
        want = self.sort_bam("--no-PG", source)
        with open(source, "rb") as file:
            bam = file.read()
        for how, state in (({"stdin": bam}, "loaded"), ({}, "loading")):
            with self.subTest(state=state):
                store = self.fails_in_merge("-s", "6M", "-" if how else source, budget=3_000_000,
                                            **how)
                self.assertEqual(self.state(store), state)
                self.resume(store, "-o", self.path("out.bam"))
                self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_nothing(self):
        """A part without any record is none."""
        store = self.killed("link:1:kill:.sst", "-k", "-o", self.path("out.bam"),
                            stdin=generate.odd(9000, seed=81).encode())
        self.assertEqual(self.state(store), "loading")
        result = self.rocksort("--resume", store, "--partial", "-o", self.path("none.bam"),
                               clean=False)
        self.assert_error(result, "none of its input")
        self.assertFalse(os.path.exists(self.path("none.bam")))

    def test_changed_reference(self):
        """The minimisers of the rest would be those of another reference."""
        fasta = self.write("ref.fa", ">r\n" + "ACGTTGCAACGTAGGT" * 40 + "\n")
        store = self.cut_load("-M", "-I", fasta, self.source())
        before = os.stat(fasta)
        os.utime(fasta)
        self.refused(store, "ref.fa", "has changed since")
        os.utime(fasta, ns=(before.st_atime_ns, before.st_mtime_ns))
        self.resume(store)

    def test_part_and_then_all(self):
        """--partial let the store pass as one that has all: resumed again it gave the same part,
        with exit status 0."""
        source = self.source()
        want = self.sort_bam("--no-PG", source)
        for fault in (False, True):
            with self.subTest(fails=fault):
                store = self.cut_load(source)
                out = "/dev/full" if fault else self.path("part.bam")
                result = self.rocksort("--resume", store, "--partial", "-k", "-o", out, clean=False,
                                       budget=SPILL_BUDGET)
                self.assertEqual(result.status, fault, result.err)
                self.assertIn("warning: the output will have the first ", result.err)
                self.assertEqual(self.state(store), "loading")
                self.resume(store, "-o", self.path("out.bam"))
                self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_part_onto_the_input(self):
        """--partial put a part of an input, which was to be sorted onto itself, in its place."""
        source = self.source()
        want = self.sort_bam("--no-PG", source)
        store = self.killed("link:4:kill:.sst", "-o", source, source)
        self.assertEqual(self.state(store), "loading")
        os.symlink(source, self.path("link"))
        for options in ([], ["-o", source], ["-o", self.path("link")]):
            with self.subTest(options=options):
                result = self.rocksort("--resume", store, "--partial", *options, clean=False)
                self.assert_error(result, f"a part of '{options[-1] if options else source}'")
                self.assertTrue(bamfile.looks_complete(source))
        self.rocksort("--resume", store, "--partial", "-k", "-o", self.path("part.bam"),
                      clean=False)
        self.assertTrue(bamfile.looks_complete(self.path("part.bam")))
        self.resume(store, "-o", source)
        self.assert_same_bam(bamfile.read(source), want)

    def test_no_space_for_the_record(self):
        """All of a pipe was on disk but could not be called complete: when the merge failed, too,
        all was removed."""
        sam = generate.odd(9000, seed=81).encode()
        want = self.sort_bam("--no-PG", stdin=sam)
        for n, state, options in (("2", "loaded", []), ("2+", "loading", ["--partial"])):
            with self.subTest(n=n):
                result = self.rocksort("--no-PG", "-T", self.where, "-o", "/dev/full", stdin=sam,
                                       env=self.faulty(f"openat:{n}:ENOSPC:STORE.new"),
                                       budget=SPILL_BUDGET, clean=False)
                self.assert_error(result, "/dev/full")
                self.assertEqual(result.err.count("tried again"), 1, result.err)
                store, = self.stores()
                self.assertIn(" ".join(["--resume", store, *options]) + "\n", result.err)
                self.assertEqual(self.state(store), state)
                self.resume(store, *options, "-o", self.path("out.bam"))
                self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_filter(self):
        """A filter, which is of inputs, dropped records of the rest and of nothing else."""
        source = self.source()
        want = self.sort_bam("--no-PG", source)
        store = self.cut_load(source)
        for option in ("filter=mapq>100", "required_fields=3"):
            self.refused(store, "--input-fmt-option", options=["--input-fmt-option", option])
        self.resume(store)
        self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_input_of_another_kind(self):
        """With the same size and time of change: SAM was read as if it were BAM, a crash."""
        source = self.source()
        store = self.cut_load(source)
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
                result = self.rocksort("--resume", store, clean=False, budget=SPILL_BUDGET)
                self.assert_error(result)
                self.assertNotIn("free()", result.err)
                self.assertFalse(os.path.exists(self.path("out.bam")))

    def test_input_without_a_name(self):
        """A removed file, as /dev/stdin: realpath finds none, which was "out of memory"."""
        sam = generate.odd(9000, seed=81).encode()
        want = self.sort_bam("--no-PG", stdin=sam)
        for source in (self.source(), self.write("in.sam", sam)):
            with open(source, "rb") as file:
                os.unlink(source)
                for budget in (None, SPILL_BUDGET):
                    with self.subTest(source=source, budget=budget):
                        self.assert_same_bam(self.sort_bam("--no-PG", "-o", "-", "/dev/stdin",
                                                           stdin=file, budget=budget), want)


class PowerFailure(LostTest):
    """Of a store only that is left which was synced, a file's bytes as a directory's names."""

    def setUp(self):
        super().setUp()
        self.synced, self.sam = self.work / "synced", generate.odd(9000, seed=81)
        self.synced.mkdir()

    def faulty(self, fault):
        return {**super().faulty(fault), "FAULT_SYNCED": str(self.synced),
                "ROCKSORT_TEST_DURABLE": "0"}

    def rebuild(self, name, path):
        """Makes what is left of a file or directory: empty if nothing of it was synced."""
        left = self.synced / name
        if name.startswith("d"):
            os.mkdir(path, 0o700)
            for line in left.read_text().splitlines() if left.exists() else ():
                self.rebuild(line.split(" ", 1)[0], os.path.join(path, line.split(" ", 1)[1]))
        else:
            pathlib.Path(path).write_bytes(left.read_bytes() if left.exists() else b"")
            os.chmod(path, 0o600)

    def power_fails(self, store):
        """The power fails."""
        names = [path.name for path in self.synced.glob(f"d-{os.stat(store).st_ino}-*")]
        shutil.rmtree(store)
        self.assertLessEqual(len(names), 1)
        self.rebuild(*names or ["d"], store)

    def forget(self):
        """What was synced by earlier sorts."""
        for path in self.synced.iterdir():
            path.unlink()

    def test_runs(self):
        """A run counts when its name, that of its database, and all that names it are synced: the
        database was in a directory that nobody synced until all had been read."""
        for n_dirs in (1, 2):
            with self.subTest(directories=n_dirs):
                more = ["-T", self.where / "b"] * (n_dirs - 1)
                (self.where / "b").mkdir(exist_ok=True)
                self.forget()
                self.rocksort("--no-PG", "-k", "-T", self.where, *more, "-o", self.path("out.bam"),
                              stdin=self.sam.encode(), env=self.faulty("link:6:kill:.sst"),
                              budget=SPILL_BUDGET, clean=False)
                stores = self.stores(self.where, self.where / "b")
                self.assertEqual(len(stores), n_dirs)
                self.sort_ok("--resume", stores[0], "--partial", "-k", "-o", self.path("want.bam"),
                             clean=False)
                for store in stores:
                    self.power_fails(store)
                self.resume(stores[0], "--partial", "-o", self.path("out.bam"))
                want = bamfile.read(self.path("want.bam"))
                self.assertGreater(len(want.records), 100_000)
                self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_any_moment(self):
        """Finished rightly, or refused."""
        source = self.source()
        want = self.sort_bam("--no-PG", source)
        for kind, numbers in (("fsync", (1, 2, 5, 9, 14, 20)), ("fdatasync", (1, 3, 8, 15))):
            for number in numbers:
                with self.subTest(kind=kind, number=number):
                    self.forget()
                    store = self.killed(f"{kind}:{number}:kill", "-o", self.path("out.bam"), source)
                    self.power_fails(store)
                    result = self.rocksort("--resume", store, "-o", self.path("out.bam"),
                                           clean=False)
                    if result.status:
                        self.assert_error(result, "cannot resume")
                        shutil.rmtree(store)
                    else:
                        self.assert_same_bam(bamfile.read(self.path("out.bam")), want)


class Early(ResumeTest):
    """With -k what came before an error of an input that cannot be read again is kept."""

    def setUp(self):
        super().setUp()
        sam = generate.odd(9000, seed=81)
        self.lines = sam.splitlines(keepends=True)
        self.n_header = sum(line.startswith("@") for line in self.lines)
        bam = bamfile.read(self.bam_of(sam))
        self.head, self.records = bamfile.bam_header(bam.text, bam.refs), bamfile.split(bam.records)

    def first(self, count):
        """The first records as BAM, uncompressed."""
        return self.head + b"".join(self.records[:count])

    def check(self, data, count, *options, budget=None):
        """The sort fails, and its store gives the first `count` records."""
        out = self.path("out.bam")
        result = self.rocksort("--no-PG", "-k", "-T", self.where, *options, "-o", out, stdin=data,
                               budget=budget, clean=False)
        self.assert_error(result, "standard input")
        self.assertFalse(os.path.exists(out))
        store, = self.stores()
        self.assertIn(f"--resume {store} --partial", result.err)
        self.assertEqual(self.state(store), "partial")
        self.refused(store, "--partial")
        for i in (0, 1):        # the first fails
            to = "/dev/full" if i == 0 else out
            result = self.rocksort("--resume", store, "--partial", "-o", to, clean=False)
            self.assertEqual(result.status, 1 - i, result.err)
            self.assertIn(f"the first {count} records", result.err)
            self.assertEqual(self.state(store), None if i else "partial")
        want = self.sort_bam("--no-PG", *options, stdin=bamfile.bgzf(self.first(count)))
        self.assert_same_bam(bamfile.read(out), want)
        os.unlink(out)

    def test_truncated(self):
        """Within a record; within a BGZF block: of the blocks before, nothing is lost."""
        for count in (2, 3000, 7000):
            for options, budget in (([], None), (["-n"], SPILL_BUDGET),
                                    (["-@", "3"], SPILL_BUDGET)):
                with self.subTest(count=count, options=options, budget=budget):
                    cut = self.first(count) + self.records[count][:30]
                    self.check(bamfile.bgzf(cut), count, *options, budget=budget)
                    blocks = b"".join(bamfile.bgzf_blocks(cut))
                    self.check(blocks + bamfile.bgzf(os.urandom(1000))[:40], count, *options,
                               budget=budget)
                    self.check(cut, count, *options, budget=budget)

    def test_damaged(self):
        """Those in front of a damaged one in the same piece were lost."""
        for count in (2, 3000, 7000):
            for budget in (None, SPILL_BUDGET):
                with self.subTest(count=count, budget=budget):
                    self.check(bamfile.bgzf(self.first(count) + b"\3\0\0\0" + bytes(90000)), count,
                               budget=budget)

    def test_text(self):
        for count in (2, 3000, 7000):
            for options, budget in (([], None), (["-@", "3"], SPILL_BUDGET)):
                with self.subTest(count=count, options=options, budget=budget):
                    lines = self.lines[: self.n_header + count] + ["no record\n"] + self.lines[-99:]
                    self.check("".join(lines).encode(), count, *options, budget=budget)

    def test_filtered(self):
        """htslib reads the records: those before the end of its last whole block, at least."""
        cut = self.first(7000) + self.records[7000][:30]
        self.check(bamfile.bgzf(cut), 7000, "--input-fmt-option", "filter=mapq>=0",
                   budget=SPILL_BUDGET)


class Clean(LostTest):
    """--clean"""

    def clean(self, *args, **how):
        """Runs it."""
        return self.run_program([SAMTOOLS, "rocksort", "--clean", *args], **how)

    def test_without_locks(self):
        """On a file system that has none a store that was in use was removed."""
        source = self.source()
        store = self.fails_in_merge(source)
        for errno in ("ENOLCK", "ENOTSUP", "EINVAL"):
            with self.subTest(errno=errno):
                result = self.clean(self.where, "--yes", env=self.faulty(f"flock:1+:{errno}"))
                self.assert_error(result, store, "locks")
                self.assertIn(f"{store}\n", result.out.decode())
                result = self.clean(self.where, env=self.faulty(f"flock:1+:{errno}"))
                self.assertEqual((result.status, result.err), (0, ""))
        want = self.sort_bam("--no-PG", source)
        self.resume(store, "-o", self.path("out.bam"), env=self.faulty("flock:1+:ENOLCK"))
        self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_slash(self):
        """As shells complete it."""
        store = self.fails_in_merge(self.source())
        self.assertIn(store, self.clean(store + "/").out.decode())
        self.assertIn("removed", self.clean(store + "//", "--yes").out.decode())
        self.assertEqual(self.stores(), [])

    def test_names(self):
        """One line each, without what a terminal acts on."""
        store = self.fails_in_merge(self.source())
        os.rename(store, self.where / ("a\nb\033[31m" + "c.rocksort.1.abcdef"))
        out = self.clean(self.where).out.decode()
        self.assertEqual(out.count("\n"), 1)
        self.assertNotIn("\033", out)
        out = self.clean(self.where, "--yes").out.decode()
        self.assertRegex(out, "c.rocksort.1.abcdef, removed\n")
        self.assertEqual(self.stores(), [])
        self.assertEqual(self.clean(f"{self.where}/a\nb").err.count("\n"), 1)


class OntoItself(LostTest):
    """An input that is the output, where nothing can be made beside it: it is written as it
    stands. What was in memory, or in a store that said to read the input again, was lost."""

    def setUp(self):
        super().setUp()
        self.file = self.source()
        self.want = self.sort_bam("--no-PG", self.file)
        for path, mode in ((self.work.parent, 0o711), (self.work, 0o555), (self.where, 0o777),
                           (self.scratch, 0o777), (self.file, 0o666)):
            os.chmod(path, mode)
        self.addCleanup(os.chmod, self.work, 0o755)
        self.user = []
        if os.geteuid() == 0:
            self.user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
            if not shutil.which("setpriv"):
                self.skipTest("root may write everywhere")

    def as_user(self, *args, **how):
        """Runs rocksort as somebody who may not write in work."""
        return self.run_program([*self.user, SAMTOOLS, "rocksort", "--no-PG", *args], **how)

    def test_good(self):
        for place in (["-T", self.where], []):
            for budget in (None, SPILL_BUDGET):
                result = self.as_user(*place, "-o", self.file, self.file, budget=budget)
                self.assertEqual(result.status, 0, result.err)
                self.assert_same_bam(bamfile.read(self.file), self.want)
                self.assertEqual((self.stores(), os.listdir(self.scratch)), ([], []))

    def test_killed(self):
        with open(self.file, "rb") as file:
            before = file.read()
        for budget in (None, SPILL_BUDGET):
            for action in ("EIO", "kill", "term"):
                with open(self.file, "wb") as file:
                    file.write(before)
                with self.subTest(budget=budget, action=action):
                    result = self.as_user("-T", self.where, "-o", self.file, self.file,
                                          budget=budget,
                                          env=self.faulty(f"write:2:{action}:{self.file}"))
                    self.assertNotEqual(result.status, 0)
                    store, = self.stores()
                    result = self.as_user("--resume", store)
                    self.assertEqual(result.status, 0, result.err)
                    self.assert_same_bam(bamfile.read(self.file), self.want)

    def test_durable(self):
        """What nothing else has is on the disk from the beginning."""
        report = self.scratch / "report"
        self.as_user("-T", self.where, "-o", self.file, self.file,
                     env={**self.faulty("fsync:9999:EIO:.sst,fdatasync:9999:EIO:.sst"),
                          "FAULT_REPORT": str(report)})
        with open(report, encoding="ascii") as file:
            counts = dict(line.split() for line in file)
        self.assertGreater(int(counts["fault0"]) + int(counts["fault1"]), 0)

    def test_no_place(self):
        """Then it is left alone."""
        with open(self.file, "rb") as file:
            before = file.read()
        for budget in (None, SPILL_BUDGET):
            result = self.as_user("-T", self.where, "-o", self.file, self.file, budget=budget,
                                  env=self.faulty("openat:1+:ENOSPC:STORE.new"))
            self.assert_error(result, self.file, "another output")
            with open(self.file, "rb") as file:
                self.assertTrue(file.read() == before)


class Index(LostTest):
    """Outputs with an index."""

    def test_killed_before_the_index(self):
        """The index of what the file was before stayed beside the new output."""
        for words, index in ((["out.bam"], "out.bam.csi"), (["out.bam##idx##out.bai"], "out.bai"),
                             (["out.cram", "-O", "cram,no_ref=1"], "out.cram.crai")):
            out = self.path(words[0].split("##")[0])
            words = ["--write-index", "--no-PG", "-o", *words]
            self.sort_ok(*words, stdin=generate.odd(100, seed=1).encode())
            with open(out, "rb") as file:
                before = file.read()
            self.assertTrue(os.path.exists(self.path(index)))
            result = self.rocksort(*words, stdin=generate.odd(200, seed=2).encode(),
                                   env=self.faulty(f"rename:1:kill:{index}"))
            with self.subTest(index=index):
                self.assertEqual(result.status, -signal.SIGKILL)
                with open(out, "rb") as file:
                    self.assertTrue(file.read() != before)
                self.assertFalse(os.path.exists(self.path(index)))


class Closed(CliTest):
    """Standard streams that are closed when the program starts: files got their numbers."""

    def with_closed(self, streams, *args, budget=SPILL_BUDGET):
        """Runs rocksort without these streams."""
        shell = " ".join({0: "<&-", 1: ">&-", 2: "2>&-"}[number] for number in streams)
        return self.run_program(["sh", "-c", f'exec "$0" "$@" {shell}', SAMTOOLS, "rocksort",
                                 *args], budget=budget)

    def test_output(self):
        """The output went into a temporary file, with exit status 0."""
        source = self.bam_of(generate.odd(9000, seed=81))
        with open(source, "rb") as file:
            before = file.read()
        for streams in ((1,), (0, 1), (1, 2), (0, 1, 2)):
            for args in (("--no-resume",), ("--no-resume", "-o", "/dev/stdout"),
                         ("--checksum-only",)):
                with self.subTest(streams=streams, args=args):
                    result = self.with_closed(streams, *args, source)
                    self.assertEqual(result.status, 1, result.err)
                    if 2 not in streams:
                        self.assert_one_message(result)
                    self.assertEqual(os.listdir(self.scratch), [])
        with open(source, "rb") as file:
            self.assertTrue(file.read() == before)

    def test_input(self):
        """No other file is read in its place."""
        for streams in ((0,), (0, 1), (0, 1, 2)):
            with self.subTest(streams=streams):
                out = self.path("out.bam")
                self.assertEqual(self.with_closed(streams, "-o", out).status, 1)
                self.assertFalse(os.path.exists(out))

    def test_others(self):
        """Messages go nowhere, and the output is right."""
        source = self.bam_of(generate.odd(9000, seed=81))
        want = self.sort_bam("--no-PG", source)
        for streams in ((0,), (1,), (2,), (0, 2), (1, 2), (0, 1), (0, 1, 2)):
            with self.subTest(streams=streams):
                out = self.path("out.bam")
                result = self.with_closed(streams, "--no-PG", "--verbosity", "9", "-o", out, source)
                self.assertEqual(result.status, 0, result.err)
                self.assert_same_bam(bamfile.read(out), want)
                os.unlink(out)
