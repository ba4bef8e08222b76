"""--markdup: what is marked, removed and counted must be what samtools markdup of 1.24 marks in the
output of samtools fixmate and sort, whatever the memory, threads, formats and pieces of the input.

Random cases are those of `test/differential.py --markdup`, with a fixed seed. The others have few
reads each and say what must be found.
"""

import hashlib
import itertools
import os
import random
import re
import subprocess
import sys
import unittest

import bamfile
import duplicate_model
import templates
from harness import (MIB, ROOT, SAMTOOLS_ROCKSORT, SIMULATE, CliTest, json_of, needs_pysam,
                     reference_ok, text_of, without_pg)
from test_faults import FaultTest
from test_tempdirs import DirsTest

sys.path.insert(0, str(ROOT / "test"))
import differential_case  # noqa: E402
import differential_markdup as cases  # noqa: E402

PAIRED, UNMAP, MUNMAP, REVERSE, READ1, READ2, SECONDARY, QCFAIL, DUP, SUPPLEMENTARY = (
    1, 4, 8, 16, 64, 128, 256, 512, 1024, 2048)
HEADER = ("@HD\tVN:1.6\tSO:unsorted\tGO:query\n" + bamfile.sq_text([("chr1", 100_000),
                                                                    ("chr2", 100_000)]) +
          "@RG\tID:a\tLB:one\n@RG\tID:b\tLB:two\n")
SPILLING = 400_000
SMALL_BUFFERS = {"ROCKSORT_TEST_SORT_BUFFER": "20K"}
N_RANDOM = 120


def read(name, flag, pos, cigar="30M", score="?", ref="chr1", tags=()):
    """A line of SAM. The quality of all bases is that of the character `score`."""
    if flag & UNMAP:
        ref, pos, cigar = "*", 0, "*"
    n = sum(int(n) for n, op in re.findall(r"(\d+)([MSH])", cigar) if op != "H") or 30
    return "\t".join([name, str(flag), ref, str(pos), "60", cigar, "*", "0", "0", "A" * n,
                      score * n, *tags])


def pair(name, left, right, score="?", tags=(), more=0):
    """A forward read at one place and a reverse read at another. more: bits of both flags."""
    return [read(name, PAIRED | READ1 | more, left, score=score, tags=tags),
            read(name, PAIRED | READ2 | REVERSE | more, right, score=score, tags=tags)]


class MarkdupTest(CliTest):
    def wanted(self, source, options=(), fixmate=True):
        """What samtools makes of a file: the path of a BAM."""
        fixed, ordered, out = (self.path(f"want.{name}.bam") for name in ("fixed", "sorted", "out"))
        if fixmate:
            reference_ok("fixmate", "-m", "-u", "--no-PG", source, fixed)
            source = fixed
        reference_ok("sort", "-u", "--no-PG", "-o", ordered, source)
        reference_ok("markdup", "--no-PG", *cases.WINDOW, *cases.shlex.split(" ".join(options)),
                     ordered, out)
        return out

    def check(self, lines, *options, fixmate=True, header=HEADER, **how):
        """Compares with samtools. Returns the records as lists of fields."""
        source = self.write("in.sam", header + "".join(line + "\n" for line in lines))
        want = bamfile.read(self.wanted(source, options, fixmate))
        words = ["--fixmate"] * fixmate + ["--markdup=" + " ".join(options)]
        got = self.sort_bam("-u", *words, source, **how)
        self.assertEqual(without_pg(got.text), without_pg(want.text))
        self.assert_same_records(got.records, want.records, options)
        text = self.sort_ok("-O", "sam", *words, source, **how).out.decode()
        return [line.split("\t") for line in text.splitlines() if not line.startswith("@")]

    def marked(self, lines, *options, **how):
        """Compares with samtools; returns the marked records as text: the name, and /1 or /2 if it
        is one of a pair, and "s" or "x" if it is supplementary or secondary."""
        found = []
        for fields in self.check(lines, *options, **how):
            flag = int(fields[1])
            if flag & DUP:
                found.append(fields[0] + ("/1" if flag & READ1 else "/2" if flag & READ2 else "") +
                             "s" * bool(flag & SUPPLEMENTARY) + "x" * bool(flag & SECONDARY))
        return sorted(found)


@needs_pysam
class Random(CliTest):
    def test_random_cases_are_those_of_samtools(self):
        folder = self.path("case")
        tested = set()
        for number in range(N_RANDOM):
            case = cases.draw_case(71, number)
            with self.subTest(number=number):
                verdict = differential_case.try_case(cases, case, SAMTOOLS_ROCKSORT, folder)
                if verdict.difference:
                    self.fail(f"{verdict.difference.kind}: {verdict.difference.text}\n"
                              f"{cases.show_commands(case, SAMTOOLS_ROCKSORT, '..')}")
                tested |= set(case.facts(verdict))
        for fact in (("regime", "spilled"), ("regime", "in memory"), ("output", "cram"),
                     ("input", "cram one pass"), ("input", "sam shuffled"), ("index", "csi"),
                     ("half-tagged", True)):
            self.assertIn(fact, tested)


