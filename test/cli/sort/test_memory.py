"""Peak memory: at most the budget plus 64 MiB, for all kinds of reads."""

import random
import re
import string
import struct
import subprocess
import time

import bamfile
import generate
from harness import MIB, SLOW, CliTest, needs_reads, own_lines, own_memory_only

NAMES = ",".join(f"{one}{two}:i" for one in "XYZ" for two in string.ascii_letters)
REFS = [("c", 1 << 29)]


def read_late(process):
    """Reads the output of a process after a while."""
    time.sleep(3 * SLOW)
    while process.stdout.read(1 << 20):
        pass


@own_memory_only
@needs_reads
class Memory(CliTest):
    def check(self, source, n_threads, mib, *options):
        """The peak is at most -m x threads + 64 MiB."""
        return self.assert_peak(n_threads * mib, "-@", n_threads, "-m", f"{mib}M", "-l", "1",
                                *options, "-o", "/dev/null", source)

    def write_bam(self, records):
        return self.write("in.bam", bamfile.bam_file("", REFS, records))

    def placed(self, aux=b""):
        return bamfile.record(flag=0, tid=0, pos=self.random.randrange(1 << 28), aux=aux)

    def setUp(self):
        super().setUp()
        self.random = random.Random(1)

    def test_kinds_of_reads_stay_within_the_limit(self):
        """The budgets and orders that need most memory."""
        for mode, n_records in (("short", "240K"), ("long", "250"), ("pileup", "240K"),
                                ("unmapped", "240K")):
            source = self.simulate(n_records, mode)
            for n_threads, mib, *options in (
                    (2, 16), (2, 4), (2, 16, "-u", "--temp-codec", "none"),
                    *([(1, 16), (2, 24), (2, 16, "-n")] if mode == "short" else [])):
                self.check(source, n_threads, mib, *options)

    def test_columns_stay_within_the_limit(self):
        """Columns are larger than the records that they are made of."""
        for mode, n_records in (("short", "200K"), ("long", "1K")):
            source = self.simulate(n_records, mode)
            for n_threads, mib, form, level in (
                    (2, 12, "arrow", "0"), (2, 12, "arrow", "3"), (2, 12, "parquet", "1"),
                    (2, 48, "arrow", "1"), (2, 48, "parquet", "1"), (4, 12, "arrow", "1")):
                self.check(source, n_threads, mib, "-O", form, "-l", level)

    def test_long_values_in_many_columns_stay_within_the_limit(self):
        tags = [name + b"Z" for name in (b"MD", b"BQ", b"CQ", b"CS", b"E2", b"OQ", b"OX", b"QT",
                                         b"QX", b"R2", b"RX", b"SA", b"U2", b"CB", b"CO", b"OC")]
        value = b"0123456789abcdef" * 130000 + b"\0"
        source = self.write_bam(bamfile.record(name=f"r{i}", aux=tags[i % 16] + value)
                                for i in range(128))
        self.check(source, 2, 8, "-O", "arrow")
        self.check(source, 2, 8, "-O", "arrow", "-u")

    def test_columns_much_larger_than_records_stay_within_the_limit(self):
        """Each column has a null where a record lacks the tag; small numbers are longer as texts."""
        arrays = [b"XBBc" + struct.pack("<I", 2000) + self.random.randbytes(2000)
                  for _ in range(30)] * 1000
        for tags, n_threads, mib, columns in (([b""] * 250000, 4, 4, "all," + NAMES),
                                              (arrays, 8, 8, "all")):
            source = self.write_bam(map(self.placed, tags))
            for form in ("arrow", "parquet"):
                self.check(source, n_threads, mib, "--columns", columns, "-O", form)

    def test_many_row_groups_stay_within_the_limit(self):
        source = self.write_bam([self.placed() for _ in range(20000)] * 180)
        self.check(source, 2, 4, "--columns", "all," + NAMES, "-O", "parquet")

    def test_max_memory_limits_all_threads_together(self):
        source = self.simulate("200K")
        for n_threads in ("1", "3"):
            self.assert_peak(32, "-@", n_threads, "--max-memory", "32M", "-l", "1", source)

    def test_more_threads_than_the_memory_is_enough_for(self):
        """Fewer threads are started, which is said; --plan counts the same."""
        source = self.simulate("150K")
        for asked, mib, used in ((1024, 16, 16), (64, 4, 4)):
            args = ["-@", str(asked), "--max-memory", f"{mib}M", "-l", "1", "--fixmate=-m",
                    "--markdup", "-o", self.path("out.bam"), source]
            self.assertIn(f"{mib} MiB of memory is enough for {used} worker threads, not for "
                          f"{asked}: for these give --max-memory {asked}M\n",
                          self.assert_peak(mib, *args))
            self.assertRegex(self.sort_ok("--plan", *args).out.decode(),
                             rf"(?m)^threads: {used}$")

    def counted(self, cigars, place):
        """A BAM of small records with these CIGARs; place(i) is the position of the i-th."""
        with open(self.path("in.bam"), "wb") as file:
            file.write(bamfile.bgzf_block(bamfile.bam_header(bamfile.sq_text(REFS), REFS)))
            batch = b""
            for i, cigar in enumerate(cigars):
                batch += bamfile.record("", 0, 0, place(i), cigar)
                if len(batch) > MIB:
                    file.write(b"".join(bamfile.bgzf_blocks(batch)))
                    batch = b""
            file.write(b"".join(bamfile.bgzf_blocks(batch)) + bamfile.EOF_BLOCK)
        return self.path("in.bam")

    def test_coverage_stays_within_the_limit(self):
        """Small records far apart, of which each is an interval of its own; and a deep pile of
        records whose other halves lie in many places. An array of depths would take 2 GiB."""
        n = 150_000
        for cigars, place in (((("9M",) * n), lambda i: 600 * i),
                              ((f"20M{1000 + 7 * self.random.randrange(20000)}N2M"
                                for i in range(n)), lambda i: 100 + i // 50_000)):
            source = self.counted(cigars, place)
            for n_threads, mib in ((2, 2), (1, 8)):
                self.check(source, n_threads, mib, "--coverage", self.path("coverage"),
                           "--flagstat", self.path("flagstat"), "--idxstats", self.path("idxstats"))
                with open(self.path("coverage"), encoding="ascii") as file:
                    self.assertIn(f"\t{n}\t", file.read())

    def test_a_large_index_stays_within_the_limit(self):
        """A read in each of two million windows: 80 MB of CSI before compression."""
        refs = [(f"c{i}", 1 << 29) for i in range(64)]
        records = [bamfile.record("", 0, 0, pos) for pos in range(0, 1 << 29, 1 << 14)]
        batch = bytearray().join(records)
        with open(self.path("in.bam"), "wb") as file:
            file.write(bamfile.bgzf_block(bamfile.bam_header(bamfile.sq_text(refs), refs)))
            for tid in range(len(refs)):
                batch[4::len(records[0])] = bytes([tid]) * len(records)
                file.write(b"".join(bamfile.bgzf_blocks(bytes(batch))))
            file.write(bamfile.EOF_BLOCK)
        self.assert_peak(16, "-@", "1", "--max-memory", "16M", "-l", "1", "--write-index", "-o",
                         self.path("out.bam"), self.path("in.bam"))

    def test_hundreds_of_runs_stay_within_the_limit(self):
        source = self.simulate("150K")
        for budget in (500_000, 2_000_000):
            self.assert_peak(budget / MIB, "-@", "2", "-l", "1", source, budget=budget)

    def test_sam_stays_within_the_limit(self):
        """Of long reads, too: a line can be larger than the piece of input that a worker usually
        gets."""
        source = self.simulate("300K")
        self.check(source, 2, 8, "-O", "sam")
        self.sort_ok("-o", self.path("in.sam"), source)
        self.check(self.path("in.sam"), 2, 8)
        source = self.simulate("2500", "long", "sam")
        for n_threads, mib in ((1, 16), (2, 16), (4, 8)):
            self.check(source, n_threads, mib)

    def test_stalled_output_does_not_pile_up(self):
        """Equal keys and a slow reader of the output: finished blocks that wait to be written are
        part of the budget."""
        self.assert_peak(16, "-@", "2", "-m", "8M", "-u", self.simulate("300K", "unmapped"),
                         stdout=subprocess.PIPE, read_output=read_late)

    def test_stalled_lines_do_not_pile_up(self):
        """Small numbers take five times as much in lines of SAM, of which two outputs wait."""
        head, three_digits = b"XBBc" + struct.pack("<I", 2000), range(156, 255)
        arrays = [head + bytes(self.random.choices(three_digits, k=2000)) for _ in range(30)]
        source = self.write_bam(map(self.placed, arrays * 700))
        self.assert_peak(16, "-@", "8", "-m", "2M", "-O", "sam", "--also", self.path("b.sam"),
                         source, stdout=subprocess.PIPE, read_output=read_late)


@own_memory_only
class LargeRecords(CliTest):
    """However many large records there are, memory stays within the budget plus 64 MiB. Most of the
    inputs are more than ten times that."""

    RECORD_BYTES = 1_000_000
    N_RECORDS = 120

    @classmethod
    def setUpClass(cls):
        # Stretches of it cannot be compressed.
        cls.pool = random.Random(40).randbytes(cls.RECORD_BYTES * 3 // 4).hex().encode()

    @classmethod
    def tearDownClass(cls):
        del cls.pool

    def setUp(self):
        super().setUp()
        self.random = random.Random(41)

    def text(self, n_bytes):
        """Text that cannot be compressed to less than half."""
        at = self.random.randrange(len(self.pool) - n_bytes)
        return self.pool[at : at + n_bytes]

    def write_bam(self, tails):
        """A BAM of a record for each tail, which is sequence, qualities and tags. Blocks are not
        compressed: that would take longer than the sort."""
        with open(self.path("in.bam"), "wb") as file:
            header = bamfile.bam_header("@HD\tVN:1.6\n", [("c", 1 << 28)])
            file.writelines(bamfile.bgzf_blocks(header))
            for n_bases, tail in tails:
                fixed = struct.pack("<iiBBHHHiiii", 0, self.random.randrange(1 << 27), 2, 0, 4681, 0,
                                    0, n_bases, -1, -1, 0)
                body = fixed + b"r\0" + tail
                file.writelines(bamfile.bgzf_blocks(struct.pack("<i", len(body)) + body, 0))
            file.write(bamfile.EOF_BLOCK)
        return self.path("in.bam")

    def check(self, source, *options, mib=4, n_threads=("1", "2")):
        for threads in n_threads:
            said = self.assert_peak(mib, "-@", threads, "--max-memory", f"{mib}M", "-l", "0",
                                    "--verbosity", "3", *options, "-o", "/dev/null", source)
            self.assertRegex(said, r"[1-9]\d+ runs on disk")

    def test_sequences_stay_within_the_limit(self):
        def tail():
            n = self.RECORD_BYTES * 2 // 3
            return n, self.text(n // 2) + self.text(n)
        self.check(self.write_bam(tail() for _ in range(self.N_RECORDS)))

    def test_large_records_among_small_ones_stay_within_the_limit(self):
        """A block that has both once was as large as the large one, and open until the blocks of all
        other runs had come."""
        def tails():
            for _ in range(self.N_RECORDS * 2):
                yield 0, b"YYZ" + self.text(self.RECORD_BYTES // 2) + b"\0"
                for _ in range(20):
                    yield 0, b"XXZ" + self.text(100) + b"\0"
        self.check(self.write_bam(tails()))
        self.check(self.path("in.bam"), "-t", "XX")

    def test_long_values_stay_within_the_limit(self):
        """Many threads, and values that differ at their beginnings or only at their ends: runs,
        their indexes, bounds and the merge hold keys."""
        for n_bytes, n_records in ((500, 80_000), (60_000, 1_200)):
            shared = self.text(n_bytes - 8)
            for value in (lambda n=n_bytes: self.text(n),
                          lambda same=shared: same + b"%08x" % self.random.randrange(1 << 32)):
                source = self.write_bam((0, b"CBZ" + value() + b"\0") for _ in range(n_records))
                self.check(source, "-t", "CB", mib=8, n_threads=("8",))

    def test_values_of_65000_bytes_in_4_mb(self):
        shared = self.text(65_000)
        for value in (lambda: self.text(65_000),
                      lambda: shared + b"%d" % self.random.randrange(1000)):
            self.check(self.write_bam((0, b"XXZ" + value() + b"\0") for _ in range(1_900)),
                       "-t", "XX")

    def test_many_records_of_one_value(self):
        shared = self.text(600)
        self.check(self.write_bam((0, b"XXZ" + shared + b"%d\0" % self.random.randrange(1000))
                                  for _ in range(60_000)), "-t", "XX")

    def test_cell_barcodes_stay_within_the_limit(self):
        self.check(self.write_bam((0, b"CBZ" + self.text(65_000) + b"\0") for _ in range(1_900)),
                   "--template-coordinate")


@own_memory_only
class SmallMemory(CliTest):
    def test_small_sort_needs_much_less_than_the_default_budget(self):
        self.assert_peak(0, "-@", "2", self.write("in.sam", generate.odd(2000)))

    def test_many_threads_need_little_memory(self):
        """256 threads once took 96 MiB."""
        source = self.write("in.sam", generate.odd(2000))
        self.assertLessEqual(self.peak("-@", "256", "--max-memory", "64M", source)[0], 48)

    def test_printed_number_of_records_is_that_of_the_input(self):
        source = self.write("in.sam", generate.odd(4321))
        for level in "34":
            result = self.sort_ok("--verbosity", level, "-o", self.path("out.bam"), source)
            for line in own_lines(result.err):
                for number in re.findall(r"(\d+) records", line.replace(",", "")):
                    self.assertEqual(number, "4321", line)
        self.assertEqual(len(bamfile.split(bamfile.read(self.path("out.bam")).records)), 4321)
