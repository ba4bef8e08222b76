"""--split-by: the groups together are the whole, each in its order, with its index and header.

What each group must hold is computed here from the names of reads, which occur once.
"""

import gzip
import os
import random
import re
import shutil
import signal
import struct

import bamfile
import generate
from checkpoints import APPEAR_LIMIT_S, KilledTest
from harness import (SAMTOOLS, SPILL_BUDGET, bytes_of, json_of, needs_pysam, own_memory_only,
                     reference_ok, reference_view, sam_split, text_of, wait_for)
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
    """Functions for tests of groups, which are written to the directory `out`."""

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
        """Splits source; returns {name: path} of the groups."""
        sources = source if isinstance(source, list) else [source]
        self.sort_ok("--no-PG", "--split-by", how, *options, "-o", self.pattern(ext), *sources,
                     **more)
        return self.groups(ext)

    def groups(self, ext="bam"):
        names = [name for name in self.files() if name.endswith("." + ext)]
        return {name[: -len(ext) - 1]: str(self.out / name) for name in names}

    def whole(self, source, *options):
        sources = source if isinstance(source, list) else [source]
        self.sort_ok("--no-PG", *options, "-o", self.path("whole.bam"), *sources)
        return bamfile.split(bamfile.read(self.path("whole.bam")).records)

    def assert_groups(self, groups, records, group_of, known=(), what=""):
        """The groups (of BAM) are those of the model: group_of has the group of each name, known
        are groups that may be empty."""
        want = {name: [] for name in known}
        for raw in records:
            want.setdefault(group_of[name_of(raw)], []).append(raw)
        self.assertEqual(sorted(groups), sorted(want), what)
        for name, path in groups.items():
            self.assert_same_records(bamfile.read(path).records, b"".join(want[name]),
                                     f"{what} {name}")

    def assert_indexes(self, groups, regions=(), index_ext="csi"):
        """Each group has an index, which answers as that of samtools."""
        for path in groups.values():
            index = path + "." + index_ext
            want = self.want_index(path, index_kind(index))
            if index_ext != "crai":
                self.assertTrue(index_bytes(index) == index_bytes(want), index)
            elif regions:
                self.assertEqual(self.ask(path, index, regions), self.ask(path, want, regions))

    def assert_split_refused(self, *mentions, how, source=None, options=(), keep=(), **more):
        """An error, and no group, index or directory."""
        out = [] if "-o" in options else ["-o", self.pattern()]
        result = self.rocksort("--split-by", how, *options, *out, source or self.source_bam,
                               **more)
        self.assert_error(result, *mentions)
        self.assertEqual(self.files(), sorted(keep))
        return result


class SplitTest(SplitBase, IndexTest):
    """self.reads with their groups by contig; self.source_bam has them."""

    def setUp(self):
        super().setUp()
        rng = random.Random(4)
        self.reads = random_reads(N_READS, REFS, seed=3)
        self.reads += [make_read(f"start{i}", tid, -1, "", "ACGT", 4)
                       for i, tid in enumerate((0, 2, 3))]
        self.read_groups = {}
        for i, read in enumerate(self.reads):
            group = rng.choice((None, "g1", "g 2/x", "g1", "other"))
            self.read_groups[read.name] = group
            if group:
                self.reads[i] = with_tag(read, tag("RG", "Z", group))
        self.text = "@RG\tID:g1\tSM:a\n@RG\tID:g 2/x\tSM:b\n@RG\tID:unused\tSM:c\n"
        self.source_bam = self.bam(self.reads, REFS, text=self.text)
        self.contigs = {read.name: REFS[read.tid][0] if read.tid >= 0 else "unplaced"
                        for read in self.reads}
        self.regions = random_regions(30, REFS)


