"""--samtools-checksum: byte for byte what samtools 1.24 prints; --qc: all reports of a sample, which
MultiQC shows as one; and options of reports, which a resumed sort keeps."""

import gzip
import os
import pathlib
import random
import re

import bamfile
import templates
from checkpoints import KilledTest
from harness import ROOT, CliTest, needs_multiqc, needs_pysam, text_of
from test_counts import SPILLING, Records, reference_text, some_refs

TAGS = ("BC:Z:ACGT", "QT:Z:IIII", "NM:i:3", "MD:Z:10", "xi:i:-70000", "xs:i:300", "xf:f:1.5",
        "xb:B:S,1,2,3", "RT:Z:ACG", "xc:A:q", "BC:Z:TT")
# What is drawn; each with a chance.
OPTIONS = ("-q", "-v", "-T", "-P", "-C", "-M", "-c", "-O", "-F 0", "-f 1", "-b 0xfff", "-a",
           "-z on", "-z all,cigarx", "-t NM,BC,xs", "-t *,NM", "-t *")
GROUPS = "".join(f"@RG\tID:{name}\tSM:s\n" for name in ("b", "a", "empty"))


class Tagged(Records):
    """Records with tags and read groups, of which one is not in the header."""

    def line(self, number, places):
        rng, seen = self.rng, set()
        tags = [tag for tag in rng.sample(TAGS, rng.randint(0, 5))
                if tag[:2] not in seen and not seen.add(tag[:2])]
        if rng.random() < 0.7:
            tags.insert(rng.randint(0, len(tags)), "RG:Z:" + rng.choice("abc"))
        return "\t".join([super().line(number, places), *tags])

    def sam(self, n):
        head, at, rest = super().sam(n).partition("\nq0\t")
        # samtools makes broken CIGARs when it trims odd ones at the end of a reference (-z).
        head = re.sub(r"LN:(\d+)", r"LN:1\g<1>000", head)
        return f"{head}\n{GROUPS}{at[1:]}{rest}"


@needs_pysam
class Checksum(CliTest):
    def check(self, options, out, *args, **how):
        """Sorts with a checksum, and compares it with that of samtools."""
        report, out = self.path("sums"), self.path(out)
        text = " ".join([*options, report])
        self.sort_ok("--samtools-checksum", text, "--no-PG", "-o", out, *args, **how)
        words = [word for option in options for word in option.split()]
        got, want = text_of(report), reference_text("checksum", *words, out)
        self.assertEqual(got.splitlines()[1:], want.splitlines()[1:], f"{options} {args}")
        self.assertEqual(got.splitlines()[0].split(":")[0], want.splitlines()[0].split(":")[0])

    def test_checksums_of_random_records_are_those_of_samtools(self):
        rng = random.Random(5)
        for seed in range(24):
            sam = Tagged(seed, some_refs(3, 3000, seed)).sam((30, 700)[seed % 2])
            source = self.bam_of(sam) if seed % 3 else self.write("in.sam", sam)
            options = rng.sample(OPTIONS, rng.randint(0, 4))
            with self.subTest(seed=seed, options=options):
                self.check(options, ("out.bam", "out.sam")[seed % 2], "-@", "2", source,
                           budget=SPILLING if seed % 4 else None)

    def test_checksums_of_marked_and_merged_records_are_those_of_samtools(self):
        source = self.bam_of(Tagged(50, some_refs(3, 3000)).sam(500))
        self.sort_ok("-n", "-o", self.path("named.bam"), source)
        self.check(["-a", "-q"], "out.bam", "--fixmate", "--markdup", self.path("named.bam"))
        self.sort_ok("-o", self.path("one.bam"), source)
        self.check(["-a"], "out.bam", "--merge", self.path("one.bam"), self.path("one.bam"))

    def test_checksums_of_cram_are_those_of_samtools(self):
        """CRAM cannot hold each of the odd records above."""
        source = self.write("in.sam", templates.Generator(3, odd=0).sam(200))
        self.check(["-q", "-t", "*,NM,MD"], "out.cram", "--fixmate", "--output-fmt-option",
                   "no_ref=1", source)

    def test_checksums_of_real_files_are_those_of_samtools(self):
        bams = ROOT / "build" / "real-bams" / "bams"
        if not bams.is_dir():
            self.skipTest(f"no {bams}")
        paths = [path for path in sorted(bams.iterdir())
                 if path.suffix == ".bam" and path.stat().st_size < 1 << 20]
        for path in random.Random(7).sample(paths, 12):
            with self.subTest(path=path.name):
                self.check(["-a", "-q"], "out.bam", str(path))

    def test_options_that_are_not_offered_are_refused(self):
        source = self.bam_of(Tagged(52, some_refs(1, 300)).sam(3))
        for text, *words in (("-B sums", "does not take -B"), ("-OO sums", "-O once"),
                             ("-N 4 sums", "does not take -N"), ("-t ABC sums", "'ABC'"),
                             ("-F none sums", "-F takes flags", "'none'"), ("-q", "'-q'"),
                             ("-q more sums", "'more'"), ("-q 'sums", "a quote"),
                             ("-t", "name of a file")):
            with self.subTest(text=text):
                result = self.rocksort("--samtools-checksum", text, "-o", self.path("x"), source)
                self.assert_error(result, "--samtools-checksum", *words)
        self.assertEqual(os.listdir(self.work), ["in.bam"])

    def test_name_without_options_may_have_blanks(self):
        source = self.bam_of(Tagged(53, some_refs(1, 300)).sam(3))
        for text, name in ((self.path("a b"), "a b"), (f"-q '{self.path('c d')}'", "c d")):
            self.sort_ok("--samtools-checksum", text, "-o", self.path("out.bam"), source)
            self.assertTrue(text_of(self.path(name)).startswith("# Checksum 1.0"))


