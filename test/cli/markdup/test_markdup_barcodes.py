"""--markdup="--barcode-tag RX" where only one read of a pair has the tag: --fixmate copies it, so
samtools 1.24 gets input in which the test has copied it. Barcodes in names, and warnings."""

import random
import re

import bamfile
import mate_barcodes
import templates
from harness import CliTest, needs_pysam, reference_ok
from test_markdup import (HEADER, MUNMAP, PAIRED, QCFAIL, READ1, READ2, REVERSE, SMALL_BUFFERS,
                          SPILLING, SUPPLEMENTARY, UNMAP, MarkdupTest, cases, pair, read)

BARCODE = "--barcode-tag RX"
WAYS = ({}, {"env": SMALL_BUFFERS}, {"budget": SPILLING, "env": SMALL_BUFFERS})


def half(name, left, right, barcode, lacking, score="?"):
    """A pair with a barcode; read `lacking`, 1 or 2, does not have it."""
    lines = pair(name, left, right, score, [f"RX:Z:{barcode}"])
    lines[lacking - 1] = lines[lacking - 1].rsplit("\t", 1)[0]
    return lines


def half_tagged(seed, n_templates, names=None):
    """SAM text of molecules, in which many records have no barcode though their mate has one."""
    made = templates.Molecules(seed, names=names)
    lines = [line for _ in range(n_templates)
             for line in cases.draw_half_tagged(made.rng, made.template())]
    return made.header() + "".join(line + "\n" for line in lines)


class BarcodeTest(MarkdupTest):
    def wanted(self, source, options=(), fixmate=True):
        """samtools gets an input in which the test has copied the barcodes, if --fixmate copies."""
        text = " ".join(options)
        if BARCODE not in text or "--barcode-own" in text or not fixmate:
            return super().wanted(source, [text.replace("--barcode-own", "")], fixmate)
        plain, filled = self.path("want.plain.bam"), self.path("want.filled.bam")
        reference_ok("view", "--no-PG", "-u", "-o", plain, source)
        mate_barcodes.fill(plain, "RX", filled)
        return super().wanted(filled, options)


@needs_pysam
class Pairs(BarcodeTest):
    """Few reads, and which of them are duplicates."""

    LINES = (half("a", 9, 90, "AC", 1) + half("b", 9, 90, "AC", 2) +
             pair("c", 9, 90, "@", ["RX:Z:AC"]) + half("d", 9, 90, "AG", 1, "I") +
             half("e", 9, 90, "AG", 2) + pair("f", 9, 90) + pair("g", 9, 90, "5"))

    def test_fixmate_copies_the_barcode_of_the_mate(self):
        want = sorted(f"{name}/{i}" for name in "abeg" for i in (1, 2))
        for how in WAYS:
            for threads in ("1", "4"):
                self.assertEqual(self.marked(self.LINES, BARCODE, **how), want, (how, threads))
        self.assertEqual(self.marked(self.LINES, BARCODE + " -m s"), want)
        for fields in self.check(self.LINES, BARCODE):
            self.assertEqual(fields[0] in "abcde", any(tag[:5] == "RX:Z:" for tag in fields[11:]))

    def test_all_or_none_have_the_tag(self):
        for barcodes in ((), ("RX:Z:AC",)):
            lines = pair("a", 9, 90, "@", barcodes) + pair("b", 9, 90, "?", barcodes)
            for how in WAYS:
                self.assertEqual(self.marked(lines, BARCODE, **how), ["b/1", "b/2"])

    def test_barcode_own_copies_nothing(self):
        got = self.marked(self.LINES, BARCODE + " --barcode-own")
        self.assertEqual(got, ["a/1", "a/2", "b/1", "e/2", "f/1", "f/2", "g/1", "g/2"])
        lines = half("a", 9, 90, "AC", 1) + pair("b", 9, 90, "@", ["RX:Z:AC"])
        self.assertEqual(self.marked(lines, BARCODE + " --barcode-own"), ["a/2"])
        self.assertEqual(self.marked(lines, BARCODE), ["a/1", "a/2"])

    def test_without_fixmate_each_read_has_its_own_barcode(self):
        fixed, by_place = self.path("fixed.bam"), self.path("by_place.bam")
        source = self.write("in.sam", HEADER + "".join(line + "\n" for line in self.LINES))
        reference_ok("fixmate", "-m", "--no-PG", source, fixed)
        reference_ok("sort", "--no-PG", "-o", by_place, fixed)
        for path in (fixed, by_place):
            want = bamfile.read(self.wanted(path, [BARCODE], fixmate=False))
            for how in WAYS:
                got = self.sort_bam("-u", f"--markdup={BARCODE}", path, **how)
                self.assert_same_records(got.records, want.records)

    def test_mates_with_other_barcodes_keep_their_own(self):
        lines = pair("a", 9, 90, "@", ["RX:Z:AC"]) + pair("b", 9, 90, "?", ["RX:Z:AC"])
        lines[3] = lines[3].replace("RX:Z:AC", "RX:Z:AG")
        self.assertEqual(self.marked(lines, BARCODE), ["b/1"])

    def test_mates_that_are_not_examined(self):
        """An unmapped or failed mate gives its barcode, too; another alignment does not."""
        lines = pair("a", 9, 90, "@", ["RX:Z:AC"])
        failed = half("b", 9, 90, "AC", 1)
        flag = PAIRED | READ2 | REVERSE
        failed[1] = failed[1].replace(f"\t{flag}\t", f"\t{flag | QCFAIL}\t")
        self.assertEqual(self.marked(lines + failed, BARCODE), ["b/1"])
        self.assertEqual(self.marked(lines + failed, BARCODE, "--barcode-own"), [])
        unmapped = [read("c", PAIRED | READ1 | MUNMAP, 9),
                    read("c", PAIRED | READ2 | UNMAP, 0, tags=["RX:Z:AC"])]
        self.assertEqual(self.marked(lines + unmapped, BARCODE), ["c/1"])
        self.assertEqual(self.marked(lines + unmapped, BARCODE, "--barcode-own"), [])
        others = pair("d", 9, 90) + [read("d", PAIRED | READ1 | SUPPLEMENTARY, 5000,
                                          tags=["RX:Z:AC"])]
        self.assertEqual(self.marked(lines + others, BARCODE), [])

    def test_three_primary_reads_of_one_name(self):
        lines = (half("a", 9, 90, "AC", 1) + [read("a", PAIRED | READ2, 500)] +
                 half("b", 9, 90, "AC", 2) + [read("b", PAIRED | READ2, 500, tags=["RX:Z:AG"])])
        self.check(lines, BARCODE)

    def test_tag_that_is_no_barcode_is_kept_and_not_copied(self):
        """A number, or an empty text; a number is said in a warning."""
        for tag in ("RX:i:5", "RX:Z:"):
            lines = pair("a", 9, 90, "@", ["RX:Z:AC"]) + half("b", 9, 90, "AC", 1)
            lines[2] += "\t" + tag
            self.assertEqual(self.marked(lines, BARCODE), ["b/2"])
            lines[3] = lines[3].replace("RX:Z:AC", tag)
            self.assertEqual(self.marked(lines, BARCODE), [])
            source = self.write("in.sam", HEADER + "".join(line + "\n" for line in lines))
            result = self.sort_ok("--fixmate", "--markdup=" + BARCODE, "-o", self.path("out.bam"),
                                  source)
            self.assertEqual("2 reads have a number in the tag of --barcode-tag" in result.err,
                             tag == "RX:i:5")


