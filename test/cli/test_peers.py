"""bench/compare.py: its output, peers that are not installed, wrong results, which it must find.

Fake programs with the names of peers are on a PATH that besides has only the real samtools. They
sort with Python; some make mistakes on purpose.
"""

import json
import os
import re
import shutil
import sys
import zlib

import bamfile
from harness import ROOT, SAMTOOLS, SLOW, CliTest, environment

REFS = [("chr1", 100_000), ("chr2", 50_000)]
INSTALL = {"samtools": "apt-get install samtools", "fgumi": "cargo install fgumi --locked",
           "mako": "cargo install fg-mako --locked", "sambamba": "apt-get install sambamba",
           "bamsort": "apt-get install biobambam2",
           "picard": "apt-get install picard-tools"}
MEASURES = ("wall_s", "cpu_s", "rss_bytes", "temp_bytes", "output_bytes")

# Takes the options of sambamba and of bamsort. spoil is Python that may change `records`.
FAKE = """#!{python} -B
import sys
sys.path.insert(0, {here!r})
import bamfile
words = sys.argv[1:]
if "--version" in words:
    sys.exit("sambamba 9.8.7, biobambam2 version 9.8.7.")
if "sort" in words:
    source, output = words[-1], words[words.index("-o") + 1]
else:
    named = dict(word.split("=", 1) for word in words)
    source, output = named["I"], named["O"]
with open(source, "rb") as file:
    raw = bamfile.gzip.decompress(file.read())
bam = bamfile.parse(raw)
records = bamfile.split(bam.records)
records.sort(key=lambda r: (bamfile.fields(r)[0] & 0xffffffff, bamfile.fields(r)[1]))
{spoil}
data = raw[:len(raw) - len(bam.records)] + b"".join(records)
with open(output, "wb") as file:
    file.write(bamfile.bgzf(data){tail})
"""


