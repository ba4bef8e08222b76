"""Damaged and malicious files never cause a crash, an endless loop, or a wrong output that looks
complete. hostile_check.py has the checks; `make hostile N=5000` runs them on more files."""

import os
import random
import resource
import unittest

import bamfile
import hostile_check
import hostile_files
from harness import BUILD, SAMTOOLS, SPILL_BUDGET, CliTest, needs_pysam, own_lines, sanitized

BASE = hostile_files.Base(400)
# Programs with sanitizers take several times as long, and are tested with fewer files.
SLOW_BUILD = os.access(SAMTOOLS, os.R_OK) and sanitized()
N_RANDOM, SHARE = (40, 4) if SLOW_BUILD else (60, 1)


@unittest.skipUnless(hostile_check.ForkServer.path(), "no fork-server was built")
@needs_pysam
class Hostile(unittest.TestCase):
    """Sorts each file in several ways."""

    def setUp(self):
        self.judge = hostile_check.Judge()
        self.addCleanup(self.judge.close)

    def check(self, cases, n_ways):
        """Judges all cases, each with n_ways of the ways to sort; the ways take turns."""
        ways, problems = hostile_check.WAYS, []
        for i, case in enumerate(list(cases)[::SHARE]):
            chosen = [ways[(i * n_ways + k) % len(ways)] for k in range(n_ways)]
            problems += self.judge.judge(case, chosen)
        self.assertEqual(problems, [], "\n".join(problems[:40]))

    def test_damaged_fields_never_crash(self):
        self.check(hostile_files.field_cases(BASE), 1)

    def test_damaged_tags_never_crash(self):
        self.check([case._replace(data=BASE.with_record(case.data))
                    for case in hostile_files.tag_cases()], 3)

    def test_damaged_headers_never_crash(self):
        self.check(hostile_files.header_cases(BASE), 1)

    def test_damaged_blocks_never_crash(self):
        self.check(hostile_files.block_cases(BASE), 1)

    def test_truncated_files_never_crash(self):
        self.check(hostile_files.truncation_cases(BASE), 1)

    def test_damaged_text_never_crashes(self):
        self.check(hostile_files.sam_cases(), 1)

    def test_other_damage_never_crashes(self):
        self.check(hostile_files.other_cases(BASE), 2)

    def test_random_damage_never_crashes(self):
        rng = random.Random(41)
        self.check([hostile_files.random_case(rng, BASE) for _ in range(N_RANDOM * SHARE)], 1)


