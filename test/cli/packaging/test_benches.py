"""The benchmarks: each runs on a small input and cleans up, and each notices a wrong result. Then
the names of rocksort's threads, which bench/scaling.py reads.

Fake programs with the names of others call the real rocksort or sort with Python, and may spoil
what they make.
"""

import collections
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import unittest

import bamfile
import test_spindle
from harness import (ROOT, SAMTOOLS, SLOW, SPILL_BUDGET, WRAPPER, CliTest, environment, json_of,
                     text_of, wait_for)

SIMULATE, DEFLATE = ROOT / "bench" / "simulate-reads", ROOT / "bench" / "deflate-blocks"
REFS = [("chr1", 200_000_000), ("chr2", 1_000_000)]

# Takes the options of sambamba and of bamsort. spoil is Python that may change `records`.
PEER = """#!{python} -B
import sys
sys.path.insert(0, {here!r})
import bamfile
words = sys.argv[1:]
if "--version" in words:
    sys.exit("sambamba 9.8.7, biobambam2 version 9.8.7.")
source, output = words[-1], words[words.index("-o") + 1]
with open(source, "rb") as file:
    raw = bamfile.gzip.decompress(file.read())
bam = bamfile.parse(raw)
records = bamfile.split(bam.records)
def place(record):
    tid, pos, flag, _ = bamfile.fields(record)
    return tid & 0xffffffff, pos, flag & 16     # as samtools; rocksort checks the strand, too
records.sort(key=place)
{spoil}
data = raw[:len(raw) - len(bam.records)] + b"".join(records)
with open(output, "wb") as file:
    file.write(bamfile.bgzf(data))
"""
# A rocksort that passes questions to the real one, and spoils sorts.
ROCKSORT = """#!/bin/sh
case "$*" in
*--checksum*|*--version*) exec {samtools} rocksort "$@" ;;
esac
{spoil}
"""


@unittest.skipUnless(os.access(SIMULATE, os.X_OK) and os.access(DEFLATE, os.X_OK),
                     "the programs of the benchmarks are not built")
@unittest.skipUnless(shutil.which("samtools"), "no samtools to compare with")
class BenchTest(CliTest):
    """Runs benchmarks with a PATH of fakes and a few real programs."""

    def setUp(self):
        super().setUp()
        self.bin = self.work / "bin"
        self.bin.mkdir()
        (self.bin / "samtools").symlink_to(shutil.which("samtools"))
        self.json = self.path("bench.json")

    def reads(self, *options):
        path = self.path("in.bam")
        subprocess.run([SIMULATE, "-o", path, *options], check=True)
        return path

    def program(self, name, text, **values):
        path = self.bin / name
        path.write_text(text.format(python=sys.executable, here=os.path.dirname(bamfile.__file__),
                                    samtools=SAMTOOLS, **values))
        path.chmod(0o755)
        return str(path)

    def bench(self, script, *words, status=0):
        """Returns (standard output, messages)."""
        result = self.run_program(
            [sys.executable, "-B", ROOT / "bench" / script, "--cold-memory", "--repeats", "1",
             "--dir", self.scratch, "--rocksort", SAMTOOLS + " rocksort", "--json", self.json,
             *words],
            env_only=environment(self.scratch, extra={"PATH": f"{self.bin}:/usr/bin:/bin"}),
            limit_s=240 * SLOW)
        self.assertEqual(result.status, status, result.err[-3000:])
        self.assertEqual(os.listdir(self.scratch), [], "left behind")
        return result.out.decode(), result.err

    def measured(self, key="runs"):
        return json_of(self.json)[key]


