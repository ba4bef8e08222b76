"""doc/column-questions.md: its command and its cells run as they stand; DuckDB in its shell and in
Python, Polars, pysam and awk give the same answers."""

import random
import re
import shlex
import shutil
import sys

from harness import ROOT, CliTest, reference, text_of
from test_columns import SQ, needs_readers

# At the end: bench has a columns.py, too.
sys.path.append(str(ROOT / "bench"))
import column_questions as questions  # noqa: E402

PAGE = ROOT / "doc/column-questions.md"
N_READS = 4000


def random_cigar(rng, flag):
    """(A CIGAR, its bases), 100 with the clipped ones; some reads have an intron of up to 20 kb."""
    clips = [rng.choice([0, 0, rng.randint(1, 40)]) for _ in range(2)]
    inner = 100 - sum(clips) - 3
    left = rng.randint(1, inner - 1)
    middle = rng.choice(["3M", "3I", "3=", "3X", "3M7D", f"3M{rng.randint(50, 20000)}N"])
    letters = "HH" if flag & 2048 else "SS"
    start, stop = (f"{n}{letter}" if n else "" for n, letter in zip(clips, letters))
    return f"{start}{left}M{middle}{inner - left}M{stop}", 100 - (sum(clips) if flag & 2048 else 0)


def random_sam(seed):
    """Reads of three lanes, of all kinds, with many pairs of places that split reads join."""
    rng, lines = random.Random(seed), []
    for i in range(N_READS):
        flag = (rng.choice([0, 16]) | rng.choice([64, 128]) | 1 | rng.choice([0, 2, 2, 2]) |
                rng.choice([0] * 9 + [256, 512, 1024, 2048]) | rng.choice([0] * 19 + [4]))
        lane = rng.choice("1123")
        tlen = rng.choice([0, rng.randint(-2000, 2000), rng.randint(-300, 300)])
        place = f"{rng.choice('cccd')}\t{rng.randint(1, 70000)}"
        if flag & 4 and rng.random() < 0.5:
            place = "*\t0"
        cigar, n = ("*", 100) if flag & 4 else random_cigar(rng, flag)
        tags = f"\tRG:Z:x.{lane}"
        if rng.random() < 0.1 and not flag & 4:
            place = f"c\t{rng.choice([999, 1000, 20000]) + rng.randint(0, 3)}"
            other = f"{rng.choice('cd')},{rng.choice([1999, 50000])}"
            tags += f"\tSA:Z:{other},-,50S50M,60,0;c,1,+,9M,0,0;"
        lines.append(f"A:1:F:{lane}:{i}:1:1\t{flag}\t{place}\t{rng.randint(0, 60)}\t{cigar}\t*\t0\t"
                     f"{tlen}\t{'A' * n}\t{'I' * n}{tags}\n")
    # Nothing but a clip, in no region.
    lines.append(f"A:1:F:1:c:1:1\t0\tc\t100000\t0\t90S\t*\t0\t0\t{'A' * 90}\t*\n")
    return SQ + "@RG\tID:x.1\n@RG\tID:x.2\n@RG\tID:x.3\n" + "".join(lines)


def random_regions(seed, n=100):
    """n regions of 1 base to 9 kb; some overlap, some begin or end where windows do."""
    rng, regions = random.Random(seed), {("c", 0, 1000), ("c", 999, 1000), ("c", 1000, 2000),
                                         ("c", 30000, 39000), ("c", 31000, 31001)}
    while len(regions) < n:
        start = rng.randrange(99000)
        regions.add((rng.choice("cd"), start, start + rng.choice([1, 80, rng.randint(1, 1000)])))
    return "".join("%s\t%d\t%d\n" % region for region in sorted(regions))


def numbered(text, second="21"):
    """The text with chromosomes that have numbers, which readers of CSV take for integers."""
    return re.sub(r"(^|\t|SN:|SA:Z:|;)([cd])(?=[\t,])",
                  lambda found: found[1] + {"c": "20", "d": second}[found[2]], text, flags=re.M)


@needs_readers
class Questions(CliTest):
    def setUp(self):
        super().setUp()
        self.samtools = shutil.which("samtools")
        self.make_files()

    def make_files(self, second="21", n_regions=100):
        self.bam_of(numbered(random_sam(1), second))
        self.write("regions.bed", numbered(random_regions(1, n_regions), second))
        command, = re.findall(r"^    samtools rocksort (.*)$", PAGE.read_text(), re.M)
        self.sort_ok(*shlex.split(command))

    def answer(self, way, number):
        """The sorted lines that a way answers."""
        done = self.run_program([sys.executable, "-B", "-W", "error", questions.__file__, way,
                                 str(number), *([self.samtools] if way == "awk" else [])])
        self.assertEqual((done.status, done.err), (0, ""), (way, number))
        return sorted(done.out.decode().splitlines())

    def test_all_ways_give_the_same_answers(self):
        numbers = list(questions.read_titles())
        self.assertEqual(numbers, [1, 2, 3, 4, 5, 6])
        self.assertEqual([numbers, numbers], [list(questions.PYSAM), list(questions.AWK)])
        for number in numbers:
            want = self.answer("pysam", number)
            self.assertGreater(len(want), 2)
            for way in questions.WAYS:
                if not {"awk": self.samtools, "shell": questions.find_shell()}.get(way, True):
                    continue
                with self.subTest(number=number, way=way):
                    self.assertEqual(self.answer(way, number), want)

    def test_letters_after_hundreds_of_numbers_are_read(self):
        self.make_files("X", 1000)
        with open(self.path("regions.bed"), encoding="ascii") as file:
            self.assertNotIn("X", file.read(9 * 300))
        for number in 5, 6:
            want = self.answer("pysam", number)
            self.assertTrue(any("X" in line for line in want) or number == 6)
            for way in "duckdb", "polars", *(["shell"] if questions.find_shell() else []):
                self.assertEqual(self.answer(way, number), want, way)

    def test_coverage_is_that_of_bedcov(self):
        out = self.path("bedcov")
        self.assertTrue(reference("bedcov", self.path("regions.bed"), self.path("sample.bam"),
                                  save_stdout=out))
        want = [line for line in text_of(out).splitlines() if not line.endswith("\t0")]
        self.assertEqual(self.answer("duckdb", 5), sorted(want))
