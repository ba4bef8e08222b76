"""--fixmate of templates that do not fit in memory: their records go through a file. The result must
be that of samtools fixmate -m of 1.24, and memory stays within the promise.
"""

import random

import bamfile
import templates
from checkpoints import KilledTest
from harness import SPILL_BUDGET, needs_pysam, own_memory_only
from test_fixmate import ORDERS, SPILLING, FixmateTest

PADDING = "\tXP:Z:" + 400 * "p"         # so that fewer records are a large template


def lines_of(sam, name=None):
    """The records of SAM text, all with one name if it is given."""
    lines = [line for line in sam.splitlines() if line[0] != "@"]
    return [name + line[line.index("\t"):] for line in lines] if name else lines


def large(seed, sizes=(4_000,), generator=templates.Generator, **how):
    """SAM text: large templates of some four records for each of a size, and small ones before,
    between and after them; with a negative size nothing follows."""
    made = generator(seed, **how)
    text = made.sam(60)
    lines = []
    for number, size in enumerate(sizes):
        lines += [line + PADDING for line in lines_of(made.sam(abs(size)), f"large{number}")]
        if size > 0 and number % 2 == 0:
            lines += lines_of(made.sam(500))
    return text + "".join(line + "\n" for line in lines)


@needs_pysam
class LikeSamtools(FixmateTest):
    def test_random_templates(self):
        for seed, options in enumerate(("", "-r", "-p -c", "-z off")):
            sizes = ((4_500,), (-4_000,), (4_000, 4_000, -4_000), (7_000,))[seed]
            sam = large(seed, sizes, odd=(0.05, 0)[seed % 2])
            source = self.write("in.sam", sam) if seed == 2 else self.bam_of(sam)
            with self.subTest(options=options, sizes=sizes):
                for budget, threads in ((None, "1"), (SPILLING, "3")):
                    self.check(source, options, ORDERS[seed % 3], budget=budget,
                               inputs=["-@", threads, source])

    def test_base_modifications(self):
        """samtools 1.24 cuts some of them wrongly: with enough memory the template is not large."""
        source = self.bam_of(large(7, (4_000,), templates.Modified))
        want = self.sort_bam("-u", "--fixmate=-M", "-m", "1G", source)
        got = self.sort_bam("-u", "--fixmate=-M", source, budget=SPILLING)
        self.assert_same_records(got.records, want.records)

    def test_two_primary_records(self):
        rng = random.Random(5)
        lines = []
        for i in range(30_000):
            flag = rng.choice((0x100, 0x800, 0x900)) | rng.choice((65, 129))
            if i in (11_000, 20_000):
                flag = 65 if i == 11_000 else 129
            bases = "".join(rng.choices("ACGT", k=100))
            lines.append(f"q\t{flag}\tx\t{rng.randint(1, 100)}\t9\t100M\t*\t0\t0\t{bases}\t"
                         f"{'F' * 100}")
        sam = bamfile.sq_text(templates.REFS) + "\n".join(lines) + "\n"
        source = self.bam_of(sam)
        self.check(source, budget=SPILLING)
        with open(source, "rb") as file:
            self.assert_same_records(self.sort_bam("-u", "--fixmate", stdin=file).records,
                                     self.wanted(source).records)

    def test_template_made_large_by_tags_is_sorted(self):
        cigar = "1M1I" * 30_000
        lines = [f"q\t65\tx\t9\t9\t{cigar}\t*\t0\t0\t*\t*", "q\t129\tx\t9\t9\t1M\t*\t0\t0\t*\t*"]
        lines += ["q\t2177\tx\t9\t9\t1M\t*\t0\t0\t*\t*"] * 90
        small = [f"r\t{flag}\tx\t{flag}\t9\t1M\t*\t0\t0\t*\t*" for flag in (65, 129)]
        for number, before in enumerate(((), small)):
            sam = bamfile.sq_text([("x", 60_000)]) + "\n".join((*before, *lines, *small)) + "\n"
            self.check(self.write(f"in{number}.sam", sam), budget=SPILLING)


