"""A sample in many tasks (packaging/workflows): the result is that of one sort.

ByContig does by hand what the workflows do, with the options of --markdup that can be decided for one
contig at a time, and shows that the others cannot. Engines runs both workflows in their engines."""

import hashlib
import json
import pathlib
import subprocess

import bamfile
import workflow_reads
from harness import ROOT, CliTest

BIN = ROOT / "packaging/workflows/bin"
GROUP_BASES = 400_000
N_CHUNKS = 3
# Options of --markdup that can be decided for one contig at a time.
LOCAL = (
    "", "-r", "-c -t", "-d 100", "-d 2500 -t --duplicate-count", "-d 100 --no-multi-dup", "--mode s",
    "--include-fails", "--use-read-groups", "--use-libraries", "--barcode-name",
    "--barcode-name --barcode-mismatches 1 -t", "--barcode-rgx :([ACGT]+)$ --move-umi-to-tag",
    "--barcode-tag RX --barcode-own", "-l 300",
)
# Those that cannot, and what the refusal says of them.
REMOTE = (
    ("-S", "supplementary"), ("-d 100 -tS", "supplementary"),
    ("--barcode-tag RX", "--barcode-own"), ("--barcode-tag=RX --barcode-mismatches 1", "--barcode-own"),
)
REPORTS = ("-s", "-rs", "-f dups", "-fdups", "-tfdups", "--json", "--metrics dups")


def run_script(name, *args):
    """Runs a script of the workflows."""
    return subprocess.run([BIN / name, *map(str, args)], capture_output=True, text=True, check=False)


def groups_of(fai):
    """The BED file of groups of contigs, and all pieces that a sort makes with it."""
    done = run_script("group-contigs", fai, GROUP_BASES)
    if done.returncode:
        raise AssertionError(done.stderr)
    groups = dict.fromkeys(line.split("\t")[3] for line in done.stdout.splitlines())
    return done.stdout, [*groups, "outside", "unplaced"]


class ByContig(CliTest):
    """Scattering, gathering and putting together, by hand."""

    def setUp(self):
        super().setUp()
        self.header, self.templates = workflow_reads.templates(8000, seed=7)
        workflow_reads.write_sam(self.path("all.sam"), self.header, self.templates)
        workflow_reads.write_fai(self.path("ref.fai"), self.header)
        bed, self.pieces = groups_of(self.path("ref.fai"))
        self.write("groups.bed", bed)
        self.assertGreater(len(self.pieces), 8)

    def scatter(self):
        """Sorts chunks and divides them."""
        size = -(-len(self.templates) // N_CHUNKS)
        for i in range(N_CHUNKS):
            some = self.templates[i * size:(i + 1) * size]
            sam = workflow_reads.write_sam(self.path(f"chunk{i}.sam"), self.header, some)
            (self.work / f"pieces{i}").mkdir()
            self.sort_ok("--fixmate", "--split-by", self.path("groups.bed"), "--no-PG", "-l", "1",
                         "-o", self.path(f"pieces{i}/%.bam"), sam)

    def gather(self, markdup):
        """Merges what chunks have of each piece, and puts the pieces together."""
        (self.work / "gathered").mkdir(exist_ok=True)
        for piece in self.pieces:
            self.sort_ok("--merge", f"--markdup={markdup}", "--write-index", "--no-PG", "-o",
                         self.path(f"gathered/{piece}.bam"),
                         *[self.path(f"pieces{i}/{piece}.bam") for i in range(N_CHUNKS)])
        self.sort_ok("--merge", "--write-index", "--no-PG", "--stats", self.path("stats"), "-o",
                     self.path("out.bam"),
                     *[self.path(f"gathered/{piece}.bam") for piece in self.pieces])

    def one_sort(self, markdup):
        """What one sort makes of all."""
        self.sort_ok("--fixmate", f"--markdup={markdup}", "--write-index", "--no-PG", "-o",
                     self.path("want.bam"), self.path("all.sam"))

    def test_local_options(self):
        """Flags and tags are those of one sort, and only blocks are copied at the end."""
        self.scatter()
        different = set()
        for markdup in LOCAL:
            with self.subTest(markdup=markdup):
                self.assertEqual(run_script("check-markdup", markdup).returncode, 0)
                self.gather(markdup)
                self.one_sort(markdup)
                got, want = (bamfile.read(self.path(name)) for name in ("out.bam", "want.bam"))
                self.assert_same_bam(got, want)
                stats = json.loads((self.work / "stats").read_text())
                self.assertEqual(stats["merge"]["inputs_merged"], 0, stats["merge"])
                different.add(hashlib.sha256(want.records).digest())
        self.assertGreaterEqual(len(different), 12)     # options make a difference here

    def test_pairs_on_two_contigs(self):
        """Marked duplicates include pairs whose mates lie in two groups: both of them, or none."""
        self.scatter()
        self.gather("")
        group = {}
        for line in (self.work / "groups.bed").read_text().splitlines():
            group[line.split("\t")[0]] = line.split("\t")[3]
        names = [name for name, _ in bamfile.read(self.path("out.bam")).refs]
        marked = {}
        for raw in bamfile.split(bamfile.read(self.path("out.bam")).records):
            tid, _, flag, name = bamfile.fields(raw)
            if not flag & 0x90c:
                marked.setdefault(name, []).append((group[names[tid]], bool(flag & 0x400)))
        apart = [ends for ends in marked.values() if len({place for place, _ in ends}) == 2]
        self.assertGreater(sum(ends[0][1] for ends in apart), 20)
        self.assertEqual([ends for ends in apart if ends[0][1] != ends[1][1]], [])

    def test_remote_options(self):
        """The workflows refuse what would come out otherwise, and this is so."""
        self.scatter()
        for markdup, mention in REMOTE:
            with self.subTest(markdup=markdup):
                done = run_script("check-markdup", markdup)
                self.assertEqual(done.returncode, 1)
                self.assertIn(mention, done.stderr)
                self.gather(markdup)
                self.one_sort(markdup)
                self.assertNotEqual(bamfile.read(self.path("out.bam")).records,
                                    bamfile.read(self.path("want.bam")).records)

    def test_reports_are_refused(self):
        for markdup in REPORTS:
            done = run_script("check-markdup", markdup)
            self.assertEqual(done.returncode, 1, markdup)
            self.assertIn("report", done.stderr)

    def test_a_group_is_contigs_that_follow_each_other(self):
        fai = self.write("some.fai", "".join(f"c{i}\t{n}\t0\t60\t61\n" for i, n in
                                             enumerate((500_000, 200_000, 200_000, 1, 400_000))))
        bed = groups_of(fai)[0]
        self.assertEqual([line.split("\t")[3] for line in bed.splitlines()],
                         ["group0001", "group0002", "group0002", "group0003", "group0004"])
        self.assertEqual(bed.splitlines()[1], "c1\t0\t200000\tgroup0002")
        done = run_script("group-contigs", self.write("empty.fai", ""), GROUP_BASES)
        self.assertNotEqual(done.returncode, 0)