class Runs(BenchTest):
    # {script: (words, simulated reads, a line of the result)}.
    SCRIPTS = {
        "bench.py": ("--points l1-64M,copy", "-n 3K",
                     r"\| `-l 1`, 64 MB \| rocksort \|.* \(<= 0.45\)"),
        "options.py": ("--experiments codec,compaction-pipe", "-n 3K",
                       r"\| codec, 64 MB \| zstd \|"),
        "merge.py": ("", "-n 4K", r"\|.* rocksort, copy \|"),
        "columns.py": ("", "-n 4K", r"\|.* Parquet \|"),
        "deflate.py": ("--methods zlib:1,rocksort:3", "-n 4K",
                       r"\| in.bam \(short reads\) \| rocksort:3 \|.* \(<= 1.020\)"),
        "tail.py": ("--rate 5 --jobs sort:1,one-pass:default", "-n 4K -d 15",
                    r"\| one-pass:default \| samtools \|"),
        "scaling.py": ("--programs samtools --settings 16M:1 --threads 1,2", "-n 3K",
                       r"\|.* samtools"),
    }

    def test_each_bench_prints_its_result(self):
        for script, (words, reads, line) in self.SCRIPTS.items():
            with self.subTest(script=script):
                source = self.reads(*reads.split())
                text, _ = self.bench(script, *words.split(),
                                     "--reads" if script == "deflate.py" else "--input", source)
                self.assertRegex(text, line)

    def test_one_pass_ways_mark_the_same_number_of_duplicates(self):
        text, _ = self.bench("one_pass.py", "--ways", "one-pass,samtools", "--deflate",
                             "libdeflate,igzip", "--input", self.reads("-n", "20K", "-d", "20"))
        rows = [line.strip("| ").split(" | ") for line in text.splitlines()
                if line.startswith(("| `-l 1` | ", "| default | "))]
        counts = {int(row[-1]) for row in rows if len(row) == 10}
        self.assertEqual(len(counts), 1, text)
        self.assertTrue(0.15 * 20000 < counts.pop() < 0.25 * 20000, text)

    def test_compare_names_what_is_not_installed(self):
        self.program("sambamba", PEER, spoil="")
        text, _ = self.bench("compare.py", "--settings", "16M:1", "--input",
                             self.reads("-n", "3K"), "--programs", "samtools,sambamba,fgumi")
        self.assertIn("- fgumi is not installed: `cargo install fgumi --locked`\n", text)
        for run in self.measured():
            self.assertEqual((run["wrong"], run["compared"]), (None, "content"))


class WrongResults(BenchTest):
    def test_compare_notices_wrong_records(self):
        source = self.reads("-n", "3K")
        for spoil, message in (("records[77] = records[77][:-1] + b'!'", "other content"),
                               ("records[0:2] = records[1::-1]", "not sorted: record 2 "),
                               ("sys.exit(3)", "failed: exit code 3")):
            with self.subTest(spoil=spoil):
                self.program("sambamba", PEER, spoil=spoil)
                text, err = self.bench("compare.py", "--settings", "16M:1", "--programs",
                                       "sambamba", "--input", source, status=1)
                self.assertRegex(text, r"\| sambamba \|.*\*\*WRONG\*\*: .*" + message)
                self.assertIn("wrong results, or none, from: sambamba", err)


class Bench2014(BenchTest):
    """bench-2014.py, on a plain disk and a modelled one."""

    def words(self, *words):
        # A relative path: programs run in another directory.
        return [sys.executable, "-B", ROOT / "bench" / "bench-2014.py", "--input",
                os.path.relpath(self.reads("-n", "4K"), self.work), "--memory-mib", "4",
                "--data-dir", self.scratch, "--out", self.path("out"),
                "--rocksort", SAMTOOLS + " rocksort",
                "--experiment", "little-memory", *words]

    def experiments(self, *words, status=0):
        result = self.run_program(self.words(*words), limit_s=240 * SLOW)
        self.assertEqual(result.status, status, result.err[-3000:])
        self.assertEqual(os.listdir(self.scratch), [], "left behind")
        parts = json_of(self.path("out/results.json"))["experiments"]
        text = pathlib.Path(self.path("out/results.md")).read_text()
        self.assertEqual(result.out.decode(), text)
        return [run for part in parts for run in part["runs"]], text

    @unittest.skipIf(test_spindle.reason_to_skip(), test_spindle.reason_to_skip())
    def test_bench_2014_runs_on_a_modelled_disk(self):
        runs, text = self.experiments("--device", "nvme", "--repeats", "2")
        self.assertEqual([run["who"] for run in runs],
                         ["rocksort-given", "rocksort-auto", "samtools",
                          "samtools", "rocksort-auto", "rocksort-given"])
        for run in runs:
            self.assertGreaterEqual(run["read_bytes"], os.path.getsize(self.path("in.bam")))
            columns = json_of(self.path("out/" + run["series"]))["columns"]
            self.assertEqual({len(values) for values in columns.values()}, {len(columns["t_s"])})
        self.assertIn("modelled by bench/spindle", text)
        self.assertNotIn(str(self.scratch), text_of("/proc/self/mountinfo"))

    def test_bench_2014_notices_wrong_results(self):
        for spoil, message in ((f"{SAMTOOLS} rocksort - all && samtools view -b -F 16 -o out.bam "
                                "all.bam", "instead of xxh3sum:"),
                               (f"touch tmp/left; {SAMTOOLS} rocksort - out",
                                "left temporary files: left")):
            with self.subTest(spoil=spoil):
                fake = self.program("rocksort", ROCKSORT, spoil=spoil)
                runs, text = self.experiments("--own-disk", "--programs", "rocksort", "--rocksort",
                                              fake, status=1)
                self.assertIn(message, runs[0]["wrong"])
                self.assertIn("WRONG", text)


