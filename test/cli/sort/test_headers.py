"""Headers: @HD names the sort order, each chain of @PG lines gets one more, all else stays."""

import bamfile
from harness import (SPILL_BUDGET, CliTest, needs_pysam, pg_lines, reference_sort, sam_split,
                     text_of, without_pg)

SQ = "@SQ\tSN:b\tLN:1000\n@SQ\tSN:a\tLN:2000\tM5:d41d8cd98f00b204e9800998ecf8427e\tSP:x y\n"
RECORDS = "r2\t0\ta\t5\t9\t4M\t*\t0\t0\tACGT\t*\nr1\t0\tb\t7\t9\t4M\t*\t0\t0\tACGT\t*\n"
ORDERS = ([], ["-n"], ["-N"])
TRACE = "@PG\tID:bwa\tPN:bwa\tVN:0.7\tCL:bwa mem\n"


class Headers(CliTest):
    def header(self, text, *options, **how):
        return self.sort_bam(*options, stdin=(text + RECORDS).encode(), **how).text

    def test_other_lines_stay(self):
        rest = SQ + "@RG\tID:g\tSM:s\tDS:a  b\n@CO\tfirst\n@CO\t\n@CO\tthird\twith tab\n"
        for options in ORDERS:
            got = without_pg(self.header("@HD\tVN:1.6\n" + rest, *options))
            self.assertEqual(got[1:], rest.splitlines())

    def test_pg_line_names_the_program(self):
        """PN:samtools with our VN would look like an ancient samtools."""
        line, = pg_lines(self.header(SQ, "-@", "2"))
        self.assertEqual((line["ID"], line["PN"]), ("samtools-rocksort", "samtools-rocksort"))
        self.assertEqual(line["VN"], self.rocksort("--version").out.decode().split()[2])
        self.assertNotIn("PP", line)
        self.assertIn("rocksort -@ 2", line["CL"])

    def test_each_chain_of_programs_gets_a_line(self):
        chains = (TRACE + "@PG\tID:dup\tPN:dup\tPP:bwa\n@PG\tID:other\tPN:other\n"
                  "@PG\tID:more\tPN:more\tPP:other\n")
        lines = pg_lines(self.header(SQ + chains))
        self.assertEqual(len(lines), 6)
        self.assertEqual({line["PP"] for line in lines[4:]}, {"dup", "more"})
        self.assertEqual(len({line["ID"] for line in lines}), 6)

    def test_pg_line_follows_our_earlier_one(self):
        """The input has our line of an earlier run: the new line has a new ID and its PP names the
        old line."""
        first = self.header(SQ)
        lines = pg_lines(self.header(first))
        self.assertEqual(len(lines), 2)
        self.assertEqual(lines[1]["PP"], lines[0]["ID"])

    def test_no_pg_adds_no_line(self):
        self.assertEqual(pg_lines(self.header(SQ, "--no-PG")), [])
        self.assertEqual(len(pg_lines(self.header(SQ + TRACE, "--no-PG"))), 1)
        self.assertEqual(pg_lines(self.header(SQ, "--no-PG", budget=SPILL_BUDGET)), [])

    def test_pg_line_has_the_classic_form_as_typed(self):
        self.sort_ok("-@", "2", "-m", "2M", "-s", "1G", "-", "out", stdin=(SQ + RECORDS).encode())
        line = pg_lines(bamfile.read(self.path("out.bam")).text)[0]["CL"]
        self.assertIn("rocksort -@ 2 -m 2M -s 1G - out", line)

    def test_pg_line_has_no_tabs_or_newlines_of_arguments(self):
        name = "in\tput\nx.sam"
        self.write(name, SQ + RECORDS)
        text = self.sort_bam(name).text
        self.assertEqual(len(text.splitlines()), 4)
        self.assertEqual(len(pg_lines(text)), 1)

    def test_header_is_the_same_in_memory_spilled_and_in_each_format(self):
        text = "@HD\tVN:1.6\tSO:unsorted\n" + SQ + TRACE
        want = self.header(text, "--no-PG", "-n")
        self.assertEqual(self.header(text, "--no-PG", "-n", budget=SPILL_BUDGET), want)
        data = (text + RECORDS).encode()
        sam = self.sort_ok("--no-PG", "-n", "-O", "sam", stdin=data).out.decode()
        self.assertEqual(sam_split(sam)[0], want)

    def test_header_alone_is_sorted(self):
        for options in ORDERS:
            got = self.sort_bam(*options, stdin=SQ.encode())
            self.assertEqual((got.refs, got.records), ([("b", 1000), ("a", 2000)], b""))
        raw = bamfile.bgzf(bamfile.bam_header(SQ, [("b", 1000), ("a", 2000)]))
        self.assertEqual(self.sort_bam(stdin=raw, budget=SPILL_BUDGET).records, b"")
        sam = self.sort_ok("-O", "sam", "--no-PG", stdin=raw).out.decode()
        self.assertEqual(sam_split(sam)[1], [])
        self.assertIn("SO:coordinate", sam)

    def test_header_may_be_larger_than_the_memory(self):
        comments = "".join(f"@CO\tline {i} {'x' * 90}\n" for i in range(6000))
        for budget in (None, SPILL_BUDGET):
            got = self.header(SQ + comments, "--no-PG", budget=budget)
            self.assertEqual(got, "@HD\tVN:1.6\tSO:coordinate\n" + SQ + comments)


