"""The order of the records is that of the reference samtools, in memory and spilled."""

import functools
import random
import re

import bamfile
import generate
from harness import ORDERS, SPILL_BUDGET, CliTest, needs_pysam, reference_sort



def coordinate_key(raw):
    """Reference, position, strand; records without a reference come last."""
    tid, pos, flag, _ = bamfile.fields(raw)
    return (tid if tid >= 0 else 1 << 31, pos, flag >> 4 & 1)


def name_flag(flag):
    """By READ1/READ2, then primary, supplementary, secondary, and both of these."""
    return (flag & 0xC0, bool(flag & 0x100), bool(flag & 0x800))


def compare_natural(a, b):
    """Compares the names of two raw records: digits as numbers, all else by character."""
    (_, _, flag_a, name_a), (_, _, flag_b, name_b) = bamfile.fields(a), bamfile.fields(b)
    for part_a, part_b in zip(re.findall(rb"\d+|\D", name_a), re.findall(rb"\d+|\D", name_b)):
        if part_a.isdigit() and part_b.isdigit():
            one, two = int(part_a), int(part_b)
        else:
            one, two = part_a[0], part_b[0]
        if one != two:
            return -1 if one < two else 1
    rest_a, rest_b = (len(re.findall(rb"\d+|\D", name)) for name in (name_a, name_b))
    one, two = (rest_a, name_flag(flag_a)), (rest_b, name_flag(flag_b))
    return (one > two) - (one < two)


def lexicographical_key(raw):
    """The bytes of the name, then the flag."""
    _, _, flag, name = bamfile.fields(raw)
    return (name, name_flag(flag))


ORACLES = {"coordinate": coordinate_key, "natural": functools.cmp_to_key(compare_natural),
           "lexicographical": lexicographical_key}


class AgainstOracle(CliTest):
    """Compared with the simple comparisons of this file; no reference program is needed."""

    def check(self, sam):
        """Sorts sam in each order, in memory and spilled, and compares with Python's sorted()."""
        source = self.write("in.sam", sam)
        unsorted = self.sort_bam("--no-PG", source)
        for order, options in ORDERS.items():
            for budget in (None, SPILL_BUDGET):
                with self.subTest(order=order, budget=budget):
                    got = self.sort_bam("--no-PG", *options, source, budget=budget)
                    # The records as our program writes them, in the order of the input (XI tags).
                    first = sorted(bamfile.split(unsorted.records), key=input_number)
                    want = b"".join(sorted(first, key=ORACLES[order]))
                    self.assert_same_records(got.records, want, order)

    def test_odd(self):
        self.check(generate.odd(12000))

    def test_all_flags(self):
        self.check(generate.all_flags())

    def test_equal_records_keep_their_order(self):
        self.check(generate.ties(12000))


def input_number(raw):
    """The value of the XI tag: the number of the record in the input."""
    at = raw.index(b"XI", 36 + raw[12])
    while True:
        size = {ord("c"): 1, ord("C"): 1, ord("s"): 2, ord("S"): 2, ord("i"): 4, ord("I"): 4}.get(
            raw[at + 2])
        if size:
            return int.from_bytes(raw[at + 3 : at + 3 + size], "little")
        at = raw.index(b"XI", at + 1)


@needs_pysam
class AgainstReference(CliTest):
    """Compared with samtools 1.24 in pysam, headers included."""

    def check(self, source, options=(), budgets=(None, SPILL_BUDGET)):
        """Sorts the file in each order; the output must be the same as the reference's."""
        for order, order_options in ORDERS.items():
            want = reference_sort(source, self.path("want.bam"), *order_options)
            for budget in budgets:
                with self.subTest(order=order, budget=budget):
                    got = self.sort_bam("--no-PG", *order_options, *options, source, budget=budget)
                    self.assert_same_bam(got, want, order)

    def test_odd_sam(self):
        self.check(self.write("in.sam", generate.odd(12000, seed=11)))

    def test_odd_bam(self):
        self.check(self.bam_of(generate.odd(12000, seed=12)), ["-@", "2"])

    def test_many_seeds(self):
        for seed in range(20, 32):
            n_records = random.Random(seed).choice((1, 2, 3, 17, 300, 1500))
            self.check(self.write("in.sam", generate.odd(n_records, seed=seed)),
                       budgets=(SPILL_BUDGET,) if n_records > 300 else (None,))

    def test_all_flags(self):
        self.check(self.write("in.sam", generate.all_flags(seed=13)))

    def test_ties(self):
        self.check(self.write("in.sam", generate.ties(12000, seed=14)))

    def test_sequencing(self):
        refs = generate.reference()
        self.check(self.write("in.sam", generate.reads(6000, refs)))

    def test_reference_without_position(self):
        rng, refs = random.Random(15), [("a", 1000), ("b", 1000)]
        raw = b"".join(
            bamfile.record(f"r{rng.randrange(50)}", rng.choice((4, 0x14, 0x45, 0x85, 0x904)),
                           rng.choice((-1, 0, 1)), rng.choice((-1, -1, 0, 5)), "", "ACGT" * 20)
            for _ in range(8000))
        data = bamfile.bgzf(bamfile.bam_header(bamfile.sq_text(refs), refs) + raw)
        self.check(self.write("in.bam", data))

    def test_sorted_and_reversed_inputs_are_sorted(self):
        want = reference_sort(self.write("in.sam", generate.odd(8000)), self.path("sorted.bam"))
        header = bamfile.bam_header(want.text, want.refs)
        for name, records in (("sorted", bamfile.split(want.records)),
                              ("reversed", bamfile.split(want.records)[::-1])):
            with self.subTest(name):
                self.check(self.write("in.bam", bamfile.bgzf(header + b"".join(records))))

    def test_more_references_than_two_bytes(self):
        refs = [(f"c{i}", 1000) for i in range(70000)]
        rng = random.Random(16)
        raw = b"".join(
            bamfile.record(f"r{i}", 0, rng.choice((0, 1, 65535, 65536, 69999)), rng.randrange(900),
                           "50M", "ACGTA" * 10) for i in range(6000))
        data = bamfile.bgzf(bamfile.bam_header(bamfile.sq_text(refs), refs) + raw)
        self.check(self.write("in.bam", data))