class Qc(CliTest):
    def setUp(self):
        super().setUp()
        lines = "".join(
            f"M:1:{i}:{i}\t{flag}\tr\t{here}\t60\t50M\t=\t{there}\t{length}\t{'ACGTA' * 10}\t"
            f"{'F' * 50}\tRG:Z:g\tMC:Z:50M\tms:i:1850\n"
            for i in range(300)
            for flag, here, there, length in ((99, 1000 + 1000 * (i % 200), 1150 + 1000 * (i % 200),
                                               200),
                                              (147, 1150 + 1000 * (i % 200), 1000 + 1000 * (i % 200),
                                               -200)))
        head = bamfile.sq_text([("r", 400_000)]) + "@RG\tID:g\tSM:s\tLB:one\n"
        self.source = self.write("in.sam", head + lines)
        pathlib.Path(self.path("reports")).mkdir()

    def test_given_options_replace_those_of_qc(self):
        self.sort_ok("--qc", self.path("reports/s"), "--flagstat", self.path("flags"), "--markdup",
                     "-o", self.path("out.bam"), self.source)
        found = os.listdir(self.path("reports"))
        for name in ("s.idxstats", "s.sorted.stats", "s.mosdepth.summary.txt", "s.regions.bed.gz",
                     "s.insert_size_metrics", "s.markdup.metrics"):
            self.assertIn(name, found)
        self.assertNotIn("s.flagstat", found)
        self.assertNotIn("s.per-base.bed.gz", found)
        self.assertIn("600 + 0 primary", text_of(self.path("flags")))

    def test_output_by_name_has_no_depth(self):
        self.sort_ok("-n", "--qc", self.path("reports/s"), "-o", self.path("out.bam"), self.source)
        found = os.listdir(self.path("reports"))
        self.assertIn("s.flagstat", found)
        self.assertNotIn("s.mosdepth.summary.txt", found)

    def test_file_of_a_prefix_counts_as_named(self):
        result = self.rocksort("--qc", self.path("reports/s"), "-o",
                               self.path("reports/s.mosdepth.summary.txt"), "-O", "bam",
                               self.source)
        self.assert_error(result, "is named for the output and for --mosdepth")

    def test_several_files_do_not_go_to_standard_output(self):
        for option in ("--picard", "--mosdepth"):
            result = self.rocksort(option, "-", "-o", self.path("out.bam"), self.source)
            self.assert_error(result, option, "without its ending")

    @needs_multiqc
    def test_multiqc_shows_one_sample(self):
        self.sort_ok("--qc", self.path("reports/sample"), "--markdup", "-o",
                     self.path("out.bam"), self.source)
        shown = self.multiqc(self.path("reports"))
        samples = {sample for table in shown["report_general_stats_data"].values()
                   for sample in table}
        self.assertEqual(samples, {"sample"})
        tables = set(shown["report_saved_raw_data"])
        for name in ("samtools_stats", "samtools_flagstat", "samtools_idxstats", "mosdepth",
                     "picard_dups", "picard_insertSize"):
            self.assertTrue(any(name in table for table in tables), f"{name} {tables}")


@needs_pysam
class Resumed(KilledTest):
    def test_resumed_sort_keeps_the_options_of_reports(self):
        """From another directory than that of the first command, with a file in the options."""
        source = self.bam_of(Tagged(60, some_refs(4, 3000)).sam(6000))
        self.write("targets.bed", "chr0\t0\t900\tone\nchr1\t5\t70\ttwo\n")
        reports = ["--samtools-checksum=-a -q sums", "--mosdepth=-x --by targets.bed depth",
                   "--bedgraph=-F 0 'track s'", "--stats=-F 0x400 stats"]
        out = self.path("out.bam")
        self.sort_ok("--no-PG", *reports, "-o", out, source, budget=SPILLING, cwd=self.work)
        # Where compressed blocks end is another matter, and so are the indexes.
        names = [name for name in sorted(os.listdir(self.work)) if not name.endswith(".csi")
                 and name not in ("in.bam", "out.bam", "targets.bed", "where")]
        self.assertGreater(len(names), 7)

        def taken():
            texts = {}
            for name in names:
                if os.path.exists(self.path(name)):
                    with (gzip.open if name.endswith(".gz") else open)(self.path(name), "rb") as file:
                        texts[name] = [line for line in file.read().split(b"\n")
                                       if b"command line" not in line]
                    os.unlink(self.path(name))
            return texts

        want = taken()
        for fault in ("link:4:kill:.sst", "write:3:kill:out.bam"):
            with self.subTest(fault=fault):
                checkpoint = self.killed(fault, *reports, "-o", out, source, budget=SPILLING,
                                         cwd=self.work)
                self.assertEqual(taken(), {})
                self.resume(checkpoint, cwd=self.where, budget=SPILLING)
                got = taken()
                self.assertEqual(got.keys(), want.keys())
                for name, text in want.items():
                    self.assertEqual(got[name], text, name)
                left = [name for name in os.listdir(self.work) if name.endswith(".tmp")]
                self.assertEqual(left, [])
