"""--markdup="--barcode-tag RX" where only one read of a pair has the tag: both are decided as if both
had it. samtools 1.24 gets input in which the test has filled in what is missing."""

import os
import random
import re
import unittest

import bamfile
import mate_barcodes
import templates
from harness import CliTest, needs_pysam, reference_ok
from test_faults import FaultTest
from test_markdup import (HEADER, MUNMAP, PAIRED, QCFAIL, READ1, READ2, REVERSE, SMALL_BATCHES,
                          SPILLING, SUPPLEMENTARY, UNMAP, MarkdupTest, cases, pair, read)

BARCODE = "--barcode-tag RX"
WAYS = ({}, {"env": SMALL_BATCHES}, {"budget": SPILLING, "env": SMALL_BATCHES})


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
    def filled(self, source, fixmate=True):
        """The sorted input with the barcodes that reads should have in the tag FILLED."""
        fixed, ordered, out = (self.path(f"{name}.bam") for name in ("fixed", "ordered", "filled"))
        if fixmate:
            reference_ok("fixmate", "-m", "-u", "--no-PG", source, fixed)
            source = fixed
        reference_ok("sort", "-u", "--no-PG", "-o", ordered, source)
        mate_barcodes.fill(ordered, "RX", out)
        return out

    def emptied(self, path):
        """The Bam of a file without the tag FILLED."""
        out = self.path("emptied.bam")
        reference_ok("view", "--no-PG", "-u", "-x", mate_barcodes.FILLED, "-o", out, path)
        return bamfile.read(out)

    def wanted(self, source, options=(), fixmate=True):
        text = " ".join(options)
        if BARCODE not in text or "--barcode-own" in text:
            return super().wanted(source, [text.replace("--barcode-own", "")], fixmate)
        marked, out = self.path("want.marked.bam"), self.path("want.bam")
        words = cases.shlex.split(text.replace(BARCODE, f"--barcode-tag {mate_barcodes.FILLED}"))
        reference_ok("markdup", "--no-PG", *cases.WINDOW, *words, self.filled(source, fixmate),
                     marked)
        reference_ok("view", "--no-PG", "-u", "-x", mate_barcodes.FILLED, "-o", out, marked)
        return out


