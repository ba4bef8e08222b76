"""--checksum and --checksum-only: the checksum does not depend on the order of the records, and any
change of a record changes it.

The known values were computed once with the Python package xxhash 4.1 (xxh3_64_intdigest), not
with the program. The tests do not need that package.
"""

import gzip
import os
import random
import re
import struct
import subprocess

import bamfile
import generate
from harness import (SAMTOOLS, SLOW, SPILL_BUDGET, CliTest, bytes_of, needs_pysam, own_memory_only,
                     reference_ok, text_of)

REFS = [("a", 100000), ("b", 50000)]
HEADER = bamfile.bam_header(bamfile.sq_text(REFS), REFS)
LINE = re.compile(r"xxh3sum:([0-9a-f]{16}) records:(\d+) bytes:(\d+)\n")
NOTHING = "xxh3sum:0000000000000000 records:0 bytes:0\n"
ORDERS = ([], ["-n"], ["-N"], ["-t", "XI"], ["-n", "-t", "XI"], ["-M"], ["-M", "-R"],
          ["-MH", "-K5"], ["--shuffle"])

# Hashes of single records. XXH3 has three algorithms: up to 128 bytes, up to 240, and above.
KNOWN = {
    "least": (bamfile.record(""), 0x87763E22271EBD58),
    "small": (bamfile.record("r1", 0, 0, 99, "4M", "ACGT"), 0xA4428AD433BCFE6E),
    "medium": (bamfile.record("name" * 20, 16, 1, 7, "50M", "ACGTA" * 10, b"NMC\0"),
               0x8F81A65E671A026E),
    "large": (bamfile.record("long", 4, seq="GATTACA" * 500), 0xDEB0A9C391C34C52),
    "operations": (bamfile.record("many", 0, 0, 5, "1M1I" * 3000, "AC" * 3000), 0x151434D6FAB63319),
}


def records(n_records, seed=1):
    """Raw records at random positions; every third record is unplaced."""
    rng = random.Random(seed)
    return [bamfile.record(f"r{i}", 4 if i % 3 == 0 else 0, -1 if i % 3 == 0 else rng.randrange(2),
                           -1 if i % 3 == 0 else rng.randrange(40000), "60M" if i % 3 else "",
                           "".join(rng.choices("ACGT", k=60)), b"XIi" + struct.pack("<i", i))
            for i in range(n_records)]


def bam(list_of_records, header=HEADER):
    return bamfile.bgzf(header + b"".join(list_of_records))


def numbers(text):
    """(hash, records, bytes) of a checksum line."""
    found = LINE.fullmatch(text)
    if not found:
        raise AssertionError(f"not a checksum line: {text!r}")
    return int(found.group(1), 16), int(found.group(2)), int(found.group(3))


def line_of(total, n_records, n_bytes):
    """The line that the program must print."""
    return f"xxh3sum:{total % 2**64:016x} records:{n_records} bytes:{n_bytes}\n"


class ChecksumTest(CliTest):
    def checksum(self, *args, **how):
        """The checksum line on standard output; standard error must be empty."""
        result = self.sort_ok("--checksum-only", *args, **how)
        self.assertEqual(result.err, "")
        numbers(result.out.decode())
        return result.out.decode()

    def checksum_while_sorting(self, *args, **how):
        """The checksum line of a sort, on standard error."""
        result = self.sort_ok("--checksum", *args, **how)
        lines = [line + "\n" for line in result.err.splitlines() if line.startswith("xxh3sum:")]
        self.assertEqual(len(lines), 1, result.err)
        numbers(lines[0])
        return lines[0]


