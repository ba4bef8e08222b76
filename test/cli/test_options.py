"""What the options of samtools sort mean that are about order and format, --shuffle, and samtools
sort itself run by us. That each order is right for all records is the differential test's."""

import gzip
import itertools
import os
import pathlib
import pty
import random
import re
import subprocess

import bamfile
import generate
from harness import (SAMTOOLS, SAMTOOLS_ROCKSORT, SLOW, SPILL_BUDGET, CliTest, environment,
                     needs_pysam, own_lines, pg_lines, reference, reference_ok, reference_sort,
                     reference_view, sam_split, without_pg)

BUDGETS = (None, SPILL_BUDGET)
REFS = [("b", 20000), ("a", 9000)]


def make_pair(rng, number):
    """Two lines of SAM: a pair that samtools fixmate has seen, or one that lies nowhere."""
    name = rng.choice(("q%d", "q0%d", "Q%d:x")) % rng.randrange(60)
    tags = f"\tXI:i:{number}\tXS:Z:{rng.choice('xyz')}\tMI:Z:{rng.randrange(9)}/A"
    tags += rng.choice(("\tRG:Z:g", "\tRG:Z:h", ""))
    bases = ["".join(rng.choices("ACGT", k=60)) for _ in range(2)]
    if rng.random() < 0.4:
        return [f"{name}\t{flag}\t*\t0\t0\t*\t*\t0\t0\t{seq}\t*{tags}"
                for flag, seq in zip((77, 141), bases)]
    ref, length = rng.choice(REFS)
    places = sorted(rng.choices(range(1, length - 100), k=2))
    return [f"{name}\t{flag}\t{ref}\t{pos}\t9\t60M\t=\t{mate}\t0\t{seq}\t*\tMC:Z:60M{tags}"
            for flag, pos, mate, seq in zip((99, 147), places, places[::-1], bases)]


def pairs(n_pairs, seed=1, head=""):
    """Pairs in random order, which every order of samtools takes."""
    rng = random.Random(seed)
    lines = [line for i in range(n_pairs) for line in make_pair(rng, i)]
    rng.shuffle(lines)
    groups = "@RG\tID:g\tSM:s\tLB:two\n@RG\tID:h\tSM:s\tLB:one\n"
    return head + bamfile.sq_text(REFS) + groups + "\n".join(lines) + "\n"


class OptionTest(CliTest):
    """Refusals."""

    def check_refused(self, *args, mention=(), source=None):
        """One message, exit status 1, no output; nothing else appears."""
        source = source or self.write("in.sam", pairs(5))
        before = set(os.listdir(self.work))
        with self.subTest(args=args):
            result = self.rocksort(*args, "-o", self.path("out.bam"), source)
            after = set(os.listdir(self.work))
            if os.path.exists(self.path("out.bam")):
                os.unlink(self.path("out.bam"))
            self.assert_error(result, *mention)
            self.assertEqual(after, before)


class BadValues(OptionTest):
    """Values that cannot be meant; in the classic form and as samtools sort alike."""

    def test_tag(self):
        """Of two characters. samtools takes any; of one it makes a wrong @HD."""
        for tag in ("", "R", "RGX", "RG:Z"):
            self.check_refused("-t", tag, mention=["-t", f"'{tag}'"])

    def test_numbers(self):
        for option in ("-K", "-w"):
            for value in ("x", "", "5x", "1e3", "0x10", " 5", "+5", "-", "--5", "5 "):
                self.check_refused(option, value, mention=[option, f"'{value}'"])
            self.check_refused("-M", option + "=5", mention=[option, "'=5'"])

    def test_window(self):
        for value in ("0", "-1", "99999999999", "99999999999999999999"):
            self.check_refused("-I", self.write("r.fa", ">r\nACGT\n"), "-w", value,
                               mention=["-w", value])

    def test_seed(self):
        for value in ("", "x", "-1", "+1", "1x", "1.5", "0x10", " 1", "18446744073709551616",
                      "99999999999999999999999"):
            self.check_refused(f"--shuffle={value}", mention=["--shuffle", f"'{value}'"])

    def test_minimiser_reference(self):
        """The file of -I, before anything is sorted."""
        self.check_refused("-I", self.path("none.fa"), mention=["none.fa", "No such file"])
        self.check_refused("-M", "-I", str(self.work), mention=[str(self.work)])
        for name, text in (("empty.fa", ""), ("reads.fa", pairs(5)), ("binary.fa", "\0\1\2" * 99),
                           ("fastq.fa", "@r\nACGT\n+\nFFFF\n")):
            self.check_refused("-I", self.write(name, text), mention=[name])

    def test_format_options(self):
        for option in ("--input-fmt-option", "--output-fmt-option"):
            for value in ("nonsense", "nonsense=1", "", "=1"):
                self.check_refused(option, value, mention=[option, f"'{value}'"])
        self.check_refused("-O", "bam,nonsense=1", mention=["nonsense=1"])

    def test_level_of_format_option(self):
        """samtools refuses it, too; what its -l does with a large number is written there."""
        self.check_refused("--output-fmt-option", "level=12", mention=["level"])

    def test_formats(self):
        for value in ("", "fastq", "fasta", "vcf", "bam.gz", "BAM,x"):
            self.check_refused("-O", value, mention=["output format", f"'{value}'"])


