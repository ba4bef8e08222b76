"""--also: a second output of the same merge. Each of the two files is what a sort that writes only
that one makes; both come, or none."""

import itertools
import os
import signal
import unittest

import bamfile
import columns
import generate
from checkpoints import KilledTest, ResumeTest
from harness import (SAMTOOLS, SPILL_BUDGET, bytes_of, json_of, needs_reads, own_memory_only,
                     reference_view, sam_split)

needs_readers = unittest.skipUnless(columns.pyarrow, "pyarrow is not installed")


class AlsoTest(ResumeTest):
    def alone(self, name, *args, **how):
        """What a sort that writes this file only makes of it, as lines."""
        path = self.path("alone." + name)
        self.sort_ok("--no-PG", *args, "-o", path, **how)
        lines = self.lines(path)
        os.unlink(path)
        return lines

    def lines(self, path):
        """The lines of SAM of a file of any format, with the header."""
        if path.endswith((".parquet", ".arrow", ".arrows")):
            table = columns.read_table(path)
            return [*table.schema.metadata[b"sam_header"].decode().splitlines(),
                    *columns.lines_of(table)]
        header, lines = sam_split(reference_view(path).encode("latin-1").decode())
        return [*header.splitlines(), *lines]

    def names(self):
        return sorted(os.listdir(self.work))


@needs_readers
class Content(AlsoTest):
    ENDINGS = ["bam", "sam", "sam.gz", "cram", "arrow", "arrows", "parquet"]

    def test_each_format_beside_each_other_one(self):
        bam = self.bam_of(generate.reads(700, generate.reference(), seed=5))
        no_ref = ["--output-fmt-option", "no_ref=1"]
        want = {ending: self.alone(ending, *no_ref, bam) for ending in self.ENDINGS}
        for i, (first, second) in enumerate(itertools.permutations(self.ENDINGS, 2)):
            with self.subTest(first=first, second=second):
                a, b = self.path("a." + first), self.path("b." + second)
                self.sort_ok("--no-PG", "-@", "2", *no_ref, "-o", a, "--also", b, bam,
                             budget=(None, SPILL_BUDGET)[i % 2])
                self.assertEqual(self.lines(a), want[first])
                self.assertEqual(self.lines(b), want[second])

    def test_both_outputs_have_what_one_alone_has(self):
        bam = self.bam_of(generate.odd(3000, seed=6))
        pairs = self.bam_of(generate.odd(3000, seed=7), name="pairs.bam")
        self.sort_ok("-n", "-o", self.path("names.bam"), pairs)
        for args in [["-n"], ["--shuffle=3"],
                     ["--markdup", self.path("names.bam"), "--fixmate"],
                     ["--markdup=-r -S", self.path("names.bam"), "--fixmate"]]:
            source = [] if self.path("names.bam") in args else [bam]
            for budget in (None, SPILL_BUDGET):
                with self.subTest(args=args, budget=budget):
                    a, b = self.path("a.bam"), self.path("b.parquet")
                    want = self.alone("bam", *args, *source, budget=budget)
                    self.sort_ok("--no-PG", *args, "-o", a, "--also", b, *source, budget=budget)
                    self.assertEqual(self.lines(a), want)
                    self.assertEqual(self.lines(b), want)

    def test_files_in_memory_are_byte_for_byte_those_of_two_sorts(self):
        bam = self.bam_of(generate.odd(3000, seed=8))
        for ending, options in [("bam", ["-l", "1", "--write-index"]), ("arrow", ["-u"])]:
            self.sort_ok("--no-PG", *options, "-o", self.path("x." + ending), bam)
            self.sort_ok("--no-PG", "-o", self.path("y.parquet"), bam)
            self.sort_ok("--no-PG", *options, "-o", self.path("a." + ending), "--also",
                         self.path("b.parquet"), bam)
            pairs = [("x." + ending, "a." + ending), ("y.parquet", "b.parquet")]
            if ending == "bam":
                pairs.append(("x.bam.csi", "a.bam.csi"))
            for one, other in pairs:
                self.assertEqual(bytes_of(self.path(one)), bytes_of(self.path(other)), other)

    def test_one_output_goes_to_the_pipe_and_the_other_to_a_file(self):
        bam = self.bam_of(generate.odd(3000, seed=9))
        want = self.sort_bam("--no-PG", "-u", "-o", "-", bam)
        got = self.sort_bam("--no-PG", "-u", "--also", self.path("b.parquet"), bam)
        self.assert_same_bam(got, want)
        self.assertEqual(self.lines(self.path("b.parquet")), self.alone("bam", bam))

    def test_columns_option_is_for_the_output_that_has_columns(self):
        bam = self.bam_of(generate.odd(300, seed=9))
        a, b = self.path("a.arrow"), self.path("b.parquet")
        for first in (self.path("a.bam"), a):
            self.sort_ok("--columns", "qname,pos,XI:i", "-o", first, "--also", b, bam)
            self.assertEqual(columns.read_table(b).column_names, ["qname", "pos", "XI"])
        self.assertEqual(columns.read_table(a).column_names, ["qname", "pos", "XI"])

    def test_merge_with_columns_copies_nothing(self):
        bam = self.bam_of(generate.odd(3000, seed=10))
        self.sort_ok("--no-PG", "-o", self.path("sorted.bam"), bam)
        want = self.alone("bam", "--merge", self.path("sorted.bam"))
        result = self.sort_ok("--no-PG", "--merge", "-o", self.path("a.bam"), "--also",
                              self.path("b.parquet"), self.path("sorted.bam"))
        self.assertIn("0.0 MB of 0 inputs were copied", result.err)
        for name in ("a.bam", "b.parquet"):
            self.assertEqual(self.lines(self.path(name)), want)

    def test_reference_is_for_whichever_output_is_cram(self):
        fasta = self.write("ref.fa", ">c\n" + "ACGT" * 25 + "\n")
        bam = self.bam_of("@SQ\tSN:c\tLN:100\nr\t0\tc\t5\t9\t8M\t*\t0\t0\tACGTACGT\tIIIIIIII\n")
        self.sort_ok("--no-PG", "--reference", fasta, "--output-fmt-option", "version=3.1", "-o",
                     self.path("a.bam"), "--also", self.path("b.cram"), bam)
        with open(self.path("b.cram"), "rb") as file:
            self.assertEqual(file.read(6), b"CRAM\x03\x01")
        result = self.rocksort("-o", self.path("c.bam"), "--also", self.path("c.cram"),
                               "--reference", self.path("none.fa"), bam)
        self.assertEqual(result.status, 1)
        self.assertFalse({"c.bam", "c.cram"} & set(self.names()))


