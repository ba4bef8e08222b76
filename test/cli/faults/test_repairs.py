"""BAM that other programs wrote wrongly, and that is repaired as it is read: read names with NULs in
them, and @SQ lines that are not the list of references. The oracle is the same file written rightly.

ROCKSORT_TEST_VARIANTS=300 makes so many random variants of each.
"""

import os
import random
import struct

import bamfile
from harness import (SPILL_BUDGET, CliTest, bytes_of, kept_checkpoints, needs_pysam, reference_sort,
                     reference_view, sam_split, text_of, without_pg)

N_VARIANTS = int(os.environ.get("ROCKSORT_TEST_VARIANTS", "12"))
REFS = [("c1", 1000), ("c2", 2000), ("c3", 3000)]
HEAD = "@HD\tVN:1.6\n" + bamfile.sq_text(REFS)
ORDERS = ([], ["-n"], ["-N"], ["-t", "XI"], ["-n", "-t", "XI"], ["--template-coordinate"], ["-M"],
          ["--shuffle"])
COLUMNS = ("arrow", "parquet")
OUTPUTS = ("bam", "sam", "sam.gz", "cram") + COLUMNS
NO_REFERENCE = ["--output-fmt-option", "no_ref=1"]


def reads(rng, n, least_name=1):
    """Raw records, in no order; most names are of a few characters."""
    out = []
    for i in range(n):
        n_name = rng.choice((least_name, 1, 2, 3, 5, 8, 30, 240))
        tid = rng.randrange(-1, len(REFS))
        out.append(bamfile.record("".join(rng.choices("ab1209:", k=n_name)), 4 if tid < 0 else 0, tid,
                                  rng.randrange(900) if tid >= 0 else -1, "4M" if tid >= 0 else "",
                                  "ACGT", b"XIi" + struct.pack("<i", i)))
    return out


def pad_some(rng, records):
    """(the records, some of them with longer name fields; how many these are; the first name)"""
    out, names = [], []
    for raw in records:
        most = 255 - raw[12]
        after = rng.choice((b"", b"\0", b"\0" * 3, b"other\0", b"\0x\0", b"\0" * most))[:most]
        if after and after[-1]:
            after = b"\0" * len(after)
        out.append(bamfile.padded(raw, after))
        if after:
            names.append(bamfile.fields(raw)[3].decode())
    return out, len(names), names[0] if names else None


class RepairTest(CliTest):
    """Sorts a wrong and a right file with the same options."""

    def output(self, options, output, args, **how):
        """(what the sort of args writes, its messages)"""
        out = self.path("out." + output)
        more = NO_REFERENCE if output == "cram" else []
        err = self.sort_ok("--no-PG", *options, *more, "-o", out, *args, **how).err
        if output in ("cram", "sam.gz"):
            return reference_view(out), err
        if output == "bam":
            return bamfile.read(out), err
        return bytes_of(out), err