@needs_pysam
class Rules(MarkdupTest):
    """Few reads, and which of them are duplicates. Random has the other rules."""

    def test_best_pair_stays_and_then_the_first_name(self):
        lines = (pair("b", 1000, 1100) + pair("a", 1000, 1100) + pair("c", 1000, 1100, "@") +
                 pair("far", 1000, 1101) + pair("low", 1000, 1101, "0"))
        self.assertEqual(self.marked(lines), ["a/1", "a/2", "b/1", "b/2", "low/1", "low/2"])
        self.assertEqual(self.marked(pair("b", 9, 50) + pair("a", 9, 50)), ["b/1", "b/2"])
        rng = random.Random(1)
        for _ in range(5):
            names = [f"q{i}" for i in range(20)]
            rng.shuffle(names)
            pairs = [pair(name, 1000, 1100) for name in names]
            self.assertEqual(self.marked(list(itertools.chain(*pairs))),
                             sorted(f"{name}/{i}" for name in names if name != "q0"
                                    for i in (1, 2)))

    def test_long_reads_are_marked(self):
        rng = random.Random(3)
        lines = []
        for i in range(60):
            pos = rng.choice((100, 100, 40_000))
            clip = rng.choice((0, 0, 50))
            cigar = f"{clip}S20000M" if clip else "20000M"
            n = 20_000 + clip
            lines.append(f"q{i}\t0\tchr1\t{pos + clip}\t60\t{cigar}\t*\t0\t0\t{'A' * n}\t"
                         f"{rng.choice('5?I') * n}\tSA:Z:chr2,9,+,20M,9,0;")
            for kind in (SUPPLEMENTARY, SECONDARY) * rng.randint(0, 3):
                lines.append(read(f"q{i}", kind, rng.randint(1, 60_000), "500H30M", ref="chr2"))
        alone = self.marked(lines)
        self.assertGreaterEqual(len(alone), 56)
        for how in ({"budget": 4_000_000}, {"budget": 4_000_000, "env": SMALL_BUFFERS}):
            self.assertEqual(self.marked(lines, **how), alone)
            self.assertGreater(len(self.marked(lines, "-S", **how)), 150)

    def test_earlier_marks_on_a_long_reference(self):
        """Where positions have more than 31 bits. samtools keeps them in SAM only."""
        header, far = bamfile.sq_text([("chr1", 3 * 2**31)]), 5 * 2**30
        lines = (pair("a", far, far + 80, more=DUP, tags=["do:Z:z", "dt:Z:LB"]) +
                 pair("b", far, far + 80) + pair("c", 9, far, more=DUP, tags=["dc:i:2"]))
        source = self.write("in.sam", header + "".join(line + "\n" for line in lines))
        fixed, ordered, out = (self.path(f"want.{name}.sam") for name in ("fixed", "sorted", "out"))
        reference_ok("fixmate", "-m", "--no-PG", source, fixed)
        reference_ok("sort", "--no-PG", "-O", "sam", "-o", ordered, fixed)
        for options in ("", "-c", "-t --duplicate-count", "-S"):
            reference_ok("markdup", "--no-PG", *cases.WINDOW, *options.split(), ordered, out)
            got = self.sort_ok("-O", "sam", "--no-PG", "--fixmate", "--markdup=" + options, source)
            with open(out, encoding="ascii") as file, self.subTest(options=options):
                self.assertEqual(got.out.decode(), file.read())

    def test_removed_duplicates_are_not_there(self):
        lines = pair("a", 9, 90) + pair("b", 9, 90) + [read("s", 0, 9), read("t", 0, 10)]
        left = [fields[0] for fields in self.check(lines, "-r")]
        self.assertEqual(left, ["a", "t", "a"])
        for how in ({"env": SMALL_BUFFERS}, {"budget": SPILLING, "env": SMALL_BUFFERS}):
            many = [line for i in range(3000) for line in pair(f"q{i:04}", 9 + i % 2, 90)]
            self.assertEqual([fields[0] for fields in self.check(many, "-r", **how)],
                             ["q0000", "q0001", "q0000", "q0001"])

    def test_duplicates_are_found_across_inputs(self):
        inputs = [self.write(f"{name}.sam", HEADER + "".join(
            line + "\n" for line in pair(name, 9, 90))) for name in ("b", "a", "c")]
        out = self.sort_ok("--fixmate", "--markdup", "-O", "sam", "-o", "-", *inputs).out.decode()
        marked = [line.split("\t")[0] for line in out.splitlines()
                  if line[0] != "@" and int(line.split("\t")[1]) & DUP]
        self.assertEqual(sorted(marked), ["b", "b", "c", "c"])


