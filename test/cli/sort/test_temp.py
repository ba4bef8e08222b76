"""Temporary data: where they are, who may read them, and that they are always removed."""

import os
import signal
import stat
import subprocess
import time

import bamfile
import generate
from harness import (DIE_LIMIT_S, SLOW, SPILL_BUDGET, CliTest, kept_checkpoints, own_lines,
                     wait_for)

APPEAR_LIMIT_S = 20 * SLOW


class TempTest(CliTest):
    """Runs that are stopped halfway: the input pipe stays open, or the output is not read."""

    sam = None

    def setUp(self):
        super().setUp()
        if TempTest.sam is None:
            TempTest.sam = generate.odd(15000).encode()
        self.where = self.work / "where"
        self.where.mkdir()

    def held(self, *args, folder=None, data=None, **how):
        """Starts a run and waits until it has spilled and needs more input; returns the process
        and the names of its temporary directories."""
        folder = folder or self.where
        before = set(os.listdir(folder))
        process = self.start(*args, budget=SPILL_BUDGET, **how)
        self.feed(process, data or self.sam)
        wait_for(lambda: set(os.listdir(folder)) - before or process.poll() is not None,
                 APPEAR_LIMIT_S, f"temporary data in {folder}")
        self.assertIsNone(process.poll(), "the run ended early")
        names = sorted(set(os.listdir(folder)) - before)
        return process, names

    def finish(self, process):
        """Sends the rest of the input; the run must succeed. Returns its output."""
        out, err = process.communicate(timeout=60 * SLOW)
        self.assertEqual(process.returncode, 0, err)
        return out


class Place(TempTest):
    """The place of the temporary directory, its permissions, and its end."""

    def test_data_lie_in_one_directory_of_the_user_alone_where_the_options_say(self):
        self.addCleanup(os.umask, os.umask(0))
        for args, begin, how in (
                (["-T", self.where], "", {}), (["-T", f"{self.where}/"], "", {}),
                (["-T", self.where / "pre.fix"], "pre.fix", {}), (["-T", "where/pre"], "pre", {}),
                (["-o", self.where / "out.bam"], "", {}), (["-", self.where / "out"], "", {}),
                ([], "", {"folder": self.scratch}),
                ([], "", {"cwd": self.where, "env": {"TMPDIR": ""}})):
            with self.subTest(args=args):
                folder = how.get("folder", self.where)
                process, names = self.held(*args, **how)
                name, = [name for name in names if name != "out.bam"]
                mode = os.stat(folder / name).st_mode
                self.assertTrue(stat.S_ISDIR(mode))
                self.assertEqual(stat.S_IMODE(mode), 0o700)
                self.assertTrue(name.startswith(begin), name)
                self.finish(process)
                self.assertEqual(os.listdir(self.scratch), [])
                self.assertLessEqual(set(os.listdir(self.where)), {"out.bam"})
                if "out" in str(args):
                    self.assertTrue(bamfile.looks_complete(self.where / "out.bam"))
                    os.unlink(self.where / "out.bam")

    def test_two_runs_may_have_one_prefix(self):
        prefix = self.where / "same"
        first, names_1 = self.held("--no-PG", "-T", prefix)
        second, names_2 = self.held("--no-PG", "-n", "-T", prefix)
        self.assertEqual(len(names_1 + names_2), 2)
        want = self.sort_bam("--no-PG", stdin=self.sam)
        self.assertEqual(bamfile.parse_file(self.finish(first)), want)
        want = self.sort_bam("--no-PG", "-n", stdin=self.sam)
        self.assertEqual(bamfile.parse_file(self.finish(second)), want)
        self.assertEqual(os.listdir(self.where), [])

    def test_names_that_are_taken_stay(self):
        (self.where / "taken").write_text("mine")
        process, names = self.held("-T", self.where / "taken")
        self.assertEqual(len(names), 1)
        self.finish(process)
        self.assertEqual((self.where / "taken").read_text(), "mine")
        self.assertEqual(os.listdir(self.where), ["taken"])

    def test_kept_data_stay_where_they_are(self):
        result = self.sort_ok("-k", "-T", self.where, "-o", self.path("out.bam"), stdin=self.sam,
                              budget=SPILL_BUDGET)
        kept = os.listdir(self.where)
        self.assertEqual(len(kept), 1)
        self.assertTrue(os.listdir(self.where / kept[0]))
        self.assertIn(kept[0], result.err, "-k says where the database is")

    def test_temporary_data_do_not_lie_beside_a_device(self):
        result = self.rocksort("-k", "-o", "/dev/null", stdin=self.sam, budget=SPILL_BUDGET,
                               clean=False)
        self.assertEqual(result.status, 0, result.err)
        self.assertIn(str(self.scratch), result.err)


