"""Usage text, man page and README say the same: every option, and every default in brackets."""

import re
import subprocess

from harness import ROOT, SAMTOOLS, CliTest


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
