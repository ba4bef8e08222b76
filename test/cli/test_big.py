"""Very large records and references: CIGARs of more than 65,535 operations, records larger than the
memory budget, references too long for BAM."""

import random
import struct

import bamfile
from harness import (SPILL_BUDGET, CliTest, bytes_of, needs_pysam, reference_ok, reference_sort,
                     reference_view, sam_split, text_of)

SQ = "@SQ\tSN:c\tLN:100000000\n"


def long_read(name, pos, n_ops, seed, flag=0):
    rng = random.Random(seed)
    cigar, n_bases = [], 0
    for i in range(n_ops):
        size = rng.randint(1, 3)
        op = "M" if i % 2 == 0 else rng.choice("ID")
        n_bases += size if op in "MI" else 0
        cigar.append(f"{size}{op}")
    seq = "".join(rng.choices("ACGT", k=n_bases))
    return f"{name}\t{flag}\tc\t{pos}\t60\t{''.join(cigar)}\t*\t0\t0\t{seq}\t*\tXI:i:{seed}\n"


def long_reads(n_ops=70001):
    """A few reads with n_ops operations and many small reads, shuffled."""
    lines = [long_read(f"g{i}", 5000 - 100 * i, n_ops, i, 16 * (i % 2)) for i in range(4)]
    lines += [long_read(f"s{i}", i * 7919 % 10000 + 1, 21, 100 + i) for i in range(400)]
    lines += [long_read(f"e{i}", 777 - i, n, 1000 + i) for i, n in enumerate((65535, 65537))]
    random.Random(1).shuffle(lines)
    return SQ + "".join(lines)


class LongCigars(CliTest):
    """BAM's CIGAR field holds 65,535 operations; longer CIGARs are stored in the CG tag."""

    def test_sam_to_bam_to_sam(self):
        sam = long_reads()
        records = sorted(sam_split(sam)[1], key=lambda line: (int(line.split("\t")[3]),
                                                              int(line.split("\t")[1]) >> 4 & 1))
        for budget in (None, SPILL_BUDGET):
            with self.subTest(budget=budget):
                self.sort_ok("--no-PG", "-o", self.path("a.bam"), stdin=sam.encode(), budget=budget)
                raw = bamfile.split(bamfile.read(self.path("a.bam")).records)
                giants = [one for one in raw if bamfile.fields(one)[3].startswith((b"g", b"e1"))]
                self.assertEqual({bamfile.n_cigar(one) for one in giants}, {2})
                self.assertTrue(all(b"CGBI" in one for one in giants))
                for order in ([], ["-n"]):
                    self.sort_ok("--no-PG", *order, "-O", "sam", "-o", self.path("b.sam"),
                                 self.path("a.bam"), budget=budget)
                    got = sam_split(text_of(self.path("b.sam")))[1]
                    self.assertEqual(sorted(got), sorted(records))
                    if not order:
                        self.assertEqual([line.split("\t")[3] for line in got],
                                         [line.split("\t")[3] for line in records])

    @needs_pysam
    def test_against_reference(self):
        source = self.write("in.sam", long_reads())
        bam = self.bam_of(long_reads())
        for order in ([], ["-n"], ["-N"]):
            want = reference_sort(source, self.path("want.bam"), *order)
            for path in (source, bam):
                for budget in (None, SPILL_BUDGET):
                    with self.subTest(order=order, source=path, budget=budget):
                        self.assert_same_bam(self.sort_bam(*order, path, budget=budget), want)

    @needs_pysam
    def test_cigars_are_complete_after_bam_to_cram_to_bam(self):
        source = self.write("in.sam", long_reads())
        want = reference_sort(source, self.path("want.bam"))
        for budget in (None, SPILL_BUDGET):
            self.sort_ok("--no-PG", "-O", "cram,no_ref=1", "-o", self.path("a.cram"), source,
                         budget=budget)
            reference_ok("quickcheck", self.path("a.cram"))
            text = reference_view(self.path("a.cram"))
            cigars = {line.split("\t")[0]: line.split("\t")[5] for line in sam_split(text)[1]}
            theirs = sam_split(reference_view(self.path("want.bam")))[1]
            self.assertEqual(cigars, {line.split("\t")[0]: line.split("\t")[5] for line in theirs})
            got = self.sort_bam("--no-PG", self.path("a.cram"), budget=budget)
            self.assertEqual([bamfile.fields(one) for one in bamfile.split(got.records)],
                             [bamfile.fields(one) for one in bamfile.split(want.records)])


