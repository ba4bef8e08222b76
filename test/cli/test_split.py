"""--split-by: the pieces together are the whole, each in its order, with its index and header.

What each piece must hold is computed here from the names of reads, which occur once.
"""

import gzip
import os
import random
import re
import shutil
import signal
import struct
import time

import bamfile
import generate
from checkpoints import APPEAR_LIMIT_S, KilledTest
from harness import (SAMTOOLS, SPILL_BUDGET, bytes_of, json_of, needs_pysam, reference_ok,
                     reference_view, sam_split, sanitized, text_of, wait_for)
from test_index import IndexTest, index_bytes, index_kind, make_read, random_reads, random_regions

REFS = [("chr1", 300_000), ("empty", 5000), ("chr10", 5_000_000), ("chr2", 70_000), ("one", 1)]
N_READS = 2500


def tag(name, kind, value):
    head = name.encode() + kind.encode()
    if kind == "Z":
        return head + value.encode() + b"\0"
    if kind == "A":
        return head + value.encode()
    if kind == "B":
        return head + b"i" + struct.pack(f"<i{len(value)}i", len(value), *value)
    return head + struct.pack("<" + {"i": "i", "C": "B", "c": "b", "s": "h", "S": "H", "I": "I",
                                     "f": "f"}[kind], value)


def with_tag(read, more):
    raw = read.raw[4:] + more
    return read._replace(raw=struct.pack("<i", len(raw)) + raw)


def name_of(raw):
    return bamfile.fields(raw)[3].decode()


class SplitBase:
    """Functions for tests of pieces, which are written to the directory `out`."""

    def setUp(self):
        super().setUp()
        self.out = self.work / "out"
        self.out.mkdir()

    def pattern(self, ext="bam"):
        return str(self.out / f"%.{ext}")

    def files(self):
        return sorted(os.listdir(self.out))

    def empty_out(self):
        for name in self.files():
            os.unlink(self.out / name)

    def split(self, how, source, *options, ext="bam", **more):
        """Splits source; returns {name: path} of the pieces."""
        sources = source if isinstance(source, list) else [source]
        self.sort_ok("--no-PG", "--split-by", how, *options, "-o", self.pattern(ext), *sources,
                     **more)
        return self.pieces(ext)

    def pieces(self, ext="bam"):
        names = [name for name in self.files() if name.endswith("." + ext)]
        return {name[: -len(ext) - 1]: str(self.out / name) for name in names}

    def whole(self, source, *options):
        sources = source if isinstance(source, list) else [source]
        self.sort_ok("--no-PG", *options, "-o", self.path("whole.bam"), *sources)
        return bamfile.split(bamfile.read(self.path("whole.bam")).records)

    def assert_pieces(self, pieces, records, piece_of, known=(), what=""):
        """The pieces (of BAM) are those of the model: piece_of has the piece of each name, known
        are pieces that may be empty."""
        want = {name: [] for name in known}
        for raw in records:
            want.setdefault(piece_of[name_of(raw)], []).append(raw)
        self.assertEqual(sorted(pieces), sorted(want), what)
        for name, path in pieces.items():
            self.assert_same_records(bamfile.read(path).records, b"".join(want[name]),
                                     f"{what} {name}")

    def assert_indexes(self, pieces, regions=(), index_ext="csi"):
        """Each piece has an index, which answers as that of samtools."""
        for path in pieces.values():
            index = path + "." + index_ext
            want = self.want_index(path, index_kind(index))
            if index_ext != "crai":
                self.assertTrue(index_bytes(index) == index_bytes(want), index)
            if regions:
                self.assertEqual(self.ask(path, index, regions), self.ask(path, want, regions))

    def assert_split_refused(self, *mentions, how, source=None, options=(), keep=(), **more):
        """An error, and no piece, index or directory."""
        out = [] if "-o" in options else ["-o", self.pattern()]
        result = self.rocksort("--split-by", how, *options, *out, source or self.source_bam,
                               **more)
        self.assert_error(result, *mentions)
        self.assertEqual(self.files(), sorted(keep))
        return result


class SplitTest(SplitBase, IndexTest):
    """self.reads with their pieces by contig; self.source_bam has them."""

    def setUp(self):
        super().setUp()
        rng = random.Random(4)
        self.reads = random_reads(N_READS, REFS, seed=3)
        self.reads += [make_read(f"start{i}", tid, -1, "", "ACGT", 4)
                       for i, tid in enumerate((0, 2, 3))]
        self.groups = {}
        for i, read in enumerate(self.reads):
            group = rng.choice((None, "g1", "g 2/x", "g1", "other"))
            self.groups[read.name] = group
            if group:
                self.reads[i] = with_tag(read, tag("RG", "Z", group))
        self.text = "@RG\tID:g1\tSM:a\n@RG\tID:g 2/x\tSM:b\n@RG\tID:unused\tSM:c\n"
        self.source_bam = self.bam(self.reads, REFS, text=self.text)
        self.contigs = {read.name: REFS[read.tid][0] if read.tid >= 0 else "unplaced"
                        for read in self.reads}
        self.regions = random_regions(30, REFS)


