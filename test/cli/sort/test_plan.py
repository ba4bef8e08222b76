"""--plan, and the values that -@ auto and --max-memory auto choose."""

import os
import random
import re
import stat
import subprocess

import bamfile
import generate
from harness import SAMTOOLS, CliTest, Result, bytes_of, environment, json_of, own_lines

CLOSING = re.compile(r"(\d+) records, .*; (\d+) runs on disk, ([\d.]+) MB temporary")


def plan_lines(result):
    """The lines of a plan as {key: [values]}."""
    found = {}
    for line in result.out.decode().splitlines():
        key, value = line.split(": ", 1)
        found.setdefault(key, []).append(value)
    return found


class PlanTest(CliTest):
    """Runs --plan, which must leave no file."""

    DATA = []                   # the content of self.source

    def setUp(self):
        super().setUp()
        if not self.DATA:
            self.DATA.append(bytes_of(self.bam_of(generate.reads(8000, generate.reference()))))
        self.source = self.write("in.bam", self.DATA[0])

    def grouped(self):
        """Reads that are spread so thinly that small runs compress as well as large ones."""
        source = self.path("grouped.bam")
        self.sort_ok("-n", "-o", source, self.bam_of(generate.reads(
            8000, generate.reference(n_bases=600000))))
        return source

    def plan(self, *args, **how):
        """Returns the plan; the run makes no file in work."""
        before = sorted(os.listdir(self.work))
        result = self.sort_ok("--plan", *args, **how)
        self.assertEqual(sorted(os.listdir(self.work)), before)
        return plan_lines(result)


