"""The order of the records is that of the reference samtools, in memory and spilled.
test/differential.py compares random inputs of all sizes and kinds."""

import random

import bamfile
import generate
from harness import ORDERS, SPILL_BUDGET, CliTest, needs_pysam, reference_sort


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

    def test_odd_sam_is_sorted_as_by_samtools(self):
        self.check(self.write("in.sam", generate.odd(12000, seed=11)))

    def test_all_flags_are_sorted_as_by_samtools(self):
        self.check(self.write("in.sam", generate.all_flags(seed=13)))

    def test_ties_stay_in_their_order(self):
        source = self.write("in.sam", generate.ties(12000, seed=14))
        for threads in "13":
            self.check(source, ["-@", threads])

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