@needs_pysam
class Contigs(SplitTest):
    def test_memory_threads_levels(self):
        records = self.whole(self.source_bam)
        for options, budget in (([], None), (["-@", "4"], SPILL_BUDGET), (["-l0"], SPILL_BUDGET),
                                (["-u", "-@", "3"], None), (["-l9", "-@", "2"], SPILL_BUDGET),
                                (["-l1", "--deflate", "igzip"], None)):
            with self.subTest(options=options, budget=budget):
                pieces = self.split("contig", self.source_bam, *options, budget=budget)
                self.assert_pieces(pieces, records, self.contigs,
                                   [name for name, _ in REFS] + ["unplaced"])
                self.assertEqual(len(self.files()), 2 * len(pieces))
                text = bamfile.read(self.path("whole.bam")).text
                for path in pieces.values():
                    self.assertEqual(bamfile.read(path).text, text)
                self.assert_indexes(pieces, self.regions[:5])
                self.empty_out()

    def test_pieces_have_the_lines_of_the_whole_in_each_format(self):
        sound = [read for read in self.reads if read.name.startswith("q")
                 and (bamfile.n_cigar(read.raw) or read.raw[18] & 4) and b"N" not in read.raw
                 and read.begin + 100 < (REFS[read.tid][1] if read.tid >= 0 else 1000)
                 and read.end - read.begin <= 100]
        source = self.bam(sound, REFS, "sound.bam", self.text)
        no_ref = ["--output-fmt-option", "no_ref=1"]
        for ext, index, options, budget in (
                ("sam", None, ["-@", "4"], SPILL_BUDGET), ("sam", None, [], None),
                ("sam.gz", "csi", ["-@", "2"], SPILL_BUDGET), ("sam.gz", "csi", ["-l0"], None),
                ("cram", "crai", no_ref, None), ("cram", "crai", [*no_ref, "-@", "4"],
                                                 SPILL_BUDGET)):
            with self.subTest(ext=ext, options=options):
                whole = self.path("whole." + ext)
                self.sort_ok("--no-PG", *options, "-o", whole, source)
                header, lines = sam_split(reference_view(whole))
                want = {name: [] for name in [*dict(REFS), "unplaced"]}
                for line in lines:
                    want[self.contigs[line.split("\t")[0]]].append(line)
                pieces = self.split("contig", source, *options, ext=ext, budget=budget)
                self.assertEqual(sorted(pieces), sorted(want))
                for name, path in pieces.items():
                    self.assertEqual(sam_split(reference_view(path)), (header, want[name]), name)
                if index:
                    self.assert_indexes(pieces, self.regions[:5] if ext == "cram" else (), index)
                self.assertEqual(len(self.files()), len(pieces) * (2 if index else 1))
                self.empty_out()

    def test_names_of_indexes_follow_the_pattern(self):
        """Names of indexes as in -o FILE##idx##INDEX, also in another directory."""
        pieces = self.split("contig", self.source_bam, ext=f"bam##idx##{self.out}/%.x.bai")
        self.assertEqual(pieces, {})
        pieces = self.pieces()
        self.assertEqual(len(pieces), len(REFS) + 1)
        for name, path in pieces.items():
            index = str(self.out / f"{name}.x.bai")
            self.assertEqual(index_kind(index), "bai")
            self.assertTrue(index_bytes(index) == index_bytes(self.want_index(path, "bai")))
        self.assertEqual(len(self.files()), 2 * len(pieces))
        self.empty_out()
        (self.work / "indexes").mkdir()
        self.split("contig", self.source_bam, ext=f"bam##idx##{self.work}/indexes/%.csi")
        self.assertEqual(len(os.listdir(self.work / "indexes")), len(REFS) + 1)
        self.assertEqual(len(self.files()), len(REFS) + 1)

    def test_read_beyond_the_index_is_named(self):
        refs = [("short", 1000)]
        source = self.bam([make_read("far", 0, 900, "50M3000000N50M", "A" * 100)], refs, "far.bam")
        self.assert_split_refused("'far'", "-O sam", how="contig", source=source)
        self.assertEqual(len(self.split("contig", source, ext="sam")), 2)

    def test_no_reads(self):
        for refs in (REFS, []):
            source = self.bam([], refs, "none.bam")
            pieces = self.split("contig", source)
            self.assertEqual(sorted(pieces), sorted([*dict(refs), "unplaced"]))
            self.assert_indexes(pieces)
            for path in pieces.values():
                self.assertEqual(bamfile.read(path).records, b"")
            self.empty_out()

    def test_pipe_several_inputs_and_merged_inputs_are_split(self):
        records = self.whole(self.source_bam)
        data = bytes_of(self.source_bam)
        known = [name for name, _ in REFS] + ["unplaced"]
        pieces = self.split("contig", "-", stdin=data, budget=SPILL_BUDGET)
        self.assert_pieces(pieces, records, self.contigs, known)
        self.empty_out()
        parts = []
        for i in range(3):
            part = self.bam(self.reads[i::3], REFS, f"part{i}.bam", self.text)
            parts.append(self.path(f"sorted{i}.bam"))
            self.sort_ok("--no-PG", "-o", parts[-1], part)
        for how in ("contig", "ranges:3", self.write("x.bed", "chr10\t0\t4000000\tx\n")):
            self.sort_ok("--no-PG", "--merge", "-o", self.path("merged.bam"), *parts)
            records = bamfile.split(bamfile.read(self.path("merged.bam")).records)
            pieces = self.split(how, parts, "--merge", "-@", "2")
            if how == "contig":
                self.assert_pieces(pieces, records, self.contigs, known)
            found = [raw for path in pieces.values()
                     for raw in bamfile.split(bamfile.read(path).records)]
            self.assertEqual(sorted(found), sorted(records), how)
            self.assert_indexes(pieces)
            self.empty_out()

    def test_merged_pieces_are_the_whole(self):
        self.whole(self.source_bam)
        pieces = self.split("contig", self.source_bam)
        order = [name for name, _ in REFS] + ["unplaced"]
        self.sort_ok("--merge", "--no-PG", "-o", self.path("again.bam"),
                     *(pieces[name] for name in order))
        self.assert_same_bam(bamfile.read(self.path("again.bam")),
                             bamfile.read(self.path("whole.bam")))

    def test_merge_of_a_pipe_by_ranges_is_refused(self):
        self.whole(self.source_bam)
        data = bytes_of(self.path("whole.bam"))
        self.assert_split_refused("twice", "standard input", how="ranges:3", source="-",
                                  options=["--merge"], stdin=data)
        pieces = self.split("contig", "-", "--merge", stdin=data)
        self.assertEqual(len(pieces), len(REFS) + 1)

    def test_stale_index_of_a_piece_is_removed(self):
        (self.out / "chr1.bam.bai").write_text("old")
        (self.out / "chr1.bai").write_text("old")
        self.sort_ok("--split-by", "contig", "-o", self.pattern(), self.source_bam)
        self.assertEqual([name for name in self.files() if name.endswith(".bai")], [])

    def test_minimiser_order(self):
        records = self.whole(self.source_bam, "-M")
        pieces = self.split("contig", self.source_bam, "-M", budget=SPILL_BUDGET)
        self.assert_pieces(pieces, records, self.contigs, [name for name, _ in REFS])
        self.assert_indexes(pieces)

    def test_counts_are_those_of_the_whole(self):
        for name in ("whole", "parts"):
            split = ["--split-by", "contig", "-o", self.pattern()] if name == "parts" else [
                "-o", self.path("w.bam")]
            self.sort_ok("--flagstat", self.path(name + ".flagstat"), "--idxstats",
                         self.path(name + ".idxstats"), "--coverage", self.path(name + ".cov"),
                         *split, self.source_bam)
        for ext in ("flagstat", "idxstats", "cov"):
            with open(self.path("whole." + ext), "rb") as a, open(self.path("parts." + ext),
                                                                  "rb") as b:
                self.assertEqual(a.read(), b.read())

    def test_stats_say_what_each_piece_has(self):
        records = self.whole(self.source_bam)
        for how, known in (("contig", [*dict(REFS), "unplaced"]),
                           ("rg", ["g1", "g 2/x", "unused", "other", "none"]),
                           ("ranges:2", ["1", "2", "unplaced"])):
            pieces = self.split(how, self.source_bam, "--stats", self.path("stats"))
            stats = json_of(self.path("stats"))
            said = stats["output"]["pieces"]
            self.assertEqual(sorted(piece["name"] for piece in said), sorted(known))
            self.assertEqual(stats["options"]["split_by"], how)
            self.assertEqual(stats["output"]["records"], len(records))
            self.assertEqual(stats["output"]["bytes"], sum(piece["bytes"] for piece in said))
            for piece in said:
                self.assertIn(piece["file"], pieces.values())
                self.assertEqual(piece["index"], piece["file"] + ".csi")
                self.assertEqual(piece["bytes"], os.path.getsize(piece["file"]))
                self.assertEqual(piece["records"],
                                 len(bamfile.split(bamfile.read(piece["file"]).records)))
                self.assertEqual(piece["begin"] is not None,
                                 how == "ranges:2" and piece["name"] != "unplaced")
            self.empty_out()

    def test_statistics_may_have_values_that_are_no_utf8(self):
        reads = [make_read(f"q{i}", 0, i, "4M", "ACGT") for i in range(3)]
        values = [b"CBZ\xff\xfe\0", b'CBZ"\\\t\0', b"CBZ\xc3\xa9\0"]
        source = self.bam([with_tag(read, value) for read, value in zip(reads, values)], REFS,
                          "odd.bam")
        pieces = self.split("tag:CB", source, "--stats", self.path("stats"))
        said = json_of(self.path("stats"))["output"]["pieces"]
        self.assertEqual(sorted(piece["file"] for piece in said), sorted(pieces.values()))
        self.assertEqual({piece["name"] for piece in said},
                         {"none", "\ufffd\ufffd", '"\\\t', "\xe9"})

    def test_checksum_is_that_of_the_whole(self):
        want = self.sort_ok("--checksum", "-o", self.path("w.bam"), self.source_bam)
        got = self.sort_ok("--checksum", "--split-by", "contig", "-o", self.pattern(),
                           self.source_bam)
        self.assertEqual(re.findall(r"\b[0-9a-f]{16,}\b", got.err + got.out.decode()),
                         re.findall(r"\b[0-9a-f]{16,}\b", want.err + want.out.decode()))

    def test_fsync_writes_all_pieces(self):
        self.assertEqual(len(self.split("contig", self.source_bam, "--fsync")), len(REFS) + 1)

    def test_duplicates_are_decided_before_the_split(self):
        source = self.write("in.sam", generate.reads(3000, generate.reference()))
        for options in ([], ["-@", "3"]):
            for markdup in ("--markdup", "--markdup=-r"):
                records = self.whole(source, "--fixmate", markdup, *options)
                places = {}
                for raw in records:
                    places.setdefault(bamfile.fields(raw)[0], []).append(raw)
                pieces = self.split("contig", source, "--fixmate", markdup, *options,
                                    budget=SPILL_BUDGET)
                for tid, (name, _) in enumerate(bamfile.read(self.path("whole.bam")).refs):
                    self.assert_same_records(bamfile.read(pieces[name]).records,
                                             b"".join(places.get(tid, [])))
                self.empty_out()


def equal_single_reads(n_reads, seed):
    """Single reads at few places, most with one score, with random tags. The first of those that
    are equal stays."""
    rng = random.Random(seed)
    reads = []
    for i in range(n_reads):
        tags = (rng.choice((b"", tag("RG", "Z", rng.choice(("g0", "g1", "g2", "lost"))))) +
                rng.choice((b"", tag("XX", "i", rng.randrange(7)))) +
                rng.choice((b"", tag("BX", "Z", rng.choice(("AAAA", "AAAC", "GGGG"))))))
        reads.append(make_read(f"s{i}", rng.choice((0, 2)), 100 * rng.randrange(1, 6), "40M",
                               "ACGTACGTAC" * 4, rng.choice((0, 16)), tags))
    return reads


EQUAL_READS_TEXT = "@RG\tID:g1\tLB:x\n@RG\tID:g0\tLB:x\n@RG\tID:unused\n"
BY_TAG = ("rg", "tag:XX")


