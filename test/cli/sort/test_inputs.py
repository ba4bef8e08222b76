"""Several inputs: one sorted output, with united read groups and programs.

The output must be that of sorting all records as one input: those of the first input, then those of
the second, and so on.
"""

import gzip
import os
import random
import re
import struct

import bamfile
import generate
from harness import (SAMTOOLS, CliTest, bytes_of, needs_pysam, own_memory_only, reference_sort,
                     reference_view, sam_split, text_of, without_pg)

REFS = [("chr1", 5000), ("chr2", 900)]
SQ = bamfile.sq_text(REFS)
ORDERS = {
    "coordinate": [], "natural": ["-n"], "lexicographical": ["-N"], "tag": ["-t", "XT"],
    "tag and name": ["-n", "-t", "XT"], "template": ["--template-coordinate"], "minhash": ["-M"],
}
SPILLING = 150_000
BUDGETS = (None, SPILLING)


def pair(rng, number):
    """The two lines of a read pair, with the tags that every order needs. Names and positions are
    few, so that most keys occur several times. XI has the number of the record."""
    name = f"q{rng.choice(('', '0', '00'))}{rng.randint(1, 9)}"
    kind = rng.random()
    ref, _ = rng.choice(REFS)
    first, second = rng.choice((100, 100, 101, 700)), rng.choice((150, 150, 800))
    lines = []
    for i, flag in enumerate((0x40, 0x80)):
        flag |= 1 | rng.choice((0, 0x10)) if kind > 0.2 else 1
        bases = "".join(rng.choices("ACGT", k=50))
        place = f"{ref}\t{first if i == 0 else second}"
        mate = f"=\t{second if i == 0 else first}"
        cigar, tags = "50M", ["MC:Z:50M"]
        if kind < 0.1:
            place, mate, cigar, tags, flag = "*\t0", "*\t0", "*", [], flag | 12
        elif kind < 0.2:
            place, mate = f"{ref}\t{first}", f"=\t{first}"
            cigar, tags, flag = ("50M", [], flag | 8) if i == 0 else ("*", tags, flag | 4)
        tags += [f"XI:i:{number + i}"]
        tags += [rng.choice(("XT:i:5", "XT:i:70000", "XT:Z:five", "XT:A:c"))] * (rng.random() < 0.8)
        lines.append(f"{name}\t{flag}\t{place}\t{9 if cigar != '*' else 0}\t{cigar}\t{mate}\t0\t"
                     f"{bases}\t{'F' * 50}\t" + "\t".join(tags))
    return lines


def lane(seed, n_pairs, header=SQ):
    """SAM of n_pairs pairs, numbered from 10,000 times the seed."""
    rng = random.Random(seed)
    lines = [line for i in range(n_pairs) for line in pair(rng, 10_000 * seed + 2 * i)]
    return header + "".join(line + "\n" for line in lines)


def tie(number):
    """A raw record whose keys are the same for each number, in every order."""
    return bamfile.record("tie", 0, 0, 99, "5M", "ACGTA", b"XIi" + struct.pack("<i", number))


def number_of(raw):
    """The XI number of a tie."""
    return struct.unpack("<i", raw[-4:])[0]


def bam_bytes(records, header=SQ, refs=None):
    refs = REFS if refs is None else refs
    return bamfile.bgzf(bamfile.bam_header(header, refs) + b"".join(records))


class InputsTest(CliTest):
    """Writes inputs in several formats and checks that data were spilled if they should be."""

    def in_format(self, form, sam, name):
        """The SAM text as a file of a format; returns its path."""
        if form == "sam":
            return self.write(name + ".sam", sam)
        if form == "sam.gz":
            return self.write(name + ".sam.gz", gzip.compress(sam.encode(), 1))
        if form == "sam.bgzf":
            return self.write(name + ".sam.bgz", bamfile.bgzf(sam.encode()))
        if form == "cram":
            return self.bam_of(sam, "-C", "--output-fmt-option", "no_ref=1", name=name + ".cram")
        path = self.bam_of(sam, *(["-u"] if form == "uncompressed bam" else []),
                           *(["-b"] if form == "bam" else ["-b", "-u"]), name=name + ".bam")
        if form in ("plain bam", "gzip bam"):
            raw = gzip.decompress(bytes_of(path))
            self.write(name + ".bam", gzip.compress(raw, 1) if form == "gzip bam" else raw)
        return path

    def concatenated(self, paths, header=SQ):
        """The records of all files as one SAM file, made by the reference samtools."""
        records = [line + "\n" for path in paths for line in sam_split(reference_view(path))[1]]
        return self.write("all.sam", header + "".join(records))

    def sort_inputs(self, *args, budget=None, **how):
        """Sorts to standard output as BAM; with a budget, it must spill. With -o - all names are
        inputs."""
        result = self.sort_ok("--no-PG", "-o", "-", *args, budget=budget, **how)
        if budget:
            self.assertRegex(result.err, r" [1-9]\d* runs on disk")
        return bamfile.parse_file(result.out)


