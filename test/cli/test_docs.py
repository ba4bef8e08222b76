"""Usage text, man page and README say the same: every option, and every default in brackets."""

import re
import shutil
import subprocess

from harness import ROOT, SAMTOOLS, CliTest, environment

MAN_PAGE = ROOT / "doc/samtools-rocksort.1"
SECTIONS = ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "ORDERING RULES", "MEMORY",
            "TEMPORARY FILES", "RESUMING", "EXIT STATUS", "ENVIRONMENT", "EXAMPLES", "SEE ALSO"]


def usage():
    """The usage text."""
    return subprocess.run([SAMTOOLS, "rocksort", "--help"], stdin=subprocess.DEVNULL, check=True,
                          capture_output=True, text=True, timeout=20).stdout


def usage_options():
    """The options that the usage text explains: what stands before two or more blanks."""
    options = set()
    for line in usage().splitlines():
        match = re.match(r"  +((?:-{1,2}[\w@-]+[ ,]*)+)", line)
        if match:
            options.update(re.findall(r"-{1,2}[\w@][\w-]*", match.group(1)))
    return options


def man_page_entries():
    """The man page's explanations of options: a line with the option, then the text."""
    page = (ROOT / "doc/samtools-rocksort.1").read_text().replace("\\-", "-")
    return re.findall(r"^\.TP\n(\..*(?:\n(?!\.(?:TP|PP|SH)).*)*)", page, re.M)


class Documents(CliTest):
    """The documents against the usage text."""

    def test_usage_has_options(self):
        self.assertGreaterEqual(len(usage_options()), 18)

    def test_every_option_is_in_the_man_page(self):
        page = (ROOT / "doc/samtools-rocksort.1").read_text().replace("\\-", "-")
        entries = re.findall(r"(?<![\w-])-{1,2}[\w@][\w-]*", page)
        self.assertEqual(usage_options() - set(entries), set())

    def test_every_option_is_in_the_readme(self):
        rows = re.findall(r"^\| (.*?) \|", (ROOT / "README.md").read_text(), re.M)
        entries = re.findall(r"(?<![\w-])-{1,2}[\w@][\w-]*", "\n".join(rows))
        self.assertEqual(usage_options() ^ set(entries), set())

    def test_defaults_agree(self):
        defaults = {}
        for line in usage().splitlines():
            match = re.match(r" +(?:-\S, )?(-{1,2}[\w@-]+).*\[(\S+)\]$", line)
            if match:
                defaults[match.group(1)] = match.group(2)
        self.assertEqual(set(defaults), {"-K", "-w", "-l", "--threads", "-m", "--temp-codec",
                                         "--verbosity"})
        readme = (ROOT / "README.md").read_text()
        for option, value in defaults.items():
            row = re.search(rf"^\|[^|\n]*{re.escape(option)}\b.*$", readme, re.M)
            if value != "0":
                self.assertIn(f"[{value}]", row.group(0), option)
        entries = man_page_entries()
        for option, value in defaults.items():
            found = [text for text in entries
                     if re.search(rf"(?<![\w-]){option}(?![\w-])", text.split("\n", 1)[0])]
            self.assertEqual(len(found), 1, option)
            self.assertRegex(found[0], rf"(?<!\w){value}(?!\w)", option)

    # How the man page looks

    def test_sections_of_the_man_page(self):
        found = re.findall(r"^\.SH (.*)$", MAN_PAGE.read_text(), re.M)
        self.assertEqual([name for name in SECTIONS if name not in found], [])
        self.assertEqual(len(found), len(set(found)))

    def test_man_has_no_warnings(self):
        """As a user sees it, in a narrow and in a wide terminal."""
        # On small installations `man` is a script that says so.
        if not shutil.which("man") or not self.run_program(["man", "--version"]).out.startswith(
                b"man "):
            self.skipTest("man is not installed")
        for width in ("60", "80", "200"):
            done = self.run_program(
                ["man", "--warnings", "--local-file", MAN_PAGE],
                env_only={**environment(self.scratch), "LC_ALL": "C.UTF-8", "MANWIDTH": width})
            self.assertEqual((done.status, done.err), (0, ""))
            self.assertIn(b"SYNOPSIS", done.out)

    def test_whatis_finds_the_man_page(self):
        """The index of whatis and apropos takes names without blanks only."""
        if not shutil.which("lexgrog"):
            self.skipTest("lexgrog is not installed")
        done = self.run_program(["lexgrog", MAN_PAGE])
        self.assertEqual((done.status, done.err), (0, ""), done.out)
        self.assertIn(b'"samtools-rocksort - ', done.out)

    def test_mandoc_has_no_warnings(self):
        if not shutil.which("mandoc"):
            self.skipTest("mandoc is not installed")
        done = self.run_program(["mandoc", "-T", "lint", MAN_PAGE])
        self.assertEqual((done.status, done.out.decode() + done.err), (0, ""))