@needs_pysam
class ShortCigars(CliTest):
    """A CIGAR of at most 65,535 operations in a CG tag: samtools moves it into the CIGAR field."""

    SEQ = "ACGTACG"
    CG = b"CGBI" + struct.pack("<4I", 3, 3 << 4, 4 << 4 | 1, 3 << 4 | 2)        # 3M4I3D

    def record(self, number, cigar="7S3N", cg=CG, flag=0, place=0):
        aux = b"NMC\1" + cg + b"XZZhi\0"
        return bamfile.record(f"r{number}", flag, place, 500 - number if place == 0 else -1, cigar,
                              self.SEQ, aux, 9)

    def test_long_cigars_are_sorted_as_by_samtools(self):
        refs = [("c", 1000)]
        records = [self.record(0), self.record(1, "7S"), self.record(2, flag=4),
                   self.record(3, flag=4, place=-1), self.record(4, "7M"), self.record(5, "3S4M"),
                   self.record(6, cg=b"CGBI" + struct.pack("<2I", 1, 7 << 4)),
                   self.record(7, cg=b"CGBS\1\0\0\0\1\0")]
        records = [raw for i in range(600) for raw in records]
        source = self.write("in.bam", bamfile.bgzf(
            bamfile.bam_header(bamfile.sq_text(refs), refs) + b"".join(records)))
        plain = [raw[:14] + b"\0\0" + raw[16:] for raw in records]
        for order in ([], ["-n"], ["-t", "CG"], ["-t", "XZ"]):
            want = reference_sort(source, self.path("want.bam"), *order)
            want = [raw[:14] + b"\0\0" + raw[16:] for raw in bamfile.split(want.records)]
            self.assertNotEqual(sorted(want), sorted(plain))
            for budget in (None, SPILL_BUDGET):
                with self.subTest(order=order, budget=budget):
                    got = self.sort_bam("--no-PG", *order, source, budget=budget)
                    self.assertEqual([raw[:14] + b"\0\0" + raw[16:]
                                      for raw in bamfile.split(got.records)], want)
        self.sort_ok("-o", self.path("out.bam"), source)
        sums = {self.sort_ok("--checksum-only", self.path(name)).out for name in ("in.bam", "out.bam")}
        self.assertEqual(len(sums), 1)

    def test_index_is_that_of_samtools(self):
        refs = [("c", 100_000)]
        records = b"".join(bamfile.record("r", 0, 0, 100 * i, "7S3N", self.SEQ, self.CG, 9)
                           for i in range(900))
        source = self.write("in.bam", bamfile.bgzf(
            bamfile.bam_header(bamfile.sq_text(refs), refs) + records))
        out = self.path("out.bam")
        self.sort_ok("--write-index", "-o", f"{out}##idx##{out}.bai", source)
        reference_ok("index", "-b", "-o", self.path("want.bai"), out)
        self.assertEqual(bytes_of(out + ".bai"), bytes_of(self.path("want.bai")))


class LargeRecords(CliTest):
    """Records larger than a block, a run, or the memory budget."""

    def giants(self, n_bases, n_giants, n_small):
        """(records, refs): raw records of n_bases bases and small ones, shuffled."""
        rng, refs = random.Random(n_bases), [("c", 1 << 30)]
        seq = "".join(rng.choices("ACGT", k=n_bases))
        records = [bamfile.record(f"g{i}", 0, 0, rng.randrange(1 << 20), f"{n_bases}M", seq)
                   for i in range(n_giants)]
        records += [bamfile.record(f"s{i}", 0, 0, rng.randrange(1 << 20), "100M", seq[i : i + 100])
                    for i in range(n_small)]
        rng.shuffle(records)
        return bamfile.bam_header(bamfile.sq_text(refs), refs), records

    def test_larger_than_the_budget(self):
        for n_bases, n_giants in ((100_000, 40), (400_000, 6), (2_000_000, 3)):
            header, records = self.giants(n_bases, n_giants, 3000)
            source = self.write("in.bam", bamfile.bgzf(header + b"".join(records)))
            want = b"".join(sorted(records, key=lambda raw: bamfile.fields(raw)[1]))
            for budget in (300_000, 1_000_000, None):
                for options in ([], ["-@", "3", "-u"]):
                    with self.subTest(n_bases=n_bases, budget=budget, options=options):
                        got = self.sort_bam(*options, source, budget=budget)
                        self.assert_same_records(got.records, want)

    def test_giant_record_may_be_first_last_or_only(self):
        header, (giant,) = self.giants(1_500_000, 1, 0)
        small = [bamfile.record(f"s{i}", 4, -1, -1, "", "ACGT" * 30) for i in range(4000)]
        for name, records in (("only", [giant]), ("first", [giant] + small),
                              ("last", small + [giant])):
            data = bamfile.bgzf(header + b"".join(records))
            for budget in (SPILL_BUDGET, None):
                with self.subTest(name, budget=budget):
                    got = self.sort_bam(stdin=data, budget=budget)
                    # Only the giant has a position, and is therefore the first of the output.
                    want = giant + b"".join(one for one in records if one is not giant)
                    self.assert_same_records(got.records, want)

    def test_record_may_be_large_because_of_a_tag(self):
        refs = [("c", 1000)]
        header = bamfile.bam_header(bamfile.sq_text(refs), refs)
        tags = [b"XZZ" + b"z" * (i * 5009 % 300_000) + b"\0" for i in range(60)]
        records = [bamfile.record(f"r{i % 97}", aux=tag) for i, tag in enumerate(tags)]
        data = bamfile.bgzf(header + b"".join(records))
        got = self.sort_bam("-N", stdin=data, budget=SPILL_BUDGET)
        want = sorted(records, key=lambda raw: bamfile.fields(raw)[3])
        self.assert_same_records(got.records, b"".join(want))


