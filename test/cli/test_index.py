"""--write-index: the index answers as the one that samtools makes of the same file, and as a plain
search through the records; and it is there whole or not at all."""

import bisect
import gzip
import os
import random
import resource
import signal
import stat
import struct
import subprocess
import time
from collections import namedtuple

import bamfile
import generate
from harness import (DIE_LIMIT_S, SPILL_BUDGET, CliTest, needs_pysam, own_lines, pysam, reference,
                     reference_ok)

BUDGETS = (None, SPILL_BUDGET)
WINDOW = 1 << 14  # the smallest bin
FAR = 1 << 28  # from about here on the bins of BAI have no numbers
REFS = [("chr1", 300_000), ("empty", 5000), ("chr10", 50_000_000), ("chr2", 70_000), ("one", 1)]

# One read: its name, which no other has, where it lies, and the raw record.
Read = namedtuple("Read", "name tid begin end raw")


def make_read(name, tid, begin, cigar, seq="", flag=0, aux=b""):
    """A Read whose end is where htslib sees it."""
    raw = bamfile.record(name, flag, tid, begin if begin < FAR else 0, cigar, seq, aux)
    raw = raw[:8] + struct.pack("<i", begin) + raw[12:]
    number, reach = "", 0
    for char in cigar:
        if char.isdigit():
            number += char
        else:
            reach += int(number) if char in "MDN=X" else 0
            number = ""
    return Read(name, tid, begin, begin + (reach if reach and not flag & 4 else 1), raw)


