"""Errors: exit status 1, one message that names the file or the record, no temporary data left, and
no output that a reader takes for a complete file."""

import functools
import os
import random
import re
import subprocess

import bamfile
import generate
from harness import (RUN_LIMIT_S, SAMTOOLS, SPILL_BUDGET, CliTest, Result, bytes_of, environment,
                     kept_checkpoints, needs_pysam, own_lines)

REFS = [("a", 100000), ("b", 50000)]
HEADER = bamfile.bam_header(bamfile.sq_text(REFS), REFS)
BUDGETS = (None, SPILL_BUDGET)


@functools.lru_cache(2)
def records(n_records, seed=1, n_bases=150):
    rng = random.Random(seed)
    return tuple(bamfile.record(f"r{i}", 0, rng.randrange(2), rng.randrange(40000), f"{n_bases}M",
                                "".join(rng.choices("ACGT", k=n_bases))) for i in range(n_records))


class ErrorTest(CliTest):
    def check(self, *args, mentions=(), budgets=BUDGETS, **how):
        """The run fails and leaves nothing: with -o and with standard output, in memory and
        spilled."""
        for budget in budgets:
            for target in (["-o", self.path("out.bam")], []):
                with self.subTest(args=args, budget=budget, target=target):
                    try:
                        result = self.rocksort(*target, *args, budget=budget, **how)
                        self.write("stdout.bam", result.out)
                        self.assert_error(result, *mentions)
                        self.assert_no_result(self.path("out.bam"))
                        self.assert_no_result(self.path("stdout.bam"))
                    finally:  # so that a failure does not make the next subtests fail
                        for name in ("out.bam", "stdout.bam"):
                            if os.path.isfile(self.path(name)):
                                os.unlink(self.path(name))


    def assert_record_number(self, result, number):
        """The message names the bad record, counted from 1 or from 0. If threads read ahead, it may
        instead say "after record N" (or "behind") with any smaller N."""
        found = re.search(r"((?:after|behind) )?record #?(\d+)", own_lines(result.err)[0])
        self.assertTrue(found, result.err)
        first = 0 if found.group(1) else number - 1
        self.assertIn(int(found.group(2)), range(first, number + 1), result.err)


class Input(ErrorTest):
    def test_empty_input_has_no_header(self):
        source = self.write("empty.bam", b"")
        self.check(source, mentions=["failed to read header", "empty.bam"])
        self.check(mentions=["failed to read header"], stdin=b"")
        self.check(mentions=["failed to read header"])  # /dev/null

    def test_input_that_is_no_alignment_is_named(self):
        junk = random.Random(1).randbytes(5000)
        text = b"Dear diary,\nnothing aligned today.\n" * 50
        for name, data in (("junk", junk), ("junk.bam", b"\0" * 5000), ("text.txt", text),
                           ("text.bgzf", bamfile.bgzf(text)),
                           ("x.vcf", b"##fileformat=VCFv4.2\n#CHROM\n"),
                           ("elf", b"\x7fELF" + junk), ("magic", b"BAM\1"),
                           ("index.bai", b"BAI\1" + b"\0" * 20)):
            self.check(self.write(name, data), mentions=[name], budgets=(None,))
            with self.subTest(name, by="pipe"):
                self.assert_error(self.rocksort(stdin=data))

    def test_bad_line_is_counted(self):
        good = generate.odd(3000)
        for name, line in (("short", "r\t0\tchr10\t5\n"),
                           ("flag", "r\tx\tchr10\t5\t9\t*\t*\t0\t0\t*\t*\n"),
                           ("length", "r\t0\tchr10\t5\t9\t4M\t*\t0\t0\tACGTA\tFFFFF\n"),
                           ("quality", "r\t4\t*\t0\t0\t*\t*\t0\t0\tACGT\tFF\n"),
                           ("long name", "n" * 300 + "\t4\t*\t0\t0\t*\t*\t0\t0\t*\t*\n")):
            source = self.write(f"{name}.sam", good + line + good.split("\n", 6)[6])
            self.check(source, mentions=[f"{name}.sam"])
            for n_threads, budget in (("0", None), ("2", SPILL_BUDGET), ("5", None)):
                result = self.rocksort("-@", n_threads, "-o", self.path("out.bam"), source,
                                       budget=budget)
                self.assertIn("record 3001 ", result.err)


