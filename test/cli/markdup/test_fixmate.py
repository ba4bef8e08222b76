"""--fixmate: what reads of a template say of their mates must be what samtools fixmate -m of 1.24
says, in every order, format and memory, and whatever the pieces in which the input comes.
"""

import gzip
import random
import re

import bamfile
import templates
from harness import CliTest, needs_pysam, pysam, reference_ok, without_pg

SPILLING = 200_000
ORDERS = ([], ["-n"], ["-N"])
# Options of fixmate. Each case of a test takes the next ones.
OPTIONS = ("", "-r", "-p", "-c", "-r -p -c", "-z off", "-z on", "-z cigarx", "-z pos,unmap",
           "-cz aux,mqual", "-z cigar,cigdup -z all", "-m")


def alone(options):
    """The option of rocksort that has these options of fixmate."""
    return "--fixmate=" + options if options else "--fixmate"


class FixmateTest(CliTest):
    def wanted(self, source, options="", order=()):
        """What samtools fixmate -m and then sort make of a file."""
        fixed, out = self.path("fixed.bam"), self.path("want.bam")
        reference_ok("fixmate", "-m", "-u", "--no-PG", *options.split(), source, fixed)
        reference_ok("sort", "-u", "--no-PG", *order, "-o", out, fixed)
        return bamfile.read(out)

    def check(self, source, options="", order=(), inputs=None, **how):
        want = self.wanted(source, options, order)
        got = self.sort_bam("-u", alone(options), *order, "-o", "-", *(inputs or [source]), **how)
        what = f"{options!r} {order}"
        self.assertEqual(without_pg(got.text), without_pg(want.text), what)
        self.assert_same_records(got.records, want.records, what)


def mods_of(line, read, first):
    """The modified bases of a line of SAM: their place in the whole read, code and probability.
    first: where the record begins in the read, as it was sequenced."""
    tags = dict((field[:2], field[5:]) for field in line[11:])
    likely = iter(tags["ML"].split(",")[1:]) if "ML" in tags else None
    found = []
    for text in tags["MM"].split(";")[:-1]:
        head, *steps = text.split(",")
        codes = [head[2:].rstrip(".?")] if head[2].isdigit() else list(head[2:].rstrip(".?"))
        places = [i for i, base in enumerate(read) if head[0] in ("N", base)
                  or (head[0], base) == ("U", "T")]
        at = -1
        for step in steps:
            at += int(step) + 1
            for code in codes:
                found.append((first + places[at], head[:2] + code,
                              next(likely) if likely else None))
    if likely:
        assert next(likely, None) is None, line
    return found


