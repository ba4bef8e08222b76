"""Errors: exit status 1, one message that names the file or the record, no temporary data left, and
no output that a reader takes for a complete file."""

import os
import random
import re
import struct
import subprocess

import bamfile
import generate
from harness import (RUN_LIMIT_S, SAMTOOLS, SPILL_BUDGET, CliTest, Result, bytes_of, environment,
                     kept_checkpoints, needs_pysam, own_lines, reference, reference_sort)

REFS = [("a", 100000), ("b", 50000)]
HEADER = bamfile.bam_header(bamfile.sq_text(REFS), REFS)
BUDGETS = (None, SPILL_BUDGET)


def records(n_records, seed=1, n_bases=150):
    rng = random.Random(seed)
    return [bamfile.record(f"r{i}", 0, rng.randrange(2), rng.randrange(40000), f"{n_bases}M",
                           "".join(rng.choices("ACGT", k=n_bases))) for i in range(n_records)]


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
    def test_missing_input_is_named(self):
        self.check(self.path("absent.bam"), mentions=["absent.bam", "No such file"])

    def test_directory_as_input_is_named(self):
        self.check(str(self.work), mentions=[str(self.work)])

    def test_empty_input_has_no_header(self):
        source = self.write("empty.bam", b"")
        self.check(source, mentions=["failed to read header", "empty.bam"])
        self.check(mentions=["failed to read header"], stdin=b"")
        self.check(mentions=["failed to read header"])  # /dev/null

    def test_closed_standard_input(self):
        result = self.run_program(["/bin/sh", "-c", 'exec "$0" rocksort <&-', SAMTOOLS])
        self.assert_error(result)

    def test_not_an_alignment(self):
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

    def test_bad_sam_line(self):
        good = generate.odd(3000)
        for name, line in (("short", "r\t0\tchr10\t5\n"),
                           ("flag", "r\tx\tchr10\t5\t9\t*\t*\t0\t0\t*\t*\n"),
                           ("length", "r\t0\tchr10\t5\t9\t4M\t*\t0\t0\tACGTA\tFFFFF\n"),
                           ("quality", "r\t4\t*\t0\t0\t*\t*\t0\t0\tACGT\tFF\n"),
                           ("long name", "n" * 300 + "\t4\t*\t0\t0\t*\t*\t0\t0\t*\t*\n")):
            source = self.write(f"{name}.sam", good + line + good.split("\n", 6)[6])
            self.check(source, mentions=[f"{name}.sam"])
            for n_threads in ("0", "2", "5"):
                for budget in BUDGETS:
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
        for size in (1, 10, 27, 28, 40, self.offsets[1] - 1, self.offsets[1], self.offsets[1] + 5,
                     middle - 9, middle, middle + 17, middle + 18, middle + 30,
                     self.offsets[-2] - 1, len(self.bam) - 27, len(self.bam) - 1):
            source = self.write("cut.bam", self.bam[:size])
            self.check(source, mentions=["cut.bam"], budgets=(BUDGETS[size % 2],))
            with self.subTest(size=size, by="pipe"):
                with open(source, "rb") as file:
                    self.assert_error(self.rocksort("-o", self.path("out.bam"), stdin=file))
                self.assert_no_result(self.path("out.bam"))

    def test_truncated_input_with_a_filter_is_an_error(self):
        source = self.bam_of(generate.reads(20000, generate.reference()))
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

    def test_no_end_of_file_block(self):
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

    def test_missing_block_is_noticed(self):
        at = len(self.offsets) // 2
        data = self.bam[: self.offsets[at]] + self.bam[self.offsets[at + 1] :]
        # This can be detected because the block starts or ends inside a record.
        source = self.write("lost.bam", data)
        self.check(source, mentions=["lost.bam"])

    def test_junk_behind_the_end(self):
        source = self.write("more.bam", self.bam + b"junk" * 20)
        self.check(source, mentions=["more.bam"], budgets=(None,))

    def lie(self, change):
        """A BAM in which change(raw record) has changed record 2000."""
        raw = bytearray(self.list[2000])
        raw = bytes(change(raw) or raw)
        return bamfile.bgzf(HEADER + b"".join(self.list[:2000] + [raw] + self.list[2001:]))

    LIES = {
        # Offsets are counted from the start of the length field of the record.
        "length 0": lambda raw: struct.pack_into("<i", raw, 0, 0),
        "length 31": lambda raw: struct.pack_into("<i", raw, 0, 31),
        "length negative": lambda raw: struct.pack_into("<i", raw, 0, -1),
        "length huge": lambda raw: struct.pack_into("<i", raw, 0, 0x7FFFFFFF),
        "length a bit short": lambda raw: struct.pack_into("<i", raw, 0, len(raw) - 9),
        "length a bit long": lambda raw: struct.pack_into("<i", raw, 0, len(raw) + 5),
        "name length 0": lambda raw: struct.pack_into("<B", raw, 12, 0),
        "name length 255": lambda raw: (struct.pack_into("<B", raw, 12, 255), bytes(raw[:100]))[0],
        "CIGAR beyond the end": lambda raw: struct.pack_into("<H", raw, 16, 65535),
        "bases negative": lambda raw: struct.pack_into("<i", raw, 20, -1),
        "bases beyond the end": lambda raw: struct.pack_into("<i", raw, 20, 1 << 30),
        "bases overflow": lambda raw: struct.pack_into("<i", raw, 20, 0x7FFFFFFF),
        "reference too large": lambda raw: struct.pack_into("<i", raw, 4, 2),
        "reference negative": lambda raw: struct.pack_into("<i", raw, 4, -2),
        "mate reference too large": lambda raw: struct.pack_into("<i", raw, 24, 77),
        "mate reference negative": lambda raw: struct.pack_into("<i", raw, 24, -2),
    }

    def test_lying_fields(self):
        for name, change in self.LIES.items():
            source = self.write("lie.bam", self.lie(change))
            for order in ([], ["-n"]):
                for budget in BUDGETS:
                    with self.subTest(name, order=order, budget=budget):
                        out = self.path("out.bam")
                        result = self.rocksort(*order, "-o", out, source, budget=budget)
                        self.assert_error(result, "lie.bam")
                        # A wrong length may be detected only in one of the next records.
                        self.assertRegex(own_lines(result.err)[0], r"record #?200[0-4]\b")
                        self.assert_no_result(out)

    def test_cigar_that_does_not_fit_the_bases_is_refused(self):
        bad = bamfile.record("bad", 0, 0, 100, "149M", "A" * 150)
        data = bamfile.bgzf(HEADER + b"".join(self.list[:2000]) + bad + b"".join(self.list[2000:]))
        self.check(self.write("lie.bam", data), mentions=["lie.bam"])

    def test_name_without_end(self):
        """A read name without its NUL. htslib adds the NUL; an error is right, too, but not a lost
        record."""
        self.check_odd_record(lambda raw: raw.__setitem__(35 + raw[12], ord("x")))

    def test_position_below_minus_one(self):
        """BAM allows no position below -1. We must not crash, whatever samtools does with it."""
        self.check_odd_record(lambda raw: struct.pack_into("<i", raw, 8, -1000))

    def check_odd_record(self, change):
        """The sort fails with one message, or its output has all records."""
        source = self.write("odd.bam", self.lie(change))
        for order in ([], ["-n"]):
            for budget in BUDGETS:
                with self.subTest(order=order, budget=budget):
                    out = self.path("out.bam")
                    result = self.rocksort(*order, "-o", out, source, budget=budget)
                    if result.status == 0:
                        self.assertEqual(len(bamfile.split(bamfile.read(out).records)), 6000)
                        os.unlink(out)
                    else:
                        self.assert_error(result, "odd.bam")
                        self.assert_no_result(out)

    def test_lying_header_is_refused(self):
        n_text = struct.unpack_from("<i", self.raw, 4)[0]
        for name, place, value in (
                ("text length negative", 4, -1), ("text length huge", 4, 0x7FFFFFFF),
                ("text length short", 4, 3), ("references negative", 8 + n_text, -1),
                ("references huge", 8 + n_text, 0x7FFFFFFF), ("name length 0", 12 + n_text, 0),
                ("name length negative", 12 + n_text, -5),
                ("name length huge", 12 + n_text, 0x7FFFFFF0)):
            raw = bytearray(self.raw)
            struct.pack_into("<i", raw, place, value)
            source = self.write("head.bam", bamfile.bgzf(bytes(raw)))
            with self.subTest(name):
                result = self.rocksort("-o", self.path("out.bam"), source)
                self.assert_error(result, "head.bam")
                self.assert_no_result(self.path("out.bam"))

    @needs_pysam
    def test_what_the_reference_refuses(self):
        """Random damage inside valid blocks. If samtools fails, we must fail, too. If samtools
        succeeds, we fail or have the same result."""
        rng = random.Random(8)
        short = self.list[:300]
        head = len(HEADER)
        raw = HEADER + b"".join(short)
        for i in range(60):
            data = bytearray(raw)
            for _ in range(rng.randint(1, 3)):
                data[rng.randrange(head, len(data))] = rng.choice((0, 1, 127, 128, 255))
            source = self.write("bad.bam", bamfile.bgzf(bytes(data)))
            target, out = self.path("want.bam"), self.path("out.bam")
            accepted = reference("sort", "--no-PG", "-O", "bam", "-o", target, source)
            with self.subTest(round=i):
                result = self.rocksort("--no-PG", "-o", out, source, budget=BUDGETS[i % 2])
                if result.status:
                    self.assert_error(result, "bad.bam")
                    self.assert_no_result(out)
                else:
                    self.assertTrue(accepted, "samtools refuses this file")
                    got, want = bamfile.read(out), bamfile.read(target)
                    self.assertEqual(len(got.records), len(want.records))
                    os.unlink(out)

    @needs_pysam
    def test_truncated_cram(self):
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
    def test_cram_without_its_reference(self):
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

    def test_truncated_gzip_sam(self):
        data = bamfile.bgzf(generate.odd(4000).encode())
        for size in (len(data) // 2, len(data) - 40):
            self.check(self.write("cut.sam.gz", data[:size]), mentions=["cut.sam.gz"])


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

    def test_no_permission(self):
        if os.geteuid() == 0:
            self.skipTest("root may write everywhere")
        folder = self.work / "locked"
        folder.mkdir(0o500)
        self.fails("-T", self.scratch, "-o", folder / "out.bam", mentions=["locked/out.bam"])
        self.fails("-T", folder / "x", budgets=(SPILL_BUDGET,), mentions=["locked"])

    def test_full_device(self):
        for options in ([], ["-u"], ["-O", "sam"], ["-O", "cram,no_ref=1"], ["-@", "3"]):
            self.fails(*options, "-T", self.scratch, "-o", "/dev/full", mentions=["/dev/full"])

    def test_full_device_is_noticed_when_the_file_is_closed(self):
        for options in ([], ["-O", "sam"]):
            result = self.rocksort(*options, "-o", "/dev/full", stdin=b"@SQ\tSN:a\tLN:10\n")
            self.assert_error(result, "/dev/full")

    def test_full_standard_output(self):
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

    def test_closed_standard_output(self):
        script = 'exec "$0" rocksort "$1" >&-'
        result = self.run_program(["/bin/sh", "-c", script, SAMTOOLS, self.source])
        self.assert_error(result)

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

    def test_while_spilling(self):
        for codec in ("none", "snappy", "lz4", "zstd"):
            for options in ([], ["-n", "-@", "3"]):
                with self.subTest(codec=codec, options=options):
                    out = self.path("out.bam")
                    result = self.rocksort("--temp-codec", codec, *options, "-T", self.disk / "t",
                                           "-o", out, self.source, budget=SPILL_BUDGET)
                    self.assert_error(result, "No space left", f"'{self.disk}' has ", " free",
                                      "more are needed", "-T")
                    self.assert_no_result(out)
                    self.assertEqual(os.listdir(self.disk), [])

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

    def test_while_writing(self):
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

    def test_disk_has_its_space_back_after_a_failure(self):
        self.rocksort("-T", self.disk, "-o", self.path("out.bam"), self.source, budget=SPILL_BUDGET)
        free = os.statvfs(self.disk)
        self.assertGreater(free.f_bfree * free.f_bsize, 1_900_000)


class UndamagedFile(CliTest):
    """The file that the tests above damage is sound."""

    def test_the_base_sorts(self):
        source = self.write("good.bam", bamfile.bgzf(HEADER + b"".join(records(6000))))
        for budget in BUDGETS:
            got = self.sort_bam(source, budget=budget)
            self.assertEqual(sorted(bamfile.split(got.records)), sorted(records(6000)))

    @needs_pysam
    def test_the_reference_takes_it(self):
        source = self.write("good.bam", bamfile.bgzf(HEADER + b"".join(records(600))))
        want = reference_sort(source, self.path("want.bam"))
        self.assertEqual(len(bamfile.split(want.records)), 600)
        self.assertTrue(re.search("SO:coordinate", want.text))
