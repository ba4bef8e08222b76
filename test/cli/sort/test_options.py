"""The options of samtools sort that set the order, --shuffle, and values that are refused.

The differential test checks each order on many records; test_formats.py has the formats.
"""

import gzip
import itertools
import os
import random
import unittest

import bamfile
import generate
from harness import (SAMTOOLS, SPILL_BUDGET, CliTest, bytes_of, needs_pysam, reference_sort,
                     sam_split, sanitized, text_of)

BUDGETS = (None, SPILL_BUDGET)


class Memory(CliTest):
    """-m and --max-memory with more memory than any machine has."""

    @unittest.skipIf(os.access(SAMTOOLS, os.R_OK) and sanitized("tsan"),
                     "ThreadSanitizer's address space has no room for 4T")
    def test_memory_beyond_the_machine_need_not_exist(self):
        """The budget is a limit: so much memory need not exist."""
        sam = generate.reads(20000, generate.reference()).encode()
        self.sort_ok("--max-memory", "4T", "-o", self.path("out.bam"), stdin=sam)

    def test_memory_beyond_the_machine_is_warned_of(self):
        total = int(text_of("/proc/meminfo").split("MemTotal:")[1].split()[0])
        source = self.write("in.sam", generate.pairs(5))
        for options in (["-m", f"{total}K", "-@", "2"], ["--max-memory", f"{2 * total}K"],
                        ["--plan", "-m", f"{2 * total}K"]):
            result = self.sort_ok(*options, "-o", self.path("out.bam"), source)
            self.assertRegex(result.err, r"warning: .* of memory .* is more than the .* there is")
        for options in (["-m", "64M"], ["--max-memory", "auto"],
                        ["--checksum-only", "-m", f"{2 * total}K"]):
            result = self.sort_ok(*options, source)
            self.assertNotIn("of memory (", result.err)


@needs_pysam
class Precedence(CliTest):
    """Options that set different orders: which one wins, and what @HD says."""

    def check(self, *options, source, ours=()):
        with self.subTest(options=options):
            want = reference_sort(source, self.path("want.bam"), *options)
            self.assert_same_bam(self.sort_bam("--no-PG", *options, *ours, source), want)

    def test_last_order_wins_beside_a_tag(self):
        source = self.write("in.sam", generate.pairs(60))
        words = ("-n", "-N", "-M", "--template-coordinate")
        mixtures = list(itertools.permutations(words, 2)) + [words, words[::-1], words[1:] + words]
        for mixture in mixtures:
            self.check(*mixture, source=source)
        for mixture in [(word,) for word in words] + mixtures[::3]:
            self.check("-t", "XS", *mixture, source=source)
            self.check(*mixture, "-t", "XS", source=source)
        for options in (["-t", "XS", "-t", "XI"], ["-tXI"], ["-t", "XI", "-n", "-t", "XS"],
                        *(["-t", tag] for tag in ("zz", "1A", "R!", "--", "  ")),
                        # Options of minimisers do not choose their order.
                        ["-R"], ["-H"], ["-K", "5"], ["-w", "5"], ["-n", "-R", "-H", "-K", "3"]):
            self.check(*options, source=source)

    def test_index_of_minimisers_is_an_order(self):
        """-I implies -M, and the last order wins. With -I only the headers are compared, because
        the order may differ from samtools'."""
        source = self.write("in.sam", generate.pairs(60))
        fasta = self.write("r.fa", ">r\n" + "ACGGT" * 50)
        for options in (["-I", fasta, "-n"], ["-I", fasta, "-N"],
                        ["-I", fasta, "--template-coordinate"], ["-I", fasta, "-t", "XS"],
                        ["-t", "XS", "-I", fasta]):
            self.check(*options, source=source)
        for options in (["-n", "-I", fasta], ["--template-coordinate", "-I", fasta],
                        ["-M", "-I", fasta]):
            want = reference_sort(source, self.path("want.bam"), *options)
            got = self.sort_bam("--no-PG", *options, source)
            self.assertEqual(got.text, want.text)

    def test_hd_of_minimisers_depends_on_placed_records(self):
        """@HD depends on whether any record is placed, which is known only after all are read."""
        head = bamfile.sq_text(generate.PAIR_REFS)
        nowhere = "".join(f"u{i}\t4\t*\t0\t0\t*\t*\t0\t0\t{'ACGT' * 10}\t*\n" for i in range(3))
        placed = "p\t0\ta\t1\t0\t4M\t*\t0\t0\tACGT\t*\n"
        lost = "l\t4\t*\t7\t0\t*\t*\t0\t0\tACGT\t*\n"
        for records in ("", nowhere, lost, nowhere + placed, placed,
                        "p\t4\ta\t1\t0\t*\t*\t0\t0\tACGT\t*\n"):
            with self.subTest(records=records):
                self.check("-M", source=self.write("in.sam", head + records))


