"""--flagstat, --idxstats and --coverage: byte for byte what samtools 1.24 prints of the output, in
every format, order and memory; and what becomes of the files when something fails.
"""

import os
import random
import re
import signal

import bamfile
import templates
from checkpoints import KilledTest
from harness import ROOT, CliTest, needs_pysam, reference, reference_ok, reference_view, text_of

SPILLING = 100_000
KINDS = ("flagstat", "idxstats", "coverage")
UNMAPPED = 0x4


def reference_text(command, *args):
    """What a command of the reference samtools prints."""
    out = f"{args[-1]}.{command}.want"
    if not reference(command, *args, save_stdout=out):
        raise AssertionError(f"the reference samtools failed: {command} {args}")
    text = text_of(out, "latin-1")
    os.unlink(out)
    return text


class Records:
    """Random records as SAM. They lie densely, so that they cover each other in every way."""

    def __init__(self, seed, refs, longest_skip=300, max_ops=6):
        self.rng = random.Random(seed)
        self.refs = refs
        self.longest_skip = longest_skip
        self.max_ops = max_ops

    def cigar(self):
        rng = self.rng
        ops, n_bases, last = [], 0, ""
        if rng.random() < 0.2:
            ops.append(f"{rng.randint(1, 5)}H")
        if rng.random() < 0.3:
            n_bases = rng.randint(1, 9)
            ops.append(f"{n_bases}S")
        for _ in range(rng.choice((1, 1, 1, 2, 3, self.max_ops))):
            op = rng.choice([op for op in "MMMM=XIDNP" if op != last])
            n = rng.randint(1, self.longest_skip if op == "N" else 30)
            ops.append(f"{n}{op}")
            n_bases += n if op in "M=XI" else 0
            last = op
        if rng.random() < 0.2:
            n = rng.randint(1, 9)
            n_bases += n
            ops.append(f"{n}S")
        # samtools 1.24 reads memory before a CIGAR that has one operation, D or N.
        if len(ops) == 1 and ops[0][-1] in "DN":
            return self.cigar()
        return "".join(ops), n_bases

    def line(self, number, places):
        rng = self.rng
        flag = rng.choice((0, 0x10, 0x63, 0x93, 0x1, rng.randrange(0x1000), rng.randrange(0x1000)))
        name, n_bases_of_ref = rng.choice(places) if places else ("*", 0)
        if not places or rng.random() < 0.1:
            name, pos, flag = "*", 0, flag | UNMAPPED
        else:
            pos = rng.randint(1, n_bases_of_ref)
        cigar, n_bases = self.cigar()
        if flag & UNMAPPED and rng.random() < 0.7:
            cigar = "*"
        if n_bases == 0 or rng.random() < 0.05:
            seq = qual = "*"
        else:
            seq = "".join(rng.choices("ACGTN", k=n_bases))
            qual = "*" if rng.random() < 0.1 else "".join(
                chr(rng.randint(34, 33 + rng.choice((40, 93)))) for _ in range(n_bases))
            qual = "!" + qual[1:] if qual[0] == "*" and n_bases == 1 and qual != "*" else qual
        mate = rng.choice(("=", "=", "*", rng.choice(self.refs)[0])) if self.refs else "*"
        mate = "*" if name == "*" and mate == "=" else mate
        return (f"q{number}\t{flag}\t{name}\t{pos}\t{rng.choice((0, 3, 4, 5, 60, 255))}\t{cigar}\t"
                f"{mate}\t{rng.randint(1, 50) if mate != '*' else 0}\t{rng.randint(-99, 99)}\t"
                f"{seq}\t{qual}")

    def sam(self, n):
        """n records; a third of the references has none."""
        places = [ref for ref in self.refs if self.rng.random() < 0.67]
        head = "@HD\tVN:1.6\n" + "".join(f"@SQ\tSN:{name}\tLN:{n}\n" for name, n in self.refs)
        return head + "".join(self.line(i, places) + "\n" for i in range(n))


