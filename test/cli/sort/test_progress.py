"""Progress, the closing line and --quiet: what is printed on standard error, on a terminal and
elsewhere.

The tests do not depend on how long a sort takes: the input pipe of the sort stays open until the
line that the test waits for was printed.
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import bamfile
import generate
from harness import RUN_LIMIT_S, SLOW, SPILL_BUDGET, CliTest, bytes_of, own_lines

CLOSING_LINE = re.compile(
    r"samtools rocksort: sorted (?P<records>\d+) records, (?P<raw>[\d.]+) MB; "
    r"(?P<input>[\d.]+|\?) MB in, (?P<output>[\d.]+) MB out; "
    r"(?P<runs>\d+) runs on disk, (?P<temporary>[\d.]+) MB temporary, "
    r"(?P<compacted>[\d.]+) MB compacted; written to '(?P<name>[^']+)'; "
    r"(?P<wall>[\d.]+) s wall \(load (?P<load>[\d.]+), "
    r"(?:mark (?P<mark>[\d.]+), )?merge (?P<merge>[\d.]+)\), "
    r"(?P<cpu>[\d.]+) s CPU, (?P<peak>[\d.]+) MiB peak memory, (?P<rate>[\d.]+) MB/s")
CLEAR = "\x1b[K"
WAIT_S = 20 * SLOW


class Screen:
    """The lines that a terminal would show; the last one may be incomplete."""

    def __init__(self):
        self.lines, self.column = [""], 0

    def write(self, text):
        for token in re.findall(r"\x1b\[K|\r\n|[\r\n]|[^\x1b\r\n]+|\x1b", text):
            line = self.lines[-1]
            if token == CLEAR:
                self.lines[-1] = line[:self.column]
            elif token == "\r":
                self.column = 0
            elif token in ("\n", "\r\n"):
                self.lines.append("")
                self.column = 0
            else:
                assert token != "\x1b", repr(text)
                self.lines[-1] = line[:self.column] + token + line[self.column + len(token):]
                self.column += len(token)


class Terminal:
    """A pseudo-terminal for the standard error of a process. `text` has all that was written,
    `screen` what the terminal would show."""

    def __init__(self, test, columns=100):
        try:
            self.leader, self.follower = pty.openpty()
        except OSError as error:
            test.skipTest(f"no terminal can be made here: {error}")
        test.addCleanup(self.close)
        self.resize(columns)
        self.text, self.screen = "", Screen()

    def resize(self, columns):
        fcntl.ioctl(self.leader, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def close(self):
        for fd in (self.leader, self.follower):
            if fd is not None:
                os.close(fd)
        self.leader = self.follower = None

    def started(self):
        """The process has inherited the terminal: closes our copy, so that reading ends with the
        process."""
        os.close(self.follower)
        self.follower = None

    def read(self, limit_s):
        """Reads what was written; returns False at the end, None if nothing came in time."""
        if not select.select([self.leader], [], [], limit_s)[0]:
            return None
        try:
            data = os.read(self.leader, 65536)
        except OSError:                 # the other side is closed
            return False
        text = data.decode()
        self.text += text
        self.screen.write(text)
        return bool(data)

    def wait_for(self, pattern):
        end = time.monotonic() + WAIT_S
        while not re.search(pattern, self.text):
            if self.read(0.5) is False or time.monotonic() > end:
                raise AssertionError(f"no {pattern!r} in {self.text!r}")

    def read_all(self):
        end = time.monotonic() + RUN_LIMIT_S
        while self.read(0.5) is not False:
            assert time.monotonic() < end, self.text


class ProgressTest(CliTest):
    """Runs that wait for the rest of their input."""

    @classmethod
    def setUpClass(cls):
        cls.sam = generate.odd(6000).encode()

    def held(self, *args, stderr=subprocess.PIPE, env=None, **how):
        """Starts a sort and feeds it half of the records."""
        process = self.start(*args, stderr=stderr, env={"TERM": "xterm", **(env or {})}, **how)
        half = self.sam.index(b"\n", len(self.sam) // 2) + 1
        process.stdin.write(self.sam[:half])
        process.stdin.flush()
        self.rest = self.sam[half:]
        return process

    def finish(self, process):
        process.stdin.write(self.rest)
        process.stdin.close()
        self.assertEqual(process.wait(RUN_LIMIT_S), 0)

    def on_terminal(self, *args, columns=100, **how):
        terminal = Terminal(self, columns)
        process = self.held("--no-PG", "-o", self.path("out.bam"), *args,
                            stderr=terminal.follower, stdout=subprocess.DEVNULL, **how)
        terminal.started()
        return process, terminal


class OnTerminal(ProgressTest):
    """Standard error is a terminal."""

    def test_line_is_drawn_and_removed(self):
        for budget in (None, SPILL_BUDGET):
            env = {"ROCKSORT_TEST_SORT_BUFFER": "32K"} if budget else {}
            process, terminal = self.on_terminal(budget=budget, env=env)
            terminal.wait_for(r"\rreading, .* records.*" + re.escape(CLEAR))
            if budget:
                terminal.wait_for(r"[1-9]\d* runs?, ")
            self.finish(process)
            terminal.read_all()
            lines = terminal.screen.lines
            self.assertEqual(len(lines), 2, lines)      # the closing line and an empty one
            self.assertRegex(lines[0], "^" + CLOSING_LINE.pattern + "$")
            self.assertEqual(lines[1], "")

    def test_line_shows_the_merged_share(self):
        terminal = Terminal(self)
        process = self.start("-u", "--no-PG", stderr=terminal.follower, env={"TERM": "xterm"},
                             budget=SPILL_BUDGET)
        terminal.started()
        sam = generate.odd(12000).encode()
        process.stdin.write(sam)
        process.stdin.close()
        terminal.wait_for(r"\rmerging \d{1,2} %, .* runs?, ")
        got = bamfile.parse_file(process.stdout.read())
        terminal.read_all()
        self.assertEqual(process.wait(RUN_LIMIT_S), 0)
        self.assertEqual(got, self.sort_bam("--no-PG", stdin=sam))
        self.assertEqual(len(terminal.screen.lines), 2)

    def test_line_fits_the_terminal(self):
        for columns in (5, 24, 60, 200):
            process, terminal = self.on_terminal(columns=columns)
            terminal.wait_for(r"\rread[^\r]*" + re.escape(CLEAR))
            self.finish(process)
            terminal.read_all()
            drawn = re.findall(r"\r([^\r\n\x1b]*)" + re.escape(CLEAR), terminal.text)
            self.assertTrue(drawn)
            for line in drawn:
                self.assertLess(len(line), columns)

    def test_two_sorts_of_one_pipe_draw_one_line(self):
        """Two sorts share the terminal: the first one draws its line, and the other one when the
        first has ended."""
        terminal = Terminal(self)
        first = self.held("--no-PG", "-o", self.path("a.bam"), stderr=terminal.follower,
                          stdout=subprocess.DEVNULL)
        terminal.wait_for(r"\rreading, ")
        second = self.held("--no-PG", "-o", self.path("b.bam"), stderr=terminal.follower,
                           stdout=subprocess.DEVNULL, budget=SPILL_BUDGET,
                           env={"ROCKSORT_TEST_SORT_BUFFER": "32K"})
        terminal.started()
        end = time.monotonic() + 1.5 * SLOW
        while time.monotonic() < end:
            terminal.read(0.1)
        self.assertNotIn(" run", terminal.text)         # only the second sort has runs
        self.finish(first)
        terminal.wait_for(r"\rreading, .* runs?, ")
        self.finish(second)
        terminal.read_all()
        self.assertEqual(len(terminal.screen.lines), 3, terminal.screen.lines)

    def test_terminal_of_unknown_width_is_enough(self):
        """A terminal of unknown width counts as one of 80 columns."""
        process, terminal = self.on_terminal(columns=0)
        terminal.wait_for(r"\rreading, ")
        self.finish(process)
        terminal.read_all()

    def test_messages_begin_in_the_first_column(self):
        """A warning or an error begins in the first column, although the line was drawn there."""
        os.mkdir(self.work / "t")
        process, terminal = self.on_terminal("-T", str(self.work / "t"))
        terminal.wait_for(r"\rreading, ")
        process.stdin.write(b"damaged\n")
        process.stdin.close()
        self.assertEqual(process.wait(RUN_LIMIT_S), 1)
        terminal.read_all()
        lines = [line for line in terminal.screen.lines if not line.startswith("[")]
        self.assertEqual(len(lines), 2, terminal.screen.lines)
        self.assertRegex(lines[0], "^samtools rocksort: .*record")
        self.assertEqual(lines[1], "")

    def test_line_is_removed_after_a_signal(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process, terminal = self.on_terminal()
            terminal.wait_for(r"\rreading, ")
            process.send_signal(number)
            self.assert_died_of(process, number)
            terminal.read_all()
            self.assertEqual(terminal.screen.lines, [""], terminal.text)

    def test_stopped_terminal_holds_nobody(self):
        """A terminal that was stopped with Ctrl-S does not keep a signal from ending the run."""
        process, terminal = self.on_terminal()
        terminal.wait_for(r"\rreading, ")
        os.write(terminal.leader, b"\x13")
        time.sleep(0.6)
        process.send_signal(signal.SIGTERM)
        self.assert_died_of(process, signal.SIGTERM)

    def test_dumb_terminal_or_quiet_has_no_line(self):
        cases = ((["--quiet"], {}, ""), (["--verbosity", "1"], {}, ""),
                 ([], {"TERM": "dumb"}, "sorted"), ([], {"TERM": ""}, "sorted"))
        for options, env, expected in cases:
            with self.subTest(options=options, env=env):
                process, terminal = self.on_terminal(*options, env=env)
                self.finish(process)
                terminal.read_all()
                self.assertNotIn(CLEAR, terminal.text)
                self.assertNotIn("reading", terminal.text)
                if expected:
                    self.assertIn(expected, terminal.text)
                else:
                    self.assertEqual(terminal.text, "")

    def test_records_on_the_same_terminal_have_no_line_between(self):
        terminal = Terminal(self)
        process = self.held("-O", "sam", stdout=terminal.follower, stderr=terminal.follower)
        terminal.started()
        process.stdin.write(self.rest)
        process.stdin.close()
        terminal.read_all()
        self.assertEqual(process.wait(RUN_LIMIT_S), 0)
        self.assertNotIn(CLEAR, terminal.text)

    def test_each_file_that_is_verified_has_a_line(self):
        """The line is drawn again for the next file."""
        first = self.path("first.sam")
        self.sort_ok("-o", first, stdin=self.sam)
        self.sam = bytes_of(first)
        terminal = Terminal(self)
        process = self.held("--verify", first, "-", stderr=terminal.follower,
                            stdout=subprocess.DEVNULL)
        terminal.started()
        terminal.wait_for(r"\rreading, ")
        self.finish(process)
        terminal.read_all()
        self.assertEqual(terminal.screen.lines, [""])

    def test_checksum_only_has_a_line(self):
        terminal = Terminal(self)
        process = self.held("--checksum-only", stderr=terminal.follower)
        terminal.started()
        terminal.wait_for(r"\rreading, ")
        process.stdin.write(self.rest)
        process.stdin.close()
        out = process.stdout.read().decode()
        terminal.read_all()
        self.assertEqual(process.wait(RUN_LIMIT_S), 0)
        self.assertRegex(out, r"^xxh3sum:[0-9a-f]{16} records:6000 bytes:\d+\n$")
        self.assertEqual(terminal.screen.lines, [""])


class Elsewhere(ProgressTest):
    """Standard error is a pipe or a file."""

    def test_progress_is_silent_unasked(self):
        result = self.sort_ok("-o", self.path("out.bam"), stdin=self.sam)
        self.assertEqual(len(result.err.splitlines()), 1, result.err)
        self.assertRegex(result.err, CLOSING_LINE)

    def test_progress_is_printed_in_lines(self):
        for budget in (None, SPILL_BUDGET):
            process = self.held("--progress", "-o", self.path("out.bam"), budget=budget,
                                env={"ROCKSORT_TEST_PROGRESS": "0.05"})
            line = process.stderr.readline().decode()
            self.assertRegex(line, r"^samtools rocksort: reading, .*records.* so far\n$")
            process.stdin.write(self.rest)
            process.stdin.close()
            rest = process.stderr.read().decode()
            self.assertEqual(process.wait(RUN_LIMIT_S), 0)
            self.assertNotIn("\r", line + rest)
            self.assertNotIn("\x1b", line + rest)
            lines = rest.splitlines()
            self.assertRegex(lines[-1], CLOSING_LINE)
            for line in lines[:-1]:
                self.assertRegex(line, "^samtools rocksort: (reading|finishing|merging|closing)")

    def test_first_line_has_a_rate(self):
        """The first line has a rate, because rates count from the beginning of the phase."""
        process = self.held("--progress", "-o", self.path("out.bam"), budget=SPILL_BUDGET,
                            env={"ROCKSORT_TEST_PROGRESS": str(2 * SLOW)})
        self.assertRegex(process.stderr.readline().decode(), r"reading, [\d.]+ MB/s, ")
        self.finish(process)
        process.stderr.read()

    def test_sort_does_not_wait_for_the_next_line(self):
        """A signal, an error, or the end of the sort does not wait for the next line, which would
        come after a day."""
        env = {"ROCKSORT_TEST_PROGRESS": "86400"}
        process = self.held("--progress", "-o", self.path("out.bam"), env=env)
        process.send_signal(signal.SIGTERM)
        self.assert_died_of(process, signal.SIGTERM)
        for end, status in ((b"", 0), (b"x\n", 1)):
            result = self.rocksort("--progress", "-o", self.path("out.bam"), stdin=self.sam + end,
                                   env=env)
            self.assertEqual(result.status, status)


class Quiet(CliTest):
    """With --quiet only errors are printed on standard error."""

    def setUp(self):
        super().setUp()
        self.source = self.write("in.sam", generate.odd(200))

    def test_quiet_prints_nothing_but_errors(self):
        for options in (["--quiet"], ["--quiet", "--verbosity", "4"], ["--verbosity", "4",
                        "--quiet"], ["--quiet", "--progress"], ["--quiet", "-k"],
                        ["--quiet", "-n", "--write-index"]):
            result = self.sort_ok(*options, "-T", self.path("t."), "-o", self.path("out.bam"),
                                  self.source, clean=False)
            self.assertEqual(result.err, "", options)

    def test_errors_stay_with_quiet(self):
        result = self.rocksort("--quiet", "-o", self.path("out.bam"), self.path("absent.bam"))
        self.assert_error(result, "absent.bam")
        result = self.rocksort("--quiet", "-m", "x")
        self.assertEqual(result.status, 1)
        self.assertIn("-m", result.err)

    def test_checksum_is_printed_with_quiet(self):
        result = self.sort_ok("--quiet", "--checksum", "-o", self.path("out.bam"), self.source)
        self.assertRegex(result.err, r"^xxh3sum:[0-9a-f]{16} records:200 bytes:\d+\n$")


class ClosingLine(CliTest):
    """The closing line, whose words scripts may rely on."""

    def line_of(self, result):
        lines = [line for line in own_lines(result.err) if " s wall " in line]
        self.assertEqual(len(lines), 1, result.err)
        found = CLOSING_LINE.fullmatch(lines[0])
        self.assertTrue(found, lines[0])
        return {name: value if value == "?" or name == "name" else float(value)
                for name, value in found.groupdict().items() if value is not None}

    def test_closing_line_has_the_figures_of_the_sort(self):
        source, out = self.write("in.sam", generate.odd(9000)), self.path("out.bam")
        for budget in (None, SPILL_BUDGET):
            said = self.line_of(self.sort_ok("-o", out, source, budget=budget))
            self.assertEqual(said["records"], 9000)
            self.assertEqual(said["name"], out)
            self.assertAlmostEqual(said["input"], os.path.getsize(source) / 1e6, delta=0.051)
            self.assertAlmostEqual(said["output"], os.path.getsize(out) / 1e6, delta=0.051)
            self.assertAlmostEqual(said["load"] + said["merge"], said["wall"], delta=0.16)
            self.assertGreater(said["peak"], 1)
            self.assertEqual(said["runs"] > 0, bool(budget))
            self.assertEqual(said["temporary"] > 0, bool(budget))

    def test_closing_line_has_the_time_of_duplicates(self):
        """Finding duplicates is a part of its own."""
        source = self.write("in.sam", generate.odd(300))
        for options, is_there in (([], False), (["--fixmate", "--markdup"], True)):
            said = self.line_of(self.sort_ok(*options, "-u", "-o", self.path("out.bam"), source))
            self.assertEqual("mark" in said, is_there)

    def test_bytes_of_pipes_are_counted(self):
        sam = generate.odd(9000).encode()
        said = self.line_of(self.sort_ok("-u", stdin=sam))
        self.assertAlmostEqual(said["input"], len(sam) / 1e6, delta=0.1)
        self.assertEqual(said["name"], "standard output")
        bam = self.sort_ok("-u", "--no-PG", stdin=sam)
        again = self.line_of(self.sort_ok("-u", "--no-PG", stdin=bam.out))
        self.assertAlmostEqual(again["input"], len(bam.out) / 1e6, delta=0.06)
        self.assertAlmostEqual(again["output"], len(bam.out) / 1e6, delta=0.051)