class Names(CliTest):
    """Barcodes in names, and what is said if there are none."""

    def run_on(self, lines, option, *words):
        """The names of marked records, and the warnings."""
        source = self.write("in.sam", HEADER + "".join(line + "\n" for line in lines))
        result = self.sort_ok("-O", "sam", "--fixmate", f"--markdup={option}", *words, source)
        fields = [line.split("\t") for line in result.out.decode("latin-1").splitlines()]
        return ([line[0] for line in fields if line[0][:1] != "@" and int(line[1]) & 1024],
                re.findall("warning: (.*)", result.err))

    def test_run_names_may_have_hyphens_and_underscores(self):
        names = [f"AV234103:2026-08-27_MOON:2552413655:1:10901:0465:{i:04}:{umi}"
                 for i, umi in enumerate(("CCGGGG", "CCGGGG", "TTTTTT", "TTT-TTT", "TTTTTT"))]
        lines = [line for name in names for line in pair(name, 9, 90)]
        self.assertEqual(self.run_on(lines, "--barcode-name"),
                         ([names[1], names[4], names[1], names[4]], []))

    def test_barcode_of_any_name_follows_the_seventh_colon(self):
        """The barcode is what follows the seventh colon, whatever stands before it."""
        rng, names = random.Random(5), []
        for _ in range(300):
            fields = ["".join(rng.choices("aZ9_-+./#!~", k=rng.randint(0, 3)))
                      for _ in range(rng.choice((6, 7, 7, 7, 7, 8)))]
            fields.append(rng.choice(("", "AC", "rAC", "AC+GT", "AC-GT", "A_C", "A:C", "AC/1")))
            names.append("q" + ":".join(fields))
        want, seen = [], set()
        for name in names:
            barcode = (name.split(":", 7) + 8 * [""])[7]
            want += [name] * (barcode in seen)
            seen.add(barcode)
        got, warnings = self.run_on([read(name, 0, 9) for name in names], "--barcode-name")
        self.assertEqual(got, want)
        self.assertRegex(warnings[0], r"^\d+ reads have no barcode where --markdup looks")

    def test_most_reads_have_no_barcode(self):
        """This is said also when quiet: the marks are hardly those that were wanted."""
        plain = [line for i in range(3) for line in pair(f"q{i}", 9, 90)]
        good = [line for i in range(2) for line in pair(f"1:2:3:4:5:6:{i}:AC", 9, 90, tags=["RX:Z:A"])]
        halves = [line for i in range(3) for line in half(f"h{i}", 9, 90, "AC", 2)]
        numbers = [line + "\tRX:i:5" for line in plain]
        name, rgx, tag = "--barcode-name", "--barcode-rgx :([ACGT]+)$", BARCODE
        for lines, option, count, words in (
                (plain + good, name, "6 of 10", "--barcode-name finds"),
                (plain + good, rgx, "6 of 10", "--barcode-rgx finds"),
                (plain + good, tag, "6 of 10", "--barcode-tag RX finds"),
                (plain + good, tag + " --barcode-own", "6 of 10", "give the right tag"),
                (numbers, tag, "6 of 6", "or --barcode-name"),
                (halves + plain[:2], tag + " --barcode-own", "5 of 8", "--barcode-tag RX finds"),
                ([read("a:b", 0, 9)], name, "1 of 1", "give --barcode-rgx or")):
            for quiet in ((), ("--quiet",)):
                with self.subTest(option=option, count=count, quiet=quiet):
                    _, warnings = self.run_on(lines, option, *quiet)
                    self.assertIn(f"finds no barcode in {count} reads", warnings[0])
                    self.assertIn(words, warnings[0])
                    self.assertEqual(len(warnings), 2 if lines is numbers and not quiet else 1)
        for lines, option in ((good + plain[:4], name), (good + plain[:4], tag), (halves, tag),
                              (halves + plain[:2], tag), (good + [read("u", UNMAP, 0)] * 9, name),
                              (good, name), ([], name), (plain, "-S")):
            with self.subTest(option=option, n=len(lines)):
                self.assertEqual(self.run_on(lines, option, "--quiet")[1], [])