@needs_pysam
class PaddedNames(RepairTest):
    """A name ends at its first NUL."""

    def check_warning(self, err, n, first):
        """The warning is there once, or not at all if no name was cut."""
        self.assertEqual(err.count("NUL"), 2 if n else 0, err)
        if n:
            self.assertIn(f"(records: {n}, first: '{first}')", err)

    def test_padded_names_are_cut(self):
        for seed in range(N_VARIANTS):
            rng = random.Random(seed)
            output, options = OUTPUTS[seed % len(OUTPUTS)], ORDERS[seed % len(ORDERS)]
            right = reads(rng, rng.choice((5, 300, 4000)), 1 if output in ("cram", "sam.gz") else 0)
            wrong, n, first = pad_some(rng, right)
            # Other runs make other batches of columns.
            budget = None if output in COLUMNS else rng.choice((None, SPILL_BUDGET))
            with self.subTest(seed=seed, output=output, options=options, budget=budget):
                right, wrong = (self.write(name, bamfile.bam_file(HEAD, REFS, records))
                                for name, records in (("right", right), ("wrong", wrong)))
                want, _ = self.output(options, output, [right], budget=budget)
                got, err = self.output(options, output, [wrong], budget=budget)
                self.assertEqual(got, want)
                self.check_warning(err, n, first)
                with open(wrong, "rb") as file:
                    got, err = self.output(options, output, ["-"], stdin=file, budget=budget)
                self.assertEqual(got, want)
                self.check_warning(err, n, first)
                want, _ = self.output(options, output, [right, right], budget=budget)
                got, err = self.output(options, output, [right, wrong], budget=budget)
                self.assertEqual(got, want)
                self.check_warning(err, n, first)

    def test_repaired_names_are_those_of_samtools_and_the_checksum(self):
        """The checksum is that of the output, and the output is that of samtools."""
        right = reads(random.Random(1), 500)
        wrong, n, first = pad_some(random.Random(2), right)
        right = self.write("right.bam", bamfile.bam_file(HEAD, REFS, right))
        wrong = self.write("wrong.bam", bamfile.bam_file(HEAD, REFS, wrong))
        out = self.path("out.bam")
        self.sort_ok("--no-PG", "-o", out, wrong)
        self.assertEqual(bamfile.read(out), reference_sort(right, self.path("want.bam")))
        sums = [self.sort_ok("--checksum-only", path) for path in (right, wrong, out)]
        self.assertEqual(len({one.out for one in sums}), 1, sums)
        self.check_warning(sums[1].err, n, first)

    def test_merge_and_verify_cut_names(self):
        rng = random.Random(3)
        right = bamfile.split(self.sort_bam("-N", self.write(
            "in.bam", bamfile.bam_file(HEAD, REFS, reads(rng, 300)))).records)
        wrong, n, first = pad_some(rng, right)
        right, wrong = (self.write(name, bamfile.bam_file(HEAD, REFS, records))
                        for name, records in (("right.bam", right), ("wrong.bam", wrong)))
        self.check_warning(self.sort_ok("--verify", "-N", wrong).err, n, first)
        want, _ = self.output(["-N", "--merge"], "bam", [right, right])
        got, err = self.output(["-N", "--merge"], "bam", [right, wrong])
        self.assertEqual(got, want)
        self.check_warning(err, n, first)
        right, wrong = (self.write(f"{name}.bam", bamfile.bam_file(HEAD, REFS, records))
                        for name, records in self.pairs().items())
        options = ["--merge", "--markdup"]
        want, _ = self.output(options, "sam", [right, right])
        got, err = self.output(options, "sam", [right, wrong])
        self.assertEqual(got, want)
        self.check_warning(err, 3, "a")

    @staticmethod
    def pairs():
        """Three pairs at one place, whose first and second reads have names of other lengths; mates
        know each other, one read of each has a barcode."""
        right, wrong = [], []
        for flag, pos, mate, size in ((99, 100, 200, 104), (147, 200, 100, -104)):
            for i, name in enumerate("abc"):
                barcode = b"RXZAC\0" if (flag == 99) == (i == 1) else b""
                raw = bamfile.record(name, flag, 0, pos, "4M", "ACGT", b"MCZ4M\0msi" +
                                     struct.pack("<i", i) + barcode, 60, (0, mate, size))
                right.append(raw)
                wrong.append(bamfile.padded(raw, b"\0" * (i + 1) if flag == 99 else b""))
        return {"right": right, "wrong": wrong}

    def test_mates_are_found_by_name(self):
        by_name = {name: sorted(records, key=lambda raw: bamfile.fields(raw)[3])
                   for name, records in self.pairs().items()}
        source = {name: self.write(f"{name}.bam", bamfile.bam_file(HEAD, REFS, records))
                  for name, records in by_name.items()}
        for options in (["--markdup=-t"], ["--markdup=-t --barcode-tag RX"], ["--markdup=-t -S"],
                        ["--fixmate", "--markdup=-t"], ["--fixmate", "-n"],
                        ["--fixmate", "--markdup=--barcode-tag RX"]):
            with self.subTest(options=options):
                want, _ = self.output(options, "sam", [source["right"]])
                got, err = self.output(options, "sam", [source["wrong"]])
                self.assertEqual(got, want)
                self.check_warning(err, 3, "a")

    def test_groups_and_resumed_sorts_have_cut_names(self):
        right = reads(random.Random(4), 5000)
        wrong, _, _ = pad_some(random.Random(5), right)
        right, wrong = (self.write(name, bamfile.bam_file(HEAD, REFS, records))
                        for name, records in (("right.bam", right), ("wrong.bam", wrong)))
        for name, source in (("right", right), ("wrong", wrong)):
            os.mkdir(self.path(name))
            self.sort_ok("--no-PG", "--split-by", "contig", "-o", self.path(name + "/%.bam"), source)
        groups = [bamfile.read(self.path(f"{name}/c2.bam")) for name in ("right", "wrong")]
        self.assertEqual(*groups)
        failed = self.rocksort("--no-PG", "-T", self.work, "-o", "/dev/full", wrong, clean=False,
                               budget=SPILL_BUDGET)
        checkpoint, = kept_checkpoints(failed.err)
        out = self.path("out.bam")
        self.sort_ok("--resume", checkpoint, "-o", out, clean=False)
        self.assertEqual(bamfile.read(out), self.output([], "bam", [right])[0])