class LongReferences(CliTest):
    """Positions above 2^31, which BAM cannot hold: SAM to SAM works, other output is refused."""

    HEADER = "@SQ\tSN:short\tLN:1000\n@SQ\tSN:long\tLN:500000000000\n"

    def make(self, n=3000):
        """Records at positions around 2^31 and 2^32; so are some mates and template lengths."""
        rng = random.Random(31)
        places = [5, 2**31 - 2, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1, 2**32, 2**32 + 1, 2**38]
        lines = []
        for i in range(n):
            flag = rng.choice([0, 16, 4, 99, 147, 20])
            pos, mate = (rng.choice(places) + rng.randrange(3) for _ in range(2))
            ref = rng.choice(["long", "long", "short", "*"])
            if ref == "*":
                flag = 77           # unmapped: samtools' order of mapped reads without a position
                                    # is not transitive
            pos = {"short": pos % 900 + 1, "*": 0}.get(ref, pos)
            lines.append("\t".join(map(str, (
                f"r{rng.randrange(n)}", flag, ref, pos, 9, "4M" if ref != "*" else "*",
                "long" if ref != "*" else "*", mate if ref != "*" else 0,
                mate - pos if ref == "long" else 0, "ACGT", "FFFF", f"XX:i:{rng.randrange(9)}",
                "MC:Z:4M", f"MI:Z:{i % 7}"))))
        return self.HEADER + "\n".join(lines) + "\n"

    def test_no_long_reference(self):
        """Without a long reference such a coordinate is an error that says so. samtools takes it if
        all fits into memory and is written as SAM."""
        for pos, mate, length in ((2**31 + 1, 1, 0), (1, 2**32 - 1, 0), (1, 1, -2**31 - 1)):
            line = f"r\t0\t*\t{pos}\t0\t*\t*\t{mate}\t{length}\t*\t*\n"
            with self.subTest(line=line):
                self.assert_error(self.rocksort("-O", "sam", stdin=line.encode()),
                                  "read 'r'", "POS, PNEXT or TLEN is beyond 2^31 - 1")

    @needs_pysam
    def test_sam_to_sam(self):
        text = self.make()
        source = self.write("in.sam", text)
        for options in ([], ["-n"], ["-t", "XX"], ["--template-coordinate"], ["-M"]):
            reference_ok("sort", "--no-PG", "-O", "sam", *options, "-o", self.path("want.sam"),
                         source)
            want = bytes_of(self.path("want.sam"))
            for budget in (None, SPILL_BUDGET):
                with self.subTest(options=options, budget=budget):
                    out = self.path("out.sam")
                    self.sort_ok("--no-PG", "-@", "2", *options, "-o", out, source, budget=budget)
                    self.assertEqual(bytes_of(out), want)

    def test_long_references_are_refused_but_for_sam(self):
        source = self.write("in.sam", self.make(50))
        for options in ([], ["-O", "bam"], ["-O", "cram"]):
            result = self.rocksort(*options, "-o", self.path("out"), source)
            self.assert_error(result, "'long'", "-O sam")
            self.assert_no_result(self.path("out"))

    def test_position_beyond_a_short_reference(self):
        line = "far\t0\tc\t2147483649\t9\t4M\t*\t0\t0\tACGT\tFFFF\n"
        for options in ([], ["-O", "sam"]):
            result = self.rocksort(*options, "-o", self.path("out"),
                                   stdin=("@SQ\tSN:c\tLN:1000\n" + line).encode())
            self.assert_error(result, "record 1 of 'standard input' (read 'far')")
            self.assert_no_result(self.path("out"))