@needs_pysam
class Pairs(BarcodeTest):
    """Few reads, and which of them are duplicates."""

    LINES = (half("a", 9, 90, "AC", 1) + half("b", 9, 90, "AC", 2) +
             pair("c", 9, 90, "@", ["RX:Z:AC"]) + half("d", 9, 90, "AG", 1, "I") +
             half("e", 9, 90, "AG", 2) + pair("f", 9, 90) + pair("g", 9, 90, "5"))

    def test_each_mate_lacking(self):
        """Both reads of each pair are decided alike."""
        want = sorted(f"{name}/{i}" for name in "abeg" for i in (1, 2))
        for how in WAYS:
            for threads in ("1", "4"):
                self.assertEqual(self.marked(self.LINES, BARCODE, **how), want, (how, threads))
        self.assertEqual(self.marked(self.LINES, BARCODE + " -m s"), want)

    def test_none_and_all_lacking(self):
        for barcodes in ((), ("RX:Z:AC",)):
            lines = pair("a", 9, 90, "@", barcodes) + pair("b", 9, 90, "?", barcodes)
            for how in WAYS:
                self.assertEqual(self.marked(lines, BARCODE, **how), ["b/1", "b/2"])

    def test_own(self):
        """As in samtools, each read has the barcode of its own tag only."""
        got = self.marked(self.LINES, BARCODE + " --barcode-own")
        self.assertEqual(got, ["a/1", "a/2", "b/1", "e/2", "f/1", "f/2", "g/1", "g/2"])
        lines = half("a", 9, 90, "AC", 1) + pair("b", 9, 90, "@", ["RX:Z:AC"])
        self.assertEqual(self.marked(lines, BARCODE + " --barcode-own"), ["a/2"])
        self.assertEqual(self.marked(lines, BARCODE), ["a/1", "a/2"])

    def test_barcodes_that_differ(self):
        """Each read has its own then, as in samtools."""
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

    def test_reads_without_mate(self):
        """A read that is not paired has its own barcode only, also if another has its name."""
        lines = [*pair("a", 9, 90, tags=["RX:Z:AC"]), read("b", 0, 9), read("c", PAIRED | READ1, 9),
                 read("d", 0, 9, tags=["RX:Z:AC"])]
        self.assertEqual(self.marked(lines, BARCODE), ["c/1", "d"])
        for name in "bc":
            more = lines + [read("x", 0, 5), read(name, PAIRED | READ2, 700, tags=["RX:Z:AC"])]
            self.assertEqual(self.marked(more, BARCODE), ["c/1", "d"])

    def test_several_templates_of_one_name(self):
        """If their barcodes differ, nobody knows which one a read should have."""
        lines = (pair("best", 9, 90, "@", ["RX:Z:AC"]) + pair("a", 500, 900, tags=["RX:Z:AC"]) +
                 pair("other", 1, 2) + half("a", 9, 90, "AC", 1))
        self.assertEqual(self.marked(lines, BARCODE), ["a/1", "a/2"])
        lines[2:4] = pair("a", 500, 900, tags=["RX:Z:GG"])
        self.assertEqual(self.marked(lines, BARCODE), ["a/2"])

    def test_reads_without_name(self):
        lines = [line for name in ("x", "y") for line in half(name, 9, 90, "AC", 1)]
        fixed = self.fixed_lines(lines)
        self.assertEqual(self.marked(fixed, BARCODE, fixmate=False), ["y/1", "y/2"])
        nameless = [line.replace("x\t", "*\t", 1) if line[0] == "x" else line for line in fixed]
        self.assertEqual(self.marked(nameless, BARCODE, fixmate=False), ["y/2"])

    def fixed_lines(self, lines):
        """The lines after fixmate -m."""
        source, out = self.write("plain.sam", HEADER + "".join(
            line + "\n" for line in lines)), self.path("fixed.sam")
        reference_ok("fixmate", "-m", "--no-PG", "-O", "sam", source, out)
        with open(out, encoding="ascii") as file:
            return [line.rstrip("\n") for line in file if not line.startswith("@")]

    def test_tag_of_another_type(self):
        """It is no barcode, so that of the mate counts; there is a warning."""
        lines = pair("a", 9, 90, "@", ["RX:Z:AC"]) + half("b", 9, 90, "AC", 1)
        lines[2] += "\tRX:i:5"
        self.assertEqual(self.marked(lines, BARCODE), ["b/1", "b/2"])
        source = self.write("in.sam", HEADER + "".join(line + "\n" for line in lines))
        result = self.sort_ok("--fixmate", "--markdup=" + BARCODE, "-o", self.path("out.bam"),
                              source)
        self.assertIn("1 reads have a number in the tag of --barcode-tag", result.err)