def random_begin(rng, length):
    """A place on a reference: anywhere, or where bins and their children begin."""
    if rng.random() < 0.6:
        return rng.randrange(length)
    width = rng.choice((WINDOW, 8 * WINDOW, 64 * WINDOW))
    near = rng.randrange(length // width + 1) * width + rng.choice((-150, -100, -99, -1, 0, 1))
    return min(max(near, 0), length - 1)


def random_reads(n_reads, refs, seed=1, n_bases=100):
    """Reads all over refs (but on none that is called empty), in random order."""
    rng, reads = random.Random(seed), []
    tids = [tid for tid, (name, _) in enumerate(refs) if name != "empty"]
    weights = [min(refs[tid][1] / 1e5, 1) for tid in tids]
    for i in range(n_reads):
        name, kind = f"q{i}", rng.random()
        tid = rng.choices(tids, weights)[0]
        begin = random_begin(rng, refs[tid][1])
        bases = "".join(rng.choices("ACGT", k=n_bases))
        if kind < 0.08:
            reads.append(make_read(name, -1, -1, "", bases, 4))
        elif kind < 0.12:
            reads.append(make_read(name, tid, begin, rng.choice(("", "100M")), bases, 4))
        elif kind < 0.14:
            reads.append(make_read(name, tid, begin, "", bases))
        elif kind < 0.20:
            skip = rng.choice((10, WINDOW, 1 << 17, 1 << 20, 3 << 20))
            reads.append(make_read(name, tid, begin, f"50M{skip}N50M", "A" * 100, 0x10))
        else:
            reads.append(make_read(name, tid, begin, f"{n_bases}M", bases))
    return reads


def random_regions(n_regions, refs, seed=2):
    """(tid, begin, end) of all sizes, the ends of bins among them; end None: of the reference."""
    rng, regions = random.Random(seed), []
    tids = range(len(refs)) if len(refs) < 100 else (0, 1, 1000, len(refs) - 1)
    for _ in range(n_regions):
        tid = rng.choice(tids)
        begin, kind = random_begin(rng, refs[tid][1]), rng.random()
        size = rng.choice((1, 1, 2, 100, 500, 3000, WINDOW, 3 * WINDOW))
        if kind < 0.003:
            begin, size = 0, refs[tid][1]
        elif kind < 0.015:
            size = rng.randrange(1, refs[tid][1] + 1000)
        regions.append((tid, begin, min(begin + size, 2**31 - 1)))
    return regions


class Search:
    """What a region must have, by looking at the reads. Those that are long are looked at in any
    case, so that of the others few are in question."""

    SHORT = 200

    def __init__(self, reads):
        self.long, self.short = {}, {}
        for read in sorted(reads, key=lambda read: read.begin):
            kind = self.short if read.end - read.begin <= self.SHORT else self.long
            kind.setdefault(read.tid, []).append(read)
        self.begins = {tid: [read.begin for read in near] for tid, near in self.short.items()}

    def names(self, region):
        """The names of the reads that overlap a region, sorted."""
        tid, begin, end = region
        begins = self.begins.get(tid, [])
        low, high = bisect.bisect(begins, begin - self.SHORT - 1), bisect.bisect(begins, end)
        near = self.short.get(tid, [])[low:high] + self.long.get(tid, [])
        return sorted(read.name for read in near if read.begin < end and read.end > begin)


def index_bytes(path):
    """The content of an index, uncompressed."""
    with open(path, "rb") as file:
        data = file.read()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def index_kind(path):
    """What the content says: bai, csi or crai, which is text."""
    return {b"BAI\1": "bai", b"CSI\1": "csi"}.get(index_bytes(path)[:4], "crai")


class IndexTest(CliTest):
    """Sorting with --write-index, and the comparison of two indexes of one file."""

    def bam(self, reads, refs, name="in.bam", text=""):
        """Writes an input and returns its path."""
        data = bamfile.bam_header(text + bamfile.sq_text(refs), refs)
        return self.write(name, bamfile.bgzf(data + b"".join(read.raw for read in reads)))

    def sort_indexed(self, source, out, *options, **how):
        """Sorts source to out with an index; returns the path of the sorted file."""
        sources = source if isinstance(source, list) else [source]
        self.sort_ok("--write-index", *options, "-o", self.path(out), *sources, **how)
        path = self.path(out.split("##idx##")[0])
        self.assertTrue(os.path.isfile(path))
        return path

    def want_index(self, path, kind):
        """The reference's index of a file; kind is bai, csi or crai."""
        want = self.path("want." + kind)
        reference_ok("index", "-b" if kind == "bai" else "-c", "-o", want, path)
        return want

    def ask(self, path, index, regions):
        """What an index says: the statistics with the names of the unplaced reads, and the names
        in each region."""
        pysam.set_verbosity(0)
        with pysam.AlignmentFile(path, index_filename=index, check_sq=False,
                                 require_index=True) as file:
            refs = file.references
            if file.is_sam:
                return self.ask_sam(path, index, refs, regions)
            counts = (file.nocoordinate, file.get_index_statistics()) if file.is_bam else ()
            answers = [[read.query_name for read in file.fetch(refs[tid], begin, end)]
                       for tid, begin, end in regions]
            unplaced = [read.query_name for read in file.fetch("*")]
        return (unplaced, counts), answers

    def ask_sam(self, path, index, refs, regions):
        """The same of compressed SAM, which pysam's own interface cannot do: a few regions."""
        answers = []
        words = [f"{refs[tid]}:{begin + 1}-{end}" for tid, begin, end in regions[:6]]
        for region in ["*"] + words:
            reference_ok("view", "-o", self.path("view.sam"), "-X", path, index, region)
            with open(self.path("view.sam"), encoding="ascii") as file:
                answers.append([line.split("\t")[0] for line in file])
        os.unlink(self.path("view.sam"))
        return (answers[0], ()), answers[1:]

    def check(self, path, index, reads, regions):
        """The index at path is as good as the reference's, and right."""
        kind = index_kind(index)
        want_path = self.want_index(path, kind)
        if kind != "crai":  # bam_index.h promises it
            self.assertTrue(index_bytes(index) == index_bytes(want_path),
                            f"the {kind} has other bytes than the reference's")
        counts, answers = self.ask(path, index, regions)
        want_counts, want_answers = self.ask(path, want_path, regions)
        self.assertEqual(counts, want_counts)
        search = Search(reads)
        for region, got, want in zip(regions, answers, want_answers):
            self.assertEqual(got, want, region)
            self.assertEqual(sorted(got), search.names(region), region)
        self.assertEqual(sorted(counts[0]), sorted(read.name for read in reads if read.tid < 0))
        if kind != "crai":
            self.assertGreaterEqual(os.stat(index).st_mtime_ns, os.stat(path).st_mtime_ns)

    def assert_files(self, *names):
        """What is in work, and no more."""
        self.assertEqual(sorted(os.listdir(self.work)), sorted(names))


@needs_pysam
class Answers(IndexTest):
    """What the index says."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.reads = random_reads(6000, REFS)
        cls.regions = random_regions(3000, REFS)

    def test_thousands_of_regions(self):
        source = self.bam(self.reads, REFS)
        for budget in BUDGETS:
            for name, index in (("out.bam", "out.bam.csi"), ("out.bam##idx##x.bai", "x.bai")):
                with self.subTest(budget=budget, index=index):
                    path = self.sort_indexed(source, name, "-l1", "-@", "2", budget=budget)
                    regions = self.regions[: 3000 if budget and name == "out.bam" else 300]
                    self.check(path, self.path(index), self.reads, regions)

    def test_threads_and_levels(self):
        """Blocks begin in other places: the index has to follow."""
        source = self.bam(self.reads, REFS)
        regions = self.regions[:100]
        for options in (["-l0"], ["-u", "-@", "3"], ["-l6"], ["-@", "4", "-l1"],
                        ["-O", "bam,level=2", "--temp-codec", "zstd"]):
            for budget in BUDGETS:
                with self.subTest(options=options, budget=budget):
                    path = self.sort_indexed(source, "o.bam##idx##o.bai", *options, budget=budget)
                    self.check(path, self.path("o.bai"), self.reads, regions)

    def test_real_sequencing_from_sam(self):
        """Thousands of reads in each window."""
        refs = generate.reference()
        sam = generate.reads(4000, refs)
        source = self.write("in.sam", sam)
        for budget in BUDGETS:
            path = self.sort_indexed(source, "out.bam", "-l1", "-@", "2", budget=budget)
            want = self.want_index(path, "csi")
            regions = random_regions(100, [(name, len(seq)) for name, seq in refs])
            self.assertEqual(self.ask(path, self.path("out.bam.csi"), regions),
                             self.ask(path, want, regions))

    def test_odd_records(self):
        """The treacherous input of the other tests; its places without reference come last."""
        source = self.write("in.sam", generate.odd(4000))
        for budget in BUDGETS:
            path = self.sort_indexed(source, "out.bam##idx##x.bai", budget=budget)
            want = self.want_index(path, "bai")
            self.assertTrue(index_bytes(self.path("x.bai")) == index_bytes(want))

    def test_sam_gz(self):
        # Without mapped reads that have no CIGAR: reading SAM, htslib counts these as unmapped.
        reads = [read for read in self.reads if bamfile.n_cigar(read.raw) or read.raw[18] & 4]
        source = self.bam(reads, REFS)
        for options, name, budget in (
                ([], "out.sam.gz", None), (["-O", "sam.gz"], "out.x", SPILL_BUDGET),
                (["-O", "sam,level=1", "-@", "3"], "out.sam", SPILL_BUDGET)):
            with self.subTest(options=options):
                path = self.sort_indexed(source, name, *options, budget=budget)
                self.check(path, path + ".csi", reads, self.regions[:100])

    def test_cram(self):
        refs = [("chr1", 300_000), ("chr2", 70_000)]
        rng, reads = random.Random(5), []
        for i in range(4000):
            tid = rng.randrange(2)
            bases = "".join(rng.choices("ACGT", k=100))
            if rng.random() < 0.1:
                reads.append(make_read(f"q{i}", -1, -1, "", bases, 4))
            else:
                begin = rng.randrange(refs[tid][1] - 100)
                reads.append(make_read(f"q{i}", tid, begin, "100M", bases))
        source = self.bam(reads, refs)
        regions = random_regions(100, refs)
        no_ref = ["--output-fmt-option", "no_ref=1", "--output-fmt-option", "seqs_per_slice=500"]
        for name, index, options, budget in (
                ("out.cram", "out.cram.crai", [], SPILL_BUDGET),
                ("out.x", "out.x.crai", ["-O", "cram"], None),
                ("out.cram##idx##y.crai", "y.crai", ["-@", "3", "-O", "cram"], SPILL_BUDGET)):
            with self.subTest(name=name):
                path = self.sort_indexed(source, name, *options, *no_ref, budget=budget)
                self.check(path, self.path(index), reads, regions)

    def test_minimiser_order(self):
        source = self.bam(self.reads, REFS)
        for options, budget in ((["-M"], None), (["-M", "-K9", "-H", "-@", "2"], SPILL_BUDGET)):
            with self.subTest(options=options):
                path = self.sort_indexed(source, "out.bam", *options, budget=budget)
                self.check(path, path + ".csi", self.reads, self.regions[:100])

    def test_several_inputs(self):
        """With read groups that have to be renamed."""
        sources = [self.bam(self.reads[at::3], REFS, f"in{at}.bam", f"@RG\tID:g\tSM:s{at}\n")
                   for at in range(3)]
        for budget in BUDGETS:
            path = self.sort_indexed(sources, "o.bam##idx##o.bai", "-@", "2", budget=budget)
            self.check(path, self.path("o.bai"), self.reads, self.regions[:200])

    def test_onto_itself(self):
        path = self.bam(self.reads, REFS)
        self.sort_indexed(path, "in.bam")
        self.check(path, path + ".csi", self.reads, self.regions[:200])


@needs_pysam
class Edges(IndexTest):
    """Inputs that are unlike others."""

    def check_both(self, reads, refs, budgets=(None,), **how):
        """BAI and CSI of reads on refs."""
        source = self.bam(reads, refs)
        regions = random_regions(100, refs) if refs else []
        regions += [(tid, 0, length) for tid, (_, length) in enumerate(refs[:5])]
        for budget in budgets:
            for name, index in (("out.bam", "out.bam.csi"), ("out.bam##idx##x.bai", "x.bai")):
                with self.subTest(index=index, budget=budget):
                    path = self.sort_indexed(source, name, "-@", "2", budget=budget, **how)
                    self.check(path, self.path(index), reads, regions)

    def test_no_records(self):
        self.check_both([], REFS)

    def test_no_references(self):
        self.check_both([], [])
        self.check_both([make_read(f"q{i}", -1, -1, "", "ACGT", 4) for i in range(50)], [])

    def test_one_record(self):
        for tid in range(len(REFS)):
            self.check_both([make_read("q", tid, 0, "1M", "A")], REFS)

    def test_nothing_placed(self):
        reads = [make_read(f"q{i}", -1, -1, "", "ACGT" * 30, 4) for i in range(5000)]
        self.check_both(reads, REFS, BUDGETS)

    def test_unmapped_with_position(self):
        """They are found where they are said to be, one base long whatever their CIGAR says."""
        rng = random.Random(7)
        cigars = ("", "100M", "9M9000N9M")
        reads = [make_read(f"q{i}", 0, rng.randrange(300_000), rng.choice(cigars), "",
                           4 | rng.choice((0, 0x10))) for i in range(2000)]
        self.check_both(reads, REFS)

    def test_position_minus_one(self):
        """A reference without a position: on it, but in no region. One is what the reference
        takes for sorted (bam_index.h)."""
        reads = random_reads(500, REFS, seed=8)
        reads.append(make_read("minus", 0, -1, "", "ACGT", 4))
        self.check_both(reads, REFS)

    def test_many_at_position_minus_one(self):
        reads = random_reads(500, REFS, seed=9)
        reads += [make_read(f"minus{i}", i % 2, -1, "", "ACGT", 4) for i in range(10)]
        path = self.sort_indexed(self.bam(reads, REFS), "out.bam")
        regions = random_regions(200, REFS)
        counts, answers = self.ask(path, path + ".csi", regions)
        search = Search(reads)
        for region, got in zip(regions, answers):
            self.assertEqual(sorted(got), search.names(region), region)
        for tid, stats in enumerate(counts[1][1]):
            self.assertEqual(stats.total, sum(read.tid == tid for read in reads))

    def test_position_without_reference(self):
        """It sorts behind all others, and the index knows it as unplaced."""
        reads = random_reads(500, REFS, seed=10)
        reads += [make_read(f"lost{i}", -1, 5 * i, "", "ACGT", 4) for i in range(5)]
        self.check_both(reads, REFS)

    def test_one_place(self):
        """One bin has it all, over many blocks."""
        reads = [make_read(f"q{i}", 2, 40_000_000, "100M", "ACGTA" * 20) for i in range(10000)]
        self.check_both(reads, REFS, BUDGETS)

    def test_ends_of_references(self):
        """Also beyond them, as aligners to circular genomes have it."""
        reads = [make_read(f"q{tid}.{i}", tid, length - 1 - i % min(length, 3), "100M", "A" * 100)
                 for tid, (_, length) in enumerate(REFS) for i in range(20)]
        self.check_both(reads, REFS)

    def test_many_references(self):
        refs = [(f"c{i}", 1000) for i in range(70000)]
        rng = random.Random(11)
        reads = [make_read(f"q{i}", rng.choice((0, 1, 1000, 65535, 65536, 69999)),
                           rng.randrange(900), "50M", "ACGTA" * 10) for i in range(2000)]
        self.check_both(reads, refs, (SPILL_BUDGET,))

    def test_long_references(self):
        """A CSI has as many levels as it takes."""
        refs = [("short", 1000), ("long", 2**31 - 1), ("half", 2**29 + 1)]
        rng, reads = random.Random(12), []
        for i in range(3000):
            tid = rng.randrange(3)
            begin = min(random_begin(rng, refs[tid][1]), 2**31 - 200)
            reads.append(make_read(f"q{i}", tid, begin, "100M", "ACGTA" * 20))
        source = self.bam(reads, refs)
        for budget in BUDGETS:
            path = self.sort_indexed(source, "out.bam", budget=budget)
            self.check(path, path + ".csi", reads, random_regions(300, refs))

    def test_long_references_as_bai(self):
        """The length that a BAI can do is 2^29; one more is refused, and it says what to take."""
        for length in (2**29, 2**29 + 1):
            reads = [make_read("q", 0, length - 100, "100M", "A" * 100)]
            source = self.bam(reads, [("long", length)])
            result = self.rocksort("--write-index", "-o", "out.bam##idx##out.bai", source)
            if length == 2**29:
                self.assertEqual(result.status, 0, result.err)
                self.check(self.path("out.bam"), self.path("out.bai"), reads, [(0, 0, length)])
                for name in ("out.bam", "out.bai", "want.bai"):
                    os.unlink(self.path(name))
            else:
                self.assert_error(result, "long", "BAI", ".csi")
                self.assert_files("in.bam")

    def test_alignment_beyond_the_index(self):
        """The header's references fit, the read does not."""
        for name, length in (("out.bam##idx##out.bai", 2**29), ("out.bam", 2**17)):
            reads = [make_read("far", 0, length - 1, "100M1000N", "A" * 100)]
            source = self.bam(reads, [("a", length)])
            with self.subTest(name=name):
                result = self.rocksort("--write-index", "-o", name, source)
                if result.status == 0:  # htslib leaves some room behind the end
                    self.check(self.path("out.bam"), self.path("out.bam.csi"), reads,
                               [(0, length - 10, length + 2000)])
                else:
                    self.assert_error(result, "far")
                    self.assert_files("in.bam")

    def test_sam_beyond_bam(self):
        """A reference longer than BAM allows, with reads all over it."""
        sam = "@SQ\tSN:a\tLN:500\n@SQ\tSN:vast\tLN:5000000000\n"
        rng, reads = random.Random(13), []
        for i in range(500):
            begin = rng.choice((rng.randrange(4_999_999_000), 2**31 - 3 + i, 2**32 - 3 + i))
            reads.append(Read(f"q{i}", 1, begin, begin + 4, b""))
            sam += f"q{i}\t0\tvast\t{begin + 1}\t9\t4M\t*\t0\t0\tACGT\t*\n"
        source = self.write("in.sam", sam)
        regions = [(1, max(0, read.begin - 10), read.begin + 1) for read in reads[:100]]
        for budget in (None, 30_000):
            with self.subTest(budget=budget):
                path = self.sort_indexed(source, "out.sam.gz", budget=budget)
                self.check(path, path + ".csi", reads, regions)

    def test_long_cigar(self):
        """More operations than BAM's field counts: they stand in the CG tag."""
        refs = [("a", 3_000_000)]
        sam = bamfile.sq_text(refs)
        reads = []
        for i, begin in enumerate((100, 50_000, 1_000_000)):
            n_pairs = 40_000 + i
            bases = "AC" * n_pairs
            sam += f"long{i}\t0\ta\t{begin + 1}\t9\t{'1M1D1M' * n_pairs}\t*\t0\t0\t{bases}\t*\n"
            reads.append(Read(f"long{i}", 0, begin, begin + 3 * n_pairs, b""))
        for i in range(300):
            reads.append(Read(f"q{i}", 0, 10_000 * i, 10_000 * i + 4, b""))
            sam += f"q{i}\t0\ta\t{10_000 * i + 1}\t9\t4M\t*\t0\t0\tACGT\t*\n"
        source = self.write("in.sam", sam)
        for budget in BUDGETS:
            path = self.sort_indexed(source, "o.bam##idx##o.bai", "-@", "2", budget=budget)
            self.check(path, self.path("o.bai"), reads, random_regions(300, refs))

    def test_records_larger_than_blocks(self):
        refs = [("a", 2_000_000)]
        rng, reads = random.Random(14), []
        for i in range(25):
            size = rng.choice((50, 70_000, 65_000, 150_000))
            bases = "".join(rng.choices("ACGT", k=1000)) * (size // 1000) + "ACGTA" * 10
            reads.append(make_read(f"q{i}", 0, rng.randrange(1_800_000), f"{len(bases)}M", bases))
        source = self.bam(reads, refs)
        for options in (["-l0"], ["-l6", "-@", "3"]):
            for budget in BUDGETS:
                path = self.sort_indexed(source, "o.bam##idx##o.bai", *options, budget=budget)
                self.check(path, self.path("o.bai"), reads, random_regions(100, refs))


class Files(IndexTest):
    """Names, replacing, and when there is none."""

    def setUp(self):
        super().setUp()
        self.reads = random_reads(500, REFS, seed=20)
        self.source = self.bam(self.reads, REFS)

    def test_names(self):
        for name, files, kind in (
                ("o.bam", ["o.bam", "o.bam.csi"], "csi"),
                ("o", ["o", "o.csi"], "csi"),
                ("o.bam##idx##o.bam.bai", ["o.bam", "o.bam.bai"], "bai"),
                ("o.bam##idx##o.bai", ["o.bam", "o.bai"], "bai"),
                ("o.bam##idx##o.bam.csi", ["o.bam", "o.bam.csi"], "csi"),
                ("o.bam##idx##index", ["o.bam", "index"], "csi"),
                ("o.bam##idx##bai", ["o.bam", "bai"], "csi")):
            with self.subTest(name=name):
                self.sort_indexed(self.source, name)
                self.assert_files("in.bam", *files)
                self.assertEqual(index_kind(self.path(files[1])), kind)
                for file in files:
                    os.unlink(self.path(file))

    @needs_pysam
    def test_found_by_name(self):
        """By who is not told where it is."""
        for name in ("o.bam", "o.bam##idx##o.bam.bai", "o.bam##idx##o.bai"):
            with self.subTest(name=name):
                path = self.sort_indexed(self.source, name)
                with pysam.AlignmentFile(path) as file:
                    self.assertTrue(file.has_index())
                    got = [read.query_name for read in file.fetch("chr2", 100, 5000)]
                self.assertEqual(sorted(got), Search(self.reads).names((3, 100, 5000)))
                for left in ("o.bam.csi", "o.bam.bai", "o.bai"):
                    if os.path.exists(self.path(left)):
                        os.unlink(self.path(left))

    def test_name_without_the_option(self):
        self.sort_ok("-o", self.path("o.bam##idx##o.bai"), self.source)
        self.assert_files("in.bam", "o.bam")

    def test_relative_names_and_directories(self):
        os.mkdir(self.path("d"))
        os.mkdir(self.path("e"))
        self.sort_ok("--write-index", "-o", "d/o.bam##idx##e/o.bai", "in.bam")
        self.assertEqual(os.listdir(self.path("d")), ["o.bam"])
        self.assertEqual(os.listdir(self.path("e")), ["o.bai"])

    def test_classic_form(self):
        self.sort_ok("--write-index", self.source, "o")
        self.assert_files("in.bam", "o.bam", "o.bam.csi")
        self.sort_ok("--write-index", "-f", self.source, "p.bam##idx##p.bai")
        self.assert_files("in.bam", "o.bam", "o.bam.csi", "p.bai", "p.bam")

    @needs_pysam
    def test_replaces(self):
        """Old files, however long, and a second run."""
        for name, index in (("o.bam", "o.bam.csi"), ("o.bam##idx##o.bai", "o.bai"),
                            ("o.sam.gz", "o.sam.gz.csi")):
            self.write(index, b"old" * 1_000_000)
            os.utime(self.path(index), (1e9, 1e9))
            for _ in range(2):
                with self.subTest(name=name):
                    path = self.sort_indexed(self.source, name)
                    self.assertIn(index_kind(self.path(index)), ("bai", "csi"))
                    self.assertGreaterEqual(os.stat(self.path(index)).st_mtime_ns,
                                            os.stat(path).st_mtime_ns)

    @needs_pysam
    def test_replaces_crai(self):
        options = ["-O", "cram,no_ref=1"]
        sam = generate.reads(500, generate.reference()).encode()
        self.write("o.cram.crai", b"old" * 1_000_000)
        os.utime(self.path("o.cram.crai"), (1e9, 1e9))
        self.sort_ok("--write-index", *options, "-o", self.path("o.cram"), stdin=sam)
        self.assertLess(os.path.getsize(self.path("o.cram.crai")), 10000)
        self.assertGreaterEqual(os.stat(self.path("o.cram.crai")).st_mtime_ns,
                                os.stat(self.path("o.cram")).st_mtime_ns)

    def test_link_is_followed(self):
        """As it is for the sorted file."""
        os.symlink("real.bai", self.path("link.bai"))
        self.write("real.bai", b"old")
        self.sort_ok("--write-index", "-o", self.path("o.bam##idx##link.bai"), self.source)
        self.assertTrue(os.path.islink(self.path("link.bai")))
        self.assertEqual(index_kind(self.path("real.bai")), "bai")

    def test_device_stays_one(self):
        """What /dev/null is must not become a file."""
        try:
            os.mknod(self.path("null"), 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        except PermissionError:
            self.skipTest("only root makes devices")
        self.sort_ok("--write-index", "-o", self.path("o.bam##idx##" + self.path("null")),
                     self.source)
        self.assertTrue(stat.S_ISCHR(os.stat(self.path("null")).st_mode))

    def test_permissions(self):
        """Those of a new file, whatever rename does."""
        old = os.umask(0o027)
        self.addCleanup(os.umask, old)
        self.sort_indexed(self.source, "o.bam")
        self.assertEqual(stat.S_IMODE(os.stat(self.path("o.bam.csi")).st_mode), 0o640)

    def test_other_orders(self):
        """A warning that says why, no index, and a sorted file."""
        orders = (["-n"], ["-N"], ["-t", "XI"], ["-t", "XI", "-n"], ["--shuffle"])
        for options in orders:
            with self.subTest(options=options):
                result = self.sort_ok("--write-index", *options, "-o", self.path("o.bam"),
                                      self.source)
                self.assertRegex(result.err, "warning: no index.*order")
                self.assert_files("in.bam", "o.bam")
                self.assertEqual(len(bamfile.split(bamfile.read(self.path("o.bam")).records)), 500)
        sam = b"@SQ\tSN:a\tLN:9\nq\t0\ta\t1\t9\t4M\t*\t0\t0\tACGT\t*\n"
        result = self.sort_ok("--write-index", "--template-coordinate", "-o", "o.bam", stdin=sam)
        self.assertRegex(result.err, "warning: no index.*order")
        self.assert_files("in.bam", "o.bam")

    def test_other_order_of_sam(self):
        """What cannot be indexed for two reasons is not refused for the other."""
        result = self.rocksort("--write-index", "-n", "-o", self.path("o.sam"), self.source)
        self.assertEqual(result.status, 0, result.err)

    def test_standard_output(self):
        for options in ([], ["-o", "-"]):
            result = self.sort_ok("--write-index", *options, self.source)
            self.assertRegex(result.err, "warning: no index")
            self.assertEqual(len(bamfile.split(bamfile.parse_file(result.out).records)), 500)
            self.assert_files("in.bam")

    def test_uncompressed_sam_is_refused(self):
        self.write("o.sam", b"old")
        for options, out in (([], "o.sam"), (["-O", "sam"], "o.x"), (["-O", "sam"], "o.sam.gz")):
            with self.subTest(options=options, out=out):
                result = self.rocksort("--write-index", *options, "-o", self.path(out), self.source)
                self.assert_error(result, "--write-index", "sam.gz")
                self.assert_files("in.bam", "o.sam")
        with open(self.path("o.sam"), "rb") as file:
            self.assertEqual(file.read(), b"old")


class Failures(IndexTest):
    """Nothing partial stays, neither the index nor the sorted file."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.reads = random_reads(8000, REFS, seed=30)

    def setUp(self):
        super().setUp()
        self.source = self.bam(self.reads, REFS)

    def test_directory_that_is_not_there(self):
        cram = ["-O", "cram,no_ref=1"]
        for budget in BUDGETS:
            for name, options in (("o.bam##idx##none/o.bai", []), ("o.bam##idx##none/o.csi", []),
                                  ("o.sam.gz##idx##none/o.csi", []),
                                  ("o.cram##idx##none/o.crai", cram)):
                with self.subTest(name=name, budget=budget):
                    source = self.source
                    if options:
                        source = self.write("in.sam", generate.reads(50, generate.reference()))
                    result = self.rocksort("--write-index", *options, "-o", name, source,
                                           budget=budget)
                    left = set(os.listdir(self.work)) - {"in.bam", "in.sam"}
                    for file in left:
                        os.unlink(self.path(file))
                    self.assert_error(result, "none/o.", "No such file")
                    self.assertEqual(left, set())

    def test_message_names_the_file_of_the_user(self):
        """Not the temporary one, whose name says nothing to anybody."""
        result = self.rocksort("--write-index", "-o", "o.bam##idx##none/o.bai", self.source)
        self.assertNotIn(".tmp", result.err)

    def test_name_is_a_directory(self):
        os.mkdir(self.path("d"))
        result = self.rocksort("--write-index", "-o", "o.bam##idx##d", self.source)
        self.assert_error(result, "d'")
        self.assert_files("d", "in.bam")

    def test_index_is_the_output(self):
        """One would replace the other."""
        for name in ("o.bam##idx##o.bam", "o.bam##idx##./o.bam"):
            with self.subTest(name=name):
                result = self.rocksort("--write-index", "-o", name, self.source)
                left = set(os.listdir(self.work)) - {"in.bam"}
                for file in left:
                    os.unlink(self.path(file))
                self.assertEqual(result.status, 1, "sorted file and index have one name")
                self.assertEqual(left, set())

    def test_empty_name(self):
        for name in ("o.bam##idx##", "##idx##o.bai"):
            with self.subTest(name=name):
                result = self.rocksort("--write-index", "-o", name, self.source)
                left = set(os.listdir(self.work)) - {"in.bam"}
                for file in left:
                    os.unlink(self.path(file))
                self.assertEqual(result.status, 1)
                self.assertEqual(len(own_lines(result.err)), 1, result.err)
                self.assertEqual(left, set())

    def test_index_does_not_fit(self):
        """A read at the far end: the BAI counts all windows before it, the BAM is small. The
        sorted file may stay, since it is complete (manual page, exit status)."""
        refs = [("a", 500_000_000)]
        source = self.bam([make_read("q", 0, 499_999_000, "100M", "A" * 100)], refs, "far.bam")
        os.unlink(self.source)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        for old in (False, True):
            if old:
                self.write("o.bai", b"old")
                os.utime(self.path("o.bai"), (1e9, 1e9))
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
            try:
                result = self.rocksort("--write-index", "-o", "o.bam##idx##o.bai", source)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, before)
            with self.subTest(old_index=old):
                left = set(os.listdir(self.work)) - {"far.bam"}
                self.assert_error(result, "o.bai", "File too large")
                self.assertLessEqual(left, {"o.bam", "o.bai"} if old else {"o.bam"})
                if "o.bam" in left:
                    self.assertTrue(bamfile.looks_complete(self.path("o.bam")))
                    os.unlink(self.path("o.bam"))
                if "o.bai" in left:
                    self.assertEqual(os.path.getsize(self.path("o.bai")), 3)

    def test_damaged_input(self):
        """What was there from an earlier run stays as it was, index and all."""
        with open(self.source, "rb") as file:
            data = file.read()
        self.write("cut.bam", data[: len(data) * 2 // 3])
        for name, index in (("o.bam##idx##o.bai", "o.bai"), ("o.bam", "o.bam.csi")):
            for budget in BUDGETS:
                with self.subTest(name=name, budget=budget):
                    self.write("o.bam", b"old file")
                    self.write(index, b"old index")
                    result = self.rocksort("--write-index", "-o", name, "cut.bam", budget=budget)
                    self.assert_error(result, "cut.bam")
                    self.assert_files("cut.bam", "in.bam", "o.bam", index)
                    for file, text in (("o.bam", b"old file"), (index, b"old index")):
                        with open(self.path(file), "rb") as old:
                            self.assertEqual(old.read(), text)
                        os.unlink(self.path(file))

    @needs_pysam
    def test_terminated(self):
        """At any moment of a run."""
        for name, index, options in (
                ("o.bam##idx##o.bai", "o.bai", ["-@", "2"]),
                ("o.cram", "o.cram.crai", ["-O", "cram,no_ref=1"])):
            source = self.source
            if "-O" in options:
                source = self.write("in.sam", generate.reads(2000, generate.reference()))
            before = set(os.listdir(self.work))
            words = ["--write-index", *options, "-o", name, source]
            begin = time.monotonic()
            self.sort_ok(*words, budget=SPILL_BUDGET)
            whole_s = time.monotonic() - begin
            for moment in range(5):
                for file in set(os.listdir(self.work)) - before:
                    os.unlink(self.path(file))
                process = self.start(*words, budget=SPILL_BUDGET, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL)
                time.sleep(whole_s * (0.55 + moment / 8))
                if process.poll() is None:
                    process.send_signal(signal.SIGTERM)
                status = process.wait(DIE_LIMIT_S)
                self.drop_kept(process.stderr.read().decode())
                with self.subTest(name=name, moment=moment, status=status):
                    self.assertIn(status, (0, -signal.SIGTERM, 128 + signal.SIGTERM))
                    self.assert_whole_or_nothing(name.split("##")[0], index, before, status)

    def assert_whole_or_nothing(self, name, index, before, status):
        """No temporary file; sorted file and index, if they are there, are complete."""
        left = set(os.listdir(self.work)) - before
        self.assertEqual(os.listdir(self.scratch), [])
        self.assertLessEqual(left, {name, index})
        if status == 0:
            self.assertEqual(left, {name, index})
        if name in left:
            self.assertTrue(reference("quickcheck", self.path(name)))
        if index in left:
            self.assertIn(name, left)
            self.ask(self.path(name), self.path(index), [(0, 0, 1000)])

    @needs_pysam
    def test_terminated_while_merging(self):
        """For certain: the output is a pipe that nobody reads, its index a file."""
        os.mkfifo(self.path("pipe"))
        process = self.start("--write-index", "-u", "-o", self.path("pipe##idx##o.bai"),
                             self.source, budget=SPILL_BUDGET, stdin=subprocess.DEVNULL)
        with open(self.path("pipe"), "rb") as pipe:
            self.assertTrue(pipe.read(1000))
            time.sleep(0.2)
            process.send_signal(signal.SIGTERM)
            self.assert_died_of(process, signal.SIGTERM)
        self.drop_kept(process.stderr.read().decode())
        self.assert_files("in.bam", "pipe")
        self.assertEqual(os.listdir(self.scratch), [])

    @needs_pysam
    def test_output_is_a_pipe(self):
        """Its index is that of the file that somebody makes of it."""
        os.mkfifo(self.path("pipe"))
        process = self.start("--write-index", "-o", self.path("pipe##idx##o.bai"), self.source,
                             stdin=subprocess.DEVNULL)
        with open(self.path("pipe"), "rb") as pipe:
            self.write("o.bam", pipe.read())
        self.assertEqual(process.wait(DIE_LIMIT_S), 0)
        want = self.path("want.bai")
        reference_ok("index", "-b", "-o", want, self.path("o.bam"))
        self.assertTrue(index_bytes(self.path("o.bai")) == index_bytes(want))