@needs_pysam
class Precedence(OptionTest):
    """Options of the order that contradict each other, and what @HD says in the end."""

    def check(self, *options, source, ours=()):
        """The result is the reference's."""
        with self.subTest(options=options):
            want = reference_sort(source, self.path("want.bam"), *options)
            self.assert_same_bam(self.sort_bam("--no-PG", *options, *ours, source), want)

    def test_last_wins(self):
        """-N stays when -n follows; -t is above all of them."""
        source = self.write("in.sam", pairs(60))
        words = ("-n", "-N", "-M", "--template-coordinate")
        mixtures = list(itertools.permutations(words, 2)) + [words, words[::-1], words[1:] + words]
        for mixture in mixtures:
            self.check(*mixture, source=source)
        for mixture in [(word,) for word in words] + mixtures[::3]:
            self.check("-t", "XS", *mixture, source=source)
            self.check(*mixture, "-t", "XS", source=source)

    def test_index_of_minimisers_is_an_order(self):
        """-I means -M, and the last one counts there, too. Its order may differ from samtools'."""
        source, fasta = self.write("in.sam", pairs(60)), self.write("r.fa", ">r\n" + "ACGGT" * 50)
        for options in (["-I", fasta, "-n"], ["-I", fasta, "-N"],
                        ["-I", fasta, "--template-coordinate"], ["-I", fasta, "-t", "XS"],
                        ["-t", "XS", "-I", fasta]):
            self.check(*options, source=source)
        for options in (["-n", "-I", fasta], ["--template-coordinate", "-I", fasta],
                        ["-M", "-I", fasta]):
            want = reference_sort(source, self.path("want.bam"), *options)
            got = self.sort_bam("--no-PG", *options, source)
            self.assertEqual(got.text, want.text)

    def test_last_tag(self):
        source = self.write("in.sam", pairs(60))
        for options in (["-t", "XS", "-t", "XI"], ["-tXI"], ["-t", "XI", "-n", "-t", "XS"]):
            self.check(*options, source=source)

    def test_tags_that_nobody_has(self):
        """Odd names are names; all records count as without."""
        source = self.write("in.sam", pairs(60))
        for tag in ("zz", "1A", "R!", "--", "  "):
            self.check("-t", tag, source=source)

    def test_without_minimisers(self):
        """Their options alone change nothing."""
        source = self.write("in.sam", pairs(60))
        for options in (["-R"], ["-H"], ["-K", "5"], ["-w", "5"], ["-n", "-R", "-H", "-K", "3"]):
            self.check(*options, source=source)

    def test_hd(self):
        heads = ("", "@HD\tVN:1.0\tSO:coordinate\n", "@HD\tVN:1.6\tGO:query\n",
                 "@HD\tVN:1.6\tSO:unsorted\tGO:query\tSS:unsorted:template-coordinate\txx:kept\n",
                 "@HD\tVN:1.5\tSS:queryname:natural\tSO:queryname\n")
        orders = (["-t", "XS"], ["-t", "XS", "-n"], ["-N", "-t", "XS"], ["--template-coordinate"],
                  ["-M"], ["-M", "-K", "5"])
        for head, order in itertools.product(heads, orders):
            source = self.write("in.sam", pairs(5, head=head))
            with self.subTest(head=head):
                self.check(*order, source=source)

    def test_hd_of_minimisers(self):
        """It depends on whether anything is placed; which is known when all is read."""
        head = bamfile.sq_text(REFS)
        nowhere = "".join(f"u{i}\t4\t*\t0\t0\t*\t*\t0\t0\t{'ACGT' * 10}\t*\n" for i in range(3))
        placed = "p\t0\ta\t1\t0\t4M\t*\t0\t0\tACGT\t*\n"
        lost = "l\t4\t*\t7\t0\t*\t*\t0\t0\tACGT\t*\n"
        for records in ("", nowhere, lost, nowhere + placed, placed,
                        "p\t4\ta\t1\t0\t*\t*\t0\t0\tACGT\t*\n"):
            with self.subTest(records=records):
                self.check("-M", source=self.write("in.sam", head + records))


@needs_pysam
class Minimisers(CliTest):
    """-K, -R and -H have an effect, the same as with samtools."""

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
        self.source = self.write("in.sam", bamfile.sq_text(REFS) + "".join(lines))
        self.fasta = self.write("r.fa", f">r some words\n{genome[:200]}\n{genome[200:]}\n")

    def test_against_reference(self):
        seen = set()
        for options in ([], ["-K", "31"], ["-K", "5"], ["-K1"], ["-R"], ["-H"], ["-R", "-H"],
                        ["-H", "-K", "9"], ["-w", "3"]):
            want = reference_sort(self.source, self.path("want.bam"), "-M", *options)
            for budget in (None, 40_000):
                with self.subTest(options=options, budget=budget):
                    got = self.sort_bam("--no-PG", "-M", *options, self.source, budget=budget)
                    self.assert_same_bam(got, want)
            seen.add(want.records)
        self.assertGreaterEqual(len(seen), 8)  # -w does nothing here

    def test_k_is_clamped(self):
        for given, used in (("0", "1"), ("-5", "1"), ("32", "31"), ("1000000", "31")):
            want = self.sort_bam("--no-PG", "-M", "-K", used, self.source)
            self.assertEqual(self.sort_bam("--no-PG", "-M", "-K", given, self.source), want)
            theirs = reference_sort(self.source, self.path("want.bam"), "-M", "-K", given)
            self.assert_same_bam(want, theirs, given)

    def test_index(self):
        """Whatever its order, records are those that went in or their reverse complements."""
        turned = bytes.maketrans(b"ACGT", b"TGCA")

        def contents(text):
            """What does not change when a record is turned, sorted."""
            lines = [line.split("\t") for line in sam_split(text)[1]]
            return sorted((line[0], min((line[9], line[10]), (
                line[9].encode().translate(turned).decode()[::-1], line[10][::-1])))
                          for line in lines)
        want = contents(reference_view(self.source))
        results = {}
        for options in ([], ["-w", "1"], ["-w", "50"], ["-K", "8"], ["-R"], ["-H"]):
            with self.subTest(options=options):
                out = self.path("out.sam")
                for budget in (None, 40_000):
                    self.sort_ok("--no-PG", "-I", self.fasta, *options, "-o", out, self.source,
                                 budget=budget)
                    text = pathlib.Path(out).read_text(encoding="ascii")
                    self.assertEqual(results.setdefault(tuple(options), text), text)
                if "-R" in options:
                    self.assertEqual(sorted(sam_split(text)[1]),
                                     sorted(sam_split(reference_view(self.source))[1]))
                self.assertEqual(contents(text), want)
        self.assertGreaterEqual(len(set(results.values())), 4)

    def test_compressed_index(self):
        want = self.sort_bam("--no-PG", "-I", self.fasta, self.source)
        with open(self.fasta, "rb") as file:
            data = file.read()
        for name, packed in (("r.fa.gz", gzip.compress(data)), ("b.fa.gz", bamfile.bgzf(data))):
            got = self.sort_bam("--no-PG", "-I", self.write(name, packed), self.source)
            self.assertEqual(got, want, name)