@needs_pysam
class Minimisers(CliTest):
    """What test/differential.py does not try."""

    def setUp(self):
        super().setUp()
        rng = random.Random(3)
        genome = "".join(rng.choices("ACGT", k=400)) + "A" * 30
        lines = []
        for i in range(400):
            size = rng.choice((0, 5, 19, 20, 40, 80))
            begin = rng.randrange(len(genome) - size)
            bases = genome[begin : begin + size]
            if i % 2:
                bases = bases[::-1].translate(str.maketrans("ACGT", "TGCA"))
            qual = "".join(rng.choices("#,:F", k=size))
            lines.append(f"u{i}\t{rng.choice((4, 0x14))}\t*\t0\t0\t*\t*\t0\t0\t{bases or '*'}\t"
                         f"{qual or '*'}\n")
        self.source = self.write("in.sam", bamfile.sq_text(generate.PAIR_REFS) + "".join(lines))
        self.fasta = self.write("r.fa", f">r some words\n{genome[:200]}\n{genome[200:]}\n")

    def test_k_is_clamped(self):
        for given, used in (("0", "1"), ("-5", "1"), ("32", "31"), ("1000000", "31")):
            want = self.sort_bam("--no-PG", "-M", "-K", used, self.source)
            self.assertEqual(self.sort_bam("--no-PG", "-M", "-K", given, self.source), want)
            theirs = reference_sort(self.source, self.path("want.bam"), "-M", "-K", given)
            self.assert_same_bam(want, theirs, given)

    def test_index_may_be_compressed(self):
        want = self.sort_bam("--no-PG", "-I", self.fasta, self.source)
        data = bytes_of(self.fasta)
        for name, packed in (("r.fa.gz", gzip.compress(data)), ("b.fa.gz", bamfile.bgzf(data))):
            got = self.sort_bam("--no-PG", "-I", self.write(name, packed), self.source)
            self.assertEqual(got, want, name)