class Bombs(CliTest):
    """Small files that inflate to much data."""

    def test_thousandfold_compression_keeps_the_memory_promise(self):
        n_bytes = (8 if sanitized() else 64) << 20
        record = bamfile.record("r" * 200, 0, 0, 5, "1000M", "A" * 1000)
        n_records = n_bytes // len(record)
        block = bamfile.bgzf_block(record * (60000 // len(record)), 9)
        n_blocks = n_records // (60000 // len(record))
        head = bamfile.bgzf_block(hostile_files.header())
        source = self.write("bomb.bam", head + block * n_blocks + bamfile.EOF_BLOCK)
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        for options in ([], ["-n"]):
            out = self.path("out.bam")
            self.sort_ok("--max-memory", "8M", "-l", "1", *options, "-o", out, source)
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
            # ru_maxrss is that of the largest child so far: it tells something only if it grew.
            if not sanitized() and peak > before:
                self.assertLess(peak, (8 + 64) << 10)


class Terminal(CliTest):
    """Messages quote names of files and of records without their control characters."""

    ESCAPE = "\x1b[2J\x1b]0;x\x07"

    def check(self, result, *mentions):
        """The run prints one message, in which control characters are escaped."""
        self.assertEqual(result.status, 1, result.err)
        lines = own_lines(result.err)
        self.assertEqual(len(lines), 1, result.err)
        for mention in mentions:
            self.assertIn(mention, lines[0])
        for char in ("\x1b", "\x07", "\x9b", "\r"):
            self.assertNotIn(char, result.err)

    def test_name_of_a_bad_record_is_printed_safely(self):
        record = bamfile.record("a" + self.ESCAPE + "%n%s\r", 1, 0, 5, "1M", "A", b"", 0, (0, 7, 0))
        source = self.write("in.bam", bamfile.bgzf(hostile_files.header() + record))
        for budget in (None, SPILL_BUDGET):
            result = self.rocksort("--template-coordinate", "-o", self.path("out.bam"), source,
                                   budget=budget)
            self.check(result, r"'a\x1b[2J\x1b]0;x\x07%n%s\x0d'", "fixmate")

    def test_name_of_a_bad_reference_is_printed_safely(self):
        name = "c" + self.ESCAPE
        one = self.write("one.sam", f"@SQ\tSN:{name}\tLN:5\n")
        two = self.write("two.sam", f"@SQ\tSN:{name}\tLN:6\n")
        self.check(self.rocksort("-o", self.path("out.bam"), one, two), r"'c\x1b[2J\x1b]0;x\x07'")
        long = self.write("long.sam", f"@SQ\tSN:{name}\tLN:3000000000\n")
        self.check(self.rocksort("-o", self.path("out.bam"), long), r"'c\x1b[2J\x1b]0;x\x07'")

    def test_what_htslib_prints_has_no_control_characters(self):
        """htslib's own messages quote malformed header lines, but no control characters of these
        may be printed."""
        for line in ("@RG\tID:x\t" + self.ESCAPE, "@SQ\tSN:" + self.ESCAPE, "@" + self.ESCAPE):
            source = self.write("in.sam", line + "\nr\t4\t*\t0\t0\t*\t*\t0\t0\t*\t*\n")
            result = self.rocksort("--verbosity", "5", "-o", self.path("out.bam"), source)
            for char in ("\x1b", "\x07"):
                self.assertNotIn(char, result.err)

    def test_name_of_a_file_is_printed_safely(self):
        name = self.path("no" + self.ESCAPE + "such\nfile.bam")
        result = self.rocksort("-o", self.path("out.bam"), name)
        self.check(result, r"no\x1b[2J", r"such\x0afile.bam")

    def test_name_of_a_file_keeps_its_utf8(self):
        result = self.rocksort("-o", self.path("out.bam"), self.path("gr\u00f6\u00dfe.bam"))
        self.assertIn("gr\u00f6\u00dfe.bam", own_lines(result.err)[0])

    def test_name_of_a_sam_record_is_printed_safely(self):
        """The name of a SAM record that does not fit into BAM. htslib's messages do not name it."""
        line = f"s{self.ESCAPE}\t0\ta\t4294967296\t9\t*\t*\t0\t0\t*\t*\n"
        sam = "@SQ\tSN:a\tLN:9\n" + line
        result = self.rocksort("-o", self.path("out.bam"), stdin=sam.encode())
        self.check(result, r"s\x1b[2J")


class TwoSortBuffers(CliTest):
    """A record that lies across two sort buffers and whose key is almost as long as the record."""

    def test_records_with_long_keys_across_sort_buffers_are_kept(self):
        """After records with long names of alternating digits and letters, which have the longest
        possible keys."""
        names = "".join("9a"[i % 2] for i in range(254))
        small = bamfile.record(names, 4, -1, -1)
        tag = b"CBZ" + b"x" * 30000 + b"\0"
        large = bamfile.record("large", 4, -1, -1, aux=tag)
        for n_small in (200, 300, 400, 550, 700):
            records = (large + small * n_small) * 6
            source = self.write("in.bam", bamfile.bgzf(hostile_files.header() + records))
            for options in (["-n", "-t", "CB"], ["-t", "CB"], ["--template-coordinate"]):
                got = self.sort_bam(*options, source, budget=SPILL_BUDGET)
                self.assertEqual(sorted(bamfile.split(got.records)),
                                 sorted(bamfile.split(records)))


class Sanity(CliTest):
    """The judge itself works: it knows how a run ended."""

    @unittest.skipUnless(hostile_check.ForkServer.path(), "no fork-server was built")
    def test_the_server_tells_how_a_run_ended(self):
        server = hostile_check.ForkServer()
        self.addCleanup(server.stop)
        good = server.run(["--version"], {}, 10)
        self.assertEqual((good.status, good.signal, good.timed_out), (0, 0, False))
        bad = server.run(["-@", "x"], {}, 10)
        self.assertEqual(bad.status, 1)
        self.assertIn(b"option -@", bad.err)
        self.assertTrue(BUILD.exists())
