"""--write-index: the index is that of samtools, and its queries find the same reads as a search
through all records."""

import gzip
import os
import random
import struct
from collections import namedtuple

import bamfile
import generate
from harness import SPILL_BUDGET, CliTest, bytes_of, needs_pysam, pysam, reference_ok

BUDGETS = (None, SPILL_BUDGET)
WINDOW = 1 << 14  # the size of the smallest bin
FAR = 1 << 28  # below this, every read has a bin that BAI can number
REFS = [("chr1", 300_000), ("empty", 5000), ("chr10", 50_000_000), ("chr2", 70_000), ("one", 1)]

# A read: its unique name, its reference and range, and the raw record.
Read = namedtuple("Read", "name tid begin end raw")


def make_read(name, tid, begin, cigar, seq="", flag=0, aux=b""):
    """A Read; its end is computed as htslib does it."""
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
    """A random position on a reference, often one where bins begin."""
    if rng.random() < 0.6:
        return rng.randrange(length)
    width = rng.choice((WINDOW, 8 * WINDOW, 64 * WINDOW))
    near = rng.randrange(length // width + 1) * width + rng.choice((-150, -100, -99, -1, 0, 1))
    return min(max(near, 0), length - 1)


def random_reads(n_reads, refs, seed=1, n_bases=100):
    """Reads on all refs (except those whose name is "empty"), in random order."""
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
    """Regions (tid, begin, end) of all sizes, some with the ends of bins. An end of None means the
    end of the reference."""
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


def names_in(reads, region):
    """The names of the reads that overlap a region, sorted."""
    tid, begin, end = region
    return sorted(read.name for read in reads
                  if read.tid == tid and read.begin < end and read.end > begin)


def index_bytes(path):
    """The content of an index, uncompressed."""
    data = bytes_of(path)
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def index_kind(path):
    """The kind of an index by its content: bai, csi or crai (which is text)."""
    return {b"BAI\1": "bai", b"CSI\1": "csi"}.get(index_bytes(path)[:4], "crai")


class IndexTest(CliTest):
    """Sorts with --write-index and compares the index with that of samtools."""

    def bam(self, reads, refs, name="in.bam", text=""):
        data = bamfile.bam_header(text + bamfile.sq_text(refs), refs)
        return self.write(name, bamfile.bgzf(data + b"".join(read.raw for read in reads)))

    def sort_indexed(self, source, out, *options, **how):
        """Sorts source into out with an index; returns the path of the sorted file."""
        sources = source if isinstance(source, list) else [source]
        self.sort_ok("--write-index", *options, "-o", self.path(out), *sources, **how)
        path = self.path(out.split("##idx##")[0])
        self.assertTrue(os.path.isfile(path))
        return path

    def want_index(self, path, kind):
        """Makes an index with the reference samtools; kind is bai, csi or crai."""
        want = self.path("want." + kind)
        reference_ok("index", "-b" if kind == "bai" else "-c", "-o", want, path)
        return want

    def ask(self, path, index, regions):
        """Reads an index: returns its statistics with the names of the unplaced reads, and the
        names of the reads in each region."""
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
        """The same for compressed SAM and few regions, with samtools view, because pysam's own
        interface cannot do it."""
        answers = []
        words = [f"{refs[tid]}:{begin + 1}-{end}" for tid, begin, end in regions[:6]]
        for region in ["*"] + words:
            reference_ok("view", "-o", self.path("view.sam"), "-X", path, index, region)
            with open(self.path("view.sam"), encoding="ascii") as file:
                answers.append([line.split("\t")[0] for line in file])
        os.unlink(self.path("view.sam"))
        return (answers[0], ()), answers[1:]

    def check(self, path, index, reads, regions):
        """The index equals that of the reference, and its answers are right."""
        kind = index_kind(index)
        want_path = self.want_index(path, kind)
        counts, answers = self.ask(path, index, regions)
        if kind == "crai":
            self.assertEqual((counts, answers), self.ask(path, want_path, regions))
        else:               # bam_index.h promises equal bytes
            self.assertTrue(index_bytes(index) == index_bytes(want_path),
                            f"the bytes of the {kind} differ from the reference's")
        for region, got in zip(regions, answers):
            self.assertEqual(sorted(got), names_in(reads, region), region)
        self.assertEqual(sorted(counts[0]), sorted(read.name for read in reads if read.tid < 0))
        if kind != "crai":
            self.assertGreaterEqual(os.stat(index).st_mtime_ns, os.stat(path).st_mtime_ns)

    def assert_files(self, *names):
        """work has these files and no others."""
        self.assertEqual(sorted(os.listdir(self.work)), sorted(names))


@needs_pysam
class Answers(IndexTest):
    """Answers of the index."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.reads = random_reads(4000, REFS)
        cls.regions = random_regions(1000, REFS)

    def test_regions_have_the_right_reads(self):
        source = self.bam(self.reads, REFS)
        for budget in BUDGETS:
            for name, index in (("out.bam", "out.bam.csi"), ("out.bam##idx##x.bai", "x.bai")):
                with self.subTest(budget=budget, index=index):
                    path = self.sort_indexed(source, name, "-l1", "-@", "2", budget=budget)
                    regions = self.regions[: 1000 if budget and name == "out.bam" else 100]
                    self.check(path, self.path(index), self.reads, regions)

    def test_index_does_not_depend_on_threads_and_levels(self):
        source = self.bam(self.reads, REFS)
        regions = self.regions[:100]
        for options in (["-u", "-@", "3"], ["-O", "bam,level=2", "--temp-codec", "zstd"]):
            for budget in BUDGETS:
                with self.subTest(options=options, budget=budget):
                    path = self.sort_indexed(source, "o.bam##idx##o.bai", *options, budget=budget)
                    self.check(path, self.path("o.bai"), self.reads, regions)

    def test_index_of_odd_records_is_right(self):
        source = self.write("in.sam", generate.odd(4000))
        for budget in BUDGETS:
            path = self.sort_indexed(source, "out.bam##idx##x.bai", budget=budget)
            want = self.want_index(path, "bai")
            self.assertTrue(index_bytes(self.path("x.bai")) == index_bytes(want))

    def test_index_of_compressed_sam_is_right(self):
        # Without mapped reads that have no CIGAR: in SAM htslib counts them as unmapped.
        reads = [read for read in self.reads if bamfile.n_cigar(read.raw) or read.raw[18] & 4]
        source = self.bam(reads, REFS)
        for options, name, budget in (
                ([], "out.sam.gz", None),
                (["-O", "sam,level=1", "-@", "3"], "out.sam", SPILL_BUDGET)):
            with self.subTest(options=options):
                path = self.sort_indexed(source, name, *options, budget=budget)
                self.check(path, path + ".csi", reads, self.regions[:100])

    def test_index_of_cram_finds_the_same_reads(self):
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

    def test_index_of_minimiser_order_is_right(self):
        source = self.bam(self.reads, REFS)
        for options, budget in ((["-M"], None), (["-M", "-K9", "-H", "-@", "2"], SPILL_BUDGET)):
            with self.subTest(options=options):
                path = self.sort_indexed(source, "out.bam", *options, budget=budget)
                self.check(path, path + ".csi", self.reads, self.regions[:100])

    def test_index_of_several_inputs_is_right(self):
        sources = [self.bam(self.reads[at::3], REFS, f"in{at}.bam", f"@RG\tID:g\tSM:s{at}\n")
                   for at in range(3)]
        for budget in BUDGETS:
            path = self.sort_indexed(sources, "o.bam##idx##o.bai", "-@", "2", budget=budget)
            self.check(path, self.path("o.bai"), self.reads, self.regions[:200])

    def test_input_may_be_the_output(self):
        path = self.bam(self.reads, REFS)
        self.sort_indexed(path, "in.bam")
        self.check(path, path + ".csi", self.reads, self.regions[:200])


@needs_pysam
class Edges(IndexTest):
    """Unusual inputs."""

    def check_both(self, reads, refs, budgets=(None,)):
        """Checks the BAI and the CSI of reads on refs."""
        source = self.bam(reads, refs)
        regions = random_regions(100, refs) if refs else []
        regions += [(tid, 0, length) for tid, (_, length) in enumerate(refs[:5])]
        for budget in budgets:
            for name, index in (("out.bam", "out.bam.csi"), ("out.bam##idx##x.bai", "x.bai")):
                path = self.sort_indexed(source, name, "-@", "2", budget=budget)
                self.check(path, self.path(index), reads, regions)

    def test_unusual_inputs_are_indexed(self):
        rng, some = random.Random(7), random_reads(500, REFS, seed=8)
        unplaced = [make_read(f"q{i}", -1, -1, "", "ACGT" * 30, 4) for i in range(3000)]
        # Found at their position, as one base, whatever their CIGAR says.
        unmapped = [make_read(f"q{i}", 0, rng.randrange(300_000),
                              rng.choice(("", "100M", "9M9000N9M")), "",
                              4 | rng.choice((0, 0x10))) for i in range(1000)]
        # Counts for its reference, but is in no region. With more of them the reference samtools
        # says that the file is not sorted (bam_index.h).
        minus = make_read("minus", 0, -1, "", "ACGT", 4)
        # Sorted last, and indexed as unplaced.
        lost = [make_read(f"lost{i}", -1, 5 * i, "", "ACGT", 4) for i in range(5)]
        at_one_place = [make_read(f"q{i}", 2, 40_000_000, "100M", "ACGTA" * 20)
                        for i in range(5000)]
        beyond = [make_read(f"q{tid}.{i}", tid, length - 1 - i % min(length, 3), "100M", "A" * 100)
                  for tid, (_, length) in enumerate(REFS) for i in range(20)]
        many_refs = [(f"c{i}", 1000) for i in range(70000)]
        on_many = [make_read(f"q{i}", rng.choice((0, 1, 1000, 65535, 65536, 69999)),
                             rng.randrange(900), "50M", "ACGTA" * 10) for i in range(2000)]
        for what, reads, refs, budgets in (
                ("no records", [], REFS, (None,)), ("no references", [], [], (None,)),
                ("unplaced, no references", unplaced[:50], [], (None,)),
                ("unplaced", unplaced, REFS, BUDGETS), ("unmapped", unmapped, REFS, (None,)),
                ("position -1", [*some, minus], REFS, (None,)),
                ("no reference", some + lost, REFS, (None,)),
                ("at one place", at_one_place, REFS, BUDGETS), ("beyond", beyond, REFS, (None,)),
                *((f"one on {tid}", [make_read("q", tid, 0, "1M", "A")], REFS, (None,))
                  for tid in range(len(REFS))),
                ("many references", on_many, many_refs, (SPILL_BUDGET,))):
            with self.subTest(what=what):
                self.check_both(reads, refs, budgets)

    def test_many_at_position_minus_one(self):
        reads = random_reads(500, REFS, seed=9)
        reads += [make_read(f"minus{i}", i % 2, -1, "", "ACGT", 4) for i in range(10)]
        path = self.sort_indexed(self.bam(reads, REFS), "out.bam")
        regions = random_regions(200, REFS)
        counts, answers = self.ask(path, path + ".csi", regions)
        for region, got in zip(regions, answers):
            self.assertEqual(sorted(got), names_in(reads, region), region)
        for tid, stats in enumerate(counts[1][1]):
            self.assertEqual(stats.total, sum(read.tid == tid for read in reads))

    def test_csi_has_the_levels_of_its_longest_reference(self):
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
        """A BAI can index references of 2^29 bases. One base more is refused; the message says
        which index to use instead."""
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
        """The references fit into the index, but a read reaches beyond the end of its reference."""
        for name, length in (("out.bam##idx##out.bai", 2**29), ("out.bam", 2**17)):
            reads = [make_read("far", 0, length - 1, "100M1000N", "A" * 100)]
            source = self.bam(reads, [("a", length)])
            with self.subTest(name=name):
                result = self.rocksort("--write-index", "-o", name, source)
                if result.status == 0:  # htslib's CSI has some room after the end
                    self.check(self.path("out.bam"), self.path("out.bam.csi"), reads,
                               [(0, length - 10, length + 2000)])
                else:
                    self.assert_error(result, "far")
                    self.assert_files("in.bam")

    def test_index_of_sam_reaches_beyond_bam(self):
        """A reference longer than BAM allows, with reads everywhere on it."""
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

    def test_long_cigars_are_indexed(self):
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