def settled(lines, refs):
    """What the lines of a header become: the model of the repair."""
    fields = {line: dict(field.split(":", 1) for field in line.split("\t")[1:])
              for line in lines if line.startswith("@SQ")}
    own = {(at["SN"], int(at["LN"])): line for line, at in fields.items()}
    want = [own.get(ref, "@SQ\tSN:%s\tLN:%d" % ref) for ref in refs]
    if not fields or want == [line for line in lines if line in fields]:
        return lines if fields else lines + want
    first = lines.index(next(iter(fields)))
    return lines[:first] + want + [line for line in lines[first:] if line not in fields]


def wrong_lines(rng, refs):
    """Lines of a header text whose @SQ lines differ from the list in some way, or do not."""
    names = list(refs)
    for change in rng.choices(("order", "less", "more", "names", "lengths", "nothing"), k=2):
        if change == "order":
            rng.shuffle(names)
        elif change == "less":
            names = rng.sample(names, rng.randrange(len(names) + 1))
        elif change == "more":
            names.insert(rng.randrange(len(names) + 1), (f"more{len(names)}", 77))
        elif change == "names":
            names = [("chr" + name, length) for name, length in names]
        elif change == "lengths" and names:
            at = rng.randrange(len(names))
            names[at] = (names[at][0], names[at][1] + rng.choice((-1, 1)))
    lines = ["@SQ\tSN:%s\tLN:%d" % ref + rng.choice(("", "\tM5:0f\tUR:file:/x", "\tAS:y"))
             for ref in names]
    for other in ("@RG\tID:g", "@CO\tSN:c1\tLN:5", "@PG\tID:p"):
        lines.insert(rng.randrange(len(lines) + 1), other)
    return ["@HD\tVN:1.6"] + lines