class Shuffle(CliTest):
    """--shuffle, with and without a seed."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.sam = "@HD\tVN:1.6\tSO:coordinate\tSS:coordinate:minhash\n" + generate.odd(6000)

    def shuffled(self, *options, **how):
        """Shuffles with the options; returns the Bam."""
        words = options if any("shuffle" in word for word in options) else ("--shuffle", *options)
        return self.sort_bam("--no-PG", *words, **{"stdin": self.sam.encode(), **how})

    def test_shuffle_is_reproducible(self):
        want = self.shuffled()
        for options, budget in ((["--shuffle=0"], None), ([], SPILL_BUDGET), (["-@", "3"], None),
                                (["-@", "3"], SPILL_BUDGET), (["-@", "2", "--shuffle"], 200_000),
                                (["--temp-codec", "zstd"], SPILL_BUDGET), (["-l", "0"], None)):
            with self.subTest(options=options, budget=budget):
                self.assert_same_bam(self.shuffled(*options, budget=budget), want)
        header, records = sam_split(self.sam)
        backwards = header + "\n".join(records[::-1]) + "\n"
        self.assert_same_bam(self.shuffled(stdin=backwards.encode()), want)
        data = bamfile.bgzf(bamfile.bam_header(want.text, want.refs) + want.records)
        self.assert_same_bam(self.shuffled(self.write("in.bam", data), stdin=None), want)

    def test_each_seed_gives_another_order(self):
        want = self.sort_bam("--no-PG", stdin=self.sam.encode())
        ordered, seen = sorted(bamfile.split(want.records)), set()
        for seed in ("", "=0", "=1", "=2", "=42", "=4294967296", "=18446744073709551615"):
            got = self.shuffled("--shuffle" + seed)
            self.assertTrue(sorted(bamfile.split(got.records)) == ordered, seed)
            seen.add(got.records)
        self.assertEqual(len(seen), 6)

    def test_shuffled_positions_are_neither_ascending_nor_descending(self):
        records = bamfile.split(self.shuffled().records)
        places = [bamfile.fields(raw)[:2] for raw in records]
        n_up = sum(one < other for one, other in zip(places, places[1:]))
        n_down = sum(one > other for one, other in zip(places, places[1:]))
        self.assertLess(abs(n_up - n_down), len(places) / 10)
        self.assertGreater(n_up + n_down, len(places) / 3)

    def test_shuffled_file_claims_no_order(self):
        text = self.shuffled().text
        self.assertTrue(text.startswith("@HD\tVN:1.6\tSO:unsorted\n"), text[:60])
        text = self.shuffled(stdin=generate.odd(5).encode()).text
        self.assertTrue(text.startswith("@HD\tVN:1.6\tSO:unsorted\n"), text[:60])

    def test_last_order_wins(self):
        source = self.write("in.sam", generate.pairs(50))
        for options, same in ((["-n", "--shuffle"], ["--shuffle"]), (["--shuffle", "-n"], ["-n"]),
                              (["--shuffle=1", "--shuffle=2"], ["--shuffle=2"]),
                              (["--shuffle", "-t", "XS"], ["-t", "XS"]),
                              (["-t", "XS", "--shuffle"], ["-t", "XS"])):
            with self.subTest(options=options):
                self.assertEqual(self.sort_bam("--no-PG", *options, source),
                                 self.sort_bam("--no-PG", *same, source))

    def test_few_records_are_shuffled(self):
        for n_records in (0, 1, 2):
            sam = generate.odd(n_records) if n_records else bamfile.sq_text(generate.PAIR_REFS)
            got = self.shuffled(stdin=sam.encode())
            self.assertEqual(len(bamfile.split(got.records)), n_records)


class TemplateErrors(CliTest):
    """--template-coordinate needs the tags that samtools fixmate -m adds."""

    def check_tags(self, bad, *mention, flag=99):
        """A record with bad tags is refused, also after a good pair."""
        good = [line + "\n" for line in generate.pair(random.Random(2), 1)]
        line = f"the-bad\t{flag}\ta\t5\t9\t4M\t=\t50\t0\tACGT\t*{bad}\n"
        for n_good in (0, 3000):
            sam = bamfile.sq_text(generate.PAIR_REFS) + "".join(good[:1] * n_good) + line
            source = self.write("in.sam", sam)
            with self.subTest(tags=bad, n_good=n_good):
                for budget in BUDGETS if n_good > 1 else (None,):
                    result = self.rocksort("--template-coordinate", "-@", "2", "-o",
                                           self.path("out.bam"), source, budget=budget)
                    self.assert_error(result, "the-bad", *mention)
                    self.assertFalse(os.path.exists(self.path("out.bam")))
                result = self.rocksort("--template-coordinate", source)
                self.assert_error(result, "the-bad", *mention)
                self.write("stdout.bam", result.out)
                self.assert_no_result(self.path("stdout.bam"))

    def test_mate_cigar_and_molecule_must_be_there_as_text(self):
        """The advice is samtools fixmate -m also for MI, although fixmate does not make it."""
        self.check_tags("", "MC", "samtools fixmate -m")
        self.check_tags("\tXX:Z:4M\tmc:Z:4M", "MC", "samtools fixmate -m", flag=147)
        for value in ("i:4", "A:4", "B:c,4", "f:4"):
            self.check_tags(f"\tMC:{value}", "MC", "samtools fixmate -m")
            self.check_tags(f"\tMC:Z:4M\tMI:{value}", "MI", "samtools fixmate -m", "MI:Z")

    def test_secondary_read_without_mate_cigar_is_refused_with_advice(self):
        """fixmate adds no MC to secondary reads: the advice is to remove them, and it helps."""
        self.check_tags("", "secondary", "--fixmate=-r", "samtools view -F 256", flag=99 + 256)
        tail = "60\t4M\t=\t%d\t0\tACGT\t*\n"
        sam = bamfile.sq_text(generate.PAIR_REFS) + "".join(
            f"q\t{flag}\ta\t{at}\t{tail % mate}" for flag, at, mate in
            ((99, 5, 50), (147, 50, 5), (99 + 256, 70, 50), (99 + 2048, 90, 50)))
        source = self.write("in.sam", sam)
        self.assert_error(self.rocksort("--template-coordinate", "--fixmate", source), "record 3 ",
                          "--fixmate=-r")
        self.sort_ok("--template-coordinate", "--fixmate=-r", source)

    @needs_pysam
    def test_what_needs_no_tags(self):
        """Single reads and reads with an unmapped mate need no MC. An MC that is no CIGAR is
        accepted if it is text."""
        head = bamfile.sq_text(generate.PAIR_REFS)
        for flag, tags in ((0, ""), (16, "\tMC:i:4"), (73, ""), (4, ""), (99, "\tMC:Z:*"),
                           (99, "\tMC:Z:"), (99, "\tMC:Z:4M\tRG:i:4"), (99, "\tMC:Z:4M\tMI:Z:")):
            with self.subTest(flag=flag, tags=tags):
                line = f"q\t{flag}\ta\t5\t9\t4M\t=\t50\t0\tACGT\t*{tags}\n"
                source = self.write("in.sam", head + line)
                want = reference_sort(source, self.path("want.bam"), "--template-coordinate")
                got = self.sort_bam("--no-PG", "--template-coordinate", source)
                self.assert_same_bam(got, want)

    def test_other_orders_take_any_tags(self):
        line = "q\t99\ta\t5\t9\t4M\t=\t50\t0\tACGT\t*\tMI:i:4\n"
        source = self.write("in.sam", bamfile.sq_text(generate.PAIR_REFS) + line)
        for options in ([], ["-n"], ["-M"], ["--template-coordinate", "-n"], ["--shuffle"]):
            self.sort_ok(*options, source)