FORMATS = ("bam", "sam", "sam.gz", "cram", "uncompressed bam", "plain bam", "gzip bam", "sam.bgzf")


@needs_pysam
class Concatenation(InputsTest):
    """Compared with the reference samtools, which sorts all records as one input."""

    def test_inputs_of_all_formats_are_sorted_together(self):
        paths = [self.in_format(form, lane(i + 1, 200), f"in{i}") for i, form in enumerate(FORMATS)]
        together = self.concatenated(paths)
        for k, (order, options) in enumerate(ORDERS.items()):
            want = reference_sort(together, self.path("want.bam"), *options)
            for n_threads, budget in (("1", SPILLING), ("3", BUDGETS[k % 2])):
                k = (k + int(n_threads)) % len(paths)
                args = paths[:k] + ["-"] + paths[k + 1 :]
                with self.subTest(order=order, budget=budget, threads=n_threads, stdin=FORMATS[k]):
                    with open(paths[k], "rb") as stdin:
                        got = self.sort_inputs(*options, "-@", n_threads, *args, stdin=stdin,
                                               budget=budget)
                    self.assert_same_bam(got, want, order)

    def test_inputs_without_references_are_sorted(self):
        line = "u%d\t4\t*\t0\t0\t*\t*\t0\t0\tACGT\tFFFF\n"
        fastq = "".join(f"@u{i}\nACGT\n+\nFFFF\n" for i in (5, 3, 8))
        paths = [self.write("in.sam", "".join(line % i for i in (7, 9, 1))),
                 self.write("in.fq", fastq),
                 self.write("in.bam", bam_bytes([bamfile.record("u6"), bamfile.record("u2")],
                                                "@CO\tx\n", [])),
                 self.write("in.fq.gz", gzip.compress(fastq.encode())),
                 self.write("in2.sam", "@HD\tVN:1.6\n" + line % 4)]
        together = self.concatenated(paths, "@CO\tx\n")
        for options in ([], ["-n"], ["-N"]):
            want = reference_sort(together, self.path("want.bam"), *options)
            got = self.sort_inputs(*options, *paths)
            self.assert_same_records(got.records, want.records)
            self.assertEqual(got.refs, [])
            self.assertIn("@CO\tx", got.text)


