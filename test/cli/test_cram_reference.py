"""The reference of a CRAM output (--reference) that differs from the header: what can be written is
written rightly, and what cannot is said, at the start if that is possible.
"""

import hashlib
import os
import unittest

import bamfile
from harness import CliTest, needs_pysam, reference

UNIT = "ACGT"
N_BASES = 2000
HEADER = "@HD\tVN:1.6\tSO:unsorted\n"
MD5 = hashlib.md5(UNIT.encode() * (N_BASES // 4)).hexdigest()


def fasta(**lengths):
    """FASTA with sequences of these lengths."""
    return "".join(f">{name}\n{UNIT * (n // 4)}\n" for name, n in lengths.items())


def sq_lines(names, more=""):
    return "".join(f"@SQ\tSN:{name}\tLN:{N_BASES}{more}\n" for name in names)


def reads(name, first=1, last=N_BASES - 8, step=4):
    """Reads that are like the reference, with their positions from the last to the first."""
    return "".join(f"{name}{pos}\t0\t{name}\t{pos}\t9\t8M\t*\t0\t0\t{UNIT * 2}\t*\n"
                   for pos in range(first + (last - first) // step * step, first - 1, -step))


class Reference(CliTest):
    """The header has the references c and e."""

    CRAM = "cram,seqs_per_slice=50"

    def write_input(self, records, more=""):
        return self.write("in.sam", HEADER + sq_lines("ce", more) + records)

    def write_fasta(self, **lengths):
        return self.write("ref.fa", fasta(**lengths))

    def sort(self, source, fa, options="", *words):
        return self.rocksort("--no-PG", "-@", "2", "-O", self.CRAM + options, "--reference", fa, *words,
                             "-o", self.path("out.cram"), source)

    def check_right(self, result, source, fa):
        """The CRAM has the records of the input, for a reader with the same reference."""
        self.assertEqual(result.status, 0, result.err[-2000:])
        out = self.path("back.bam")
        self.assertTrue(reference("view", "--no-PG", "-b", "--reference", fa, "-o", out,
                                  self.path("out.cram")))
        want = self.sort_bam("--no-PG", source).records
        # The encoder adds tags MD and NM, which reading makes anew.
        got = [record[:len(wanted)] for record, wanted in
               zip(bamfile.split(bamfile.read(out).records), bamfile.split(want))]
        self.assertEqual([record[4:] for record in got],
                         [record[4:] for record in bamfile.split(want)])

    @needs_pysam
    def test_sequence_is_lacking(self):
        """htslib 1.16 aborted: it had loaded c before it found that e is lacking."""
        fa = self.write_fasta(c=N_BASES)
        for records in (reads("c") + reads("e"), reads("c")):
            source = self.write_input(records)
            for options in ("", ",no_ref=1", ",embed_ref=2"):
                with self.subTest(options=options):
                    result = self.sort(source, fa, options)
                    self.check_right(result, source, fa)
                    self.assertEqual("lacks the sequence 'e'" in result.err, options == "",
                                     result.err)

    def test_lacking_and_wanted(self):
        """With embed_ref=1 or 0 htslib needs all sequences for the header. The input is damaged
        further on: the reference is looked at before."""
        fa = self.write_fasta(c=N_BASES)
        source = self.write_input(reads("c") + "damaged\n")
        for options in (",embed_ref=0", ",embed_ref=1"):
            result = self.sort(source, fa, options)
            self.assert_error(result, "ref.fa", "'e'", options[1:])
            self.assert_no_result(self.path("out.cram"))

    @needs_pysam
    def test_lacking_with_m5(self):
        """A sequence whose checksum is in the header need not be there if no read lies there."""
        fa = self.write_fasta(c=N_BASES)
        source = self.write_input(reads("c"), "\tM5:" + MD5)
        for options in ("", ",embed_ref=1", ",embed_ref=0"):
            with self.subTest(options=options):
                self.check_right(self.sort(source, fa, options), source, fa)

    @needs_pysam
    def test_longer(self):
        fa = self.write_fasta(c=N_BASES + 400, e=N_BASES)
        source = self.write_input(reads("c") + reads("e"))
        for options in ("", ",no_ref=1", ",embed_ref=1", ",embed_ref=2"):
            with self.subTest(options=options):
                result = self.sort(source, fa, options)
                self.check_right(result, source, fa)
                self.assertEqual(f"has {N_BASES + 400} bases of 'c'" in result.err,
                                 options != ",no_ref=1", result.err)

    @needs_pysam
    def test_shorter(self):
        """Reads beyond the end made a CRAM that nobody can read, or with N for their bases."""
        fa = self.write_fasta(c=N_BASES, e=N_BASES // 2)
        short = self.write_input(reads("c") + reads("e", last=N_BASES // 2 - 8))
        for options in ("", ",embed_ref=1", ",embed_ref=2"):
            result = self.sort(short, fa, options)
            with self.subTest(options=options):
                self.check_right(result, short, fa)
                self.assertIn("reads beyond the end cannot be written", result.err)
        first = N_BASES // 2 + 1
        beyond = self.write_input(reads("c") + reads("e", first=first))
        os.unlink(self.path("out.cram"))
        for options in ("", ",embed_ref=1", ",embed_ref=2"):
            with self.subTest(options=options):
                result = self.sort(beyond, fa, options)
                self.assert_error(result, f"'e{first}'", "ref.fa", "ends before it", "-O bam")
                self.assert_no_result(self.path("out.cram"))
        self.check_right(self.sort(beyond, fa, ",no_ref=1"), beyond, fa)

    def test_no_index(self):
        """The index of the FASTA file cannot be made: that is said before the input is read."""
        fa = self.write_fasta(c=N_BASES, e=N_BASES)
        os.mkdir(fa + ".fai")
        source = self.write_input(reads("c") + "damaged\n")
        self.assert_error(self.sort(source, fa), "htslib", "ref.fa.fai")

    @needs_pysam
    def test_name_of_the_index(self):
        """samtools takes the index of the reference for the reference."""
        fa = self.write_fasta(c=N_BASES, e=N_BASES)
        source = self.write_input(reads("c"))
        self.check_right(self.sort(source, fa), source, fa)
        self.check_right(self.sort(source, fa + ".fai"), source, fa)
        self.assert_error(self.sort(source, fa + ".none.fai"), "ref.fa.none'", "No such file")

    @needs_pysam
    def test_found_or_not_is_not_known(self):
        """The header has M5 tags, and no --reference is given. Where a sequence was not found, htslib
        1.16 wrote '=' or the bases of another read, depending on which thread came first."""
        source = self.write_input(reads("c") + reads("e"), "\tM5:" + MD5)
        fa = self.write_fasta(c=N_BASES, e=N_BASES)
        for options in ("", ",embed_ref=2", ",embed_ref=1", ",embed_ref=1,multi_seq_per_slice=1",
                        ",no_ref=1"):
            for threads in ("1", "3"):
                result = self.rocksort("--no-PG", "-@", threads, "-O", self.CRAM + options, "-o",
                                       self.path("out.cram"), source)
                with self.subTest(options=options, threads=threads):
                    self.check_right(result, source, fa)
                    self.assertEqual("will not be found" in result.err,
                                     options not in (",embed_ref=2", ",no_ref=1"), result.err)

    @needs_pysam
    def test_found_elsewhere(self):
        """By the file that UR names, or by M5 where a REF_CACHE is named. If it is not there after
        all, the sort ends with an error; htslib would change its mind halfway."""
        fa = self.write_fasta(c=N_BASES, e=N_BASES)
        part = self.write("part.fa", fasta(c=N_BASES))
        self.sort(self.write_input(reads("c")), fa)     # makes ref.fa.fai
        source = self.write_input(reads("c") + reads("e"), f"\tUR:file:{fa}")
        result = self.sort(source, part)
        self.check_right(result, source, fa)
        self.assertNotIn("lacks", result.err)
        os.unlink(self.path("out.cram"))
        source = self.write_input(reads("c") + reads("e"), "\tM5:" + MD5)
        result = self.rocksort("-O", self.CRAM, "--reference", part, "-o", self.path("out.cram"),
                               source, env={"REF_CACHE": str(self.work) + "/%s"})
        if result.status:
            self.assert_error(result, "cannot encode", "-O bam")
        else:                           # htslib 1.17 and later
            self.check_right(result, source, fa)


if __name__ == "__main__":
    unittest.main()