@needs_pysam
class IgnoreStrand(MarkdupTest):
    """--ignore-strand: orientations play no part, and single reads are compared by both ends."""

    def places(self, lines):
        return {i for i, line in enumerate(lines) if int(line.split("\t")[1]) & DUP}

    def test_random_cases_without_strands_are_those_of_the_model(self):
        refs, rng = [name for name, _ in templates.Molecules.REFS], random.Random(8)
        source, fixed = self.path("in.sam"), self.path("want.sorted.bam")
        found = 0
        for number in range(20):
            made = templates.Molecules(rng.randrange(2**32), rng.choice((5, 60)), has_marks=False)
            self.write("in.sam", made.sam(rng.choice((5, 40, 150))))
            mode = "ts"[number % 2]
            marked = self.lines(self.wanted(source, ["-m", mode]))
            lines = self.lines(fixed)
            plain = duplicate_model.marked(lines, refs, mode)
            self.assertEqual(self.places(marked), plain)
            want = duplicate_model.marked(lines, refs, mode, ignore_strand=True)
            found += len(want - plain)
            for options in ("", "-t", "-S --duplicate-count"):
                for how in ({}, {"budget": SPILLING, "env": SMALL_BUFFERS}):
                    out = self.sort_ok("-O", "sam", "--no-PG", f"--markdup=--ignore-strand -m {mode} "
                                       f"{options}", fixed, **how).out.decode()
                    got = self.places([line for line in out.splitlines() if line[0] != "@"])
                    others = {i for i in got if int(lines[i].split("\t")[1]) & (
                        UNMAP | SECONDARY | SUPPLEMENTARY)}
                    self.assertEqual(got - others, want, (number, options))
                    self.assertFalse(others and "-S" not in options)
        self.assertGreater(found, 20)

    def test_barcodes_with_errors_are_joined_like_the_model(self):
        refs, rng = [name for name, _ in templates.Molecules.REFS], random.Random(9)
        source, fixed = self.path("in.sam"), self.path("want.sorted.bam")
        found = 0
        for number in range(16):
            made = templates.Molecules(rng.randrange(2**32), 5, has_marks=False)
            kept = [lines[:1] if rng.random() < 0.3 else lines
                    for lines in (made.template() for _ in range(rng.choice((40, 150))))]
            self.write("in.sam", made.header() + "".join(line + "\n" for lines in kept
                                                         for line in lines))
            mode, ignores = "ts"[number % 2], number % 3 == 0
            self.wanted(source, ["-m", mode])
            lines = self.lines(fixed)
            want = duplicate_model.marked(lines, refs, mode, ignores, "RX")
            found += len(want)
            for options in ("", "-t --duplicate-count"):
                for how in ({}, {"budget": SPILLING, "env": SMALL_BUFFERS}):
                    out = self.sort_ok(
                        "-O", "sam", "--no-PG", f"--markdup=--barcode-tag RX --barcode-mismatches 1 "
                        f"-m {mode} {'--ignore-strand' * ignores} {options}", fixed,
                        **how).out.decode()
                    got = self.places([line for line in out.splitlines() if line[0] != "@"])
                    self.assertEqual(got, want, (number, mode, ignores, options))
        self.assertGreater(found, 300)

    def lines(self, path):
        """Those of a BAM as SAM, without header."""
        reference_ok("view", "--no-PG", "-o", self.path("view.sam"), path)
        return text_of(self.path("view.sam")).splitlines()