class Signals(TempTest):
    """A signal ends the run within seconds, with the status of the signal, and nothing is left. The
    exception is a checkpoint with all records, which a message names (test_resume.py)."""

    NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def check_gone(self, process, number, *out, merging=False):
        """The signal ends the run, which leaves nothing but such a checkpoint."""
        process.send_signal(number)
        self.assert_died_of(process, number)
        err = process.stderr.read().decode()
        kept = merging and number != signal.SIGINT
        self.assertEqual(len(kept_checkpoints(err)), kept, err)
        self.drop_kept(err)
        self.assertEqual(os.listdir(self.where), [])
        self.assertEqual(os.listdir(self.scratch), [])
        for path in out:
            self.assert_no_result(path)

    def test_signal_while_reading(self):
        raw = self.sort_bam("--no-PG", stdin=self.sam)
        blocks = bamfile.bgzf(bamfile.bam_header(raw.text, raw.refs) + raw.records)
        bam = blocks[: -len(bamfile.EOF_BLOCK)]
        for number in self.NUMBERS:
            for options, data in ((["-o", self.path("out.bam")], self.sam),
                                  (["-@", "3", "-n"], bam)):
                with self.subTest(signal=number.name, options=options):
                    process, _ = self.held("-T", self.where, *options, data=data)
                    time.sleep(0.3)  # until it has read all that was sent and waits in read()
                    self.check_gone(process, number, self.path("out.bam"))

    def test_signal_while_reading_into_memory(self):
        for number in self.NUMBERS:
            with self.subTest(signal=number.name):
                process = self.start("-T", self.where, "-o", self.path("out.bam"))
                self.feed(process, self.sam[: len(self.sam) // 2])
                time.sleep(0.5)
                self.check_gone(process, number, self.path("out.bam"))

    def test_signal_before_any_input(self):
        for number in self.NUMBERS[:2]:
            with self.subTest(signal=number.name):
                process = self.start()
                time.sleep(0.5 * SLOW)
                self.check_gone(process, number)

    def test_signal_while_output_is_stalled(self):
        for budget, options in ((SPILL_BUDGET, []), (None, []),
                                (SPILL_BUDGET, ["-O", "sam", "-@", "2"])):
            for number in self.NUMBERS:
                with self.subTest(signal=number.name, budget=budget, options=options):
                    process = self.start("-u", "-T", self.where, *options, budget=budget)
                    self.feed(process, self.sam, close=True)
                    self.assertTrue(process.stdout.peek(1))
                    time.sleep(0.3)         # until the pipe should be full
                    self.check_gone(process, number, merging=budget is not None)

    def test_second_signal_while_the_first_is_handled(self):
        process, _ = self.held("-T", self.where)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        try:
            process.send_signal(signal.SIGINT)
        except ProcessLookupError:
            pass
        self.assert_died_of(process, signal.SIGINT)
        self.assertEqual(os.listdir(self.where), [])

    def test_ignored_signal_stays_ignored(self):
        process, _ = self.held("--no-PG", "-T", self.where, preexec_fn=lambda: signal.signal(
            signal.SIGHUP, signal.SIG_IGN))
        process.send_signal(signal.SIGHUP)
        time.sleep(0.3)
        self.assertIsNone(process.poll(), "SIGHUP was ignored by the parent")
        got = bamfile.parse_file(self.finish(process))
        self.assertEqual(got, self.sort_bam("--no-PG", stdin=self.sam))

    def test_signal_at_any_moment_ends_the_run_or_comes_too_late(self):
        source = self.write("in.sam", self.sam)
        begin = time.monotonic()
        self.sort_ok("-@", "2", "-o", self.path("whole.bam"), source, budget=SPILL_BUDGET)
        whole_s = time.monotonic() - begin
        want = bamfile.read(self.path("whole.bam")).records
        for i in range(10):
            out = self.path(f"out{i}.bam")
            process = self.start("-@", "2", "-T", self.where, "-o", out, source,
                                 budget=SPILL_BUDGET, stdin=subprocess.DEVNULL)
            time.sleep(whole_s * i / 9)
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            status = process.wait(DIE_LIMIT_S)
            with self.subTest(moment=i, status=status):
                self.assertIn(status, (0, -signal.SIGTERM, 128 + signal.SIGTERM))
                self.drop_kept(process.stderr.read().decode())
                self.assertEqual(os.listdir(self.where), [])
                # The signal may come when the output is complete and only the clean-up remains.
                if status == 0 or bamfile.looks_complete(out):
                    self.assertEqual(bamfile.read(out).records, want)
                else:
                    self.assert_no_result(out)

    def test_signal_prints_no_message(self):
        sam = generate.reads(8000, generate.reference()).encode()
        for _ in range(5):
            process = self.start("-", "-o", self.path("out.bam"), budget=SPILL_BUDGET)
            process.stdin.write(sam)
            process.stdin.flush()
            process.terminate()
            process.stdin.close()
            self.assert_died_of(process, 15)
            err = process.stderr.read().decode()
            # The message about the checkpoint is allowed, and nothing else.
            said = [line for line in own_lines(err) if "temporary files kept" not in line]
            self.assertEqual(said, [])
            self.drop_kept(err)


class ClosedOutput(TempTest):
    """The reader of the output ends early, as in `samtools rocksort x.bam | head`."""

    def run_closed(self, budget, handler, *options):
        """Closes the output pipe after a little was read; returns status and standard error. Only
        with -k anything is kept: nobody waits for the rest."""
        old = signal.signal(signal.SIGPIPE, handler)
        try:
            process = self.start("-u", "-T", self.where, *options, budget=budget,
                                 restore_signals=handler == signal.SIG_DFL)
        finally:
            signal.signal(signal.SIGPIPE, old)
        self.feed(process, self.sam, close=True)
        os.read(process.stdout.fileno(), 100)
        process.stdout.close()
        status = process.wait(DIE_LIMIT_S * 2)
        err = process.stderr.read().decode()
        self.assertEqual(len(kept_checkpoints(err)), budget is not None and "-k" in options, err)
        self.drop_kept(err)
        self.assertEqual(os.listdir(self.where), [])
        self.assertEqual(os.listdir(self.scratch), [])
        return status, err

    def test_reader_that_leaves_ends_the_sort(self):
        for budget in (SPILL_BUDGET, None):
            for options in ([], ["-k"]):
                with self.subTest(budget=budget, options=options):
                    status, err = self.run_closed(budget, signal.SIG_DFL, *options)
                    self.assertIn(status, (-signal.SIGPIPE, 128 + signal.SIGPIPE), err)
                    # The input was a pipe: hours of work may be gone.
                    self.assertEqual("-k keeps partial results" in err,
                                     budget is not None and not options, err)

    def test_ignored_sigpipe_makes_a_write_error(self):
        """Python and some job runners start children with SIGPIPE ignored: the run then ends with
        an ordinary write error."""
        for budget in (SPILL_BUDGET, None):
            with self.subTest(budget=budget):
                status, err = self.run_closed(budget, signal.SIG_IGN)
                self.assertEqual(status, 1, err)
                self.assertEqual(err.count("cannot write"), 1, err)
                self.assertEqual("-k keeps partial results" in err, budget is not None, err)

    def test_cram_whose_reader_leaves_ends_the_sort(self):
        """htslib's CRAM writer, which has its own threads, once crashed."""
        sam = generate.reads(8000, generate.reference()).encode()
        for _ in range(5):
            process = self.start("-O", "cram,no_ref=1", "-@", "3", "-", stderr=None)
            process.stdout.close()
            try:
                process.stdin.write(sam)
                process.stdin.close()
            except BrokenPipeError:
                pass
            self.assertIn(process.wait(30), (1, -13, 141))
            self.assertEqual(os.listdir(self.scratch), [])
