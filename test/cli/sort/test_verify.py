"""--verify: accepts sorted files in each order, and names the first record that is out of order."""

import random
import re
import shutil
import struct
import subprocess

import bamfile
import generate
from harness import ORDERS, CliTest, bytes_of, needs_pysam, own_lines, own_memory_only

REFS = [("a", 1000000), ("b", 1000000)]
SMALL_BUFFERS = {"ROCKSORT_TEST_SORT_BUFFER": "64K"}
ALL_ORDERS = {**ORDERS, "tag": ["-t", "XI"], "tag, name": ["-t", "Xi", "-n"],
              "tag, character": ["-t", "XZ", "-N"], "minimiser": ["-M"],
              "minimiser, forward": ["-M", "-R"], "minimiser, squeezed": ["-MH", "-K7"],
              "shuffle": ["--shuffle=7"]}
SUM = r"xxh3sum:[0-9a-f]{16} records:\d+ bytes:\d+\n"


def header(hd="SO:coordinate"):
    """The bytes of a BAM before its records, with the references."""
    text = f"@HD\tVN:1.6\t{hd}\n" if hd else ""
    return bamfile.bam_header(text + bamfile.sq_text(REFS), REFS)


def bam(records, hd="SO:coordinate"):
    return bamfile.bgzf(header(hd) + b"".join(records))


class VerifyTest(CliTest):
    def verify(self, *args, **how):
        return self.rocksort("--verify", *args, **how)

    def assert_sorted(self, result, words=""):
        """Exit status 0 and one line with the checksum for each file."""
        self.assertEqual(result.status, 0, result.err)
        for line in result.out.decode().splitlines(keepends=True):
            self.assertRegex(line, rf"^.*: (sorted by|in this) .*, {SUM}$")
            self.assertIn(words, line)

    def assert_violation(self, result, before, after, *mentions):
        """Exit status 1 and one line that names both records, with numbers counted from 1."""
        self.assertEqual(result.status, 1, result.err)
        self.assertEqual(result.out, b"")
        lines = own_lines(result.err)
        self.assertEqual(len(lines), 1, result.err)
        self.assertRegex(lines[0], rf"is not .*: record {before} \(.*\) comes before record "
                                   rf"{after} \(.*\)$")
        for mention in mentions:
            self.assertIn(mention, lines[0])


class OwnOutput(VerifyTest):
    """Outputs of rocksort are sorted."""

    def test_each_order_is_verified(self):
        source = self.write("in.sam", generate.odd(6000, seed=81))
        for name, options in ALL_ORDERS.items():
            out = self.path("out.bam")
            self.sort_ok(*options, "-o", out, source)
            given = options or ["--verify=coordinate"]
            checksum = self.sort_ok("--checksum-only", out).out.decode()
            for how in ([], ["-@", "3"]):
                for env in ({}, SMALL_BUFFERS):
                    with self.subTest(name, how=how, env=env):
                        result = self.verify(*given, *how, out, env=env)
                        self.assert_sorted(result)
                        self.assertEqual(result.err, "")
                        self.assertTrue(result.out.decode().endswith(", " + checksum))
            with self.subTest(name, claim=True):
                result = self.verify(out, env=SMALL_BUFFERS)
                if "--shuffle=7" in options:
                    self.assertEqual(result.status, 1)
                else:
                    self.assert_sorted(result)

    def test_template_order_is_verified(self):
        sam = generate.reads(1500, generate.reference())
        sam = re.sub(r"(\tRG:Z)", r"\tMC:Z:100M\1", sam)
        out = self.path("out.bam")
        self.sort_ok("--template-coordinate", "-o", out, self.write("in.sam", sam))
        self.assert_sorted(self.verify(out), "template")
        self.assert_sorted(self.verify("--template-coordinate", out, env=SMALL_BUFFERS))
        self.assertEqual(self.verify("--verify=coordinate", out).status, 1)

    def test_every_format_is_verified(self):
        refs = generate.reference()
        fasta = self.write("ref.fa", generate.fasta(refs))
        source = self.write("in.sam", generate.reads(2000, refs))
        for name in ("out.bam", "out.sam", "out.sam.gz", "out.cram"):
            self.sort_ok("--reference", fasta, "-o", self.path(name), source)
            with self.subTest(name):
                self.assert_sorted(self.verify("--reference", fasta, "-@", "2", self.path(name)))
        data = bytes_of(self.path("out.bam"))
        result = self.verify("-", stdin=data)
        self.assert_sorted(result)
        self.assertTrue(result.out.startswith(b"-: sorted by coordinate, "))
        self.assert_sorted(self.verify(stdin=data))

    def test_positions_beyond_2_31_are_compared(self):
        text = "@HD\tVN:1.6\tSO:coordinate\n@SQ\tSN:a\tLN:5000000000\n"
        lines = [f"r{i}\t{flag}\ta\t{pos}\t0\t4M\t*\t0\t0\tACGT\t*\n" for i, (pos, flag) in
                 enumerate(((5, 0), (3000000000, 0), (3000000000, 16), (4000000000, 0)))]
        good = self.write("good.sam", text + "".join(lines))
        self.assert_sorted(self.verify(good))
        bad = self.write("bad.sam", text + lines[0] + lines[3] + lines[1])
        self.assert_violation(self.verify(bad), 2, 3, "a:4000000000", "a:3000000000")

    @own_memory_only
    def test_verify_needs_little_memory(self):
        rng = random.Random(5)
        records = [bamfile.record(f"r{i:06}", 0, 0, i, "100M", "".join(rng.choices("ACGT", k=100)))
                   for i in range(60000)]
        self.assert_peak(8, "--verify", "-@", "2", "--max-memory", "8M",
                         self.write("in.bam", bam(records)))


