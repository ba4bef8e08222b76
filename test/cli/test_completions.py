"""Completions: options.tsv agrees with the usage text, and bash, zsh and fish complete with it."""

import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import termios
import time
import unittest

from harness import ROOT, SLOW, CliTest, environment
from test_docs import usage, usage_options

TABLE = ROOT / "completions/options.tsv"
GENERATOR = ROOT / "completions/generate.awk"
FISH_FRONT_END = ROOT / "completions/samtools.fish"

# What is typed before the tab, and the last word after completion (None: there is none).
CASES = [
    ("samtools-rocksort --template-c", "--template-coordinate"),
    ("samtools-rocksort --temp-codec zs", "zstd"),
    ("samtools-rocksort --output-fmt cr", "cram"),
    ("samtools-rocksort -n -O cr", "cram"),
    ("samtools-rocksort -T onlyd", "onlydir/"),
    ("samtools-rocksort -T onlyf", None),
    ("samtools-rocksort -o onlyf", "onlyfile.bam"),
    ("samtools-rocksort -n onlyf", "onlyfile.bam"),
    ("samtools-rocksort -m onlyf", None),
    ("samtools-rocksort --temp-codec=zs", "--temp-codec=zstd"),
    ("samtools-rocksort --verify=co", "--verify=coordinate"),
    ("samtools-rocksort --verify onlyf", "onlyfile.bam"),
    ("samtools-rocksort --verify --progr", "--progress"),
    ("samtools rock", "rocksort"),
    ("samtools rocksort --template-c", "--template-coordinate"),
    ("samtools rocksort -s of", "off"),
    ("samtools view --template-c", None),
    ("samtools sort --template-c", None),
]
AS_SORT = ("samtools sort --template-c", "--template-coordinate")


def table():
    """{option: argument} of options.tsv; each name of an option is a key."""
    rows = [line.split("\t") for line in TABLE.read_text().splitlines() if line[:1] != "#"]
    return {name: row[1] for row in rows for name in row[0].split()}


def usage_arguments():
    """{option: whether the usage text shows an argument for it}."""
    shown = {}
    for line in usage().splitlines():
        match = re.match(r"  +(-{1,2}[\w@-]+(?:, --[\w-]+)?)(\[=\S+| [A-Z]+\S*)?(?:  | *$)", line)
        if match:
            shown.update(dict.fromkeys(match.group(1).split(", "), bool(match.group(2))))
    return shown


def installed(shell):
    """Skips the test if the shell is not installed."""
    return unittest.skipUnless(shutil.which(shell), f"{shell} is not installed")


class Terminal:
    """A shell that runs on its own pseudo-terminal."""

    def __init__(self, argv, env, cwd):
        self.leader, follower = pty.openpty()
        # So wide that the shell wraps no line.
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 2000, 0, 0))
        self.process = subprocess.Popen(argv, stdin=follower, stdout=follower, stderr=follower,
                                        env=env, cwd=cwd, start_new_session=True)
        os.close(follower)
        self.seen, self.n_answers = b"", 0

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.leader)

    def send(self, text):
        os.write(self.leader, text.encode())

    def complete(self, typed):
        """Types a line and a tab; returns the words of the completed line."""
        # Ctrl-A goes to the beginning of the line, and printf then prints its words. 42 marks the
        # answer: it is not in the typed text, which the terminal shows as well.
        self.send(f"{typed}\t\x01printf '%s|' $((40 + 2))answer \r")
        self.n_answers += 1
        end = time.monotonic() + 30 * SLOW
        while True:
            answers = re.findall(rb"42answer\|(.*?\|)(?=[^|]*[\r\n]|[^|]*$)", self.seen)
            if len(answers) == self.n_answers and self.seen.endswith(b"READY"):
                return answers[-1].decode().rstrip("|").split("|")
            if time.monotonic() > end:
                raise AssertionError(f"no answer for {typed!r}: {self.seen[-1000:]!r}")
            if select.select([self.leader], [], [], 0.1)[0]:
                self.seen += os.read(self.leader, 65536)


class Table(CliTest):
    """options.tsv against the usage text."""

    def test_every_option(self):
        listed, shown = set(table()), usage_options()
        self.assertEqual(shown - listed, set(),
                         "options of the usage text that have no line in completions/options.tsv")
        self.assertEqual(listed - shown, set(),
                         "options of completions/options.tsv that the usage text does not have")

    def test_options_with_arguments_are_those_of_the_usage(self):
        shown = usage_arguments()
        self.assertEqual(set(shown), usage_options())
        for name, argument in table().items():
            self.assertEqual(argument != "-", shown[name],
                             f"{name}: usage text and options.tsv disagree about its argument")


