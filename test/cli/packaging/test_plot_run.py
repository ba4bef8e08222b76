"""scripts/plot-run.py: the figures that it draws, and what it says of bad files."""

import json
import shutil
import subprocess
import sys
import unittest

from harness import ROOT, CliTest, bytes_of

PNG_MAGIC = b"\x89PNG\r\n\x1a\n"


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

    def test_default_output_lies_beside_the_first_file(self):
        self.need_matplotlib()
        self.check_png(self.plot(self.series("out", 20), self.series("samtools", 3000)))

    def test_statistics_are_drawn(self):
        self.need_matplotlib()
        path = self.path("report.json")
        self.sort_ok("--max-memory", "100M", "--report", path, "-o", self.path("out.bam"),
                     self.write("in.sam", "r\t4\t*\t0\t0\t*\t*\t0\t0\tA\t*\n"))
        self.check_png(self.plot("-o", self.path("out.png"), path))

    def test_bad_files_are_named(self):
        for text, message in (("[]", "is no JSON object"), ("{}", "has no columns with t_s"),
                              ('{"columns": {"t_s": [1], "cpu_s": []}}', "has 0 values of cpu_s"),
                              ("text", "Expecting value")):
            result = self.plot("-o", self.path("out.png"), self.write("bad.json", text))
            self.assertEqual(result.status, 1)
            self.assertIn("bad.json", result.err)
            self.assertIn(message, result.err)
        result = self.plot("-o", self.path("out.png"), self.path("missing.json"))
        self.assertRegex(result.err, "plot-run.py: .*missing.json")