class Shuffle(OptionTest):
    """--shuffle"""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.sam = "@HD\tVN:1.6\tSO:coordinate\tSS:coordinate:minhash\n" + generate.odd(6000)

    def shuffled(self, *options, **how):
        """The Bam with the seed 0 or that of options."""
        words = options if any("shuffle" in word for word in options) else ("--shuffle", *options)
        return self.sort_bam("--no-PG", *words, **{"stdin": self.sam.encode(), **how})

    def test_reproducible(self):
        """Whatever the threads, the memory, the codec and the place of the input."""
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

    def test_seeds(self):
        """Each its own order, of the same records."""
        want = self.sort_bam("--no-PG", stdin=self.sam.encode())
        ordered, seen = sorted(bamfile.split(want.records)), set()
        for seed in ("", "=0", "=1", "=2", "=42", "=4294967296", "=18446744073709551615"):
            got = self.shuffled("--shuffle" + seed)
            self.assertTrue(sorted(bamfile.split(got.records)) == ordered, seed)
            seen.add(got.records)
        self.assertEqual(len(seen), 6)

    def test_is_random(self):
        """Neighbours of the input are not neighbours of the output, nor are places."""
        records = bamfile.split(self.shuffled().records)
        places = [bamfile.fields(raw)[:2] for raw in records]
        n_up = sum(one < other for one, other in zip(places, places[1:]))
        n_down = sum(one > other for one, other in zip(places, places[1:]))
        self.assertLess(abs(n_up - n_down), len(places) / 10)
        self.assertGreater(n_up + n_down, len(places) / 3)

    def test_hd(self):
        text = self.shuffled().text
        self.assertTrue(text.startswith("@HD\tVN:1.6\tSO:unsorted\n"), text[:60])
        text = self.shuffled(stdin=generate.odd(5).encode()).text
        self.assertTrue(text.startswith("@HD\tVN:1.6\tSO:unsorted\n"), text[:60])

    def test_last_order_wins(self):
        source = self.write("in.sam", pairs(50))
        for options, same in ((["-n", "--shuffle"], ["--shuffle"]), (["--shuffle", "-n"], ["-n"]),
                              (["--shuffle=1", "--shuffle=2"], ["--shuffle=2"]),
                              (["--shuffle", "-t", "XS"], ["-t", "XS"]),
                              (["-t", "XS", "--shuffle"], ["-t", "XS"])):
            with self.subTest(options=options):
                self.assertEqual(self.sort_bam("--no-PG", *options, source),
                                 self.sort_bam("--no-PG", *same, source))

    def test_sorts_back(self):
        """What it is for: input for sorters."""
        want = self.sort_bam("--no-PG", "-n", stdin=self.sam.encode())
        source = self.path("shuffled.bam")
        self.sort_ok("--no-PG", "--shuffle=7", "-o", source, stdin=self.sam.encode())
        got = self.sort_bam("--no-PG", "-n", source)
        self.assertEqual(sorted(bamfile.split(got.records)), sorted(bamfile.split(want.records)))

    def test_small(self):
        for n_records in (0, 1, 2):
            sam = generate.odd(n_records) if n_records else bamfile.sq_text(REFS)
            got = self.shuffled(stdin=sam.encode())
            self.assertEqual(len(bamfile.split(got.records)), n_records)