class Shells(CliTest):
    """Each shell with its generated script."""

    def setUp(self):
        super().setUp()
        (self.work / "onlydir").mkdir()
        self.write("onlyfile.bam", b"")
        # Without the settings and completions of the user who runs the tests.
        self.env = environment(self.scratch, extra={
            "HOME": str(self.scratch), "TERM": "dumb", "PS1": "READY", "XDG_CONFIG_HOME": "",
            "ZDOTDIR": str(self.scratch), "HISTFILE": ""})
        self.env.pop("SAMTOOLS_SORT", None)

    def script(self, shell, name=None):
        """Writes the script of a shell to a file in work; returns its path."""
        made = subprocess.run(["awk", "-v", f"shell={shell}", "-f", GENERATOR, TABLE], check=True,
                              capture_output=True, text=True)
        self.assertEqual(made.stderr, "")
        return self.write(name or f"{shell}.script", made.stdout)

    def terminal(self, argv, **env):
        """Starts a Terminal, which is closed when the test ends."""
        terminal = Terminal(argv, {**self.env, **env}, self.work)
        self.addCleanup(terminal.close)
        return terminal

    def check_terminal(self, terminal, cases):
        """Completes each case in the terminal."""
        for typed, last in cases:
            words = typed.split()
            if last is not None:
                words[-1] = last
            self.assertEqual(terminal.complete(typed), words, typed)

    def test_generator_refuses_what_it_does_not_know(self):
        for table_text in ("-n\n", "n\t-\tname\n", "-n\t-\tit's\n"):
            path = self.write("bad.tsv", table_text)
            done = self.run_program(["awk", "-v", "shell=bash", "-f", GENERATOR, path])
            self.assertEqual(done.status, 1)
            self.assertIn("bad.tsv:1", done.err)

    @installed("bash")
    def test_bash_completes_options_and_files(self):
        script = self.script("bash")
        for line in ("samtools-rocksort -", "samtools rocksort -"):
            words = line.split()
            done = self.run_program(
                ["bash", "--norc", "-c", 'source "$1"; COMP_WORDS=("${@:2}"); '
                 'COMP_CWORD=$(($# - 2)); _samtools_rocksort; printf "%s\n" "${COMPREPLY[@]}"',
                 "bash", script, *words])
            self.assertEqual(done.status, 0, done.err)
            self.assertEqual(set(done.out.decode().split()), set(table()), done.err)
        start = ["bash", "--noprofile", "--rcfile", self.write("rc", f"source '{script}'\n"
                 "bind 'set enable-bracketed-paste off' 'set bell-style none'\nPS1=READY\n"), "-i"]
        self.check_terminal(self.terminal(start), CASES)
        self.check_terminal(self.terminal(start, SAMTOOLS_SORT="rocksort"), [AS_SORT])

    @installed("zsh")
    def test_zsh_completes_options_and_files(self):
        self.script("zsh", "_samtools-rocksort")
        self.write(".zshrc", f"fpath=('{self.work}' $fpath)\nautoload -Uz compinit\n"
                   f"compinit -u -d '{self.scratch}/dump'\nbindkey -e\n"
                   "unset zle_bracketed_paste\nunsetopt prompt_cr prompt_sp beep\n"
                   "unsetopt auto_remove_slash\nPS1=READY\n")
        start = ["zsh", "-d", "-i"]
        place = {"ZDOTDIR": str(self.work)}
        self.check_terminal(self.terminal(start, **place), CASES)
        self.check_terminal(self.terminal(start, **place, SAMTOOLS_SORT="rocksort"), [AS_SORT])

    def fish(self, line, **env):
        """The completions that fish offers for a line."""
        script = self.script("fish")
        done = self.run_program(
            ["fish", "--no-config", "-c", 'source $argv[1]; source $argv[2]; complete -C $argv[3]',
             script, FISH_FRONT_END, line], env_only={**self.env, **env})
        self.assertEqual((done.status, done.err), (0, ""), line)
        return [found.split("\t")[0] for found in done.out.decode().splitlines()]

    @installed("fish")
    def test_fish_completes_options_and_files(self):
        for line in ("samtools-rocksort -", "samtools rocksort -"):
            # --help and --verify have optional arguments with known values: fish shows both
            # forms of each.
            self.assertEqual(set(self.fish(line)), set(table()) | {"--help=", "--verify="}, line)
        for typed, last in CASES:
            self.assertEqual(self.fish(typed), [last] if last else [], typed)
        self.assertEqual(self.fish(AS_SORT[0], SAMTOOLS_SORT="rocksort"), [AS_SORT[1]])