class Ties(InputsTest):
    """Stability and unusual lists of inputs; needs no reference samtools."""

    def numbers(self, *args, **how):
        return [number_of(raw) for raw in bamfile.split(self.sort_inputs(*args, **how).records)]

    def test_equal_records_come_in_order_of_the_inputs(self):
        inputs = []
        for i, n_records in enumerate((2000, 1, 700, 0, 2000, 2)):
            numbers = list(range(10_000 * i, 10_000 * i + n_records))
            path = self.write(f"in{i}.bam", bam_bytes(map(tie, numbers)))
            inputs.append((path, numbers))
        for n_threads in ("1", "3"):
            for options in ([], ["-n"], ["-N"], ["-t", "XX"]):
                for budget in BUDGETS:
                    got = self.numbers(*options, "-@", n_threads, *[path for path, _ in inputs],
                                       budget=budget)
                    self.assertEqual(got, [i for _, numbers in inputs for i in numbers])
            random.Random(5).shuffle(inputs)

    def test_file_given_twice_is_read_twice(self):
        source = self.write("in.bam", bam_bytes(map(tie, range(2000)), SQ + "@RG\tID:x\n@CO\tc\n"))
        for budget in BUDGETS:
            got = self.sort_inputs(source, source, budget=budget)
            self.assertEqual([number_of(raw) for raw in bamfile.split(got.records)],
                             2 * list(range(2000)))
            self.assertEqual(without_pg(got.text)[1:],
                             [*SQ.splitlines(), "@RG\tID:x", "@CO\tc"])

    def test_several_inputs_give_the_same_as_one(self):
        whole = generate.odd(3000, seed=5)
        header, lines = sam_split(whole)
        one = self.write("all.sam", whole)
        parts = [self.write(f"in{i}.sam", header + "".join(
            line + "\n" for line in lines[1000 * i : 1000 * (i + 1)])) for i in range(3)]
        for options in ([], ["-n"], ["-M", "-R"], ["--shuffle"], ["--shuffle=7"]):
            for budget in BUDGETS:
                with self.subTest(options=options, budget=budget):
                    self.assert_same_bam(self.sort_inputs(*options, *parts, budget=budget),
                                         self.sort_inputs(*options, one))

    def test_inputs_without_records_may_stand_anywhere(self):
        empty = {"bam": self.write("empty.bam", bam_bytes([])), "sam": self.write("empty.sam", SQ)}
        full = [self.write(f"in{i}.bam", bam_bytes([tie(i)])) for i in range(2)]
        sam = self.write("in.sam", SQ + "tie\t0\tchr1\t100\t0\t5M\t*\t0\t0\tACGTA\t*\n")
        for form, path in empty.items():
            with self.subTest(form):
                self.assertEqual(self.numbers(path, *full), [0, 1])
                self.assertEqual(self.numbers(full[0], path, path, full[1]), [0, 1])
                self.assertEqual(self.numbers(*full, path), [0, 1])
                self.assertEqual(self.numbers(path, path), [])
                self.assertEqual(len(bamfile.split(self.sort_inputs(sam, path, sam).records)), 2)

    def test_more_inputs_than_files_may_be_open(self):
        n_inputs = 300
        paths = []
        for i in range(n_inputs):
            records = map(tie, range(20 * i, 20 * i + 20))
            header = SQ + f"@RG\tID:x\tSM:{i % 3}\n@PG\tID:p{i % 5}\tPN:p\n"
            if i % 3 == 2:
                text = header + "".join(f"tie\t0\tchr1\t100\t0\t5M\t*\t0\t0\tACGTA\t*\tXI:i:{k}\n"
                                        for k in range(20 * i, 20 * i + 20))
                paths.append(self.write(f"in{i}.sam", text))
            else:
                paths.append(self.write(f"in{i}.bam", bam_bytes(records, header)))
        for budget in BUDGETS:
            out = self.path("out.sam")
            result = self.limited("n 64", "-o", out, *paths, budget=budget)
            self.assertEqual(result.status, 0, result.err)
            self.assertEqual(os.listdir(self.scratch), [])
            header, lines = sam_split(text_of(out))
            self.assertEqual([int(line.split("XI:i:")[1]) for line in lines],
                             list(range(20 * n_inputs)))
            self.assertEqual(header.count("@RG\t"), 3)
            self.assertEqual(header.count("@PG\tID:p"), 5)

    def test_output_may_replace_an_input(self):
        sources = [self.write(f"in{i}.bam", bam_bytes(map(tie, range(1000 * i, 1000 * i + 900))))
                   for i in range(2)]
        want = self.sort_inputs(*sources)
        for budget in BUDGETS:
            for target in sources:
                before = bytes_of(target)
                self.sort_ok("--no-PG", "-o", target, *sources, budget=budget)
                self.assertEqual(bamfile.read(target), want)
                self.write(os.path.basename(target), before)

    def test_dash_means_standard_input_beside_a_file_of_that_name(self):
        data = bam_bytes(map(tie, range(100, 200)))
        source = self.write("in.bam", bam_bytes(map(tie, range(100))))
        self.write("-", b"a file of that name")
        for stdin in ("file", "pipe"):
            with self.subTest(stdin):
                if stdin == "pipe":
                    got = self.numbers(source, "-", stdin=data)
                else:
                    with open(self.write("data.bam", data), "rb") as file:
                        got = self.numbers(source, "-", stdin=file)
                self.assertEqual(got, list(range(200)))

    def test_pipes_are_inputs(self):
        """Pipes, which can be opened only once, beside a file. Read groups collide."""
        paths = [self.write(f"in{i}.bam", bam_bytes(map(tie, range(500 * i, 500 * i + 500)),
                                                    SQ + f"@RG\tID:x\tSM:{i}\n"))
                 for i in range(3)]
        for options in ("", "--merge"):
            script = f'exec "$0" rocksort {options} -o - <(cat "$1") "$2" <(cat "$3")'
            result = self.run_program(["/bin/bash", "-c", script, SAMTOOLS, *paths])
            self.assertEqual(result.status, 0, result.err)
            records = bamfile.split(bamfile.parse_file(result.out).records)
            self.assertEqual([number_of(raw) for raw in records], list(range(1500)))


