"""scripts/plot-run.py: the figures that it draws, and what it says of bad files."""

import itertools
import json
import shutil
import subprocess
import sys
import unittest

from harness import ROOT, CliTest, bytes_of

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


def find_matplotlib():
    """A Python that has matplotlib: the one that runs the tests, or Debian's."""
    for python in (sys.executable, "/usr/bin/python3"):
        if shutil.which(python) and subprocess.run(
                [python, "-c", "import matplotlib"], check=False,
                stderr=subprocess.DEVNULL).returncode == 0:
            return python
    return None


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
        data = bytes_of(self.path("out.png"))
        self.assertEqual(data[:8], PNG_MAGIC)
        self.assertLess(len(data), 100_000)

    def test_two_series(self):
        self.need_matplotlib()
        self.check_png(self.plot("-o", self.path("out.png"), self.series("rocksort", 400),
                                 self.series("samtools", 3000)))

    def test_fewer_rows_make_a_smaller_figure(self):
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

    def test_default_output_lies_beside_the_first_file(self):
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