class Formats(OptionTest):
    """Levels and formats of the output."""

    def size(self, *options, sam=generate.reads(400, generate.reference())):
        """Of the output."""
        return len(self.sort_ok("--no-PG", *options, stdin=sam.encode()).out)

    def test_level_of_bam(self):
        """The option of the format wins over -l, as with samtools, wherever it stands."""
        plain = {level: self.size("-l", str(level)) for level in (0, 1, 6, 9)}
        self.assertEqual(sorted(plain.values(), reverse=True), list(plain.values()))
        for level, size in plain.items():
            for options in (["--output-fmt-option", f"level={level}"], ["-O", f"bam,level={level}"],
                            ["-l", "3", "--output-fmt-option", f"level={level}"],
                            ["--output-fmt-option", f"level={level}", "-l", "3"],
                            ["-O", "bam,level=3", "--output-fmt-option", f"level={level}"]):
                with self.subTest(options=options):
                    self.assertEqual(self.size(*options), size)

    def test_level_of_compressed_sam(self):
        plain = {level: self.size("-O", "sam.gz", "-l", str(level)) for level in (0, 1, 6, 9)}
        self.assertEqual(sorted(plain.values(), reverse=True), list(plain.values()))
        self.assertGreater(plain[0], 3 * plain[1])
        for level, size in plain.items():
            for options in (["-O", f"sam.gz,level={level}"],
                            ["-O", "sam.gz", "--output-fmt-option", f"level={level}"]):
                with self.subTest(options=options):
                    self.assertEqual(self.size(*options), size)
        self.assertEqual(self.size("-O", "sam.gz", "-u"), plain[0])

    def test_sam(self):
        """Plain text, whatever -l says; compressed, the same text."""
        sam = pairs(300).encode()
        want = self.sort_ok("--no-PG", "-O", "sam", stdin=sam).out
        self.assertEqual(want.count(b"\n"), 5 + 600)
        for options in (["-l", "9"], ["-u"], ["-l", "0"]):
            self.assertEqual(self.sort_ok("--no-PG", "-O", "sam", *options, stdin=sam).out, want)
        for options in (["-O", "sam.gz"], ["-O", "sam.gz", "-l0"], ["--output-fmt", "sam.gz"],
                        ["-O", "sam.gz,level=9", "-@3"]):
            for budget in (None, 40_000):
                got = self.sort_ok("--no-PG", *options, stdin=sam, budget=budget).out
                self.assertEqual(gzip.decompress(got), want, options)
                self.assertTrue(got.endswith(bamfile.EOF_BLOCK))
        for name in ("o.sam", "o.sam.gz", "o.SAM"):
            self.sort_ok("--no-PG", "-o", self.path(name), stdin=sam)
            data = pathlib.Path(self.path(name)).read_bytes()
            if name.endswith("gz"):
                data = gzip.decompress(data)
            if name != "o.SAM":
                self.assertEqual(data, want, name)

    @needs_pysam
    def test_sam_with_a_level(self):
        """-O sam,level=6: a level asks for compression, as samtools 1.24 has it."""
        source = self.write("in.sam", pairs(300))
        for options in (["-O", "sam,level=6"], ["-O", "sam,level=0"],
                        ["-O", "sam", "--output-fmt-option", "level=6"]):
            with self.subTest(options=options):
                reference_ok("sort", "--no-PG", *options, "-o", self.path("want"), source)
                want = pathlib.Path(self.path("want")).read_bytes()
                got = self.sort_ok("--no-PG", *options, source).out
                if want[:2] == b"\x1f\x8b":
                    self.assertEqual(got[:2], want[:2], "not compressed")
                    got, want = gzip.decompress(got), gzip.decompress(want)
                self.assertTrue(got == want)

    def test_upper_case(self):
        sam = pairs(10).encode()
        self.assertEqual(self.sort_ok("--no-PG", "-O", "SAM", stdin=sam).out,
                         self.sort_ok("--no-PG", "-O", "sam", stdin=sam).out)
        self.assertEqual(self.sort_ok("--no-PG", "-O", "BAM", stdin=sam).out,
                         self.sort_ok("--no-PG", "-O", "bam", stdin=sam).out)

    def test_option_beats_extension(self):
        sam = pairs(10).encode()
        want = self.sort_ok("--no-PG", "-O", "sam", stdin=sam).out
        self.sort_ok("--no-PG", "-O", "sam", "-o", self.path("o.bam"), stdin=sam)
        self.assertEqual(pathlib.Path(self.path("o.bam")).read_bytes(), want)
        self.sort_ok("--no-PG", "-O", "bam", "-o", self.path("o.sam"), stdin=sam)
        bamfile.read(self.path("o.sam"))


