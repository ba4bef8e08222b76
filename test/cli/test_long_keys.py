"""Long keys: the order must be that of samtools 1.24, in memory and spilled, whatever the threads and
the budget. A key that is too long is refused.
"""

import os
import random

import bamfile
from harness import CliTest, needs_pysam, reference_ok

# Small ones make hundreds of runs of a few records each.
BUDGETS = (None, 60_000, 400_000)
HEADER = ("@HD\tVN:1.6\n@SQ\tSN:c\tLN:100000\n@RG\tID:g\tLB:l\n", [("c", 100000)])


def text_tag(name, value):
    return name.encode() + b"Z" + value + b"\0"


def values(rnd, n):
    """Values that share their beginnings, with many ties."""
    shared = bytes(rnd.choices(b"acgt", k=3000))
    made = []
    for _ in range(n):
        length = rnd.choice((0, 5, 509, 510, 511, 512, 513, 700, 1500, 2900))
        end = bytes(rnd.choices(b"acgt", k=rnd.randrange(3)))
        made.append(shared[:length] + end)
    return made


class LongKeysTest(CliTest):
    """Makes records with long tags."""

    def write_bam(self, records, level=1):
        bam = bamfile.bam_header(*HEADER) + b"".join(records)
        return self.write("in.bam", bamfile.bgzf(bam, level))

    def tagged(self, rnd, texts, n_bases=0):
        """A record for each text, in XX."""
        return [bamfile.record(name=f"r{rnd.randrange(300)}", flag=rnd.choice((0, 16)), tid=0,
                               pos=rnd.randrange(50), cigar=f"{n_bases}M" if n_bases else "",
                               seq="A" * n_bases, aux=text_tag("XX", text)) for text in texts]


class LongKeys(LongKeysTest):
    """The order, compared with that of samtools 1.24."""

    def check(self, source, *options):
        """The same records in the same order as from samtools, in memory and spilled."""
        want = self.path("want.bam")
        reference_ok("sort", "--no-PG", "-m", "200M", "-u", *options, "-o", want, source)
        wanted = bamfile.read(want).records
        for budget in BUDGETS:
            for threads in ("1", "4"):
                with self.subTest(options=options, budget=budget, threads=threads):
                    result = self.sort_ok(*options, "-@", threads, "-u", "--verbosity", "3", "-o",
                                          self.path("out.bam"), source, budget=budget)
                    wanted_runs = r" [1-9]\d* runs" if budget else r" 0 runs"
                    self.assertRegex(result.err, wanted_runs + " on disk")
                    self.assertTrue(bamfile.read(self.path("out.bam")).records == wanted)
            self.sort_ok("--verify", *options, self.path("out.bam"))

    @needs_pysam
    def test_values_of_up_to_64_kb(self):
        """They are longer than the blocks of temporary data, which are divided then."""
        rnd = random.Random(36)
        shared = bytes(rnd.choices(b"acgt", k=65_000))
        texts = [shared[: rnd.choice((10, 500, 5000, 40_000, 65_000))] +
                 bytes(rnd.choices(b"ac", k=rnd.randrange(400))) for _ in range(300)]
        source = self.write_bam(self.tagged(rnd, texts, 40))
        self.check(source, "-t", "XX")
        self.check(source, "-t", "XX", "-n")

    @needs_pysam
    def test_tag(self):
        rnd = random.Random(31)
        source = self.write_bam(self.tagged(rnd, values(rnd, 1500)))
        self.check(source, "-t", "XX")
        self.check(source, "-t", "XX", "-n")
        self.check(source, "-t", "XX", "-N")

    @needs_pysam
    def test_one_long_value(self):
        rnd = random.Random(32)
        shared = bytes(rnd.choices(b"acgt", k=2000))
        for ends in ((b"",), (b"a", b"b", b"ba", b""), None):
            texts = [shared + (rnd.choice(ends) if ends else b"%d" % rnd.randrange(10**6))
                     for _ in range(800)]
            self.check(self.write_bam(self.tagged(rnd, texts, 40)), "-t", "XX")

    @needs_pysam
    def test_few_long_values_among_short_ones(self):
        """Each long value is in more records than fit into memory."""
        rnd = random.Random(33)
        long = [bytes(rnd.choices(b"acgt", k=1000)) for _ in range(4)]
        long += [long[0][:600] + bytes(rnd.choices(b"acgt", k=900)) for _ in range(30)]
        texts = [rnd.choice(long) + bytes(rnd.choices(b"ab", k=3)) for _ in range(1500)]
        texts += [bytes(rnd.choices(b"acgt", k=20)) for _ in range(500)]
        rnd.shuffle(texts)
        self.check(self.write_bam(self.tagged(rnd, texts)), "-t", "XX")

    @needs_pysam
    def test_template(self):
        rnd = random.Random(34)
        cells, molecules, records = values(rnd, 1200), values(rnd, 1200), []
        for cell, molecule in zip(cells, molecules):
            tags = text_tag("CB", cell) + text_tag("RG", b"g")
            if rnd.randrange(2):
                tags += text_tag("MI", molecule + rnd.choice((b"", b"/A", b"/B")))
            records.append(bamfile.record(name=f"r{rnd.randrange(50)}", flag=rnd.choice((0, 16)),
                                          tid=0, pos=rnd.randrange(2), cigar="1M", seq="A",
                                          aux=tags))
        self.check(self.write_bam(records), "--template-coordinate")

    @needs_pysam
    def test_long_names(self):
        rnd = random.Random(35)
        shared = "".join(rnd.choice("abc") + rnd.choice("123") for _ in range(126))
        records = []
        for _ in range(1500):
            name = shared + rnd.choice(("", "1", "2", "a", "a1", "1b"))
            if rnd.randrange(4) == 0:
                name = name[:rnd.randrange(200, 252)]
            records.append(bamfile.record(name=name, flag=rnd.choice((0, 64, 128, 256))))
        source = self.write_bam(records)
        self.check(source, "-n")
        self.check(source, "-N")
        self.check(source, "-t", "XX", "-n")