def some_refs(n, longest, seed=0):
    rng = random.Random(seed)
    return [(f"chr{i}", rng.randint(1, longest)) for i in range(n)]


class CountsTest(CliTest):
    def options(self, kinds=KINDS):
        return [f"--{kind}={self.path(kind)}" for kind in kinds]

    def taken(self, kinds=KINDS):
        texts = {}
        for kind in kinds:
            texts[kind] = text_of(self.path(kind), "latin-1")
            os.unlink(self.path(kind))
        return texts

    def check(self, *args, out="out.bam", kinds=KINDS, **how):
        """Sorts with counts, and compares them with those of samtools."""
        out = self.path(out)
        self.sort_ok(*self.options(kinds), "-o", out, *args, **how)
        got = self.taken(kinds)
        same = out
        if out.endswith(".cram"):
            # Of CRAM samtools coverage reads no qualities, and takes 255 for each.
            same = self.path("same.bam")
            reference_ok("view", "-b", "--no-PG", "-o", same, out)
        for kind in kinds:
            want = reference_text(kind, same if kind == "coverage" else out)
            self.assertEqual(got[kind], want, f"{kind} {args}")
        return got


@needs_pysam
class LikeSamtools(CountsTest):
    def test_counts_of_random_records_are_those_of_samtools(self):
        for seed in range(9):
            refs = some_refs((1, 3, 40)[seed % 3], (300, 3000, 30000)[seed // 3 % 3], seed)
            sam = Records(seed, refs, (30, 300, 20000)[seed % 3]).sam((30, 700)[seed % 2])
            source = self.bam_of(sam) if seed % 2 else self.write("in.sam", sam)
            with self.subTest(seed=seed):
                self.check("-l", "1", source)
                self.check("-l", "1", "-@", "3", source, budget=SPILLING)

    def test_counts_do_not_depend_on_the_format(self):
        refs = some_refs(5, 2000)
        sam = Records(100, refs).sam(600)
        source = self.bam_of(sam)
        for out, budget in (("out.sam", None), ("out.sam.gz", SPILLING), ("out.bam", SPILLING)):
            with self.subTest(out=out):
                self.check("-@", "2", source, out=out, budget=budget)
        self.check("--write-index", source)

    def test_cram_is_counted_as_samtools_does(self):
        """CRAM cannot hold each record that the other formats can."""
        sam = Records(101, some_refs(5, 2000)).sam(600)
        lines = [line for line in sam.splitlines(keepends=True)
                 if line[0] == "@" or int(line.split("\t")[1]) & UNMAPPED == 0
                 and line.split("\t")[9] != "*"]
        lines += [f"u{i}\t4\t*\t0\t0\t*\t*\t0\t0\tACGT\tIIII\n" for i in range(9)]
        source = self.write("in.sam", "".join(lines))
        for budget in (None, SPILLING):
            self.check("--output-fmt-option", "no_ref=1", source, out="out.cram", budget=budget)

    def test_counts_are_those_of_fixed_records(self):
        for seed in range(2):
            sam = templates.Generator(seed, odd=0.2).sam(200)
            with self.subTest(seed=seed):
                self.check("--fixmate", self.write("in.sam", sam), budget=SPILLING)

    def test_flags_and_references_are_counted_in_any_order(self):
        sam = Records(102, some_refs(300, 2000)).sam(900)
        source = self.bam_of(sam)
        want = self.check(source, kinds=KINDS[:2])
        for order in (["-n"], ["-N"], ["-t", "RG"], ["--shuffle=5"]):
            for budget in (None, SPILLING):
                with self.subTest(order=order, budget=budget):
                    self.sort_ok(*self.options(KINDS[:2]), *order, "-o", self.path("out.bam"),
                                 "-@", "2", source, budget=budget)
                    self.assertEqual(self.taken(KINDS[:2]), want)
        self.check("-M", source)

    def test_more_references_than_a_worker_collects_are_counted(self):
        refs = some_refs(3000, 300)
        source = self.bam_of(Records(103, refs).sam(6000))
        want = self.check("-@", "2", source, budget=SPILLING)
        self.sort_ok("--shuffle=1", *self.options(KINDS[:2]), "-o", self.path("out.bam"), source)
        self.assertEqual(self.taken(KINDS[:2])["idxstats"], want["idxstats"])

    def test_input_without_records_is_counted(self):
        for sam in ("@HD\tVN:1.6\n", "@SQ\tSN:a\tLN:9\n@SQ\tSN:b\tLN:8\n",
                    "@HD\tVN:1.6\nr\t4\t*\t0\t0\t*\t*\t0\t0\tAC\tII\n"):
            with self.subTest(sam=sam):
                self.check(self.write("in.sam", sam))

    def test_long_cigars_are_counted(self):
        """CIGARs in the CG tag, alone and below a pile of short reads."""
        rng = random.Random(6)
        lines = ["@SQ\tSN:a\tLN:3000000\n@SQ\tSN:b\tLN:100000\n"]
        for i in range(3):
            cigar, n_bases = "", 0
            for _ in range(40000):
                n = rng.randint(1, 9)
                cigar += f"{n}M{rng.randint(1, 40)}{rng.choice('DN')}"
                n_bases += n
            lines.append(f"l{i}\t0\ta\t{1 + 1000 * i}\t9\t{cigar}\t*\t0\t0\t{'A' * n_bases}\t"
                         f"{'5' * n_bases}\n")
        for i in range(1500):
            lines.append(f"s{i}\t0\ta\t{rng.randint(1, 1500000)}\t60\t20M{rng.randint(1, 40000)}N"
                         f"30M\t*\t0\t0\t{'C' * 50}\t{'I' * 50}\n")
        source = self.bam_of("".join(lines))
        self.check(source)
        self.check("-@", "3", source, budget=SPILLING)

    def test_positions_that_only_bam_has_are_counted(self):
        refs = [("a", 100), ("b", 50), ("c", 70)]
        aux = b"RGZx\0"
        records = [
            bamfile.record("r1", 0, 1, -1, "10M", "A" * 10, aux),
            bamfile.record("r2", 0, 1, 45, "10M", "A" * 10, aux),
            bamfile.record("r3", 0, 1, 48, "1M5N4M", "A" * 5, aux),
            bamfile.record("r4", 0, 2, 90, "10M", "A" * 10, aux),
            bamfile.record("r5", 0, 0, 5, "", "A" * 10, aux),
            bamfile.record("r6", 0, -1, -1, "", "A" * 10, aux),
        ]
        header = bamfile.bam_header(bamfile.sq_text(refs), refs)
        source = self.path("in.bam")
        with open(source, "wb") as file:
            file.write(bamfile.bgzf(header + b"".join(records)))
        out = self.path("out.bam")
        self.sort_ok(*self.options(), "-o", out, source)
        got = self.taken()
        self.assertEqual(got["flagstat"], reference_text("flagstat", out))
        self.assertEqual(got["coverage"], reference_text("coverage", out))
        # With an index, samtools takes each read without a reference for unmapped.
        self.assertEqual(got["idxstats"],
                         "a\t100\t1\t0\nb\t50\t3\t0\nc\t70\t1\t0\n*\t0\t0\t1\n")

    def test_counts_of_real_files_are_those_of_samtools(self):
        bams = ROOT / "build" / "real-bams" / "bams"
        if not bams.is_dir():
            self.skipTest(f"no {bams}")
        n_compared = 0
        for path in sorted(bams.iterdir()):
            if path.suffix != ".bam" or path.stat().st_size > 1 << 20:
                continue
            with self.subTest(path=path.name):
                if self.is_strange(path):
                    continue
                self.check("-l", "1", str(path))
                n_compared += 1
        self.assertGreater(n_compared, 20)

    def is_strange(self, path):
        """True if samtools counts its records in a way of its own; see doc/samtools.md."""
        text = reference_view(path)
        strange = re.compile(r"[^@][^\t]*\t\d+\t[^\t]*\t"
                             r"(0\t\d+\t[^*]|\d+\t\d+\t(\d+[DN]\t|(\d+[MIDNSHP=X])*0[MIDN=X]))")
        return any(strange.match(line) for line in text.splitlines())


class Files(KilledTest):
    """Where counts are written, and when."""

    def setUp(self):
        super().setUp()
        self.out = self.path("out.bam")

    def some(self, n=300):
        return self.write("in.sam", Records(200, some_refs(4, 3000)).sam(n))

    def options(self):
        return [word for kind in KINDS for word in (f"--{kind}", self.path(kind))]

    def texts(self):
        found = {}
        for kind in KINDS:
            if os.path.exists(self.path(kind)):
                found[kind] = text_of(self.path(kind), "latin-1")
                os.unlink(self.path(kind))
        return found

    def left(self):
        return [name for name in os.listdir(self.work) if name.endswith(".tmp")]

    def test_older_counts_are_replaced_when_new_ones_are_complete(self):
        source = self.some()
        old = self.write("old", "old\n")
        os.symlink(old, self.path("link"))
        os.chmod(old, 0o640)
        self.sort_ok("--flagstat", self.path("link"), "-o", self.out, source)
        self.assertTrue(os.path.islink(self.path("link")))
        self.assertEqual(os.stat(old).st_mode & 0o777, 0o640)
        self.assertGreater(os.path.getsize(old), 400)

    def test_counts_may_go_to_standard_output(self):
        source = self.some()
        self.sort_ok(*self.options(), "-o", self.out, source)
        want = self.texts()
        for kind in KINDS:
            for name in ("-", "/dev/stdout"):
                result = self.sort_ok(f"--{kind}", name, "-o", self.out, source)
                self.assertEqual(result.out.decode(), want[kind])
        # The output goes to standard output, the counts elsewhere.
        got = self.sort_bam("--no-PG", *self.options(), source)
        self.assertGreater(len(got.records), 1000)
        self.assertEqual(self.texts(), want)

    def test_files_that_cannot_be_counts_are_refused(self):
        source, absent = self.some(), self.path("absent.bam")
        index = self.out + ".csi"
        os.symlink(self.out, self.path("link"))
        for kind in KINDS:
            for name, options in ((self.out, []), (index, ["--write-index"]), (source, []),
                                  (self.path("link"), []),
                                  (self.path("x"), ["--report", self.path("x")])):
                with self.subTest(kind=kind, name=name):
                    result = self.rocksort(f"--{kind}", name, *options, "-o", self.out, source)
                    self.assert_error(result, name, "is named for ", f" --{kind}")
            result = self.rocksort(f"--{kind}", "/no/where", "-o", self.out, absent)
            self.assert_error(result, "cannot create '/no/where'")
            result = self.rocksort(f"--{kind}", self.path("x"), "-o", self.out, absent)
            self.assert_error(result, "absent.bam")
            for options in ([], ["-o", "-"], ["-o", self.out, "--report", "-"]):
                with self.subTest(kind=kind, options=options):
                    self.assert_error(self.rocksort(f"--{kind}", "-", *options, source),
                                      f" and --{kind} would mix on standard output")
            for options in (["--checksum-only"], ["--verify"], ["--clean"]):
                with self.subTest(kind=kind, options=options):
                    self.assert_error(self.rocksort(f"--{kind}", self.path("x"), *options, source),
                                      "counts such as --flagstat go with a sort only")
        self.assert_error(self.rocksort("--flagstat", "-", "--idxstats", "-", "-o", self.out,
                                        source), "--flagstat and --idxstats would mix")
        self.assert_error(self.rocksort("--flagstat", self.path("x"), "--coverage",
                                        self.path("./x"), "-o", self.out, source),
                          "is named for --flagstat and for --coverage")
        for order in (["-n"], ["-t", "RG"], ["--shuffle"]):
            self.assert_error(self.rocksort("--coverage", self.path("x"), *order, "-o", self.out,
                                            source), "--coverage", "coordinate order")
        self.assertEqual(sorted(os.listdir(self.work)), ["in.sam", "link", "where"])

    def test_failed_sort_writes_no_counts(self):
        source = self.some(3000)
        with open(source, "a", encoding="ascii") as file:
            file.write("broken\n")
        self.write("flagstat", "old")
        result = self.rocksort(*self.options(), "-o", self.out, source, budget=SPILLING)
        self.assertEqual(result.status, 1)
        self.assertEqual(self.texts(), {"flagstat": "old"})
        self.assertEqual(self.left(), [])

    def test_output_stays_if_a_count_cannot_be_written(self):
        source = self.some()
        for kind in KINDS:
            result = self.rocksort(f"--{kind}", "/dev/full", "-o", self.out, source)
            self.assert_error(result, f"cannot write --{kind} to '/dev/full'", "No space left")
            self.assertTrue(bamfile.looks_complete(self.out))
            os.unlink(self.out)
            for fault in ("write:1:ENOSPC", "rename:1:EIO", "write:1:abort"):
                with self.subTest(kind=kind, fault=fault):
                    result = self.rocksort(f"--{kind}", self.path(kind), "-o", self.out, source,
                                           env=self.faulty(f"{fault}:{kind}"))
                    self.assertEqual(result.status, 1, result.err)
                    self.assertIn("" if "abort" in fault else kind, result.err)
                    self.assertEqual((self.texts(), self.left()), ({}, []))
                    self.assertTrue(bamfile.looks_complete(self.out))
                    os.unlink(self.out)

    def test_signal_leaves_no_counts(self):
        source = self.some(20000)
        fifo = self.path("fifo")
        os.mkfifo(fifo)
        process = self.start("-u", *self.options(), "-o", fifo, source)
        with open(fifo, "rb") as pipe:
            self.assertTrue(pipe.read(100))
            process.send_signal(signal.SIGTERM)
            self.assert_died_of(process, signal.SIGTERM)
        self.assertEqual((self.texts(), self.left()), ({}, []))

    @needs_pysam
    def test_resumed_sort_counts_all_records(self):
        source = self.bam_of(Records(201, some_refs(4, 3000)).sam(20000))
        self.sort_ok("--no-PG", *self.options(), "-o", self.out, source, budget=SPILLING)
        want = self.texts()
        for place, options in ((self.work, []), (self.where, []),
                               (self.where, ["--idxstats", self.path("other")])):
            with self.subTest(options=options):
                checkpoint = self.killed("link:4:kill:.sst", "--flagstat", "flagstat",
                                         "--idxstats", "idxstats", "--coverage", "coverage",
                                         "-o", self.out, source, budget=SPILLING)
                self.assertEqual(self.texts(), {})
                self.resume(checkpoint, *options, cwd=place, budget=SPILLING)
                if options:
                    self.assertFalse(os.path.exists(self.path("idxstats")))
                    os.rename(self.path("other"), self.path("idxstats"))
                self.assertEqual(self.texts(), want)
        # Also from a checkpoint that has all runs, and with a new file.
        checkpoint = self.fails_in_merge("--flagstat", "flagstat", source, budget=SPILLING)
        self.resume(checkpoint, "--coverage", "coverage", "-o", self.out, budget=SPILLING)
        self.assertEqual(self.texts(), {kind: want[kind] for kind in ("flagstat", "coverage")})
        # In another order there is no coverage.
        checkpoint = self.fails_in_merge("-n", source, budget=SPILLING)
        self.refused(checkpoint, "--coverage", options=["--coverage", self.path("x")])
