"""Usage text, man page and README agree on every option and default. The commands of README work,
and links have targets."""

import os
import re
import shlex
import shutil
import subprocess
import sys

import columns
import generate
from harness import (BUILD, ROOT, SAMTOOLS, CliTest, environment, kept_checkpoints, needs_pysam,
                     sam_split)

MAN_PAGE = ROOT / "doc/samtools-rocksort.1"
OPTION = r"(?<![\w-])-{1,2}[\w@][\w-]*"


def usage():
    """The usage text, with every option."""
    return subprocess.run([SAMTOOLS, "rocksort", "--help=all"], stdin=subprocess.DEVNULL, check=True,
                          capture_output=True, text=True, timeout=20).stdout


def usage_options():
    """The options that the usage text explains: the text before two or more spaces."""
    options = set()
    for line in usage().splitlines():
        match = re.match(r"  +((?:-{1,2}[\w@-]+[ ,]*)+)", line)
        if match:
            options.update(re.findall(r"-{1,2}[\w@][\w-]*", match.group(1)))
    return options


def commands(path):
    """The commands in the code blocks of a document, as (command, options of rocksort in it).
    Comments are removed, and continued lines are joined."""
    text = "\n".join(re.findall(r"^    (.*)$", path.read_text(), re.M))
    text = re.sub(r"(?<!\S)#.*", "", text)
    for command in re.sub(r"(\\|(\|))\n", r"\2 ", text).splitlines():
        words = []
        # What stands between quotes are options as of samtools fixmate, markdup and mosdepth.
        for part in re.split(r"[|;&]+", re.sub(r"(--[\w-]+)=([\"']).*?\2", r"\1", command)):
            words += re.findall(OPTION, part.split("rocksort ", 1)[1]) if re.search(
                r"(?:^|\s|/)samtools[ -]rocksort ", part) else []
        yield command.strip(), words


def documents():
    return [ROOT / "README.md", ROOT / "NEWS.md", ROOT / "packaging/README.md",
            *sorted((ROOT / "doc").rglob("*.md"))]


