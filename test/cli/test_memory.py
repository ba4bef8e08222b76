"""Peak memory: at most the budget plus 64 MiB, for all kinds of reads.

Needs bench/simulate-reads. Builds with sanitizers skip this, because sanitizers themselves use
much memory.
"""

import os
import random
import re
import string
import struct
import subprocess
import sys
import threading
import time
import unittest

import bamfile
import generate
from harness import (ROOT, RUN_LIMIT_S, SAMTOOLS, SLOW, CliTest, environment, own_lines, sanitized,
                     text_of)

SIMULATE = ROOT / "bench" / "simulate-reads"
MIB = 1 << 20
ALLOWANCE_BYTES = 64 * MIB
# {mode: number of records}; the raw data is several times the largest budget of these tests.
INPUTS = {"short": "240K", "long": "250", "pileup": "240K", "unmapped": "240K"}


# Linux counts the memory of a child before its exec, too, so that no peak would be smaller than the
# process of the tests. So a small process starts the program. It prints the peak in KiB to the
# descriptor argv[1].
MEASURE = """import os, sys
pid = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(pid, 0)
os.write(int(sys.argv[1]), b"%d" % usage.ru_maxrss)
os._exit(max(os.waitstatus_to_exitcode(status), -1) & 255)
"""


def peak_of(test, args, budget=None, stdout=subprocess.DEVNULL, read_output=None):
    """Runs rocksort, which must succeed within the time limit; returns (peak in bytes, stderr).

    If stdout is a pipe, read_output(process) reads it.
    """
    with open(test.path("stderr"), "w+b") as err, open(test.path("peak"), "w+b") as peak:
        process = subprocess.Popen([sys.executable, "-I", "-S", "-c", MEASURE, str(peak.fileno()),
                                    str(SAMTOOLS), "rocksort", *args], stdin=subprocess.DEVNULL,
                                   stdout=stdout, stderr=err, cwd=test.work,
                                   pass_fds=[peak.fileno()],
                                   env=environment(test.scratch, budget))
        # wait4() has no time limit.
        killer = threading.Timer(RUN_LIMIT_S, process.kill)
        killer.start()
        try:
            if read_output:
                read_output(process)
            process.wait()
        finally:
            killer.cancel()
            if process.stdout:
                process.stdout.close()
        err.seek(0)
        text = err.read().decode(errors="replace")
        peak.seek(0)
        peak_bytes = int(peak.read() or 0) * 1024
    test.assertEqual(process.returncode, 0, f"rocksort {args}: {text}")
    test.assertEqual(os.listdir(test.scratch), [])
    return peak_bytes, text