@needs_pysam
class References(RepairTest):
    """The list of references decides, and the @SQ lines follow it."""

    def bam(self, name, lines, refs, seed=0):
        """A file with reads on all references; each has the number of its reference as its name."""
        rng = random.Random(seed)
        records = [bamfile.record(f"{tid}", 0, tid, pos, "4M", "ACGT")
                   for tid, (_, length) in enumerate(refs) for pos in rng.choices(range(length - 4), k=3)]
        rng.shuffle(records)
        return self.write(name, bamfile.bam_file("".join(line + "\n" for line in lines), refs,
                                                 records))

    def check(self, path, lines, refs):
        """The file has these lines, except @HD and @PG, and each read is on its contig."""
        head, records = sam_split(reference_view(path))
        got = [line for line in without_pg(head) if not line.startswith("@HD")]
        self.assertEqual(got, [line for line in lines if not line.startswith(("@HD", "@PG"))])
        self.assertEqual(len(records), 3 * len(refs))
        for fields in (line.split("\t") for line in records):
            self.assertEqual(fields[2], refs[int(fields[0])][0])

    def test_lines_follow_the_list_of_references(self):
        """To SAM, CRAM and others; two inputs, --merge, a pipe; and --verify of what was written."""
        for seed in range(N_VARIANTS):
            rng = random.Random(seed)
            refs = [(f"c{i}", rng.choice((50, 300, 2000))) for i in range(rng.randrange(1, 6))]
            lines = wrong_lines(rng, refs)
            want = settled(lines, refs)
            has_sq = any(line.startswith("@SQ") for line in lines)
            differs = has_sq and lines != want
            source = self.bam("in.bam", lines, refs, seed)
            out = {name: self.path("out." + name) for name in ("bam", "sam", "cram", "sam.gz")}
            with self.subTest(seed=seed, lines=lines, refs=refs):
                for name, way in (("sam", []), ("sam.gz", ["--write-index"]),
                                  ("bam", ["--also", out["cram"]])):
                    err = self.sort_ok(*way, *NO_REFERENCE, "-o", out[name], source).err
                    self.assertEqual(err.count("rewritten"), int(differs), err)
                for path in out.values():
                    self.check(path, want, refs)
                    self.sort_ok("--verify", path)
                for option in ([], ["--merge"]):
                    result = self.sort_ok(*option, "-O", "sam", "-o", out["sam"], out["bam"],
                                          self.bam("none.bam", [], refs) if not option else out["cram"])
                    self.assertNotIn("rewritten", result.err)

    def test_every_way_in_warns_once(self):
        """Warns once: files, a pipe, several inputs, --merge, which reads twice to mark duplicates."""
        lines = ["@HD\tVN:1.6", "@SQ\tSN:c3\tLN:3000\tM5:0f", "@CO\tx", "@SQ\tSN:c1\tLN:1000"]
        want = ["@SQ\tSN:c1\tLN:1000", "@SQ\tSN:c2\tLN:2000", "@SQ\tSN:c3\tLN:3000\tM5:0f", "@CO\tx"]
        records = [bamfile.record(f"{tid}", 0, tid, 5, "4M", "ACGT") for tid in range(3)] * 3
        wrong, right = (self.write(name, bamfile.bam_file(text, REFS, sorted(records))) for name, text
                        in (("wrong", "\n".join(lines) + "\n"), ("right", HEAD)))
        out = self.path("out.sam")
        data = bytes_of(wrong)
        for args, n in (([wrong], 1), (["-"], 1), ([wrong, right], 1), ([wrong, wrong], 2),
                        (["--merge", wrong], 1), (["--merge", wrong, right], 1),
                        (["--merge", "--markdup=-S", wrong, right], 1),
                        (["-n", wrong], 1)):
            with self.subTest(args=args):
                result = self.sort_ok("-o", out, *args, stdin=data)
                self.assertEqual(result.err.count("rewritten"), n, result.err)
                self.assertIn("reference 1 is 'c3' of 3000 bases in the lines, 'c1' of 1000",
                              result.err)
                head, lines_out = sam_split(text_of(out))
                self.assertEqual(without_pg(head)[1:], want)
                for fields in (line.split("\t") for line in lines_out):
                    self.assertEqual(fields[2], REFS[int(fields[0])][0])
        for args in (["--verify=coordinate", wrong], ["--checksum-only", wrong], ["--plan", wrong]):
            self.assertEqual(self.sort_ok(*args).err.count("rewritten"), 1, args)
        result = self.rocksort("-o", out, wrong, self.bam("other.bam", [], REFS[:2]))
        self.assert_error(result, "reference 3", "'c3'")

    def test_two_lines_of_one_name_are_rewritten(self):
        source = self.bam("in.bam", ["@SQ\tSN:c1\tLN:1000"] * 2, REFS)
        result = self.sort_ok("-o", self.path("out.bam"), source)
        self.assertEqual(result.err.count("rewritten"), 1, result.err)
        self.check(self.path("out.bam"), ["@SQ\tSN:%s\tLN:%d" % ref for ref in REFS], REFS)

    def test_lists_that_lines_cannot_hold_are_refused(self):
        for refs, problem in ((("c1", 9), ("x", 0)), "length"), ((("c1", 9), ("x\ty", 7)), "a tab"), \
                             ((("c1", 9), ("x\ny", 7)), "a tab"), ((("c1", 9), ("", 7)), "no name"):
            for lines in ([], ["@SQ\tSN:c1\tLN:9"], ["@SQ\tSN:c1\tLN:9", "@SQ\tSN:z\tLN:7"]):
                text = "".join(line + "\n" for line in lines)
                source = self.write("in.bam", bamfile.bam_file(text, refs, []))
                with self.subTest(refs=refs, lines=lines):
                    result = self.rocksort("-o", self.path("out.sam"), source)
                    self.assert_error(result, "in.bam", "reference 2", problem)