class TooLong(LongKeysTest):
    """A key of more than 65,535 bytes."""

    MOST_BYTES = 65535

    def refused(self, tags, *options):
        """The second read is refused, while the input is read and while inputs are merged. Returns
        what the message says of it."""
        records = [bamfile.record(name=f"r{i}", tid=0, pos=i, cigar="1M", seq="A", aux=aux)
                   for i, aux in enumerate((b"", tags))]
        source, out = self.write_bam(records), self.path("out.bam")
        told = []
        for merge in ((), ("--merge",)):
            result = self.rocksort(*options, *merge, "-o", out, source)
            self.assert_error(result, "record 2 of ", "(read 'r1')", "65,535 bytes")
            self.assertEqual(os.listdir(self.work), ["in.bam"])
            told.append(result.err.split("(read 'r1')")[1].split("\n")[0])
        self.assertEqual(told[0], told[1])
        return told[0]

    def test_longest_value_is_sorted_and_one_byte_more_is_refused(self):
        """With -t a class, a NUL and the coordinate belong to the key; with -n the name, too."""
        for options, n_bytes in (((), 1 + 1 + 8), (("-n",), 1 + 1 + 2 + 2 + 3)):
            longest = b"v" * (self.MOST_BYTES - n_bytes)
            told = self.refused(text_tag("XX", longest + b"v"), "-t", "XX", *options)
            self.assertTrue(told.endswith("shorten or remove its tag XX"), told)
            records = [bamfile.record(name="r1", tid=0, pos=0, cigar="1M", seq="A",
                                      aux=text_tag("XX", value))
                       for value in (longest, longest[:-1] + b"u", longest[:-1])]
            self.sort_ok("-t", "XX", *options, "-o", self.path("out.bam"), self.write_bam(records))
            self.assertEqual(bamfile.split(bamfile.read(self.path("out.bam")).records),
                             records[:0:-1] + records[:1])
            os.unlink(self.path("out.bam"))

    def test_cell_barcodes_and_molecules_count_together(self):
        told = self.refused(text_tag("CB", b"c" * 40_000) + text_tag("MI", b"m" * 30_000),
                            "--template-coordinate")
        self.assertTrue(told.endswith("shorten or remove its tags CB and MI"), told)