# ---- real reads, tiled ----

Fields = collections.namedtuple("Fields", "tid pos flag mate_tid mate_pos tlen name rest")
BASES = "ACGTTGCA" * 5


def pair(name, pos, aux=b""):
    """Two reads of 40 bases, 60 apart."""
    return [bamfile.record(name, 99, 0, pos, "40M", BASES, aux, mate=(0, pos + 60, 100)),
            bamfile.record(name, 147, 0, pos + 60, "40M", BASES[::-1], aux, mate=(0, pos, -100))]


def decode(raw):
    """The fields of a raw record that a copy may change, and the rest."""
    tid, pos, n_name, _, _, _, flag, _, mate_tid, mate_pos, tlen = struct.unpack_from(
        "<iiBBHHHiiii", raw, 4)
    return Fields(tid, pos, flag, mate_tid, mate_pos, tlen, raw[36:35 + n_name].decode(),
                  raw[36 + n_name:])


class Tiles(CliTest):
    """tile-reads.py, and --reads of the benchmarks."""

    def bam(self, name, records, header="@HD\tVN:1.6\n"):
        return self.write(name, bamfile.bgzf(
            bamfile.bam_header(header + bamfile.sq_text(REFS), REFS) + b"".join(records)))

    def tile(self, *words):
        """Returns (the Bam, messages)."""
        out = self.path("out.bam")
        result = self.run_program([sys.executable, "-B", ROOT / "bench" / "tile-reads.py", *words,
                                   "-o", out], limit_s=60 * SLOW)
        self.assertEqual(result.status, 0, result.err)
        return bamfile.read(out), result.err

    def test_copies_of_whole_pairs_differ_in_place_and_name_alone(self):
        records = []
        for i in range(20):
            first, second = pair(f"r{i}", 500_000 + 30 * i, aux=b"NMC\1")
            records += [first] + ([second] if i else [])
        source = {(r.name, r.flag): r for r in map(decode, records) if r.name != "r0"}
        bam, err = self.tile(self.bam("in.bam", records), "-n", "100")
        self.assertIn("1 reads of the inputs were left out", err)
        got = [decode(raw) for raw in bamfile.split(bam.records)]
        self.assertEqual(len(got), 100)
        shifts = collections.defaultdict(set)
        for copy in got:
            number, name = re.fullmatch(r"c(\d)\.(r\d+)", copy.name).groups()
            read = source[name, copy.flag]
            shifts[number].add(copy.pos - read.pos)
            self.assertEqual(copy, read._replace(name=copy.name, pos=copy.pos,
                                                 mate_pos=read.mate_pos + copy.pos - read.pos))
        self.assertEqual({len(found) for found in shifts.values()}, {1}, "a copy in pieces")
        self.assertEqual(len({(r.name, r.flag) for r in got}), 100)


@unittest.skipIf(WRAPPER, "the wrapper's threads have its names")
class ThreadNames(CliTest):
    """`top -H` and bench/scaling.py show the names of rocksort's threads."""

    def wait_for_names(self, process, wanted):
        def names():
            found = set()
            for task in pathlib.Path(f"/proc/{process.pid}/task").iterdir():
                try:
                    found.add((task / "comm").read_text().strip())
                except OSError:
                    pass  # the thread has ended
            return wanted <= found
        wait_for(names, 20 * SLOW, f"threads {sorted(wanted)}")

    def test_threads_have_names_while_loading_and_merging(self):
        data = bamfile.bgzf(bamfile.bam_header("@HD\tVN:1.6\n" + bamfile.sq_text(REFS), REFS)
                            + b"".join(bamfile.record(f"r{i}", tid=0, pos=i * 7919 % 100_000,
                                                      cigar="40M", seq=BASES)
                                       for i in range(30_000)))
        process = self.start("-@2", "-u", "-", budget=SPILL_BUDGET)
        self.feed(process, data[:-28])
        self.wait_for_names(process, {"samtools", "worker", "spiller", "run committer", "signals"})
        process.stdin.write(data[-28:])
        process.stdin.close()
        process.stdin = None
        self.wait_for_names(process, {"samtools", "worker", "writer", "run reader", "signals"})
        process.communicate(timeout=60 * SLOW)
        self.assertEqual(process.returncode, 0)