@needs_pysam
class Cram(OptionTest):
    """Reference in a file, in the CRAM, or not at all; in and out."""

    OUTPUTS = (["-O", "cram,no_ref=1"], ["-O", "cram", "--output-fmt-option", "no_ref=1"],
               ["-O", "cram", "--reference", "{fasta}"], ["-O", "cram,reference={fasta}"],
               ["-O", "cram,embed_ref=1", "--reference", "{fasta}"],
               ["-O", "cram,version=2.1,no_ref=1"], ["-O", "cram,no_ref=1,level=9"],
               ["-O", "cram,no_ref=1,seqs_per_slice=100", "-@", "3"])

    def setUp(self):
        super().setUp()
        # Neither the program nor the reference may ask the network for sequences.
        for name in ("REF_PATH", "REF_CACHE"):
            old = os.environ.get(name)
            os.environ[name] = ":"
            self.addCleanup(os.environ.__setitem__ if old else os.environ.pop, name,
                            *([old] if old else [None]))
        refs = generate.reference(n_bases=5000)
        self.fasta = self.write("ref.fa", generate.fasta(refs))
        self.source = self.write("in.sam", generate.reads(600, refs))
        self.want = {}

    def cram(self, name, *options):
        """The input as CRAM by the reference samtools."""
        reference_ok("view", "--no-PG", "-C", *options, "-o", self.path(name), self.source)
        return self.path(name)

    def lose_reference(self):
        """Moves the FASTA, so that the UR field of the header leads nowhere; returns its place."""
        os.rename(self.fasta, self.path("moved.fa"))
        if os.path.exists(self.fasta + ".fai"):
            os.unlink(self.fasta + ".fai")
        return self.path("moved.fa")

    def plain(self, line):
        """A record as CRAM keeps it: in tags of another order, without those that it makes up."""
        fields = line.split("\t")
        return fields[:11] + sorted(tag for tag in fields[11:] if tag[:2] not in ("MD", "NM"))

    def check_records(self, path, *options, order=(), source=None):
        """The records of a file are those that the reference sorted; options are for reading."""
        source = source or self.source
        if (order, source) not in self.want:
            out = self.path("want.bam")
            reference_ok("sort", "--no-PG", *order, "-O", "bam", "-o", out, source)
            self.want[order, source] = sam_split(reference_view(out))
        header, records = sam_split(reference_view(path, *options))
        want_header, want_records = self.want[order, source]
        self.assertEqual(len(records), len(want_records))
        for got, want in zip(records, want_records):
            self.assertEqual(self.plain(got), self.plain(want))
        # M5 and UR fields may have been added.
        strip = re.compile(r"\t(M5|UR):[^\t\n]*")
        self.assertEqual(without_pg(strip.sub("", header)),
                         without_pg(strip.sub("", want_header)))

    def test_out(self):
        for words in self.OUTPUTS:
            words = [word.format(fasta=self.fasta) for word in words]
            with self.subTest(words=words):
                out = self.path("out.cram")
                self.sort_ok("--no-PG", *words, "-o", out, self.source, budget=100_000)
                self.check_records(out, "-T", self.fasta)

    def test_out_in_other_orders(self):
        for order in (("-n",), ("-t", "XI"), ("--shuffle",)):
            out = self.path("out.cram")
            self.sort_ok("--no-PG", *order, "-O", "cram", "--reference", self.fasta, "-o", out,
                         self.source)
            if order != ("--shuffle",):
                self.check_records(out, "-T", self.fasta, order=order)

    def test_what_is_in_the_file(self):
        """Sizes tell: no reference, one elsewhere; and what can be read without it."""
        sizes = {}
        for kind, words in (("none", ["no_ref=1"]), ("embedded", ["embed_ref=1"]), ("file", [])):
            out = self.path(kind + ".cram")
            options = [word for one in words for word in ("--output-fmt-option", one)]
            self.sort_ok("--no-PG", "-O", "cram", *options, "--reference", self.fasta, "-o", out,
                         self.source)
            sizes[kind] = os.path.getsize(out)
        self.assertLess(sizes["file"], sizes["embedded"])
        self.assertLess(sizes["embedded"], sizes["none"])
        moved = self.lose_reference()
        for kind in ("none", "embedded"):
            self.check_records(self.path(kind + ".cram"))
        self.check_records(self.path("file.cram"), "-T", moved)
        self.assertFalse(reference("view", "-o", os.devnull, self.path("file.cram")))

    def test_in_without_reference(self):
        """A CRAM that needs none."""
        for name, options in (("none.cram", ["--output-fmt-option", "no_ref=1"]),
                              ("embedded.cram", ["-T", self.fasta, "--output-fmt-option",
                                                 "embed_ref=1"])):
            source = self.cram(name, *options)
            for words in (["-O", "sam"], ["-O", "cram,no_ref=1"], ["-n", "-u"]):
                with self.subTest(name=name, words=words):
                    out = self.path("out")
                    self.sort_ok("--no-PG", "-@", "2", *words, "-o", out, source, budget=100_000)
                    self.check_records(out, order=("-n",) if "-n" in words else ())

    def test_in_with_reference(self):
        """Found by the UR field; named; gone."""
        source = self.cram("in.cram", "-T", self.fasta)
        out = self.path("out")
        self.sort_ok("--no-PG", "-O", "bam", "-o", out, source)
        self.check_records(out)
        moved = self.lose_reference()
        result = self.rocksort("--no-PG", "-O", "bam", "-o", self.path("not.bam"), source)
        self.assertEqual(result.status, 1)
        self.assertEqual(len(own_lines(result.err)), 1, result.err)
        self.assertIn("in.cram", own_lines(result.err)[0])
        self.assertFalse(os.path.exists(self.path("not.bam")))
        for words in (["--reference", moved], ["--input-fmt-option", f"reference={moved}"]):
            for budget in (None, 100_000):
                with self.subTest(words=words, budget=budget):
                    self.sort_ok("--no-PG", "-O", "bam", *words, "-o", out, source, budget=budget)
                    self.check_records(out)
        # In and out at once.
        self.sort_ok("--no-PG", "-O", "cram", "--reference", moved, "-o", out, source)
        self.check_records(out, "-T", moved)
        # From standard input.
        with open(source, "rb") as file:
            self.sort_ok("--no-PG", "-O", "bam", "--reference", moved, "-o", out, stdin=file)
        self.check_records(out)

    def test_several_inputs(self):
        """--reference holds for all of them, also where they are opened twice."""
        header, records = sam_split(pathlib.Path(self.source).read_text(encoding="ascii"))
        names = []
        for at in range(2):
            self.source = self.write("part.sam", header + "\n".join(records[at::2]) + "\n")
            names.append(self.cram(f"in{at}.cram", "-T", self.fasta))
        whole = self.write("in.sam", header + "\n".join(records[::2] + records[1::2]) + "\n")
        moved = self.lose_reference()
        out = self.path("out")
        for words in (["-O", "bam"], ["-O", "cram"]):
            self.sort_ok("--no-PG", *words, "--reference", moved, "-o", out, *names,
                         budget=100_000)
            self.check_records(out, "-T", moved, source=whole)

    def test_embedding_needs_a_reference(self):
        result = self.rocksort("-O", "cram,embed_ref=1", "-o", self.path("out.cram"), self.source)
        self.assert_error(result, "out.cram")
        self.assertFalse(os.path.exists(self.path("out.cram")))

    def test_reference_that_is_not_there(self):
        """The message is about that file, not about one that is all right."""
        source = self.cram("in.cram", "--output-fmt-option", "no_ref=1")
        for words, name in ((["-O", "cram"], self.source), (["-O", "bam"], source)):
            self.check_refused(*words, "--reference", self.path("none.fa"), source=name,
                               mention=["none.fa"])

    def test_tags_that_are_made_up(self):
        """decode_md=0 is for the reader."""
        source = self.cram("in.cram", "-T", self.fasta)
        for value, made in (("0", 0), ("1", 1)):
            got = self.sort_ok("-O", "sam", "--input-fmt-option", f"decode_md={value}", source).out
            self.assertEqual(b"\tMD:Z:" in got, bool(made))

    def test_wrong_reference(self):
        """Another sequence under the same name: the checksum in the CRAM tells."""
        source = self.cram("in.cram", "-T", self.fasta)
        other = self.write("other.fa", generate.fasta(generate.reference(seed=9, n_bases=5000)))
        result = self.rocksort("--reference", other, "-o", self.path("out.bam"), source)
        self.assertEqual(result.status, 1)
        self.assertEqual(len(own_lines(result.err)), 1, result.err)
        self.assertFalse(os.path.exists(self.path("out.bam")))