@needs_pysam
class Tags(MarkdupTest):
    """What duplicates and the best reads are told."""

    def tags(self, tag, lines, *options, **how):
        """{name: value of the tag, or None} of the primary records."""
        found = {}
        for fields in self.check(lines, *options, **how):
            values = [field[5:] for field in fields[11:] if field.startswith(tag)]
            if not int(fields[1]) & (SECONDARY | SUPPLEMENTARY):
                found[fields[0]] = values[0] if values else None
        return found

    @staticmethod
    def spots(*places, form="M:1:F:1:{tile}:{x}:{y}"):
        """Names of reads at these places of a tile, worse and worse."""
        return [form.format(tile=tile, x=x, y=y) for tile, x, y in places]

    def pile(self, names):
        """A pair for each name, at one place, the best first."""
        return [line for i, name in enumerate(names) for line in pair(name, 9, 90, chr(73 - i))]

    def test_chain_of_optical_duplicates_is_followed(self):
        """Each is near the one before it, and far from the best."""
        names = self.spots((1101, 5000, 5000), *((1101, 100 + 10 * i, 100) for i in range(6)))
        got = self.tags("dt", self.pile(names), "-d 10")
        self.assertEqual([got[name] for name in names], [None, "LB"] + 5 * ["SQ"])
        got = self.tags("dt", self.pile(names), "-d 9")
        self.assertEqual([got[name] for name in names], [None] + 6 * ["LB"])

    def test_coordinates_are_read_from_all_forms_of_names(self):
        for form in ("F:{tile}:{x}:{y}", "F:1:{tile}:{x}:{y}", "M:1:F:1:{tile}:{x}:{y}",
                     "M:1:F:1:{tile}:{x}:{y}:ACGT", "F:{tile}:{x}:{y}#0/1"):
            names = self.spots((1101, 100, 100), (1101, 102, 98), (1101, 100, 109), form=form)
            got = self.tags("dt", self.pile(names), "-d 5")
            self.assertEqual([got[name] for name in names], [None, "SQ", "LB"], form)

    def test_coordinates_are_read_by_the_pattern(self):
        for order, form in (("txy", "{tile}_{x}_{y}"), ("xyt", "{x}_{y}_{tile}"),
                            ("xty", "{x}_{tile}_{y}")):
            names = self.spots((1101, 100, 100), (1101, 102, 98), (1102, 100, 100), form=form)
            got = self.tags("dt", self.pile(names), "-d 5 --read-coords '([0-9]+)_([0-9]+)_([0-9]+)'"
                            f" --coords-order {order}")
            self.assertEqual([got[name] for name in names], [None, "SQ", "LB"], form)

    def test_names_that_cannot_be_read_are_no_optical_duplicates(self):
        source = self.write("in.sam", HEADER + "".join(line + "\n" for line in self.pile(
            [*self.spots((1101, 100, 100), (1101, 101, 100)), "q1", "q2:3"])))
        out = self.sort_ok("--fixmate", "--markdup=-d 10", "-O", "sam", "-o", "-", source)
        self.assertEqual(out.out.count(b"dt:Z:SQ"), 2)
        self.assertEqual(out.out.count(b"dt:Z:LB"), 4)

    def test_names_without_coordinates_are_warned_of(self):
        """Once, if most names have none."""
        good = self.spots((1101, 1, 1), (1101, 2, 2))
        mgi = [f"E100003218L1C034R029040356{i}" for i in range(3)]
        sra = [f"SRR11923224.{i}" for i in range(3)]
        pattern = "-d 5 --coords-order xy --read-coords 'C([0-9]+)R([0-9]+)'"
        for names, options, words in (
                (mgi, "-d 2500", "100 % of the read names have no coordinates for -d"),
                (sra, "-d 2500 -t", "give --read-coords"),
                (sra + good, "-d 2500", "60 % of the read names"),
                (["F:1:x:y", "F:1:2:y"], "-d 9", "100 %"), (good + sra, pattern, "--read-coords does not fit 100 %"),
                (good + sra[:2], "-d 2500", None), (mgi, pattern, None), (mgi, "-S", None)):
            source = self.write("in.sam", HEADER + "".join(
                line + "\n" for line in self.pile(names) + [read("u", UNMAP, 0)] * 20))
            for how in ({}, {"budget": SPILLING, "env": SMALL_BUFFERS}):
                with self.subTest(options=options, names=names, how=how):
                    err = self.sort_ok("--fixmate", "--markdup=" + options, "-o",
                                       self.path("out.bam"), source, **how).err
                    self.assertEqual(err.count("warning"), 1 if words else 0, err)
                    self.assertIn(words or "", err)

    def test_only_optical_duplicates_are_marked_if_asked_for(self):
        """The others stay as they are, and are counted. Random cases are compared with samtools."""
        names = self.spots((1101, 100, 100), (1101, 110, 100), (1101, 120, 100), (1102, 5, 5),
                           (1102, 9, 5), (1103, 100, 100))
        lines = self.pile(names) + self.pile(["q:1:1:x", "q:1:1:y"])
        lines += [read(name, SUPPLEMENTARY | PAIRED | READ1, 600) for name in names]
        lines = [line + "\tSA:Z:chr1,600,+,30M,9,0;" for line in lines]
        source = self.write("in.sam", HEADER + "".join(line + "\n" for line in lines))
        for options, marked in (("-d 10", [1, 2, 4]), ("-d 10 --no-multi-dup", [1]),
                                ("-d 0 -d 20", [1, 2, 4]), ("-d 3", [])):
            for how in ({}, {"budget": SPILLING, "env": SMALL_BUFFERS}):
                with self.subTest(options=options, how=how):
                    out = self.sort_ok("--no-PG", "-O", "sam", "--fixmate", "--markdup=-t -S "
                                       f"--optical-only -f {self.path('counts')} {options}", source,
                                       **how).out.decode()
                    rows = [line.split("\t") for line in out.splitlines() if line[0] != "@"]
                    got = sorted(row[0] for row in rows if int(row[1]) & DUP)
                    self.assertEqual(got, sorted(3 * [names[i] for i in marked]))
                    self.assertTrue(all(bool(int(row[1]) & DUP) == ("dt:Z:SQ" in row) ==
                                        any(field[:3] == "do:" for field in row) for row in rows))
                    self.assertNotIn("dt:Z:LB", out)
                    with open(self.path("counts"), encoding="utf-8") as file:
                        counts = dict(line.strip().split(": ", 1) for line in file if ": " in line)
                    n = len(marked)
                    self.assertEqual([int(counts[key]) for key in (
                        "DUPLICATE PAIR", "DUPLICATE PAIR OPTICAL", "DUPLICATE NON PRIMARY",
                        "DUPLICATE NON PRIMARY OPTICAL", "WRITTEN")], [14, 2 * n, n, n, len(rows)])
                    removed = self.sort_ok("--no-PG", "-O", "sam", "--fixmate", "--markdup=-t -S -r "
                                           f"--optical-only {options}", source, **how).out.decode()
                    self.assertEqual(removed, "".join(
                        line for line in out.splitlines(True) if "\tdt:Z:SQ" not in line))

    def test_umi_is_moved_to_its_tag(self):
        name = "M:1:F:1:1101:5:5:ACGT"
        source = self.write("in.sam", HEADER + "".join(line + "\n" for line in (
            pair(name, 9, 90) + pair("q", 9, 90, "I"))))
        for how in ({}, {"env": SMALL_BUFFERS}):
            out = self.sort_ok("--fixmate", "--markdup=--barcode-name --move-umi-to-tag", "-O",
                               "sam", "-o", "-", source, **how).out.decode()
            lines = [line.split("\t") for line in out.splitlines() if line[0] != "@"]
            self.assertEqual([(line[0], line[-1]) for line in lines if line[0] != "q"],
                             2 * [("M:1:F:1:1101:5:5", "RX:Z:ACGT")])


