"""A sample in many tasks (packaging/workflows): the result is that of one sort.

ByContig does by hand what the workflows do, with the options of --markdup that can be decided for
one contig at a time, and shows that the others cannot. Engines runs both workflows in their
engines.
"""

import csv
import gzip
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import bamfile
import workflow_reads
from harness import BUILD, LIBRARY, ROOT, SLOW, CliTest, environment, needs_faults, needs_pysam
from test_index import IndexTest, random_regions

WORKFLOWS = ROOT / "packaging/workflows"
BIN = WORKFLOWS / "bin"
ENGINES = ROOT / "build/engines"
ENGINE_LIMIT_S = 120 * SLOW
GROUP_BASES = 600_000
ENGINE_GROUP_BASES = 1_200_000
MARKDUP = "-d 100 -t"
# Names of contigs. A BED file takes the last two for comments, so their reads are outside of all
# groups.
ODD_NAMES = {"chr1": "HLA-A*01:01", "chr2": "../$HOME", "chr3": "%.bam", "chr4": "a|b;c&d!",
             "chr5": "~", "chr6": "2", "chrY": "#Y", "chrM": "track"}
N_CHUNKS = 3
# Options of --markdup that can be decided for one contig at a time.
LOCAL = (
    "", "-r", "-c -t", "-d 100", "-d 2500 -t --duplicate-count", "-d 100 --no-multi-dup",
    "--mode s", "--include-fails", "--use-read-groups", "--use-libraries", "--barcode-name",
    "--barcode-name --barcode-mismatches 1 -t", "--barcode-rgx :([ACGT]+)$ --move-umi-to-tag",
    "--barcode-tag RX --barcode-own",
)
# Those that cannot, and what the refusal says of them.
REMOTE = (
    ("-S", "supplementary"), ("-d 100 -tS", "supplementary"),
    ("--barcode-tag RX", "--barcode-own"),
    ("--barcode-tag=RX --barcode-mismatches 1", "--barcode-own"),
)
REPORTS = ("-s", "-rs", "-f dups", "-fdups", "-tfdups", "--json", "--metrics dups")


def run_script(name, *args):
    return subprocess.run([BIN / name, *map(str, args)], capture_output=True, text=True,
                          check=False)


def groups_of(fai, bases=GROUP_BASES):
    """The BED file of groups of contigs, and all pieces that a sort makes with it."""
    done = run_script("group-contigs", fai, bases)
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
        self.assertGreaterEqual(len(self.pieces), 7)

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
        self.sort_ok("--merge", "--write-index", "--no-PG", "--report", self.path("stats"), "-o",
                     self.path("out.bam"),
                     *[self.path(f"gathered/{piece}.bam") for piece in self.pieces])

    def one_sort(self, markdup):
        """What one sort makes of all."""
        self.sort_ok("--fixmate", f"--markdup={markdup}", "--write-index", "--no-PG", "-o",
                     self.path("want.bam"), self.path("all.sam"))

    def test_local_options_give_the_records_of_one_sort_by_copying(self):
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
        self.assertGreaterEqual(len(different), 11)     # most make a difference here

    def test_pairs_on_two_contigs_are_marked_both_or_none(self):
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

    @needs_faults
    def test_killed_gather_gives_the_same_files_when_tried_again(self):
        self.scatter()
        command = ["--merge", "--markdup=-d 100 -t", "--write-index", "--no-PG",
                   *[self.path(f"pieces{i}/{self.pieces[0]}.bam") for i in range(N_CHUNKS)]]

        def files(name):
            return [(self.work / (name + end)).read_bytes() for end in (".bam", ".bam.csi")]

        self.sort_ok(*command, "-o", self.path("want.bam"))
        for fault in ("write:2:kill:.bam.rocksort.", "write:1:kill:.csi.rocksort."):
            with self.subTest(fault=fault):
                done = self.rocksort(*command, "-o", self.path("out.bam"), clean=False,
                                     env=self.faulty(fault))
                self.assertEqual(done.status, -signal.SIGKILL, done.err)
                half = [path for path in self.work.glob("out.bam.rocksort.*")
                        if path.stat().st_size > 0]
                self.assertEqual(len(half), 1)
                self.assertFalse((self.work / "out.bam").exists())
                self.assertFalse((self.work / "out.bam.csi").exists())
                self.sort_ok(*command, "-o", self.path("out.bam"))
                self.assertEqual(files("out"), files("want"))
                for path in self.work.glob("out.bam*"):
                    path.unlink()

    def test_remote_options_are_refused_since_they_change_the_result(self):
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

    def test_ranges_find_fewer_duplicates_than_contigs(self):
        """Duplicates may begin at different positions, if they are clipped: in pieces of a contig
        some are not found. That is why a group has whole contigs."""
        bed = []
        for name, length in (line.split("\t")[:2] for line in
                             (self.work / "ref.fai").read_text().splitlines()):
            for begin in range(0, int(length), 100):
                end = min(begin + 100, int(length))
                bed.append(f"{name}\t{begin}\t{end}\t{('even', 'odd')[begin // 100 % 2]}\n")
        self.write("groups.bed", "".join(bed))
        self.pieces = ["even", "odd", "outside", "unplaced"]
        self.scatter()
        self.gather("")
        self.one_sort("")
        n_marked = [sum(1 for raw in bamfile.split(bamfile.read(self.path(name)).records)
                        if bamfile.fields(raw)[2] & 0x400) for name in ("out.bam", "want.bam")]
        self.assertLess(*n_marked)