@needs_readers
class Reports(AlsoTest):
    def test_closing_line_and_stats_name_both_outputs(self):
        bam, b = self.bam_of(generate.odd(300)), self.path("b.parquet")
        result = self.sort_ok("--report", self.path("s.json"), "--verbosity", "3", "-o",
                              self.path("a.bam"), "--also", b, bam)
        self.assertRegex(result.err, r"written to '\S+a\.bam', also \d+\.\d MB to '\S+b\.parquet'; ")
        output = json_of(self.path("s.json"))["output"]
        self.assertEqual((output["also"], output["also_bytes"]), (b, os.path.getsize(b)))
        self.sort_ok("--report", self.path("s.json"), "-o", self.path("a.bam"), bam)
        output = json_of(self.path("s.json"))["output"]
        self.assertEqual((output["also"], output["also_bytes"]), (None, None))

    def test_fsync_writes_both_outputs(self):
        bam = self.bam_of(generate.odd(300))
        self.sort_ok("--fsync", "-o", self.path("a.bam"), "--also", self.path("b.parquet"), bam)
        self.assertEqual(columns.read_table(self.path("b.parquet")).num_rows, 300)


class Refused(AlsoTest):
    def setUp(self):
        super().setUp()
        self.bam = self.bam_of(generate.odd(50))

    def refused(self, also, *args, mention=(), out="out.bam"):
        """An error, and no file but those that were there before."""
        before = self.names()
        self.assert_error(self.rocksort("--also", also, *args, "-o", self.path(out), self.bam),
                          *mention)
        self.assertEqual(self.names(), before)

    def test_same_file_is_refused(self):
        self.refused(self.path("out.bam"), mention=["--also", "another name"])
        self.refused(self.path("x.bam"), "--write-index", mention=["--also", "another name"],
                     out="out.bam##idx##" + self.path("x.bam"))
        os.mkdir(self.path("d"))
        self.refused(self.path("d/../out.bam"), mention=["another name"])

    def test_one_pipe_or_file_cannot_get_both_outputs(self):
        out, fifo, url = self.path("x.parquet"), self.path("fifo"), "s3://bucket/x.bam"
        os.mkfifo(fifo)
        self.write("x.parquet", b"before")
        for args in (["-o", fifo, "--also", fifo], ["-o", url, "--also", url], ["--also", out],
                     ["-o", "/dev/fd/7", "--also", "/dev/fd/7"], ["-o", out, "--also", "/dev/fd/7"],
                     ["-o", "/dev/fd/7", "--also", out]):
            result = self.run_program(["sh", "-c", f'exec 7>>{out}; exec "$@" >&7', "sh", SAMTOOLS,
                                       "rocksort", *args, self.bam], limit_s=60)
            with self.subTest(args=args):
                self.assert_error(result, "--also", "another name")
                self.assertEqual(bytes_of(out), b"before")
        self.sort_ok("-o", "/dev/null", "--also", "/dev/null", self.bam)

    def test_second_output_is_no_input(self):
        before = bytes_of(self.bam)
        os.link(self.bam, self.path("link.bam"))
        for name in (self.bam, self.path("link.bam")):
            self.refused(name, mention=["named for an input and for --also"])
        self.assertEqual(bytes_of(self.bam), before)

    def test_second_output_is_no_report(self):
        for option in ("--flagstat", "--report"):
            self.refused(self.path("x.bam"), option, self.path("x.bam"),
                         mention=["is named for --also and for " + option])

    def test_standard_output_is_refused(self):
        for name in ("-", "/dev/stdout"):
            self.refused(name, mention=["--also writes a file"])

    def test_options_that_do_not_go_with_also_are_refused(self):
        also = self.path("b.parquet")
        self.refused(also, "--split-by", "contig", mention=["--split-by"], out="%.bam")
        self.refused(also, "--checksum-only", mention=["--also cannot be used"])
        self.refused(also, "--verify", mention=["--also cannot be used"])
        self.refused(self.path("x.cram##idx##x.crai"), mention=["--also writes no index"])
        self.refused(self.path("x.bam"), "--write-index", out="x.parquet",
                     mention=["cannot index Parquet", "with -o", "--also"])
        self.refused(self.path("b.bam"), "--also", also, mention=["--also", "once"])
        for name in "x.sam.bz2", "x.txt", "x.pq", "x.parquet.gz":
            self.refused(self.path(name), mention=["--also", name, ".parquet"])
        self.refused(self.path("x.bam"), "--columns", "pos", mention=["--columns"])
        self.refused(self.path("none/b.bam"), mention=["none/b.bam"])