def anchors(path):
    """The anchors of a document's headings, as GitHub makes them."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            for heading in re.findall(r"^#+ (.*)$", path.read_text(), re.M)}


def man_page_entries():
    """The entries of options in the man page: a line with the option, then its text."""
    page = (ROOT / "doc/samtools-rocksort.1").read_text().replace("\\-", "-")
    return re.findall(r"^\.TP\n(\..*(?:\n(?!\.(?:TP|PP|SH)).*)*)", page, re.M)


class Documents(CliTest):
    """Compares the documents with the usage text, and checks their links and figures."""

    def test_the_man_page_explains_no_other_option(self):
        section = re.search(r"^\.SH OPTIONS\n(.*?)^\.SH ", MAN_PAGE.read_text(), re.M | re.S).group(1)
        headings = re.findall(r"^\.TP\n(.*)$", section.replace("\\-", "-"), re.M)
        entries = re.findall(r"(?<![\w-])-{1,2}[\w@][\w-]*", "\n".join(headings))
        self.assertEqual(usage_options() ^ set(entries), set())

    def test_defaults_are_the_same_in_all_documents(self):
        defaults = {}
        for line in usage().splitlines():
            match = re.match(r" +(?:-\S, )?(-{1,2}[\w@-]+).*\[(\S+)\]$", line)
            if match:
                defaults[match.group(1)] = match.group(2)
        self.assertEqual(set(defaults), {"-K", "-w", "-l", "--threads", "-m", "--temp-codec",
                                         "--verbosity", "--deflate"})
        entries = man_page_entries()
        for option, value in defaults.items():
            found = [text for text in entries
                     if re.search(rf"(?<![\w-]){option}(?![\w-])", text.split("\n", 1)[0])]
            self.assertEqual(len(found), 1, option)
            self.assertRegex(found[0], rf"(?<!\w){value}(?!\w)", option)

    # README and the other documents

    def test_commands_have_real_options(self):
        n_options = 0
        for path in documents():
            for command, options in commands(path):
                n_options += len(options)
                self.assertEqual(set(options) - usage_options(), set(), f"{path.name}: {command}")
        self.assertGreaterEqual(n_options, 60)

    def test_links_have_targets(self):
        for path in documents():
            for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
                if re.match(r"\w+:", target):
                    continue
                name, _, anchor = target.partition("#")
                file = (path.parent / name) if name else path
                self.assertTrue(file.exists(), f"{path.name}: {target}")
                if anchor:
                    self.assertIn(anchor, anchors(file), f"{path.name}: {target}")

    # How the man page looks

    def test_programs_that_read_man_pages_have_no_warnings(self):
        """whatis and apropos find only names without spaces, as lexgrog says."""
        # On minimal installations `man` is a script that says that man is not installed.
        for width in ("60", "80", "200") if shutil.which("man") and self.run_program(
                ["man", "--version"]).out.startswith(b"man ") else ():
            done = self.run_program(
                ["man", "--warnings", "--local-file", MAN_PAGE],
                env_only={**environment(self.scratch), "LC_ALL": "C.UTF-8", "MANWIDTH": width})
            self.assertEqual((done.status, done.err), (0, ""))
            self.assertIn(b"SYNOPSIS", done.out)
        for words, said in ((["lexgrog"], '"samtools-rocksort - '), (["mandoc", "-T", "lint"], "")):
            if shutil.which(words[0]):
                done = self.run_program([*words, MAN_PAGE])
                self.assertEqual((done.status, done.err), (0, ""), done.out)
                self.assertTrue(said in done.out.decode() and (said or not done.out), done.out)


@needs_pysam
class Commands(CliTest):
    """Runs the commands of README on small files, with aligners that only print records."""

    ALIGNERS = ("bwa", "minimap2", "STAR")

    def setUp(self):
        super().setUp()
        if not shutil.which("samtools"):
            self.skipTest("there is no other samtools, which the commands need for fixmate")
        if not columns.pyarrow:
            self.skipTest("there is no pyarrow, which rocksort-columns2sam needs")
        refs = generate.reference()
        self.write("ref.fa", generate.fasta(refs))
        sam = generate.reads(300, refs)
        self.bam_of(sam)
        for lane in (1, 2, 3):
            lane_bam = self.bam_of(sam, name=f"lane{lane}.bam")
            for name in (f"lane{lane}.sorted.bam", f"chr{lane}.bam"):
                self.sort_ok("-o", self.path(name), lane_bam)
        # Aligners write the reads of one name together.
        header, records = sam_split(sam)
        records.sort(key=lambda record: record.split("\t")[0])
        self.write("aligned.sam", header + "\n".join(records) + "\n")
        programs = self.work / "bin"
        programs.mkdir()
        for name in self.ALIGNERS:
            (programs / name).write_text(f"#!/bin/sh\nexec cat '{self.path('aligned.sam')}'\n")
            (programs / name).chmod(0o755)
        os.symlink(ROOT / "scripts/columns2sam.py", programs / "rocksort-columns2sam")
        # README runs `samtools`; in a special build the program has another path.
        self.env = environment(self.scratch, extra={
            "PATH": f"{programs}:{BUILD}:{os.path.dirname(sys.executable)}:{os.environ['PATH']}",
            "USER": "user"})

    def shell(self, command):
        """Runs a command of README as a user's shell does, after `set -o pipefail`."""
        return self.run_program(["bash", "-c", f"set -o pipefail; {command}"], env_only=self.env)

    def interrupted(self):
        """The checkpoint of a sort that fails because its output device is full."""
        full = self.rocksort("-o", "/dev/full", self.path("in.bam"), budget=100_000, clean=False,
                             env={"TMPDIR": str(self.work)})
        checkpoints = kept_checkpoints(full.err)
        self.assertEqual(len(checkpoints), 1, full.err)
        return checkpoints[0]

    def outputs(self):
        """{path: time of its last change} of the sorted files."""
        return {path: path.stat().st_mtime_ns for path in self.work.iterdir()
                if path.suffix in (".bam", ".cram", ".arrow", ".parquet")}

    def test_commands_of_the_readme(self):
        found = [command for command, _ in commands(ROOT / "README.md") if "rocksort " in command]
        self.assertGreaterEqual(len(found), 13)
        self.assertEqual([name for name in self.ALIGNERS if name not in " ".join(found)], [])
        for command in found:
            if "--resume" in command:
                checkpoint = shlex.quote(self.interrupted())
                command = re.sub(r"(?<=--resume )\S+", f"{checkpoint} -o resumed.bam", command)
            before = self.outputs()
            done = self.shell(command.replace("/scratch/$USER", str(self.scratch)))
            self.assertEqual(done.status, 0, f"{command}: {done.err}")
            self.assertEqual(os.listdir(self.scratch), [], command)
            written = [path for path, time in self.outputs().items() if before.get(path) != time]
            sorts = not re.search("--(clean|plan|verify|checksum-only) ", command)
            if "--split-by" in command:
                self.assertGreater(len(written), 2, command)
            else:
                self.assertEqual(len(written), sorts + ("--also" in command), command)
            if sorts:
                self.check_outputs(written, command)

    def check_outputs(self, paths, command):
        """The outputs are sorted and have the 600 records of each input; two outputs have them
        twice."""
        n_inputs = len(re.findall(r"(?:lane|chr)\d", command)) or 1
        n_records = 0
        for path in paths:
            if path.suffix in (".arrow", ".parquet"):
                done = self.shell(f"rocksort-columns2sam {path} | samtools rocksort --verify -")
            else:
                done = self.rocksort("--verify", "--reference", self.path("ref.fa"), path)
            self.assertEqual(done.status, 0, f"{command}: {done.err}")
            n_records += int(re.search(r"records:(\d+) ", done.out.decode()).group(1))
        self.assertEqual(n_records, 600 * n_inputs * (1 + ("--also" in command)), command)