def unsorted_bam(n_records=3000):
    """The bytes of an unsorted BAM; some records have no position."""
    data = [bamfile.bam_header("@HD\tVN:1.6\n" + bamfile.sq_text(REFS), REFS)]
    for i in range(n_records):
        chance = zlib.crc32(b"%d" % i)
        if chance % 10 == 0:
            data.append(bamfile.record(f"u{i}", flag=4, seq="ACGT" * 10))
        else:
            data.append(bamfile.record(f"r{i}", flag=chance % 2 * 16, tid=chance // 16 % 2,
                                       pos=chance // 32 % 40_000, cigar="40M", seq="ACGT" * 10))
    return bamfile.bgzf(b"".join(data))


class Compare(CliTest):
    """Runs compare.py on a small input."""

    def setUp(self):
        super().setUp()
        self.bin = self.work / "bin"
        self.bin.mkdir()
        self.input = self.write("in.bam", unsorted_bam())
        self.upstream = shutil.which("samtools")

    def fake(self, name, spoil="", tail=""):
        """Makes a peer of that name, which sorts correctly unless spoil changes that."""
        path = self.bin / name
        path.write_text(FAKE.format(python=sys.executable, here=os.path.dirname(__file__),
                                    spoil=spoil, tail=tail))
        path.chmod(0o755)

    def compare(self, *options, programs="rocksort,sambamba", path=None):
        """Runs it with the fakes on PATH. Returns (status, report or None, Markdown, messages)."""
        out = {kind: self.path("peers." + kind) for kind in ("json", "markdown", "png")}
        env = environment(self.scratch, extra={"PATH": path or str(self.bin)})
        result = self.run_program(
            [sys.executable, ROOT / "bench" / "compare.py", "--input", self.input, "--cold-memory",
             "--repeats", "1", "--memory", "16M", "--dir", self.scratch, "--programs", programs,
             "--rocksort", SAMTOOLS + " rocksort", "--json", out["json"],
             "--markdown", out["markdown"], *options], env_only=env, limit_s=120 * SLOW)
        self.assertEqual(os.listdir(self.scratch), [], "left behind")
        report, text = None, ""
        if os.path.exists(out["json"]):
            with open(out["json"], encoding="utf-8") as file:
                report = json.load(file)
            with open(out["markdown"], encoding="utf-8") as file:
                text = file.read()
        return result.status, report, text, result.err

    def assert_wrong(self, message, **how):
        """All files of compare.py say that such a sambamba is wrong, and that rocksort is not."""
        self.fake("sambamba", **how)
        status, report, text, err = self.compare("--repeats", "2")
        self.assertEqual(status, 1, err)
        wrong = [run for run in report["runs"] if run["wrong"]]
        self.assertEqual([run["who"] for run in wrong], ["sambamba"])
        self.assertRegex(wrong[0]["wrong"], message)
        self.assertRegex(text, r"(?m)^\|.*\| sambamba \|.*\*\*WRONG\*\*: .*" + message)
        self.assertRegex(err, "wrong results, or none, from: sambamba")

    # Output

    def test_report(self):
        """The JSON has all fields for each run; the table has a row for each median."""
        self.fake("sambamba")
        names = ["rocksort", "sambamba"]
        if self.upstream:
            (self.bin / "samtools").symlink_to(self.upstream)
            names.insert(1, "samtools")
        status, report, text, err = self.compare(
            "--settings", "16M:1,all:default", "--repeats", "2", programs=",".join(names))
        self.assertEqual(status, 0, err)
        self.assertEqual(list(report["programs"]), names)
        for key in ("commit", "date", "machine", "threads", "cache", "free_memory"):
            self.assertIn(key, report)
        self.assertEqual(report["programs"]["sambamba"]["version"], "9.8.7")
        self.assertTrue(report["programs"]["rocksort"]["codec"])
        self.assertEqual(report["input"]["records"], 3000)
        self.assertEqual([setting["level"] for setting in report["settings"]], [1, 6])
        self.assertEqual(len(report["runs"]), 2 * 2 * len(names))
        for run in report["runs"]:
            for key in MEASURES:
                self.assertGreaterEqual(run[key], 0 if key == "temp_bytes" else 1e-9, key)
            self.assertEqual((run["wrong"], run["compared"]), (None, "content"))
        # In turn: the second round has the other order.
        order = [run["who"] for run in report["runs"]]
        self.assertEqual(order[:len(names)], names)
        self.assertNotEqual(order[len(names):2 * len(names)], names)
        self.assert_table(text, 2 * len(names))

    def assert_table(self, text, n_rows):
        """Heading, rule and rows have the same columns; ratios of rocksort are 1."""
        rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
        self.assertEqual(len(rows), 2 + n_rows)
        self.assertEqual({len(row) for row in rows}, {11})
        self.assertEqual(rows[0][1].strip(), "program")
        self.assertEqual({(row[4].strip(), row[6].strip()) for row in rows if " rocksort " in row},
                         {("**1.00**", "1.00")})

    def test_missing_peers(self):
        """A message, the Markdown and the JSON name each one and the command that installs it."""
        status, report, text, err = self.compare(programs=",".join(INSTALL))
        self.assertEqual(status, 0, err)
        self.assertEqual(report["missing"], INSTALL)
        self.assertEqual(list(report["programs"]), ["rocksort"])
        for name, install in INSTALL.items():
            self.assertIn(f"{name} is not installed: {install}\n", err)
            self.assertIn(f"- {name} is not installed: `{install}`\n", text)

    def test_plot(self):
        """A small PNG with matplotlib, otherwise a note. Both are a success."""
        status, _, _, err = self.compare("--plot", self.path("peers.png"))
        self.assertEqual(status, 0, err)
        if os.path.exists(self.path("peers.png")):
            with open(self.path("peers.png"), "rb") as file:
                data = file.read()
            self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
            self.assertLess(len(data), 100_000)
        else:
            self.assertIn("apt-get install python3-matplotlib", err)

    # Wrong results

    def test_dropped_record(self):
        self.assert_wrong("2999 records instead of 3000", spoil="del records[1234]")

    def test_replaced_record(self):
        self.assert_wrong("other content", spoil="records[1235] = records[1234]")

    def test_changed_record(self):
        self.assert_wrong("other content", spoil="records[77] = records[77][:-1] + b'!'")

    def test_not_sorted(self):
        self.assert_wrong("not sorted: record 2 ", spoil="records[0:2] = records[1::-1]")

    def test_unplaced_first(self):
        self.assert_wrong("not sorted", spoil="records.insert(0, records.pop())")

    def test_no_closing_block(self):
        self.assert_wrong("end-of-file block", tail="[:-28]")

    def test_cut_within_a_record(self):
        self.assert_wrong("ends within record 2999", spoil="records[-1] = records[-1][:-1]")

    def test_failure(self):
        self.assert_wrong("failed: exit code 3", spoil="sys.exit(3)")

    def test_no_output(self):
        self.assert_wrong("failed: no output", spoil="sys.exit(0)")

    def test_bin_is_not_content(self):
        """Picard and others compute it again, and the report says so."""
        self.fake("bamsort", spoil="records[-1] = records[-1][:14] + b'67' + records[-1][16:]")
        status, report, text, err = self.compare(programs="bamsort")
        self.assertEqual(status, 0, err)
        self.assertRegex(report["runs"][1]["compared"], "bin")
        self.assertRegex(text, "bamsort: compared content but for the field bin")

    # The command line

    def test_bad_words(self):
        for option, word, message in (("--memory", "4Q", "not a size"),
                                      ("--level", "11", "not a level"),
                                      ("--settings", "64M", "MEMORY:LEVEL"),
                                      ("--programs", "sort",
                                       "there are: rocksort, rocksort-auto, samtools")):
            status, _, _, err = self.compare(option, word)
            self.assertEqual(status, 2)
            self.assertRegex(re.sub(r"\s+", " ", err), message)

    def test_input_is_no_bam(self):
        self.input = self.write("text.bam", "no BAM at all, but longer than a closing block is\n")
        status, _, _, err = self.compare()
        self.assertEqual(status, 1)
        self.assertIn("text.bam has no end-of-file block", err)