class Large(KilledTest, FixmateTest):
    def test_number_of_a_damaged_record_counts_all_records(self):
        for flag in (65, 321):
            lines = lines_of(large(2, (-4_000,), odd=0))
            n = len(lines) - 700
            lines.insert(n, f"large0\t{flag}\tx\t9\t9\t2M\t*\t0\t0\tA\tF")
            header = templates.Generator(2).sam(0)
            source = self.write("in.sam", header + "\n".join(lines) + "\n")
            result = self.rocksort("--fixmate", "-o", self.path("out.bam"), source,
                                   budget=SPILLING)
            self.assert_error(result, f"record {n + 1} ")

    def test_full_disk(self):
        source = self.bam_of(large(3, odd=0))
        for fault, what in (("pwrite:1+:ENOSPC:(deleted)", "No space left"),
                            ("pwrite:9+:ENOSPC:(deleted)", "No space left"),
                            ("pread:3:EIO:(deleted)", "cannot read temporary data"),
                            ("open:1:ENOSPC:" + str(self.scratch), "cannot create temporary data")):
            result = self.rocksort("--fixmate", "-T", self.scratch, "-o", self.path("out.bam"),
                                   source, budget=SPILLING, env=self.faulty(fault))
            self.assert_error(result, str(self.scratch), what)
            self.assert_no_result(self.path("out.bam"))

    def test_short_reads_and_writes(self):
        source = self.bam_of(large(4, odd=0))
        want = self.sort_bam("--fixmate", "-o", "-", source)
        fault = "pwrite:2+:short:(deleted),pread:5+:short:(deleted)"
        got = self.sort_bam("--fixmate", "-T", self.scratch, "-o", "-", source,
                            budget=SPILLING, env=self.faulty(fault))
        self.assert_same_records(got.records, want.records)

    def test_killed_sort_goes_on_with_the_whole_template(self):
        source = self.bam_of(large(5, (4_000, 4_000, 4_000), odd=0.02))
        want = self.sort_bam("--no-PG", "--fixmate=-r", source)
        for numbers in ((2,), (9,), (14, 3), (14, 9, 9), (30, 2)):
            with self.subTest(numbers=numbers):
                checkpoint = self.cut_load("--fixmate=-r", source, n_runs=numbers[0])
                for number in numbers[1:]:
                    result = self.rocksort("--resume", checkpoint, clean=False,
                                           budget=SPILL_BUDGET,
                                           env=self.faulty(f"link:{number}:kill:.sst"))
                    self.assertEqual(result.status, -9, result.err)
                self.resume(checkpoint)
                self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_partial_writes_the_part_of_a_template(self):
        source = self.bam_of(large(6, odd=0))
        checkpoint = self.cut_load("--fixmate", source, n_runs=9)
        self.resume(checkpoint, "--partial", "-o", self.path("part.bam"))
        fixed = self.sort_bam("--no-PG", "--fixmate", source)
        part = bamfile.split(bamfile.read(self.path("part.bam")).records)
        self.assertGreater(len(part), 1000)
        self.assertLessEqual(set(part), set(bamfile.split(fixed.records)))


@own_memory_only
class Memory(FixmateTest):
    N_BLOCKS, BLOCK_RECORDS = 3000, 1000

    def write_one_name(self):
        """A BAM of three million records of one name. Only its first records are primary."""
        rng = random.Random(9)
        path = self.path("one.bam")
        ends = [bamfile.record("one", flag, 0, pos, "100M", "ACGTA" * 20)
                for flag, pos in ((65, 900), (129, 1200))]
        others = [bamfile.record("one", rng.choice((0x100, 0x800)) | rng.choice((65, 129)), 0,
                                 rng.randrange(9_000_000), "40M", "ACGTA" * 8)
                  for _ in range(self.BLOCK_RECORDS)]
        block = b"".join(bamfile.bgzf_blocks(b"".join(others)))
        with open(path, "wb") as file:
            file.writelines(bamfile.bgzf_blocks(bamfile.bam_header("", [("x", 10_000_000)])))
            file.writelines(bamfile.bgzf_blocks(b"".join(ends)))
            for _ in range(self.N_BLOCKS):
                file.write(block)
            file.write(bamfile.EOF_BLOCK)
        return path

    def test_tags_that_make_templates_large(self):
        """A long CIGAR is in each of 200 short records of its template when they are fixed: 8 MB
        become 550 MB. Once each piece of the input on its way took up to 16 MiB then, 370 MiB in
        all."""
        cigar = "".join(f"{100_000 + i}M1D" for i in range(500))
        parts = [bamfile.record("NNNNN", 129, 0, 90, cigar),
                 bamfile.record("NNNNN", 65, 0, 7, "50M"),
                 bamfile.record("NNNNN", 65 | 0x800, 0, 7, "50M") * 200]
        path = self.path("in.bam")
        with open(path, "wb") as file:
            file.write(bamfile.bam_header("", [("x", 1 << 28)]))
            for i in range(600):
                file.write(b"".join(parts).replace(b"NNNNN", b"t%04d" % i))
        said = self.assert_peak(32, "-@", "16", "--max-memory", "32M", "-l", "1", "--fixmate", "-o",
                                self.path("out.bam"), path)
        self.assertIn(f"sorted {600 * 202} records, 5", said)

    def test_three_million_records_of_one_name_stay_within_the_limit(self):
        said = self.assert_peak(32, "-@", "2", "-m", "16M", "-l", "1", "--fixmate", "-o",
                                self.path("out.bam"), self.write_one_name())
        self.assertIn(f"sorted {self.N_BLOCKS * self.BLOCK_RECORDS + 2} records", said)
