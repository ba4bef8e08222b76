"""bench/bench-2014.py and scripts/plot-run.py: their output, on a plain disk and a modelled one.

The input is tiny and its figures mean nothing, so only shapes, sums and messages are tested.
"""

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest
import zlib

import bamfile
from harness import ROOT, SAMTOOLS, SLOW, CliTest, default_signals, environment, wait_for

REFS = [("chr1", 100_000), ("chr2", 50_000)]
SPINDLE = ROOT / "bench" / "spindle"
RUN_KEYS = {"who", "level", "command", "limit_bytes", "wrong", "repeat", "wall_s", "cpu_s",
            "rss_bytes", "sync_s", "temp_peak_bytes", "output_bytes", "disk", "device", "said",
            "marks", "series", "digest", "checked"}
COLUMNS = {"t_s", "cpu_s", "read_bytes", "write_bytes", "seeks", "busy_s", "rss_bytes",
           "temp_bytes"}
PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
# Prints where the labels of a figure lie. The path of plot-run.py and the files are its arguments.
SHOW_LABELS = """
import importlib.util, json, sys
import matplotlib
matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.text import Annotation
spec = importlib.util.spec_from_file_location("plot_run", sys.argv[1])
plot_run = importlib.util.module_from_spec(spec)
spec.loader.exec_module(plot_run)
figure = plot_run.draw(pyplot, [plot_run.load(path) for path in sys.argv[2:]], "", plot_run.ROWS)
figure.canvas.draw()
boxes = [("figure", figure.bbox)]
for label in figure.findobj(Annotation):
    boxes.append((label.get_text().strip(), label.get_window_extent()))
print(json.dumps([[text, box.x0, box.y0, box.x1, box.y1] for text, box in boxes]))
"""

# For --rocksort: a program that passes questions to the real one, and spoils sorts.
FAKE = """#!/bin/sh
case "$*" in
*--checksum-only*|*--version*) exec {samtools} rocksort "$@" ;;
esac
{spoil}
"""


