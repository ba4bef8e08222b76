"""Messages that users often see: each is one, of two lines at most, and says what to do."""

import gzip
import os
import random

import bamfile
import generate
from harness import SPILL_BUDGET, CliTest, own_lines

TWO_LINES = 160
PREFIX = "samtools rocksort: "


class MessagesTest(CliTest):
    def told(self, result, *mentions, most=TWO_LINES):
        """The run printed one message, of at most two lines, with all of the mentions."""
        self.assertEqual(result.status, 1, result.err)
        lines = [line for line in own_lines(result.err) if " kept; to " not in line]
        self.assertEqual(len(lines), 1, result.err)
        self.assertLessEqual(len(lines[0].replace(str(self.work), "/data")), most, lines[0])
        self.assertNotRegex(lines[0], r"\.$|failed to (?!read header)|unable|\bbehind\b")
        for mention in mentions:
            self.assertIn(mention, lines[0])

    def says(self, *mentions, args, **how):
        """A run in the working directory fails; its message has all of the mentions."""
        with self.subTest(args=args):
            self.told(self.rocksort(*args, **how), *mentions)


class Options(MessagesTest):
    """Mistakes on the command line: the message names the option and what it takes."""

    def setUp(self):
        super().setUp()
        self.write("in.sam", generate.odd(20))
        self.write("other.sam", generate.odd(20))

    def test_bad_values_are_refused(self):
        sizes = ["4Q", "x", "", "-1M"]
        numbers = ["x", "", "5x", "1e3", "0x10", " 5", "+5", "-", "--5", "5 "]
        for option, values, *mentions in (
                ("-m", ["1Q", "1.5", "1,5G", "1MM", "99999999999999999999", "M", "+4M ", "0x10M",
                        "1 M", "768Mi", ".5G", *sizes], "768M"),
                ("-m", ["16777216T"]), ("-m", ["10", "1", "0", "4K", "1048575", "0.9MB"], "at least 1M"),
                ("--max-memory", ["much", *sizes], "auto"), ("--max-memory", ["1"]),
                ("-@", ["many", "x", "", "-1", "2x", "1e3", " 4", "+4", "99999999999"], "auto"),
                ("--threads", ["x", "", "-1", "2x", "1e3", "99999999999"], "auto"),
                ("-l", ["best", "x", "", "1x", "-", "-1", "10", "99", "1.5", " 4", "+4",
                        "99999999999999999999"], "0 to 9"),
                ("-K", numbers, "1 to 31"), ("-w", ["0", *numbers], "from 1 to"),
                ("-I a.fa -w", ["0", "-1", "99999999999", "99999999999999999999"], "-w"),
                ("-M -K=", ["5"]), ("-M -w=", ["5"]), ("-t", ["", "R", "ABC", "RG:Z"], "two characters"),
                ("-s", ["big", "junk", "1Q", "-5", "AUTO", "on", "autos", "off ", "1.5.5G", "12X",
                        "", "-1", "0x10", "G"], "auto or off"),
                ("--shuffle=", ["", "x", "-1", "+1", "1x", "1.5", "0x10", " 1",
                                "18446744073709551616", "99999999999999999999999"], "whole number"),
                ("--temp-codec", ["gzip", "foo", "", "lz"], "zstd"),
                ("--deflate", ["bgzip", "", "gzip", "libdeflate ", "LIBDEFLATE", "isal", "1"],
                 "auto, libdeflate, igzip, rocksort or zlib"),
                ("--verbosity", ["loud", "x"], "from 0 to 100"),
                ("-O", ["vcf", "foo", "", "fastq", "fasta", "bam.gz", "BAM,x"], "output format",
                 "bam, sam, cram, arrow, arrows or parquet"),
                ("-O", ["bam,nonsense=1"]),
                ("--input-fmt-option", ["nonsense", "nonsense=1", "", "=1"], "man"),
                ("--output-fmt-option", ["nonsense", "nonsense=1", "", "=1"], "man"),
                ("--verify=", ["size"], "=coordinate"),
                ("--report", ["http://a/b"], "name of a file")):
            *before, last = option.split()
            for value in values:
                words = [*before, *([last + value] if last.endswith("=") else [last, value])]
                self.says({"--threads": "-@"}.get(last, last.rstrip("=")), value, *mentions,
                          args=[*words, "-o", "x.bam", "in.sam"])
        self.says("level", "0 to 9", "'11'",
                  args=["--output-fmt-option", "level=11", "-o", "x.bam", "in.sam"])
        self.says("-T", "32 times", args=[*["-T", "x"] * 33, "in.sam"])
        self.says("so much memory", "-m", args=["-@", "4", "-m", "5000000T", "in.sam"])
        self.assertFalse(os.path.exists(self.path("x.bam")))

    def test_options_that_do_not_go_together_are_refused(self):
        for args, *mentions in (
                (["in.sam", "in.sam", "other.sam"], "3 input files", "-o"),
                (["in.sam", "other.sam"], "'other.sam' exists", "give -o", "-f"),
                (["-o", "x.bam", "-", "-"], "standard input", "once"),
                (["--write-index", "-o", "x.sam", "in.sam"], "--write-index", "sam.gz"),
                (["--write-index", "-o", "x.bam##idx##x.bam", "in.sam"], "'x.bam'", "another name"),
                (["--partial", "in.sam"], "--partial", "--resume"),
                (["--yes", "in.sam"], "--yes", "--clean"),
                (["--clean", ".", "in.sam"], "--clean", "one directory or output file"),
                (["--clean", ""], "--clean", "takes a directory"),
                (["--report", "-", "in.sam"], "--report", "name a file"),
                (["--report", "in.sam", "-o", "x.bam", "in.sam"], "'in.sam'", "another name"),
                (["--report", "x.json", "--plan", "in.sam"], "--report", "--plan"),
                (["--resume", "x", "in.sam"], "--resume", "no input", "-o"),
                (["--resume", "x", "--clean", "y"], "--resume", "--clean"),
                (["--verify", "-I", "a.fa", "in.sam"], "--verify", "-R", "without -M and -I")):
            self.says(*mentions, args=args)

    def test_unknown_option_gets_two_lines(self):
        """Two lines: getopt's message with the name of our program, and where to find help."""
        for args, mention in ((["--nonsense"], "'--nonsense'"), (["-Z"], "'Z'"), (["-m"], "'m'"),
                              (["--max-memory"], "'--max-memory'"), (["--ver"], "'--verify'"),
                              (["--plan=x"], "'--plan'")):
            with self.subTest(args=args):
                result = self.rocksort(*args)
                lines = result.err.splitlines()
                self.assertEqual((result.status, result.out, len(lines)), (1, b"", 2), result.err)
                self.assertTrue(lines[0].startswith(PREFIX), result.err)
                self.assertIn(mention, lines[0])
                self.assertRegex(lines[1], "^Usage: samtools rocksort .*--help")

    def test_pg_line_has_the_command_as_typed(self):
        text = self.sort_ok("-O", "sam", "in.sam").out.decode("latin-1")
        self.assertRegex(text, r"\tCL:samtools rocksort -O sam in\.sam\n")