class Plans(PlanTest):
    """The sort does what its plan says."""

    KEYS = ["input", "uncompressed", "order", "threads", "memory", "runs on disk", "output", "time"]

    def test_plan_of_a_sort_in_memory_has_no_runs(self):
        plan = self.plan("-@", "1", "-o", self.path("out.bam"), self.source)
        self.assertEqual([key for key in plan if key != "warning"], self.KEYS)
        self.assertEqual(plan["runs on disk"], ["none: all fits into memory"])
        self.assertRegex(plan["uncompressed"][0], r"^3\.\d MB, 16000 records$")
        self.assertEqual(plan["memory"], ["768 MiB"])
        self.assertFalse(os.path.exists(self.path("out.bam")))

    def test_planned_runs_are_about_right(self):
        # Reads are spread so thinly that small runs compress as well as large ones.
        source = self.bam_of(generate.reads(8000, generate.reference(n_bases=600000)))
        for options in ([], ["-n"], ["-@", "3"]):
            for budget in (400_000, 1_000_000, 3_000_000):
                with self.subTest(options=options, budget=budget):
                    how = {"budget": budget}
                    args = (*options, "--temp-codec", "lz4", "-o", self.path("out.bam"))
                    plan = self.plan(*args, source, **how)
                    result = self.sort_ok(*args, source, **how)
                    os.unlink(self.path("out.bam"))
                    found = CLOSING.search(result.err)
                    n_runs, temporary = int(found.group(2)), float(found.group(3))
                    if "none" in plan["runs on disk"][0]:
                        self.assertLessEqual(n_runs, 1)
                        continue
                    planned = int(plan["runs on disk"][0].split(",")[0])
                    self.assertLessEqual(abs(planned - n_runs), max(2, n_runs / 3),
                                         (planned, n_runs))
                    space = float(plan["temporary space"][0].split(" MB")[0])
                    self.assertLessEqual(abs(space - temporary), max(0.5, temporary * 0.4))

    def test_plan_counts_memory_and_tags_of_fixmate(self):
        """The plan splits memory as the sort does, and knows that tags make records larger: a fifth
        of the bytes were once missing."""
        source = self.grouped()
        sam = self.path("grouped.sam")
        self.sort_ok("-n", "-o", sam, source)
        for options, inputs in ((["--fixmate"], [source]), (["--fixmate=-r"], [sam]),
                                (["--fixmate", "-@", "3"], [source, source])):
            for budget in (400_000, 3_000_000, None):
                with self.subTest(options=options, budget=budget):
                    args = (*options, "--temp-codec", "lz4", "-o", self.path("out.bam"), *inputs)
                    plan = self.plan(*args, budget=budget)
                    result = self.sort_ok(*args, budget=budget)
                    size = float(re.search(r"([\d.]+) MB", plan["uncompressed"][0])[1])
                    sorted_size = float(re.search(r"records, ([\d.]+) MB;", result.err)[1])
                    self.assertLessEqual(abs(size - sorted_size), 0.02 * sorted_size)
                    if "none" not in plan["runs on disk"][0]:
                        n_runs = int(CLOSING.search(result.err).group(2))
                        planned = int(plan["runs on disk"][0].split(",")[0])
                        self.assertLessEqual(abs(planned - n_runs), max(2, n_runs / 4),
                                             (planned, n_runs))

    def test_plan_counts_what_is_remembered_of_all_records(self):
        """What is remembered of all records is planned, in memory and in a file, and the space for
        it: --plan and the warnings about full disks once knew of runs only."""
        source = self.grouped()
        for options in ("", "-S", "-S -t --barcode-name"):
            for budget in (400_000, 1_000_000, None):
                with self.subTest(options=options, budget=budget):
                    args = ["--fixmate", "--temp-codec", "lz4", "-o", self.path("out.bam"), source]
                    runs_only = self.plan(*args, budget=budget)
                    args.insert(0, "--markdup=" + options)
                    plan, stats = self.plan(*args, budget=budget), self.path("report.json")
                    self.sort_ok(*args, "--report", stats, budget=budget)
                    found = json_of(stats)["duplicates"]
                    planned = re.fullmatch(r"([\d.]+) (bytes|MB) kept for all records, in "
                                           r"(memory|a temporary file)", plan["duplicates"][0])
                    size = float(planned[1]) * {"bytes": 1, "MB": 1e6}[planned[2]]
                    self.assertLessEqual(abs(size - found["read_ends_bytes"]),
                                         0.15 * found["read_ends_bytes"])
                    self.assertEqual(planned[3] == "memory", budget is None)
                    self.assertEqual(found["file_bytes"] == 0, budget is None)
                    self.assertNotIn("duplicates", runs_only)
                    if budget:
                        more = [float(lines["temporary space"][0].split(" MB")[0])
                                for lines in (plan, runs_only)]
                        self.assertAlmostEqual(more[0] - more[1], size / 1e6,
                                               delta=0.15 + 0.1 * more[1])

    def test_plan_counts_large_templates(self):
        record = bamfile.record("same", 65, 0, 100, "50M", "A" * 50, mate=(0, 100, 0))
        head = bamfile.bam_header("", [("chr1", 1 << 28)])
        source = self.write("in.bam", bamfile.bgzf(head + record * 200_000, 1))
        plan = self.plan("--fixmate", "-o", self.path("out.bam"), source, budget=16 << 20)
        found = re.match(r"about ([\d.]+) MB", plan["uncompressed"][0])
        self.assertAlmostEqual(float(found[1]), len(record) * 0.2, delta=len(record) * 0.04)

    def test_plan_counts_runs_of_large_records(self):
        """Records that are larger than a sort buffer, some among small ones: seven times as many
        runs were once planned as there were."""
        n_bases, letters = 400_000, random.Random(51).choices("ACGT", k=800_000)
        def large(at):
            return bamfile.record("large", 4, seq="".join(letters[at : at + n_bases]))
        small = bamfile.record("small", 4, seq="ACGT" * 30) * 10
        for among in (b"", small):
            records = b"".join(large(i * 5000) + among for i in range(40))
            source = self.write("in.bam", bamfile.bgzf(bamfile.bam_header("", []) + records, 1))
            for options in ([], ["-t", "XX"]):
                with self.subTest(options=options, among=len(among)):
                    args = ("-@", "2", *options, "-l", "0", "-o", self.path("out.bam"), source)
                    planned = int(self.plan(*args, budget=4 << 20)["runs on disk"][0].split(",")[0])
                    result = self.sort_ok(*args, budget=4 << 20)
                    os.unlink(self.path("out.bam"))
                    n_runs = int(CLOSING.search(result.err).group(2))
                    self.assertLessEqual(max(planned, n_runs), 2 * min(planned, n_runs),
                                         (planned, n_runs))

    def test_plan_names_the_order(self):
        for options, order in (([], "coordinate"), (["-N"], "read name, character by character"),
                               (["-t", "RG"], "tag RG, then coordinate"),
                               (["-t", "RG", "-n"], "tag RG, then read name, numbers by value")):
            self.assertEqual(self.plan(*options, self.source)["order"], [order])

    def test_large_input_is_judged_by_its_beginning(self):
        """Only the first 6 MB of 30 MB are read."""
        raw = bamfile.record("r", 0, 0, 5, "100M", "ACGTA" * 20) * 150000
        data = bamfile.bgzf(bamfile.bam_header(bamfile.sq_text(generate.ODD_REFS),
                                               generate.ODD_REFS) + raw, 1)
        plan = self.plan(self.write("large.bam", data))
        self.assertIn(", bam, ", plan["input"][0])
        found = re.match(r"about ([\d.]+) MB, about (\d+) records", plan["uncompressed"][0])
        self.assertLess(abs(float(found.group(1)) - len(raw) / 1e6), len(raw) / 1e7)
        self.assertLess(abs(int(found.group(2)) - 150000), 15000)

    def test_plan_looks_at_the_first_input_that_has_records(self):
        header = self.write("header.sam", bamfile.read(self.source).text)
        out = ("-o", self.path("out.bam"))
        one, two = self.plan(*out, self.source), self.plan(*out, header, self.source)
        self.assertIn("2 files, the first one sam", two["input"][0])
        size = [float(plan["uncompressed"][0].split(" MB")[0].removeprefix("about "))
                for plan in (one, two)]
        self.assertLess(abs(size[0] - size[1]), size[0] / 10)

    def test_plan_of_a_spilled_sort_says_all(self):
        plan = self.plan("-o", self.path("out.bam"), self.source, budget=400_000)
        for key in ("temporary directory", "codec", "temporary space", "compaction", "merge"):
            self.assertIn(key, plan)
        self.assertRegex(plan["merge"][0], r"^[12] pass")
        self.assertRegex(plan["time"][0], r"^about [\d.]+ s \(load [\d.]+, merge [\d.]+\)$")

    def test_size_switches_compaction_on_in_the_plan(self):
        plan = self.plan("-s", "4M", self.source, budget=400_000)
        self.assertTrue(plan["compaction"][0].startswith("on, because -s was given"))
        self.assertTrue(plan["merge"][0].startswith("2 passes"))
        plan = self.plan("-s", "off", self.source, budget=400_000)
        self.assertTrue(plan["compaction"][0].startswith("off"))

    def test_plan_names_several_directories(self):
        for name in "ab":
            (self.work / name).mkdir()
        plan = self.plan("-T", self.path("a"), "-T", self.path("b") + "/", self.source,
                         budget=400_000)
        self.assertEqual([text.split(",")[0] for text in plan["temporary directory"]],
                         [self.path("a"), self.path("b")])
        for name in "ab":
            self.assertEqual(os.listdir(self.work / name), [])

    def test_plan_names_each_kind_of_input(self):
        plan = self.plan("-o", "x.bam", self.source, self.source)
        self.assertTrue(plan["input"][0].startswith("2 files"))
        self.assertRegex(plan["uncompressed"][0], r"^about [67]\.\d MB, about 3\d{4} records$")
        sam = self.write("in.sam", generate.reads(8000, generate.reference()))
        self.assertIn("16000 records", self.plan(sam)["uncompressed"][0])
        empty = self.write("empty.bam", bamfile.bgzf(bamfile.bam_header("", [])))
        self.assertEqual(self.plan(empty)["uncompressed"], ["nothing"])

    def test_pipe_is_not_read(self):
        data = bytes_of(self.source)
        plan = self.plan("-", stdin=data)
        self.assertIn("-s SIZE", plan["uncompressed"][0])
        self.assertIn("assumed", plan)
        fifo = self.path("fifo")
        os.mkfifo(fifo)
        self.assertTrue(stat.S_ISFIFO(os.stat(fifo).st_mode))
        self.assertIn("-s SIZE", self.plan(fifo)["uncompressed"][0])
        self.assertEqual(self.plan("-s", "2G", "-", stdin=data)["uncompressed"],
                         ["2.1 GB, from -s"])

    def test_wrong_input_is_an_error(self):
        self.assert_error(self.rocksort("--plan", self.path("nowhere.bam")), "nowhere.bam")
        self.assert_error(self.rocksort("--plan", "-T", self.path("no/where"), self.source,
                                        budget=400_000), "no/where")
        self.plan("-T", self.path("no/where"), self.source)
        self.assert_error(self.rocksort("--plan", self.write("x.bam", b"not a BAM")), "x.bam")

    def test_damaged_inputs_have_the_messages_of_a_sort(self):
        data = bytearray(bytes_of(self.source))
        data[len(data) // 2] ^= 255
        lines = bamfile.sq_text([("a", 900)]) + "q\t99\ta\t5\t9\t4M\t=\t50\t0\tACGT\t*\n"
        lie = bytearray(bamfile.record("liar", 0, 0, 5, "4M", "ACGT"))
        lie[4] = 77
        refs = [("a", 900)]
        self.write("block.bam", bytes(data))
        self.write("lie.bam", bamfile.bgzf(bamfile.bam_header(bamfile.sq_text(refs), refs)
                                           + bytes(lie)))
        self.write("line.sam", lines + "far\t0\ta\t3000000000\t9\t*\t*\t0\t0\t*\t*\n")
        self.write("mates.sam", lines)
        for args, mention in ((["block.bam"], "damaged: a BGZF block"),
                              (["lie.bam"], "record 1 of 'lie.bam' is damaged"),
                              (["line.sam"], "record 2 of 'line.sam' (read 'far') is damaged"),
                              (["--template-coordinate", "mates.sam"], "(read 'q')")):
            with self.subTest(args=args):
                told = [self.rocksort(*args), self.rocksort("--plan", *args)]
                self.assert_error(told[0], mention)
                self.assertEqual(*[own_lines(result.err) for result in told])


class Warnings(PlanTest):
    def test_too_little_space_is_warned_of(self):
        small = str(self.mount(self.work / "small", "1M"))
        plan = self.plan("-T", small, "-o", small + "/out.bam", self.source, budget=400_000)
        warnings = "\n".join(plan["warning"])
        self.assertIn(f"'{small}' is memory (tmpfs)", warnings)
        self.assertRegex(warnings, r"temporary data and output will need about [\d.]+ MB, but "
                         rf"file system '{small}' has [\d.]+ MB free")

    def test_space_of_the_second_output_is_planned(self):
        """Its size is said, and compared with its own disk, by the plan and by the sort."""
        source = self.bam_of(generate.reads(20000, generate.reference(n_bases=600000)))
        also = str(self.mount(self.work / "small", "1M")) + "/b.parquet"
        args = ["-u", "-o", self.path("a.bam"), "--also", also, source]
        plan = self.plan(*args)
        self.assertRegex(plan["also"][0], rf"^{also}, about \d\.\d MB$")
        words = "the output of --also will need about"
        self.assertIn(words, "\n".join(plan["warning"]))
        result = self.rocksort(*args)
        self.assertIn(words, result.err)
        self.assert_error(result, also, "No space left")
        self.assertFalse(os.path.exists(self.path("a.bam")))
        args[args.index(also)] = self.path("b.parquet")
        said = float(re.search(r"about ([\d.]+) MB", self.plan(*args)["also"][0]).group(1))
        self.sort_ok(*args)
        size = os.path.getsize(self.path("b.parquet")) / 1e6
        self.assertLess(abs(said - size), 0.35 * size)

    def test_sort_warns_of_the_same_disks_as_the_plan(self):
        needed = re.compile(r"temporary data will need about ([\d.]+) MB, but")
        # So few reads at a place that temporary data are compressed as well in small runs.
        source = self.bam_of(generate.reads(8000, generate.reference(n_bases=600000)))
        small = str(self.mount(self.work / "small", "16M"))
        out = ["-o", self.path("out.bam")]
        for codec in ("lz4", "none"):
            args = ["--temp-codec", codec, "-T", small + "/t", *out, source]
            subprocess.run(["mount", "-o", "remount,size=16M", small], check=True)
            written = float(CLOSING.search(self.sort_ok(*args, budget=1_000_000).err).group(3))
            for share in (0.35, 0.7, 1.5):
                with self.subTest(codec=codec, share=share):
                    subprocess.run(["mount", "-o", f"remount,size={int(share * written * 1e6)}",
                                    small], check=True)
                    plan = "\n".join(self.plan(*args, budget=1_000_000)["warning"])
                    result = self.rocksort(*args, budget=1_000_000)
                    said = [needed.findall(text) for text in (plan, result.err)]
                    if share > 1:
                        self.assertEqual(said, [[], []])
                        continue
                    self.assertEqual([len(sizes) for sizes in said], [1, 1], (plan, result.err))
                    for size in said:
                        self.assertLess(abs(float(size[0]) - written), 0.25 * written)

    def test_more_threads_and_memory_than_there_are_is_warned_of(self):
        plan = self.plan("-@", "1000", "--max-memory", "900T", self.source)
        warnings = "\n".join(plan["warning"])
        self.assertIn("1000 threads share ", warnings)
        self.assertIn("MiB of memory may be used, but only ", warnings)

    def test_no_warning_where_all_fits(self):
        self.assertNotIn("warning", self.plan("-@", "1", "--max-memory", "16M", self.source))


class Auto(PlanTest):
    """Values that -@ auto and --max-memory auto choose."""

    def one_cpu(self, *args):
        """The plan of a process that may use one CPU only."""
        cpu = min(os.sched_getaffinity(0))
        done = subprocess.run([SAMTOOLS, "rocksort", "--plan", *args], capture_output=True,
                              check=True, timeout=60, cwd=self.work,
                              env=environment(self.scratch),
                              preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
        return plan_lines(Result(done.returncode, done.stdout, done.stderr))

    def test_auto_follows_the_affinity(self):
        plan = self.one_cpu("-@", "auto", self.source)
        self.assertTrue(plan["threads"][0].startswith("1 (auto: 1 CPU "), plan["threads"])

    def test_auto_keeps_to_the_batch_system(self):
        slurm = {"SLURM_JOB_ID": "7", "SLURM_CPUS_PER_TASK": "1", "SLURM_MEM_PER_NODE": "400"}
        plan = self.plan("-@", "auto", "--max-memory", "auto", self.source, env=slurm)
        self.assertTrue(plan["threads"][0].startswith("1 (auto: "))
        self.assertEqual(plan["memory"], ["236 MiB (auto: three quarters of the 400 MiB by "
                                          "SLURM_MEM_PER_NODE)"])

    def test_memory_follows_threads_only_as_far_as_there_is_some(self):
        slurm = {"SLURM_JOB_ID": "7", "SLURM_MEM_PER_NODE": "400"}
        self.assertTrue(self.plan("-@", "auto", self.source, env=slurm)["memory"][0]
                        .startswith("236 MiB"))
        plan = self.plan("-@", "auto", "-m", "9M", self.source, env=slurm)
        threads = int(plan["threads"][0].split()[0])
        self.assertEqual(plan["memory"], [f"{9 * threads} MiB"])

    def test_auto_leaves_room_for_the_writer_of_the_pipe(self):
        data = bytes_of(self.source)
        plan = self.plan("-@", "auto", "--max-memory", "auto", "-", stdin=data)
        self.assertIn("feeds the pipe", plan["memory"][0])

    def test_auto_sorts_and_says_what_it_chose(self):
        """A sort with both options; --verbosity 4 says which values were chosen."""
        want = self.sort_bam("--no-PG", self.source)
        result = self.sort_ok("--no-PG", "-@", "auto", "--max-memory", "auto", "--verbosity", "4",
                              self.source)
        self.assert_same_bam(bamfile.parse_file(result.out), want)
        self.assertRegex(result.err, r"(1 thread|\d+ threads): \d+ CPU")
        self.assertRegex(result.err, r"\d+ MiB of memory: ")

    def test_auto_is_no_number(self):
        self.assert_error(self.rocksort("-@", "automatic", self.source), "-@", "auto")
        self.assert_error(self.rocksort("--max-memory", "autos", self.source), "--max-memory",
                          "auto")

    def test_kind_of_disk_is_in_the_details(self):
        result = self.sort_ok("--verbosity", "4", self.source, budget=400_000)
        lines = [line for line in own_lines(result.err) if "temporary disk: " in line]
        self.assertEqual(len(lines), 1)
