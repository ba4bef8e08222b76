"""Calls that fail one at a time (reads, writes, allocations and others), bytes that change, and
signals at the worst moment.

Needs build/fault_inject.so (test/fault/fault_inject.c), which `make check` builds. The sweep here
is a short form of `make fault-sweep`.
"""

import contextlib
import gzip
import io
import os
import shutil
import pathlib
import signal
import subprocess
import sys
import unittest

import bamfile
import generate
from harness import (DIE_LIMIT_S, LIBRARY, ROOT, SAMTOOLS, SAMTOOLS_ROCKSORT, SLOW, SPILL_BUDGET,
                     CliTest, bytes_of, ends_at_once, kept_checkpoints, needs_faults, sanitized,
                     text_of)

sys.path.insert(0, str(ROOT / "test"))
import fault_sweep  # noqa: E402


@needs_faults
class FaultTest(CliTest):
    """Runs in which a chosen call fails, and their input."""

    sam = None

    def setUp(self):
        super().setUp()
        if FaultTest.sam is None:
            FaultTest.sam = generate.odd(6000, seed=11)
        self.source = self.write("in.sam", self.sam)

    def with_fault(self, fault, *args, budget=SPILL_BUDGET, clean=True):
        env = self.faulty(fault)
        if "alloc:" in fault or ":abort" in fault:
            env.update(ends_at_once())
        return self.rocksort(*args, self.source, budget=budget, env=env, clean=clean)

    def calls(self, *args, budget=SPILL_BUDGET, of=""):
        """{kind: number of calls} of a run without faults, or, if `of` is KIND:PART, the number of
        calls of this kind whose path contains PART."""
        report = self.path("report")
        kind, _, part = of.partition(":")
        env = self.faulty(f"{kind}:1000000:EIO:{part}" if of else "", FAULT_REPORT=report)
        if not of:
            del env["FAULT"]
        self.sort_ok(*args, self.source, budget=budget, env=env)
        if of:
            return self.n_faults(report)[0]
        return {kind: int(n) for kind, n in (line.split() for line in text_of(report).splitlines())}

    def check_flips_are_found(self, *args, step, budget=SPILL_BUDGET):
        """A bit changes in every step-th share of the reads of files without a name. A run that
        makes fewer of these calls than the first one did is right, and says so by its count."""
        of = "pread:(deleted)"
        n = self.calls(*args, budget=budget, of=of)
        self.assertGreater(n, 10)
        report, output = self.path("report"), args[args.index("-o") + 1]
        n_found = 0
        for number in range(1, n + 1, max(1, n // step)):
            pathlib.Path(output).unlink(missing_ok=True)
            env = self.faulty(f"pread:{number}:flip:(deleted)", FAULT_REPORT=report)
            result = self.rocksort(*args, self.source, budget=budget, env=env)
            if result.status == 0:
                self.assertLess(self.n_faults(report)[0], number, result.err)
                continue
            self.assert_error(result, "temporary data", "damaged")
            self.assertFalse(os.path.exists(output))
            n_found += 1
        self.assertGreater(n_found, step // 2)


class Sweep(FaultTest):
    """Some calls of each kind fail."""

    def test_each_failed_call_is_refused_or_resumed(self):
        few = ["--most", "2", "--scenarios", "memory,spill,compact"]
        if sanitized():     # failed allocations do not reach our own handler
            few = ["--most", "1", "--scenarios", "spill", "--without", "realloc,posix_memalign"]
        args = fault_sweep.parse_args(["--program", SAMTOOLS_ROCKSORT, "--library", str(LIBRARY),
                                       "--limit", str(60 * SLOW), "--quiet", *few])
        with contextlib.redirect_stdout(io.StringIO()) as out:
            sweep, good = fault_sweep.run(args)
        self.assertTrue(good, out.getvalue())
        # The sweep must have covered these kinds of calls.
        met = {kind for _, kind in sweep.tally}
        self.assertLessEqual({"read", "write", "open", "rename", "malloc", "pthread_create", "mmap",
                              "fsync"}, met)
        # Runs that were resumed had failed first, so that both count as failures. There are fewer
        # with sanitizers, which handle some failed allocations themselves: these kinds are not
        # swept then.
        self.assertGreater(sweep.ends["refused"] + sweep.ends["resumed"], 15 if sanitized() else 20)


class Aborts(FaultTest):
    """A failed assert of a library ends the sort with a message that names the right library."""

    def test_abort_in_rocksdb_blames_its_disk(self):
        result = self.with_fault("write:2:abort:.sst", "-o", self.path("out.bam"))
        self.assert_error(result, "RocksDB has given up", "disk of the temporary data")

    def test_abort_in_the_cram_encoder_blames_htslib(self):
        """This was blamed on RocksDB and its disk."""
        for budget in (None, SPILL_BUDGET):
            result = self.with_fault("write:4:abort:socket", "-@", "2", "-O",
                                     "cram,no_ref=1,seqs_per_slice=100", "-o",
                                     self.path("out.cram"), budget=budget)
            self.assert_error(result, "out.cram", "htslib, which encodes CRAM, gave up",
                              "in the records up to", "-O bam")
            self.assertNotIn("RocksDB", result.err)
            self.assert_no_result(self.path("out.cram"))

    def test_abort_in_our_own_code_blames_nobody_else(self):
        """Nobody else is blamed."""
        result = self.with_fault("rename:1:abort:out.bam", "-o", self.path("out.bam"), budget=None)
        self.assert_error(result, "the program has given up", "please report this")


class Flips(FaultTest):
    """Changed bytes of the temporary data are detected."""

    def check(self, fault, *args):
        """The run ends with status 1 and no output, or with the right output if the changed byte
        does not matter."""
        out = self.path("out.bam")
        result = self.with_fault(fault, "--no-PG", *args, "-o", out)
        with self.subTest(fault=fault, args=args):
            if result.status == 0:
                self.assert_same_records(bamfile.read(out).records, self.want.records)
                os.unlink(out)
            else:
                # A RocksDB that is built with asserts may print a message of its own.
                err = "".join(line for line in result.err.splitlines(keepends=True)
                              if "Assertion" not in line)
                self.assert_error(result._replace(err=err))
                self.assertFalse(os.path.exists(out))
        return result

    def test_byte_changed_on_the_disk_is_found(self):
        self.want = self.sort_bam("--no-PG", self.source)
        out = self.path("out.bam")
        n_failed = 0
        for codec in ("none", "lz4"):
            options = ("--no-PG", "--temp-codec", codec)
            n_reads = self.calls(*options, "-o", out, of="pread:.sst")
            os.unlink(out)
            # The merge makes the second half of the reads; it needs most of these bytes.
            parts = (0.01, 0.5, 0.6, 0.7) if sanitized() else (0.01, 0.1, 0.3, 0.5, 0.6, 0.7, 0.8)
            for part in parts:
                result = self.check(f"pread:{int(n_reads * part) + 1}:flip:.sst", *options[1:])
                n_failed += result.status
        self.assertGreater(n_failed, 2)

    def test_byte_changed_in_memory_after_its_checksum_is_found(self):
        self.want = self.sort_bam("--no-PG", self.source)
        told = [self.check(f"LZ4_decompress_safe:{number}:flip", "--temp-codec", "lz4")
                for number in (1, 2, 3, 5, 8)]
        self.assertEqual([result.status for result in told], [1] * 5)
        self.assertTrue(any("the output differs from the input" in result.err for result in told),
                        told)

    def test_records_that_change_places_are_found(self):
        source = self.write("reads.sam", generate.reads(3000, generate.reference()))
        out = self.path("out.bam")
        for order in ([], ["-n"], ["-t", "NM"], ["--shuffle=5"]):
            for number in (2, 5):
                with self.subTest(order=order, number=number):
                    result = self.rocksort("--temp-codec", "lz4", *order, "-o", out, source,
                                           budget=SPILL_BUDGET,
                                           env=self.faulty(f"LZ4_decompress_safe:{number}:swap"))
                    self.assert_error(result, "would not be in order")
                    self.assertFalse(os.path.exists(out))

    def test_byte_changed_in_memory_is_found_by_resume(self):
        result = self.with_fault("pwrite:1:EIO:none", "--temp-codec", "lz4", "-T", self.work, "-o",
                                 "/dev/full", clean=False)
        checkpoint, = kept_checkpoints(result.err)
        told = [self.rocksort("--resume", checkpoint, "-o", self.path("out.bam"), clean=False,
                              env=self.faulty(f"LZ4_decompress_safe:{number}:flip"))
                for number in (1, 2, 3, 5, 8)]
        self.assertEqual([result.status for result in told], [1] * 5)
        self.assertFalse(os.path.exists(self.path("out.bam")))
        self.assertTrue(any("records, or other records" in result.err for result in told), told)

    def test_damaged_checkpoint_offers_only_to_sort_again(self):
        result = self.with_fault("pwrite:1:EIO:none", "-T", self.work, "-o", "/dev/full",
                                 clean=False)
        checkpoint, = kept_checkpoints(result.err)
        self.assertIn("to finish: ", result.err)
        for path in pathlib.Path(checkpoint).glob("db-*/*.sst"):
            with open(path, "r+b") as file:
                file.seek(path.stat().st_size // 3)
                byte, = file.read(1)
                file.seek(-1, os.SEEK_CUR)
                file.write(bytes([byte ^ 1]))
        result = self.rocksort("--resume", checkpoint, "-o", self.path("out.bam"), clean=False)
        self.assert_error(result, "are damaged: ")
        self.assertIn("to try once more: ", result.err)
        self.assertEqual(kept_checkpoints(result.err), [checkpoint])


class Signals(FaultTest):
    """SIGTERM while a file is being made and the thread that cleans up is slow: the file must not
    appear after the clean-up."""

    def check(self, fault, *args):
        """The signal ends the run, and no incomplete file is left. (On a slow machine the signal
        can come late: then files, or the whole run, may be complete.)"""
        process = self.start("-T", self.scratch, *args, self.source, budget=SPILL_BUDGET,
                             stdin=subprocess.DEVNULL, env=self.faulty(fault + ",rmdir:1:800ms"))
        err = process.communicate(timeout=DIE_LIMIT_S + 20 * SLOW)[1]
        self.drop_kept(err if isinstance(err, str) else (err or b"").decode(errors="replace"))
        left = set(os.listdir(self.work)) - {"in.sam"}
        with self.subTest(fault=fault, args=args, status=process.returncode):
            self.assertIn(process.returncode, (0, -signal.SIGTERM, 128 + signal.SIGTERM))
            self.assertEqual([name for name in left if name.endswith(".tmp")], [])
            self.assertEqual(os.listdir(self.scratch), [])
            if "out.bam" in left:
                self.assertTrue(bamfile.looks_complete(self.path("out.bam")))
        for name in left:
            os.unlink(self.path(name))

    def test_signal_while_a_file_is_made_leaves_no_incomplete_file(self):
        out, cram = self.path("out.bam"), self.path("out.cram")
        self.check("open:1:term:.bam.rocksort", "-o", out)
        for index in ("csi", "bai"):        # made after the sorted file
            self.check(f"open:1:term:.{index}.rocksort", "--write-index", "-o",
                       f"{out}##idx##{out}.{index}")
        # htslib itself opens the index of a CRAM, by its name.
        for fault in ("open:1:term:.cram.rocksort", "open:1:term:.crai", "open:2:term:.crai"):
            self.check(fault, "-O", "cram,no_ref=1", "--write-index", "-o", cram)


class Fsync(FaultTest):
    """--fsync syncs the output file, and then its directory."""

    def test_fsync_syncs_file_and_directory(self):
        """Two syncs for the output and two for its index: of the file and of the directory. None
        without the option, or if the output is no regular file."""
        def syncs(*args):
            return self.calls(*args, budget=None)["fsync"]

        out = ["--write-index", "-o", self.path("out.bam")]
        self.assertEqual(syncs(*out), 0)
        self.assertEqual(syncs("--fsync", *out), 4)
        self.assertEqual(syncs("--fsync", "-o", "/dev/null"), 0)
        self.assertEqual(syncs("--fsync"), 0)

    def test_file_that_cannot_be_synced_is_an_error(self):
        out = self.path("out.bam")
        for error in ("EIO", "EINVAL"):
            result = self.with_fault(f"fsync:1:{error}:out.bam", "--fsync", "-o", out, budget=None)
            self.assert_error(result, "out.bam", "disk")
            self.assertEqual(os.listdir(self.work), ["in.sam"])

    def test_file_whose_directory_cannot_be_synced_stays(self):
        """If the directory cannot be synced, the file stays, because it is complete."""
        out = self.path("out.bam")
        result = self.with_fault("fsync:2:EIO", "--fsync", "-o", out, budget=None)
        self.assert_error(result, "out.bam", "complete")
        self.assertTrue(bamfile.looks_complete(out))


class Durable(FaultTest):
    """When temporary data are synced: ROCKSORT_TEST_DURABLE seconds after the first run."""

    DELAY = "open:1:2500ms:.tmp"     # delays the merge until syncing has begun
    AT_ONCE = "fsync:1+:skip,fdatasync:1+:skip"     # on a busy disk, syncs last longer than DELAY

    def n_syncs(self, *args, seconds=None, fault=None):
        """How many syncs of runs a sort makes; it may have a fault as well."""
        report = self.path("report")
        counted = "fsync:1000000:EIO:.sst,fdatasync:1000000:EIO:.sst"
        faults = [counted, *([fault] if fault else []), self.AT_ONCE]
        env = self.faulty(",".join(faults), FAULT_REPORT=report)
        if seconds is not None:
            env["ROCKSORT_TEST_DURABLE"] = str(seconds)
        self.sort_ok("--no-PG", "-o", self.path("out.bam"), *args, self.source,
                     budget=SPILL_BUDGET, env=env, clean="-k" not in args)
        return sum(self.n_faults(report)[:2])

    def test_first_runs_are_synced_only_with_keep(self):
        self.assertEqual(self.n_syncs(), 0)
        self.assertEqual(self.n_syncs("-@", "3", "-s", "2M"), 0)
        at_once = self.n_syncs(seconds=0)
        self.assertGreater(at_once, 4)
        later = self.n_syncs(seconds=1, fault=self.DELAY)
        self.assertGreater(later, 1)
        self.assertLess(later, at_once / 2 + 1)
        self.assertEqual(self.n_syncs("--no-resume", seconds=1, fault=self.DELAY), 0)
        self.assertGreater(self.n_syncs("-k", "-T", self.path("kept")), 1)

    def test_run_that_goes_before_its_sync_is_no_error(self):
        """It is no error if the sort ends and removes a run before it is synced."""
        self.assertEqual(self.n_syncs(seconds=1, fault=self.DELAY + ",openat:1+:ENOENT:.sst"), 0)

    def test_sort_fails_if_a_sync_fails(self):
        result = self.rocksort("-o", self.path("out.bam"), self.source, budget=SPILL_BUDGET,
                               clean=False, env={
                                   **self.faulty(f"{self.DELAY},fsync:1:EIO:.sst,{self.AT_ONCE}"),
                                   "ROCKSORT_TEST_DURABLE": "1"})
        self.assertEqual(result.status, 1)
        self.assertIn("cannot write temporary data", result.err)
        self.assertFalse(os.path.exists(self.path("out.bam")))
        self.drop_kept(result.err)

    def test_sort_whose_manifest_cannot_be_synced_is_resumed(self):
        """If the manifest cannot be synced, RocksDB removes the run that was being added, although
        its manifest may already name that run. --resume reads these records again."""
        want = self.sort_bam("--no-PG", self.source)
        source, out = self.bam_of(self.sam), self.path("out.bam")
        n_kept = 0
        for number in range(1, 9):
            env = dict(self.faulty(f"fdatasync:{number}:EIO:MANIFEST"), ROCKSORT_TEST_DURABLE="0")
            result = self.rocksort("--no-PG", "-o", out, source, budget=SPILL_BUDGET, env=env,
                                   clean=False)
            for checkpoint in kept_checkpoints(result.err):
                n_kept += 1
                with self.subTest(number=number):
                    self.sort_ok("--resume", checkpoint, "-o", out, clean=False)
                    self.assert_same_records(bamfile.read(out).records, want.records)
        self.assertGreater(n_kept, 1)


class Input(FaultTest):
    """A read of the input fails."""

    def test_failed_read_is_not_the_end_of_the_input(self):
        bam = self.path("in.bam")
        self.sort_ok("--no-PG", "-n", "-o", bam, self.source)
        self.source = bam
        want = self.sort_bam("--no-PG", bam)
        out = self.path("out.bam")
        for number in range(1, self.calls("-o", "/dev/null")["read"] + 1):
            result = self.with_fault(f"read:{number}:EIO:in.bam", "--no-PG", "-o", out)
            with self.subTest(number=number):
                if result.status:
                    self.assert_error(result)
                    self.assertFalse(os.path.exists(out))
                else:
                    self.assertEqual(bamfile.read(out), want)
                    os.unlink(out)


class Output(FaultTest):
    """A call for the output fails."""

    def test_file_that_cannot_be_removed_is_named(self):
        out = self.path("out.bam")
        result = self.with_fault("write:1+:ENOSPC:.tmp,unlink:1:EPERM:.tmp", "-T", self.scratch,
                                 "-o", out)
        self.assert_error(result, "out.bam")
        left = [name for name in os.listdir(self.work) if name.endswith(".tmp")]
        self.assertEqual(len(left), 1)
        self.assertIn(left[0], result.err)

    def test_any_failed_write_of_the_output_is_an_error(self):
        """Each write of the output fails once, including the last ones, which closing the file
        makes. The number of writes of a CRAM is found by trying: its threads write in pieces that
        differ from run to run."""
        report = self.path("report")
        for name in ("out.bam", "out.sam.gz", "out.cram"):
            options = ["--no-PG", "-O", "cram,no_ref=1"] if name == "out.cram" else ["--no-PG"]
            out, number, is_made = self.path(name), 1, True
            while is_made:
                result = self.rocksort(*options, "-o", out, self.source, env=self.faulty(
                    f"write:{number}:ENOSPC:.tmp", FAULT_REPORT=report))
                is_made = self.n_faults(report)[0] >= number
                with self.subTest(name=name, number=number, is_made=is_made):
                    self.assertEqual(result.status, is_made, result.err)
                    self.assertEqual(os.path.exists(out), not is_made)
                number += 1
            self.assertGreater(number, 3)

    def test_full_standard_output_is_an_error_of_all_commands(self):
        self.sort_ok("-o", self.path("out.sam"), self.source)
        for words in (["--version"], ["--help"], ["--checksum-only", self.source],
                      ["--verify", "out.sam"], ["--plan", self.source]):
            for target in ("/dev/full", "&-")[: 1 + ("--checksum-only" in words)]:
                with self.subTest(words=words, target=target):
                    script = f'exec "$0" rocksort "$@" >{target}'
                    result = self.run_program(["/bin/sh", "-c", script, SAMTOOLS, *words])
                    self.assert_error(result, "standard output")


class NoMemory(FaultTest):
    """An allocation fails."""

    @unittest.skipIf(sanitized(), "the sanitizer's allocator is called first")
    def test_plan_without_memory_has_one_message(self):
        """Without memory --plan succeeds or prints one message. An exception of RocksDB once ended
        it."""
        n_refused = 0
        for number in range(1, 200, 3):
            result = self.with_fault(f"malloc:{number}:ENOMEM", "--plan", "-T", self.scratch)
            if result.status:
                self.assert_error(result, "out of memory")
                n_refused += 1
            self.assertEqual(os.listdir(self.scratch), [])
        self.assertGreater(n_refused, 10)

    @unittest.skipIf(sanitized(), "its own allocator is asked first")
    def test_sort_without_memory_at_its_end_does_not_crash(self):
        """When the output is complete and the sort closes what it has. Cleaning up once crashed
        there: the names of the directories had been given away, or all was freed."""
        out = self.path("out.bam")
        usual = ["-@", "1", "-T", self.scratch, "-o", out]
        n = self.calls(*usual)["malloc"]
        # RocksDB's threads allocate, too: another run makes some hundred calls more or fewer.
        numbers = [*range(n - 400, n - 120, 20), *range(n - 120, n + 1, 5)]
        for args in (["-k", *usual], usual):
            n_refused = 0
            for number in numbers:
                result = self.with_fault(f"malloc:{number}:ENOMEM", *args, clean=False)
                with self.subTest(args=args, number=number, of=n):
                    self.assertIn(result.status, (0, 1), result.err)
                n_refused += result.status
                for checkpoint in os.listdir(self.scratch):
                    shutil.rmtree(os.path.join(self.scratch, checkpoint))
            self.assertGreater(n_refused, 5)

    def test_line_without_memory_is_not_called_damaged(self):
        """If memory is short, no message says that the SAM is damaged. (A failed allocation ends a
        sort at once, but not with sanitizers, and not --plan.)"""
        out = self.path("out.bam")
        sam = generate.odd(200)
        header = "".join(line for line in sam.splitlines(True) if line.startswith("@"))
        for args in (["--plan"], ["--no-PG", "-o", out]):
            self.source = self.write("header.sam", header)
            first = self.calls(*args, budget=None)["realloc"] // 2
            self.source = self.write("lines.sam", sam)
            told = []
            for number in range(first, self.calls(*args, budget=None)["realloc"] + 1):
                result = self.with_fault(f"realloc:{number}:ENOMEM", *args, budget=None)
                if sanitized() and "Sanitizer: CHECK failed" in result.err:
                    continue    # the sanitizer could not allocate the stack of a thread
                with self.subTest(args=args, number=number):
                    self.assertNotRegex(result.err, r"record \d+ .* is damaged")
                    if result.status:
                        self.assert_error(result)
                        told.append("out of memory; give less" in result.err)
            self.assertGreater(sum(told), 8)


class TemporaryData(FaultTest):
    """A call for the temporary data fails."""

    def test_read_error_among_long_keys_is_an_error(self):
        """One of the reads of the merge fails; keys share their first 600 bytes."""
        lines = (f"r{i}\t4\t*\t0\t0\t*\t*\t0\t0\t*\t*\tXX:Z:{value}\n"
                 for i, value in enumerate(f"{'a' * 600}{k * 7919 % 3000:04}" for k in range(3000)))
        self.source = self.write("in.sam", "".join(lines))
        args = ["-t", "XX", "-@", "1", "-T", self.scratch, "-o", self.path("out.bam"),
                "--no-resume"]
        n = self.calls(*args, budget=60_000, of="pread:/db-0/")
        n_refused = 0
        for number in range(n // 2, n, max(n // 60, 1)):
            result = self.with_fault(f"pread:{number}:EIO:/db-0/", *args, budget=60_000)
            with self.subTest(number=number, of=n):
                self.assertIn(result.status, (0, 1), result.err)
            n_refused += result.status
        self.assertGreater(n_refused, 10)

    def test_exceeded_quota_is_named(self):
        """If making the database exceeds a quota, the message says so. It once said that the disk
        is full."""
        result = self.with_fault("open:1+:EDQUOT:/db-0/", "-T", self.scratch, "-o",
                                 self.path("out.bam"), budget=SPILL_BUDGET)
        self.assert_error(result, "Disk quota exceeded")
        self.assertEqual(os.listdir(self.scratch), [])

    def test_probe_of_a_disk_without_direct_access_leaves_no_file(self):
        """Some file systems create a file although they refuse to open it for direct access: the
        probe of the disk leaves no such file."""
        self.with_fault("open:1:EINVAL:/probe", "-k", "-T", self.scratch, "-o",
                        self.path("out.bam"), clean=False)
        for _, _, names in os.walk(self.scratch):
            self.assertNotIn("probe", names)

    def test_thread_that_cannot_be_started_gives_one_message(self):
        out = self.path("out.bam")
        for fault in ("pthread_create:5+:EAGAIN", "pthread_create:7+:EAGAIN"):
            result = self.with_fault(fault, "-T", self.scratch, "-o", out)
            with self.subTest(fault=fault):
                self.assert_error(result, "thread")
                self.assertFalse(os.path.exists(out))

    def test_thread_that_cannot_be_started_is_an_error_or_not_needed(self):
        out, ends = self.path("out.bam"), []
        want = self.sort_bam("--no-PG", self.source)
        args = ["--no-PG", "--no-resume", "-@", "2", "-T", self.scratch, "-o", out]
        n_threads = self.calls(*args)["pthread_create"]
        os.unlink(out)
        for number in range(1, n_threads + 1):
            result = self.with_fault(f"pthread_create:{number}:EAGAIN", *args)
            with self.subTest(number=number):
                ends.append(result.status)
                if result.status:
                    self.assert_error(result, "thread")
                    self.assertFalse(os.path.exists(out))
                else:
                    self.assert_same_bam(bamfile.read(out), want)
                    os.unlink(out)
        self.assertEqual(sorted(set(ends)), [0, 1], ends)

    def test_directory_that_cannot_be_synced_is_no_error(self):
        """Some file systems answer EINVAL to a sync of a directory: this is no error. It once made
        RocksDB and --resume fail."""
        out, want = self.path("out.bam"), self.sort_bam("--no-PG", self.source)
        fault = "fsync:1+:EINVAL:dir:,fdatasync:1+:EINVAL:dir:"
        for fails in (False, True):
            result = self.rocksort(
                "--no-PG", "-T", self.work, "-o", "/dev/full" if fails else out, self.source,
                budget=SPILL_BUDGET, clean=False,
                env={**self.faulty(fault), "ROCKSORT_TEST_DURABLE": "0"})
            self.assertEqual(result.status, fails, result.err)
            if fails:
                checkpoint, = kept_checkpoints(result.err)
                self.sort_ok("--resume", checkpoint, "-o", out, env=self.faulty(fault), clean=False)
            self.assert_same_bam(bamfile.read(out), want)