@needs_pysam
class Alone(MarkdupTest):
    """--markdup without --fixmate."""

    def fixed(self, lines, *order):
        """The lines after samtools fixmate -m and a sort, without header."""
        source = self.write("raw.sam", HEADER + "".join(line + "\n" for line in lines))
        fixed, out = self.path("fixed.bam"), self.path("fixed.sam")
        reference_ok("fixmate", "-m", source, fixed)
        reference_ok("sort", *order, "--no-PG", "-O", "sam", "-o", out, fixed)
        with open(out, encoding="ascii") as file:
            return [line.rstrip("\n") for line in file if not line.startswith("@")]

    def test_input_by_name_is_sorted(self):
        """samtools markdup refuses it, because it does not sort; rocksort does."""
        lines = self.fixed(pair("a", 9, 90) + pair("b", 9, 90), "-n")
        source = self.write("in.sam", HEADER.replace("unsorted\tGO:query", "queryname") +
                            "\n".join(lines) + "\n")
        got = self.sort_bam("-u", "--markdup", source)
        want = bamfile.read(self.wanted(source, fixmate=False))
        self.assert_same_records(got.records, want.records)

    def test_mapped_reads_without_place_are_no_duplicates(self):
        """They have neither reference nor position, and are duplicates of none."""
        here = {"cigar": "5M", "seq": "ACGTA"}
        mate = {"mate": (0, 90, 0), "aux": b"MCZ5M\0RXZAC\0"}
        source = self.path("in.bam")
        with open(source, "wb") as file:
            records = b"".join(bamfile.record(name, flag, tid, pos, **here, **more)
                               for name in ("a", "b")
                               for flag, tid, pos, more in ((0, -1, -1, {}), (65, -1, -1, mate),
                                                            (0, -1, 7, {}), (0, 0, 9, {})))
            file.write(bamfile.bgzf(bamfile.bam_header("", [("chr1", 1000)]) + records))
        for options in ((), ("-t", "--duplicate-count"), ("-S", "--barcode-tag RX")):
            got = self.sort_bam("-u", "--markdup=" + " ".join(options), source)
            want = bamfile.read(self.wanted(source, options, fixmate=False))
            self.assert_same_records(got.records, want.records, options)

    def test_one_pair_needs_no_score_tag(self):
        lines = [line.replace("ms:i:", "XX:i:")
                 for line in self.fixed(pair("a", 9, 90) + pair("b", 9, 91))]
        self.assertEqual(self.marked(lines, fixmate=False), [])

    def test_score_of_failed_reads_is_not_read(self):
        lines = [line.replace("ms:i:", "XX:i:") for line in self.fixed(
            pair("a", 9, 90, more=QCFAIL) + pair("b", 9, 90))]
        self.assertEqual(self.marked(lines, "--include-fails", fixmate=False), ["a/1", "a/2"])

    def test_mates_need_not_be_there(self):
        lines = self.fixed(pair("a", 9, 90) + pair("b", 9, 90) + pair("c", 9, 90))
        self.assertEqual(self.marked(lines[:3], fixmate=False), ["b/1", "c/1"])


