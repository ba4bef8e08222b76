"""--markdup="--metrics FILE" and --json: MultiQC takes the files for those of Picard MarkDuplicates
and samtools markdup, and shows their figures."""
import pathlib

import bamfile
from harness import CliTest, needs_multiqc

GROUPS = "@RG\tID:a\tSM:s\tLB:one\n@RG\tID:b\tSM:s\tLB:two\n@RG\tID:c\tSM:s\tLB:one\n"


def pair(name, pos, group):
    """The lines of a pair whose ends are 200 bases apart."""
    return "".join(f"{name}\t{flag}\tr\t{here}\t60\t50M\t=\t{there}\t{length}\t{'A' * 50}\t"
                   f"{'F' * 50}\tRG:Z:{group}\tMC:Z:50M\tms:i:1850\n"
                   for flag, here, there, length in ((99, pos, pos + 150, 200),
                                                     (147, pos + 150, pos, -200)))


@needs_multiqc
class MultiQC(CliTest):
    def setUp(self):
        super().setUp()
        # 300 pairs of library one at 200 places, 60 of library two at 60 others, two single reads
        # at one place, and an unmapped one.
        lines = [pair(f"M:1:{i}:{i}", 1000 + 1000 * (i % 200), "ac"[i % 2]) for i in range(300)]
        lines += [pair(f"N:1:{i}:{i}", 500_000 + 1000 * i, "b") for i in range(60)]
        lines += [f"s{i}\t0\tr\t900000\t60\t50M\t*\t0\t0\t{'A' * 50}\t{'F' * 50}\tRG:Z:a\n"
                  for i in range(2)]
        lines.append(f"u\t4\t*\t0\t0\t*\t*\t0\t0\t{'A' * 50}\t{'F' * 50}\tRG:Z:a\n")
        sam = bamfile.sq_text([("r", 1_000_000)]) + GROUPS + "".join(lines)
        self.source = self.write("in.sam", sam)
        pathlib.Path(self.path("reports")).mkdir()

    def shown(self, *options):
        """What MultiQC says of the reports of a run with these options of --markdup."""
        self.sort_ok("--markdup=" + " ".join(options), "-o", self.path("out.bam"), self.source)
        return self.multiqc(self.path("reports"))["report_saved_raw_data"]

    def test_metrics_are_shown_with_libraries_summed(self):
        shown = self.shown("--use-libraries", "--metrics", self.path("reports/sample.txt"))
        metrics = shown["multiqc_picard_dups"]["sample"]
        self.assertEqual(
            {key: metrics[key] for key in ("UNPAIRED_READS_EXAMINED", "READ_PAIRS_EXAMINED",
                                           "UNMAPPED_READS", "UNPAIRED_READ_DUPLICATES",
                                           "READ_PAIR_DUPLICATES")},
            {"UNPAIRED_READS_EXAMINED": 2, "READ_PAIRS_EXAMINED": 360, "UNMAPPED_READS": 1,
             "UNPAIRED_READ_DUPLICATES": 1, "READ_PAIR_DUPLICATES": 100})
        self.assertEqual(metrics["LIBRARY"], "one/two")
        self.assertAlmostEqual(metrics["PERCENT_DUPLICATION"], 201 / 722)

    def test_statistics_are_shown(self):
        shown = self.shown("--json", "-f", self.path("reports/sample.json"))
        figures = shown["multiqc_samtools_markdup"]["sample"]
        self.assertEqual((figures["paired"], figures["duplicate_pair"], figures["single"],
                          figures["duplicate_single"]), (720, 200, 2, 1))