@needs_pysam
class Filter(CliTest):
    """--input-fmt-option filter=EXPRESSION: only some of the records are sorted."""

    EXPRESSIONS = ("flag.unmap", "pos>5000", '[XS]=="x" && mapq==9', "1", "0", "qname=~\"^q0\"")

    def test_formats(self):
        sam = pairs(1500)
        source = self.write("in.sam", sam)
        for name, words in (("in.bam", ["-b"]), ("in.cram", ["-C", "--output-fmt-option",
                                                             "no_ref=1"])):
            reference_ok("view", "--no-PG", *words, "-o", self.path(name), source)
        self.write("in.sam.gz", bamfile.bgzf(sam.encode()))
        for expression in self.EXPRESSIONS:
            words = ["--input-fmt-option", f"filter={expression}"]
            want = reference_sort(source, self.path("want.bam"), *words)
            for name in ("in.sam", "in.bam", "in.cram", "in.sam.gz"):
                budget = SPILL_BUDGET if name == "in.bam" else None
                with self.subTest(expression=expression, name=name):
                    got = self.sort_bam("--no-PG", "-@", "2", *words, self.path(name),
                                        budget=budget)
                    if name == "in.cram":
                        # Its tags are in another order, and the header may have other fields.
                        self.assertEqual([raw[:36] for raw in bamfile.split(got.records)],
                                         [raw[:36] for raw in bamfile.split(want.records)])
                    else:
                        self.assert_same_bam(got, want)

    def test_several_inputs(self):
        sources = [self.write(f"in{seed}.sam", pairs(200, seed=seed)) for seed in (1, 2)]
        sources.append(self.bam_of(pairs(200, seed=3)))
        words = ["--input-fmt-option", "filter=flag.unmap"]
        got = self.sort_bam("--no-PG", *words, "-o", "-", *sources)
        n_want = sum(bool(bamfile.fields(raw)[2] & 4) for raw in bamfile.split(
            self.sort_bam("--no-PG", "-o", "-", *sources).records))
        records = bamfile.split(got.records)
        self.assertEqual(len(records), n_want)
        self.assertTrue(all(bamfile.fields(raw)[2] & 4 for raw in records))

    def test_bad_expression(self):
        for source in (self.write("in.sam", pairs(50)), self.bam_of(pairs(50))):
            for expression in ("(((", "nonsense>1", "pos>"):
                with self.subTest(source=source, expression=expression):
                    result = self.rocksort("--input-fmt-option", f"filter={expression}", "-o",
                                           self.path("out.bam"), source)
                    self.assertEqual(result.status, 1)
                    self.assertEqual(len(own_lines(result.err)), 1, result.err)
                    self.assertFalse(os.path.exists(self.path("out.bam")))


@needs_pysam
class Fastq(CliTest):
    """Reads straight from the sequencer: unmapped, the pair's number from the name."""

    def setUp(self):
        super().setUp()
        rng = random.Random(6)
        self.texts = {"pairs": "", "one": "", "casava": "", "tags": "", "fasta": ""}
        for i in rng.sample(range(500), 300):
            bases = "".join(rng.choices("ACGTN", k=rng.choice((1, 30, 80))))
            qual = "".join(rng.choices("!#,:F~", k=len(bases)))
            body = f"\n{bases}\n+\n{qual}\n"
            self.texts["pairs"] += f"@r{i}/1{body}@r{i}/2{body}"
            self.texts["one"] += f"@r{i} a comment{body}"
            self.texts["casava"] += f"@r{i} {1 + i % 2}:{'NY'[i % 3 == 0]}:0:ACGT{body}"
            self.texts["tags"] += f"@r{i}\tRG:Z:g{i % 3}\tBC:Z:ACGT{body}"
            self.texts["fasta"] += f">r{i} a comment\n{bases[:20]}\n{bases[20:]}\n"

    def check(self, source, *options):
        """As samtools sort."""
        with self.subTest(source=source, options=options):
            want = reference_sort(source, self.path("want.bam"), *options)
            for budget in (None, 40_000):
                got = self.sort_bam("--no-PG", *options, source, budget=budget)
                self.assert_same_bam(got, want)
            return want

    def test_kinds(self):
        for kind, text in self.texts.items():
            source = self.write(kind + (".fa" if kind == "fasta" else ".fq"), text)
            for order in (["-n", "-@", "2"], ["-M"]):
                self.check(source, *order)

    def test_compressed(self):
        data = self.texts["pairs"].encode()
        self.check(self.write("a.fq.gz", gzip.compress(data)), "-n")
        self.check(self.write("b.fq.gz", bamfile.bgzf(data)), "-n")

    def test_input_options(self):
        for kind in ("one", "casava", "tags"):
            source = self.write(kind + ".fq", self.texts[kind])
            for words in (["fastq_aux=RG"], ["fastq_name2"], ["fastq_casava", "fastq_barcode=RX"]):
                options = [word for one in words for word in ("--input-fmt-option", one)]
                self.check(source, *options)
        source = self.write("tags.fq", self.texts["tags"])
        want = self.check(source, "-t", "RG", "--input-fmt-option", "fastq_aux=1")
        self.assertIn(b"RGZg2", want.records)

    def test_as_samtools_import(self):
        """Two steps of samtools give the same."""
        for kind, option in (("one", "-0"), ("pairs", "-s")):
            source = self.write(kind + ".fq", self.texts[kind])
            reference_ok("fqimport", "--no-PG", option, source, "-o", self.path("imported.bam"))
            for order in (["-n"], ["-M"]):
                want = reference_sort(self.path("imported.bam"), self.path("want.bam"), *order)
                got = self.sort_bam("--no-PG", *order, source)
                self.assert_same_records(got.records, want.records, kind)

    def test_standard_input(self):
        data = self.texts["pairs"].encode()
        want = self.sort_bam("--no-PG", "-n", self.write("a.fq", data))
        self.assertEqual(self.sort_bam("--no-PG", "-n", stdin=data), want)

    def test_damaged(self):
        """Cut off in a record: never a result that looks whole."""
        data = self.texts["one"].encode()
        source = self.write("cut.fq", data[: data.rindex(b"+")] + b"+\nFF")
        self.assertEqual(reference("sort", "-o", self.path("want.bam"), source), False)
        result = self.rocksort("-o", self.path("out.bam"), source)
        self.assert_error(result, "cut.fq")
        self.assertFalse(os.path.exists(self.path("out.bam")))