def marks_of(files):
    """{name: raw record} of all records of the files. No name occurs twice."""
    marks = {}
    for path in files:
        for raw in bamfile.split(bamfile.read(path).records):
            assert name_of(raw) not in marks
            marks[name_of(raw)] = raw
    return marks


@needs_pysam
class EqualReads(SplitBase, IndexTest):
    """By tag, duplicates are those of the sort without --split-by: of equal single reads the first
    of the input stays, whatever its tag."""

    OPTIONS = ("", "-r", "-S", "-t", "-d 100 -t --duplicate-count", "--use-libraries",
               "--barcode-tag BX", "--barcode-tag BX --barcode-mismatches 1",
               "--ignore-strand", "--ignore-strand -t")

    def check(self, source, markdup, **how):
        options = ["--markdup=" + markdup] if markdup else ["--markdup"]
        self.sort_ok("--no-PG", *options, "-o", self.path("whole.bam"), source)
        want = marks_of([self.path("whole.bam")])
        n_marked = sum(raw[19] >> 2 & 1 for raw in want.values())
        self.assertEqual(n_marked == 0, "-r" in markdup)
        for kind in BY_TAG:
            with self.subTest(kind=kind, markdup=markdup, **how):
                pieces = self.split(kind, source, *options, *how.get("more", ()),
                                    budget=how.get("budget"))
                self.assertGreater(len(pieces), 3)
                self.assertEqual(marks_of(pieces.values()), want)
                self.empty_out()

    def source(self, n_reads, seed):
        reads = equal_single_reads(n_reads, seed)
        return self.bam(reads, REFS, f"equal{seed}.bam", EQUAL_READS_TEXT)

    def test_in_memory(self):
        source = self.source(300, 21)
        for markdup in self.OPTIONS:
            self.check(source, markdup)
        self.check(self.source(40_000, 22), "", more=["-@", "3"])

    def test_spilled_equal_reads_are_decided_as_a_whole(self):
        source = self.source(12_000, 23)
        for markdup in self.OPTIONS:
            self.check(source, markdup, budget=SPILL_BUDGET, more=["-@", "3"])
        self.check(source, "", budget=SPILL_BUDGET)

    def test_equal_reads_are_decided_among_runs_and_memory(self):
        source = self.source(9000, 24)
        for budget in (SPILL_BUDGET // 2 * 3, SPILL_BUDGET * 2, SPILL_BUDGET * 4):
            self.check(source, "", budget=budget, more=["-@", "2"])

    def test_equal_reads_are_decided_after_fixmate(self):
        source = self.source(6000, 25)
        for budget in (None, SPILL_BUDGET):
            self.check(source, "", budget=budget, more=["--fixmate"])


@needs_pysam
class Names(SplitTest):
    """Names of pieces are safe names of files."""

    def names(self, refs, **more):
        source = self.write("names.sam", bamfile.sq_text([(name, 1000) for name in refs]))
        self.split("contig", source, **more)
        found = self.files()
        self.empty_out()
        return found

    def test_odd_characters_become_safe_names(self):
        names = ["HLA:A*01:01", "a/b", "a:b", ".", "..", "-x", "a_b", "unplaced", "é",
                 "x" * 240, "x" * 241, "|", "a=b,c+d@e"]
        want = ["HLA_A_01_01", "a_b", "a_b_2", "_", "_.", "_x", "a_b_3", "unplaced", "__",
                "x" * 180, "x" * 180 + "_2", "__2", "a_b,c+d@e", "unplaced_2"]
        # "é" has two bytes; "__" is taken by nobody before it.
        self.assertEqual(self.names(names, ext="sam"), sorted(name + ".sam" for name in want))

    def test_name_that_looks_numbered_is_kept(self):
        self.assertEqual(self.names(["a_2", "a/", "a_", "a:", "a__2"], ext="sam"),
                         sorted(["a_2.sam", "a_.sam", "a__2.sam", "a__3.sam", "a__2_2.sam",
                                 "unplaced.sam"]))

    def test_several_percents(self):
        source = self.bam([], [("c", 1000)], "names.bam")
        self.sort_ok("--split-by", "contig", "-o", str(self.out / "%.x.%.sam"), source)
        self.assertEqual(self.files(), ["c.x.c.sam", "unplaced.x.unplaced.sam"])

    def test_name_too_long(self):
        self.assert_split_refused("too long", how="contig",
                                  options=["-o", str(self.out / ("y" * 200 + "%.bam"))],
                                  source=self.bam([], [("x" * 180, 1000)], "names.bam"))

    def test_names_without_a_directory(self):
        source = self.bam([], [("c", 1000)], "names.bam")
        self.sort_ok("--split-by", "contig", "-o", "%.sam", source, cwd=self.out)
        self.assertEqual(self.files(), ["c.sam", "unplaced.sam"])

    def test_index_and_piece_of_one_name_are_refused(self):
        source = self.bam([], [("c", 1000), ("c.csi", 1000)], "names.bam")
        self.assert_split_refused("c.csi", how="contig", source=source,
                                  options=["-O", "bam", "-o", str(self.out / "%")])


@needs_pysam
class Bed(SplitTest):
    def bed(self, text, name="x.bed"):
        return self.write(name, text)

    def model(self, intervals):
        """{name of read: piece} for intervals (reference, begin, end, name)."""
        tids = {name: tid for tid, (name, _) in enumerate(REFS)}
        places = [(tids[ref], begin, end, name) for ref, begin, end, name in intervals]
        piece_of = {}
        for read in self.reads:
            inside = [name for tid, begin, end, name in places
                      if tid == read.tid and begin <= read.begin < end]
            self.assertLessEqual(len(inside), 1)
            piece_of[read.name] = "unplaced" if read.tid < 0 else (inside or ["outside"])[0]
        return piece_of

    def check(self, intervals, *options, text=None, name="x.bed", **more):
        text = text or "".join("\t".join(map(str, line)) + "\n" for line in intervals)
        pieces = self.split(self.bed(text, name), self.source_bam, *options, **more)
        known = {line[3] for line in intervals} | {"outside", "unplaced"}
        self.assert_pieces(pieces, self.whole(self.source_bam), self.model(intervals), known)
        self.assert_indexes(pieces)
        self.empty_out()

    def test_intervals_divide_the_reads(self):
        plain = [("chr1", 0, 1000, "a"), ("chr1", 1000, 100_000, "b"), ("chr2", 10, 70_000, "c"),
                 ("chr10", 2_000_000, 9_000_000, "d"), ("empty", 3, 4, "e")]
        self.check(plain)
        self.check(plain[::-1], "-@", "4", budget=SPILL_BUDGET)
        self.check([("one", 0, 1, "x")])
        self.check([("chr1", 0, 300_000, "x")], "-l0")

    def test_many_small_intervals_divide_the_reads(self):
        rng = random.Random(8)
        for n_names in (3, 40):
            intervals = []
            for ref, length in (REFS[0], REFS[2], REFS[3]):
                cuts = sorted(rng.sample(range(length), 60))
                intervals += [(ref, begin, end, f"n{rng.randrange(n_names)}")
                              for begin, end in zip(cuts, cuts[1:]) if rng.random() < 0.6]
            rng.shuffle(intervals)
            self.check(intervals, "-@", "2", budget=4_000_000 if n_names == 3 else None)

    def test_column_after_an_empty_one_is_no_name(self):
        want = [("chr1", 0, 9000, "chr1:1-9000"), ("chr2", 5, 60_000, "b")]
        pieces = self.split(self.bed("chr1\t0\t9000\t\t960\t+\nchr2\t5\t60000\tb\n"),
                            self.source_bam)
        piece_of = {name: piece.replace(":", "_") for name, piece in self.model(want).items()}
        self.assert_pieces(pieces, self.whole(self.source_bam), piece_of,
                           {"chr1_1-9000", "b", "outside", "unplaced"})

    def test_names_that_come_again_are_open_at_once(self):
        intervals = [("chr10", i * 5000, (i + 1) * 5000, f"n{i % 60}") for i in range(1000)]
        self.check(intervals)

    def test_bed_file_may_have_comments_and_blanks(self):
        want = [("chr1", 0, 9000, "a b"), ("chr10", 5, 600_000, "chr10:6-600000")]
        for text in ("# comment\ntrack name=x\nbrowser position chr1\n\n"
                     "chr1\t0\t9000\ta b\t0\t+\nchr10\t5\t600000\n",
                     "chr1\t0\t9000\ta b\r\n\r\nchr10\t5\t600000\t.\r\n",
                     "chr10 5 600000\n  \nchr1\t0\t9000\ta b",
                     "\t# odd\nchr10  5   600000\nchr1\t0\t9000\ta b\t"):
            with self.subTest(text=text):
                self.check([(*line[:3], re.sub("[ :]", "_", line[3])) for line in want],
                           text=text)
        self.write("x.bed.gz", gzip.compress(b"chr1\t0\t9000\ta\n"))
        self.assertEqual(sorted(self.split(self.path("x.bed.gz"), self.source_bam)),
                         ["a", "outside", "unplaced"])

    def test_names_that_the_program_has_for_other_pieces_get_numbers(self):
        pieces = self.split(self.bed("chr1\t0\t9000\toutside\nchr2\t0\t9\tunplaced\n"),
                            self.source_bam)
        self.assertEqual(sorted(pieces), ["outside", "outside_2", "unplaced", "unplaced_2"])
        want = sum(read.tid == 0 and 0 <= read.begin < 9000 for read in self.reads)
        self.assertEqual(len(bamfile.split(bamfile.read(pieces["outside"]).records)), want)

    def test_references_may_begin_like_keywords(self):
        refs = [("track1", 1000), ("browserX", 1000)]
        source = self.bam([make_read("q", 0, 5, "4M", "ACGT")], refs, "names.bam")
        for text in ("track1\t0\t10\ta\nbrowserX\t0\t10\tb\n",):
            pieces = self.split(self.bed(text), source)
            self.assertEqual(sorted(pieces), ["a", "b", "outside", "unplaced"])

    def test_bad_bed_lines_are_named(self):
        for text, *mentions in (
                ("", "no intervals"), ("#x\n", "no intervals"), ("chr1\n", "line 1"),
                ("chr1\t1\n", "line 1"), ("chr1\t0\t9\n\nnope\t0\t9\n", "line 3", "header"),
                ("chr1\ta\t9\n", "line 1"), ("chr1\t5\t5\n", "line 1"), ("chr1\t6\t5\n", "line 1"),
                ("chr1\t-1\t5\n", "line 1"), ("chr1\t0\t99999999999999999999\n", "line 1"),
                ("chr1\t0\t10\na\t0\t5\n", "line 2"),
                ("chr1\t0\t10\nchr1\t9\t11\n", "lines 1 and 2"),
                ("chr1\t0\t9\nchr1\t0\t9\tx\n", "lines 1 and 2"),
                ("chr1\t0\t100\tx\nchr1\t20\t30\ty\n", "lines 1 and 2", "one name"),
                ("chr1\t50\t60\ty\n#\nchr1\t9\t12\tx\nchr1\t0\t100\tx\nchr1\t20\t30\tx\n",
                 "lines 4 and 1", "overlap")):
            with self.subTest(text=text):
                self.assert_split_refused(*mentions, how=self.bed(text))

    def test_intervals_of_one_name_may_overlap(self):
        intervals = [("chr1", 100, 9000, "a"), ("chr1", 200, 300, "a"), ("chr1", 5000, 40_000, "a"),
                     ("chr1", 40_000, 50_000, "b"), ("chr1", 45_000, 50_000, "b"),
                     ("chr1", 60_000, 70_000, "a"), ("chr10", 5, 600_000, "a"),
                     ("chr10", 5, 600_000, "a"), ("chr10", 6, 7, "a")]
        text = "".join("\t".join(map(str, line)) + "\n" for line in intervals)
        merged = [("chr1", 100, 40_000, "a"), ("chr1", 40_000, 50_000, "b"),
                  ("chr1", 60_000, 70_000, "a"), ("chr10", 5, 600_000, "a")]
        self.check(merged, "-@", "2", text=text)
        self.check([("chr1", 0, 90_000, "chr1_1-90000")], text="chr1\t0\t90000\n" * 2)

    def test_overlap_with_a_containing_interval_is_found(self):
        self.assert_split_refused("overlap", how=self.bed(
            "chr1\t0\t10\ta\nchr1\t20\t100\tb\nchr1\t30\t40\tc\nchr1\t90\t95\td\n"))

    def test_file_that_is_no_bed_is_named(self):
        reference_ok("view", "-H", "-O", "cram", "-o", self.path("x.cram"), self.source_bam)
        self.write("x.csi", bamfile.bgzf(b"CSI\1" + bytes(100)))
        self.write("x.xz", b"\xfd7zXZ\0" + bytes(100))
        self.write("x.bz2", b"BZh91AY" + bytes(100))
        self.write("x.gz", gzip.compress(b"chr1\t0\t10\n" * 1)[:-12] + b"x" * 12)
        (self.work / "x.dir").mkdir()
        for name in ("in.bam", "x.cram", "x.csi", "x.xz", "x.bz2", "x.gz", "x.dir", "x.none"):
            with self.subTest(name=name):
                self.assert_split_refused(name, how=self.path(name))

    def test_too_many_open_pieces_are_refused(self):
        text = "".join(f"chr10\t{i * 10}\t{i * 10 + 10}\tn{i % 2000}\n" for i in range(4000))
        self.assert_split_refused("memory", "2001", how=self.bed(text), budget=20_000_000)
        refs = [(f"c{i}", 500_000_000) for i in range(20)]
        groups = "".join(f"c{i // 500}\t{i * 10}\t{i * 10 + 10}\tn{i % 500}\n"
                         for i in range(1000))
        self.assert_split_refused(
            "memory", how=self.bed(groups, "groups.bed"), budget=2_000_000_000,
            source=self.bam([], refs, "long.bam"),
            options=["-o", f"{self.pattern()}##idx##{self.pattern()}.bai"])
        self.assert_split_refused("CRAM", how=self.bed(text), budget=2_000_000_000,
                                  options=["-O", "cram,no_ref=1", "-o", self.pattern("cram")])
        result = self.run_program(
            ["bash", "-c", 'ulimit -n 256; exec "$@"', "bash", SAMTOOLS, "rocksort", "--split-by",
             self.bed(text), "-o", self.pattern(), self.source_bam], budget=2_000_000_000)
        self.assert_error(result, "ulimit -n")
        self.assertEqual(self.files(), [])


@needs_pysam
class Ranges(SplitTest):
    def check(self, n, *options, reads=None, refs=REFS, **more):
        reads = self.reads if reads is None else reads
        source = self.bam(reads, refs, "ranges.bam", self.text)
        records = self.whole(source)
        pieces = self.split(f"ranges:{n}", source, *options, **more)
        width = len(str(n))
        names = [f"{i:0{width}}" for i in range(1, n + 1)] + ["unplaced"]
        self.assertEqual(sorted(pieces), sorted(names))
        parts = [bamfile.split(bamfile.read(pieces[name]).records) for name in names]
        self.assert_same_records(b"".join(raw for part in parts for raw in part),
                                 b"".join(records))
        self.assertTrue(all(bamfile.fields(raw)[0] < 0 for raw in parts[-1]))
        self.assertTrue(all(bamfile.fields(raw)[0] >= 0 for part in parts[:-1] for raw in part))
        self.assert_indexes({name: pieces[name] for name in names[:3] + names[-1:]})
        self.empty_out()
        return parts[:-1]

    def assert_balanced(self, parts, refs=REFS):
        """No range is further from its share than a window and a half."""
        window = int(sum(length for _, length in refs) / 65536) + 1
        sizes, all_bytes = {}, 0
        for part in parts:
            for raw in part:
                tid, pos, _, _ = bamfile.fields(raw)
                key = tid, max(pos, 0) // window
                sizes[key] = sizes.get(key, 0) + len(raw)
                all_bytes += len(raw)
        for part in parts:
            size = sum(map(len, part))
            self.assertLessEqual(abs(size - all_bytes / len(parts)), max(sizes.values()))

    def test_ranges_have_about_as_many_reads(self):
        for n in (1, 2, 3, 10, 64):
            for options, budget in (([], None), (["-@", "4"], SPILL_BUDGET)):
                with self.subTest(n=n, options=options):
                    self.assert_balanced(self.check(n, *options, budget=budget))

    def test_threads_and_memory_do_not_move_ranges(self):
        want = self.check(7)
        self.assertEqual(self.check(7, "-@", "4", budget=SPILL_BUDGET), want)

    def test_few_windows(self):
        reads = [make_read(f"q{i}", 0, i % 3, "1M", "A") for i in range(30)]
        reads += [make_read(f"m{i}", tid, -1, "", "A", 4) for i, tid in enumerate((0, 1, 1))]
        parts = self.check(20, reads=reads, refs=[("a", 3), ("b", 1), ("c", 0x7fffffff)])
        self.assertEqual(sum(map(len, parts)), 33)

    def test_one_place(self):
        reads = [make_read(f"q{i}", 2, 4_000_000, "100M", "ACGTA" * 20) for i in range(3000)]
        parts = self.check(4, reads=reads, budget=SPILL_BUDGET)
        self.assertEqual(sorted(map(len, parts)), [0, 0, 0, 3000])

    def test_nothing_placed(self):
        reads = [make_read(f"q{i}", -1, -1, "", "ACGT" * 30, 4) for i in range(50)]
        self.assertEqual(self.check(3, reads=reads), [[], [], []])
        self.assertEqual(self.check(3, reads=reads, refs=[]), [[], [], []])
        self.assertEqual(self.check(2, reads=[], refs=[]), [[], []])
        self.assertEqual(self.check(2, reads=[]), [[], []])

    def test_reads_beyond_the_end_of_their_reference_are_placed(self):
        reads = [make_read(f"q{i}", i % 2, 900 + i, "1M", "A") for i in range(100)]
        self.check(5, reads=reads, refs=[("a", 1000), ("b", 1000), ("c", 5)])

    def test_wrong_numbers_of_ranges_are_refused(self):
        for how in ("ranges:0", "ranges:", "ranges:-1", "ranges:1x", "ranges: 2",
                    "ranges:100001", "ranges:99999999999999999999"):
            self.assert_split_refused("1 to 100000", how=how)


@needs_pysam
class Tags(SplitTest):
    def model(self):
        names = {None: "none", "g1": "g1", "g 2/x": "g_2_x", "other": "other"}
        return {read: names[group] for read, group in self.groups.items()}

    def test_read_groups(self):
        for order, budget in (([], None), (["-@", "4"], SPILL_BUDGET), (["-n"], SPILL_BUDGET),
                              (["-N", "-l0"], None)):
            with self.subTest(order=order):
                records = self.whole(self.source_bam, *order)
                whole = bamfile.read(self.path("whole.bam"))
                pieces = self.split("rg", self.source_bam, *order, budget=budget)
                self.assert_pieces(pieces, records, self.model(), ["unused"])
                for name, path in pieces.items():
                    title = {"g_2_x": "g 2/x"}.get(name, name)
                    want = [line for line in whole.text.splitlines() if line[:3] != "@RG"
                            or f"\tID:{title}\t" in line]
                    self.assertEqual(bamfile.read(path).text.splitlines(), want, name)
                if order and order[0] in ("-n", "-N"):
                    self.assertEqual(len(self.files()), len(pieces))
                else:
                    self.assert_indexes(pieces, self.regions[:5])
                self.empty_out()

    def test_read_groups_as_cram(self):
        reads = [with_tag(make_read(f"q{i}", 0, i, "4M", "ACGT"),
                          tag("RG", "Z", group) if group else b"")
                 for i, group in enumerate(("g1", "g 2/x", None) * 20)]
        source = self.bam(reads, REFS, "rg.bam", self.text)
        options = ["--output-fmt-option", "no_ref=1"]
        pieces = self.split("rg", source, *options, ext="cram", budget=SPILL_BUDGET)
        self.assertEqual(sorted(pieces), ["g1", "g_2_x", "none", "unused"])
        for name, path in pieces.items():
            lines = sam_split(reference_view(path))[1]
            self.assertEqual(len(lines), 0 if name == "unused" else 20)
            self.assertEqual(sum("RG:Z:" in line for line in lines),
                             20 if name in ("g1", "g_2_x") else 0)
        self.assert_indexes(pieces, index_ext="crai")

    def test_input_without_read_groups_is_split(self):
        source = self.bam(self.reads, REFS, "rg.bam")
        pieces = self.split("rg", source)
        self.assert_pieces(pieces, self.whole(source), self.model())
        self.empty_out()
        self.assertEqual(sorted(self.split("rg", self.bam([], [], "rg.bam"))), ["none"])

    def tagged(self, values):
        """Reads with the tag XX in turns; values are bytes of the tag. Returns reads and the
        number of the value of each."""
        rng = random.Random(3)
        reads, number = [], {}
        for i in range(len(values) * 20):
            at = rng.randrange(len(values))
            read = make_read(f"t{i}", rng.choice((0, 2, -1)), rng.randrange(300_000), "4M", "ACGT")
            if read.tid < 0:
                read = make_read(f"t{i}", -1, -1, "", "ACGT", 4)
            reads.append(with_tag(read, values[at]))
            number[read.name] = at
        return reads, number

    def test_values_of_all_types_make_pieces(self):
        values = [(tag("XX", "i", 7), "7"), (tag("XX", "C", 7), "7"), (tag("XX", "s", 7), "7"),
                  (tag("XX", "f", 7.0), "7"), (tag("XX", "i", -7), "_7"),
                  (tag("XX", "f", 0.5), "0.5"), (tag("XX", "I", 4294967295), "4294967295"),
                  (tag("XX", "A", "c"), "c"), (tag("XX", "Z", "text"), "text"),
                  (tag("XX", "Z", ""), "_"), (tag("XX", "Z", "a/b\x7f"), "a_b_"),
                  (tag("XX", "B", [1, 2]), "array"), (tag("XX", "B", [3]), "array"), (b"", "none"),
                  (tag("XX", "Z", "y" * 60_000), "y" * 180)]
        reads, number = self.tagged([value for value, _ in values])
        source = self.bam(reads, REFS, "tags.bam")
        piece_of = {name: values[at][1] for name, at in number.items()}
        for order, budget in (([], None), (["-@", "3"], SPILL_BUDGET), (["-n"], None)):
            with self.subTest(order=order):
                pieces = self.split("tag:XX", source, *order, budget=budget)
                self.assert_pieces(pieces, self.whole(source, *order), piece_of)
                header = bamfile.read(pieces["7"]).text.splitlines()[0]
                self.assertIn("SO:queryname" if order == ["-n"] else "SO:coordinate", header)
                self.assertNotIn("unsorted", header)
                if order != ["-n"]:
                    self.assert_indexes(pieces)
                self.empty_out()

    def test_same_text(self):
        """Values of other types whose text is the same, and texts that are equal after cleaning,
        are pieces of their own."""
        values = [tag("XX", "i", 5), tag("XX", "Z", "5"), tag("XX", "A", "5"), tag("XX", "Z", "a/"),
                  tag("XX", "Z", "a:"), tag("XX", "Z", "array"), tag("XX", "Z", "none"), b""]
        reads, number = self.tagged(values)
        source = self.bam(reads, REFS, "tags.bam")
        pieces = self.split("tag:XX", source)
        groups = {frozenset(name_of(raw) for raw in bamfile.split(bamfile.read(path).records))
                  for path in pieces.values()}
        want = {}
        for name, at in number.items():
            want.setdefault(at, set()).add(name)
        self.assertEqual(groups, {frozenset(names) for names in want.values()})
        self.assertEqual(sorted(pieces), ["5", "5_2", "5_3", "a_", "a__2", "array", "none",
                                          "none_2"])

    def test_two_thousand_values_need_few_open_files(self):
        reads = [with_tag(make_read(f"q{i}", 0, i, "4M", "ACGT"), tag("CB", "Z", f"v{i % 2000}"))
                 for i in range(4000)]
        source = self.bam(reads, REFS, "tags.bam")
        result = self.run_program(
            ["bash", "-c", 'ulimit -n 64; exec "$@"', "bash", SAMTOOLS, "rocksort", "-l1",
             "--split-by", "tag:CB", "-o", self.pattern(), source])
        self.assertEqual(result.status, 0, result.err)
        pieces = self.pieces()
        self.assertEqual(sorted(pieces), sorted(["none"] + [f"v{i}" for i in range(2000)]))
        for i in (0, 1, 1999):
            names = [name_of(raw) for raw in bamfile.split(bamfile.read(pieces[f"v{i}"]).records)]
            self.assertEqual(names, [f"q{i}", f"q{i + 2000}"])

    def test_too_many_values(self):
        """This is said when the last value that is too many was read; nothing is kept, because a
        resume would fail again."""
        fixed = make_read("q", 0, 0, "4M", "ACGT")
        reads = [with_tag(fixed, tag("RX", "Z", f"{i:09}")) for i in range(100_300)]
        source = self.bam(reads, REFS, "many.bam")
        for budget in (None, 2_000_000):
            result = self.assert_split_refused("more than 100000 files", "by contig",
                                               how="tag:RX", source=source, budget=budget)
            self.assertNotIn("--resume", result.err)
            self.assertEqual(os.listdir(self.scratch), [])

    def test_long_values_are_not_kept_in_memory(self):
        if sanitized():
            self.skipTest("memory is measured without sanitizers")
        n, size = 2000, 60_000
        header = bamfile.bgzf_blocks(bamfile.bam_header("", []))
        with open(self.path("long.bam"), "wb") as file:
            file.write(b"".join(header))
            for i in range(n):
                value = tag("CB", "Z", f"v{i}." + "y" * size)
                file.write(b"".join(bamfile.bgzf_blocks(bamfile.record(f"q{i}", 4, aux=value))))
            file.write(bamfile.EOF_BLOCK)
        self.sort_ok("--split-by", "tag:CB", "-m", "20M", "-O", "sam", "--stats",
                     self.path("stats"), "-o", self.pattern("sam"), self.path("long.bam"))
        self.assertEqual(len(self.files()), n + 1)
        peak = json_of(self.path("stats"))["memory"]["peak_resident_bytes"]
        self.assertLess(peak, 140 << 20)

    def test_value_that_is_too_long_for_a_key_is_refused(self):
        read = with_tag(make_read("q7", 0, 0, "4M", "ACGT"), tag("CB", "Z", "y" * 66_000))
        source = self.bam([make_read("q6", 0, 0, "4M", "ACGT"), read], REFS, "long.bam")
        self.assert_split_refused("record 2", "'q7'", "65,535 bytes", "tag CB", how="tag:CB",
                                  source=source)

    def test_wrong_tags_are_refused(self):
        for how in ("tag:", "tag:X", "tag:XXX", "tag:1X", "tag:X-"):
            self.assert_split_refused("two characters", how=how)
        self.assert_split_refused("-t", how="tag:XX", options=["-t", "XX"])
        self.assert_split_refused("--merge", how="rg", options=["--merge"])
        for option in ("-M", "--shuffle", "--template-coordinate"):
            self.assert_split_refused("order", how="rg", options=[option])


@needs_pysam
class Directories(SplitTest):
    """A % in the name of the directory: each piece has one, as partitioned data sets have."""

    def assert_same_pieces(self, pattern):
        """The pieces are those of plain names. Returns their names."""
        plain = self.split("contig", self.source_bam)
        names = sorted(plain)
        for name in names:
            path = str(self.out / pattern.replace("%", name))
            self.assert_same_bam(bamfile.read(path), bamfile.read(plain[name]), name)
            self.assertEqual(index_bytes(path + ".csi"), index_bytes(plain[name] + ".csi"))
        self.empty_plain()
        return names

    def empty_plain(self):
        for name in self.files():
            if os.path.isfile(self.out / name):
                os.unlink(self.out / name)

    def sort_to(self, pattern, *options, **how):
        return self.rocksort("--no-PG", "--split-by", "contig", *options, "-o",
                             str(self.out / pattern), self.source_bam, **how)

    def test_directories_of_pieces_are_made(self):
        for pattern in ("contig=%/part-0.bam", "%/%.bam"):
            self.assertEqual(self.sort_to(pattern).status, 0)
            names = self.assert_same_pieces(pattern)
            self.assertEqual(self.files(), sorted(os.path.dirname(pattern).replace("%", name)
                                                  for name in names))
            for name in names:
                directory = self.out / os.path.dirname(pattern).replace("%", name)
                file = os.path.basename(pattern).replace("%", name)
                self.assertEqual(sorted(os.listdir(directory)), [file, file + ".csi"])
                shutil.rmtree(directory)

    def test_temporary_data_lie_beside_directories_of_pieces(self):
        self.assertEqual(self.sort_to("%/small.bam", budget=SPILL_BUDGET).status, 0)
        self.assertEqual(self.sort_to("%/large.bam").status, 0)
        for name in self.files():
            self.assert_same_bam(bamfile.read(self.out / name / "small.bam"),
                                 bamfile.read(self.out / name / "large.bam"), name)

    def test_existing_directories(self):
        os.mkdir(self.out / "chr2")
        (self.out / "chr2" / "other").write_text("mine")
        self.assertEqual(self.sort_to("%/x.bam", "--fsync").status, 0)
        self.assertEqual(sorted(os.listdir(self.out / "chr2")), ["other", "x.bam", "x.bam.csi"])
        self.assert_error(self.sort_to("%/x.bam"), "x.bam", "exists")
        self.assertEqual(self.sort_to("%/y.bam").status, 0)

    def test_report_with_the_name_of_a_piece_is_refused(self):
        for name in ("chr9/x.bam", "chr1/x.bam"):
            os.makedirs(self.out / os.path.dirname(name), exist_ok=True)
            result = self.sort_to("%/x.bam", "--stats", str(self.out / name))
            self.assert_error(result, "--stats")
        self.assertEqual(self.sort_to("%/x.bam", "--stats", str(self.out / "chr9/s.json")).status, 0)

    def test_index_elsewhere(self):
        os.mkdir(self.out / "i")
        pattern = f"b-%/x.bam##idx##{self.out}/i/%.bai"
        self.assertEqual(self.sort_to(pattern).status, 0)
        self.assertIn("chr10.bai", os.listdir(self.out / "i"))
        self.assertEqual(os.listdir(self.out / "b-chr10"), ["x.bam"])


@needs_pysam
class Errors(SplitTest):
    def test_options_that_do_not_go_with_split_are_refused(self):
        source = self.source_bam
        for output, mention in (
                ("x.bam", "%"), (None, "-o"), ("-", "-o"), ("s3://bucket/%.bam", "URL"),
                ("no-such-dir/%.bam", "no-such-dir"), ("d%/d/x.bam", "further up"),
                ("no-such-dir/%/x.bam", "no-such-dir"), ("%/%/%.bam", "further up"),
                ("%.bam##idx##x.csi", "index"), ("%.bam##idx##%.bam", "both"),
                ("%.bam##idx##no-such-dir/%.csi", "no-such-dir")):
            with self.subTest(output=output):
                before = sorted(os.listdir(self.work))
                words = ["-o", output] if output else []
                result = self.rocksort("--split-by", "contig", *words, source)
                self.assert_error(result, mention)
                self.assertEqual(sorted(os.listdir(self.work)), before)
        for option in ("-n", "-N", "--template-coordinate", "--shuffle"):
            self.assert_split_refused("coordinate", how="contig", options=[option])
        self.assert_split_refused("--split-by", how="contig", options=["--checksum-only"])
        self.assert_split_refused("''", how="")

    def test_name_exists(self):
        for name in ("chr10.bam", "unplaced.bam.csi"):
            (self.out / name).write_text("mine")
            self.assert_split_refused(name, "exists", how="contig", keep=[name])
            self.assertEqual((self.out / name).read_text(), "mine")
            os.unlink(self.out / name)
        os.symlink("nowhere", self.out / "chr1.bam")
        self.assert_split_refused("chr1.bam", "exists", how="contig", keep=["chr1.bam"])

    def test_statistics_of_a_failed_sort_name_no_pieces(self):
        (self.out / "other.bam").write_text("mine")     # met after pieces were written
        self.assert_split_refused("other.bam", "exists", how="tag:RG", keep=["other.bam"],
                                  options=["--stats", self.path("stats.json")])
        output = json_of(self.path("stats.json"))["output"]
        self.assertEqual((output["pieces"], output["bytes"]), ([], None))

    def test_link_of_the_pattern_leads_no_piece_elsewhere(self):
        other = "/dev/shm"
        if not os.path.isdir(other) or os.stat(other).st_dev == os.stat(self.out).st_dev:
            self.skipTest(f"{other} is no other file system")
        os.symlink(f"{other}/rocksort-no-such-file.bam", self.pattern())
        self.split("rg", self.source_bam)
        os.unlink(self.pattern())
        self.assertIn("g1.bam", self.files())
        self.assertEqual([name for name in self.files() if "pieces" in name], [])

    def test_file_with_the_name_of_the_pattern_does_not_matter(self):
        for make in (lambda name: os.symlink("no-such-dir/x", name), os.mkfifo, os.mkdir,
                     lambda name: os.symlink(name, name)):
            make(self.pattern())
            self.split("rg", self.source_bam, "--flagstat", self.path("counts"))
            self.assertIn("g1.bam", self.files())
            self.sort_ok("--plan", "--split-by", "rg", "-o", self.pattern(), self.source_bam)
            for name in self.files():
                if name == "%.bam" and os.path.isdir(self.out / name):
                    os.rmdir(self.out / name)
                else:
                    os.unlink(self.out / name)
        (self.work / "elsewhere").mkdir()
        os.symlink(self.work / "elsewhere/x.bam", self.pattern())
        for option in ("--flagstat", "--stats"):
            self.assert_split_refused("g1.bam", "output of the sort", how="tag:RG",
                                      options=[option, str(self.out / "g1.bam")], keep=["%.bam"])

    def test_input_is_a_piece(self):
        source = str(self.out / "chr1.bam")
        os.rename(self.source_bam, source)
        before = bytes_of(source)
        self.assert_split_refused("chr1.bam", "exists", how="contig", source=source,
                                  keep=["chr1.bam"])
        self.assertEqual(bytes_of(source), before)

    def test_counts_are_a_piece(self):
        for option, name in (("--flagstat", "chr1.bam"), ("--idxstats", "chr2.bam.csi")):
            self.assert_split_refused(name, how="contig", options=[option, str(self.out / name)])
        self.assert_split_refused("g1.bam", how="rg",
                                  options=["--flagstat", str(self.out / "g1.bam")])
        # A value that is not known at the start.
        self.assert_split_refused("g1.bam", how="tag:RG",
                                  options=["--flagstat", str(self.out / "g1.bam")])

    def test_index_on_another_file_system_is_refused(self):
        other = "/dev/shm"
        if not os.access(other, os.W_OK) or os.stat(other).st_dev == os.stat(self.out).st_dev:
            self.skipTest(f"{other} is no other file system")
        result = self.assert_split_refused(
            "file system", how="contig",
            options=["-o", f"{self.pattern()}##idx##{other}/rocksort-test-%.csi"])
        self.assertNotIn("sorted", result.err)

    def test_index_on_another_mount_is_refused(self):
        indexes = self.work / "indexes"
        indexes.mkdir()
        mounted = ["unshare", "-m", "bash", "-c", 'mount --bind "$0" "$0" && exec "$@"',
                   str(indexes)]
        if self.run_program([*mounted, "true"]).status != 0:
            self.skipTest("nothing can be mounted here")
        result = self.run_program(
            [*mounted, SAMTOOLS, "rocksort", "--split-by", "contig", "-o",
             f"{self.pattern()}##idx##{indexes}/%.csi", self.source_bam])
        self.assert_error(result, "mount", str(indexes))
        self.assertEqual((self.files(), os.listdir(indexes)), ([], []))

    def test_index_is_a_url(self):
        self.assert_split_refused("URL", how="contig",
                                  options=["-o", f"{self.pattern()}##idx##s3://bucket/%.csi"])

    def test_memory_of_names(self):
        """100,000 pieces: all names are known when the last one turns out to exist."""
        if sanitized():
            self.skipTest("memory is measured without sanitizers")
        bed = self.write("many.bed", "".join(f"chr10\t{i * 40}\t{i * 40 + 30}\tinterval_{i:06}\n"
                                             for i in range(99_998)))
        (self.out / "unplaced.bam").write_text("mine")
        self.assert_split_refused("unplaced.bam", "exists", how=bed, keep=["unplaced.bam"],
                                  options=["-m", "20M", "--stats", self.path("stats.json")])
        peak = json_of(self.path("stats.json"))["memory"]["peak_resident_bytes"]
        self.assertLess(peak, 50 << 20)

    def test_many_contigs(self):
        """3,000 contigs with few open files, then too many."""
        refs = [(f"c{i}", 1000) for i in range(3000)]
        reads = [make_read(f"q{i}", i * 7 % 3000, 5, "4M", "ACGT") for i in range(1500)]
        source = self.bam(reads, refs, "contigs.bam")
        result = self.run_program(
            ["bash", "-c", 'ulimit -n 64; exec "$@"', "bash", SAMTOOLS, "rocksort",
             "--split-by", "contig", "-o", self.pattern("sam"), source])
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(len(self.files()), 3001)
        for i in (0, 1, 2999):
            names = [line.split("\t")[0] for line in sam_split(text_of(self.out / f"c{i}.sam"))[1]]
            self.assertEqual(names, [f"q{j}" for j in range(1500) if j * 7 % 3000 == i])
        self.empty_out()
        refs = [(f"c{i}", 1) for i in range(100_000)]
        source = self.bam([], refs, "contigs.bam")
        self.assert_split_refused("more than 100000 files", "BED", "ranges:N", how="contig", source=source)

    def test_advice_fits_what_there_is_too_much_of(self):
        bed = "".join(f"chr10\t{i}\t{i + 1}\tn{i}\n" for i in range(100_000))
        self.assert_split_refused("more than 100000 files", "one name in the BED file",
                                  how=self.write("many.bed", bed))
        groups = "".join(f"@RG\tID:g{i}\n" for i in range(100_000))
        source = self.bam([], REFS, "groups.bam", groups)
        result = self.assert_split_refused("more than 100000 files", "by contig", how="rg", source=source)
        self.assertNotIn("BED", result.err)


class Fails(SplitBase, KilledTest):
    """Faults and signals: pieces are all there or none, and a sort that kept its data goes on."""

    KINDS = ("contig", "bed", "ranges:5", "rg", "tag:XX")

    def how(self, kind):
        if kind != "bed":
            return kind
        return self.write("x.bed", "chr1\t0\t30000\ta\nchr2\t0\t50000\tb\n")

    def spilling(self, n_reads=9000):
        """An input that is spilled with SPILL_BUDGET."""
        reads = random_reads(n_reads, REFS, seed=6)
        records = [with_tag(read, (tag("RG", "Z", f"g{i % 3}") if i % 4 else b"") +
                            tag("XX", "i", i % 7)).raw for i, read in enumerate(reads)]
        text = bamfile.sq_text(REFS) + "@RG\tID:g0\n@RG\tID:g1\n"
        return self.write("in.bam", bamfile.bam_file(text, REFS, records))

    def content(self):
        """{name: content} of all pieces; indexes are compared with samtools' elsewhere."""
        return {name: bamfile.read(path) for name, path in self.pieces().items()}

    def wanted(self, how, source):
        self.split(how, source, budget=SPILL_BUDGET)
        want = self.content()
        n_files = len(self.files())
        self.assertGreater(len(want), 2)
        self.empty_out()
        return want, n_files

    def test_killed_split_is_resumed(self):
        source = self.spilling()
        for kind in self.KINDS:
            want, n_files = self.wanted(self.how(kind), source)
            for fault in ("link:3:kill:.sst", "rename:3:kill:.pieces"):
                with self.subTest(kind=kind, fault=fault):
                    checkpoint = self.killed(fault, "--split-by", self.how(kind), "-@", "2", "-o",
                                             self.pattern(), source)
                    left, = self.files()
                    self.assertRegex(left, r"^\.pieces\.rocksort\.")
                    result = self.rocksort("--resume", checkpoint, "--split-by", "rg" if
                                           kind != "rg" else "contig", clean=False)
                    self.assert_error(result, "--split-by")
                    self.resume(checkpoint)
                    self.assertEqual(self.content(), want)
                    self.assertEqual(len(self.files()), n_files)
                    self.empty_out()

    def test_resumed_equal_reads_are_decided_as_in_one_process(self):
        records = [read.raw for read in equal_single_reads(15_000, 26)]
        source = self.write("in.bam", bamfile.bam_file(bamfile.sq_text(REFS) + EQUAL_READS_TEXT,
                                                       REFS, records))
        for markdup in ("--markdup", "--markdup=-t"):
            self.sort_ok("--no-PG", markdup, "-o", self.path("whole.bam"), source)
            want = marks_of([self.path("whole.bam")])
            for kind in BY_TAG:
                for fault in ("link:3:kill:.sst", "link:9:kill:.sst", "rename:3:kill:.pieces"):
                    with self.subTest(kind=kind, fault=fault, markdup=markdup):
                        checkpoint = self.killed(fault, "--split-by", kind, markdup, "-@", "2",
                                                 "-o", self.pattern(), source)
                        self.resume(checkpoint)
                        self.assertEqual(marks_of(self.pieces().values()), want)
                        self.empty_out()

    def test_resumed_in_another_directory(self):
        source = self.spilling()
        want, n_files = self.wanted("contig", source)
        (self.out / ".pieces").mkdir()          # a name that the directory cannot begin with
        checkpoint = self.killed("rename:3:kill:rocksort", "--split-by", "contig", "--no-PG", "-o",
                                 "%.bam", source, cwd=self.out)
        self.resume(checkpoint)
        os.rmdir(self.out / ".pieces")
        self.assertEqual(self.content(), want)
        self.assertEqual(len(self.files()), n_files)

    def test_resume_may_name_the_same_options(self):
        source = self.spilling()
        checkpoint = self.killed("rename:3:kill:.pieces", "-n", "--split-by", "rg", "-o",
                                 self.pattern(), source)
        self.resume(checkpoint, "-n", "--split-by", "rg")
        self.assertIn("g1", self.pieces())

    def test_resumed_with_a_directory_of_that_name(self):
        source = self.spilling()
        want, _ = self.wanted("contig", source)
        checkpoint = self.killed("rename:3:kill:.pieces", "--split-by", "contig", "-o",
                                 self.pattern(), source)
        (self.work / "contig").mkdir()
        self.resume(checkpoint, "--split-by", "contig")
        self.assertEqual(self.content(), want)

    def test_resumed_elsewhere(self):
        """Other names of the output; the BED file is given by a relative name, then missing."""
        source = self.spilling()
        bed = self.how("bed")
        want, _ = self.wanted(bed, source)
        checkpoint = self.killed("rename:2:kill:.pieces", "--split-by", "x.bed", "-o",
                                 self.pattern(), source, cwd=self.work)
        os.rename(bed, bed + ".away")
        result = self.rocksort("--resume", checkpoint, clean=False, budget=SPILL_BUDGET)
        self.assert_error(result, "x.bed")
        os.rename(bed + ".away", bed)
        result = self.rocksort("--resume", checkpoint, "-o", self.path("x.bam"), clean=False)
        self.assert_error(result, "%")
        self.empty_pieces_dirs()
        (self.work / "new").mkdir()
        self.resume(checkpoint, "-o", str(self.work / "new/%.bam"), cwd=self.scratch)
        self.assertEqual(self.files(), [])
        self.out = self.work / "new"
        self.assertEqual(self.content(), want)

    def empty_pieces_dirs(self):
        """--clean removes what a killed sort left of its pieces."""
        result = self.rocksort("--clean", self.out, "--yes", clean=False)
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(self.files(), [])

    def test_clean_lists_a_killed_split(self):
        source = self.spilling(2000)
        result = self.rocksort("--split-by", "contig", "-o", self.pattern(), source,
                               env=self.faulty("rename:3:kill:.pieces"), clean=False)
        self.assertEqual(result.status, -signal.SIGKILL)
        self.assertEqual(len(self.files()), 1)
        listed = self.rocksort("--clean", self.out, clean=False)
        self.assertIn(self.files()[0], listed.out.decode())
        self.assertEqual(len(self.files()), 1)
        self.empty_pieces_dirs()

    def test_clean_finds_a_killed_split_by_its_pattern(self):
        source = self.spilling(2000)
        for other, pattern in ((False, self.pattern()), (True, self.pattern()),
                               (True, str(self.out / "c=%" / "a.bam"))):
            if other:
                (self.out / ".pieces").mkdir(exist_ok=True)
            self.rocksort("--split-by", "contig", "-o", pattern, source,
                          env=self.faulty("rename:3:kill:.pieces"), clean=False)
            left, = [name for name in self.files() if name != ".pieces"]
            self.assertRegex(left, r"^\.pieces(_2)?\.rocksort\.")
            listed = self.rocksort("--clean", self.out / "x.bam", clean=False)
            self.assertNotIn(left, listed.out.decode())
            listed = self.rocksort("--clean", pattern, clean=False)
            self.assertIn(left, listed.out.decode())
            result = self.rocksort("--clean", pattern, "--yes", clean=False)
            self.assertEqual(result.status, 0, result.err)
            self.assertEqual([name for name in self.files() if name != ".pieces"], [])

    def test_failed_split_leaves_nothing_and_is_resumed(self):
        source = self.spilling()
        want, n_files = self.wanted("contig", source)
        for fault in ("write:1:ENOSPC:.pieces", "write:7:ENOSPC:.pieces", "write:12:short:.pieces",
                      "rename:4:EIO:.pieces", "renameat2:1:EIO",
                      "renameat2:5:EIO", f"renameat2:{n_files}:EROFS"):
            with self.subTest(fault=fault):
                result = self.rocksort("--no-PG", "-T", self.where, "--split-by", "contig", "-@",
                                       "2", "-o", self.pattern(), source, clean=False,
                                       env=self.faulty(fault), budget=SPILL_BUDGET)
                if "short" in fault:
                    self.assertEqual(result.status, 0, result.err)
                    self.empty_out()
                    continue
                self.assert_error(result, str(self.out))
                self.assertEqual(self.files(), [])
                checkpoint, = self.checkpoints()
                self.resume(checkpoint)
                self.assertEqual(self.content(), want)
                self.empty_out()
        self.assertEqual(self.checkpoints(), [])

    def test_index_in_a_place_without_names(self):
        (self.work / "indexes").mkdir()
        pattern = f"{self.pattern()}##idx##{self.work}/indexes/%.csi"
        self.assert_split_refused("indexes", "Read-only", how="contig", options=["-o", pattern],
                                  source=self.spilling(100), env=self.faulty("renameat2:1:EROFS"))
        self.assertEqual(os.listdir(self.work / "indexes"), [])

    def test_directories_go_again_if_a_file_gets_no_name(self):
        os.mkdir(self.out / "chr1")
        for number in (1, 2, 3, 4, 7):
            fault = f"renameat2:{number}:EROFS"
            result = self.rocksort("--split-by", "contig", "-o", str(self.out / "%/x.bam"),
                                   self.spilling(100), env=self.faulty(fault))
            self.assert_error(result, "no piece got its name")
            self.assertEqual(self.files(), ["chr1"], fault)
            self.assertEqual(os.listdir(self.out / "chr1"), [])

    def test_no_flag(self):
        """A file system that cannot rename without replacing: names are looked at first."""
        source = self.spilling(2000)
        pieces = self.split("contig", source, env=self.faulty("renameat2:1+:EINVAL"))
        self.assertGreater(len(pieces), 2)
        self.empty_out()
        process = self.start("--split-by", "contig", "-o", self.pattern(), source,
                             env=self.faulty("renameat2:1+:EINVAL,rename:2:1000ms:.pieces"))
        wait_for(self.files, APPEAR_LIMIT_S, "a directory of pieces")
        (self.out / "chr2.bam").write_text("mine")
        self.assertEqual(process.wait(20), 1)
        self.assertEqual(self.files(), ["chr2.bam"])

    def test_file_that_appears_with_the_name_of_a_piece_stays(self):
        source = self.spilling(2000)
        process = self.start("--split-by", "contig", "-o", self.pattern(), source,
                             env=self.faulty("rename:2:1000ms:.pieces"))
        wait_for(self.files, APPEAR_LIMIT_S, "a directory of pieces")
        (self.out / "chr2.bam").write_text("mine")
        self.assertEqual(process.wait(20), 1)
        err = process.stderr.read().decode()
        self.assertIn("chr2.bam", err)
        self.assertEqual(self.files(), ["chr2.bam"])
        self.assertEqual((self.out / "chr2.bam").read_text(), "mine")

    def test_signal_leaves_all_pieces_or_none(self):
        source = self.spilling()
        _, n_files = self.wanted("contig", source)
        for fault in ("open:3:term:.pieces", "rename:3:term:.pieces", "write:9:term:.pieces",
                      "mkdtemp:1:term:.pieces", "renameat2:2:term",
                      f"renameat2:{n_files}:term"):
            for budget in (None, SPILL_BUDGET):
                with self.subTest(fault=fault, budget=budget):
                    result = self.rocksort("--split-by", "contig", "-T", self.where, "-o",
                                           self.pattern(), source, budget=budget, clean=False,
                                           env=self.faulty(fault))
                    self.assertIn(result.status, (-signal.SIGTERM, 128 + signal.SIGTERM),
                                  result.err)
                    self.assertIn(len(self.files()), (0, n_files) if "renameat2" in fault
                                  else (0,), self.files())
                    self.drop_kept(result.err)
                    self.assertEqual(self.checkpoints(), [])
                    self.empty_out()

    def test_interrupt_leaves_no_piece(self):
        source = self.spilling()
        process = self.start("--split-by", "contig", "-T", self.where, "-o", self.pattern(),
                             source, env=self.faulty("rename:2:800ms:.pieces"))
        wait_for(self.files, APPEAR_LIMIT_S, "a directory of pieces")
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        self.assert_died_of(process, signal.SIGINT)
        self.assertEqual(self.files(), [])

    def test_read_only(self):
        if os.geteuid() == 0:
            self.skipTest("root can write anywhere")
        source = self.bam_of(generate.odd(500, seed=81))
        os.chmod(self.out, 0o500)
        result = self.rocksort("--split-by", "contig", "-o", self.pattern(), source)
        self.assert_error(result, str(self.out))
        os.chmod(self.out, 0o700)
        self.assertEqual(self.files(), [])
        closed = self.work / "closed"
        closed.mkdir()
        closed.chmod(0o600)
        result = self.rocksort("--split-by", "contig", "-o", str(closed / "%.bam"), source)
        closed.chmod(0o700)
        self.assert_error(result, "Permission denied")