def fields_of(line):
    """The fields of a header line as a dict."""
    return dict(field.split(":", 1) for field in line.split("\t")[1:])


def meanings(header):
    """{"RG": {ID: content}, "PG": {ID: content}}. The content of a line has no IDs: a reference to
    a program is replaced by the content of that program."""
    lines = {"RG": {}, "PG": {}}
    for line in header.splitlines():
        if line[1:3] in lines:
            fields = fields_of(line)
            lines[line[1:3]].setdefault(fields["ID"], fields)

    def meaning(kind, key):
        fields = lines[kind].get(key)
        if fields is None:
            return key
        ref = "PP" if kind == "PG" else "PG"
        rest = sorted(item for item in fields.items() if item[0] not in ("ID", ref))
        return (rest, meaning("PG", fields[ref]) if ref in fields else None)

    return {kind: {key: meaning(kind, key) for key in lines[kind]} for kind in lines}


def tag_value(line, tag):
    """The value of a tag of type Z in a line of SAM, or None."""
    found = re.search(rf"\t{tag}:Z:([^\t]*)", line)
    return found.group(1) if found else None


class Collisions(InputsTest):
    """@RG and @PG lines whose IDs collide, and the records that refer to them."""

    def random_header(self, rng):
        """Lines with IDs from a small pool, so that most IDs collide; some lines are identical."""
        programs = rng.sample(["p", "q", "p-2", "long" * 30], rng.randint(0, 4))
        groups = rng.sample(["x", "y", "x-2", "x-3", "1", "group" * 20], rng.randint(1, 5))
        lines = []
        for i, program in enumerate(programs):
            before = f"\tPP:{rng.choice(programs[:i])}" if i and rng.random() < 0.7 else ""
            lines.append(f"@PG\tID:{program}\tPN:{rng.choice('AB')}{before}")
        for group in groups:
            ref = f"\tPG:{rng.choice(programs)}" if programs and rng.random() < 0.4 else ""
            lines.append(f"@RG\tID:{group}\tSM:{rng.choice('stu')}{ref}\tLB:{rng.choice('lm')}")
        if rng.random() < 0.5:
            rng.shuffle(lines)
        lines.append(f"@CO\tcomment {rng.randint(1, 3)}")
        return SQ + "".join(line + "\n" for line in lines), groups, programs

    def random_input(self, rng, first):
        """SAM whose records name read groups and programs of its header, or unknown ones, or none.
        A few records are longer than a sort buffer of the smallest budget."""
        header, groups, programs = self.random_header(rng)
        lines = []
        for number in range(first, first + rng.choice((1, 60, 600))):
            tags = [f"XI:i:{number}"]
            tags += [f"RG:Z:{rng.choice(groups)}"] * (rng.random() < 0.9)
            tags += [f"PG:Z:{rng.choice(programs + ['nobody'])}"] * (rng.random() < 0.5)
            tags += ["XZ:Z:RG:Z:x"] * (rng.random() < 0.2) + ["BB:B:S,1,2"] * (rng.random() < 0.2)
            rng.shuffle(tags)
            n_bases = 30_000 if rng.random() < 0.003 else 40
            lines.append(f"r{rng.randint(1, 99)}\t0\tchr1\t{rng.randint(1, 4000)}\t9\t{n_bases}M\t*"
                         f"\t0\t0\t{'ACGT' * (n_bases // 4)}\t*\t" + "\t".join(tags))
        return header + "".join(line + "\n" for line in lines)

    def check_records(self, text, inputs, what):
        """Each record of the output means the same as in its input: its line is the same except for
        the values of RG and PG, and the header lines that these name have the same content."""
        header, lines = sam_split(text)
        now = meanings(header)
        self.assertEqual(len(set(re.findall(r"^@RG\tID:([^\t\n]*)", header, re.M))),
                         header.count("\n@RG\t"), what)
        got = {int(line.split("XI:i:")[1].split("\t")[0]): line for line in lines}
        self.assertEqual(len(got), len(lines), what)
        n_records = 0
        for source in inputs:
            head, records = sam_split(source)
            before = meanings(head)
            n_records += len(records)
            for kind, said in before.items():  # header lines that no record names must stay, too
                for content in said.values():
                    self.assertIn(content, now[kind].values(), what)
            for line in records:
                mine = got[int(line.split("XI:i:")[1].split("\t")[0])]
                for tag in ("RG", "PG"):
                    old, new = tag_value(line, tag), tag_value(mine, tag)
                    self.assertEqual(old is None, new is None, what)
                    if old in before[tag]:
                        self.assertEqual(before[tag][old], now[tag].get(new), (what, old, new))
                    else:
                        self.assertEqual(old, new, what)
                    if old is not None:
                        line = line.replace(f"\t{tag}:Z:{old}", f"\t{tag}:Z:{new}", 1)
                self.assertEqual(mine, line, what)
        self.assertEqual(len(lines), n_records, what)

    def check(self, texts, forms, rng, what):
        """Sorts the texts in these formats and checks the records."""
        paths = [self.in_format(form, text, f"in{i}")
                 for i, (form, text) in enumerate(zip(forms, texts))]
        seen = [reference_view(path) if form == "cram" else text
                for form, text, path in zip(forms, texts, paths)]
        for budget in BUDGETS:
            at = rng.randrange(len(paths))
            with self.subTest(what=what, forms=forms, budget=budget, stdin=at):
                with open(paths[at], "rb") as stdin:
                    result = self.sort_ok("--no-PG", "-O", "sam", "-@", str(rng.randint(1, 3)),
                                          "-o", "-", *paths[:at], "-", *paths[at + 1 :],
                                          stdin=stdin, budget=budget)
                self.check_records(result.out.decode(), seen, what)

    @needs_pysam
    def test_records_keep_what_their_groups_and_programs_mean(self):
        rng = random.Random(2)
        for i, form in enumerate(FORMATS):
            texts = [self.random_input(rng, 1000 * k) for k in range(3)]
            self.check(texts, [form, *rng.sample(FORMATS, 1), form], rng, i)

    def test_united_header_has_all_lines(self):
        first = ("@HD\tVN:1.5\tSO:unsorted\n" + SQ + "@RG\tID:x\tSM:a\n@PG\tID:bwa\tPN:bwa\n"
                 "@PG\tID:dup\tPN:dup\tPP:bwa\n@CO\tsame\n@CO\tone\n")
        second = ("@HD\tVN:1.6\n" + SQ + "@RG\tID:x\tSM:b\tPG:dup\n@RG\tID:y\tSM:b\n@PG\tID:bwa\t"
                  "PN:bwa\tVN:2\n@PG\tID:dup\tPN:dup\tPP:bwa\n@CO\tsame\n@CO\ttwo\n")
        record = "r\t0\tchr1\t5\t9\t4M\t*\t0\t0\tACGT\t*\tRG:Z:x\tPG:Z:dup\n"
        paths = [self.write("a.sam", first + record), self.write("b.sam", second + record)]
        want = ("@HD\tVN:1.5\tSO:coordinate\n" + SQ + "@RG\tID:x\tSM:a\n@RG\tID:x-2\tSM:b\t"
                "PG:dup-2\n@RG\tID:y\tSM:b\n@PG\tID:bwa\tPN:bwa\n@PG\tID:dup\tPN:dup\tPP:bwa\n"
                "@PG\tID:bwa-2\tPN:bwa\tVN:2\n@PG\tID:dup-2\tPN:dup\tPP:bwa-2\n"
                "@CO\tsame\n@CO\tone\n@CO\ttwo\n")
        text = self.sort_ok("--no-PG", "-O", "sam", "-o", "-", *paths).out.decode()
        header, records = sam_split(text)
        self.assertEqual(header, want)
        self.assertEqual([line.split("\t")[11:] for line in records],
                         [["RG:Z:x", "PG:Z:dup"], ["RG:Z:x-2", "PG:Z:dup-2"]])
        # Without --no-PG each of the two chains gets one more line.
        text = self.sort_ok("-O", "sam", "-o", "-", *paths).out.decode()
        added = [fields_of(line) for line in text.splitlines()
                 if line.startswith("@PG") and "rocksort" in line]
        self.assertEqual(sorted(line["PP"] for line in added), ["dup", "dup-2"])

    def test_renamed_records_may_be_longer_than_their_blocks(self):
        header = SQ + "@RG\tID:{0}\tSM:{1}\n"
        group = "g" * 3000
        aux = b"RGZ" + group.encode() + b"\0"
        records = [bamfile.record(f"r{i}", 4, aux=aux) for i in range(300)]
        paths = [self.write(f"in{i}.bam", bam_bytes(records, header.format(group, i)))
                 for i in range(3)]
        for budget in BUDGETS:
            got = self.sort_inputs(*paths, budget=budget)
            want = []
            for tail in (b"", b"-2", b"-3"):
                longer = b"RGZ" + group.encode() + tail + b"\0"
                want += [bamfile.record(f"r{i}", 4, aux=longer) for i in range(300)]
            self.assert_same_records(got.records, b"".join(want))

    def test_records_beyond_bam_get_new_read_groups(self):
        rng = random.Random(6)
        texts = []
        for i in range(2):
            lines = [f"r\t0\tc\t{rng.choice((7, 2**31, 2**32 + rng.randrange(99)))}\t9\t4M\t=\t"
                     f"{2**33 - k}\t0\tACGT\t*\tRG:Z:x\tXI:i:{1000 * i + k}\n"
                     for k in range(900)]
            texts.append(f"@SQ\tSN:c\tLN:9000000000\n@RG\tID:x\tSM:{i}\n" + "".join(lines))
        paths = [self.write(f"in{i}.sam", text) for i, text in enumerate(texts)]
        for budget in (None, SPILLING // 2):
            result = self.sort_ok("--no-PG", "-O", "sam", "-o", "-", *paths, budget=budget)
            text = result.out.decode()
            self.check_records(text, texts, budget)
            positions = [int(line.split("\t")[3]) for line in sam_split(text)[1]]
            self.assertEqual(positions, sorted(positions))

    def test_orders_look_at_the_new_names(self):
        texts = [SQ + f"@RG\tID:{name}\tSM:s\tLB:{library}\n"
                 f"r\t0\tchr1\t5\t9\t4M\t*\t0\t0\tACGT\t*\tRG:Z:{name}\tXI:i:{i}\n"
                 for i, (name, library) in enumerate((("b", "2"), ("a", "3"), ("b", "1")))]
        paths = [self.write(f"in{i}.sam", text) for i, text in enumerate(texts)]
        for options, order in ((["-t", "RG"], [1, 0, 2]), (["--template-coordinate"], [2, 0, 1])):
            text = self.sort_ok("-O", "sam", "-o", "-", *options, *paths).out.decode()
            self.assertEqual([int(line[-1]) for line in sam_split(text)[1]], order)


@own_memory_only
class Memory(InputsTest):
    """A hundred inputs keep the same memory limit as one."""

    def check(self, paths):
        said = self.assert_peak(8, "--max-memory", "8M", "-l", "1", "-@", "2", "-o", "/dev/null",
                                *paths)
        self.assertRegex(said, r" [1-9]\d* runs on disk")

    def test_hundred_inputs_stay_within_the_limit(self):
        line = f"r\t0\tchr1\t5\t9\t80M\t*\t0\t0\t{'ACGT' * 20}\t*\tRG:Z:x\n"
        record = bamfile.record("r", 0, 0, 4, "80M", "ACGT" * 20, b"RGZx\0")
        bam, sam = [], []
        for sample in "st":
            header = SQ + f"@RG\tID:x\tSM:{sample}\n"
            bam.append(self.write(f"{sample}.bam", bam_bytes([record] * 2500, header)))
            sam.append(self.write(f"{sample}.sam", header + line * 2500))
        for paths in (100 * bam[:1], 25 * (bam + sam)):
            self.check(paths)

    def test_long_headers_stay_within_the_limit(self):
        """Headers with more references than the human genome has with its decoys."""
        refs = [(f"chrUn_{i:06}v1_decoy", 5000 + i) for i in range(6000)]
        text = bamfile.sq_text(refs)
        record = bamfile.record("r", 0, 0, 4, "80M", "ACGT" * 20)
        source = self.write("in.bam", bam_bytes([record] * 1500, text, refs))
        self.check(150 * [source])
