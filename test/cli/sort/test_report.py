"""--report FILE: it has exactly the documented fields, and their values are right."""

import json
import os
import re
import subprocess
import unittest

import bamfile
import generate
from harness import (ROOT, SAMTOOLS, SPILL_BUDGET, CliTest, environment, json_of, needs_pysam,
                     own_lines)
from checkpoints import KilledTest

PHASES = ["load", "settle", "mark", "merge", "close"]
CHECKS = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
}


def documented():
    """{field: type} of doc/report.md, with PHASE replaced by each phase."""
    fields = {}
    text = (ROOT / "doc" / "report.md").read_text(encoding="utf-8")
    for name, kind in re.findall(r"^\| `([\w.]+)` \| ([a-z ]+) \|", text, re.M):
        for phase in PHASES if ".PHASE." in name else [""]:
            field = name.replace("PHASE", phase)
            assert field not in fields, f"{field} is there twice"
            fields[field] = kind
    return fields


def flatten(value, name=""):
    """{field: value} of all values that are no objects."""
    if not isinstance(value, dict):
        return {name: value}
    fields = {}
    for key, inner in value.items():
        fields.update(flatten(inner, f"{name}.{key}" if name else key))
    return fields


def fits(value, kind):
    """Whether value has the type that the document names."""
    if kind.startswith("array of "):
        one = kind[len("array of "):].rstrip("s")
        return isinstance(value, list) and all(CHECKS[one](item) for item in value)
    return any(CHECKS[one](value) for one in kind.split(" or "))


class ReportTest(CliTest):
    def report(self, *args, status=0, **how):
        """Runs with --report, checks the fields, and returns the statistics and the Result."""
        path = self.path("report.json")
        result = self.rocksort("--report", path, *args, **how)
        self.assertEqual(result.status, status, result.err)
        return self.checked(path), result

    def checked(self, path):
        data = json_of(path)
        fields, wanted = flatten(data), documented()
        self.assertEqual(set(fields) ^ set(wanted), set(), "in doc/report.md or in the file only")
        for name, value in fields.items():
            self.assertTrue(fits(value, wanted[name]), f"{name} is {value!r:.80}, {wanted[name]}")
        columns = data["series"]["columns"]
        self.assertEqual({len(column) for column in columns.values()}, {len(columns["t_s"])})
        self.assertLessEqual(len(columns["t_s"]), 1024)
        for name, column in columns.items():
            if name not in ("phase", "rss_bytes"):
                self.assertEqual(column, sorted(column), name)
        order = [PHASES.index(phase) for phase in columns["phase"]]
        self.assertEqual(order, sorted(order))
        left = [name for name in os.listdir(self.work) if name.endswith(".tmp")]
        self.assertEqual(left, [])
        return data