@needs_pysam
class Comments(CliTest):
    def test_empty_comments_stay(self):
        """A comment line with nothing in it, not even a tab, stays. htslib 1.16 drops it."""
        head = "@HD\tVN:1.6\n@CO\n@SQ\tSN:c\tLN:9\n@CO\tx\n@CO\n@CO\t\n@CO\n"
        line = "r\t0\tc\t5\t9\t1M\t*\t0\t0\tA\t*\n"
        refs = [("c", 9)]
        sources = [self.write("in.sam", head + line),
                   self.write("in.bam", bamfile.bgzf(bamfile.bam_header(head, refs)
                                                     + bamfile.record("r", 0, 0, 4, "1M", "A")))]
        # samtools refuses such a BAM, and gives the lines of SAM a tab.
        want = reference_sort(sources[0], self.path("want.bam"))
        self.assertEqual(want.text.count("@CO\t\n"), 4)
        for source in sources:
            for options in ([], ["-O", "sam"], ["-n"]):
                got = self.sort_ok("--no-PG", *options, source).out
                text = got.decode() if "sam" in options else bamfile.parse_file(got).text
                self.assertEqual(text.count("@CO\t\n"), 4, text)
            self.assertEqual(self.sort_bam("--no-PG", source).text, want.text)
            # Of several inputs the lines that are the same are united.
            both = self.sort_ok("--no-PG", "-O", "sam", "-o", self.path("both.sam"), source, source)
            self.assertEqual(both.status, 0)
            self.assertEqual(text_of(self.path("both.sam")).count("@CO\t\n"), 4)


class Programs(CliTest):
    """@PG lines whose PP fields form a circle."""

    def test_circle_of_programs_has_no_last_one(self):
        """A circle has no last program, so that our new line has no PP. htslib 1.16 read memory
        before its array there: PP was whatever it found, or the program crashed."""
        cases = ((["a PP:a"], None), (["a PP:b", "b PP:a"], None), (["a PP:b", "b PP:c", "c PP:b"],
                 "a"), (["a PP:a", "b"], "b"), (["a PP:a", "b PP:a"], "b"))
        for programs, follows in cases:
            lines = "".join("@PG\tID:" + line.replace(" ", "\t") + "\n" for line in programs)
            bam = self.sort_bam(stdin=("@SQ\tSN:c\tLN:9\n" + lines).encode())
            with self.subTest(programs=programs):
                new = pg_lines(bam.text)[len(programs):]
                self.assertEqual(new[0].get("PP"), follows)
                self.assertEqual({line["PN"] for line in new}, {"samtools-rocksort"})


class Pointers(CliTest):
    """A message points at htslib's words only where the user can see some."""

    def test_message_about_the_header_points_at_words_that_are_seen(self):
        twice = "@SQ\tSN:a\tLN:5"
        for line, options, end in ((twice, [], "htslib cannot parse it; its words are above"),
                                   (twice, ["--verbosity", "0"], "--verbosity 1 shows its words"),
                                   ("@PG\tPN:x", [], "has no ID")):
            source = self.write("in.sam", f"@SQ\tSN:a\tLN:5\n{line}\n")
            result = self.rocksort(*options, "-O", "sam", source)
            with self.subTest(line=line, options=options):
                self.assert_error(result, "in.sam", "is damaged", end)
                has_words = any(text.startswith("[E::") for text in result.err.splitlines())
                self.assertEqual("above" in result.err, has_words, result.err)