class TemplateErrors(OptionTest):
    """--template-coordinate needs the tags that samtools fixmate -m adds."""

    def check_tags(self, bad, *mention, flag=99):
        """A good pair in front of it does not help a record with bad tags."""
        good = [line + "\n" for line in make_pair(random.Random(2), 1)]
        line = f"the-bad\t{flag}\ta\t5\t9\t4M\t=\t50\t0\tACGT\t*{bad}\n"
        for n_good in (0, 1, 5000):
            sam = bamfile.sq_text(REFS) + "".join(good[:1] * n_good) + line
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

    def test_no_mate_cigar(self):
        self.check_tags("", "MC", "samtools fixmate -m")
        self.check_tags("\tXX:Z:4M\tmc:Z:4M", "MC", "samtools fixmate -m", flag=147)

    def test_mate_cigar_of_wrong_type(self):
        for value in ("i:4", "A:4", "B:c,4", "f:4"):
            self.check_tags(f"\tMC:{value}", "MC", "samtools fixmate -m")

    def test_molecule_of_wrong_type(self):
        for value in ("i:4", "A:4", "B:c,4", "f:4"):
            self.check_tags(f"\tMC:Z:4M\tMI:{value}", "MI")

    def test_molecule_advice(self):
        """What the issue asks for; fixmate does not make this tag, though."""
        self.check_tags("\tMC:Z:4M\tMI:i:4", "MI", "samtools fixmate -m")

    @needs_pysam
    def test_what_needs_no_tags(self):
        """Single reads, and mates that are unmapped; text in MC that is no CIGAR is text."""
        head = bamfile.sq_text(REFS)
        for flag, tags in ((0, ""), (16, "\tMC:i:4"), (73, ""), (4, ""), (99, "\tMC:Z:*"),
                           (99, "\tMC:Z:"), (99, "\tMC:Z:4M\tRG:i:4"), (99, "\tMC:Z:4M\tMI:Z:")):
            with self.subTest(flag=flag, tags=tags):
                line = f"q\t{flag}\ta\t5\t9\t4M\t=\t50\t0\tACGT\t*{tags}\n"
                source = self.write("in.sam", head + line)
                want = reference_sort(source, self.path("want.bam"), "--template-coordinate")
                got = self.sort_bam("--no-PG", "--template-coordinate", source)
                self.assert_same_bam(got, want)

    def test_other_orders_do_not_care(self):
        line = "q\t99\ta\t5\t9\t4M\t=\t50\t0\tACGT\t*\tMI:i:4\n"
        source = self.write("in.sam", bamfile.sq_text(REFS) + line)
        for options in ([], ["-n"], ["-M"], ["--template-coordinate", "-n"], ["--shuffle"]):
            self.sort_ok(*options, source)


