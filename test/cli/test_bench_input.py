"""What the benchmarks sort: bench/tile-reads.py, and the inputs that --reads names."""

import collections
import json
import os
import random
import re
import shutil
import struct
import sys
import unittest

import bamfile
from harness import ROOT, SAMTOOLS, SLOW, CliTest, environment

REFS = [("chr1", 200_000_000), ("chr2", 1_000_000)]
BASES = "ACGTTGCA" * 5
GAP = 1000
REFERENCE_LENGTH = 250_000_000

Fields = collections.namedtuple("Fields", "tid pos bin flag mate_tid mate_pos tlen name rest")


def single(name, pos, cigar="40M", tid=0, flag=0, seq=BASES, aux=b""):
    return bamfile.record(name, flag, tid, pos, cigar, seq, aux)


def pair(name, pos, mate_pos=None, tids=(0, 0), aux=b""):
    """Two reads of 40 bases, 60 apart unless mate_pos is given."""
    mate_pos = pos + 60 if mate_pos is None else mate_pos
    tlen = mate_pos + 40 - pos
    return [bamfile.record(name, 99, tids[0], pos, "40M", BASES, aux, mate=(tids[1], mate_pos, tlen)),
            bamfile.record(name, 147, tids[1], mate_pos, "40M", BASES[::-1], aux,
                           mate=(tids[0], pos, -tlen))]


def supplementary(name, pos):
    return bamfile.record(name, 99 | 2048, 0, pos, "20M20H", BASES[:20], mate=(0, pos + 60, 100))


def decode(raw):
    """The fields of a raw record that a copy may change, and the rest."""
    tid, pos, n_name, _, bin_number, _, flag, _, mate_tid, mate_pos, tlen = struct.unpack_from(
        "<iiBBHHHiiii", raw, 4)
    return Fields(tid, pos, bin_number, flag, mate_tid, mate_pos, tlen, raw[36:35 + n_name].decode(),
                  raw[36 + n_name:])


class InputTest(CliTest):
    """Functions that write BAM files."""

    def bam(self, name, records, header="@HD\tVN:1.6\n"):
        return self.write(name, bamfile.bgzf(
            bamfile.bam_header(header + bamfile.sq_text(REFS), REFS) + b"".join(records)))