class Names(CliTest):
    """Barcodes in names, and what is said if there are none."""

    def run_on(self, lines, option, *words):
        """The names of marked records, and the warnings."""
        source = self.write("in.sam", HEADER + "".join(line + "\n" for line in lines))
        result = self.sort_ok("-O", "sam", "--fixmate", f"--markdup={option}", *words, source)
        fields = [line.split("\t") for line in result.out.decode("latin-1").splitlines()]
        return ([line[0] for line in fields if line[0][:1] != "@" and int(line[1]) & 1024],
                re.findall("warning: (.*)", result.err))

    def test_names_of_element(self):
        """The name of a run may have hyphens and underscores (samtools#2385)."""
        names = [f"AV234103:2026-08-27_MOON:2552413655:1:10901:0465:{i:04}:{umi}"
                 for i, umi in enumerate(("CCGGGG", "CCGGGG", "TTTTTT", "TTT-TTT", "TTTTTT"))]
        lines = [line for name in names for line in pair(name, 9, 90)]
        self.assertEqual(self.run_on(lines, "--barcode-name"),
                         ([names[1], names[4], names[1], names[4]], []))

    def test_random_names(self):
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

    def test_like_filled_input(self):
        for options in self.OPTIONS:
            want = bamfile.read(self.wanted(self.source, [BARCODE, options]))
            for i, how in enumerate(WAYS):
                for threads in ("1", "4"):
                    with self.subTest(options=options, how=how, threads=threads):
                        got = self.sort_bam("-u", "-@", threads, "--fixmate",
                                            f"--markdup={BARCODE} {options}", self.source, **how)
                        self.assert_same_records(got.records, want.records, options)
        self.assertGreater(mate_barcodes.n_half_tagged(self.path("ordered.bam"), "RX"), 1000)

    def test_mismatches(self):
        """Those whose barcodes are in their own tags are the model."""
        filled = self.filled(self.source)
        for options in ("", "-t -d 100", "-S --use-read-groups --duplicate-count", "-m s"):
            words = f"--barcode-mismatches 1 {options}"
            self.sort_ok("-u", f"--markdup=--barcode-tag {mate_barcodes.FILLED} --barcode-own "
                         f"{words}", "-o", self.path("model.bam"), filled)
            want = self.emptied(self.path("model.bam"))
            for how in WAYS:
                for threads in ("1", "4"):
                    got = self.sort_bam("-u", "-@", threads, "--fixmate",
                                        f"--markdup={BARCODE} {words}", self.source, **how)
                    self.assert_same_records(got.records, want.records, words)

    def test_statistics(self):
        """The counts are those of the filled input."""
        texts = []
        for source, option in ((self.filled(self.source), f"--barcode-tag {mate_barcodes.FILLED}"),
                               (self.source, BARCODE)):
            self.sort_ok(*["--fixmate"] * (source == self.source), f"--markdup=-S -f stats {option}",
                         "-o", "out.bam", source, cwd=self.work)
            with open(self.path("stats"), encoding="ascii") as file:
                texts.append([line for line in file if not line.startswith("COMMAND")])
        self.assertEqual(*texts)

    def test_input_without_fixmate(self):
        """Mates need not stand together: sorted by coordinate, by name, and in several files."""
        want = bamfile.read(self.wanted(self.source, [BARCODE]))
        orders = self.path("by_place.bam"), self.path("by_name.bam")
        reference_ok("sort", "--no-PG", "-o", orders[0], self.path("fixed.bam"))
        reference_ok("sort", "--no-PG", "-n", "-o", orders[1], self.path("fixed.bam"))
        for how in WAYS:
            got = self.sort_bam("-u", "-@", "3", f"--markdup={BARCODE}", orders[0], **how)
            self.assert_same_records(got.records, want.records)
            by_name = self.sort_bam("-u", f"--markdup={BARCODE}", orders[1], **how)
            self.assertEqual(sorted(bamfile.split(by_name.records)),
                             sorted(bamfile.split(self.read_wanted(orders[1]).records)))
        halves = []
        for flag in ("64", "128"):
            halves.append(self.path(f"reads.{flag}.bam"))
            reference_ok("view", "--no-PG", "-f", flag, "-o", halves[-1], orders[1])
        reference_ok("cat", "--no-PG", "-o", self.path("halves.bam"), *halves)
        got = self.sort_bam("-u", f"--markdup={BARCODE}", "-o", "-", *halves,
                            budget=SPILLING, env=SMALL_BATCHES)
        wanted = self.read_wanted(self.path("halves.bam"))
        self.assertEqual(sorted(bamfile.split(got.records)), sorted(bamfile.split(wanted.records)))

    def read_wanted(self, source):
        return bamfile.read(self.wanted(source, [BARCODE], fixmate=False))


@needs_pysam
class Disks(FaultTest):
    """Views that wait for a barcode go to a temporary file when their memory is full."""

    def setUp(self):
        super().setUp()
        lines = [line for i in range(20_000) for line in half(f"q{i}", 9 + i, 90 + i, "AC", 1 + i % 2)]
        self.source = self.write("in.sam", HEADER + "".join(line + "\n" for line in lines))
        self.words = ["-@", "1", "-T", self.scratch, "--fixmate", "--markdup=" + BARCODE +
                      " --barcode-mismatches 1", "-o", self.path("out.bam")]

    def n_calls(self, kind):
        """How often a run makes a call of this kind for the files without a name."""
        n = self.calls(*self.words, budget=SPILLING, of=f"{kind}:(deleted)")["fault0"]
        os.unlink(self.path("out.bam"))
        return n

    def test_damaged(self):
        """A bit that changed on the disk is found."""
        self.check_flips_are_found(*self.words, step=40, budget=SPILLING)

    def test_disk_is_full(self):
        n = self.n_calls("pwrite")
        for number in range(1, n // 4 * 3, max(1, n // 20)):
            result = self.with_fault(f"pwrite:{number}+:ENOSPC:(deleted)", *self.words,
                                     budget=SPILLING)
            self.assert_error(result, "temporary data in", "No space left on device", "-T")
            self.assertFalse(os.path.exists(self.path("out.bam")))


if __name__ == "__main__":
    unittest.main()