class Complete(AlsoTest):
    """Both files, or none; what was there before stays."""

    def setUp(self):
        super().setUp()
        self.bam = self.bam_of(generate.odd(6000, seed=12))

    def test_full_disk_of_either_output_fails_the_sort(self):
        for n in (1, 6000):
            source = self.bam_of(generate.odd(n, seed=12), name=f"{n}.bam")
            for args in (["-o", "/dev/full", "--also", self.path("b.parquet")],
                         ["-o", self.path("a.bam"), "--also", "/dev/full"],
                         ["-o", self.path("a.parquet"), "--also", "/dev/full"]):
                with self.subTest(n=n, args=args):
                    before = self.names()
                    self.assert_error(self.rocksort("-@", "2", *args, source), "/dev/full",
                                      "No space left")
                    self.assertEqual(self.names(), before)

    def test_older_files_stay_if_the_sort_fails(self):
        old = {"a.bam": b"old a", "b.parquet": b"old b"}
        for name, data in old.items():
            self.write(name, data)
        bad = bamfile.record(name="bad", flag=0, tid=0, pos=2**31 - 2, cigar="3M")
        source = self.write("bad.bam", bamfile.bam_file(
            "@SQ\tSN:c\tLN:100\n", [("c", 2**31 - 1)], [bad]))
        result = self.rocksort("-o", self.path("a.bam"), "--also", self.path("b.parquet"), source)
        self.assert_error(result, "read 'bad' cannot be written as columns")
        for name, data in old.items():
            self.assertEqual(bytes_of(self.path(name)), data)

    def test_signal_in_the_merge_leaves_no_file(self):
        os.mkfifo(self.path("fifo"))
        for number in (signal.SIGTERM, signal.SIGINT):
            before = self.names()
            process = self.start("--no-resume", "-u", "-o", self.path("fifo"), "--also",
                                 self.path("b.parquet"), self.bam, budget=SPILL_BUDGET)
            with open(self.path("fifo"), "rb") as pipe:
                self.assertTrue(pipe.read(100))
                process.send_signal(number)
                self.assert_died_of(process, number)
            self.assertEqual(self.names(), before)

    def test_second_file_is_incomplete_if_the_reader_of_the_first_leaves(self):
        before = self.names()
        process = self.start("-u", "--also", self.path("b.parquet"), self.bam)
        process.stdout.read(10)
        process.stdout.close()
        self.assert_died_of(process, signal.SIGPIPE)
        self.assertEqual(self.names(), before)


