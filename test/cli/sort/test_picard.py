"""--picard: the files are those of Picard 3.4.0, but for their heads.

test/cli/picard has records of five kinds (pairs, single reads, RNA; with QC failures, duplicates,
secondary and supplementary records, adapters, OQ tags, several or no read groups) with a reference,
and what Picard's CollectMultipleMetrics wrote for them, without and with the reference.
"""
import pathlib

from harness import CliTest, needs_multiqc, text_of

CASES = pathlib.Path(__file__).parent.parent / "picard"
LEVELS = "LEVELS=ALL_READS,SAMPLE,LIBRARY,READ_GROUP"
PLAIN = ("alignment_summary_metrics", "base_distribution_by_cycle_metrics", "insert_size_metrics",
         "quality_by_cycle_metrics", "quality_distribution_metrics", "quality_yield_metrics")
GC_BIAS = ("gc_bias.detail_metrics", "gc_bias.summary_metrics")
SPILLING = 100_000


def body(text):
    """The lines of a file of metrics without its head, which names command and date, and without the
    rows of GC bias that have no reads, which the committed files lack."""
    return [line for line in text.splitlines()
            if not line.startswith(("# ", "## htsjdk.samtools.metrics.StringHeader"))
            and not (line.startswith(("All Reads", "Sample", "Library", "Read Group"))
                     and line.split("\t")[4] == "0")]


def wanted(name):
    """{suffix: lines} of the files that Picard wrote."""
    files = {}
    for part in text_of(CASES / name).split("==> ")[1:]:
        suffix, _, text = part.partition("\n")
        files[suffix] = body(text)
    return files


class Picard(CliTest):
    def metrics(self, suffix):
        return body(text_of(self.path(f"out.{suffix}")))

    def check(self, case, kind, *settings, **how):
        words = " ".join((LEVELS, *settings, self.path("out")))
        self.sort_ok(f"--picard={words}", "-l", "1", "-o", self.path("out.bam"),
                     str(CASES / f"{case}.sam"), *how.pop("args", ()), **how)
        for suffix, lines in wanted(f"{case}.{kind}").items():
            with self.subTest(case=case, suffix=suffix):
                self.assertEqual(self.metrics(suffix), lines)

    def test_figures_are_those_of_picard(self):
        for case in range(5):
            self.check(case, "expected")
            self.check(case, "expected", budget=SPILLING, args=("-@", "3"))

    def test_figures_with_a_reference_are_those_of_picard(self):
        for case in range(5):
            self.check(case, "with-reference", f"R={CASES}/{case}.fa")
            self.check(case, "with-reference", f"R={CASES}/{case}.fa", budget=SPILLING,
                       args=("-@", "3", "-n"))

    def test_mismatches_are_counted_with_the_reference_of_the_sort(self):
        self.sort_ok(f"--picard={self.path('out')}", "--reference", str(CASES / "0.fa"), "-o",
                     self.path("out.bam"), str(CASES / "0.sam"))
        want = wanted("0.with-reference")["alignment_summary_metrics"]
        self.assertEqual(self.metrics("alignment_summary_metrics")[2:5], want[2:5])
        self.assertFalse(pathlib.Path(self.path("out.gc_bias.detail_metrics")).exists())

    def test_only_the_wanted_levels_have_rows(self):
        self.sort_ok(f"--picard=LEVEL=LIBRARY {self.path('out')}", "-o", self.path("out.bam"),
                     str(CASES / "1.sam"))
        rows = [line.split("\t") for line in self.metrics("alignment_summary_metrics")
                if line.startswith(("FIRST", "UNPAIRED"))]
        self.assertTrue(rows)
        self.assertTrue(all(row[-1] == "" for row in rows))
        self.assertTrue(any(row[-2] for row in rows))

    def test_records_that_picard_cannot_take_are_counted(self):
        """No sequence, no qualities, beyond the end, no read passes the filter."""
        sam = self.write("in.sam", "@SQ\tSN:a\tLN:90\n"
                         "a\t512\ta\t1\t60\t30M\t*\t0\t0\t*\t*\n"
                         f"b\t0\ta\t80\t60\t30M\t*\t0\t0\t{'A' * 30}\t*\n"
                         "c\t0\ta\t1\t60\t30M\t*\t0\t0\t*\t*\n")
        fasta = self.write("a.fa", ">a\n" + "A" * 90 + "\n")
        self.sort_ok(f"--picard=R={fasta} {self.path('out')}", "-o", self.path("out.bam"), sam)
        row = self.metrics("alignment_summary_metrics")[3].split("\t")
        self.assertEqual(row[:8], ["UNPAIRED", "3", "2", "0.666667", "0", "2", "1", "41"])

    def test_gc_bias_of_many_references_takes_seconds(self):
        """Without a search for the reference of each job, it takes minutes."""
        n = 300_000
        fasta = self.write("a.fa", "".join(f">{i}\n{'A' * 110}\n" for i in range(n)))
        sam = self.write("in.sam", "".join(f"@SQ\tSN:{i}\tLN:110\n" for i in range(n)) +
                         f"a\t0\t7\t1\t60\t30M\t*\t0\t0\t{'A' * 30}\t*\n")
        self.sort_ok(f"--picard=R={fasta} {self.path('out')}", "-o", self.path("out.bam"), sam,
                     limit_s=60)
        row = self.metrics("gc_bias.detail_metrics")[3].split("\t")
        self.assertEqual(row[2:5], ["0", str(9 * n), "1"])

    def test_options_that_are_not_offered_are_refused_by_name(self):
        for words, message in (("FLOW_MODE=true", "FLOW_MODE"), ("LEVELS=LANE", "LANE"),
                               ("MINIMUM_PCT=2", "0 to 0.5"), ("R=/none.fa", "/none.fa")):
            with self.subTest(words=words):
                result = self.rocksort(f"--picard={words} {self.path('out')}", "-o",
                                       self.path("out.bam"), str(CASES / "0.sam"))
                self.assertEqual(result.status, 1)
                self.assertIn(message, result.err)
                self.assertEqual(self.files(), [])

    def test_a_prefix_may_have_blanks_and_equals_signs(self):
        self.sort_ok(f"--picard={self.path('a b=c')}", "-o", self.path("out.bam"),
                     str(CASES / "0.sam"))
        self.assertIn("a b=c.quality_yield_metrics", self.files())

    @needs_multiqc
    def test_multiqc_shows_all_files_as_one_sample(self):
        prefix = self.path("reports/sample")
        pathlib.Path(self.path("reports")).mkdir()
        self.sort_ok(f"--picard=R={CASES}/1.fa {prefix}", "-o", self.path("out.bam"),
                     str(CASES / "1.sam"))
        shown = self.multiqc(self.path("reports"))["report_saved_raw_data"]
        names = {key: {name.split("_")[0] for name in value} for key, value in shown.items()
                 if key.startswith("multiqc_picard")}
        self.assertEqual(set().union(*names.values()), {"sample"}, names)
        # Both files of GC bias are one.
        self.assertEqual(len(names), 7, sorted(names))