class Corrupt(ErrorTest):
    """A BAM that ends early, has changed bytes, or has impossible values."""

    def setUp(self):
        super().setUp()
        self.list = records(6000)
        self.raw = HEADER + b"".join(self.list)
        self.bam = bamfile.bgzf(self.raw)
        self.offsets = bamfile.bgzf_block_offsets(self.bam)

    def test_truncated_input_is_an_error(self):
        middle = self.offsets[len(self.offsets) // 2]
        for size in (1, 28, self.offsets[1] - 1, self.offsets[1], middle - 9, middle, middle + 18,
                     len(self.bam) - 27):
            source = self.write("cut.bam", self.bam[:size])
            self.check(source, mentions=["cut.bam"], budgets=(BUDGETS[size % 2],))
            with self.subTest(size=size, by="pipe"):
                with open(source, "rb") as file:
                    self.assert_error(self.rocksort("-o", self.path("out.bam"), stdin=file))
                self.assert_no_result(self.path("out.bam"))

    def test_truncated_input_with_a_filter_is_an_error(self):
        source = self.bam_of(generate.reads(5000, generate.reference()))
        data = bytes_of(source)
        starts = bamfile.bgzf_block_offsets(data)
        cut = self.write("cut.bam", data[:starts[len(starts) // 2] + 1000])
        for n_threads in ("1", "4"):
            result = self.rocksort("-@", n_threads, "--input-fmt-option", "filter=mapq>=0",
                                   "-o", self.path("out.bam"), cut)
            self.assert_error(result, "cut.bam", "after record")
            self.assert_no_result(self.path("out.bam"))

    def test_message_has_the_number_of_the_record(self):
        n_good = 4321
        raw = HEADER + b"".join(self.list[:n_good]) + self.list[n_good][:77]
        for data in (bamfile.bgzf(raw), bamfile.bgzf(raw)[:-28]):
            source = self.write("cut.bam", data)
            for budget in BUDGETS:
                result = self.rocksort("-o", self.path("out.bam"), source, budget=budget)
                self.assert_error(result, "cut.bam")
                self.assert_record_number(result, n_good + 1)

    def test_missing_end_of_file_block_is_a_warning(self):
        """Cut between two blocks and between two records: only the EOF block is missing. Nobody can
        tell whether records are missing, too: the file is sorted with a warning, as in samtools."""
        blocks = [bamfile.bgzf_block(HEADER)]
        blocks += [bamfile.bgzf_block(b"".join(self.list[i : i + 100]))
                   for i in range(0, 6000, 100)]
        for data in (b"".join(blocks), b"".join(blocks[:30])):
            source = self.write("cut.bam", data)
            for stdin, args in ((b"", (source,)), (data, ("-",))):
                result = self.rocksort("-o", self.path("out.bam"), *args, stdin=stdin)
                self.assertEqual(result.status, 0, result.err)
                self.assertRegex(result.err, "EOF (marker|block)")

    def test_truncated_input_that_is_the_output_stays(self):
        data = self.bam[: len(self.bam) // 2]
        for budget in BUDGETS:
            source = self.write("same.bam", data)
            self.assert_error(self.rocksort("-o", source, source, budget=budget), "same.bam")
            self.assertEqual(bytes_of(source), data)

    def test_flipped_byte_is_an_error_or_changes_nothing(self):
        rng = random.Random(7)
        want = self.sort_bam("--no-PG", self.write("good.bam", self.bam))
        places = [rng.randrange(len(self.bam)) for _ in range(40)]
        places += list(range(self.offsets[3], self.offsets[3] + 18))
        places += list(range(self.offsets[4] - 8, self.offsets[4]))
        n_errors = 0
        for i, place in enumerate(places):
            data = bytearray(self.bam)
            data[place] ^= 1 << rng.randrange(8)
            source = self.write("bad.bam", bytes(data))
            out = self.path("out.bam")
            with self.subTest(place=place, block=self.offsets[3] - place):
                result = self.rocksort("--no-PG", "-@", str(i % 3), "-o", out, source,
                                       budget=BUDGETS[i % 2])
                if result.status == 0:
                    self.assertEqual(bamfile.read(out), want)
                    os.unlink(out)
                    continue
                n_errors += 1
                self.assert_error(result, "bad.bam")
                self.assert_no_result(out)
        self.assertGreater(n_errors, 45)

    def test_cigar_that_does_not_fit_the_bases_is_refused(self):
        bad = bamfile.record("bad", 0, 0, 100, "149M", "A" * 150)
        data = bamfile.bgzf(HEADER + b"".join(self.list[:2000]) + bad + b"".join(self.list[2000:]))
        self.check(self.write("lie.bam", data), mentions=["lie.bam"])

    @needs_pysam
    def test_truncated_cram_is_an_error(self):
        sam = generate.reads(3000, generate.reference())
        path = self.bam_of(sam, "-C", "--output-fmt-option", "no_ref=1", name="whole.cram")
        data = bytes_of(path)
        # Only the EOF container, the last 38 bytes, is missing: all records are there, and this is
        # a warning.
        result = self.rocksort("-o", self.path("all.bam"), self.write("end.cram", data[:-38]))
        self.assertEqual(result.status, 0, result.err)
        self.assertIn("EOF marker", result.err)
        for size in (5, 30, 700, len(data) // 2, len(data) * 3 // 4, len(data) - 39, len(data) - 1):
            source = self.write("cut.cram", data[:size])
            with self.subTest(size=size):
                out = self.path(f"out{size}.bam")
                self.assert_error(self.rocksort("-o", out, source), "cut.cram")
                self.assert_no_result(out)

    @needs_pysam
    def test_cram_without_its_reference_is_an_error(self):
        refs = generate.reference()
        fasta = self.write("ref.fa", generate.fasta(refs))
        source = self.bam_of(generate.reads(1000, refs), "-C", "-T", fasta, name="in.cram")
        for name in os.listdir(self.work):
            if name.startswith("ref.fa"):
                os.unlink(self.path(name))
        result = self.rocksort("-o", self.path("out.bam"), source)
        self.assertEqual(result.status, 1, result.err)
        # The threads of htslib mix their lines here, so that own_lines() cannot be used.
        lines = [line for line in result.err.splitlines() if "samtools rocksort: " in line]
        self.assertEqual(len(lines), 1, result.err)
        self.assertIn("in.cram", lines[0])
        self.assert_no_result(self.path("out.bam"))


class Output(ErrorTest):
    """Outputs that cannot be written."""

    def setUp(self):
        super().setUp()
        self.source = self.write("in.sam", generate.odd(8000))

    def fails(self, *args, mentions=(), env=None, budgets=BUDGETS):
        """The run fails in memory and spilled."""
        for budget in budgets:
            with self.subTest(args=args, budget=budget):
                result = self.rocksort(*args, self.source, budget=budget, env=env)
                self.assert_error(result, *mentions)

    def test_directory_without_permission_is_named(self):
        if os.geteuid() == 0:
            self.skipTest("root may write everywhere")
        folder = self.work / "locked"
        folder.mkdir(0o500)
        self.fails("-T", self.scratch, "-o", folder / "out.bam", mentions=["locked/out.bam"])
        self.fails("-T", folder / "x", budgets=(SPILL_BUDGET,), mentions=["locked"])

    def test_full_device_is_an_error(self):
        for options in ([], ["-u"], ["-O", "sam"], ["-O", "cram,no_ref=1"], ["-@", "3"]):
            self.fails(*options, "-T", self.scratch, "-o", "/dev/full", mentions=["/dev/full"])

    def test_full_device_is_noticed_when_the_file_is_closed(self):
        for options in ([], ["-O", "sam"]):
            result = self.rocksort(*options, "-o", "/dev/full", stdin=b"@SQ\tSN:a\tLN:10\n")
            self.assert_error(result, "/dev/full")

    def test_full_standard_output_keeps_the_checkpoint(self):
        for budget in BUDGETS:
            for options in ([], ["-O", "sam"]):
                with self.subTest(budget=budget, options=options), open("/dev/full", "wb") as full:
                    done = subprocess.run(
                        [SAMTOOLS, "rocksort", *options, self.source], stdout=full,
                        stderr=subprocess.PIPE, text=True, check=False, timeout=RUN_LIMIT_S,
                        env=environment(self.scratch, budget))
                    self.assertEqual(done.returncode, 1, done.stderr)
                    result = Result(done.returncode, b"", done.stderr)
                    self.assert_one_message(result, "standard output")
                    self.assertEqual(len(kept_checkpoints(done.stderr)), budget == SPILL_BUDGET)
                    self.drop_kept(done.stderr)
                    self.assertEqual(os.listdir(self.scratch), [])

    def test_wrong_temporary_directory_is_named(self):
        for prefix in ("/nowhere/prefix", "/nowhere/", f"{self.source}/prefix", "/dev/null/x"):
            self.fails("-T", prefix, "-o", self.path("out.bam"), budgets=(SPILL_BUDGET,),
                       mentions=[prefix.rstrip("/").rsplit("/", 1)[0] or "/"])
            self.assert_no_result(self.path("out.bam"))
        self.fails(env={"TMPDIR": "/nowhere/tmp"}, budgets=(SPILL_BUDGET,),
                   mentions=["/nowhere/tmp"])


class FullDisk(ErrorTest):
    """Sorts on a file system of 2 MB. Only root can mount it."""

    def setUp(self):
        super().setUp()
        self.disk = self.mount(self.work / "disk", "2m")
        self.source = self.write("in.sam", generate.incompressible(3000))

    def test_disk_that_fills_up_while_spilling_is_named(self):
        for options in (["--temp-codec", "none"], ["--temp-codec", "zstd", "-n", "-@", "3"]):
            with self.subTest(options=options):
                out = self.path("out.bam")
                result = self.rocksort(*options, "-T", self.disk / "t", "-o", out, self.source,
                                       budget=SPILL_BUDGET)
                self.assert_error(result, "No space left", f"'{self.disk}' has ", " free",
                                  "more are needed", "-T")
                self.assert_no_result(out)
                self.assertEqual(os.listdir(self.disk), [])
                free = os.statvfs(self.disk)
                self.assertGreater(free.f_bfree * free.f_bsize, 1_900_000)

    def test_sorted_file_stays_if_its_index_cannot_be_written(self):
        small = self.mount(self.work / "small", "4k,nr_inodes=10")
        out = self.path("out.bam")
        result = self.rocksort("--write-index", "-o", f"{out}##idx##{small}/o.bai", self.source)
        self.assert_error(result, "o.bai", "No space left", f"'{small}' has ", "are needed")
        self.assertTrue(bamfile.looks_complete(out))
        self.assertEqual(os.listdir(small), [])

    def test_small_disk_is_warned_of_at_the_start(self):
        for budget, options, words in (
                (SPILL_BUDGET, ["-T", self.disk, "--temp-codec", "none"], ["temporary data will"]),
                (SPILL_BUDGET, ["-T", self.disk, "-s", "100M"], ["temporary data will need"]),
                (None, ["-u", "-o", self.disk / "out.bam"], ["the output will need"]),
                (SPILL_BUDGET, ["-u", "-o", self.disk / "out.bam"], ["temporary data and output"])):
            with self.subTest(options=options):
                result = self.rocksort(*options, *([] if "-o" in options else ["-o", "/dev/null"]),
                                       self.source, budget=budget)
                warnings = [line for line in result.err.splitlines() if "will need" in line]
                self.assertEqual(len(warnings), 1, result.err)
                for word in [*words, f"'{self.disk}' has"]:
                    self.assertIn(word, warnings[0])
        result = self.sort_ok("-o", self.path("out.bam"), self.source, budget=SPILL_BUDGET)
        self.assertNotIn("will need", result.err)

    def test_disk_that_fills_up_while_writing_is_named(self):
        for budget in BUDGETS:
            for options in ([], ["-O", "sam"], ["-O", "sam", "-@", "3"], ["-u"],
                            ["-O", "cram,no_ref=1"]):
                with self.subTest(budget=budget, options=options):
                    out = self.disk / "out.bam"
                    result = self.rocksort(*options, "-T", self.scratch, "-o", out, self.source,
                                           budget=budget)
                    self.assert_error(result, "out.bam", "No space left", f"'{self.disk}' has ")
                    self.assert_no_result(out)
                    if out.exists():
                        out.unlink()