class Violations(VerifyTest):
    """Files in which records are out of order."""

    N = 4000

    def records(self):
        """Records sorted by coordinate, by name as characters and as numbers, and by XI. They are
        about 10 sort buffers of 64K."""
        return [bamfile.record(f"r{i:05}", 0, i * 2 // self.N, 2 * i, "60M", "ACGTA" * 12,
                               b"XIi" + struct.pack("<i", i)) for i in range(self.N)]

    def test_swapped_neighbours_are_found_anywhere(self):
        good = self.records()
        places = list(range(0, self.N - 1, 211)) + [self.N - 2]
        border = 65536 * 2 // 3 // len(good[0])
        places += range(border - 6, border + 7)
        for i, at in enumerate(places):
            bad = list(good)
            bad[at], bad[at + 1] = bad[at + 1], bad[at]
            options, hd = ((["-n"], "SO:unknown"), ([], "SO:coordinate"),
                           ([], "SO:queryname"), (["-t", "XI"], ""))[i % 4]
            with self.subTest(at=at, options=options, hd=hd):
                result = self.verify(*options, "-@", str(1 + i % 3), stdin=bam(bad, hd),
                                     env=SMALL_BUFFERS if i % 2 else {})
                self.assert_violation(result, at + 1, at + 2, f"'r{at + 1:05}'", f"'r{at:05}'",
                                      f":{2 * at + 3}", f":{2 * at + 1}")
                if "-t" in options:
                    self.assertIn(f"XI:i:{at + 1})", result.err)

    def test_first_violation_of_many_is_named(self):
        good = self.records()
        rng = random.Random(9)
        bad = good[:2500] + rng.sample(good[2500:], len(good) - 2500)
        first = next(i for i in range(2500, self.N)
                     if bamfile.fields(bad[i])[:2] < bamfile.fields(bad[i - 1])[:2])
        for _ in range(2):
            self.assert_violation(self.verify("-@", "4", stdin=bam(bad), env=SMALL_BUFFERS),
                                  first, first + 1)

    def test_violation_names_the_file(self):
        good, bad = self.records()[:100], self.records()[:100]
        bad[7], bad[70] = bad[70], bad[7]
        paths = [self.write("good.bam", bam(good)), self.write("bad.bam", bam(bad)),
                 self.write("other.bam", bam(good))]
        result = self.verify(*paths)
        self.assertEqual(result.status, 1)
        self.assertEqual([line.split(":")[0] for line in result.out.decode().splitlines()],
                         [paths[0], paths[2]])
        self.assertEqual(len(own_lines(result.err)), 1)
        self.assertIn("bad.bam' is not sorted by coordinate: record 8 (read 'r00070', flag 0, a:141)"
                      " comes before record 9 (read 'r00008', flag 0, a:17)", result.err)

    def test_files_after_a_bad_one_are_verified(self):
        good = bam(self.records()[:100])
        bad = bam([bamfile.record("x"), bamfile.record("y", 0, 0, 5, "4M", "ACGT")])
        paths = [self.write(f"{name}.bam", data) for name, data in
                 (("cut", good[:len(good) // 2]), ("good", good), ("bad", bad), ("other", good))]
        for options in ([], ["--quiet"]):
            result = self.verify(*options, self.path("absent.bam"), *paths)
            self.assertEqual(result.status, 1)
            self.assertEqual([line.split(":")[0] for line in result.out.decode().splitlines()],
                             [paths[1], paths[3]])
            said = own_lines(result.err)
            self.assertEqual(len(said), 3, result.err)
            for line, name in zip(said, ("absent.bam", "cut.bam", "bad.bam")):
                self.assertIn(name, line)

    def test_strands_at_one_place_are_a_warning(self):
        """The file is sorted as its header claims, by the SAM specification, but not in samtools'
        order."""
        records = [bamfile.record("x", 16, 0, 5, "4M", "ACGT"), bamfile.record("y", 0, 0, 5, "4M",
                                                                                "ACGT")]
        result = self.verify(stdin=bam(records))
        self.assert_sorted(result)
        self.assert_one_message(result, "record 1 (read 'x'", "comes before record 2 (read 'y'",
                                "not in the order of samtools")
        self.assertEqual(self.verify("--verbosity", "1", stdin=bam(records)).err, "")
        self.assert_violation(self.verify("--verify=coordinate", stdin=bam(records)), 1, 2)

    def test_unplaced_reads_come_last(self):
        records = [bamfile.record("x"), bamfile.record("y", 0, 0, 5, "4M", "ACGT")]
        self.assert_violation(self.verify(stdin=bam(records)), 1, 2, "*:0", "a:6")

    def test_unplaced_reads_out_of_minimiser_order_are_named(self):
        rng = random.Random(3)
        reads = [bamfile.record(f"u{i}", 4, seq="".join(rng.choices("ACGT", k=50)))
                 for i in range(50)]
        source = self.write("in.bam", bam(reads, "SO:unsorted"))
        out = self.path("out.bam")
        self.sort_ok("-M", "-o", out, source)
        self.assert_sorted(self.verify("-M", out))
        self.assertEqual(self.verify("-M", source).status, 1)
        self.assertEqual(self.verify("-M", "-K", "9", out).status, 1)
        self.assert_error(self.verify("-I", self.write("r.fa", ">a\nACGT\n"), out), "-R")


class Claims(VerifyTest):
    """Headers that claim no order, or none that can be verified, and inputs that cannot be read."""

    def test_header_that_claims_no_order_is_no_answer(self):
        for hd in ("SO:unsorted", "SO:unknown", "SO:unsorted\tGO:query", "", "GO:none"):
            with self.subTest(hd):
                result = self.verify(stdin=bam([], hd))
                self.assertEqual((result.status, result.out), (1, b""))
                words = "says that it is unsorted" if "unsorted" in hd else "claims no order"
                self.assert_one_message(result, words, "--verify=coordinate", "-n",
                                        hd.split("\t")[0])
                self.assert_sorted(self.verify("--verify=coordinate", stdin=bam([], hd)))

    def test_quiet_still_says_unsorted(self):
        """The answer is no, which --quiet does not leave out."""
        result = self.verify("--quiet", stdin=bam([], "SO:unsorted"))
        self.assertEqual(result.status, 1)
        self.assert_one_message(result, "is unsorted")
        # An order that the header names in SS is checked.
        self.assert_sorted(self.verify(stdin=bam([], "SO:unsorted\tSS:unsorted:CB:coordinate")))

    def test_damaged_or_missing_file_is_an_error(self):
        data = bam([bamfile.record(f"r{i}", 0, 0, i, "4M", "ACGT") for i in range(9000)])
        self.assert_error(self.verify(stdin=data[: len(data) // 2]), "truncated")
        self.assert_error(self.verify(self.path("nowhere.bam")), "nowhere.bam")

    def test_paired_read_without_mc_has_no_template_coordinate(self):
        records = [bamfile.record("ok", 4), bamfile.record("bad", 1, 0, 7, "4M", "ACGT",
                                                           mate=(0, 99, 0))]
        self.assert_error(self.verify("--template-coordinate", stdin=bam(records)), "record 2 ",
                          "'bad'", "MC")


@needs_pysam
class OtherSorters(VerifyTest):
    """Outputs of older samtools are sorted (those of today's are as ours)."""

    def test_output_of_old_samtools_is_sorted(self):
        """The installed samtools, if it is older than SS fields; some names have leading zeros."""
        samtools = shutil.which("samtools")
        version = subprocess.run([samtools or "false", "--version"], capture_output=True, text=True,
                                 check=False, encoding="latin-1").stdout
        found = re.match(r"samtools 1\.(\d+)", version)
        if not found or int(found.group(1)) > 16:
            self.skipTest("no samtools up to 1.16")
        source = self.write("in.sam", generate.odd(4000, seed=85))
        for options in ([], ["-n"]):
            out = self.path("out.bam")
            subprocess.run([samtools, "sort", *options, "-o", out, source], check=True,
                           stderr=subprocess.DEVNULL, timeout=60)
            with self.subTest(options):
                self.assertNotIn("SS:", bamfile.read(out).text)
                self.assert_sorted(self.verify(out))
                shuffled = bamfile.read(out)
                records = bamfile.split(shuffled.records)
                records[2000:2100] = records[2099:1999:-1]
                data = bamfile.bgzf(bamfile.bam_header(shuffled.text, shuffled.refs) +
                                    b"".join(records))
                self.assertEqual(self.verify(stdin=data).status, 1)
