"""--partial writes the sorted part of an input that was cut off. With -k, this part is kept even if
the input cannot be read again."""

import glob
import os
import re
import shutil
import signal
import threading
import time

import bamfile
import generate
from harness import SLOW, SPILL_BUDGET, bytes_of, wait_for
from checkpoints import APPEAR_LIMIT_S, KilledTest, ResumeTest


class Signals(ResumeTest):
    """Signals that end the sort of a pipe."""

    def test_sorted_part_of_a_pipe_is_kept_with_keep(self):
        """A pipe cannot be read again: the sorted part is removed, or kept with -k and can then be
        written with --partial."""
        data = bytes_of(self.source(18000))
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
                self.assertEqual(self.checkpoints(), [])
                self.assertIn("-k keeps partial results", err)
                continue
            checkpoint, = self.checkpoints()
            self.assertIn("--partial", err)
            self.refused(checkpoint, "cut off", "--partial")
            result = self.resume(checkpoint, "--partial", "-o", self.path("part.bam"))
            count = int(re.search(r"the first (\d+) records", result.err).group(1))
            self.assertGreater(count, 0)
            got = bamfile.read(self.path("part.bam"))
            self.assertEqual(len(bamfile.split(got.records)), count)

    def test_records_in_memory_are_saved_with_keep(self):
        """With -k, records that are in memory when a signal comes are saved before the end."""
        lines = generate.odd(40000, seed=99).encode().splitlines(keepends=True)
        header = [line for line in lines if line.startswith(b"@")]
        n_sent = (len(lines) - len(header)) // 2
        sent, rest = lines[:len(header) + n_sent], lines[len(header) + n_sent:]
        for number, options in ((signal.SIGTERM, []), (signal.SIGINT, []),
                                (signal.SIGTERM, ["--fixmate"])):
            process = self.start("--no-PG", "-T", self.where, "-k", *options, "-o",
                                 self.path("out.bam"))
            self.feed(process, b"".join(sent)).join(APPEAR_LIMIT_S)
            process.send_signal(number)
            writer = threading.Thread(target=self.drip, args=(process, rest), daemon=True)
            writer.start()
            self.assert_died_of(process, number)
            writer.join(5)
            self.assertIn("--partial", process.stderr.read().decode())
            checkpoint, = self.checkpoints()
            result = self.resume(checkpoint, "--partial", "-o", self.path("part.bam"))
            count = int(re.search(r"the first (\d+) records", result.err).group(1))
            self.assertGreater(count, n_sent // 2)
            first = b"".join(lines[:len(header) + count])
            self.assert_same_bam(bamfile.read(self.path("part.bam")),
                                 self.sort_bam("--no-PG", *options, stdin=first))

    def test_second_signal_ends_a_silent_pipe_at_once(self):
        """If the input sends nothing, a second signal ends the sort at once; the first signal alone
        ends it after a short time."""
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
            # If the reader was not waiting when the signal came, the records are saved.
            for checkpoint in self.checkpoints():
                self.assertEqual(self.state(checkpoint), "partial")
                shutil.rmtree(checkpoint)

    @staticmethod
    def drip(process, lines):
        """Writes lines slowly, until the process no longer reads them."""
        try:
            for line in lines:
                process.stdin.write(line)
                process.stdin.flush()
                time.sleep(0.001)
        except OSError:
            pass


class Partial(KilledTest):
    """What a part has, and where it may be written."""

    def test_part_has_at_least_one_record(self):
        checkpoint = self.killed("link:1:kill:.sst", "-k", "-o", self.path("out.bam"),
                                 stdin=generate.odd(9000, seed=81).encode())
        self.assertEqual(self.state(checkpoint), "loading")
        result = self.rocksort("--resume", checkpoint, "--partial", "-o", self.path("none.bam"),
                               clean=False)
        self.assert_error(result, "none of its input")
        self.assertFalse(os.path.exists(self.path("none.bam")))

    def test_label_that_cannot_be_read_is_an_error(self):
        """A run whose label cannot be read must cause an error. It must not pass for a run without
        a label, which is ignored."""
        checkpoint = self.killed("link:6:kill:.sst", "-k", "-o", self.path("out.bam"),
                                 stdin=generate.odd(9000, seed=81).encode())
        want = bamfile.parse_file(self.sort_ok("--resume", checkpoint, "--partial", "-k", "-o", "-",
                                               clean=False).out)
        n_failed = 0
        for number in range(24, 60, 2):
            result = self.rocksort("--resume", checkpoint, "--partial", "-k", "-o", "-",
                                   clean=False, env=self.faulty(f"pread:{number}:EIO:.sst"))
            n_failed += result.status
            if result.status == 0:
                self.assert_same_bam(bamfile.parse_file(result.out), want, number)
        self.assertGreater(n_failed, 5)

    def test_part_can_be_followed_by_all(self):
        """After --partial -k the checkpoint still has only a part. It was once taken for complete:
        resumed again, it gave the same part with exit status 0."""
        source = self.source()
        want = self.sort_bam("--no-PG", source)
        for fault in (False, True):
            with self.subTest(fails=fault):
                checkpoint = self.cut_load(source)
                out = "/dev/full" if fault else self.path("part.bam")
                result = self.rocksort("--resume", checkpoint, "--partial", "-k", "-o", out,
                                       clean=False, budget=SPILL_BUDGET)
                self.assertEqual(result.status, fault, result.err)
                self.assertIn("warning: the output will have the first ", result.err)
                self.assertEqual(self.state(checkpoint), "loading")
                self.resume(checkpoint, "-o", self.path("out.bam"))
                self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_part_is_not_written_onto_the_input(self):
        source = self.source()
        want = self.sort_bam("--no-PG", source)
        checkpoint = self.killed("link:4:kill:.sst", "-o", source, source)
        self.assertEqual(self.state(checkpoint), "loading")
        os.symlink(source, self.path("link"))
        for options in ([], ["-o", source], ["-o", self.path("link")]):
            with self.subTest(options=options):
                result = self.rocksort("--resume", checkpoint, "--partial", *options, clean=False)
                self.assert_error(result, f"a part of '{options[-1] if options else source}'")
                self.assertTrue(bamfile.looks_complete(source))
        self.rocksort("--resume", checkpoint, "--partial", "-k", "-o", self.path("part.bam"),
                      clean=False)
        self.assertTrue(bamfile.looks_complete(self.path("part.bam")))
        self.resume(checkpoint, "-o", source)
        self.assert_same_bam(bamfile.read(source), want)


class InputErrors(ResumeTest):
    """With -k, the records before an error are kept if the input cannot be read again."""

    def setUp(self):
        super().setUp()
        sam = generate.odd(9000, seed=81)
        self.lines = sam.splitlines(keepends=True)
        self.n_header = sum(line.startswith("@") for line in self.lines)
        bam = bamfile.read(self.bam_of(sam))
        self.head, self.records = bamfile.bam_header(bam.text, bam.refs), bamfile.split(bam.records)

    def first(self, count):
        """The first count records as uncompressed BAM."""
        return self.head + b"".join(self.records[:count])

    def check(self, data, count, *options, budget=None):
        """The sort fails, and its checkpoint has the first `count` records."""
        out = self.path("out.bam")
        result = self.rocksort("--no-PG", "-k", "-T", self.where, *options, "-o", out, stdin=data,
                               budget=budget, clean=False)
        self.assert_error(result, "standard input")
        self.assertFalse(os.path.exists(out))
        checkpoint, = self.checkpoints()
        self.assertIn(f"--resume {checkpoint} --partial", result.err)
        self.assertEqual(self.state(checkpoint), "partial")
        self.refused(checkpoint, "--partial")
        for i in (0, 1):        # the first attempt fails
            to = "/dev/full" if i == 0 else out
            result = self.rocksort("--resume", checkpoint, "--partial", "-o", to, clean=False)
            self.assertEqual(result.status, 1 - i, result.err)
            self.assertIn(f"the first {count} records", result.err)
            self.assertEqual(self.state(checkpoint), None if i else "partial")
        want = self.sort_bam("--no-PG", *options, stdin=bamfile.bgzf(self.first(count)))
        self.assert_same_bam(bamfile.read(out), want)
        os.unlink(out)

    def test_records_before_the_cut_are_kept(self):
        """Cut inside a record, or inside a BGZF block: all complete records before it are kept."""
        for count in (2, 7000):
            cut = self.first(count) + self.records[count][:30]
            blocks = b"".join(bamfile.bgzf_blocks(cut))
            for options, budget, data in (
                    ([], None, bamfile.bgzf(cut)), (["-n"], SPILL_BUDGET, cut),
                    (["-@", "3"], SPILL_BUDGET, blocks + bamfile.bgzf(os.urandom(1000))[:40]),
                    (["--fixmate"], SPILL_BUDGET, bamfile.bgzf(cut))):
                with self.subTest(count=count, options=options, budget=budget):
                    self.check(data, count, *options, budget=budget)

    def test_records_before_a_damaged_one_are_kept(self):
        for count in (2, 7000):
            for options, budget in (([], None), ([], SPILL_BUDGET), (["--fixmate"], SPILL_BUDGET)):
                with self.subTest(count=count, options=options, budget=budget):
                    self.check(bamfile.bgzf(self.first(count) + b"\3\0\0\0" + bytes(90000)), count,
                               *options, budget=budget)

    def test_lines_before_a_bad_one_are_kept(self):
        for count in (2, 7000):
            for options, budget in (([], None), (["-@", "3"], SPILL_BUDGET), (["--fixmate"], None),
                                    (["--fixmate", "-@", "2"], SPILL_BUDGET)):
                with self.subTest(count=count, options=options, budget=budget):
                    lines = self.lines[: self.n_header + count] + ["no record\n"] + self.lines[-99:]
                    self.check("".join(lines).encode(), count, *options, budget=budget)

    def test_complete_records_are_kept_with_a_filter(self):
        cut = self.first(7000) + self.records[7000][:30]
        for options in ([], ["--fixmate"]):
            self.check(bamfile.bgzf(cut), 7000, "--input-fmt-option", "filter=mapq>=0", *options,
                       budget=SPILL_BUDGET)