@needs_pysam
class Refused(MarkdupTest):
    """Input that does not qualify."""

    def refuse(self, lines, *mention, options=("--markdup",)):
        """In memory and spilled: one message that names the read, exit status 1, no output."""
        source = self.write("in.sam", HEADER + "".join(line + "\n" for line in lines))
        bam = self.bam_of(HEADER + "".join(line + "\n" for line in lines), name="bam.bam")
        for name, budget, env, threads in ((source, None, None, "1"), (bam, None, None, "2"),
                                           (source, SPILLING, SMALL_BUFFERS, "2"),
                                           (bam, SPILLING, SMALL_BUFFERS, "1")):
            with self.subTest(budget=budget, source=name):
                before = set(os.listdir(self.work))
                result = self.rocksort("-@", threads, *options, "-o", self.path("out.bam"), name,
                                       budget=budget, env=env)
                self.assert_error(result, *mention)
                self.assertEqual(set(os.listdir(self.work)), before)

    def test_mate_cigar_is_needed(self):
        good = [read(f"s{i}", 0, 1 + i) for i in range(1000)]
        bad = [line.replace("\t*\t0\t0\t", "\t=\t90\t0\t") for line in pair("bad", 9, 90)[:1]]
        for lines in (good + bad, bad + good):
            self.refuse(lines, "read 'bad' has no tag MC", "--fixmate", "samtools fixmate -m")

    def test_nothing_is_kept_if_resuming_would_refuse_the_same_read(self):
        """Runs on disk were once kept as a checkpoint if they were synced before the read came."""
        good = [read(f"s{i}", 0, 1 + i) for i in range(1000)]
        bad = [line.replace("\t*\t0\t0\t", "\t=\t90\t0\t") for line in pair("bad", 9, 90)[:1]]
        bam = self.bam_of(HEADER + "".join(line + "\n" for line in good + bad), name="bam.bam")
        result = self.rocksort("-@", "1", "--markdup", "-o", self.path("out.bam"), bam,
                               budget=1_000_000, env={**SMALL_BUFFERS, "ROCKSORT_TEST_FILE": "32K"})
        self.assert_error(result, "read 'bad' has no tag MC")
        self.assertEqual(os.listdir(self.work), ["bam.bam"])

    def test_mate_cigar_must_be_text(self):
        bad = read("bad", PAIRED | READ1, 9, tags=["MC:i:5"]).replace("\t*\t0\t0", "\t=\t90\t0")
        self.refuse([read(f"s{i}", 0, 1 + i) for i in range(1000)] + [bad],
                    "read 'bad' has a tag MC that is not text", "samtools fixmate -m")

    def test_score_is_needed(self):
        """Where two pairs meet."""
        good = [read(f"s{i}", 0, 1000 + i) for i in range(1000)]
        def mated(name, tags):
            return [line.replace("\t*\t0\t0\t", f"\t=\t{pos}\t0\t") for line, pos in zip(
                pair(name, 9, 90, tags=["MC:Z:30M", *tags]), (90, 9))]
        scored = ["ms:i:900"]
        self.refuse(mated("bad", []) + good + mated("other", scored), "read 'bad' has no tag ms",
                    "--fixmate", "samtools fixmate -m")
        self.refuse(mated("other", scored) + good + mated("bad", []), "read 'bad' has no tag ms")

    def test_too_many_barcodes_are_refused(self):
        """Only the different barcodes of one key must fit into memory; one job may use that of all."""
        def lines(n_barcodes):
            return [read(f"q{i:06}", 0, 9, tags=["RX:Z:" + "".join(
                "ACGT"[i % n_barcodes >> shift & 3] for shift in range(0, 16, 2))])
                    for i in range(60_000)]
        options = ["--markdup=--barcode-tag RX --barcode-mismatches 1", "-o", self.path("out.bam")]
        source = self.write("in.sam", HEADER + "\n".join(lines(50_000)) + "\n")
        few = self.write("few.sam", HEADER + "\n".join(lines(10_000)) + "\n")
        for threads, budget in (("1", 1_000_000), ("8", 4_000_000)): # of 8 threads 4 join
            with self.subTest(threads=threads):
                command = ["-@", threads, *options]
                result = self.rocksort(*command, source, budget=budget)
                self.assert_error(result, "50000 different barcodes are at position 9 of reference 1",
                                  "--max-memory")
                self.assertFalse(os.path.exists(self.path("out.bam")))
                megabytes = int(re.search(r"--max-memory (\d+)M", result.err).group(1))
                self.assertLess(megabytes, 30)
                self.sort_ok(*command, "--max-memory", f"{megabytes}M", source)
                self.sort_ok(*command, few, budget=budget)
                os.remove(self.path("out.bam"))

    def test_input_that_is_not_grouped_is_refused(self):
        """Reads of one name that do not stand together are taken for reads without mate, as samtools
        does; --fixmate refuses what says that it is sorted by coordinate."""
        sam = HEADER.replace("unsorted\tGO:query", "coordinate") + "".join(
            line + "\n" for line in pair("a", 9, 90))
        self.assert_refused("--fixmate", "--markdup", source=self.write("in.sam", sam),
                            mention=["sorted by coordinate", "-n"])

    def test_damaged_tags_are_refused(self):
        rec = bamfile.record("bad", PAIRED | READ1, 0, 9, "4M", "ACGT", b"MCZ30M", mate=(0, 50, 0))
        data = bamfile.bam_header("", [("x", 300)]) + rec
        source = self.write("in.bam", bamfile.bgzf(data))
        self.assert_refused("--markdup", source=source, mention=["'bad'", "MC"])