class Files(MessagesTest):
    """Files that do not exist, are damaged, or cannot be written."""

    def setUp(self):
        super().setUp()
        self.refs = [("a", 100000), ("b", 50000)]
        self.write("in.bam", self.bam([]))

    def bam(self, others, refs=None):
        """A BAM of 2,000 good records, with others after the tenth."""
        refs = refs or self.refs
        rng = random.Random(5)
        good = [bamfile.record(f"r{i}", 0, 0, rng.randrange(40000), "30M",
                               "".join(rng.choices("ACGT", k=30))) for i in range(2000)]
        return bamfile.bgzf(bamfile.bam_header(bamfile.sq_text(refs), refs)
                            + b"".join(good[:10] + others + good[10:]))

    def test_message_names_the_input(self):
        whole = self.bam([])
        self.write("empty.bam", b"")
        self.write("diary.txt", "Dear diary,\n" * 50)
        self.write("bytes.bin", bytes(100) + whole)
        self.write("reads.fq", "@r\nACGT\n+\nFFFF\n")
        self.write("cut.bam", whole[: len(whole) // 2])
        self.write("flipped.bam", whole[:5000] + bytes([whole[5000] ^ 255]) + whole[5001:])
        lie = bytearray(bamfile.record("liar", 0, 0, 5, "4M", "ACGT"))
        lie[4] = 77
        self.write("lie.bam", self.bam([bytes(lie)]))
        sam = generate.odd(3)
        self.write("bad.sam", sam + "r\tx\tchr10\t5\t9\t*\t*\t0\t0\t*\t*\n")
        self.write("other.bam", self.bam([], [("a", 100000), ("c", 50000)]))
        self.write("fewer.bam", self.bam([], [("a", 100000)]))
        self.write("mates.sam", "@SQ\tSN:a\tLN:900\nq\t99\ta\t5\t9\t4M\t=\t50\t0\tACGT\t*\n")
        for args, *mentions in (
                (["absent.bam"], "cannot open 'absent.bam'", "No such file"),
                (["empty.bam"], "failed to read header", "'empty.bam'"),
                (["diary.txt"], "'diary.txt'", "not an alignment file"),
                (["bytes.bin"], "'bytes.bin'", "not an alignment file"),
                (["cut.bam"], "'cut.bam'", "truncated"),
                (["flipped.bam"], "'flipped.bam'", "damaged"),
                (["lie.bam"], "record 11 of 'lie.bam' is damaged", "its reference"),
                (["bad.sam"], "record 4 of 'bad.sam' is damaged", "FLAG is not valid",
                 "line 9: 'r"),
                (["-o", "x.bam", "in.bam", "other.bam"], "'in.bam'", "'other.bam'", "@SQ"),
                (["-o", "x.bam", "in.bam", "fewer.bam"], "'in.bam'", "'fewer.bam'", "@SQ"),
                (["--template-coordinate", "mates.sam"], "record 1 of 'mates.sam' (read 'q')",
                 "'samtools fixmate -m'"),
                (["-M", "-I", "absent.fa", "in.bam"], "'absent.fa'", "No such file"),
                (["-M", "-I", "diary.txt", "in.bam"], "'diary.txt'", "not a FASTA file"),
                *((["-I", name, "in.bam"], name) for name in ("empty.bam", "bad.sam", "bytes.bin",
                                                              "reads.fq")),
                (["-I", ".", "in.bam"], "'.'"),
                (["-O", "cram", "--reference", "absent.fa", "in.bam"], "'absent.fa'", "No such")):
            self.says(*mentions, args=args)

    def test_one_line_for_an_input_that_cannot_be_opened(self):
        (self.work / "folder").mkdir()
        for words, mention in ((["absent.bam"], "No such file"), (["folder"], "directory"),
                               (["-o", "x.bam", "in.bam", "absent.bam"], "No such file"),
                               (["--verify", "absent.bam"], "No such file"),
                               (["absent/in.bam"], "No such file"),
                               (["in.bam/x"], "Not a directory")):
            result = self.rocksort(*words)
            self.assertEqual((result.status, len(result.err.splitlines())), (1, 1), result.err)
            self.assertIn(mention, result.err)
            self.assertIn(f"'{words[-1]}'", result.err)

    def test_reference_that_is_no_fasta_is_named(self):
        self.write("diary.txt", "Dear diary,\n" * 50)
        self.write("good.fa", ">a\n" + "ACGT" * 25000 + "\n>b\n" + "ACGT" * 12500 + "\n")
        with open(self.path("zipped.fa.gz"), "wb") as file:
            file.write(gzip.compress(b">a\nACGT\n"))
        self.sort_ok("--reference", "good.fa", "-o", "in.cram", "in.bam")
        for words in (["-O", "cram"], ["-O", "cram,no_ref=1"]):
            self.says("'diary.txt' is not a FASTA file",
                      args=[*words, "--reference", "diary.txt", "in.bam"])
        self.says("'diary.txt' is not a FASTA file", args=["--reference", "diary.txt", "in.cram"])
        self.says("'zipped.fa.gz'", "bgzip", args=["-O", "cram", "--reference", "zipped.fa.gz",
                                                   "in.bam"])
        self.says("'.'", "directory", args=["-O", "cram", "--reference", ".", "in.bam"])
        self.sort_ok("--reference", "diary.txt", "-o", "x.bam", "in.bam")       # not needed

    def test_long_references_are_named_with_advice(self):
        refs = [("long", 3_000_000_000)]
        self.write("long.sam", bamfile.sq_text(refs) + "r\t0\tlong\t5\t9\t*\t*\t0\t0\t*\t*\n")
        self.says("'long'", "-O sam", args=["-o", "x.bam", "long.sam"])
        self.write("wide.sam", bamfile.sq_text([("wide", 1 << 30)]))
        self.says("'wide'", "FILE.csi",
                  args=["--write-index", "-o", "x.bam##idx##x.bam.bai", "wide.sam"])

    def test_message_names_the_output(self):
        (self.work / "folder").mkdir()
        for args, *mentions in (
                (["-o", "nowhere/x.bam", "in.bam"], "cannot create 'nowhere/x.bam'", "No such"),
                (["-o", "in.bam/x", "in.bam"], "cannot create 'in.bam/x'", "Not a directory"),
                (["-o", "folder", "in.bam"], "cannot create 'folder'", "directory"),
                (["-o", "/dev/full", "in.bam"], "cannot write '/dev/full'", "No space left"),
                (["--report", "nowhere/x", "-o", "x.bam", "in.bam"], "'nowhere/x'", "No such"),
                (["--clean", "nowhere"], "'nowhere'", "cannot find"),
                (["--clean", "nowhere/x"], "'nowhere'", "No such")):
            self.says(*mentions, args=args)
        self.says("'nowhere/t/", "No such", "choose another place with -T",
                  args=["-T", "nowhere/t/", "in.bam"])


class Verbosity(CliTest):
    """Which messages of ours and of htslib each level of --verbosity shows."""

    def test_each_level_shows_its_messages(self):
        self.write("odd.sam", bamfile.sq_text([("a", 1000)])
                   + "q\t0\telsewhere\t5\t9\t4M\t*\t0\t0\tACGT\t*\n")
        for level in range(6):
            with self.subTest(level=level):
                result = self.sort_ok("--verbosity", str(level), "--output-fmt-option",
                                      "nthreads=2", "-o", "out.bam", "odd.sam")
                shown = [mark in result.err for mark in
                         (": warning: ", ": sorted 1 records", "[W::", "reader waited")]
                self.assertEqual(shown, [True, level >= 2, level >= 3, level >= 4], result.err)
        quiet = self.sort_ok("--quiet", "--verbosity", "5", "--output-fmt-option", "nthreads=2",
                             "-o", "out.bam", "odd.sam")
        self.assertEqual(quiet.err, "")


class Checkpoints(MessagesTest):
    """What cannot be resumed: the message says why, and what to do instead."""

    def setUp(self):
        super().setUp()
        where = self.work / "t"
        where.mkdir()
        self.write("in.bam", bamfile.bgzf(generate_bam()))
        self.rocksort("-T", "t/", "-o", "/dev/full", "in.bam", budget=SPILL_BUDGET, clean=False)
        (name,) = os.listdir(where)
        self.checkpoint = f"t/{name}"

    def refused(self, *mentions, options=()):
        """--resume is refused, and the checkpoint does not change."""
        before = sorted(os.listdir(self.work / self.checkpoint))
        result = self.rocksort("--resume", self.checkpoint, "-o", "out.bam", *options, clean=False)
        self.told(result, f"cannot resume '{self.checkpoint}'", *mentions)
        self.assertEqual(sorted(os.listdir(self.work / self.checkpoint)), before)

    def test_directory_that_is_no_checkpoint_is_named(self):
        (self.work / "empty").mkdir(mode=0o700)
        (self.work / "open").mkdir(mode=0o755)
        for name, *mentions in (("nowhere", "does not exist", "--clean"),
                                ("empty", "not a checkpoint", "--clean"),
                                ("in.bam", "not a directory"), ("open", "wrong owner or mode")):
            with self.subTest(name=name):
                result = self.rocksort("--resume", name)
                self.told(result, f"cannot resume '{name}': it ", *mentions)

    def test_resume_in_another_order_is_refused(self):
        self.refused("with -n: its runs were made without", "leave it out", options=["-n"])

    def test_damaged_state_file_is_named(self):
        path = self.work / self.checkpoint / "STORE"
        good = path.read_bytes()
        for data, *mentions in (
                (good[:-1], "damaged STORE file", "sort the input again"),
                (b"hello\n", "STORE file", "sort the input again"),
                (good.replace(b"rocksort-store ", b"rocksort-store 9"), "another version",
                 "resume it with that")):
            with self.subTest(mentions=mentions):
                path.write_bytes(data)
                self.refused(*mentions)
        path.unlink()
        self.refused("no STORE file", "--no-resume", "sort the input again")

    def test_damaged_data_are_named(self):
        for path in (self.work / self.checkpoint).rglob("*.sst"):
            data = bytearray(path.read_bytes())
            for place in range(len(data) // 4, len(data) // 2, 1000):
                data[place] ^= 255
            path.write_bytes(bytes(data))
        result = self.rocksort("--resume", self.checkpoint, "-o", "out.bam", clean=False)
        self.told(result, "the temporary data in '", self.checkpoint, "are damaged: ", "checksum",
                  "sort again on another disk")


def generate_bam():
    """The bytes of a BAM that is large enough to be spilled."""
    refs = [("a", 100000)]
    rng = random.Random(6)
    return bamfile.bam_header(bamfile.sq_text(refs), refs) + b"".join(
        bamfile.record(f"r{i}", 0, 0, rng.randrange(90000), "150M",
                       "".join(rng.choices("ACGT", k=150))) for i in range(9000))
