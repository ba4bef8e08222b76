"""Keys that are longer than what is stored of them: the records themselves decide then.

The order must be that of samtools 1.24, in memory and spilled, whatever the threads and the budget;
and memory must stay within the budget, also if all records share the beginning of their keys.
"""

import json
import random
import unittest

import bamfile
from harness import CliTest, needs_pysam, reference_ok

STORED_BYTES = 512  # SORT_KEY_STORED_BYTES
# Small ones make hundreds of runs of a few records each, and piles that do not fit into memory.
BUDGETS = (None, 60_000, 400_000)
HEADER = ("@HD\tVN:1.6\n@SQ\tSN:c\tLN:100000\n@RG\tID:g\tLB:l\n", [("c", 100000)])


def text_tag(name, value):
    return name.encode() + b"Z" + value + b"\0"


def values(rnd, n):
    """Values that share their beginnings: at all lengths around the stored part, with many ties."""
    shared = bytes(rnd.choices(b"acgt", k=3000))
    made = []
    for _ in range(n):
        length = rnd.choice((0, 5, STORED_BYTES - 3, STORED_BYTES - 2, STORED_BYTES - 1,
                             STORED_BYTES, STORED_BYTES + 1, 700, 1500, 2900))
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
    def test_tag(self):
        rnd = random.Random(31)
        source = self.write_bam(self.tagged(rnd, values(rnd, 1500)))
        self.check(source, "-t", "XX")
        self.check(source, "-t", "XX", "-n")
        self.check(source, "-t", "XX", "-N")

    @needs_pysam
    def test_one_long_value(self):
        """All records have the same stored key: only their last bytes, or nothing, differ."""
        rnd = random.Random(32)
        shared = bytes(rnd.choices(b"acgt", k=2000))
        for ends in ((b"",), (b"a", b"b", b"ba", b""), None):
            texts = [shared + (rnd.choice(ends) if ends else b"%d" % rnd.randrange(10**6))
                     for _ in range(800)]
            self.check(self.write_bam(self.tagged(rnd, texts, 40)), "-t", "XX")

    @needs_pysam
    def test_runs_of_piles(self):
        """Several values, each of them in more records than fit into memory, among others."""
        rnd = random.Random(33)
        long = [bytes(rnd.choices(b"acgt", k=1000)) for _ in range(4)]
        long += [long[0][:600] + bytes(rnd.choices(b"acgt", k=900)) for _ in range(30)]
        texts = [rnd.choice(long) + bytes(rnd.choices(b"ab", k=3)) for _ in range(1500)]
        texts += [bytes(rnd.choices(b"acgt", k=20)) for _ in range(500)]
        rnd.shuffle(texts)
        self.check(self.write_bam(self.tagged(rnd, texts)), "-t", "XX")

    @needs_pysam
    def test_template(self):
        """Cell barcodes and molecular identifiers."""
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
        """The longest keys by name are stored whole."""
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

class Work(LongKeysTest):
    """How much is read of piles that do not fit into memory."""

    def piles(self, texts, budget, n_bases=0):
        """Sorts records with these texts; returns what --stats says of piles, and the number of
        files."""
        source = self.write_bam(self.tagged(random.Random(36), texts, n_bases))
        stats, out = self.path("stats.json"), self.path("out.bam")
        # Runs are one file each: with more files blocks are so small that all fit.
        self.sort_ok("-t", "XX", "-@", "2", "-u", "--stats", stats, "-o", out, source,
                     budget=budget, env={"ROCKSORT_TEST_FILE": "1G"})
        self.sort_ok("--verify", "-t", "XX", out)
        with open(stats, encoding="utf-8") as file:
            data = json.load(file)
        return data["piles"], data["scan"]["files"]

    def test_many_piles(self):
        """Each of many piles is read in a few passes. Once each run of each pile was sought, and
        each block found by its key, for which RocksDB asks all files: 60,000 records of 40 values
        took 47 s, and 2 s with short values."""
        rnd = random.Random(37)
        long = [bytes(rnd.choices(b"acgt", k=1000)) for _ in range(8)]
        texts = [rnd.choice(long) + b"%d" % rnd.randrange(1000) for _ in range(8000)]
        piles, n_files = self.piles(texts, 400_000)
        self.assertGreater(n_files, 60)
        self.assertEqual(piles["piles"], len(long))
        self.assertLess(piles["seeks"], 16 * len(long))
        self.assertLess(piles["steps"], 16 * piles["blocks"])
        self.assertLess(piles["reads"], 8 * piles["blocks"])
        self.assertEqual(piles["gets"], 0)

    def test_outlier(self):
        """Keys are compared by what follows the bytes that they share with another key. If this key
        was unlike all others, blocks were once read again whenever two of them were compared."""
        rnd = random.Random(38)
        shared = bytes(rnd.choices(b"acgt", k=700))
        texts = [shared + b"%d" % rnd.randrange(1000) for _ in range(1500)]
        for outlier in (b"", shared[:STORED_BYTES] + b"!" * 100, shared[:STORED_BYTES] + b"~" * 100):
            with self.subTest(outlier=outlier[-1:]):
                piles, n_files = self.piles([outlier, *texts], 400_000, 6000)
                self.assertEqual(piles["piles"], 1)
                self.assertGreater(piles["gets"], 1000)
                self.assertLess(piles["reads"], 2 * piles["blocks"] + 3 * n_files)
                self.assertLess(piles["seeks"], 3 * n_files)

    def test_clusters(self):
        """The same if keys form groups, each of which shares many bytes with itself only."""
        rnd = random.Random(39)
        shared = bytes(rnd.choices(b"acgt", k=STORED_BYTES))
        groups = [shared + bytes(rnd.choices(b"acgt", k=300)) for _ in range(5)]
        texts = [rnd.choice(groups) + b"%d" % rnd.randrange(1000) for _ in range(1500)]
        piles, n_files = self.piles(texts, 400_000, 6000)
        self.assertGreater(piles["gets"], 1000)
        self.assertLess(piles["reads"], 2 * piles["blocks"] + 8 * n_files)

    def test_keys_that_end_near_others(self):
        """A value may end within the bytes that are known of another one. The two once counted as
        equal; then the sort failed at its end, and so did every --resume."""
        rnd = random.Random(40)
        seen, texts = [bytes(rnd.choices(b"acgt", k=600))], []
        for _ in range(6000):
            like = rnd.choice(seen)
            text = like[:rnd.randrange(600, len(like) + 1)]
            text += bytes(rnd.choices(b"aaaaaaag", k=int(rnd.expovariate(1 / 40))))
            texts.append(text)
            seen.append(text)
            if len(seen) > 400:
                seen.pop(rnd.randrange(len(seen)))
        piles, _ = self.piles(texts, 60_000)
        self.assertGreater(piles["gets"], 1000)


if __name__ == "__main__":
    unittest.main()