@needs_pysam
class Contigs(SplitTest):
    def test_groups_are_those_of_the_whole_with_any_memory_threads_and_level(self):
        records = self.whole(self.source_bam)
        for options, budget in (([], None), (["-@", "4"], SPILL_BUDGET), (["-l0"], SPILL_BUDGET),
                                (["-u", "-@", "3"], None), (["-l9", "-@", "2"], SPILL_BUDGET),
                                (["-l1", "--deflate", "igzip"], None)):
            with self.subTest(options=options, budget=budget):
                groups = self.split("contig", self.source_bam, *options, budget=budget)
                self.assert_groups(groups, records, self.contigs,
                                   [name for name, _ in REFS] + ["unplaced"])
                self.assertEqual(len(self.files()), 2 * len(groups))
                text = bamfile.read(self.path("whole.bam")).text
                for path in groups.values():
                    self.assertEqual(bamfile.read(path).text, text)
                self.assert_indexes(groups, self.regions[:5])
                self.empty_out()

    def test_groups_have_the_lines_of_the_whole_in_each_format(self):
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
                groups = self.split("contig", source, *options, ext=ext, budget=budget)
                self.assertEqual(sorted(groups), sorted(want))
                for name, path in groups.items():
                    self.assertEqual(sam_split(reference_view(path)), (header, want[name]), name)
                if index:
                    self.assert_indexes(groups, self.regions[:5] if ext == "cram" else (), index)
                self.assertEqual(len(self.files()), len(groups) * (2 if index else 1))
                self.empty_out()

    def test_names_of_indexes_follow_the_pattern(self):
        """Names of indexes as in -o FILE##idx##INDEX, also in another directory."""
        groups = self.split("contig", self.source_bam, ext=f"bam##idx##{self.out}/%.x.bai")
        self.assertEqual(groups, {})
        groups = self.groups()
        self.assertEqual(len(groups), len(REFS) + 1)
        for name, path in groups.items():
            index = str(self.out / f"{name}.x.bai")
            self.assertEqual(index_kind(index), "bai")
            self.assertTrue(index_bytes(index) == index_bytes(self.want_index(path, "bai")))
        self.assertEqual(len(self.files()), 2 * len(groups))
        self.empty_out()
        (self.work / "indexes").mkdir()
        self.split("contig", self.source_bam, ext=f"bam##idx##{self.work}/indexes/%.csi")
        self.assertEqual(len(os.listdir(self.work / "indexes")), len(REFS) + 1)
        self.assertEqual(len(self.files()), len(REFS) + 1)

    def test_input_without_reads_has_all_groups(self):
        for refs in (REFS, []):
            source = self.bam([], refs, "none.bam")
            groups = self.split("contig", source)
            self.assertEqual(sorted(groups), sorted([*dict(refs), "unplaced"]))
            self.assert_indexes(groups)
            for path in groups.values():
                self.assertEqual(bamfile.read(path).records, b"")
            self.empty_out()

    def test_pipe_several_inputs_and_merged_inputs_are_split(self):
        records = self.whole(self.source_bam)
        data = bytes_of(self.source_bam)
        known = [name for name, _ in REFS] + ["unplaced"]
        groups = self.split("contig", "-", stdin=data, budget=SPILL_BUDGET)
        self.assert_groups(groups, records, self.contigs, known)
        self.empty_out()
        parts = []
        for i in range(3):
            part = self.bam(self.reads[i::3], REFS, f"part{i}.bam", self.text)
            parts.append(self.path(f"sorted{i}.bam"))
            self.sort_ok("--no-PG", "-o", parts[-1], part)
        for how in ("contig", "ranges:3", self.write("x.bed", "chr10\t0\t4000000\tx\n")):
            self.sort_ok("--no-PG", "--merge", "-o", self.path("merged.bam"), *parts)
            records = bamfile.split(bamfile.read(self.path("merged.bam")).records)
            groups = self.split(how, parts, "--merge", "-@", "2")
            if how == "contig":
                self.assert_groups(groups, records, self.contigs, known)
            found = [raw for path in groups.values()
                     for raw in bamfile.split(bamfile.read(path).records)]
            self.assertEqual(sorted(found), sorted(records), how)
            self.assert_indexes(groups)
            self.empty_out()

    def test_stale_index_of_a_group_is_removed(self):
        (self.out / "chr1.bam.bai").write_text("old")
        (self.out / "chr1.bai").write_text("old")
        self.sort_ok("--split-by", "contig", "-o", self.pattern(), self.source_bam)
        self.assertEqual([name for name in self.files() if name.endswith(".bai")], [])

    def test_counts_and_checksum_are_those_of_the_whole(self):
        sums, kinds = [], ("flagstat", "idxstats", "coverage")
        for name, words in (("whole", ["-o", self.path("w.bam")]),
                            ("parts", ["--fsync", "--split-by", "contig", "-o", self.pattern()])):
            reports = [f"--{kind}={self.path(f'{name}.{kind}')}" for kind in kinds]
            result = self.sort_ok("--checksum", *reports, *words, self.source_bam)
            sums.append(re.findall(r"\b[0-9a-f]{16,}\b", result.err))
        self.assertEqual(*sums)
        self.assertEqual(len(self.groups()), len(REFS) + 1)
        for kind in kinds:
            self.assertEqual(*(bytes_of(self.path(f"{name}.{kind}")) for name in ("whole", "parts")))

    def test_stats_say_what_each_group_has(self):
        records = self.whole(self.source_bam)
        for how, known in (("contig", [*dict(REFS), "unplaced"]),
                           ("rg", ["g1", "g 2/x", "unused", "other", "none"]),
                           ("ranges:2", ["1", "2", "unplaced"])):
            groups = self.split(how, self.source_bam, "--report", self.path("stats"))
            stats = json_of(self.path("stats"))
            said = stats["output"]["groups"]
            self.assertEqual(sorted(group["name"] for group in said), sorted(known))
            self.assertEqual(stats["options"]["split_by"], how)
            self.assertEqual(stats["output"]["records"], len(records))
            self.assertEqual(stats["output"]["bytes"], sum(group["bytes"] for group in said))
            for group in said:
                self.assertIn(group["file"], groups.values())
                self.assertEqual(group["index"], group["file"] + ".csi")
                self.assertEqual(group["bytes"], os.path.getsize(group["file"]))
                self.assertEqual(group["records"],
                                 len(bamfile.split(bamfile.read(group["file"]).records)))
                self.assertEqual(group["begin"] is not None,
                                 how == "ranges:2" and group["name"] != "unplaced")
            self.empty_out()

    def test_statistics_may_have_values_that_are_no_utf8(self):
        reads = [make_read(f"q{i}", 0, i, "4M", "ACGT") for i in range(3)]
        values = [b"CBZ\xff\xfe\0", b'CBZ"\\\t\0', b"CBZ\xc3\xa9\0"]
        source = self.bam([with_tag(read, value) for read, value in zip(reads, values)], REFS,
                          "odd.bam")
        groups = self.split("tag:CB", source, "--report", self.path("stats"))
        said = json_of(self.path("stats"))["output"]["groups"]
        self.assertEqual(sorted(group["file"] for group in said), sorted(groups.values()))
        self.assertEqual({group["name"] for group in said},
                         {"none", "\ufffd\ufffd", '"\\\t', "\xe9"})

    def test_duplicates_are_decided_before_the_split(self):
        source = self.write("in.sam", generate.reads(3000, generate.reference()))
        for options in ([], ["-@", "3"]):
            for markdup in ("--markdup", "--markdup=-r"):
                records = self.whole(source, "--fixmate", markdup, *options)
                places = {}
                for raw in records:
                    places.setdefault(bamfile.fields(raw)[0], []).append(raw)
                groups = self.split("contig", source, "--fixmate", markdup, *options,
                                    budget=SPILL_BUDGET)
                for tid, (name, _) in enumerate(bamfile.read(self.path("whole.bam")).refs):
                    self.assert_same_records(bamfile.read(groups[name]).records,
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
                groups = self.split(kind, source, *options, *how.get("more", ()),
                                    budget=how.get("budget"))
                self.assertGreater(len(groups), 3)
                self.assertEqual(marks_of(groups.values()), want)
                self.empty_out()

    def source(self, n_reads, seed):
        reads = equal_single_reads(n_reads, seed)
        return self.bam(reads, REFS, f"equal{seed}.bam", EQUAL_READS_TEXT)

    def test_equal_reads_are_decided_as_a_whole(self):
        small, large = self.source(300, 21), self.source(12_000, 23)
        for i, markdup in enumerate(self.OPTIONS):
            self.check(small, markdup)
            self.check(large, markdup, budget=SPILL_BUDGET, more=["-@", "31"[i % 2]])
        self.check(self.source(40_000, 22), "", more=["-@", "3"])
        source = self.source(9000, 24)          # some in runs, some in memory
        for budget in (SPILL_BUDGET // 2 * 3, SPILL_BUDGET * 2, SPILL_BUDGET * 4):
            self.check(source, "", budget=budget, more=["-@", "2"])
        for budget in (None, SPILL_BUDGET):
            self.check(source, "", budget=budget, more=["--fixmate"])


@needs_pysam
class Names(SplitTest):
    """Names of groups are safe names of files."""

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
        numbered = ["a_2", "a_", "a__2", "a__3", "a__2_2", "unplaced"]
        self.assertEqual(self.names(["a_2", "a/", "a_", "a:", "a__2"], ext="sam"),
                         sorted(name + ".sam" for name in numbered))

    def test_pattern_may_have_no_directory_and_several_percents(self):
        source = self.bam([], [("c", 1000)], "names.bam")
        self.sort_ok("--split-by", "contig", "-o", "%.x.%.sam", source, cwd=self.out)
        self.assertEqual(self.files(), ["c.x.c.sam", "unplaced.x.unplaced.sam"])


@needs_pysam
class Bed(SplitTest):
    def bed(self, text, name="x.bed"):
        return self.write(name, text)

    def model(self, intervals):
        """{name of read: group} for intervals (reference, begin, end, name)."""
        tids = {name: tid for tid, (name, _) in enumerate(REFS)}
        places = [(tids[ref], begin, end, name) for ref, begin, end, name in intervals]
        group_of = {}
        for read in self.reads:
            inside = [name for tid, begin, end, name in places
                      if tid == read.tid and begin <= read.begin < end]
            self.assertLessEqual(len(inside), 1)
            group_of[read.name] = "unplaced" if read.tid < 0 else (inside or ["outside"])[0]
        return group_of

    def check(self, intervals, *options, text=None, name="x.bed", **more):
        text = text or "".join("\t".join(map(str, line)) + "\n" for line in intervals)
        groups = self.split(self.bed(text, name), self.source_bam, *options, **more)
        known = {line[3] for line in intervals} | {"outside", "unplaced"}
        self.assert_groups(groups, self.whole(self.source_bam), self.model(intervals), known)
        self.assert_indexes(groups)
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
        groups = self.split(self.bed("chr1\t0\t9000\t\t960\t+\nchr2\t5\t60000\tb\n"),
                            self.source_bam)
        group_of = {name: group.replace(":", "_") for name, group in self.model(want).items()}
        self.assert_groups(groups, self.whole(self.source_bam), group_of,
                           {"chr1_1-9000", "b", "outside", "unplaced"})

    def test_bed_file_may_have_comments_and_blanks(self):
        want = [("chr1", 0, 9000, "a b"), ("chr10", 5, 600_000, "chr10:6-600000")]
        refs = [("track1", 1000), ("browserX", 1000)]
        self.assertEqual(sorted(self.split(self.bed("track1\t0\t10\ta\nbrowserX\t0\t10\tb\n"),
                                           self.bam([], refs, "names.bam"))),
                         ["a", "b", "outside", "unplaced"])
        self.empty_out()
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

    def test_names_that_the_program_has_for_other_groups_get_numbers(self):
        groups = self.split(self.bed("chr1\t0\t9000\toutside\nchr2\t0\t9\tunplaced\n"),
                            self.source_bam)
        self.assertEqual(sorted(groups), ["outside", "outside_2", "unplaced", "unplaced_2"])
        want = sum(read.tid == 0 and 0 <= read.begin < 9000 for read in self.reads)
        self.assertEqual(len(bamfile.split(bamfile.read(groups["outside"]).records)), want)

    def test_bad_bed_lines_are_named(self):
        for text, *mentions in (
                ("", "no intervals"), ("#x\n", "no intervals"), ("chr1\n", "line 1"),
                ("chr1\t1\n", "line 1"), ("chr1\t0\t9\n\nnope\t0\t9\n", "line 3", "header"),
                ("chr1\ta\t9\n", "line 1"), ("chr1\t5\t5\n", "line 1"), ("chr1\t6\t5\n", "line 1"),
                ("chr1\t-1\t5\n", "line 1"), ("chr1\t0\t99999999999999999999\n", "line 1"),
                ("chr1\t0\t10\na\t0\t5\n", "line 2"),
                ("chr1\t0\t10\nchr1\t9\t11\n", "lines 1 and 2"),
                ("chr1\t0\t9\nchr1\t0\t9\tx\n", "lines 1 and 2"),
                ("chr1\t0\t100\tx\nchr1\t20\t30\ty\n", "lines 1 and 2", "the same name"),
                # An interval that contains several others, of which the last overlaps.
                ("chr1\t0\t9\ta\nchr1\t20\t100\tb\nchr1\t30\t40\tc\nchr1\t90\t95\td\n", "overlap"),
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

    def test_too_many_open_groups_are_refused(self):
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
        result = self.limited("n 256", "--split-by", self.bed(text), "-o", self.pattern(),
                              self.source_bam, budget=2_000_000_000)
        self.assert_error(result, "ulimit -n")
        self.assertEqual(self.files(), [])


@needs_pysam
class Ranges(SplitTest):
    def check(self, n, *options, reads=None, refs=REFS, **more):
        reads = self.reads if reads is None else reads
        source = self.bam(reads, refs, "ranges.bam", self.text)
        records = self.whole(source)
        groups = self.split(f"ranges:{n}", source, *options, **more)
        width = len(str(n))
        names = [f"{i:0{width}}" for i in range(1, n + 1)] + ["unplaced"]
        self.assertEqual(sorted(groups), sorted(names))
        parts = [bamfile.split(bamfile.read(groups[name]).records) for name in names]
        self.assert_same_records(b"".join(raw for part in parts for raw in part),
                                 b"".join(records))
        self.assertTrue(all(bamfile.fields(raw)[0] < 0 for raw in parts[-1]))
        self.assertTrue(all(bamfile.fields(raw)[0] >= 0 for part in parts[:-1] for raw in part))
        self.assert_indexes({name: groups[name] for name in names[:3] + names[-1:]})
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
        for n in (1, 2, 7, 64):
            with self.subTest(n=n):
                parts = self.check(n)
                self.assert_balanced(parts)
                self.assertEqual(self.check(n, "-@", "4", budget=SPILL_BUDGET), parts)

    def test_ranges_of_few_windows_hold_all_reads(self):
        reads = [make_read(f"q{i}", 0, i % 3, "1M", "A") for i in range(30)]
        reads += [make_read(f"m{i}", tid, -1, "", "A", 4) for i, tid in enumerate((0, 1, 1))]
        parts = self.check(20, reads=reads, refs=[("a", 3), ("b", 1), ("c", 0x7fffffff)])
        self.assertEqual(sum(map(len, parts)), 33)

    def test_reads_at_one_place_are_one_range(self):
        reads = [make_read(f"q{i}", 2, 4_000_000, "100M", "ACGTA" * 20) for i in range(3000)]
        parts = self.check(4, reads=reads, budget=SPILL_BUDGET)
        self.assertEqual(sorted(map(len, parts)), [0, 0, 0, 3000])

    def test_ranges_without_placed_reads_are_empty(self):
        reads = [make_read(f"q{i}", -1, -1, "", "ACGT" * 30, 4) for i in range(50)]
        self.assertEqual(self.check(3, reads=reads), [[], [], []])
        self.assertEqual(self.check(3, reads=reads, refs=[]), [[], [], []])
        self.assertEqual(self.check(2, reads=[], refs=[]), [[], []])
        self.assertEqual(self.check(2, reads=[]), [[], []])

    def test_reads_beyond_the_end_of_their_reference_are_placed(self):
        reads = [make_read(f"q{i}", i % 2, 900 + i, "1M", "A") for i in range(100)]
        self.check(5, reads=reads, refs=[("a", 1000), ("b", 1000), ("c", 5)])


@needs_pysam
class Tags(SplitTest):
    def model(self):
        names = {None: "none", "g1": "g1", "g 2/x": "g_2_x", "other": "other"}
        return {read: names[group] for read, group in self.read_groups.items()}

    def test_header_of_a_read_group_has_its_line_only(self):
        for order, budget in (([], None), (["-@", "4"], SPILL_BUDGET), (["-n"], SPILL_BUDGET),
                              (["-N", "-l0"], None)):
            with self.subTest(order=order):
                records = self.whole(self.source_bam, *order)
                whole = bamfile.read(self.path("whole.bam"))
                groups = self.split("rg", self.source_bam, *order, budget=budget)
                self.assert_groups(groups, records, self.model(), ["unused"])
                for name, path in groups.items():
                    title = {"g_2_x": "g 2/x"}.get(name, name)
                    want = [line for line in whole.text.splitlines() if line[:3] != "@RG"
                            or f"\tID:{title}\t" in line]
                    self.assertEqual(bamfile.read(path).text.splitlines(), want, name)
                if order and order[0] in ("-n", "-N"):
                    self.assertEqual(len(self.files()), len(groups))
                else:
                    self.assert_indexes(groups, self.regions[:5])
                self.empty_out()

    def test_read_groups_are_split_as_cram(self):
        reads = [with_tag(make_read(f"q{i}", 0, i, "4M", "ACGT"),
                          tag("RG", "Z", group) if group else b"")
                 for i, group in enumerate(("g1", "g 2/x", None) * 20)]
        source = self.bam(reads, REFS, "rg.bam", self.text)
        options = ["--output-fmt-option", "no_ref=1"]
        groups = self.split("rg", source, *options, ext="cram", budget=SPILL_BUDGET)
        self.assertEqual(sorted(groups), ["g1", "g_2_x", "none", "unused"])
        for name, path in groups.items():
            lines = sam_split(reference_view(path))[1]
            self.assertEqual(len(lines), 0 if name == "unused" else 20)
            self.assertEqual(sum("RG:Z:" in line for line in lines),
                             20 if name in ("g1", "g_2_x") else 0)
        self.assert_indexes(groups, index_ext="crai")

    def test_input_without_read_groups_is_split(self):
        source = self.bam(self.reads, REFS, "rg.bam")
        groups = self.split("rg", source)
        self.assert_groups(groups, self.whole(source), self.model())
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

    def test_values_of_all_types_are_split(self):
        values = [(tag("XX", "i", 7), "7"), (tag("XX", "C", 7), "7"), (tag("XX", "s", 7), "7"),
                  (tag("XX", "f", 7.0), "7"), (tag("XX", "i", -7), "_7"),
                  (tag("XX", "f", 0.5), "0.5"), (tag("XX", "I", 4294967295), "4294967295"),
                  (tag("XX", "A", "c"), "c"), (tag("XX", "Z", "text"), "text"),
                  (tag("XX", "Z", ""), "_"), (tag("XX", "Z", "a/b\x7f"), "a_b_"),
                  (tag("XX", "B", [1, 2]), "array"), (tag("XX", "B", [3]), "array"), (b"", "none"),
                  (tag("XX", "Z", "y" * 60_000), "y" * 180)]
        reads, number = self.tagged([value for value, _ in values])
        source = self.bam(reads, REFS, "tags.bam")
        group_of = {name: values[at][1] for name, at in number.items()}
        for order, budget in (([], None), (["-@", "3"], SPILL_BUDGET), (["-n"], None)):
            with self.subTest(order=order):
                groups = self.split("tag:XX", source, *order, budget=budget)
                self.assert_groups(groups, self.whole(source, *order), group_of)
                header = bamfile.read(groups["7"]).text.splitlines()[0]
                self.assertIn("SO:queryname" if order == ["-n"] else "SO:coordinate", header)
                self.assertNotIn("unsorted", header)
                if order != ["-n"]:
                    self.assert_indexes(groups)
                self.empty_out()

    def test_values_of_one_text_are_groups_of_their_own(self):
        """Values of other types whose text is the same, and texts that are equal after cleaning,
        are groups of their own."""
        values = [tag("XX", "i", 5), tag("XX", "Z", "5"), tag("XX", "A", "5"), tag("XX", "Z", "a/"),
                  tag("XX", "Z", "a:"), tag("XX", "Z", "array"), tag("XX", "Z", "none"), b""]
        reads, number = self.tagged(values)
        source = self.bam(reads, REFS, "tags.bam")
        groups = self.split("tag:XX", source)
        found = {frozenset(name_of(raw) for raw in bamfile.split(bamfile.read(path).records))
                 for path in groups.values()}
        want = {}
        for name, at in number.items():
            want.setdefault(at, set()).add(name)
        self.assertEqual(found, {frozenset(names) for names in want.values()})
        self.assertEqual(sorted(groups), ["5", "5_2", "5_3", "a_", "a__2", "array", "none",
                                          "none_2"])

    def test_two_thousand_values_need_few_open_files(self):
        reads = [with_tag(make_read(f"q{i}", 0, i, "4M", "ACGT"), tag("CB", "Z", f"v{i % 2000}"))
                 for i in range(4000)]
        source = self.bam(reads, REFS, "tags.bam")
        result = self.limited("n 64", "-l1", "--split-by", "tag:CB", "-o", self.pattern(), source)
        self.assertEqual(result.status, 0, result.err)
        groups = self.groups()
        self.assertEqual(sorted(groups), sorted(["none"] + [f"v{i}" for i in range(2000)]))
        for i in (0, 1, 1999):
            names = [name_of(raw) for raw in bamfile.split(bamfile.read(groups[f"v{i}"]).records)]
            self.assertEqual(names, [f"q{i}", f"q{i + 2000}"])

    def test_too_many_values_are_refused_for_good(self):
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

    @own_memory_only
    def test_long_values_are_not_kept_in_memory(self):
        n, size = 2000, 60_000
        header = bamfile.bgzf_blocks(bamfile.bam_header("", []))
        with open(self.path("long.bam"), "wb") as file:
            file.write(b"".join(header))
            for i in range(n):
                value = tag("CB", "Z", f"v{i}." + "y" * size)
                file.write(b"".join(bamfile.bgzf_blocks(bamfile.record(f"q{i}", 4, aux=value))))
            file.write(bamfile.EOF_BLOCK)
        self.sort_ok("--split-by", "tag:CB", "-m", "20M", "-O", "sam", "--report",
                     self.path("stats"), "-o", self.pattern("sam"), self.path("long.bam"))
        self.assertEqual(len(self.files()), n + 1)
        peak = json_of(self.path("stats"))["memory"]["peak_resident_bytes"]
        self.assertLess(peak, 140 << 20)


@needs_pysam
class Directories(SplitTest):
    """A % in the name of the directory: each group has one, as partitioned data sets have."""

    def assert_same_groups(self, pattern):
        """The groups are those of plain names. Returns their names."""
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

    def test_directories_of_groups_are_made(self):
        for pattern in ("contig=%/part-0.bam", "%/%.bam"):
            self.assertEqual(self.sort_to(pattern).status, 0)
            names = self.assert_same_groups(pattern)
            self.assertEqual(self.files(), sorted(os.path.dirname(pattern).replace("%", name)
                                                  for name in names))
            for name in names:
                directory = self.out / os.path.dirname(pattern).replace("%", name)
                file = os.path.basename(pattern).replace("%", name)
                self.assertEqual(sorted(os.listdir(directory)), [file, file + ".csi"])
                shutil.rmtree(directory)

    def test_existing_directories_are_used(self):
        os.mkdir(self.out / "chr2")
        (self.out / "chr2" / "other").write_text("mine")
        self.assertEqual(self.sort_to("%/x.bam", "--fsync").status, 0)
        self.assertEqual(sorted(os.listdir(self.out / "chr2")), ["other", "x.bam", "x.bam.csi"])
        self.assert_error(self.sort_to("%/x.bam"), "x.bam", "exists")
        self.assertEqual(self.sort_to("%/y.bam").status, 0)

    def test_report_with_the_name_of_a_group_is_refused(self):
        for name in ("chr9/x.bam", "chr1/x.bam"):
            os.makedirs(self.out / os.path.dirname(name), exist_ok=True)
            result = self.sort_to("%/x.bam", "--report", str(self.out / name))
            self.assert_error(result, "--report")
        elsewhere = str(self.out / "chr9/s.json")
        self.assertEqual(self.sort_to("%/x.bam", "--report", elsewhere).status, 0)

    def test_indexes_may_lie_elsewhere(self):
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
                ("%.bam##idx##x.csi", "index"), ("%.bam##idx##%.bam", "for the output and for the index"),
                ("%.bam##idx##no-such-dir/%.csi", "no-such-dir")):
            with self.subTest(output=output):
                before = sorted(os.listdir(self.work))
                words = ["-o", output] if output else []
                result = self.rocksort("--split-by", "contig", *words, source)
                self.assert_error(result, mention)
                self.assertEqual(sorted(os.listdir(self.work)), before)
        for how, mention, *options in (
                *(("contig", "coordinate", option)
                  for option in ("-n", "--template-coordinate", "--shuffle")),
                *(("rg", "order", option)
                  for option in ("-M", "--shuffle", "--template-coordinate")),
                ("contig", "--split-by", "--checksum-only"), ("", "''"),
                ("contig", "URL", "-o", f"{self.pattern()}##idx##s3://bucket/%.csi"),
                *((f"ranges:{n}", "1 to 100000") for n in (
                    "0", "", "-1", "1x", " 2", "100001", "99999999999999999999")),
                *((f"tag:{tag}", "two characters") for tag in ("", "X", "XXX", "1X", "X-")),
                ("tag:XX", "-t", "-t", "XX"), ("rg", "--merge", "--merge")):
            with self.subTest(how=how, options=options):
                self.assert_split_refused(mention, how=how, options=options)

    def test_what_cannot_be_written_is_named(self):
        far = self.bam([make_read("far", 0, 900, "50M3000000N50M", "A" * 100)], [("short", 1000)],
                       "far.bam")
        long_key = with_tag(make_read("q7", 0, 0, "4M", "ACGT"), tag("CB", "Z", "y" * 66_000))
        for how, source, options, *mentions in (
                ("contig", far, [], "'far'", "-O sam"),
                ("tag:CB", self.bam([make_read("q6", 0, 0, "4M", "ACGT"), long_key], REFS, "l.bam"),
                 [], "record 2", "'q7'", "65,535 bytes", "tag CB"),
                ("contig", self.bam([], [("x" * 180, 1000)], "names.bam"),
                 ["-o", str(self.out / ("y" * 200 + "%.bam"))], "too long"),
                ("contig", self.bam([], [("c", 1000), ("c.csi", 1000)], "same.bam"),
                 ["-O", "bam", "-o", str(self.out / "%")], "c.csi")):
            with self.subTest(mentions=mentions):
                self.assert_split_refused(*mentions, how=how, source=source, options=options)
        self.assertEqual(len(self.split("contig", far, ext="sam")), 2)
        self.empty_out()
        self.whole(self.source_bam)
        data = bytes_of(self.path("whole.bam"))
        self.assert_split_refused("twice", "standard input", how="ranges:3", source="-",
                                  options=["--merge"], stdin=data)
        self.assertEqual(len(self.split("contig", "-", "--merge", stdin=data)), len(REFS) + 1)

    def test_file_with_the_name_of_a_group_is_kept(self):
        for name in ("chr10.bam", "unplaced.bam.csi"):
            (self.out / name).write_text("mine")
            self.assert_split_refused(name, "exists", how="contig", keep=[name])
            self.assertEqual((self.out / name).read_text(), "mine")
            os.unlink(self.out / name)
        os.symlink("nowhere", self.out / "chr1.bam")
        self.assert_split_refused("chr1.bam", "exists", how="contig", keep=["chr1.bam"])

    def test_statistics_of_a_failed_sort_name_no_groups(self):
        (self.out / "other.bam").write_text("mine")     # met after groups were written
        self.assert_split_refused("other.bam", "exists", how="tag:RG", keep=["other.bam"],
                                  options=["--report", self.path("report.json")])
        output = json_of(self.path("report.json"))["output"]
        self.assertEqual((output["groups"], output["bytes"]), ([], None))

    def other_file_system(self):
        other = "/dev/shm"
        if not os.access(other, os.W_OK) or os.stat(other).st_dev == os.stat(self.out).st_dev:
            self.skipTest(f"{other} is no other file system")
        return other

    def test_link_of_the_pattern_leads_no_group_elsewhere(self):
        os.symlink(f"{self.other_file_system()}/rocksort-no-such-file.bam", self.pattern())
        self.split("rg", self.source_bam)
        os.unlink(self.pattern())
        self.assertIn("g1.bam", self.files())
        self.assertEqual([name for name in self.files() if "groups" in name], [])

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
        for option in ("--flagstat", "--report"):
            self.assert_split_refused("g1.bam", "for the output", how="tag:RG",
                                      options=[option, str(self.out / "g1.bam")], keep=["%.bam"])

    def test_report_that_is_a_group_is_refused(self):
        for option, name in (("--flagstat", "chr1.bam"), ("--idxstats", "chr2.bam.csi")):
            self.assert_split_refused(name, how="contig", options=[option, str(self.out / name)])
        self.assert_split_refused("g1.bam", how="rg",
                                  options=["--flagstat", str(self.out / "g1.bam")])
        # A value that is not known at the start.
        self.assert_split_refused("g1.bam", how="tag:RG",
                                  options=["--flagstat", str(self.out / "g1.bam")])

    def test_index_on_another_file_system_is_refused(self):
        other = self.other_file_system()
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

    @own_memory_only
    def test_names_of_100000_groups_take_little_memory(self):
        """All names are known when the last one turns out to exist."""
        bed = self.write("many.bed", "".join(f"chr10\t{i * 40}\t{i * 40 + 30}\tinterval_{i:06}\n"
                                             for i in range(99_998)))
        (self.out / "unplaced.bam").write_text("mine")
        self.assert_split_refused("unplaced.bam", "exists", how=bed, keep=["unplaced.bam"],
                                  options=["-m", "20M", "--report", self.path("report.json")])
        peak = json_of(self.path("report.json"))["memory"]["peak_resident_bytes"]
        self.assertLess(peak, 50 << 20)

    def test_many_contigs_need_few_open_files(self):
        """3,000 contigs with few open files, then too many."""
        refs = [(f"c{i}", 1000) for i in range(3000)]
        reads = [make_read(f"q{i}", i * 7 % 3000, 5, "4M", "ACGT") for i in range(1500)]
        source = self.bam(reads, refs, "contigs.bam")
        result = self.limited("n 64", "--split-by", "contig", "-o", self.pattern("sam"), source)
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
        self.assert_split_refused("more than 100000 files", "the same name in the BED file",
                                  how=self.write("many.bed", bed))
        groups = "".join(f"@RG\tID:g{i}\n" for i in range(100_000))
        source = self.bam([], REFS, "groups.bam", groups)
        result = self.assert_split_refused("more than 100000 files", "by contig", how="rg", source=source)
        self.assertNotIn("BED", result.err)


class Fails(SplitBase, KilledTest):
    """Faults and signals: groups are all there or none, and a sort that kept its data goes on."""

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
        """{name: content} of all groups; indexes are compared with samtools' elsewhere."""
        return {name: bamfile.read(path) for name, path in self.groups().items()}

    def wanted(self, how, source):
        self.split(how, source, budget=SPILL_BUDGET)
        want = self.content()
        n_files = len(self.files())
        self.assertGreater(len(want), 2)
        self.empty_out()
        return want, n_files

    def test_killed_split_is_resumed(self):
        source = self.spilling()
        for i, kind in enumerate(self.KINDS):
            want, n_files = self.wanted(self.how(kind), source)
            for fault in ("link:3:kill:.sst", "rename:3:kill:.groups")[i % 2:]:
                with self.subTest(kind=kind, fault=fault):
                    checkpoint = self.killed(fault, "--split-by", self.how(kind), "-@", "2", "-o",
                                             self.pattern(), source)
                    left, = self.files()
                    self.assertRegex(left, r"^\.groups\.rocksort\.")
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
            for kind, fault in zip(BY_TAG, ("link:3:kill:.sst", "rename:3:kill:.groups")):
                with self.subTest(kind=kind, fault=fault, markdup=markdup):
                    checkpoint = self.killed(fault, "--split-by", kind, markdup, "-@", "2", "-o",
                                             self.pattern(), source)
                    self.resume(checkpoint)
                    self.assertEqual(marks_of(self.groups().values()), want)
                    self.empty_out()

    def test_split_is_resumed_from_another_directory(self):
        source = self.spilling()
        want, n_files = self.wanted("contig", source)
        checkpoint = self.killed("rename:3:kill:rocksort", "--split-by", "contig", "--no-PG", "-o",
                                 "%.bam", source, cwd=self.out)
        self.resume(checkpoint)
        self.assertEqual(self.content(), want)
        self.assertEqual(len(self.files()), n_files)

    def test_resume_may_name_the_same_options(self):
        """Also where there is a directory of that name."""
        checkpoint = self.killed("rename:3:kill:.groups", "-n", "--split-by", "rg", "-o",
                                 self.pattern(), self.spilling())
        (self.work / "rg").mkdir()
        self.resume(checkpoint, "-n", "--split-by", "rg")
        self.assertIn("g1", self.groups())

    def test_split_is_resumed_to_another_place(self):
        """Other names of the output; the BED file is given by a relative name, then missing."""
        source = self.spilling()
        bed = self.how("bed")
        want, _ = self.wanted(bed, source)
        checkpoint = self.killed("rename:2:kill:.groups", "--split-by", "x.bed", "-o",
                                 self.pattern(), source, cwd=self.work)
        os.rename(bed, bed + ".away")
        result = self.rocksort("--resume", checkpoint, clean=False, budget=SPILL_BUDGET)
        self.assert_error(result, "x.bed")
        os.rename(bed + ".away", bed)
        result = self.rocksort("--resume", checkpoint, "-o", self.path("x.bam"), clean=False)
        self.assert_error(result, "%")
        self.empty_groups_dirs()
        (self.work / "new").mkdir()
        self.resume(checkpoint, "-o", str(self.work / "new/%.bam"), cwd=self.scratch)
        self.assertEqual(self.files(), [])
        self.out = self.work / "new"
        self.assertEqual(self.content(), want)

    def empty_groups_dirs(self):
        """--clean removes what a killed sort left of its groups."""
        result = self.rocksort("--clean", self.out, "--yes", clean=False)
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(self.files(), [])

    def test_clean_finds_a_killed_split_by_its_pattern(self):
        source = self.spilling(2000)
        for pattern in (self.pattern(), str(self.out / "c=%" / "a.bam")):
            self.rocksort("--split-by", "contig", "-o", pattern, source,
                          env=self.faulty("rename:3:kill:.groups"), clean=False)
            left, = self.files()
            self.assertRegex(left, r"^\.groups\.rocksort\.")
            listed = self.rocksort("--clean", self.out / "x.bam", clean=False)
            self.assertNotIn(left, listed.out.decode())
            listed = self.rocksort("--clean", pattern, clean=False)
            self.assertIn(left, listed.out.decode())
            result = self.rocksort("--clean", pattern, "--yes", clean=False)
            self.assertEqual(result.status, 0, result.err)
            self.assertEqual(self.files(), [])

    def test_failed_split_leaves_nothing_and_is_resumed(self):
        source = self.spilling()
        want, n_files = self.wanted("contig", source)
        for fault in ("write:1:ENOSPC:.groups", "write:7:ENOSPC:.groups", "write:12:short:.groups",
                      "rename:4:EIO:.groups", "renameat2:1:EIO",
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

    def test_index_that_gets_no_name_is_an_error(self):
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
            self.assert_error(result, "no output group got its name")
            self.assertEqual(self.files(), ["chr1"], fault)
            self.assertEqual(os.listdir(self.out / "chr1"), [])

    def test_file_that_appears_with_the_name_of_a_group_stays(self):
        """Also where a file system cannot rename without replacing: names are looked at first."""
        source, cannot = self.spilling(2000), "renameat2:1+:EINVAL"
        self.assertGreater(len(self.split("contig", source, env=self.faulty(cannot))), 2)
        for faults in ("", cannot + ","):
            self.empty_out()
            process = self.start("--split-by", "contig", "-o", self.pattern(), source,
                                 env=self.faulty(faults + "rename:2:1000ms:.groups"))
            wait_for(self.files, APPEAR_LIMIT_S, "a directory of groups")
            (self.out / "chr2.bam").write_text("mine")
            self.assertEqual(process.wait(20), 1)
            self.assertIn("chr2.bam", process.stderr.read().decode())
            self.assertEqual(self.files(), ["chr2.bam"])
            self.assertEqual((self.out / "chr2.bam").read_text(), "mine")

    def test_signal_leaves_all_groups_or_none(self):
        source = self.spilling()
        _, n_files = self.wanted("contig", source)
        for fault in ("rename:3:term:.groups", "write:9:term:.groups",
                      "mkdtemp:1:term:.groups", "renameat2:2:term",
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

    def test_directory_that_cannot_be_written_is_named(self):
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