class Tiles(InputTest):
    """tile-reads.py."""

    def tile(self, *words, status=0):
        """Returns (the Bam or None, messages)."""
        out = self.path("out.bam")
        result = self.run_program([sys.executable, ROOT / "bench" / "tile-reads.py", *words,
                                   "-o", out], limit_s=60 * SLOW)
        self.assertEqual(result.status, status, result.err)
        self.assertEqual([name for name in os.listdir(self.work) if ".part" in name], [])
        if status:
            self.assertFalse(os.path.exists(out))
            return None, result.err
        return bamfile.read(out), result.err

    def records(self, *words):
        return [decode(raw) for raw in bamfile.split(self.tile(*words)[0].records)]

    def test_pairs(self):
        """Each copy is whole, in a window of its own, and differs from its read in place and name
        alone. What is no whole pair is left out."""
        records, origin = [], 500_000
        for i in range(20):
            first, second = pair(f"r{i}", origin + 30 * i, aux=b"NMC\1")
            # r0 has lost its mate.
            records += [first, supplementary(f"r{i}", origin)] + ([second] if i else [])
        source = {(r.name, r.flag): r for r in map(decode, records) if r.name != "r0"}
        bam, err = self.tile(self.bam("in.bam", records), "-n", "100")
        self.assertIn("100 reads of 40 bases on average: 3 copies of 38 reads in 1 windows; "
                      "21 reads of the inputs were left out", err)
        got = [decode(raw) for raw in bamfile.split(bam.records)]
        self.assertEqual(len(got), 100)
        shifts, seen = collections.defaultdict(set), set()
        for copy in got:
            number, name = re.fullmatch(r"c(\d)\.(r\d+)", copy.name).groups()
            read = source[name, copy.flag]
            shift = copy.pos - read.pos
            shifts[number].add(shift)
            self.assertEqual(copy, read._replace(
                name=copy.name, pos=copy.pos, mate_pos=read.mate_pos + shift,
                bin=bamfile.reg2bin(copy.pos, copy.pos + 40)))
            self.assertNotIn((copy.name, copy.flag), seen)
            seen.add((copy.name, copy.flag))
        # One shift for each copy. The piece begins with r1; windows are GAP apart.
        size = 18 * 30 + 100
        self.assertEqual(sorted(shift.pop() + origin + 30 for shift in shifts.values()),
                         [0, size + GAP, 2 * (size + GAP)])
        self.assertFalse(any(shifts.values()), "a copy in pieces")
        for first, second in zip(got[::2], got[1::2]):
            self.assertEqual((first.name, first.flag, second.flag), (second.name, 99, 147))
        places = [r.pos for r in got]
        self.assertNotEqual(places, sorted(places))
        self.assertEqual(bam.refs, [("tiles1", 3 * (size + GAP))])

    def test_pieces(self):
        """A gap and another reference begin a new piece; the gaps between windows are small."""
        got = self.records(self.bam("in.bam", [
            single("a", 100), single("b", 140 + GAP), single("far", 5_000_000),
            single("other", 7, tid=1)]), "-n", "4")
        self.assertEqual({r.name: (r.tid, r.pos) for r in got},
                         {"c0.a": (0, 0), "c0.b": (0, 40 + GAP), "c0.far": (0, 80 + 2 * GAP),
                          "c0.other": (0, 120 + 3 * GAP)})

    def test_several_references(self):
        """No reference is longer than a chromosome. Reads may skip bases."""
        bam, _ = self.tile(self.bam("in.bam", [single("r", 5, cigar="20M90000000N20M")]), "-n", "5")
        got = {r.name: (r.tid, r.pos, r.bin) for r in map(decode, bamfile.split(bam.records))}
        step = 90_000_040 + GAP
        bins = [bamfile.reg2bin(at, at + 90_000_040) for at in (0, step)]
        self.assertEqual(got, {f"c{i}.r": (i // 2, i % 2 * step, bins[i % 2]) for i in range(5)})
        self.assertEqual([name for name, _ in bam.refs], ["tiles1", "tiles2", "tiles3"])
        self.assertLessEqual(max(length for _, length in bam.refs), REFERENCE_LENGTH)

    def test_single_and_unplaced_reads(self):
        got = self.records(self.bam("in.bam", [
            single("long", 1000, cigar="10S30M"), single("alone", -1, "", tid=-1, flag=4),
            bamfile.record("u", 77, seq=BASES), bamfile.record("u", 141, seq=BASES)]), "-n", "8")
        self.assertEqual(sorted((r.name[3:], r.tid, r.pos, r.mate_tid, r.mate_pos, r.bin)
                                for r in got),
                         sorted([("u", -1, -1, -1, -1, 4680)] * 4
                                + [("alone", -1, -1, -1, -1, 4680)] * 2
                                + [("long", 0, at, -1, -1, 4681) for at in (0, 30 + GAP)]))

    def test_left_out(self):
        """Pairs that do not lie in one place, and names that are too long for a mark."""
        got = self.records(self.bam("in.bam", [
            *pair("ok", 1000, 101_000 - 40), *pair("far", 1000, 101_001 - 40),
            *pair("refs", 1000, tids=(0, 1)), single("x" * 250, 1000)]), "-n", "2")
        self.assertEqual({r.name for r in got}, {"c0.ok"})

    def test_most_bytes(self):
        """It ends with the template that reaches the bound."""
        source = self.bam("in.bam", [r for i in range(10) for r in pair(f"r{i}", 100 * i)])
        bam, _ = self.tile(source, "-n", "1M", "--most-bytes", "1K")
        records = bamfile.split(bam.records)
        self.assertEqual(len(records) % 2, 0)
        self.assertGreaterEqual(len(bam.records), 1024)
        self.assertLess(len(bam.records) - sum(map(len, records[-2:])), 1024)

    def test_depth(self):
        """A deep place is dealt out to several windows; duplicates come into the same one."""
        records = [r for i in range(200) for name in "ab" for r in pair(f"{name}{i}", i)]
        source = self.bam("in.bam", records)
        bam, err = self.tile(source, "-n", "800", "--depth", "20")
        # 32,000 bases on 299 positions are 107 deep.
        self.assertIn("1 copies of 800 reads in 6 windows", err)
        windows = {r.name[3:]: (r.pos - int(r.name[4:])) // (299 + GAP)
                   for r in map(decode, bamfile.split(bam.records)) if r.flag == 99}
        self.assertEqual(set(windows.values()), set(range(6)))
        self.assertEqual({windows[f"a{i}"] == windows[f"b{i}"] for i in range(200)}, {True})
        self.assertIn("in 1 windows", self.tile(source, "-n", "800")[1])

    def test_same_again(self):
        words = [self.bam("in.bam", [r for i in range(9) for r in pair(f"r{i}", 9 * i)]), "-n", "90"]
        first = self.tile(*words)[0]
        self.assertEqual(self.tile(*words)[0], first)
        other = self.tile(*words, "--seed", "2")[0]
        self.assertNotEqual(other.records, first.records)
        self.assertEqual(sorted(bamfile.split(other.records)), sorted(bamfile.split(first.records)))

    def test_several_inputs(self):
        """Read groups of all of them, each once; samtools and rocksort can read it."""
        one = self.bam("one.bam", pair("a", 50, aux=b"RGZg1\0"), "@RG\tID:g1\tSM:x\n")
        two = self.bam("two.bam", pair("b", 50, aux=b"RGZg2\0"),
                       "@RG\tID:g1\tSM:y\n@RG\tPL:z\tID:g2\n")
        bam, _ = self.tile(one, two, "-n", "4K")
        self.assertEqual([line for line in bam.text.splitlines() if line.startswith(("@RG", "@CO"))],
                         ["@RG\tID:g1\tSM:x", "@RG\tPL:z\tID:g2",
                          "@CO\treal reads, tiled by tile-reads.py from one.bam, two.bam"])
        result = self.rocksort("--checksum-only", self.path("out.bam"))
        self.assertRegex(result.out.decode(), r" records:4000 ")

    def test_large_inputs(self):
        """No more than the beginning is read: what follows may be damaged."""
        limited = self.path("tile.py")
        with open(ROOT / "bench" / "tile-reads.py", encoding="utf-8") as file:
            text = file.read()
        self.assertIn("LARGEST_INPUT_BYTES = 200 << 20", text)
        with open(limited, "w", encoding="utf-8") as file:
            file.write(text.replace("200 << 20", "1000"))
        shutil.copy(ROOT / "bench" / "measure.py", self.work)
        data = bamfile.bam_header("", REFS) + b"".join(single(f"r{i}", i) for i in range(100))
        source = self.write("in.bam", bamfile.bgzf_block(data[:8000]))
        out = self.path("out.bam")
        result = self.run_program([sys.executable, "-B", limited, source, "-n", "20", "-o", out],
                                  limit_s=60 * SLOW)
        self.assertEqual(result.status, 0, result.err)
        # One of them has 95 bytes or a few more.
        self.assertRegex(result.err, r"copies of (9|10|11) reads")

    def test_errors(self):
        """The message names the file; nothing is left."""
        good = self.bam("good.bam", pair("a", 50))
        text = self.write("text.bam", "@HD\tVN:1.6\n")
        with open(good, "rb") as file:
            data = bamfile.gzip.decompress(file.read())
        cut = self.write("cut.bam", bamfile.bgzf(data[:-3]))
        lone = self.bam("lone.bam", pair("a", 50)[:1])
        packed = self.write("packed.bam", bamfile.bgzf(b"no BAM"))
        for path, message in ((text, "is no BAM"), (packed, "is no BAM"), (cut, "ends too early"),
                              (lone, "nor a whole pair"), ("/no/such", "/no/such")):
            err = self.tile(good, path, status=1)[1]
            self.assertIn(path, err)
            self.assertRegex(err, message)
        self.assertRegex(self.tile(good, "-n", "900000G", status=1)[1], "GB free, .* smaller -n")


class Reads(InputTest):
    """--reads of the benchmarks, by the example of bench.py and compare.py."""

    def setUp(self):
        super().setUp()
        if not shutil.which("samtools"):
            self.skipTest("no samtools to compare with")
        self.source = self.bam("a.bam", [r for i in range(50) for r in pair(f"r{i}", 40 * i)])
        self.packages = self.work / "packages"
        self.packages.mkdir()

    def bench(self, *words, status=0):
        """Returns (the environment in the JSON file, what is printed, messages)."""
        out = self.path("bench.json")
        env = environment(self.scratch, extra={"ROCKSORT_REAL_BAMS": str(self.packages)})
        result = self.run_program(
            [sys.executable, ROOT / "bench" / "bench.py", "--points", "l1-64M", "--repeats", "1",
             "--cold-memory", "--dir", self.scratch, "--rocksort", SAMTOOLS + " rocksort",
             "--json", out, *words], env_only=env, limit_s=120 * SLOW)
        self.assertEqual(result.status, status, result.err)
        if status:
            return None, "", result.err
        with open(out, encoding="utf-8") as file:
            return json.load(file), result.out.decode(), result.err

    def kept(self):
        """The files of the directory for tiled reads, the only thing that stays."""
        folder = f"rocksort-tiled-{os.getuid()}"
        self.assertEqual(os.listdir(self.scratch), [folder])
        self.assertEqual(os.stat(self.scratch / folder).st_mode & 0o777, 0o700)
        return sorted(os.listdir(self.scratch / folder))

    def test_files(self):
        """The result says what was tiled; the tiles stay until an input changes."""
        other = self.bam("b.bam", pair("x", 7))
        words = ["--reads", self.source, other, "--records", "3K"]
        report, text, err = self.bench(*words)
        said = "real reads, tiled: a.bam, b.bam; 3000 records"
        self.assertIn(said, report["environment"]["input"])
        self.assertIn(f"- input: {said}", text)
        self.assertIn("stays for the next benchmark", err)
        self.assertEqual(report["records"], 3000)
        first = self.kept()
        self.assertEqual(len(first), 1)
        err = self.bench(*words)[2]
        self.assertIn("the tiled reads of an earlier benchmark", err)
        self.assertEqual(self.kept(), first)
        os.utime(other, (1, 1))
        self.assertNotIn("earlier benchmark", self.bench(*words)[2])
        self.assertEqual(len(self.kept()), 2)

    def test_merge(self):
        """bench/merge.py merges lanes and pieces of such reads by all programs that are there."""
        out = self.path("merge.json")
        result = self.run_program(
            [sys.executable, ROOT / "bench" / "merge.py", "--repeats", "1", "--cold-memory",
             "--records", "4K", "--dir", self.scratch, "--rocksort", SAMTOOLS + " rocksort",
             "--json", out, "--reads", self.source],
            env_only=environment(self.scratch), limit_s=240 * SLOW)
        self.assertEqual(result.status, 0, result.err)
        with open(out, encoding="utf-8") as file:
            ways = {run["who"]: run for run in json.load(file)["runs"]}
        self.assertIn("samtools", ways)
        self.assertEqual(ways["rocksort, copy"]["point"], "pieces")
        self.assertIn("| lanes | rocksort |", result.out.decode())

    def test_long_reads(self):
        """They are as many bytes as the short ones would be; there are no targets for them."""
        rng = random.Random(1)
        path = self.bam("long.bam", [
            single(f"r{i}", 90 * i, "20000M", seq="".join(rng.choices("ACGT", k=20000)))
            for i in range(5)])
        report, text, _ = self.bench("--reads", path, "--records", "1K")
        record_bytes = 36 + len("c0.r0") + 1 + 4 + 10000 + 20000
        self.assertEqual(report["records"], -(-1000 * 347 // record_bytes))
        self.assertNotIn("<= 0.45", text)
        self.assertIn("<= 128", text)
        self.assertIn("<= 0.45", self.bench("--reads", self.source, "--records", "1K")[1])

    def test_packages(self):
        for word, name, package in (
                ("debian", "mosdepth-examples--mosdepth-examples--empty-tids.bam",
                 "mosdepth-examples"),
                ("debian-long", "python3-nanoget-examples--examples--nanotest--alignment.bam",
                 "python3-nanoget-examples")):
            shutil.copy(self.source, self.packages / name)
            report, _, _ = self.bench("--reads", word, "--records", "1K")
            self.assertRegex(report["environment"]["input"],
                             f"^real reads, tiled: .* of Debian's {package}; 1000 records")

    @unittest.skipUnless(os.access(ROOT / "bench/simulate-reads", os.X_OK), "no simulate-reads")
    def test_no_packages(self):
        """Simulated reads instead, and the result says so."""
        for word, said, records in (("debian", "simulated reads; 1000 records", 1000),
                                    ("debian-long", "simulated long reads; 5 records", 5)):
            report, _, err = self.bench("--reads", word, "--records", "1K")
            self.assertIn(said, report["environment"]["input"])
            self.assertEqual(report["records"], records)
            self.assertIn("no reads of a Debian package here", err)
        self.assertEqual(os.listdir(self.scratch), [])

    def test_input_as_it_is(self):
        report, _, _ = self.bench("--input", self.source)
        self.assertRegex(report["environment"]["input"], r"^a\.bam; 100 records")
        self.assertEqual(os.listdir(self.scratch), [])

    def test_bad_words(self):
        for words, status, message in (
                (["--reads", "/no/such.bam"], 1, "no file /no/such.bam"),
                (["--reads", self.source, "/no/such.bam"], 1, "no file /no/such.bam"),
                (["--reads", "debian", self.source], 1, "--reads debian stands alone"),
                (["--reads", self.source, "--input", self.source], 2, "not allowed with")):
            self.assertIn(message, self.bench(*words, status=status)[2])
            self.assertEqual(os.listdir(self.scratch), [])

    def test_inputs_that_cannot_be_tiled(self):
        text = self.write("text.bam", "@HD\n")
        err = self.bench("--reads", text, status=1)[2]
        self.assertIn(f"{text} is no BAM", err)
        self.assertEqual(self.kept(), [])

    def test_directory_of_others(self):
        """Tiles are not taken from a directory that others can write to."""
        folder = self.scratch / f"rocksort-tiled-{os.getuid()}"
        folder.mkdir()
        folder.chmod(0o777)
        err = self.bench("--reads", self.source, status=1)[2]
        self.assertIn(f"{folder} is not a directory of yours alone", err)
        folder.rmdir()
        folder.symlink_to(self.work)
        self.assertIn("not a directory of yours", self.bench("--reads", self.source, status=1)[2])

    def test_peers(self):
        """compare.py checks the results against the tiles."""
        markdown = self.path("peers.md")
        result = self.run_program(
            [sys.executable, ROOT / "bench" / "compare.py", "--reads", self.source, "--records",
             "2K", "--cold-memory", "--repeats", "1", "--memory", "16M", "--dir", self.scratch,
             "--programs", "rocksort", "--rocksort", SAMTOOLS + " rocksort",
             "--markdown", markdown], env_only=environment(self.scratch), limit_s=120 * SLOW)
        self.assertEqual(result.status, 0, result.err)
        with open(markdown, encoding="utf-8") as file:
            self.assertRegex(file.read(), r"(?m)^- input: real reads, tiled: a\.bam; 2000 records")
        self.assertEqual(len(self.kept()), 1)