class Fields(ReportTest):
    def test_fields_of_a_sort_in_memory_are_right(self):
        source, out = self.write("in.sam", generate.odd(5000)), self.path("out.bam")
        data, _ = self.report("-@", "2", "-l", "1", "-o", out, source)
        self.assertEqual(data["status"], "ok")
        self.assertIsNone(data["error"])
        self.assertEqual(data["input"]["records"], 5000)
        self.assertEqual(data["output"]["records"], 5000)
        self.assertEqual(data["input"]["files"], [source])
        self.assertEqual(data["input"]["bytes"], os.path.getsize(source))
        self.assertEqual(data["output"]["bytes"], os.path.getsize(out))
        self.assertEqual(data["output"]["file"], out)
        self.assertEqual(data["runs"]["runs"], 0)
        self.assertIsNone(data["disk"]["file_system"])
        self.assertEqual(data["options"]["threads"], 2)
        self.assertEqual(data["options"]["level"], 1)
        self.assertEqual(data["options"]["memory_bytes"], 2 * 768 << 20)
        self.assertEqual(data["options"]["order"], "coordinate")
        self.assertEqual(data["options"]["temp_prefixes"], [])
        self.assertIn("--report", data["command_line"])
        self.assertRegex(data["begun"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        for name in ("htslib", "rocksdb", "lz4", "zstd"):
            self.assertRegex(data["versions"][name], r"^\d+\.\d+")
        said = self.sort_ok("--checksum-only", source).out.decode()
        self.assertIn(f"xxh3sum:{data['input']['checksum']} records:5000 "
                      f"bytes:{data['input']['raw_bytes']}", said)

    def test_sort_buffers_take_most_of_the_budget(self):
        source, out = self.write("in.sam", generate.odd(5000)), self.path("out.bam")
        for mib in (16, 100):
            data, _ = self.report("-@", "2", "--max-memory", f"{mib}M", "-o", out, source)
            memory = data["memory"]
            with self.subTest(mib=mib):
                total = memory["budget_bytes"]
                self.assertEqual(total, mib << 20)
                buffers = memory["sort_buffers"] * memory["sort_buffer_bytes"]
                self.assertTrue(0.5 * total < buffers <= total, memory)
                self.assertTrue(0 < memory["sort_buffers_a_run"] < memory["sort_buffers"], memory)
                for name, value in memory.items():
                    self.assertGreater(value, 0, name)

    def test_runs_are_described_as_the_closing_line_says(self):
        source, out = self.write("in.sam", generate.odd(12000)), self.path("out.bam")
        data, result = self.report("-@", "2", "-o", out, "-T", self.path("t."), "-s", "4M", source,
                                  budget=SPILL_BUDGET)
        runs = data["runs"]
        self.assertGreater(runs["runs"], 3)
        self.assertEqual(sum(runs["runs_by_codec"].values()), runs["runs"])
        self.assertTrue(runs["codec_reason"])
        self.assertLessEqual(runs["raw_bytes"], data["input"]["raw_bytes"])
        self.assertTrue(data["compaction"]["reason"])
        self.assertGreater(data["scan"]["files"], 0)
        self.assertTrue(data["disk"]["file_system"])
        self.assertEqual(data["options"]["compaction"], "on")
        self.assertEqual(data["options"]["expected_raw_bytes"], 4 << 20)
        self.assertEqual(data["options"]["temp_prefixes"], [self.path("t.")])
        said = re.search(r"; (\d+) runs on disk", result.err)
        self.assertEqual(int(said.group(1)), runs["runs"])

    def test_totals_are_the_sums_of_the_phases(self):
        source = self.write("in.sam", generate.odd(12000))
        data, _ = self.report("-o", self.path("out.bam"), source, budget=SPILL_BUDGET)
        for name, total in data["total"].items():
            # Only --markdup has a phase `mark`.
            phases = [data["phases"][phase][name] or 0 for phase in PHASES]
            if total is not None:
                self.assertAlmostEqual(total, sum(phases), delta=1e-5)
        wall = data["total"]["wall_s"]
        for name, seconds in data["waits"].items():
            if not name.startswith("run_readers"):      # several threads, whose waits are added
                self.assertLessEqual(seconds, wall + 0.01, name)
        self.assertGreater(data["waits"]["reader_for_input_s"], 0)
        self.assertGreater(data["phases"]["load"]["wall_s"], 0)
        self.assertEqual(data["phases"]["mark"]["wall_s"], 0)
        self.assertGreater(data["phases"]["merge"]["wall_s"], 0)
        if data["total"]["read_bytes"] is not None:
            self.assertGreaterEqual(data["total"]["read_bytes"], os.path.getsize(source))
        columns = data["series"]["columns"]
        self.assertLessEqual(columns["t_s"][-1], wall)
        self.assertEqual(columns["records_in"][-1], 12000)
        self.assertEqual(columns["records_out"][-1], 12000)
        self.assertEqual(columns["phase"][-1], "close")
        self.assertLessEqual(max(columns["rss_bytes"]), data["memory"]["peak_resident_bytes"]
                             + (1 << 20))       # the kernel updates its counters with a delay

    def test_finding_duplicates_has_a_phase_of_its_own(self):
        source = self.write("in.sam", generate.odd(3000))
        for budget in (None, SPILL_BUDGET):
            data, _ = self.report("--fixmate", "--markdup", "-o", self.path("out.bam"), source,
                                 budget=budget)
            self.assertGreater(data["phases"]["mark"]["wall_s"], 0)
            self.assertGreater(data["phases"]["mark"]["user_cpu_s"] +
                               data["phases"]["mark"]["system_cpu_s"], 0)
            self.assertEqual(data["runs"]["runs"] > 0, bool(budget))

    def test_order_and_format_are_named(self):
        source = self.write("in.sam", generate.odd(300))
        for options, order, form in (
                (["-n"], "queryname:natural", "bam"), (["-N", "-u"], "queryname:lexicographical",
                                                       "bam"),
                (["-t", "NM", "-O", "sam"], "tag", "sam"), (["-M"], "minhash", "bam"),
                (["--shuffle=3"], "shuffle", "bam")):
            data, _ = self.report(*options, "-o", self.path("out"), source)
            self.assertEqual(data["options"]["order"], order)
            self.assertEqual(data["options"]["output_format"], form)
            self.assertEqual(data["options"]["tag"], "NM" if "-t" in options else None)
        data, _ = self.report("--write-index", "-o", self.path("out.sam.gz"), source)
        self.assertEqual(data["options"]["output_format"], "sam.gz")
        self.assertEqual(data["output"]["index"], self.path("out.sam.gz.csi"))

    @needs_pysam
    def test_bytes_of_cram_are_counted(self):
        source = self.write("in.sam", generate.odd(300))
        out = self.path("out.cram")
        data, _ = self.report("-o", out, "-O", "cram", "--output-fmt-option", "no_ref", source)
        self.assertEqual(data["output"]["bytes"], os.path.getsize(out))
        data, _ = self.report("-o", self.path("again.bam"), out)
        self.assertEqual(data["input"]["bytes"], os.path.getsize(out))
        with open(out, "rb") as file:
            data, _ = self.report("-o", self.path("again.bam"), stdin=file)
        self.assertEqual(data["input"]["bytes"], os.path.getsize(out))

    def test_checksum_only_has_statistics(self):
        data, result = self.report("--checksum-only", stdin=generate.odd(500).encode())
        self.assertRegex(result.out.decode(), f"^xxh3sum:{data['input']['checksum']} ")
        self.assertTrue(data["options"]["checksum_only"])
        self.assertIsNone(data["options"]["order"])
        self.assertIsNone(data["output"]["file"])
        self.assertEqual(data["output"]["records"], 0)

    def test_bytes_of_pipes_are_counted(self):
        data, result = self.report(stdin=generate.odd(500).encode())
        self.assertEqual(data["output"]["file"], "-")
        self.assertEqual(data["input"]["files"], ["-"])
        self.assertEqual(data["output"]["bytes"], len(result.out))

    def test_odd_names_are_valid_json(self):
        for name, said in ((b'a "b" \\c.sam', 'a "b" \\c.sam'), (b"a\tb.sam", "a\tb.sam"),
                           (b"\xff\xe4.sam", "\ufffd\ufffd.sam"), ("é.sam".encode(), "é.sam")):
            path = os.path.join(os.fsencode(self.work), name)
            with open(path, "wb") as file:
                file.write(generate.odd(20).encode())
            done = subprocess.run([SAMTOOLS, "rocksort", "--report", self.path("s.json"), "-o",
                                   self.path("out.bam"), path], env=environment(self.scratch),
                                  capture_output=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            data = self.checked(self.path("s.json"))
            self.assertEqual(data["input"]["files"], [f"{self.work}/{said}"])


class Failures(ReportTest):
    """Sorts that fail, and statistics that cannot be written."""

    def test_failed_sort_has_its_error(self):
        sam = generate.odd(3000) + "damaged\n"
        for budget in (None, SPILL_BUDGET):
            data, result = self.report("-o", self.path("out.bam"), stdin=sam.encode(), status=1,
                                      budget=budget)
            self.assertEqual(data["status"], "failed")
            self.assertEqual(own_lines(result.err), ["samtools rocksort: " + data["error"]])
            self.assertIn("record 3001", data["error"])
            self.assertEqual(data["output"]["records"], 0)
            self.assertIsNone(data["output"]["bytes"])

    def test_missing_directory_is_found_before_the_sort(self):
        source = self.write("in.sam", generate.odd(20))
        out = self.path("out.bam")
        for name in (self.path("no/such/dir.json"), str(self.work), "", "https://x/y.json"):
            with self.subTest(name=name):
                result = self.rocksort("--report", name, "-o", out, source)
                self.assert_error(result, name)
                self.assertFalse(os.path.exists(out))

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full here")
    def test_full_disk_of_the_statistics_keeps_the_output(self):
        source, out = self.write("in.sam", generate.odd(20)), self.path("out.bam")
        result = self.rocksort("--report", "/dev/full", "--quiet", "-o", out, source)
        self.assert_error(result, "/dev/full", "No space left")
        self.assertEqual(len(bamfile.split(bamfile.read(out).records)), 20)

    def test_statistics_do_not_overwrite_an_input_or_output(self):
        sam = generate.odd(20)
        source, out = self.write("in.sam", sam), self.path("out.bam")
        os.symlink(source, self.path("link"))
        index = out + ".csi"
        for name in (source, self.path("link"), out, index, self.path("./out.bam")):
            with self.subTest(name=name):
                result = self.rocksort("--report", name, "--write-index", "-o", out, source)
                self.assert_error(result, "--report", name)
                self.assertFalse(os.path.exists(out))
                self.assertEqual((self.work / "in.sam").read_text(), sam)

    def test_statistics_may_go_to_standard_output(self):
        source, out = self.write("in.sam", generate.odd(20)), self.path("out.bam")
        result = self.sort_ok("--report", "-", "-o", out, source)
        self.assertEqual(json.loads(result.out)["status"], "ok")
        for options in ([], ["-o", "-"], ["--checksum-only"]):
            result = self.rocksort("--report", "-", *options, source)
            self.assert_error(result, "and --report would mix on standard output")
            self.assertEqual(result.out, b"")

    def test_statistics_do_not_replace_the_file_of_standard_output(self):
        """The statistics must not replace the file of standard output, as they once did with exit
        status 0."""
        source, out = self.write("in.sam", generate.odd(20)), self.path("out")
        command = [SAMTOOLS, "rocksort", "--report"]
        for name in (out, "/dev/stdout"):
            for options in ([], ["-o", "-"], ["--checksum-only"]):
                with self.subTest(name=name, options=options), open(out, "wb") as file:
                    done = subprocess.run([*command, name, *options, source], stdout=file,
                                          stderr=subprocess.PIPE, text=True, check=False)
                    self.assertEqual(done.returncode, 1)
                    what = "checksum" if "--checksum-only" in options else "output"
                    self.assertIn(f"'{name}' is named for the {what} and for --report", done.stderr)
                    self.assertEqual(os.path.getsize(out), 0)
        result = self.rocksort("--report", "/dev/stdout", source)
        self.assert_error(result, "'/dev/stdout' is named for the output and for --report")
        with open(out, "wb") as file:
            subprocess.run([*command, "/dev/null", source], stdout=file, check=True)
        self.assertTrue(bamfile.looks_complete(out))

    def test_statistics_are_replaced_as_a_whole(self):
        source = self.write("in.sam", generate.odd(20))
        path = self.write("report.json", "old")
        os.chmod(path, 0o600)
        before = os.stat(path)
        self.report("-o", self.path("out.bam"), source)
        after = os.stat(path)
        self.assertNotEqual(before.st_ino, after.st_ino)
        self.assertEqual(after.st_mode, before.st_mode)

    def test_signal_leaves_no_temporary_statistics(self):
        process = self.start("--report", self.path("report.json"), "-o", self.path("out.bam"))
        process.stdin.write(generate.odd(2000).encode())
        process.stdin.flush()
        process.terminate()
        self.assert_died_of(process, 15)
        self.assertEqual(os.listdir(self.work), [])
        self.assertEqual(os.listdir(self.scratch), [])


class FailedLoad(ReportTest, KilledTest):
    """A sort that fails when its first runs are to become part of the database."""

    def test_only_runs_that_became_part_of_the_database_are_counted(self):
        source = self.write("in.sam", generate.odd(12000))
        for number, n_runs in ((1, 0), (3, 2)):
            data, _ = self.report("--temp-codec", "lz4", "-T", self.where, "-o",
                                 self.path("out.bam"), source, status=1, budget=SPILL_BUDGET,
                                 env=self.faulty(f"link:{number}+:EIO:.sst"))
            runs = data["runs"]
            self.assertEqual((runs["runs"], sum(runs["runs_by_codec"].values())), (n_runs, n_runs))
            self.assertEqual((runs["bytes"] > 0, runs["raw_bytes"] > runs["bytes"]),
                             (n_runs > 0, n_runs > 0))
            self.assertLess(runs["raw_bytes"], data["input"]["raw_bytes"])
            self.assertEqual(self.checkpoints(), [])
