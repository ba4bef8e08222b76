#!/usr/bin/env python3
"""Compares reports of a sort about its output with those of samtools 1.24 (pysam), byte for byte.

    build/venv/bin/python test/differential_counts.py [--program PATH] [--cases N] [--seed SEED]
        [--first N] [--keep DIR] [--kind stats]

Each case is drawn at random from the seed and its number: records, options of the report, the order
and the format of the output, a memory budget. The sort writes the report; the other program makes
its own of the sorted file. Cases that the other program refuses, as samtools stats does with a
mapped read without a CIGAR, are counted and not compared. A case with a difference is printed with
the first lines that differ; `--seed S --first N --cases 1` repeats it. The exit status is 1 if
there was any difference.
"""

import argparse
import collections
import contextlib
import difflib
import os
import pathlib
import random
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "cli"))

from harness import reference, text_of  # noqa: E402

MOST_DIFFERENCES = 10
BASES = "ACGT" * 12 + "NRYM=acgtn"
BARCODES = {"BC": "QT", "CR": "CY", "OX": "BZ", "RX": "QX"}


class Records:
    """Random records as SAM, with everything that samtools stats looks at."""

    def __init__(self, rng):
        self.rng = rng
        self.refs = [(f"chr{i}", rng.choice((200, 3000, 60000, 300000)))
                     for i in range(rng.choice((1, 2, 5)))]
        self.length = rng.choice((20, 36, 75, 150, 151, 301, 700, 9000))
        self.same_length = rng.random() < 0.5
        self.skip = rng.choice((0, 0, 50, 3000, 200000))
        self.best_qual = rng.choice((40, 41, 63, 64, 93))
        self.barcodes = rng.choice(((), (), ("BC",), ("RX", "CR"), tuple(BARCODES)))
        self.odd = rng.choice((0, 0.02, 0.3))
        self.groups = ("one", "two", "three")
        self.spread = rng.choice((1, 30, 1000))
        self.genome = {name: "".join(rng.choices("ACGTNacgt", (9, 9, 9, 9, 1, 1, 1, 1, 1), k=n))
                       for name, n in self.refs}

    def header(self):
        return ("@HD\tVN:1.6\n" + "".join(f"@SQ\tSN:{name}\tLN:{n}\n" for name, n in self.refs)
                + "".join(f"@RG\tID:{group}\tSM:s{i // 2}\n"
                          for i, group in enumerate(self.groups)))

    def cigar(self):
        """Returns a CIGAR, how many bases it has, and how many of the reference it covers."""
        rng = self.rng
        n = self.length if self.same_length else rng.randint(1, self.length)
        if rng.random() > self.odd + 0.1:
            return f"{n}M", n, n
        ops, covered, left, last = [], 0, n, ""
        while left > 0:
            op = rng.choice([op for op in "MMM=XIIDDNP" if op != last])
            size = rng.randint(1, max(1, min(left, n // 2) if op in "M=XI" else 9))
            if op == "N":
                size = rng.randint(1, self.skip or 1)
            ops.append(f"{size}{op}")
            left -= size if op in "M=XI" else 0
            covered += size if op in "M=XDN" else 0
            last = op
        for at in (0, len(ops)):
            if rng.random() < 0.3:
                size = rng.randint(1, 20)
                n += size
                ops.insert(at, f"{size}S")
            if rng.random() < 0.2:
                ops.insert(0 if at == 0 else len(ops), f"{rng.randint(1, 400)}H")
        if not any(op[-1] in "M=X" for op in ops):
            return self.cigar()
        return "".join(ops), n, covered

    def bases(self, n):
        return "".join(self.rng.choices(BASES, k=n))

    def quals(self, n):
        rng = self.rng
        if rng.random() < 0.05 + self.odd / 4:
            return "*"
        text = "".join(chr(33 + q) for q in rng.choices(range(self.best_qual + 1), k=n))
        return "I" if text == "*" else text

    def tags(self, n_ops):
        rng = self.rng
        tags = []
        if rng.random() < 0.8:
            tags.append(f"NM:i:{rng.choice((0, 1, 3, 300, n_ops))}")
        if rng.random() < 0.8:
            tags.append(f"RG:Z:{rng.choice(self.groups)}")
        for name in self.barcodes:
            n = rng.choice((8, 8, 8, 6, 17)) if self.odd else 8
            text = "".join(rng.choices("ACGTN", k=n))
            if rng.random() < 0.5:
                text = text[:4] + "-" + text[4:]
            if rng.random() < self.odd:
                text += rng.choice(("+A", "x", "-", ""))
            tags.append(f"{name}:Z:{text}")
            if rng.random() < 0.9:
                n = len(text) + (rng.random() < self.odd)
                tags.append(f"{BARCODES[name]}:Z:{'#' * (n - 1)}{chr(rng.randint(33, 73))}")
        rng.shuffle(tags)
        return tags

    def line(self, name, flag, places=None):
        rng = self.rng
        cigar, n, covered = self.cigar()
        ref, n_ref = places or rng.choice(self.refs)
        if covered >= n_ref:
            cigar, n, covered = "10M", 10, 10
        near = n_ref - covered if rng.random() < 0.5 else max(1, (n_ref - covered) // self.spread)
        pos = rng.randint(1, near)
        mate, mate_pos = rng.choice((("=", pos), ("=", rng.randint(1, n_ref)),
                                     (rng.choice(self.refs)[0], rng.randint(1, 200)), ("*", 0)))
        size = rng.choice((0, rng.randint(-500, 500), rng.randint(-20000, 20000)))
        if flag & 4:
            cigar = "*" if rng.random() < 0.8 else cigar
            if rng.random() < 0.3:
                ref, pos, mate, mate_pos = "*", 0, "*", 0
        seq, qual = self.bases(n), self.quals(n)
        if rng.random() < self.odd / 3:
            seq = qual = "*"
        fields = (name, flag, ref, pos, rng.choice((0, 1, 37, 60, 255)), cigar, mate, mate_pos,
                  size, seq, qual, *self.tags(len(cigar)))
        return "\t".join(map(str, fields)) + "\n"

    def flag(self):
        rng = self.rng
        if rng.random() < self.odd:
            return rng.randrange(0x1000)
        return rng.choice((0x63, 0x93, 0x53, 0xa3, 0x43, 0x83, 0x61, 0x91, 0, 0x10, 0x4, 0x4d, 0x8d,
                           0x45, 0x89, 0x463, 0x893, 0x163, 0x263))

    def sam(self, n):
        lines = []
        for i in range(n):
            name = f"q{self.rng.randint(0, n)}" if self.rng.random() < 0.7 else f"q{i}"
            lines.append(self.line(name, self.flag()))
        return self.header() + "".join(lines)

    def fasta(self):
        return "".join(f">{name}\n{text}\n" for name, text in self.genome.items())


class StatsCase:
    """Draws a case of --stats and compares its report."""

    command = "stats"

    def __init__(self, rng, folder):
        self.folder = folder
        self.records = Records(rng)
        self.by_coordinate = rng.random() < 0.85
        self.order = [] if self.by_coordinate else rng.choice((["-n"], ["-N"], ["-t", "RG"]))
        self.options = self.draw_options(rng)

    def draw_options(self, rng):
        """Words that both programs get."""
        some = (["-c", rng.choice(("0,20,3", "2,1000,7", "3,3,1", "1,10,100", "5,6,1"))], ["-d"],
                ["-f", rng.choice(("2", "PAIRED", "0"))], ["-F", rng.choice(("0x400", "SECONDARY"))],
                ["--GC-depth", rng.choice(("100", "1000", "1e4"))], ["-i", rng.choice(("0", "100"))],
                ["-I", rng.choice(("one", "s0", "s1"))], ["-l", str(self.records.length)],
                ["-m", rng.choice(("0.5", "1", "0"))], ["-q", rng.choice(("10", "30"))], ["-x"])
        words = [word for words in some if rng.random() < 0.12 for word in words]
        if self.by_coordinate and rng.random() < 0.2:
            words.append("-p")
        if self.by_coordinate and rng.random() < 0.25:
            words += ["-t", self.write("targets", self.targets(rng))]
            if rng.random() < 0.3:
                words += ["-g", rng.choice(("1", "4"))]
        if self.by_coordinate and rng.random() < 0.3:
            words += ["-r", self.write("ref.fa", self.records.fasta())]
        return words

    def targets(self, rng):
        places = sorted((name, rng.randint(1, n)) for name, n in self.records.refs
                        for _ in range(rng.choice((1, 3, 30))))
        return "#a comment\n" + "".join(
            f"{name}\t{at}\t{at + rng.choice((0, 20, 900))}\n" for name, at in places)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def difference(self, report, output):
        """Returns text about a difference, "", or None if samtools refuses the file."""
        want = self.folder / "want"
        if not reference("stats", *self.options, output, save_stdout=str(want)):
            return None
        texts = []
        for path in (want, report):
            lines = text_of(path, "latin-1").splitlines()
            texts.append([line for line in lines if "This file was produced by" not in line
                          and "The command line was" not in line])
        return "\n".join(list(difflib.unified_diff(*texts, "samtools", "rocksort", n=1,
                                                   lineterm=""))[:40])


KINDS = {"stats": StatsCase}


def try_case(args, number, folder):
    """Returns what happened and, if the reports differ, text about it."""
    rng = random.Random(f"{args.seed}:{number}")
    kind = rng.choice(args.kinds)
    case = KINDS[kind](rng, folder)
    n = rng.choice((0, 1, 20, 300, 300, 3000))
    sources = [case.write("in.sam", case.records.sam(n))]
    report, output = folder / "report", folder / f"out.{rng.choice(('bam', 'bam', 'sam'))}"
    request = " ".join(shlex.quote(word) for word in (*case.options, str(report)))
    command = [args.program, "--no-PG", *case.order, f"--{kind}={request}", "-o", str(output),
               "-@", rng.choice("1124"), "-l", "1"]
    env = dict(os.environ)
    if n > 0 and rng.random() < 0.2:
        sources = merged_sources(args, case, sources[0], folder)
        command.append("--merge")
    elif rng.random() < 0.7:
        env["ROCKSORT_TEST_BUDGET"] = str(rng.choice((200_000, 400_000, 1_000_000)))
    done = subprocess.run(command + sources, env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    said = f"{shlex.join(command + sources)}\n{done.stdout}"
    if done.returncode != 0:
        return "failed", said
    difference = case.difference(report, str(output))
    if difference is None:
        return "not compared", ""
    return ("different" if difference else "same"), f"{said}{difference}\n"


def merged_sources(args, case, source, folder):
    """Two sorted files that have the records of the source."""
    head, lines = [], []
    for line in pathlib.Path(source).read_text().splitlines(keepends=True):
        (head if line[0] == "@" else lines).append(line)
    paths = []
    for i in range(2):
        text = case.write(f"in{i}.sam", "".join(head + lines[i::2]))
        paths.append(str(folder / f"in{i}.bam"))
        subprocess.run([args.program, "--no-PG", *case.order, "-o", paths[-1], text],
                       check=True, stderr=subprocess.DEVNULL)
    return paths


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--program", default=str(HERE.parent / "samtools-rocksort"))
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--keep", help="a folder that keeps the files of cases with a difference")
    parser.add_argument("--kind", dest="kinds", action="append", choices=list(KINDS))
    args = parser.parse_args()
    args.kinds = args.kinds or list(KINDS)
    return args


def main():
    args = parse_args()
    results = collections.Counter()
    for number in range(args.first, args.first + args.cases):
        with contextlib.ExitStack() as stack:
            folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
            what, text = try_case(args, number, folder)
            results[what] += 1
            if what in ("failed", "different"):
                print(f"== case {number} of seed {args.seed}: {what}\n{text}", flush=True)
                if args.keep:
                    shutil.copytree(folder, f"{args.keep}/case-{number}", dirs_exist_ok=True)
        if results["failed"] + results["different"] == MOST_DIFFERENCES:
            break
    print(", ".join(f"{n} {what}" for what, n in sorted(results.items())), f"(seed {args.seed})")
    return 1 if results["failed"] + results["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
