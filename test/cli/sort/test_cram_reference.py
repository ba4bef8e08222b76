"""The reference of a CRAM output (--reference) that differs from the header: what can be written is
written rightly, and what cannot is said, at the start if that is possible.
"""

import hashlib
import os
import re

import bamfile
from harness import CliTest, needs_pysam, reference

UNIT = "ACGT"
N_BASES = 2000
HEADER = "@HD\tVN:1.6\tSO:unsorted\n"
MD5 = hashlib.md5(UNIT.encode() * (N_BASES // 4)).hexdigest()


def sam(records, **lengths):
    """SAM with sequences of these lengths. records: (name, flag, sequence, position, bases)."""
    return HEADER + "".join(f"@SQ\tSN:{name}\tLN:{n}\n" for name, n in lengths.items()) + "".join(
        f"{name}\t{flag}\t{ref}\t{pos}\t0\t{'*' if flag & 4 else f'{len(bases)}M'}\t*\t0\t0\t"
        f"{bases}\t*\n" for name, flag, ref, pos, bases in records)


def fasta(**lengths):
    """FASTA with sequences of these lengths."""
    return "".join(f">{name}\n{UNIT * (n // 4)}\n" for name, n in lengths.items())


def sq_lines(names, more=""):
    return "".join(f"@SQ\tSN:{name}\tLN:{N_BASES}{more}\n" for name in names)


def reads(name, first=1, last=N_BASES - 8, step=4):
    """Reads that are like the reference, with their positions from the last to the first."""
    return "".join(f"{name}{pos}\t0\t{name}\t{pos}\t9\t8M\t*\t0\t0\t{UNIT * 2}\t*\n"
                   for pos in range(first + (last - first) // step * step, first - 1, -step))


class CramTest(CliTest):

    def setUp(self):
        """embeds: the library embeds references made of reads; else it is told no_ref=1."""
        super().setUp()
        version = re.search(rb"htslib (\d+)\.(\d+)", self.sort_ok("--version").out)
        self.embeds = tuple(map(int, version.groups())) >= (1, 21)


class Reference(CramTest):
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
    def test_reference_that_lacks_a_sequence_is_used_for_the_others(self):
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

    def test_sequence_that_must_be_embedded_is_looked_for_first(self):
        """With embed_ref=1 or 0 htslib needs all sequences for the header. The input is damaged
        further on: the reference is looked at before."""
        fa = self.write_fasta(c=N_BASES)
        source = self.write_input(reads("c") + "damaged\n")
        for options in (",embed_ref=0", ",embed_ref=1"):
            result = self.sort(source, fa, options)
            self.assert_error(result, "ref.fa", "'e'", options[1:])
            self.assert_no_result(self.path("out.cram"))

    @needs_pysam
    def test_sequence_with_m5_may_be_missing_if_no_read_lies_there(self):
        fa = self.write_fasta(c=N_BASES)
        source = self.write_input(reads("c"), "\tM5:" + MD5)
        for options in ("", ",embed_ref=1", ",embed_ref=0"):
            with self.subTest(options=options):
                self.check_right(self.sort(source, fa, options), source, fa)

    @needs_pysam
    def test_longer_sequence_gives_a_right_file_and_a_warning(self):
        fa = self.write_fasta(c=N_BASES + 400, e=N_BASES)
        source = self.write_input(reads("c") + reads("e"))
        for options in ("", ",no_ref=1", ",embed_ref=1", ",embed_ref=2"):
            with self.subTest(options=options):
                result = self.sort(source, fa, options)
                self.check_right(result, source, fa)
                self.assertEqual(f"has {N_BASES + 400} bases of 'c'" in result.err,
                                 options != ",no_ref=1", result.err)

    @needs_pysam
    def test_reads_beyond_a_shorter_sequence_are_refused(self):
        """Reads beyond the end made a CRAM that nobody can read, or with N for their bases."""
        fa = self.write_fasta(c=N_BASES, e=N_BASES // 2)
        short = self.write_input(reads("c") + reads("e", last=N_BASES // 2 - 8))
        uses_file = ("", ",embed_ref=1") + ((",embed_ref=2",) if self.embeds else ())
        for options in uses_file:
            result = self.sort(short, fa, options)
            with self.subTest(options=options):
                self.check_right(result, short, fa)
                self.assertIn("reads beyond the end cannot be written", result.err)
        first = N_BASES // 2 + 1
        beyond = self.write_input(reads("c") + reads("e", first=first))
        os.unlink(self.path("out.cram"))
        for options in uses_file:
            with self.subTest(options=options):
                result = self.sort(beyond, fa, options)
                self.assert_error(result, f"'e{first}'", "ref.fa", "ends before it", "-O bam")
                self.assert_no_result(self.path("out.cram"))
        for options in {",no_ref=1", ",embed_ref=2"} - set(uses_file):
            self.check_right(self.sort(beyond, fa, options), beyond, fa)

    @needs_pysam
    def test_file_with_longer_sequences_than_the_header_is_refused(self):
        fa = self.write_fasta(c=N_BASES, e=N_BASES)
        source = self.write_input(reads("c", last=N_BASES + 40))
        for options in ("", ",embed_ref=1"):
            self.assert_error(self.sort(source, fa, options), "'c2001'", "ends before it", "-O bam")
        self.check_right(self.sort(source, fa, ",no_ref=1"), source, fa)

    def test_missing_index_of_the_reference_is_named_before_the_input_is_read(self):
        fa = self.write_fasta(c=N_BASES, e=N_BASES)
        os.mkdir(fa + ".fai")
        source = self.write_input(reads("c") + "damaged\n")
        self.assert_error(self.sort(source, fa), "htslib", "ref.fa.fai")

    @needs_pysam
    def test_index_of_the_reference_may_be_named(self):
        fa = self.write_fasta(c=N_BASES, e=N_BASES)
        source = self.write_input(reads("c"))
        self.check_right(self.sort(source, fa), source, fa)
        self.check_right(self.sort(source, fa + ".fai"), source, fa)
        self.assert_error(self.sort(source, fa + ".none.fai"), "ref.fa.none'", "No such file")

    @needs_pysam
    def test_cram_is_right_where_a_sequence_may_be_found_or_not(self):
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
                    self.assertEqual("will not be found" in result.err, not self.embeds and
                                     options not in (",embed_ref=2", ",no_ref=1"), result.err)

    @needs_pysam
    def test_sequence_is_found_where_header_and_environment_say(self):
        """By the file that UR names, or by M5 in a store. Where it is not there after all, htslib
        1.16 ended with an error when it came to the first such read."""
        fa = self.write_fasta(c=N_BASES, e=N_BASES)
        part = self.write("part.fa", fasta(c=N_BASES))
        os.makedirs(self.path(f"store/{MD5[:2]}"))
        self.write(os.path.join("store", MD5[:2], MD5[2:]), UNIT * (N_BASES // 4))
        store, empty = self.path("store/%2s/%s"), self.path("empty/%2s/%s")
        os.makedirs(self.path("home/.cache/hts-ref"))
        home = {"REF_PATH": "", "REF_CACHE": "", "XDG_CACHE_HOME": "", "HOME": self.path("home")}
        places = [(f"UR:file:{fa}", {}, True), (f"UR:{fa}", {}, True), (f"UR:{part}", {}, False),
                  (f"UR:{fa}.none", {}, False),
                  (f"M5:{MD5}", {"REF_CACHE": store}, True),
                  (f"M5:{MD5}", {"REF_CACHE": empty}, False),
                  (f"M5:{MD5}", {"REF_CACHE": "", "REF_PATH": f"{empty}:{store}"}, True),
                  (f"M5:{MD5}", {"REF_CACHE": "", "REF_PATH": empty}, False),
                  (f"M5:{MD5}\tUR:{fa}", {"REF_CACHE": store}, True),
                  (f"M5:{MD5}\tUR:{fa}", {"REF_CACHE": empty}, False),
                  (f"M5:{MD5}", home, False)]
        if self.embeds:         # htslib 1.24 crashes there, in samtools, too
            places.remove((f"UR:{part}", {}, False))
            places.remove((f"M5:{MD5}\tUR:{fa}", {"REF_CACHE": empty}, False))     # not tried
        for tag, env, found in places:
            source = self.write_input(reads("c") + reads("e"), "\t" + tag)
            result = self.rocksort("--no-PG", "-@", "2", "-O", self.CRAM, "--reference", part, "-o",
                                   self.path("out.cram"), source, env=env)
            with self.subTest(tag=tag, env=env):
                self.check_right(result, source, fa)
                self.assertEqual("lacks the sequence 'e': the CRAM is written without" in result.err,
                                 not found and not self.embeds, result.err)


class NoReference(CramTest):
    """No --reference. Up to 1.18 htslib embeds a reference made of the reads with faults; 1.16 is
    told to use none."""

    UNPLACED = ("a", 4, "*", 0, "*")
    CASES = {
        "SIGSEGV: an unplaced record without bases is the last of its slice":
            sam([("b", 0, "c", 20, "ACGT"), UNPLACED, ("b", 16, "e", 20, "ACGT")], c=1000, e=1000),
        "only unplaced records without bases": sam([UNPLACED], c=1000),
        "Failed to build reference: not in the order of positions":
            sam([("a", 0, "c", 50, "ACGT"), ("b", 0, "c", 20, "ACGA"), ("c", 0, "e", 3, "NNNN")],
                c=1000, e=1000),
        "out of memory: far apart":
            sam([("a", 0, "c", 1, "ACGT"), ("b", 0, "c", 2147483000, "ACGT")], c=2147483647),
    }

    def check_cram(self, source, options, words, out):
        want = self.sort_bam("--no-PG", *words, source).records
        with self.subTest(options=options, words=words):
            result = self.rocksort("--no-PG", *words, "-O", "cram" + options, "-o", out, source)
            self.assertEqual(result.status, 0, result.err)
            self.assertEqual(result.err.count("warning: "), "no_ref=1" not in options and
                             (not self.embeds or not options), result.err)
            self.assertTrue(reference("view", "--no-PG", "-b", "-o", self.path("back.bam"), out))
            got = bamfile.read(self.path("back.bam")).records
            # With a reference, htslib adds MD and NM when it reads.
            self.assertEqual([record[4:][:len(wanted) - 4] for record, wanted in
                              zip(bamfile.split(got), bamfile.split(want))],
                             [record[4:] for record in bamfile.split(want)])

    @needs_pysam
    def test_records_are_kept_without_a_reference_in_each_order(self):
        orders = ((), ("-n",), ("-N", "-@", "3"), ("--shuffle",), ("-t", "RG"))
        for number, (name, text) in enumerate(self.CASES.items()):
            source = self.write("in.sam", text)
            for i, options in enumerate(("", ",embed_ref=2", ",no_ref=1,embed_ref=2",
                                         ",no_ref=1,embed_ref=1",
                                         ",embed_ref=2,multi_seq_per_slice=1")):
                for words in orders if not options else {(), orders[(i + number) % 5]}:
                    with self.subTest(case=name):
                        self.check_cram(source, options, words, self.path(f"{number}.cram"))

    @needs_pysam
    def test_groups_and_second_output_need_no_reference(self):
        source = self.write("in.sam", next(iter(self.CASES.values())))
        result = self.sort_ok("--no-PG", "-O", "cram", "--split-by", "contig", "-o",
                              self.path("%.cram"), source)
        self.sort_ok("--no-PG", "--also", self.path("also.cram"), "-o", self.path("o.bam"), source)
        counts = {name: len(bamfile.split(self.sort_bam("--no-PG", self.path(name)).records))
                  for name in os.listdir(self.work) if name.endswith(".cram")}
        self.assertEqual(sorted(counts.values()), [1, 1, 1, 3], (counts, result.err))

    @needs_pysam
    def test_many_sequences_share_containers(self):
        """Each read had a container of its own, 340 bytes and 1 ms: 80,000 sequences took 10 s."""
        lengths = {f"k{i}": 1000 for i in range(3000)}
        source = self.write("in.sam", sam([(f"r{i}", 0, name, 5, "ACGT") for i, name in
                                           enumerate(lengths)], **lengths))
        out = self.path("out.cram")
        self.check_cram(source, "", (), out)
        self.assertEqual(os.path.getsize(out) < 200_000, not self.embeds)

    def test_embedding_what_is_not_there_is_refused(self):
        source = self.write("in.sam", sam([], c=1000) + "damaged\n")
        for option in ("embed_ref=1", "embed_ref=0"):
            result = self.rocksort("-O", "cram," + option, "-o", self.path("out.cram"), source)
            self.assert_error(result, "cannot encode", "out.cram", option, "'c'", "--reference")
