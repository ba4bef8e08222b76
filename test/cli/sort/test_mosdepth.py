"""--mosdepth: the files of Debian's mosdepth 0.3.3, byte for byte once they are decompressed, for
random records and options; and what mosdepth itself cannot do.
"""

import gzip
import os
import random
import shutil
import subprocess
import unittest

from harness import CliTest, needs_pysam, pysam

MOSDEPTH = shutil.which("mosdepth")
SPILLING = 100_000


def cigar_text(ops):
    return "".join(f"{n}{op}" for n, op in ops) or "*"


def reference_bases(ops):
    return sum(n for n, op in ops if op in "MDN=X")


class Case:
    """Random records of pairs, which often overlap, and of single reads; options and regions."""

    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.lengths = [rng.choice((1, 3, 200, 1000, 5000, 70_000))
                        for _ in range(rng.choice((1, 2, 6)))]
        self.reads = []
        covered = [tid for tid in range(len(self.lengths)) if rng.random() < 0.8]
        for number in range(rng.choice((0, 3, 100, 800)) if covered else 0):
            self.add_pair(number, rng.choice(covered))
        self.reads.sort(key=lambda read: read[:2])
        self.bed = self.make_bed()
        self.options = self.choose_options()

    def cigar(self, most_bases):
        rng = self.rng
        if most_bases < 10 or rng.random() < 0.6:
            return [(rng.randint(1, most_bases), "M")]
        ops = []
        for _ in range(rng.randint(2, 4)):
            ops += [(rng.randint(1, most_bases // 10), rng.choice("MM=X")),
                    (rng.randint(1, most_bases // 20 + 1), rng.choice("IDNSP"))]
        return ops + [(1, "M")]

    def add(self, name, flag, tid, pos, cigar, mate):
        group = self.rng.choice(("", "\tRG:Z:a", "\tRG:Z:b"))
        mapq = self.rng.choice((0, 10, 60))
        self.reads.append((tid, pos, f"{name}\t{flag}\tc{tid}\t{pos + 1}\t{mapq}\t"
                           f"{cigar_text(cigar)}\t{mate}\t0\t*\t*{group}\n"))

    def add_pair(self, number, tid):
        rng, length = self.rng, self.lengths[tid]
        others = rng.choice((0, 0, 0, 0x400, 0x200, 0x100, 0x800))
        pos = rng.randrange(length)
        cigar = self.cigar(min(150, length - pos))
        if rng.random() < 0.3:
            self.add(f"s{number}", others, tid, pos, cigar, "*\t0")
            return
        mate_pos = min(length - 1, pos + rng.choice((0, rng.randint(0, 150), rng.randint(0, 600))))
        mate_cigar = self.cigar(min(150, length - mate_pos))
        proper = 2 if rng.random() < 0.9 else 0
        self.add(f"p{number}", 0x41 | proper | others, tid, pos, cigar, f"=\t{mate_pos + 1}")
        self.add(f"p{number}", 0x81 | proper | others, tid, mate_pos, mate_cigar, f"=\t{pos + 1}")

    def make_bed(self):
        lines = []
        for _ in range(self.rng.randint(1, 40)):
            tid = self.rng.randrange(len(self.lengths))
            begin = self.rng.randrange(self.lengths[tid])
            end = min(self.lengths[tid], begin + self.rng.choice((1, 60, 5000)))
            lines.append(f"c{tid}\t{begin}\t{end}{self.rng.choice(('', chr(9) + 'a b'))}\n")
        return "".join(lines)

    def choose_options(self):
        rng = self.rng
        options = rng.sample(("-n", "-x", "-Q 5", "-F 1024", "-i 80", "-R a,z", "-c c0",
                              f"-q {rng.choice(('0:1:4:', '2', '1:3'))}"), rng.randint(0, 3))
        if rng.random() < 0.7:
            options += [f"--by {rng.choice(('7', '100', '1000', 'regions.bed'))}"]
            options += rng.sample(("-m", "-T 2,1,8"), rng.randint(0, 2))
        return " ".join(options)

    def sam(self):
        return ("@HD\tVN:1.6\n" +
                "".join(f"@SQ\tSN:c{i}\tLN:{n}\n" for i, n in enumerate(self.lengths)) +
                "@RG\tID:a\n@RG\tID:b\n" + "".join(read[2] for read in self.reads))


def contents(directory, prefix):
    """{suffix: bytes, decompressed}; of an index only that it is there."""
    found = {}
    for name in os.listdir(directory):
        if not name.startswith(prefix + "."):
            continue
        path = os.path.join(directory, name)
        with (gzip.open if name.endswith(".gz") else open)(path, "rb") as file:
            found[name[len(prefix):]] = b"" if name.endswith(".csi") else file.read()
    return found


def sam_of(lengths, *reads):
    """A SAM text; a read is (name, flag, reference, position from 0, CIGAR[, position of the mate[,
    length of the template]])."""
    lines = [f"@SQ\tSN:c{i}\tLN:{n}\n" for i, n in enumerate(lengths)]
    for name, flag, tid, pos, cigar, *mate in reads:
        mate_pos, length = (*mate, *(None, 0)[len(mate):])
        lines.append(f"{name}\t{flag}\tc{tid}\t{pos + 1}\t60\t{cigar}\t"
                     f"{'*' if mate_pos is None else '='}\t"
                     f"{0 if mate_pos is None else mate_pos + 1}\t{length}\t*\t*\n")
    return "".join(lines)


class Mosdepth(CliTest):
    def depth(self, sam, options="", threads=2, budget=None, **env):
        """The files for a SAM text with options of mosdepth."""
        source = self.write("in.sam", sam)
        self.sort_ok("-@", threads, "--mosdepth", f"{options} got".strip(), "-o",
                     self.path("out.bam"), "--write-index", source, budget=budget, env=env)
        return contents(self.work, "got")

    def lines(self, sam, options="", file=".per-base.bed.gz", **how):
        """The lines of a file, each with blanks for tabs."""
        return self.depth(sam, options, **how)[file].decode().replace("\t", " ").splitlines()

    def drop_results(self):
        for name in self.files():
            if name.startswith(("got.", "want.")):
                os.unlink(self.path(name))

    @unittest.skipUnless(MOSDEPTH, "mosdepth is not installed")
    def test_files_of_random_cases_are_those_of_mosdepth(self):
        for seed in range(40):
            case = Case(seed)
            with self.subTest(seed=seed, options=case.options):
                self.write("regions.bed", case.bed)
                got = self.depth(case.sam(), case.options, threads=1 + seed % 3,
                                 budget=SPILLING if seed % 2 else None)
                subprocess.run([MOSDEPTH, *case.options.split(), "want", "out.bam"], cwd=self.work,
                               check=True)
                want = contents(self.work, "want")
                self.drop_results()
                self.assertEqual(got, want)

    @unittest.skipUnless(MOSDEPTH, "mosdepth is not installed")
    def test_environment_has_the_meaning_it_has_for_mosdepth(self):
        env = {"MOSDEPTH_PRECISION": "4", "MOSDEPTH_Q0": "NONE", "MOSDEPTH_Q2": "MUCH"}
        got = self.depth(Case(3).sam(), "--by 7 -q 0:1:3:", **env)
        subprocess.run([MOSDEPTH, "--by", "7", "-q", "0:1:3:", "want", "out.bam"], cwd=self.work,
                       check=True, env={**os.environ, **env})
        self.assertEqual(got, contents(self.work, "want"))

    def test_depth_does_not_depend_on_memory_and_threads(self):
        rng = random.Random(5)
        reads = []
        for number in range(4000):
            pos = rng.randrange(60_000)
            mate_pos = pos + rng.randint(0, 120)
            skip = rng.choice((0, 0, 0, 10, 9000))
            cigar = f"50M{skip}N50M" if skip else "100M"
            reads += [(f"p{number}", 0x43, 0, pos, cigar, mate_pos),
                      (f"p{number}", 0x83, 0, mate_pos, "100M", pos)]
        sam = sam_of([80_000], *reads)
        options = "--by 500 -T 1,5 -q 0:3:"
        want = self.depth(sam, options, threads=1)
        for threads in (1, 4):
            got = self.depth(sam, options, threads=threads, budget=SPILLING)
            self.assertEqual(got, want)

    @needs_pysam
    def test_index_finds_the_lines_of_a_region(self):
        rng = random.Random(7)
        reads = [(f"r{i}", 0, rng.choice((0, 2)), rng.randrange(190_000), f"{rng.randint(1, 90)}M")
                 for i in range(9000)]
        self.write("regions.bed", "".join(
            f"c{rng.choice((0, 1, 2))}\t{begin}\t{begin + rng.choice((10, 50_000))}\n"
            for begin in rng.sample(range(150_000), 300)))
        got = self.depth(sam_of([200_000, 100_000, 300_000], *reads), "--by regions.bed -q 0:1:")
        for suffix in (".per-base.bed.gz", ".regions.bed.gz", ".quantized.bed.gz"):
            lines = [line.split("\t") for line in got[suffix].decode().splitlines()]
            path = self.path("got" + suffix)
            with pysam.TabixFile(path, index=path + ".csi") as file:
                for _ in range(40):
                    name, begin, *_ = rng.choice(lines)
                    begin, end = int(begin), int(begin) + rng.choice((1, 100, 40_000))
                    want = [line for line in lines
                            if line[0] == name and int(line[1]) < end and int(line[2]) > begin]
                    self.assertEqual([line.split("\t") for line in file.fetch(name, begin, end)],
                                     want)

    def test_reads_and_regions_beyond_the_end_have_no_depth_there(self):
        self.write("regions.bed", "c0\t90\t130\nc0\t120\t130\n")
        sam = sam_of([100], ("a", 0, 0, 95, "20M"), ("b", 0, 0, 90, "3M40D3M"))
        self.assertEqual(self.lines(sam), ["c0 0 90 0", "c0 90 93 1", "c0 93 95 0", "c0 95 100 1"])
        self.assertEqual(self.lines(sam, "--by regions.bed", ".regions.bed.gz"),
                         ["c0 90 130 0.20", "c0 120 130 0.00"])

    def test_regions_far_beyond_the_end_take_no_memory(self):
        self.write("regions.bed", f"c0\t1\t{2 ** 62}\nc0\t{2 ** 40}\t{2 ** 40 + 9}\n")
        self.assertEqual(self.lines(sam_of([100]), "--by regions.bed", ".regions.bed.gz"),
                         [f"c0 1 {2 ** 62} 0.00", f"c0 {2 ** 40} {2 ** 40 + 9} 0.00"])

    def test_mates_that_do_not_overlap_are_counted_as_they_are(self):
        sam = sam_of([100], ("a", 0x43, 0, 10, "30M", 20), ("a", 0x83, 0, 50, "10M", 10))
        self.assertEqual(self.lines(sam), ["c0 0 10 0", "c0 10 40 1", "c0 40 50 0", "c0 50 60 1",
                                           "c0 60 100 0"])

    def test_fragments_count_once_from_end_to_end(self):
        sam = sam_of([100], ("a", 0x43, 0, 10, "5M", 20, 15), ("a", 0x83, 0, 20, "5M", 10, -15),
                     ("b", 0x83, 0, 30, "5M", 30, 5), ("b", 0x43, 0, 30, "5M", 30, -5),
                     ("c", 0, 0, 50, "5M"))
        self.assertEqual(self.lines(sam, "-a"), ["c0 0 10 0", "c0 10 25 1", "c0 25 30 0",
                                                 "c0 30 35 1", "c0 35 100 0"])

    def test_template_lengths_choose_reads(self):
        sam = sam_of([100], ("a", 0x43, 0, 10, "5M", 20, 15), ("b", 0x43, 0, 20, "5M", 40, 25))
        self.assertEqual(self.lines(sam, "-l 20"), ["c0 0 20 0", "c0 20 25 1", "c0 25 100 0"])
        self.assertEqual(self.lines(sam, "-u 20"), ["c0 0 10 0", "c0 10 15 1", "c0 15 100 0"])

    def test_lines_of_other_references_are_left_out_with_a_warning(self):
        bed = self.write("regions.bed", "other\t1\t2\n\nc0\t1\t3\n")
        source = self.write("in.sam", sam_of([100], ("a", 0, 0, 0, "5M")))
        result = self.sort_ok("--mosdepth", f"-n -b {bed} got", "-o", self.path("out.bam"), source)
        self.assertIn("1 lines of references that the header lacks", result.err)
        self.assertEqual(contents(self.work, "got")[".regions.bed.gz"], b"c0\t1\t3\t1.00\n")

    def test_wrong_options_are_refused(self):
        source = self.write("in.sam", sam_of([100]))
        for options, mention in (
                ("-T 1", "--by"), ("-b 0", "windows"), ("-b missing.bed", "missing.bed"),
                ("-q 1:x", "depths"), ("-T 1,,2", "depths"), ("-x -a", "-a"), ("-z", "-z"),
                ("-F 65536", "65535"), ("-c zz", "zz"), ("more", "more")):
            with self.subTest(options=options):
                self.assert_error(self.rocksort("--mosdepth", f"-n {options} got", "-o",
                                                self.path("out.bam"), source), mention)
        self.assert_error(self.rocksort("-n", "--mosdepth", "got", "-o", self.path("out.bam"),
                                        source), "--mosdepth")
        self.assertEqual(self.files(), ["in.sam"])