@needs_pysam
class LikeSamtools(FixmateTest):
    def test_random_templates_are_fixed_as_samtools_does(self):
        for i, options in enumerate(OPTIONS):
            generator = templates.Generator(i, max_clip=60 if i % 2 else 400,
                                            odd=(0.05, 0, 0.3)[i % 3], tags=i % 4 > 0)
            sam = generator.sam((40, 300)[i % 2])
            source = self.bam_of(sam) if i % 3 else self.write("in.sam", sam)
            with self.subTest(seed=i, options=options):
                for budget, threads in ((None, "1"), (SPILLING, "3")):
                    self.check(source, options, ORDERS[i % 3], budget=budget,
                               inputs=["-@", threads, source])

    def test_format_of_the_input_does_not_matter(self):
        sam = templates.Generator(100, odd=0).sam(200)
        bam = self.bam_of(sam)
        want = self.wanted(bam)
        raw = self.bam_of(sam, "-b", "-u", name="raw.bam")
        cram = self.bam_of(sam, "-C", "--output-fmt-option", "no_ref=1", name="in.cram")
        for source in (bam, raw, self.write("in.sam", sam)):
            got = self.sort_bam("-u", "--fixmate", source)
            self.assert_same_records(got.records, want.records, source)
            with open(source, "rb") as file:
                got = self.sort_bam("-u", "--fixmate", stdin=file)
            self.assert_same_records(got.records, want.records, source + " from a pipe")
        # CRAM does not keep the bins and sizes of all tags.
        again = self.path("again.bam")
        reference_ok("view", "-b", "--no-PG", "-o", again, cram)
        self.assert_same_records(self.sort_bam("-u", "--fixmate", cram).records,
                                 self.wanted(again).records)

    def test_random_base_modifications_are_cut_as_samtools_does(self):
        for i, options in enumerate(("-M", "-M -r", "-M -p -c", "-M -z off")):
            sam = templates.Modified(i, broken=(0, 0.1, 0.5)[i % 3]).sam((40, 300)[i % 2])
            source = self.bam_of(sam) if i % 2 else self.write("in.sam", sam)
            with self.subTest(seed=i, options=options):
                self.check(source, options, ORDERS[i % 3])
                self.check(source, options, ORDERS[i % 3], budget=SPILLING)

    def test_other_orders_sort_the_fixed_records(self):
        sam = templates.Generator(101, odd=0).sam(300)
        source, fixed = self.bam_of(sam), self.path("fixed.bam")
        reference_ok("fixmate", "-m", "-u", "--no-PG", source, fixed)
        for order in (["-t", "ms"], ["-M"], ["--shuffle=3"]):
            for budget in (None, SPILLING):
                with self.subTest(order=order, budget=budget):
                    got = self.sort_bam("-u", "--fixmate", *order, source, budget=budget)
                    want = self.sort_bam("-u", *order, fixed)
                    self.assert_same_records(got.records, want.records)

    def test_large_templates_are_fixed(self):
        rng = random.Random(5)
        lines = []
        for number, n in enumerate((1, 700, 3, 2500, 2)):
            for i in range(n):
                flag = rng.choice((0x100, 0x800, 0x900)) | rng.choice((65, 129))
                if i in (n // 3, 2 * n // 3):
                    flag = 65 if i == n // 3 else 129
                bases = "".join(rng.choices("ACGT", k=100))
                lines.append(f"r{number}\t{flag}\tx\t{rng.randint(1, 100)}\t9\t100M\t*\t0\t0\t"
                             f"{bases}\t{'F' * 100}")
        source = self.bam_of(bamfile.sq_text(templates.REFS) + "\n".join(lines) + "\n")
        for budget in (None, SPILLING):
            self.check(source, budget=budget)

    def test_templates_do_not_cross_inputs(self):
        """The last template of an input and the first of the next have one name."""
        records = [f"q\t{flag}\tx\t{pos}\t9\t4M\t*\t0\t0\tACGT\tFFFF\n"
                   for flag, pos in ((65, 10), (129, 50))]
        header = bamfile.sq_text(templates.REFS)
        one = self.write("one.sam", header + records[0])
        two = self.write("two.sam", header + records[1])
        bam = self.bam_of(header + records[1], name="two.bam")
        want = self.wanted(one).records + self.wanted(two).records
        for other in (two, bam):
            got = self.sort_bam("-u", "--fixmate", "-o", "-", one, other)
            self.assert_same_records(got.records, want)

    def test_zeros_after_a_name_are_padding(self):
        reads = (("q", 65), ("q\0\0", 129), ("qq", 65), ("qq\0", 129), ("q", 0))
        outs = []
        for names in ([name.rstrip("\0") for name, _ in reads], [name for name, _ in reads]):
            records = b"".join(bamfile.record(name, flag, 0, 9, "4M", "ACGT")
                               for name, (_, flag) in zip(names, reads))
            source = self.write("in.bam", bamfile.bgzf(bamfile.bam_header("", [("x", 300)]) + records))
            if not outs:
                self.check(source)
            outs.append(self.sort_bam("--no-PG", "--fixmate", source).records)
        self.assertEqual(outs[1], outs[0])

    def test_all_records_may_be_left_out(self):
        sq = bamfile.sq_text(templates.REFS)
        self.check(self.write("none.sam", sq))
        source = self.write("in.sam", sq + "q\t4\t*\t0\t0\t*\t*\t0\t0\tACGT\tFFFF\n")
        for budget in (None, SPILLING):
            self.check(source, "-r", budget=budget)


class BaseModifications(FixmateTest):
    """Parts of reads that samtools 1.24 cuts wrongly: strands, codes and bases of all kinds, MN
    before other tags. What their tags say is compared with what the whole read says."""

    def fixed(self, sam):
        """Fields of the records."""
        out = self.sort_ok("--fixmate=-M", "-O", "sam", "-o", "-",
                           self.write("in.sam", sam)).out.decode()
        return [line.split("\t") for line in out.splitlines() if line[0] != "@"]

    def check_parts(self, lines):
        """Every part of a read says of its bases what the whole read says. Returns how many parts
        have modified bases."""
        n_modified = 0
        whole = {}
        for line in lines:
            flag = int(line[1])
            if not flag & 0x900:
                bases = line[9] if not flag & 16 else templates.reverse_complement(line[9])
                whole[line[0], flag & 192] = bases, mods_of(line, bases, 0)
        for line in lines:
            flag = int(line[1])
            if flag & 0x900 and any(field.startswith("MM:Z:") for field in line):
                read, mods = whole[line[0], flag & 192]
                clips = [0, 0]
                for end, pattern in enumerate((r"^(\d+)H", r"(\d+)H$")):
                    clip = re.search(pattern, line[5])
                    clips[end] = int(clip[1]) if clip else 0
                first, last = reversed(clips) if flag & 16 else clips
                part = read[first:len(read) - last]
                want = [mod for mod in mods if first <= mod[0] < len(read) - last]
                with self.subTest(line=line):
                    self.assertEqual(mods_of(line, part, first), want)
                    self.assertIn(f"MN:i:{len(part)}", line)
                n_modified += bool(want)
        return n_modified

    def test_parts_of_reads_keep_their_base_modifications(self):
        n_modified = 0
        for seed in range(4):
            lines = self.fixed(templates.Parts(seed).sam(150))
            n_modified += self.check_parts(lines)
        self.assertGreater(n_modified, 800)


class Grouping(FixmateTest):
    """Input in which mates are not beside each other gives a warning, and what samtools gives."""

    def sam(self, n_pairs, n_alone):
        """Pairs in their groups, then pairs whose reads lie apart."""
        pairs = [[f"r{i}\t{flag}\tx\t9\t9\t4M\t*\t0\t0\tACGT\tFFFF" for flag in (65, 129)]
                 for i in range(n_pairs + n_alone // 2)]
        lines = [line for pair in pairs[:n_pairs] for line in pair]
        for which in (0, 1):
            lines += [pair[which] for pair in pairs[n_pairs:]]
        return bamfile.sq_text(templates.REFS) + "\n".join(lines) + "\n"

    def warnings(self, *args, **how):
        err = self.sort_ok("--fixmate", *args, "-o", self.path("out.bam"), **how).err
        return [line for line in err.splitlines() if ": warning: " in line]

    def test_reads_apart_are_warned_of(self):
        source = self.write("in.sam", self.sam(4000, 1002))
        warning, = self.warnings(source)
        self.assertIn("1002 of 9002 paired reads have no mate beside them", warning)
        self.assertIn("samtools collate or rocksort -n first", warning)
        warning, = self.warnings("-@", "3", source, source, budget=SPILLING)
        self.assertIn("2004 of 18004 paired reads have", warning)
        self.assertEqual(self.warnings("--quiet", source), [])
        if pysam:
            self.check(source)

    def test_few_reads_without_mates_are_no_reason_to_warn(self):
        single = "".join(f"s{i}\t0\tx\t9\t9\t4M\t*\t0\t0\tACGT\tFFFF\n" for i in range(3000))
        apart = self.write("in.sam", self.sam(0, 1002))
        grouped = self.path("grouped.bam")
        self.sort_ok("-n", "-o", grouped, apart)
        for source in (grouped, self.write("few.sam", self.sam(0, 1000)),
                       self.write("many.sam", self.sam(4510, 1002)),
                       self.write("single.sam", self.sam(3, 0) + single)):
            self.assertEqual(self.warnings(source), [], source)


class Refused(FixmateTest):
    def test_input_sorted_by_coordinate_is_refused(self):
        sq = bamfile.sq_text(templates.REFS)
        source = self.write("in.sam", "@HD\tVN:1.6\tSO:coordinate\n" + sq)
        other = self.write("other.sam", "@HD\tVN:1.6\tSO:unsorted\n" + sq)
        late = self.write("late.sam", sq + "@HD\tVN:1.6\tSO:coordinate\n")
        for inputs in ([source], [other, source], [source, other], [late]):
            result = self.rocksort("--fixmate", "-o", self.path("out.bam"), *inputs)
            self.assert_error(result, late if late in inputs else source, "sorted by coordinate",
                              "-n")
        self.sort_ok("--fixmate", "-o", self.path("out.bam"), other, other)

    def test_wrong_options_are_refused(self):
        source = self.write("in.sam", bamfile.sq_text(templates.REFS))
        for options, words in (("-u", "does not take -u: give options such as -@"),
                               ("-O bam", "take -O"), ("-@ 4", "take -@"),
                               ("--no-PG", "take --no-PG"), ("--reference x.fa", "--reference"),
                               ("--output-fmt-option level=1", "take --output-fmt-option"),
                               ("--write-index", "take --write-index"),
                               ("-x", "take -x"), ("-z off -xr", "take -x"),
                               ("--what", "take --what"),
                               ("-z", "needs a value"), ("-z never", "not 'never'"),
                               ("-r in.bam", "not 'in.bam'"), ("-z 'off", "has no end"),
                               ("--sanitize=never", "not 'never'")):
            self.assert_refused("--fixmate=" + options, source=source, mention=[words])
        for option in ("--checksum-only", "--verify"):
            self.assert_error(self.rocksort("--fixmate", option, source), "--fixmate")

    def test_damaged_record_is_numbered_as_in_the_input(self):
        good = "".join(f"r{i // 2}\t{65 if i % 2 else 129}\tx\t9\t9\t1M\t*\t0\t0\tA\tF\n"
                       for i in range(999))
        sam = bamfile.sq_text(templates.REFS) + good + "bad\t0\tx\t9\t9\t2M\t*\t0\t0\tA\tF\n"
        result = self.rocksort("--fixmate", "-o", self.path("out.bam"), self.write("in.sam", sam))
        self.assert_error(result, "record 1000 ")

    def test_record_without_key_is_numbered_as_in_the_input(self):
        """It is that in the input, although later pieces were read before the record is found. If
        records before it may have been left out, the message has its name alone."""
        lines = [f"r{i // 2}\t{129 if i % 2 else 65}\tx\t9\t9\t1M\t*\t0\t0\tA\tF\tCB:Z:AC\n"
                 for i in range(9000)]
        lines[4567] = lines[4567].replace("CB:Z:AC", "CB:i:1")
        lines.insert(4566, lines[4566].replace("\t65", "\t329"))    # secondary
        source = self.bam_of(bamfile.sq_text(templates.REFS) + "".join(lines))
        for options, mention in (("", "record 4569 of"), ("-p", "record 4569 of"),
                                 ("-r", "read 'r2283' of")):
            result = self.rocksort(alone(options), "--template-coordinate", "-@", "3", "-o",
                                   self.path("out.bam"), source, budget=SPILLING)
            self.assert_error(result, mention, "CB tag")

    def test_damaged_tags_of_an_unmapped_read_are_refused(self):
        rec = bamfile.record(name="q", flag=4, tid=-1, pos=-1, aux=b"NMZab")
        bam = bamfile.bam_header("", [("x", 300)]) + rec
        source = self.write("in.bam", bamfile.bgzf(bam))
        self.assert_refused("--fixmate", source=source, mention=["record 1 ", "its tags are"])
        self.sort_ok("--fixmate=-z off", "-o", self.path("out.bam"), source)

    def test_truncated_input_is_refused(self):
        sam = templates.Generator(7, odd=0).sam(300)
        with gzip.open(self.bam_of(sam)) as file:
            raw = file.read()
        source = self.write("in.bam", bamfile.bgzf(raw[:-10]))
        self.assert_refused("--fixmate", source=source, mention=["is truncated"])