@unittest.skipIf(os.access(SAMTOOLS, os.R_OK) and sanitized(), "a sanitizer's memory is not ours")
@unittest.skipUnless(os.access(SIMULATE, os.X_OK), f"no {SIMULATE}: build it to measure memory")
class Memory(CliTest):
    """Measures each run with wait4(), whose ru_maxrss is the peak of that process only."""

    def measure(self, *args, budget=None, stdout="/dev/null"):
        """Runs rocksort, which must succeed; returns its peak in bytes and standard error."""
        with open(stdout, "wb") as out:
            return peak_of(self, args, budget, out)

    def simulate(self, mode, n_records):
        """A simulated BAM and its size in raw bytes."""
        path = self.path(f"{mode}.bam")
        subprocess.run([SIMULATE, "-n", n_records, "-m", mode, "-O", "bam", "-o", path], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=RUN_LIMIT_S)
        return path

    def check(self, source, n_threads, megabytes, *options):
        """The peak is at most -m x threads + 64 MiB."""
        args = ["-@", str(n_threads), "-m", f"{megabytes}M", "-l", "1", *options, source]
        peak, _ = self.measure(*args)
        limit = max(n_threads, 1) * megabytes * MIB + ALLOWANCE_BYTES
        with self.subTest(args=args[:-1], source=os.path.basename(source)):
            self.assertLessEqual(peak, limit, f"{peak / MIB:.1f} MiB of {limit / MIB:.1f}")

    def test_columns_stay_within_the_limit(self):
        for mode, records in (("short", "200K"), ("long", "1K")):
            source = self.simulate(mode, records)
            for megabytes in (12, 48):
                for form, level in (("arrow", "0"), ("arrow", "1"), ("arrow", "3"),
                                    ("parquet", "1")):
                    self.check(source, 2, megabytes, "-O", form, "-l", level)
            self.check(source, 4, 12, "-O", "arrow")

    def test_long_values_in_many_columns_stay_within_the_limit(self):
        tags = [name + b"Z" for name in (b"MD", b"BQ", b"CQ", b"CS", b"E2", b"OQ", b"OX", b"QT",
                                         b"QX", b"R2", b"RX", b"SA", b"U2", b"CB", b"CO", b"OC")]
        value = b"0123456789abcdef" * 130000 + b"\0"
        records = [bamfile.record(name=f"r{i}", aux=tags[i % 16] + value) for i in range(128)]
        source = self.write("tags.bam", bamfile.bam_file("", [], records))
        self.check(source, 2, 8, "-O", "arrow")
        self.check(source, 2, 8, "-O", "arrow", "-u")

    def test_columns_much_larger_than_records_stay_within_the_limit(self):
        numbers = random.Random(1)
        arrays = [b"XBBc" + struct.pack("<I", 2000) + numbers.randbytes(2000)
                  for _ in range(30)] * 1000
        names = ",".join(f"{one}{two}:i" for one in "XYZ" for two in string.ascii_letters)
        for tags, n_threads, megabytes, columns in (([b""] * 250000, 4, 4, "all," + names),
                                                    (arrays, 8, 8, "all")):
            records = [bamfile.record(flag=0, tid=0, pos=numbers.randrange(1 << 28), aux=aux)
                       for aux in tags]
            source = self.write("larger.bam", bamfile.bam_file("", [("c", 1 << 29)], records))
            for options in (["-O", "arrow"], ["-O", "parquet"]):
                self.check(source, n_threads, megabytes, "--columns", columns, *options)

    def test_many_row_groups_stay_within_the_limit(self):
        numbers = random.Random(2)
        records = [bamfile.record(flag=0, tid=0, pos=numbers.randrange(1 << 28))
                   for _ in range(20000)] * 180
        source = self.write("short.bam", bamfile.bam_file("", [("c", 1 << 29)], records))
        names = ",".join(f"{one}{two}:i" for one in "XYZ" for two in string.ascii_letters)
        self.check(source, 2, 4, "--columns", "all," + names, "-O", "parquet")

    def check_mode(self, mode):
        """One kind of reads, with the budgets and orders that need most memory."""
        source = self.simulate(mode, INPUTS[mode])
        for n_threads, megabytes in ((2, 16), (1, 16), (2, 4), (2, 24)):
            self.check(source, n_threads, megabytes)
        self.check(source, 2, 16, "-n")
        self.check(source, 2, 16, "-u", "--temp-codec", "none")

    def test_short(self):
        self.check_mode("short")

    def test_long(self):
        self.check_mode("long")

    def test_pileup(self):
        self.check_mode("pileup")

    def test_unmapped(self):
        self.check_mode("unmapped")

    def test_total(self):
        source = self.simulate("short", "200K")
        for n_threads in ("1", "3"):
            peak, _ = self.measure("-@", n_threads, "--max-memory", "32M", "-l", "1", source)
            self.assertLessEqual(peak, 32 * MIB + ALLOWANCE_BYTES, f"{peak / MIB:.1f} MiB")

    def test_more_threads_than_the_memory_is_enough_for(self):
        """Fewer threads are started, which is said; --plan counts the same."""
        source = self.simulate("short", "150K")
        for asked, megabytes, used in ((1024, 16, 16), (64, 4, 4)):
            args = ["-@", str(asked), "--max-memory", f"{megabytes}M", "-l", "1", "--fixmate=-m",
                    "--markdup", "-o", self.path("out.bam"), source]
            peak, err = self.measure(*args)
            self.assertIn(f"{megabytes} MiB of memory is enough for {used} worker threads, not for "
                          f"{asked}: for these give --max-memory {asked}M\n", err)
            self.assertLessEqual(peak, megabytes * MIB + ALLOWANCE_BYTES, f"{peak / MIB:.1f} MiB")
            self.assertRegex(self.sort_ok("--plan", *args).out.decode(),
                             rf"(?m)^threads: {used}$")

    def counted(self, cigars, place):
        """A BAM of small records with these CIGARs; place(i) is the position of the i-th."""
        refs = [("a", 1 << 28)]
        path = self.path("in.bam")
        with open(path, "wb") as file:
            file.write(bamfile.bgzf_block(bamfile.bam_header(bamfile.sq_text(refs), refs)))
            batch = b""
            for i, cigar in enumerate(cigars):
                batch += bamfile.record("", 0, 0, place(i), cigar)
                if len(batch) > MIB:
                    file.write(b"".join(bamfile.bgzf_blocks(batch)))
                    batch = b""
            file.write(b"".join(bamfile.bgzf_blocks(batch)) + bamfile.EOF_BLOCK)
        return path

    def test_coverage(self):
        """Small records far apart, of which each is an interval of its own; and a deep pile of
        records whose other halves lie in many places. An array of depths would take 1 GiB."""
        n = 200_000
        rng = random.Random(1)
        for cigars, place in (((("9M",) * n), lambda i: 600 * i),
                              ((f"20M{1000 + 7 * rng.randrange(20000)}N2M" for i in range(n)),
                               lambda i: 100 + i // 50_000)):
            source = self.counted(cigars, place)
            for n_threads, megabytes in ((2, 2), (1, 8)):
                self.check(source, n_threads, megabytes, "--coverage", self.path("coverage"),
                           "--flagstat", self.path("flagstat"), "--idxstats", self.path("idxstats"))
                self.assertIn(f"\t{n}\t", text_of(self.path("coverage")))

    def test_hundreds_of_runs(self):
        source = self.simulate("short", "150K")
        for budget in (500_000, 2_000_000):
            peak, _ = self.measure("-@", "2", "-l", "1", source, budget=budget)
            self.assertLessEqual(peak, budget + ALLOWANCE_BYTES, f"{peak / MIB:.1f} MiB")

    def test_sam_stays_within_the_limit(self):
        source = self.simulate("short", "300K")
        self.check(source, 2, 8, "-O", "sam")
        self.measure("-O", "sam", "-o", self.path("in.sam"), source)
        self.check(self.path("in.sam"), 2, 8)

    def test_long_lines_of_sam_stay_within_the_limit(self):
        source = self.path("long.sam")
        subprocess.run([SIMULATE, "-n", "2500", "-m", "long", "-O", "sam", "-o", source], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=RUN_LIMIT_S)
        for n_threads, megabytes in ((1, 16), (2, 16), (4, 8)):
            self.check(source, n_threads, megabytes)

    def test_stalled_output_does_not_pile_up(self):
        """Equal keys and a slow reader of the output: finished blocks that wait to be written are
        part of the budget."""
        source = self.simulate("unmapped", "300K")

        def read_late(process):
            time.sleep(3 * SLOW)
            while process.stdout.read(1 << 20):
                pass

        peak, _ = peak_of(self, ["-@", "2", "-m", "8M", "-u", source], stdout=subprocess.PIPE,
                          read_output=read_late)
        self.assertLessEqual(peak, 16 * MIB + ALLOWANCE_BYTES, f"{peak / MIB:.1f} MiB")

    def test_stalled_lines_do_not_pile_up(self):
        """Small numbers take five times as much in lines of SAM, of which two outputs wait."""
        numbers = random.Random(1)
        head, three_digits = b"XBBc" + struct.pack("<I", 2000), range(156, 255)
        arrays = [head + bytes(numbers.choices(three_digits, k=2000)) for _ in range(30)]
        records = [bamfile.record(flag=0, tid=0, pos=numbers.randrange(1 << 28), aux=aux)
                   for aux in arrays * 700]
        source = self.write("lines.bam", bamfile.bam_file("", [("c", 1 << 29)], records))

        def read_late(process):
            time.sleep(3 * SLOW)
            while process.stdout.read(1 << 20):
                pass

        peak, _ = peak_of(self, ["-@", "8", "-m", "2M", "-O", "sam", "--also", self.path("b.sam"),
                                  source], stdout=subprocess.PIPE, read_output=read_late)
        self.assertLessEqual(peak, 16 * MIB + ALLOWANCE_BYTES, f"{peak / MIB:.1f} MiB")


@unittest.skipIf(os.access(SAMTOOLS, os.R_OK) and sanitized(), "a sanitizer's memory is not ours")
class LargeRecords(CliTest):
    """However many large records there are, memory stays within the budget plus 64 MiB. Each of the
    inputs is more than ten times that."""

    RECORD_BYTES = 1_000_000
    N_RECORDS = 120

    @classmethod
    def setUpClass(cls):
        # Stretches of it cannot be compressed. There is only one: no peak is smaller than this
        # process.
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

    def check(self, source, *options, megabytes=4, n_threads=("1", "2")):
        for threads in n_threads:
            peak, err = peak_of(self, ["-@", threads, "--max-memory", f"{megabytes}M", "-l", "0",
                                       "--verbosity", "3", *options, "-o", self.path("out.bam"),
                                       source])
            with self.subTest(options=options, threads=threads):
                self.assertRegex(err, r"[1-9]\d+ runs on disk")
                limit = megabytes * MIB + ALLOWANCE_BYTES
                self.assertLessEqual(peak, limit, f"{peak / MIB:.1f} MiB of {limit / MIB:.1f}")

    def test_sequences(self):
        """Sorted by coordinate: the scan of the runs once held a whole record of each."""
        def tail():
            n = self.RECORD_BYTES * 2 // 3
            return n, self.text(n // 2) + self.text(n)
        self.check(self.write_bam(tail() for _ in range(self.N_RECORDS)))

    def test_among_others(self):
        """Large records among small ones: a block that has both once was as large as the large
        one, and open until the blocks of all other runs had come."""
        def tails():
            for _ in range(self.N_RECORDS * 2):
                yield 0, b"YYZ" + self.text(self.RECORD_BYTES // 2) + b"\0"
                for _ in range(20):
                    yield 0, b"XXZ" + self.text(100) + b"\0"
        self.check(self.write_bam(tails()))
        self.check(self.path("in.bam"), "-t", "XX")

    def check_values(self, n_bytes, n_records):
        """Many threads, and values of n_bytes that differ at their beginnings or only at their ends:
        runs, their indexes, bounds and the merge hold keys."""
        shared = self.text(n_bytes - 8)
        for value in (lambda: self.text(n_bytes),
                      lambda: shared + b"%08x" % self.random.randrange(1 << 32)):
            source = self.write_bam((0, b"CBZ" + value() + b"\0") for _ in range(n_records))
            self.check(source, "-t", "CB", megabytes=8, n_threads=("8",))

    def test_values_of_500_bytes(self):
        self.check_values(500, 80_000)

    def test_values_of_2000_bytes(self):
        self.check_values(2000, 30_000)

    def test_values_of_60000_bytes(self):
        self.check_values(60_000, 1_200)

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

    def test_many_records_of_few_values(self):
        shared = [self.text(1000) for _ in range(20)]
        self.check(self.write_bam((0, b"XXZ" + self.random.choice(shared) + b"%d\0" %
                                   self.random.randrange(1000)) for _ in range(40_000)), "-t", "XX")

    def test_cell_barcodes(self):
        self.check(self.write_bam((0, b"CBZ" + self.text(65_000) + b"\0") for _ in range(1_900)),
                   "--template-coordinate")


@unittest.skipIf(os.access(SAMTOOLS, os.R_OK) and sanitized(), "a sanitizer's memory is not ours")
class SmallMemory(CliTest):
    """Tests that need no simulated reads."""

    def test_small_sort_needs_much_less_than_the_default_budget(self):
        source = self.write("in.sam", generate.odd(2000))
        peak, _ = peak_of(self, ["-@", "2", source])
        self.assertLessEqual(peak, ALLOWANCE_BYTES, f"{peak / MIB:.1f} MiB")

    @unittest.skipIf(os.access(SAMTOOLS, os.R_OK) and sanitized(), "a sanitizer's memory is not ours")
    def test_many_threads(self):
        """Threads need little memory: 256 threads once took 96 MiB."""
        source = self.write("in.sam", generate.odd(2000))
        peak, _ = peak_of(self, ["-@", "256", "--max-memory", "64M", source])
        self.assertLessEqual(peak, 48 * MIB, f"{peak / MIB:.1f} MiB")

    def test_printed_number_of_records_is_that_of_the_input(self):
        source = self.write("in.sam", generate.odd(4321))
        for options in (["--verbosity", "3"], ["--verbosity", "4"]):
            result = self.sort_ok(*options, "-o", self.path("out.bam"), source)
            for line in own_lines(result.err):
                for number in re.findall(r"(\d+) records", line.replace(",", "")):
                    self.assertEqual(number, "4321", line)
        self.assertEqual(len(bamfile.split(bamfile.read(self.path("out.bam")).records)), 4321)