def unsorted_bam(n_records=4000):
    """The bytes of an unsorted BAM."""
    data = [bamfile.bam_header("@HD\tVN:1.6\n" + bamfile.sq_text(REFS), REFS)]
    for i in range(n_records):
        chance = zlib.crc32(b"%d" % i)
        data.append(bamfile.record(f"r{i}", flag=chance % 2 * 16, tid=chance // 16 % 2,
                                   pos=chance // 32 % 40_000, cigar="40M", seq="ACGT" * 10))
    return bamfile.bgzf(b"".join(data))


def why_no_model():
    """The reason why there is no modelled disk here, or None."""
    if not os.access(SPINDLE, os.X_OK):
        return "bench/spindle is not built"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "no /dev/fuse here"
    return None


def find_matplotlib():
    """A Python that has matplotlib: the one that runs the tests, or Debian's."""
    for python in (sys.executable, "/usr/bin/python3"):
        if shutil.which(python) and subprocess.run(
                [python, "-c", "import matplotlib"], check=False,
                stderr=subprocess.DEVNULL).returncode == 0:
            return python
    return None


class Unmount(CliTest):
    """Unmounting a disk."""

    def test_server_that_lingers(self):
        """It is no error if spindle has unmounted but says that its process has not ended."""
        sys.path.insert(0, str(ROOT / "bench"))
        self.addCleanup(sys.path.remove, str(ROOT / "bench"))
        import modelled_run
        spindle = self.write("spindle",
                             "#!/bin/sh\necho spindle: process 1 has not ended\nexit 1\n")
        os.chmod(spindle, 0o700)
        with modelled_run.Disk(self.path(""), [], spindle) as disk:
            os.mkdir(disk.folder)
            self.assertTrue(disk.is_modelled())
        self.assertEqual(os.listdir(self.work), ["spindle"])


class Bench2014(CliTest):
    """Runs bench-2014.py on a small input."""

    def setUp(self):
        super().setUp()
        if not shutil.which("samtools"):
            self.skipTest("there is no samtools on PATH to compare with")
        self.input = self.write("in.bam", unsorted_bam())
        self.out = self.work / "out"

    def words(self, *options):
        # Relative paths: programs run in another directory, and once did not find the input.
        return [sys.executable, "-B", str(ROOT / "bench" / "bench-2014.py"),
                "--input", os.path.relpath(self.input, self.work), "--memory-mib", "4",
                "--data-dir", os.path.relpath(self.scratch, self.work), "--out", str(self.out),
                "--rocksort", SAMTOOLS + " rocksort", *options]

    def bench(self, *options):
        """(Result, JSON, Markdown); the last two are None if they were not written."""
        result = self.run_program(self.words(*options), limit_s=120 * SLOW)
        self.assertEqual(os.listdir(self.scratch), [], "left in the scratch directory")
        report = text = None
        if (self.out / "results.json").exists():
            report = json.loads((self.out / "results.json").read_text(encoding="utf-8"))
            text = (self.out / "results.md").read_text(encoding="utf-8")
        return result, report, text

    def bench_ok(self, *options):
        result, report, text = self.bench(*options)
        self.assertEqual(result.status, 0, result.err[-2000:])
        self.assertEqual(result.out.decode(), text)
        self.assertTrue(report["done"])
        for run in self.runs(report):
            self.assertIsNone(run["wrong"])
        return report, text

    @staticmethod
    def runs(report):
        return [run for part in report["experiments"] + report["storage"] for run in part["runs"]]

    def check_series(self, run):
        path = self.out / run["series"]
        series = json.loads(path.read_text(encoding="utf-8"))
        self.assertEqual(series["label"], run["who"])
        self.assertEqual(set(series["columns"]), COLUMNS)
        self.assertEqual({len(values) for values in series["columns"].values()},
                         {len(series["columns"]["t_s"])})
        for name in COLUMNS - {"rss_bytes", "temp_bytes"}:
            values = series["columns"][name]
            self.assertEqual(values, sorted(values), name)
        self.assertAlmostEqual(series["columns"]["t_s"][-1], run["wall_s"], places=2)

    # Output

    def test_plain_disk(self):
        report, text = self.bench_ok("--spindle", "/no/spindle", "--experiment", "all",
                                     "--storage", "ebs-gp2,nvme")
        self.assertEqual([part["experiment"]["name"] for part in report["experiments"]],
                         ["low-coverage", "deep-ssd", "little-memory"])
        self.assertEqual([run["who"] for run in report["experiments"][2]["runs"]],
                         ["rocksort-given", "rocksort-auto", "samtools"])
        for run in self.runs(report):
            if run["who"] != "copy":
                self.assertLessEqual(RUN_KEYS, set(run))
                self.assertEqual(run["checked"], "content")
            self.check_series(run)
            self.assertIsNone(run["disk"])
            self.assertEqual(run["limit_bytes"], 0)
        self.assertRegex(text, r"no modelled one\*\*: /no/spindle is missing")
        self.assertRegex(text, "memory: not limited: /no/spindle is missing")
        self.assertRegex(text, r"\| 1 \| rocksort \| [\d.]+ \| \*\*[\d.]+\*\* \(<= 0.60\) ")
        self.assertRegex(text, "What the ratio of 2014, 0.17, would take")
        self.assertRegex(text, r"\| NVMe of the instance \| 191.79 \| samtools \| [\d.]+ \|")
        # The first device is 100 %; others may be, too, after rounding.
        self.assertRegex(text, r"\| 174.11 \| samtools \| [\d.]+ \| 100 % "
                               r"\| [\d.]+ \| \*\*100 %\*\* \|")

    def test_modelled_disk(self):
        why = why_no_model()
        if why:
            self.skipTest(why)
        report, text = self.bench_ok("--experiment", "little-memory", "--device", "nvme",
                                     "--repeats", "2")
        runs = self.runs(report)
        self.assertEqual([run["who"] for run in runs],
                         ["rocksort-given", "rocksort-auto", "samtools",
                          "samtools", "rocksort-auto", "rocksort-given"])
        size = os.stat(self.input).st_size
        for run in runs:
            self.check_series(run)
            self.assertGreaterEqual(run["disk"]["read_bytes"], size)
            self.assertGreaterEqual(run["disk"]["write_bytes"], run["output_bytes"])
            self.assertEqual(run["device"]["name"], "nvme")
        self.assertRegex(text, "modelled by bench/spindle")
        self.assertNotRegex(text, "WRONG")
        with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
            self.assertNotIn(str(self.scratch), mounts.read())

    def test_no_fuse(self):
        fake = self.write("spindle", "#!/bin/sh\necho 'spindle: no FUSE here' >&2; exit 77\n")
        os.chmod(fake, 0o755)
        _, text = self.bench_ok("--spindle", fake, "--experiment", "low-coverage", "--programs",
                                "samtools")
        self.assertRegex(text, r"no modelled one\*\*: spindle: no FUSE here")
        self.assertRegex(text, "memory: not limited: spindle: no FUSE here")

    def test_small_disk(self):
        """A small file of the user's needs little disk. It once was asked for that of 17 GB."""
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", self.scratch],
                          stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("cannot mount a small file system")
        self.addCleanup(subprocess.run, ["umount", str(self.scratch)], check=False)
        self.bench_ok("--spindle", "/no/spindle", "--experiment", "little-memory",
                      "--programs", "copy")

    def test_commands_are_those_of_2014(self):
        report, _ = self.bench_ok("--spindle", "/no/spindle", "--experiment", "little-memory",
                                  "--programs", "rocksort-given,rocksort-off,samtools,copy",
                                  "--level", "default", "--rocksort-options", "--temp-codec zstd")
        commands = {run["who"]: run["command"] for run in self.runs(report)}
        self.assertRegex(commands["rocksort-given"],
                         r"^cat in.bam \| \S+ rocksort -@ 2 -m 2M -s 1M --temp-codec zstd "
                         r"--verbosity 4 -T tmp - out$")
        self.assertRegex(commands["rocksort-off"], " -s off ")
        self.assertRegex(commands["samtools"],
                         r"samtools sort -@ 2 -m 2M -T tmp/sort -o out.bam -$")
        self.assertRegex(commands["copy"], r"samtools view -@ 2 -O bam -o out.bam -$")

    # Failures

    def fake_rocksort(self, spoil):
        path = self.write("fake", FAKE.format(samtools=SAMTOOLS, spoil=spoil))
        os.chmod(path, 0o755)
        return path

    def spoiled(self, spoil):
        """What the report says about a wrong result of rocksort."""
        result, report, text = self.bench(
            "--spindle", "/no/spindle", "--experiment", "low-coverage", "--programs", "rocksort",
            "--rocksort", self.fake_rocksort(spoil))
        self.assertEqual(result.status, 1)
        self.assertIn("WRONG", text)
        return self.runs(report)[0]["wrong"]

    def test_unsorted_output(self):
        self.assertRegex(self.spoiled("cat > out.bam"), "not sorted")

    def test_missing_records(self):
        self.assertRegex(self.spoiled(f"{SAMTOOLS} rocksort -s off - all && "
                                      "samtools view -b -F 16 -o out.bam all.bam"),
                         r"\d+ records instead of 4000")

    def test_program_fails(self):
        self.assertRegex(self.spoiled("echo no luck >&2; exit 3"), "exit code 3.*\n.*no luck")

    def test_left_files(self):
        self.assertRegex(self.spoiled(f"touch tmp/left; {SAMTOOLS} rocksort - out"),
                         "left temporary files: left")

    def test_interrupted(self):
        """SIGHUP, from a closed terminal, interrupts it too, unless it runs under nohup."""
        command = self.words("--spindle", "/no/spindle", "--experiment", "low-coverage",
                             "--rocksort", self.fake_rocksort("exec sleep 60"))
        for number in (signal.SIGTERM, signal.SIGHUP):
            with self.subTest(signal=number.name), \
                    subprocess.Popen(["nohup", *command] if number == signal.SIGTERM else command,
                                     env=environment(self.scratch), cwd=self.work,
                                     preexec_fn=default_signals, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
                wait_for(lambda: list(self.scratch.glob("*/log")), 30 * SLOW, "the run")
                if number == signal.SIGTERM:
                    process.send_signal(signal.SIGHUP)
                process.send_signal(number)
                _, err = process.communicate(timeout=30 * SLOW)
                self.assertEqual(process.returncode, 130, err)
                self.assertEqual(os.listdir(self.scratch), [])

    # The command line

    def test_bad_words(self):
        for option, word, message in (
                ("--experiment", "deep", "there are: low-coverage, deep-ssd, little-memory"),
                ("--programs", "sort", "there are: rocksort, rocksort-auto"),
                ("--storage", "floppy", "no price of 'floppy'"), ("--data-gb", "0", "number of GB"),
                ("--level", "11", "not a level"), ("--memory-mib", "x", "not a positive")):
            result, _, _ = self.bench(option, word)
            self.assertEqual(result.status, 2)
            self.assertRegex(re.sub(r"\s+", " ", result.err), message)


class PlotRun(CliTest):
    """Runs scripts/plot-run.py on invented series."""

    def setUp(self):
        super().setUp()
        self.python = find_matplotlib()

    def plot(self, *words):
        return self.run_program([self.python or sys.executable, "-B",
                                 ROOT / "scripts" / "plot-run.py", *words])

    def series(self, name, seconds, **more):
        times = [i + 1.0 for i in range(seconds)]
        data = {"label": name, "title": "made up", "limit": {"rss_bytes": 3 << 20, "label": "given"},
                "marks": [{"t_s": seconds / 2, "label": "merge"}],
                "columns": {"t_s": times, "cpu_s": [1.5 * t for t in times],
                            "rss_bytes": [min(i, 30) << 17 for i in range(seconds)],
                            "read_bytes": [i * 10**7 for i in range(seconds)],
                            "write_bytes": [i * i * 10**5 for i in range(seconds)],
                            "seeks": [i // 2 for i in range(seconds)], "unknown": [0]}}
        data.update(more)
        return self.write(name + ".json", json.dumps(data))

    def need_matplotlib(self):
        if not self.python:
            raise unittest.SkipTest("there is no matplotlib")

    def check_png(self, result):
        self.assertEqual(result.status, 0, result.err)
        with open(self.path("out.png"), "rb") as file:
            data = file.read()
        self.assertEqual(data[:8], PNG_MAGIC)
        self.assertLess(len(data), 100_000)

    def test_two_series(self):
        self.need_matplotlib()
        self.check_png(self.plot("-o", self.path("out.png"), self.series("rocksort", 400),
                                 self.series("samtools", 3000)))

    def test_rows(self):
        """Fewer rows make a smaller figure. A name that is no row is an error."""
        self.need_matplotlib()
        heights = []
        for rows in ("cpu", "memory,cpu", "cpu,memory,disk,seeks"):
            self.check_png(self.plot("-o", self.path("out.png"), "--rows", rows,
                                     self.series("rocksort", 20)))
            with open(self.path("out.png"), "rb") as file:
                heights.append(int.from_bytes(file.read(24)[20:], "big"))
        self.assertEqual(heights, sorted(set(heights)))
        result = self.plot("-o", self.path("out.png"), "--rows", "cpu,heat",
                           self.series("rocksort", 20))
        self.assertEqual(result.status, 2)
        self.assertIn("heat is none of cpu, memory, disk, seeks", result.err)

    def labels(self, *files):
        """The labels in the figure of the files, as (text, left, bottom, right, top), in pixels;
        first the figure itself."""
        self.need_matplotlib()
        result = self.run_program([self.python, self.write("labels.py", SHOW_LABELS),
                                   ROOT / "scripts" / "plot-run.py", *files])
        self.assertEqual(result.status, 0, result.err)
        return json.loads(result.out)

    def test_labels_do_not_collide(self):
        """Labels of marks near each other, of ends and of limits lie apart, and in the figure."""
        marks = [{"t_s": t, "label": label} for t, label in
                 ((5, "load"), (6, "compaction"), (7, "merge"), (398, "closing"))]
        figure, *labels = self.labels(self.series("rocksort", 400, marks=marks),
                                      self.series("samtools", 100, marks=marks[:3]))
        self.assertEqual(len(labels), 4 + 3 + 2 + 1)
        for text, left, bottom, right, top in labels:
            with self.subTest(label=text):
                self.assertTrue(0 <= left < right <= figure[3] and 0 <= bottom < top <= figure[4])
        for one, other in itertools.combinations(labels, 2):
            with self.subTest(labels=(one, other)):
                self.assertTrue(one[3] <= other[1] or other[3] <= one[1] or
                                one[4] <= other[2] or other[4] <= one[2])

    def test_default_output(self):
        """Without -o the PNG lies beside the first file."""
        self.need_matplotlib()
        self.check_png(self.plot(self.series("out", 20)))

    def test_limit_of_stats(self):
        """For a file of --stats the line is at the budget and 64 MiB, and says so."""
        path = self.path("stats.json")
        self.sort_ok("--max-memory", "100M", "--stats", path, "-o", self.path("out.bam"),
                     self.write("in.sam", "r\t4\t*\t0\t0\t*\t*\t0\t0\tA\t*\n"))
        texts = [label[0] for label in self.labels(path)]
        self.assertIn("budget 100 + 64 MiB", texts)

    def test_one_row_below_series(self):
        self.need_matplotlib()
        path = self.write("stats.json", json.dumps(
            {"version": 1, "series": {"columns": {"t_s": [0, 1, 2], "cpu_s": [0, 1, 3]}}}))
        self.check_png(self.plot("-o", self.path("out.png"), path))

    def test_bad_files(self):
        for text, message in (("[]", "is no JSON object"), ("{}", "has no columns with t_s"),
                              ('{"columns": {"t_s": [1], "cpu_s": []}}', "has 0 values of cpu_s"),
                              ("text", "Expecting value")):
            result = self.plot("-o", self.path("out.png"), self.write("bad.json", text))
            self.assertEqual(result.status, 1)
            self.assertIn("bad.json", result.err)
            self.assertIn(message, result.err)
        result = self.plot("-o", self.path("out.png"), self.path("missing.json"))
        self.assertRegex(result.err, "plot-run.py: .*missing.json")