class Directories(DirsTest):
    """Runs that are written again, because a directory became full, are counted once."""

    def test_full_directory_is_left_for_the_other(self):
        self.mount(self.dirs[0], "1m")
        source = self.write("in.sam", HEADER + "".join(
            line + "\n" for i in range(60_000) for line in pair(f"q{i}", 9 + i // 9, 90 + i // 4)))
        words = ["-@", "4", "--fixmate", "--markdup=-f " + self.path("stats"), "-o",
                 self.path("out.bam"), "--temp-codec", "none"]

        def statistics(*more, **how):
            result = self.sort_ok(*words, *more, source, **how)
            with open(self.path("stats"), encoding="ascii") as file:
                return result, [line for line in file if not line.startswith("COMMAND")]
        _, want = statistics()
        for budget in (5_000_000, 9_000_000):
            result, got = statistics(*self.options, budget=budget)
            self.assertIn("no space is left", result.err)
            self.assertEqual(got, want)


class Faults(FaultTest):
    """What the search for duplicates writes to a file and reads from it. The file has no name."""

    def setUp(self):
        super().setUp()
        self.source = self.write("in.sam", HEADER + "".join(
            line + "\n" for i in range(30_000) for line in pair(f"q{i}", 9 + i, 90 + i)))
        self.out = self.path("out.bam")

    def run_with(self, fault):
        return self.with_fault(fault, "-@", "2", "-T", self.scratch, "--fixmate", "--markdup",
                               "-o", self.out, budget=SPILLING)

    def n_calls(self, kind):
        """How often a run makes a call of this kind for that file."""
        n = self.calls("-@", "2", "-T", self.scratch, "--fixmate", "--markdup", "-o", self.out,
                       of=f"{kind}:(deleted)")
        os.unlink(self.out)
        return n

    def test_full_disk_is_named(self):
        n = self.n_calls("pwrite")
        self.assertGreater(n, 10)
        for number in (1, n // 4, n // 2):      # the last ones are not made in every run
            result = self.run_with(f"pwrite:{number}+:ENOSPC:(deleted)")
            self.assert_error(result, "temporary data in", "No space left on device", "-T")
            self.assertFalse(os.path.exists(self.out))

    def test_file_that_is_too_large_is_named(self):
        result = self.run_with("pwrite:2+:EFBIG:(deleted)")
        self.assert_error(result, "temporary data in", "File too large", "ulimit -f")
        self.assertNotIn("-T;", result.err)

    def test_one_full_directory_of_two_is_no_error(self):
        """What does not fit into the first directory goes to the second one, and is right."""
        places = [self.work / name for name in "ab"]
        for place in places:
            place.mkdir()
        options = ["-@", "2", "--fixmate", "--markdup=-S -t -s", "-O", "sam", "--no-PG", "-o",
                   self.out]
        self.sort_ok(*options, self.source)
        want, both = self.read_output(), options + ["-T", places[0], "-T", places[1]]
        part = f"{places[0]}/#"     # of files without a name
        n = self.calls(*both, budget=SPILLING, of=f"pwrite:{part}")
        self.assertGreater(n, 10)
        for number in (1, n // 2, n):
            result = self.with_fault(f"pwrite:{number}+:ENOSPC:{part}", *both, budget=SPILLING)
            self.assertEqual(result.status, 0, result.err)
            self.assertEqual(self.read_output(), want)

    def read_output(self):
        return text_of(self.out)

    def test_damaged_notes_are_found(self):
        words = ["-@", "2", "-T", self.scratch, "--fixmate", "--markdup=-S -t", "-o", self.out]
        self.check_flips_are_found(*words, step=16, budget=SPILLING)

    def test_damaged_sort_of_reads_is_found(self):
        """Also what is sorted on the disk, because it does not fit in memory; and that disk may be
        full."""
        source = self.write("pile.sam", HEADER + "".join(
            read(f"M:1:F:1:{i % 40}:{i * 7919 % 20000}:{i * 104729 % 20000}", 0, 9) + "\n"
            for i in range(20_000)))
        words = ["-@", "2", "-T", self.scratch, "--markdup=-t -d 100", "-o", self.out, source]
        self.check_flips_are_found(*words, step=8, budget=SPILLING)
        n = self.calls(*words, budget=SPILLING, of="pwrite:(deleted)")
        os.unlink(self.out)
        for number in range(1, n * 9 // 10, n // 12):
            result = self.with_fault(f"pwrite:{number}+:ENOSPC:(deleted)", *words, budget=SPILLING)
            self.assert_error(result, "temporary data in", "No space left on device", "-T")
            self.assertFalse(os.path.exists(self.out))

    def test_file_that_cannot_be_made_is_named(self):
        for error, words in (("ENOSPC", "No space left"), ("EACCES", "Permission denied")):
            result = self.run_with(f"open:1+:{error}:dir:{self.scratch}")
            if result.status:
                self.assert_one_message(result, words)

    def test_file_that_cannot_be_read_is_named(self):
        n = self.n_calls("pread")
        self.assertGreater(n, 10)
        for number in (1, n // 4, n // 2):
            result = self.run_with(f"pread:{number}:EIO:(deleted)")
            self.assert_error(result, "temporary data in", "Input/output error")
            self.assertFalse(os.path.exists(self.out))

    def test_damaged_temporary_data_are_found(self):
        self.check_flips_are_found("-@", "2", "-T", self.scratch, "--fixmate", "--markdup", "-o",
                                   self.out, step=20, budget=SPILLING)


@unittest.skipUnless(os.access(SIMULATE, os.X_OK), f"no {SIMULATE}: build it for this test")
class MarksInFile(CliTest):
    """With so little memory that marks do not fit there, they go to a file; all else stays as it
    is. The keys of a partition do not fit into a table then, so that it is read several times, and
    each duplicate must be counted once."""

    N = 105_000
    BUDGET = 200_000            # marks take up to a 64th of so little

    def results(self, mode, options, **how):
        """A checksum of the sorted records, and what was counted."""
        source, stats = self.path(mode + ".bam"), self.path("report.json")
        if not os.path.exists(source):
            subprocess.run([SIMULATE, "-n", str(self.N), "-d", "30", "-L", "1M", "-m", mode, "-l",
                            "1", "-o", source], check=True, stderr=subprocess.DEVNULL)
        self.sort_ok("-@", "2", "--no-PG", "--fixmate", "--markdup=" + options, "--report", stats,
                     "-o", self.path("out.sam"), source, **how)
        counts = json_of(stats)["duplicates"]
        digest = hashlib.sha256()       # this process stays small, for the tests of memory
        with open(self.path("out.sam"), "rb") as file:
            while chunk := file.read(MIB):
                digest.update(chunk)
        return digest.digest(), counts.pop("file_bytes"), counts.pop("read_ends_bytes"), counts

    def test_marks_in_a_file_are_those_in_memory(self):
        self.assertGreater(self.N, self.BUDGET / 64 * 8)
        for mode, options in (("short", "-S -t -d 100 --duplicate-count"), ("short", "-r"),
                              ("pileup", "-S -t")):
            with self.subTest(mode=mode, options=options):
                out, file_bytes, _, counts = self.results(mode, options)
                self.assertEqual(file_bytes, 0)
                self.assertGreater(counts["paired_duplicates"], 10_000)
                small, file_bytes, read_ends_bytes, small_counts = self.results(
                    mode, options, budget=self.BUDGET)
                self.assertGreater(file_bytes, 0.9 * read_ends_bytes)
                self.assertEqual(small_counts, counts)
                self.assertEqual(small, out)


class ReadsElsewhere(CliTest):
    """Single reads at the 5' end of a read of a pair that is compared by its other end: they are
    sent to the partition where that is, through streams of their own."""

    def test_file_of_reads_is_counted(self):
        n = 1000
        source, stats = self.path("in.sam"), self.path("report.json")
        lines = ["p\t65\tchr2\t100\t60\t10M\t=\t300\t210\t*\t*\tMC:Z:10M\tms:i:400",
                 "p\t129\tchr2\t300\t60\t10M\t=\t100\t-210\t*\t*\tMC:Z:10M\tms:i:400"]
        lines += [f"single{i}\t0\tchr2\t300\t60\t10M\t*\t0\t0\t*\t*" for i in range(n)]
        with open(source, "w", encoding="ascii") as file:
            file.write(HEADER + "\n".join(lines) + "\n")
        for memory, in_file in (("64M", False), ("16M", True)):
            with self.subTest(memory=memory):
                self.sort_ok("--max-memory", memory, "--markdup=-t", "--report", stats, "-o",
                             self.path("out.sam"), source)
                counts = json_of(stats)["duplicates"]
                self.assertEqual(counts["single_duplicates"], n)
                self.assertEqual(counts["file_bytes"] > 0, in_file, counts)


if __name__ == "__main__":
    unittest.main()