class AsSamtoolsSort(CliTest):
    """SAMTOOLS_SORT=rocksort samtools sort ..."""

    FAKE = "#!/bin/sh\necho \"fake $*\"\nexit 37\n"

    def setUp(self):
        super().setUp()
        self.source = self.write("in.sam", pairs(200))
        folder = self.work / "bin"
        folder.mkdir()
        (folder / "samtools").write_text(self.FAKE)
        (folder / "samtools").chmod(0o755)

    def samtools(self, *args, sort="rocksort", program=SAMTOOLS, **how):
        """Runs the front end, before a fake upstream, with SAMTOOLS_SORT set or not."""
        env = environment(self.scratch, extra={"PATH": str(self.work / "bin")})
        env.pop("SAMTOOLS_SORT", None)
        if sort is not None:
            env["SAMTOOLS_SORT"] = sort
        before = self.directories()
        result = self.run_program([program, *args], env_only=env, **how)
        self.assert_clean(before, result)
        return result

    def files(self):
        """The files in work."""
        return sorted(set(os.listdir(self.work)) - {"bin"})

    def test_sorts_as_rocksort(self):
        for options in ([], ["-n"], ["-N"], ["-t", "XS"], ["-n", "-t", "XI"], ["-M", "-K10"],
                        ["--template-coordinate"], ["-@", "2", "-m", "3M", "-l", "1"],
                        ["-O", "sam"], ["--threads=2", "--output-fmt=bam,level=0"]):
            with self.subTest(options=options):
                want = self.sort_ok("--no-PG", *options, self.source).out
                result = self.samtools("sort", "--no-PG", *options, self.source)
                self.assertEqual(result.status, 0, result.err)
                self.assertEqual(result.out, want)
                out = self.path("out")
                form = [] if "-O" in options else ["-O", "bam"]
                result = self.samtools("sort", "--no-PG", *options, *form, "-o", out, self.source)
                self.assertEqual(result.out, b"")
                if "--output-fmt=bam,level=0" not in options:
                    self.assertEqual(pathlib.Path(out).read_bytes(), want)

    def test_standard_input(self):
        data = pathlib.Path(self.source).read_bytes()
        want = self.sort_ok("--no-PG", self.source).out
        for args in ([], ["-"], ["-o", "-"], ["-", "-o", "-"]):
            result = self.samtools("sort", "--no-PG", *args, stdin=data)
            self.assertEqual(result.out, want, args)

    def test_command_line_in_the_header(self):
        result = self.samtools("sort", "-n", "-O", "sam", "in.sam")
        text = sam_split(result.out.decode())[0]
        self.assertEqual([line["CL"] for line in pg_lines(text)],
                         ["samtools sort -n -O sam in.sam"])
        self.assertEqual(pg_lines(text)[0]["PN"], "samtools")

    def test_two_files(self):
        """Two inputs and no name for the output: refused. The second is no prefix, whatever it is
        called and whether it is there or not."""
        self.write("other.sam", pairs(10))
        for args in (["in.sam", "out"], ["in.sam", "other.sam"], ["in.sam", "out.bam"],
                     ["-n", "in.sam", "out"], ["-f", "in.sam", "out"], ["-", "out"],
                     ["in.sam", "in.sam", "in.sam"], ["in.sam", "-"]):
            with self.subTest(args=args):
                result = self.samtools("sort", *args, stdin=pairs(5).encode())
                self.assert_error(result, "-o")
                self.assertEqual(result.out, b"")
                self.assertEqual(self.files(), ["in.sam", "other.sam"])

    def test_several_files_with_a_name(self):
        self.write("other.sam", pairs(10, seed=2))
        result = self.samtools("sort", "--no-PG", "-o", "out.bam", "in.sam", "other.sam")
        self.assertEqual(result.status, 0, result.err)
        want = self.sort_bam("--no-PG", "-o", "-", "in.sam", "other.sam")
        self.assertEqual(bamfile.read(self.path("out.bam")), want)

    def test_usage(self):
        for args in (["--help"], ["-h"]):
            result = self.samtools("sort", *args)
            self.assertEqual(result.status, 0, result.err)
            self.assertIn("Usage: samtools sort", result.out.decode())
            self.assertNotIn("prefix", result.out.decode().split("Order:", maxsplit=1)[0])

    def test_no_whole_name(self):
        """-f belongs to the classic form."""
        result = self.samtools("sort", "-f", self.write("one.sam", "@SQ\tSN:c\tLN:9\n"))
        self.assertEqual((result.status, result.out), (1, b""))
        self.assertIn("-f", result.err)

    def test_usage_has_no_options_of_the_classic_form(self):
        """Its strict syntax has no use for them."""
        text = self.samtools("sort", "--help").out.decode()
        self.assertNotRegex(text, r"(?m)^ +-f\b")

    def test_no_arguments_on_a_terminal(self):
        try:
            leader, follower = pty.openpty()
        except OSError as error:
            self.skipTest(f"no terminal can be made here: {error}")
        try:
            done = subprocess.run([SAMTOOLS, "sort"], stdin=follower, capture_output=True,
                                  env=environment(self.scratch, extra={"SAMTOOLS_SORT": "rocksort",
                                                                       "PATH": "/nowhere"}),
                                  timeout=20 * SLOW, check=False)
        finally:
            os.close(leader)
            os.close(follower)
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"Usage: samtools sort", done.stdout)

    def test_unknown_option(self):
        for option in ("--nonsense", "-Q", "-Z"):
            result = self.samtools("sort", option, self.source)
            self.assertEqual(result.status, 1)
            self.assertEqual(result.out, b"")
            self.assertIn("Usage: samtools sort", result.err)
            self.assertIn(option.lstrip("-"), result.err.split("Usage")[0])

    def test_errors(self):
        result = self.samtools("sort", "-o", "out.bam", "absent.bam")
        self.assert_error(result, "absent.bam")
        result = self.samtools("sort", "-o", "out.bam", "-t", "R", "in.sam")
        self.assert_error(result, "-t")
        result = self.samtools("sort", "-o", "out.bam", stdin=b"")
        self.assert_error(result, "failed to read header")
        self.assertEqual(self.files(), ["in.sam"])

    def test_no_upstream_is_needed(self):
        os.unlink(self.work / "bin" / "samtools")
        result = self.samtools("sort", "--no-PG", self.source)
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(result.out, self.sort_ok("--no-PG", self.source).out)

    def test_other_values_hand_over(self):
        for value in (None, "", "samtools", "ROCKSORT", "rocksort ", "rocksort2", "1", "upstream"):
            with self.subTest(value=value):
                result = self.samtools("sort", "-n", self.source, sort=value)
                self.assertEqual(result.out.decode(), f"fake sort -n {self.source}\n")
                self.assertEqual(result.status, 37)

    def test_other_commands_hand_over(self):
        for args in (["view", "sort"], ["sorted"], ["Sort"], ["merge", "-n", "x"], ["help", "sort"],
                     ["collate", "-o", "x", "y"]):
            with self.subTest(args=args):
                result = self.samtools(*args)
                self.assertEqual(result.out.decode(), "fake " + " ".join(args) + "\n")
                self.assertEqual(result.status, 37)

    def test_rocksort_keeps_its_own_syntax(self):
        for program, words in ((SAMTOOLS, ["rocksort"]), (SAMTOOLS_ROCKSORT, [])):
            result = self.samtools(*words, "--no-PG", "in.sam", "out", program=program)
            self.assertEqual(result.status, 0, result.err)
            self.assertEqual(self.files(), ["in.sam", "out.bam"])
            os.unlink(self.path("out.bam"))