@needs_pysam
class Hashes(MarkdupTest):
    def test_barcodes_of_one_hash(self):
        """samtools compares hashes of 32 bits, and so these; their barcodes differ."""
        lines = [read(name, 0, 9, tags=[f"RX:Z:{barcode}"])
                 for name, barcode in (("a", "AAAGTAAAGGAC"), ("b", "AGCAGTGGTGAG"))]
        source = self.write("in.sam", HEADER + "".join(line + "\n" for line in lines))
        for path, want in ((self.wanted(source, [BARCODE]), ["b"]),
                           (self.path("out.bam"), [])):
            if not want:
                self.sort_ok("--markdup=" + BARCODE, "-o", path, source)
            reference_ok("view", "--no-PG", "-f", "1024", "-o", self.path("marked.sam"), path)
            with open(self.path("marked.sam"), encoding="ascii") as file:
                self.assertEqual([line.split("\t")[0] for line in file], want)


@needs_pysam
class Molecules(BarcodeTest):
    """Many reads in all ways."""

    OPTIONS = ("", "-S", "-t -S", "-d 100", "-t -d 100 -S --duplicate-count", "--use-read-groups",
               "-m s", "--include-fails -r", "-S -c --duplicate-count --use-read-groups")

    def setUp(self):
        super().setUp()
        self.source = self.write("in.sam", half_tagged(12, 4000, "illumina"))

    def test_many_half_tagged_templates(self):
        for options in self.OPTIONS:
            want = bamfile.read(self.wanted(self.source, [BARCODE, options]))
            for threads, how in zip("141", WAYS):
                with self.subTest(options=options, how=how, threads=threads):
                    got = self.sort_bam("-u", "-@", threads, "--fixmate",
                                        f"--markdup={BARCODE} {options}", self.source, **how)
                    self.assert_same_records(got.records, want.records, options)
        plain = bamfile.split(bamfile.read(self.path("want.plain.bam")).records)
        self.assertGreater(len(mate_barcodes.copied_tags(plain, "RX")), 1000)

    def test_statistics_of_half_tagged_templates(self):
        self.wanted(self.source, [BARCODE])
        texts = []
        for source in (self.path("want.filled.bam"), self.source):
            self.sort_ok("--fixmate", f"--markdup=-S -f stats {BARCODE}", "-o", "out.bam", source,
                         cwd=self.work)
            with open(self.path("stats"), encoding="ascii") as file:
                texts.append([line for line in file if not line.startswith("COMMAND")])
        self.assertEqual(*texts)

    def test_large_templates_get_the_barcode_of_the_mate(self):
        lines = half("a", 9, 90, "AC", 1) + pair("b", 9, 90, "@", ["RX:Z:AC"])
        more = [read("a", PAIRED | READ1 | SUPPLEMENTARY, 5000 + i) for i in range(3000)]
        for first, last in ((lines[:1], lines[1:2]), (lines[1:2], lines[:1])):
            self.assertEqual(self.marked(first + more + last + lines[2:], BARCODE,
                                         budget=SPILLING, env=SMALL_BUFFERS), ["a/1", "a/2"])