class Scripts(CliTest):
    """The programs of the workflows."""

    def test_reports_are_refused(self):
        for markdup in REPORTS:
            done = run_script("check-markdup", markdup)
            self.assertEqual(done.returncode, 1, markdup)
            self.assertIn("report", done.stderr)

    def test_a_group_is_contigs_that_follow_each_other(self):
        fai = self.write("some.fai", "".join(f"c{i}\t{n}\t0\t60\t61\n" for i, n in
                                             enumerate((500_000, 200_000, 200_000, 1, 400_000))))
        bed = run_script("group-contigs", fai, 400_000).stdout
        self.assertEqual([line.split("\t")[3] for line in bed.splitlines()],
                         [f"group{n:06}" for n in (1, 2, 2, 3, 4)])
        self.assertEqual(bed.splitlines()[1], "c1\t0\t200000\tgroup000002")
        done = run_script("group-contigs", self.write("empty.fai", ""), 400_000)
        self.assertNotEqual(done.returncode, 0)

    def test_names_of_groups_are_in_order(self):
        names = [f"c{i}" for i in range(12_000)]
        names[20:20] = ["#c", "track", "browser", "tracks"]
        fai = self.write("many.fai", "".join(f"{name}\t9\t0\t60\t61\n" for name in names))
        lines = [line.split("\t") for line in
                 run_script("group-contigs", fai, 1).stdout.splitlines()]
        self.assertEqual([line[0] for line in lines], [*names[:20], *names[23:]])
        groups = [line[3] for line in lines]
        self.assertEqual(len(set(groups)), 12_001)
        self.assertEqual(sorted(groups), groups)

    def test_chunks_are_whole_multiples_of_pairs(self):
        for n_pairs, n_chunks, multiple, want in (
                (10, 3, 1, [4, 4, 2]), (10, 2, 4, [8, 2]), (10, 3, 5, [5, 5, 0]),
                (2, 3, 1, [1, 1, 0]), (0, 2, 1, [0, 0]), (12, 1, 1, [12])):
            reads = []
            for end, zipped in ((1, True), (2, False)):
                data = "".join(f"@q{i}/{end}\nACGT\n+\nFFFF\n" for i in range(n_pairs)).encode()
                reads.append(self.path(f"reads{end}"))
                pathlib.Path(reads[-1]).write_bytes(gzip.compress(data) if zipped else data)
            done = run_script("chunk-fastq", n_chunks, multiple, *reads, self.path("chunks"))
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            chunks = sorted((self.work / "chunks").iterdir())
            self.assertEqual([path.name for path in chunks], [f"{i:04}" for i in range(n_chunks)])
            for end in (1, 2):
                names = [gzip.decompress((path / f"r{end}.fastq.gz").read_bytes()).decode()
                         .splitlines()[::4] for path in chunks]
                self.assertEqual([len(some) for some in names], want)
                self.assertEqual(sum(names, []), [f"@q{i}/{end}" for i in range(n_pairs)])
            shutil.rmtree(self.work / "chunks")

    def test_reads_that_are_not_pairs_are_refused(self):
        one, two = (self.write(f"{n}.fq", "@q\nA\n+\nF\n" * n) for n in (1, 2))
        cut = self.write("cut.fq.gz", gzip.compress(b"@q\nA\n+\nF\n" * 9000)[:-20])
        for reads in ((one, two), (two, one), (cut, cut), (one, self.path("none"))):
            done = run_script("chunk-fastq", 2, 1, *reads, self.path("chunks"))
            self.assertNotEqual(done.returncode, 0)
            self.assertTrue(done.stderr)

    def test_nothing_writes_after_a_failure(self):
        """When one end fails, the other one is no longer written when the script ends: a second
        attempt would write to the same files."""
        reads = self.write("reads.fq", "@q\nA\n+\nF\n")
        (self.work / "bin").mkdir()
        workflow_reads.write_script(
            self.work / "bin/gzip", """#!/bin/sh
            [ "${{END-}}" != 2 ] || exit 1
            [ "${{END-}}" != 1 ] || {{ sleep 1; touch "{ended}"; }}
            exec {gzip} "$@"\n""", ended=self.path("ended"), gzip=shutil.which("gzip"))
        status = subprocess.call(
            [BIN / "chunk-fastq", "1", "1", reads, reads, self.path("chunks")],
            env={**os.environ, "PATH": f"{self.work}/bin:{os.environ['PATH']}"},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.assertNotEqual(status, 0)
        self.assertTrue((self.work / "ended").exists())


@needs_pysam
@needs_faults
class Engines(IndexTest):
    """Both workflows in their engines: several tasks at a time, of which some are killed. Names of
    directories, files and contigs have characters that mean something to a shell."""

    def setUp(self):
        super().setUp()
        self.work, self.scratch = (path.parent / f"a {path.name} [1]"
                                   for path in (self.work, self.scratch))
        self.marks, self.bin = self.work / "marks", self.work / "bin"
        for folder in (self.work, self.scratch, self.marks, self.bin):
            folder.mkdir()
        self.workflows = self.work / "work flows"
        shutil.copytree(WORKFLOWS, self.workflows)
        self.header, some = workflow_reads.with_names(
            *workflow_reads.templates(6000, seed=11), names=ODD_NAMES)
        self.write_all("all.sam", some)
        workflow_reads.write_fai(self.path("a ref.fa.fai"), self.header)
        self.write("a ref.fa", "")
        self.n_pieces = len(groups_of(self.path("a ref.fa.fai"), ENGINE_GROUP_BASES)[1])
        workflow_reads.write_script(self.bin / "aligner", workflow_reads.ALIGNER, marks=self.marks)
        workflow_reads.write_script(self.bin / "samtools-rocksort", workflow_reads.KILLED,
                                    marks=self.marks, rocksort=BUILD / "samtools-rocksort",
                                    library=LIBRARY)
        # Sample x has a lane of FASTQ and one of BAM; y has one pair, too few for two chunks; z has
        # nothing but a BAM.
        self.lanes = {"x": {"L1": some[:1800], "L2": some[1800:2200]}, "y": {"L1": some[2200:2201]},
                      "z": {"L1": some[2300:]}}
        self.assertGreater(len(some), 2500)
        self.rows = []
        for sample, lanes in self.lanes.items():
            for lane, part in lanes.items():
                name = f"{sample} {lane}"
                sam = self.write_all(name + ".sam", part)
                if name in ("x L2", "z L1"):
                    self.bam_of(pathlib.Path(sam).read_text(encoding="ascii"), name=name + ".bam")
                    self.rows.append(f"{sample},{lane},{name}.bam,")
                else:
                    reads = self.write_reads(name, part)
                    self.rows.append(",".join([sample, lane, *reads]))
        self.write_rows("xyz")
        self.settings = {
            "samples": "samples.csv", "reference": "a ref.fa", "chunks": 2, "chunk_multiple": 1,
            "group_bases": ENGINE_GROUP_BASES, "aligner": self.aligner("all.sam"),
            "fixmate": "", "markdup": MARKDUP, "retries": 1,
            "align_threads": 1, "align_mb": 400, "sort_mb": 100, "gather_threads": 1,
            "gather_mb": 300, "concatenate_mb": 300,
        }

    def write_rows(self, samples, more=()):
        """Writes the list of lanes: those of some samples, and more."""
        rows = [row for row in self.rows if row[0] in samples]
        self.write("samples.csv", "\n".join(["sample,lane,reads1,reads2", *rows, *more]) + "\n")

    def write_all(self, name, some):
        return workflow_reads.write_sam(self.path(name), self.header, some)

    def write_reads(self, name, some):
        names = [f"{name} [{end}].fastq.gz" for end in (1, 2)]
        workflow_reads.write_fastq([self.path(one) for one in names], some)
        return names

    def aligner(self, sam):
        """The setting of the aligner that takes its records from this file."""
        return f"'{self.bin}/aligner' '{self.path(sam)}' {{reads}} {{reference}}"

    def engine(self, name):
        if not (ENGINES / name).exists():
            self.skipTest(f"{name} is not installed (scripts/make-engines.sh)")
        return ENGINES / name

    def snakemake(self):
        """The command of Snakemake. Its usual scheduler has a solver that cannot do with a space in
        TMPDIR."""
        return (self.engine("snakemake"), "--snakefile", self.workflows / "Snakefile",
                "--configfile", "settings.json", "--cores", "3", "--scheduler", "greedy")

    def nextflow(self):
        # Without this it starts as many tasks as there are processors.
        self.write("local.config", "executor.cpus = 3\nexecutor.memory = '4 GB'\n"
                   "trace.overwrite = true\n")
        return (self.engine("nextflow"), "run", self.workflows / "main.nf", "-params-file",
                "settings.json", "-c", "local.config", "-with-trace", "trace.txt")

    def run_engine(self, *command, **settings):
        """Runs an engine with these settings; returns status and what it printed."""
        self.write("settings.json", json.dumps({**self.settings, **settings}))   # is YAML, too
        env = environment(self.scratch, extra={
            "NXF_HOME": self.path("nxf"), "NXF_OFFLINE": "true", "NXF_ANSI_LOG": "false",
            "XDG_CACHE_HOME": self.path("cache"), "HOME": str(self.work)})
        env["PATH"] = f"{self.bin}:{env['PATH']}"
        done = subprocess.run(command, cwd=self.work, env=env, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                              timeout=ENGINE_LIMIT_S)
        return done.returncode, done.stdout

    def run_ok(self, *command, **settings):
        """Runs an engine, which must succeed; returns what it printed."""
        status, text = self.run_engine(*command, **settings)
        self.assertEqual(status, 0, text[-4000:])
        return text

    def run_refused(self, mention, *command, **settings):
        """Runs an engine, which must fail and say so."""
        status, text = self.run_engine(*command, **settings)
        self.assertNotEqual(status, 0)
        self.assertIn(mention, text)

    def trace(self):
        """The tasks of the last run of Nextflow, as dicts of text."""
        with open(self.path("trace.txt"), encoding="utf-8") as file:
            return list(csv.DictReader(file, delimiter="\t"))

    def check_kills(self, log):
        """Two tasks were killed, and the last ones copied blocks. log: what all tasks printed."""
        self.assertNotIn("alone", os.listdir(self.marks), "one task at a time")
        for killed in ("killed-align", "killed-gather"):
            self.assertTrue((self.marks / killed).is_dir(), killed)
        self.assertTrue((self.marks / "half-written").read_text())
        copied = re.findall(r"MB of (\d+) inputs were copied; written to '\S*([xyz])\.bam'", log)
        self.assertEqual(sorted(copied), [(str(self.n_pieces), sample) for sample in "xyz"])

    def check_sorted(self, samples="xyz", fixmate="", sams=None):
        """Each sample has the records, the flags, the header and an index as after one sort. sams:
        SAM to take in place of that of a lane."""
        regions = random_regions(60, bamfile.read(self.path("z L1.bam")).refs)
        for sample in samples:
            out, want = self.path(f"sorted/{sample}.bam"), self.path("want.bam")
            names = [f"{sample} {lane}" for lane in self.lanes[sample]]
            self.sort_ok(f"--fixmate={fixmate}", f"--markdup={MARKDUP}", "-o", want,
                         *[self.path((sams or {}).get(name, name + ".sam")) for name in names])
            got = bamfile.read(out)
            self.assert_same_bam(got, bamfile.read(want), sample)
            if sample != "y":
                self.assertGreater(sum(1 for raw in bamfile.split(got.records)
                                       if bamfile.fields(raw)[2] & 0x400), 50)
            self.assertEqual(self.ask(out, out + ".csi", regions),
                             self.ask(out, self.want_index(out, "csi"), regions))

    def sorted_files(self):
        """The number and the time of each result."""
        return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns)
                for path in (self.work / "sorted").iterdir()}

    def change_y(self):
        """Sample y gets another pair."""
        other = self.lanes["x"]["L1"][7:8]
        self.write_reads("y L1", other)
        self.write_all("y L1.sam", other)

    def test_snakemake_gives_the_result_of_one_sort(self):
        command = self.snakemake()
        text = self.run_ok(*command)
        self.assertEqual(text.count("Trying to restart job"), 2, text)
        self.check_kills(text)
        self.check_sorted()
        left = [str(path) for folder in ("chunks", "pieces", "gathered")
                for path in (self.work / folder).rglob("*") if not path.is_dir()]
        self.assertEqual(left, [])
        # Nothing is done twice, and what depends on a changed file is done again.
        before = self.sorted_files()
        self.assertIn("Nothing to be done", self.run_ok(*command))
        self.assertEqual(self.sorted_files(), before)
        self.change_y()
        self.run_ok(*command)
        self.check_sorted()
        after = self.sorted_files()
        self.assertEqual({name for name in after if after[name] != before[name]},
                         {"y.bam", "y.bam.csi"})
        # So is everything with another reference.
        self.write("a ref.fa", ">changed\n")
        self.assertIn("rule align", self.run_ok(*command, "--dry-run"))
        # What was made with other settings is not taken for the result.
        self.run_refused("settings are not those of an earlier run", *command, markdup="-r")

    def test_snakemake_refuses_what_would_be_wrong(self):
        command = self.snakemake()
        self.run_refused("check-markdup: -S marks supplementary", *command, markdup="-S")
        for bad, mention in (("x,L1,new.bam,", "sample x has lane L1 twice"),
                             ("x,L3,x L2.bam,", "sample x has x L2.bam twice"),
                             ("a b,L1,1.bam,", "'a b'")):
            self.write_rows("xyz", more=[bad])
            self.run_refused(mention, *command)
        self.write_rows("xyz")
        # With fewer cores the aligner's command line is the same. Nothing is written that another
        # run might read.
        text = self.run_ok(*command, "--cores", "2", "--dry-run", "--printshellcmds",
                           align_threads=4, aligner="bwa mem -t {threads} {reference} {reads}")
        self.assertIn("bwa mem -t 4 '", text)
        for name in ("made-with.json", "groups.bed"):
            self.assertFalse((self.work / name).exists())
        # What another program has made is no result.
        (self.work / "sorted").mkdir()
        self.run_refused("settings are not those of an earlier run", *command)

    def test_nextflow_gives_the_result_of_one_sort(self):
        command = self.nextflow()
        self.run_refused("check-markdup: -S marks supplementary", *command, markdup="-S")
        self.write_rows("xyz", more=["x,L3,x L2.bam,"])
        self.run_refused("sample x has x L2.bam twice", *command)
        self.write_rows("xyz")
        self.run_ok(*command)
        failed = sorted((row["name"].split()[0], row["exit"]) for row in self.trace()
                        if row["status"] == "FAILED")
        self.assertEqual(failed, [("ALIGN", "137"), ("GATHER", "137")])
        self.check_kills("".join(path.read_text(errors="replace")
                                 for path in self.work.glob("work/*/*/.command.err")))
        self.check_sorted()
        # What depends on a changed file is done again, and nothing else.
        self.change_y()
        command += ("-resume",)
        self.run_ok(*command)
        self.check_sorted()
        done = {row["name"] for row in self.trace() if row["status"] == "COMPLETED"}
        self.assertIn("CONCATENATE (y)", done)
        self.assertEqual([name for name in done if "(y" not in name], [])
        # So is what depends on a changed setting.
        sams = {}
        for name in ("all", "y L1"):
            sams[name] = f"{name} with less quality.sam"
            text = (self.work / f"{name}.sam").read_text()
            self.write(sams[name],
                       re.sub(r"(?m)^([^@\t]+(?:\t[^\t]+){3})\t60\t", r"\1\t59\t", text))
        self.write_rows("y")
        self.run_ok(*command, aligner=self.aligner(sams["all"]))
        self.check_sorted("y", sams=sams)
        self.write_rows("z")
        self.run_ok(*command, fixmate="-r")
        self.check_sorted("z", fixmate="-r")