@needs_readers
class Resumed(KilledTest, AlsoTest):
    def both(self, *names):
        return ["-o", self.path(names[0]), "--also", self.path(names[1])]

    def test_resume_knows_the_second_output(self):
        bam = self.source()
        want = self.alone("bam", bam, budget=SPILL_BUDGET)
        for args, second in ([], "b.parquet"), (["--also", self.path("c.arrow")], "c.arrow"):
            checkpoint = self.killed("link:4:kill:.sst", *self.both("a.bam", "b.parquet"),
                                     "--columns", "all", bam)
            self.resume(checkpoint, *args)
            self.assertEqual(self.lines(self.path("a.bam"))[1:], want[1:])
            self.assertEqual(self.lines(self.path(second)), self.lines(self.path("a.bam")))
            for name in ("a.bam", second):
                os.unlink(self.path(name))
            self.assertNotIn("b.parquet", self.names())

    def test_resume_leaves_no_unfinished_files(self):
        bam = self.source()
        checkpoint = self.killed("rename:1:kill:b.parquet", *self.both("a.bam", "b.parquet"), bam)
        unfinished = [name for name in self.names() if name.endswith(".tmp")]
        self.assertEqual(len(unfinished), 2, self.names())
        self.resume(checkpoint)
        self.assertEqual([name for name in self.names() if ".rocksort." in name], [])
        self.assertIn("b.parquet", self.names())

    def test_resumed_groups_get_no_second_output(self):
        bam = self.source()
        checkpoint = self.killed("link:4:kill:.sst", "--split-by", "contig", "-o",
                                 self.path("a.%.bam"), bam)
        result = self.rocksort("--resume", checkpoint, "--also", self.path("b.parquet"),
                               clean=False, budget=SPILL_BUDGET)
        self.assert_error(result, "--also", "--split-by")
        self.resume(checkpoint)

    def test_clean_removes_the_unfinished_second_output(self):
        bam = self.source()
        checkpoint = self.killed("write:3:kill:b.parquet", *self.both("a.bam", "b.parquet"), bam)
        left = [name for name in self.names() if ".rocksort." in name]
        self.assertEqual(len([name for name in left if name.startswith("b.parquet.")]), 1)
        self.rocksort("--clean", checkpoint, "--yes", clean=False)
        self.assertEqual([name for name in self.names() if ".rocksort." in name], [])

    def test_neither_output_gets_its_name_if_one_cannot_be_synced(self):
        bam = self.source()
        for name in ("a.bam", "b.parquet"):
            before = self.names()
            result = self.rocksort("--fsync", *self.both("a.bam", "b.parquet"), bam,
                                   env=self.faulty(f"fsync:1:EIO:{name}"))
            with self.subTest(name=name):
                self.assert_error(result, name, "to the disk")
                self.assertEqual(self.names(), before)

    def test_second_output_gets_its_name_first(self):
        bam = self.source()
        checkpoint = self.killed("rename:1:kill:a.bam", *self.both("a.bam", "b.parquet"), bam)
        self.assertIn("b.parquet", self.names())
        self.assertNotIn("a.bam", self.names())
        self.resume(checkpoint)
        self.assertEqual(self.lines(self.path("a.bam")), self.lines(self.path("b.parquet")))


@own_memory_only
@needs_reads
class Memory(AlsoTest):
    def test_two_outputs_stay_within_the_limit(self):
        source = self.simulate("150K")
        a, b = self.path("a.arrow"), self.path("b.parquet")
        for threads, mib, *options in ((2, 4, "-o", self.path("a.bam"), "--also", b),
                                       (2, 4, "-u", "-o", a, "--also", self.path("b.sam")),
                                       (4, 8, "-u", "-o", a, "--also", b)):
            self.assert_peak(threads * mib, "-@", threads, "-m", f"{mib}M", *options, source)
