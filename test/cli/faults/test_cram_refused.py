"""Records that CRAM cannot hold, and failures of htslib's CRAM encoder: the sort ends, with one error
and without any output, wherever the record stands.

htslib encodes in other threads and later. Once a sort hung for ever after such a failure.
"""

import os
import struct

import bamfile
from harness import CliTest, ends_at_once

N_RECORDS = 2500
HEADER = "@HD\tVN:1.6\tSO:unsorted\n@SQ\tSN:c\tLN:100000\n"
CRAM_END = bytes.fromhex("0f000000ffffffff0fe0454f4600")     # begins the marker of CRAM 3


def record(number, **fields):
    """A mapped record; the numbers are in the order of positions."""
    fields = {"flag": 0, "tid": 0, "pos": 10 + number, "cigar": "4M", "seq": "ACGT", **fields}
    return bamfile.record(f"r{number}", **fields)


def with_operation(number, code):
    """A record whose CIGAR has this operation in place of P."""
    raw = record(number, cigar="4M1P")
    return raw.replace(struct.pack("<II", 4 << 4, 1 << 4 | 6), struct.pack("<II", 4 << 4, 1 << 4 | code))


class Refused(CliTest):
    """Each way to write is tried with the bad record at the beginning, in the middle, at the end."""

    # Small slices, so that the encoder is busy, and fails, long before the end.
    CRAM = ["-O", "cram,no_ref=1,seqs_per_slice=100"]

    def bam(self, bad, at):
        """A BAM of N_RECORDS records with bad(number) at one place."""
        records = [bad(i) if i == at else record(i) for i in range(N_RECORDS)]
        records = records[::2] + records[1::2]
        return self.write("in.bam", bamfile.bgzf(
            bamfile.bam_header(HEADER, [("c", 100000)]) + b"".join(records)))

    def check(self, source, *options, mentions=(), env=None):
        """In memory and spilled, with one thread and four, to a file and to standard output."""
        for budget, threads in ((None, "1"), (None, "4"), (300_000, "4")):
            words = ["-@", threads, *self.CRAM, *options]
            with self.subTest(options=options, budget=budget, threads=threads):
                before = sorted(os.listdir(self.work))
                result = self.rocksort(*words, "-o", self.path("out.cram"), source, budget=budget,
                                       env=env)
                self.assert_error(result, *mentions)
                self.assertEqual(sorted(os.listdir(self.work)), before)
                result = self.rocksort(*words, source, budget=budget, env=env)
                self.assert_error(result, *mentions)
                self.assertNotIn(CRAM_END, result.out)

    def test_message_names_the_read_and_what_to_do(self):
        half, last = N_RECORDS // 2, N_RECORDS - 1
        for words, at, make in (
                ("operation B", 0, lambda i: with_operation(i, 9)),
                ("unknown operation", half, lambda i: with_operation(i, 11)),
                ("tags are damaged", last, lambda i: record(i, aux=b"XXy\0\0\0\0")),
                # htslib 1.16 took what comes after the record in memory for the rest of the tag.
                ("tags are damaged", 7, lambda i: record(i, aux=b"XXZabc")),
                ("no CIGAR", half, lambda i: record(i, cigar="")),
                ("above 127", 0, lambda i: record(i, aux=b"X\xffc\0"))):
            self.check(self.bam(make, at), mentions=[f"'r{at}'", words, "-O bam"])

    def test_each_odd_operation_is_refused(self):
        for code in (9, 10, 11, 15):
            source = self.write("in.bam", bamfile.bgzf(
                bamfile.bam_header(HEADER, [("c", 100000)]) + with_operation(3, code)))
            result = self.rocksort("-O", "cram,no_ref=1", "-o", self.path("o.cram"), source)
            self.assert_error(result, "'r3'", "operation")
            # An unmapped read's CIGAR is not in a CRAM.
            raw = bytearray(with_operation(3, code))
            raw[18] |= 4
            source = self.write("in.bam", bamfile.bgzf(
                bamfile.bam_header(HEADER, [("c", 100000)]) + bytes(raw)))
            self.sort_ok("-O", "cram,no_ref=1", "-o", self.path("o.cram"), source)

    def test_failure_that_only_the_encoder_finds_is_an_error(self):
        """htslib compares a read with the reference, finds no difference, and then finds an NM tag
        that is no number. The message says where htslib's words are, if the user can see them."""
        fasta = self.write("ref.fa", ">c\n" + "ACGT" * 25000 + "\n")
        for at in (0, N_RECORDS // 2, N_RECORDS - 1):
            at = at // 4 * 4 + 2        # position 10 + at: the bases of the reference are ACGT
            source = self.bam(lambda i: record(i, aux=b"NMZabc\0"), at)
            self.CRAM = ["-O", "cram,seqs_per_slice=100", "--reference", fasta]
            self.sort_ok("--quiet", *self.CRAM[:2], "--reference", fasta, "-o", self.path("warm"),
                         self.write("good.sam", HEADER + "r\t0\tc\t1\t9\t4M\t*\t0\t0\tACGT\t*\n"))
            self.check(source, mentions=["cannot encode", "its words are above", "NM:Z in read 'r",
                                         "no_ref=1", "-O bam"], env=ends_at_once())
        self.check(source, "--verbosity", "0", env=ends_at_once(),
                   mentions=["cannot encode", "--verbosity 1 shows its words", "-O bam"])

    def test_tag_nm_that_is_no_number_is_named(self):
        """The message names the read, if there is one; mapped reads alone are suspected. What differs
        from the reference is written, as samtools does."""
        fasta = self.write("ref.fa", ">c\n" + "ACGT" * 100 + "\n")
        words = ["-O", "cram", "--reference", fasta, "-o", self.path("out.cram")]
        lines = [f"u{tag}\t4\tc\t9\t0\t*\t*\t0\t0\tACGT\t*\tNM:Z:1\n"
                 f"{tag}\t0\tc\t{{}}\t9\t4M\t*\t0\t0\tACGT\t*\tNM:{tag}\n"
                 for tag in ("Z:1", "Z:x", "H:00", "B:c,1")]
        for line in lines:
            tag = line.split("\t")[0][1:]
            source = self.write("in.sam", HEADER.replace("100000", "400") + line.format(5))
            result = self.rocksort(*words, source, env=ends_at_once())
            self.assert_error(result, f"because of NM:{tag[0]} in read '{tag}'",
                              "give --output-fmt-option no_ref=1,")
            self.sort_ok(*words, self.write("in.sam", HEADER + line.format(6)))
            self.sort_ok("--output-fmt-option", "no_ref=1", *words, source)

    def test_failure_while_groups_are_open_blames_the_right_one(self):
        """htslib does not say whose container it could not encode: no other group is blamed."""
        fasta = self.write("ref.fa", ">c\n" + "ACGT" * 25000 + "\n")
        bed = self.write("x.bed", "c\t0\t2110\ta\nc\t2110\t2210\tb\nc\t2210\t90000\ta\n")
        options = ["-O", "cram,seqs_per_slice=100", "--reference", fasta, "--split-by", bed, "-o",
                   self.path("%.cram")]
        self.sort_ok("--quiet", "-O", "cram", "--reference", fasta, "-o", self.path("warm"),
                     self.write("good.sam", HEADER + "r\t0\tc\t1\t9\t4M\t*\t0\t0\tACGT\t*\n"))
        for at in (1902, 1990, 1998, 2014, 2050, 2090):
            source = self.bam(lambda i: record(i, aux=b"NMZabc\0"), at)
            for threads in ("1", "2", "4"):
                before = sorted(os.listdir(self.work))
                result = self.rocksort("-@", threads, *options, source, env=ends_at_once())
                self.assert_error(result, "cannot encode")
                self.assertRegex(result.err, r"/a\.cram'|encode it as CRAM, or another output")
                self.assertEqual(sorted(os.listdir(self.work)), before)

    def test_embedding_without_a_reference_is_refused(self):
        self.CRAM = ["-O", "cram,embed_ref=1,seqs_per_slice=100"]
        self.check(self.bam(record, 0), mentions=["cannot encode", "--reference"])