class Definition(ChecksumTest):
    """The checksum is the sum, modulo 2^64, of the XXH3-64 of the BAM bytes of each record."""

    def test_known_checksums(self):
        for name, (record, value) in KNOWN.items():
            with self.subTest(name):
                self.assertEqual(self.checksum(stdin=bam([record])), line_of(value, 1, len(record)))

    def test_sum_wraps_around(self):
        some = [KNOWN[name] for name in ("small", "large", "small", "medium", "least") * 9]
        got = self.checksum(stdin=bam(record for record, _ in some))
        total = sum(value for _, value in some)
        self.assertGreater(total, 2**64)
        self.assertEqual(got, line_of(total, len(some), sum(len(record) for record, _ in some)))

    def test_sam_record_is_hashed_in_its_bam_form(self):
        """A SAM record is hashed in its BAM form: integers in the narrowest type, 32-bit floats."""
        aux = b"NMC\5XiS" + struct.pack("<H", 300) + b"Xff" + struct.pack("<f", 0.1)
        raw = bamfile.record("r1", 99, 0, 99, "2S3M1D4M", "ACGTNACGT", aux, 60, (0, 199, 110))
        text = (bamfile.sq_text(REFS) +
                "r1\t99\ta\t100\t60\t2S3M1D4M\t=\t200\t110\tACGTNACGT\t*\tNM:i:5\tXi:i:300\t"
                "Xf:f:0.1\n")
        self.assertEqual(self.checksum(stdin=text.encode()), self.checksum(stdin=bam([raw])))

    def test_long_cigar(self):
        """A CIGAR of more than 65,535 operations is hashed in its BAM form: a placeholder in the
        CIGAR field, and the CIGAR itself in the CG tag after the other tags."""
        n_ops = 70000
        ops = struct.pack(f"<{n_ops}I", *[1 << 4, 1 << 4 | 1] * (n_ops // 2))
        aux = b"XZZx\0CGBI" + struct.pack("<I", n_ops) + ops
        bases = "ACGT" * (n_ops // 4)
        raw = bamfile.record("r", 0, 0, 4, f"{n_ops}S{n_ops // 2}N", bases, aux)
        text = f"r\t0\ta\t5\t0\t{'1M1I' * (n_ops // 2)}\t*\t0\t0\t{bases}\t*\tXZ:Z:x\n"
        want = self.checksum(stdin=bam([raw]))
        self.assertEqual(self.checksum(stdin=(bamfile.sq_text(REFS) + text).encode()), want)
        self.sort_ok("-O", "sam", "-o", self.path("out.sam"), stdin=bam([raw]))
        self.assertEqual(self.checksum(self.path("out.sam")), want)

    def test_no_records(self):
        for data in (bam([]), bamfile.sq_text(REFS).encode(), b"@CO\tx\n",
                     bamfile.bam_header("", [])):
            self.assertEqual(self.checksum(stdin=data), NOTHING)
        self.assertEqual(self.checksum_while_sorting("-o", "/dev/null", stdin=bam([])), NOTHING)


class SameRecords(ChecksumTest):
    """What must not change the checksum."""

    def setUp(self):
        super().setUp()
        self.list = records(5000)
        self.source = self.write("in.bam", bam(self.list))
        self.want = self.checksum(self.source)

    def test_order_of_records(self):
        for seed in range(3):
            random.Random(seed).shuffle(self.list)
            self.assertEqual(self.checksum(stdin=bam(self.list)), self.want)
        self.assertEqual(self.checksum(stdin=bam(sorted(self.list))), self.want)

    def test_container_does_not_matter(self):
        raw = HEADER + b"".join(self.list)
        for data in (raw, gzip.compress(raw, 1), bamfile.bgzf(raw, 0), bamfile.bgzf(raw, 9),
                     b"".join(bamfile.bgzf_block(raw[i : i + 777])
                              for i in range(0, len(raw), 777)) + bamfile.EOF_BLOCK):
            self.assertEqual(self.checksum(stdin=data), self.want)
            # htslib warns that files other than BGZF have no EOF block.
            result = self.sort_ok("--checksum-only", self.write("other.bam", data))
            self.assertEqual(result.out.decode(), self.want)

    def test_header_text_does_not_matter(self):
        for text in ("@HD\tVN:1.6\tSO:coordinate\n", "@CO\tx\n@RG\tID:x\n"):
            other = bamfile.bam_header(text + bamfile.sq_text(REFS), REFS)
            self.assertEqual(self.checksum(stdin=bam(self.list, other)), self.want)

    def test_threads_and_memory(self):
        for n_threads in ("0", "2", "5"):
            for budget in (None, SPILL_BUDGET, 60_000):
                got = self.checksum("-@", n_threads, self.source, budget=budget)
                self.assertEqual(got, self.want)

    def test_options_of_the_order_are_ignored(self):
        for options in ORDERS + (["-T", "/nowhere/x"], ["-I", "/nowhere/x.fa"], ["-l", "1"]):
            self.assertEqual(self.checksum(*options, self.source), self.want)

    def test_checksum_of_a_sort_is_that_of_its_output(self):
        for i, options in enumerate(ORDERS):
            for budget in (None, SPILL_BUDGET):
                form = ("bam", "sam", "bam", "sam,level=1")[(i + bool(budget)) % 4]
                out = self.path("out")
                with self.subTest(options=options, budget=budget, form=form):
                    got = self.checksum_while_sorting(*options, "-O", form, "-@", str(1 + i % 3),
                                                      "-o", out, self.source, budget=budget)
                    # Integer tags of this input are 32 bits wide; SAM does not keep the width.
                    if form == "bam":
                        self.assertEqual(self.checksum(out), got)
                    else:
                        narrow = self.checksum(out)
                        again = self.checksum_while_sorting("-o", self.path("again.bam"), out)
                        self.assertEqual(again, narrow)
                        self.assertEqual(self.checksum(self.path("again.bam")), narrow)
                        self.assertEqual(numbers(narrow)[1], numbers(got)[1])
                    if not options[:1] or not options[0].startswith("-M") or "-R" in options:
                        self.assertEqual(got, self.want)
                    else:
                        self.assertNotEqual(got, self.want)
                        self.assertEqual(numbers(got)[1:], numbers(self.want)[1:])

    def test_checksum_goes_to_standard_error(self):
        result = self.sort_ok("--checksum", "--no-PG", "--verbosity", "0", self.source)
        self.assertEqual(result.err, self.want)
        self.assertEqual(sorted(bamfile.split(bamfile.parse_file(result.out).records)),
                         sorted(self.list))
        self.assertEqual(self.sort_ok("--checksum-only", "--verbosity", "0", self.source).out,
                         self.want.encode())

    def test_checksum_only_writes_no_file(self):
        self.write("kept.bam", b"precious")
        before = sorted(os.listdir(self.work))
        self.assertEqual(self.checksum("-o", "kept.bam", self.source), self.want)
        self.assertEqual(self.checksum("--write-index", "-o", "new.bam", self.source), self.want)
        self.assertEqual(self.checksum("-k", self.source, budget=60_000), self.want)
        self.assertEqual(sorted(os.listdir(self.work)), before)
        self.assertEqual(bytes_of(self.path("kept.bam")), b"precious")

    def test_temporary_directory_is_not_used(self):
        got = self.checksum(self.source, budget=60_000, env={"TMPDIR": "/nowhere"})
        self.assertEqual(got, self.want)


class Formats(ChecksumTest):
    def test_records_once_written_as_sam_keep_their_checksum(self):
        sam = self.write("in.sam", generate.odd(2000))
        want = self.checksum(sam)
        self.sort_ok("-n", "-o", self.path("in.bam"), sam)
        self.assertEqual(self.checksum(self.path("in.bam")), want)
        self.sort_ok("-O", "sam", "-o", self.path("again.sam"), self.path("in.bam"))
        self.assertEqual(self.checksum(self.path("again.sam")), want)
        text = bytes_of(sam)
        for data in (bamfile.bgzf(text), gzip.compress(text, 1), text.replace(b"\n", b"\r\n")):
            self.assertEqual(self.checksum(stdin=data), want)
        self.assertEqual(self.checksum(sam, "-@", "3", budget=SPILL_BUDGET), want)

    def test_width_of_integers_counts_only_in_bam(self):
        wide = bamfile.record("r", 4, aux=b"XIi\1\0\0\0")
        narrow = bamfile.record("r", 4, aux=b"XIC\1")
        self.assertNotEqual(self.checksum(stdin=bam([wide])), self.checksum(stdin=bam([narrow])))
        sam = self.sort_ok("-O", "sam", stdin=bam([wide])).out
        self.assertEqual(self.checksum(stdin=sam), self.checksum(stdin=bam([narrow])))

    def test_wrong_bin_is_hashed_as_it_is(self):
        odd = bytearray(bamfile.record("r", 0, 0, 99, "4M", "ACGT"))
        odd[14] ^= 1
        want = self.checksum(stdin=bam([odd]))
        self.assertNotEqual(want, self.checksum(stdin=bam([KNOWN["small"][0]])))
        result = self.sort_ok("--checksum", "--verbosity", "0", stdin=bam([odd]))
        self.assertEqual(result.err, want)
        self.assertEqual(self.checksum(stdin=result.out), want)

    @needs_pysam
    def test_cram_has_the_checksum_of_the_bam(self):
        """The checksum of a CRAM equals that of the BAM if htslib's CRAM keeps all of a record: RG
        is the last tag, unplaced records have no CIGAR and no mapping quality, and CIGARs have M
        instead of = or X."""
        rng = random.Random(4)
        text = bamfile.sq_text(REFS) + "@RG\tID:x\n"
        for i in range(1500):
            bases = "".join(rng.choices("ACGTN", k=50))
            qual = "".join(rng.choices("#,:F", k=50))
            place = ("0\ta\t%d\t%d\t5S20M3D25M" % (rng.randint(1, 9000), rng.randrange(61))
                     if i % 4 else "4\t*\t0\t0\t*")
            text += (f"r{i}\t{place}\t*\t0\t0\t{bases}\t{qual}\tXi:i:{rng.randrange(-9, 10**6)}\t"
                     f"Xf:f:{rng.random()}\tXB:B:s,1,-2\tXH:H:1AE3\tRG:Z:x\n")
        source = self.write("in.sam", text)
        want = self.checksum(source)
        bam_file = self.bam_of(text)
        cram_file = self.bam_of(text, "-C", "--output-fmt-option", "no_ref=1", name="in.cram")
        for path in (bam_file, cram_file):
            for n_threads in ("1", "3"):
                self.assertEqual(self.checksum("-@", n_threads, path), want)
        with open(cram_file, "rb") as stdin:
            self.assertEqual(self.checksum(stdin=stdin), want)
        out = self.path("out.cram")
        self.assertEqual(self.checksum_while_sorting("-n", "-O", "cram,no_ref=1", "-o", out,
                                                     source), want)
        self.assertEqual(self.checksum(out), want)

    @needs_pysam
    def test_files_copied_by_samtools_keep_the_checksum(self):
        source = self.bam_of(generate.odd(1500))
        want = self.checksum(source)
        for command, options in (("sort", []), ("sort", ["-N"]), ("view", ["-b", "-1"])):
            reference_ok(command, *options, "-o", self.path("out.bam"), source)
            self.assertEqual(self.checksum(self.path("out.bam")), want)


class Changes(ChecksumTest):
    """What must change the checksum."""

    def test_any_changed_byte_is_noticed(self):
        some = records(3)
        want = self.checksum(stdin=bam(some))
        victim = some[1]
        seen, n_refused = {want}, 0
        for at in range(len(victim)):
            raw = bytearray(victim)
            raw[at] ^= 1 << at % 8
            result = self.rocksort("--checksum-only", stdin=bam([some[0], raw, some[2]]))
            if result.status:
                n_refused += 1
                self.assertEqual(result.out, b"")
                self.assertTrue(result.err)
            else:
                self.assertNotIn(result.out.decode(), seen, f"byte {at}")
                seen.add(result.out.decode())
        self.assertLess(n_refused, 30)

    def test_lost_doubled_exchanged(self):
        some = records(50)
        cases = {
            "as it was": some,
            "lost": some[:-1],
            "doubled": some + some[7:8],
            "one for another": some[:-1] + some[:1],
            "other bases": some[:-1] + [some[-1].replace(b"r49\0", b"r48\0")],
            "twice": some + some,
        }
        lines = {name: self.checksum(stdin=bam(content)) for name, content in cases.items()}
        self.assertEqual(len(set(lines.values())), len(lines), lines)

    def test_bytes_that_move_between_records_change_the_checksum(self):
        pairs = (("ab", "c"), ("a", "bc")), (("x", "yx"), ("xy", "x"))
        for one, other in pairs:
            lines = {self.checksum(stdin=bam(bamfile.record(name) for name in names))
                     for names in (one, other)}
            self.assertEqual(len(lines), 2)


class SeveralFiles(ChecksumTest):
    """The checksum of all inputs together."""

    def test_checksum_of_files_is_the_sum(self):
        list_a, list_b = records(700, seed=1), records(300, seed=2)
        paths = [self.write("a.bam", bam(list_a)), self.write("b.bam", bam(list_b))]
        one, other = (numbers(self.checksum(path)) for path in paths)
        want = line_of(one[0] + other[0], 1000, one[2] + other[2])
        self.assertEqual(self.checksum(*paths), want)
        self.assertEqual(self.checksum(*paths[::-1], "-@", "3", budget=60_000), want)
        self.assertEqual(self.checksum(stdin=bam(list_a + list_b)), want)
        self.assertEqual(self.checksum(paths[0], "-", stdin=bam(list_b)), want)
        self.assertEqual(self.checksum_while_sorting("-n", "-o", self.path("out.bam"), *paths),
                         want)
        twice = line_of(2 * one[0], 1400, 2 * one[2])
        self.assertEqual(self.checksum(paths[0], paths[0]), twice)
        self.assertEqual(self.checksum(paths[0], "-", paths[0], stdin=bam([])), twice)

    def test_checksum_has_the_read_groups_that_a_sort_would_write(self):
        paths = []
        for sample in "st":
            text = bamfile.sq_text(REFS) + f"@RG\tID:x\tSM:{sample}\n"
            some = [bamfile.record(f"r{i}", 4, aux=b"RGZx\0") for i in range(200)]
            paths.append(self.write(sample + ".bam", bam(some, bamfile.bam_header(text, REFS))))
        out = self.path("out.bam")
        got = self.checksum_while_sorting("-o", out, *paths)
        self.assertEqual(self.checksum(*paths), got)
        self.assertEqual(self.checksum(out), got)
        self.assertNotEqual(got, self.checksum(paths[0], paths[0]))

    def test_disagreeing_references(self):
        paths = [self.write("a.bam", bam(records(5))),
                 self.write("b.bam", bam([], bamfile.bam_header(bamfile.sq_text(REFS[:1]),
                                                                REFS[:1])))]
        result = self.rocksort("--checksum-only", *paths)
        self.assert_error(result, "a.bam", "b.bam", "reference 2")
        self.assertEqual(result.out, b"")


class Errors(ChecksumTest):
    """Errors give exit status 1, one message, and nothing on standard output."""

    def fails(self, *args, mentions=(), **how):
        """Runs --checksum-only with much and with little memory; both runs must fail."""
        for budget in (None, 60_000):
            with self.subTest(args=args, budget=budget):
                result = self.rocksort("--checksum-only", *args, budget=budget, **how)
                self.assert_error(result, *mentions)
                self.assertEqual(result.out, b"")

    def test_missing_file_is_named(self):
        good = self.write("good.bam", bam(records(50)))
        absent = self.path("absent.bam")
        self.fails(absent, mentions=["absent.bam", "No such file"])
        self.fails(good, absent, mentions=["absent.bam", "No such file"])
        self.fails(absent, good, mentions=["absent.bam", "No such file"])

    def test_no_alignment(self):
        self.fails(self.write("empty.bam", b""), mentions=["empty.bam"])
        self.fails(self.write("x.txt", b"nothing aligned today\n"), mentions=["x.txt"])
        self.fails(str(self.work), mentions=[str(self.work)])
        self.fails(stdin=b"", mentions=["standard input"])

    def test_truncated_file_has_no_checksum(self):
        data = bam(records(3000))
        for size in (40, len(data) // 3, len(data) - 29, len(data) - 40):
            self.fails(self.write("cut.bam", data[:size]), mentions=["cut.bam"])
            self.fails(stdin=data[:size], mentions=["standard input"])

    def test_damaged_file_has_no_checksum(self):
        some = records(3000)
        bad = bytearray(some[2000])
        struct.pack_into("<i", bad, 4, len(REFS))
        self.fails(self.write("bad.bam", bam(some[:2000] + [bad] + some[2000:])),
                   mentions=["bad.bam", "record 2001 "])
        data = bytearray(bam(some))
        data[len(data) // 2] ^= 8
        self.fails(self.write("flip.bam", bytes(data)), mentions=["flip.bam"])
        sam = bamfile.sq_text(REFS) + "r\t4\t*\t0\t0\t*\t*\t0\t0\t*\t*\n" * 500 + "r\t4\n"
        self.fails(self.write("bad.sam", sam), mentions=["bad.sam", "record 501 "])

    def test_full_standard_output(self):
        source = self.write("in.bam", bam(records(9)))
        for target in ("/dev/full", None):
            with self.subTest(target):
                script = f'exec "$0" rocksort --checksum-only "$1" >{target or "&-"}'
                result = self.run_program(["/bin/sh", "-c", script, SAMTOOLS, source])
                self.assert_error(result, "standard output")

    def test_failed_sort_prints_no_checksum(self):
        for args in (["-o", "/dev/full"], ["-o", "/nowhere/x.bam"]):
            result = self.rocksort("--checksum", *args, stdin=bam(records(3000)))
            self.assert_error(result)
            self.assertNotIn("xxh3sum", result.err)


class Resources(ChecksumTest):
    """Memory, large records, and signals."""

    def test_records_larger_than_the_memory(self):
        small, large = records(3000), [bamfile.record(f"x{i}", 4, seq="ACGT" * 150_000)
                                       for i in range(4)]
        for some in (small + large[:1], large + small, small + large + small,
                     small + large[:1] + small + large[1:]):
            path = self.write("in.bam", bam(some))
            want = self.checksum(path)
            for budget in (60_000, SPILL_BUDGET, 2_000_000):
                try:
                    got = self.checksum("-@", "2", path, budget=budget, limit_s=5 * SLOW)
                except subprocess.TimeoutExpired:
                    self.fail(f"{len(some)} records, {budget} bytes: still running")
                self.assertEqual(got, want)

    @own_memory_only
    def test_peak_memory_respects_the_limit(self):
        some, n_times = records(400), 750
        block = bamfile.bgzf_block(b"".join(some))
        lines = ("r\t0\ta\t5\t9\t80M\t*\t0\t0\t" + "ACGT" * 20 + "\t*\n").encode() * 400
        source, sam = self.path("in.bam"), self.path("in.sam")
        # Written in pieces: the kernel counts memory of this process as memory of its child.
        with open(source, "wb") as bam_file, open(sam, "wb") as sam_file:
            bam_file.write(bamfile.bgzf_block(HEADER))
            sam_file.write(bamfile.sq_text(REFS).encode())
            for _ in range(n_times):
                bam_file.write(block)
                sam_file.write(lines)
            bam_file.write(bamfile.EOF_BLOCK)
        one = numbers(self.checksum(stdin=bam(some)))
        want = line_of(n_times * one[0], n_times * 400, n_times * one[2])
        for sources, expected in (([source], want), ([sam], None), ([source] * 3, None)):
            args = ["--checksum-only", "--max-memory", "8M", "-@", "2", *sources]
            with self.subTest(args=args):
                with open(self.path("stdout"), "wb") as out:
                    self.assertEqual(self.assert_peak(8, *args, stdout=out), "")
                text = text_of(self.path("stdout"))
                self.assertEqual(text, expected or text)
                numbers(text)

    def test_signal_ends_it_while_it_waits_for_input(self):
        process = self.start("--checksum-only", "-")
        process.stdin.write(bam(records(100))[:2000])
        process.stdin.flush()
        process.terminate()
        self.assert_died_of(process, 15)
        self.assertEqual(os.listdir(self.scratch), [])
