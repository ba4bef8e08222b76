#!/usr/bin/env python3
"""Kills sorts at random moments and finishes them: kill_sweep.py --program samtools-rocksort [-n N]

Each case starts a sort that spills, and kills it with SIGKILL after a random part of the time that
an undisturbed run takes. --clean then shows what is left. If this is a checkpoint, the case resumes
it; if --resume refuses it, the case starts the sort again. A third of the resumed runs are killed,
too, and resumed again. At the end the output must have the content of an undisturbed run, and no
temporary data may be left.

The kinds of sorts take turns: a file or a pipe as the input, several temporary directories,
compaction, an index, several inputs, other orders. Prints for each kind of sort what the kills
left. The exit status is 1 if any output is wrong.
"""

import argparse
import collections
import glob
import gzip
import io
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

try:
    import pysam
except ImportError:
    pysam = None

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "cli"))

import bamfile  # noqa: E402
import columns  # noqa: E402

# Name, input, options. T1 and T2 are temporary directories. Other formats than BAM are written under
# the name of a BAM, too.
KINDS = [
    ("file", "file", []),
    ("pipe", "pipe", []),
    ("two directories", "file", ["-T", "T1", "-T", "T2"]),
    ("compaction", "file", ["-s", "SIZE"]),
    ("index", "file", ["--write-index", "-T", "T1"]),
    ("pipe, kept", "pipe", ["-k", "-T", "T1", "-T", "T2"]),
    ("by name", "file", ["-n", "-@", "2"]),
    ("two inputs", "files", ["-T", "T1"]),
    ("pipe, compaction", "pipe", ["-s", "SIZE", "-@", "2"]),
    ("SAM", "file", ["-O", "sam", "-@", "2"]),
    ("CRAM", "file", ["-O", "cram,no_ref=1", "-@", "2"]),
    ("counts", "file", ["--flagstat", "out.bam.flagstat", "--idxstats", "out.bam.idxstats",
                        "--coverage", "out.bam.coverage", "-@", "2", "-T", "T1"]),
    ("mates", "file", ["--fixmate", "-@", "2", "-T", "T1"]),
    ("mates, two inputs", "files", ["--fixmate=-r", "-n"]),
    ("duplicates", "copies", ["--fixmate", "--markdup", "-@", "2", "-T", "T1", "-T", "T2"]),
    ("duplicates, tags", "copies", ["--fixmate", "--markdup=-S -t -d 2500 --duplicate-count",
                                    "--write-index", "-@", "2", "-T", "T1"]),
    # A tag that some reads have, and most of their mates do not.
    ("duplicates, barcodes", "copies", ["--fixmate", "--markdup=--barcode-tag SA", "-@", "2", "-T",
                                        "T1"]),
    # Nothing is kept of a merge: it is started again.
    ("merge", "sorted", ["--merge", "--write-index", "-@", "2"]),
    ("merge, duplicates", "sorted", ["--merge", "--markdup", "-@", "2"]),
    ("merge, copied", "pieces", ["--merge", "--write-index"]),
    ("groups", "file", ["--split-by", "contig", "-@", "2", "-T", "T1"]),
    ("groups, ranges", "pipe", ["--split-by", "ranges:7", "-@", "2", "-T", "T1", "-T", "T2"]),
    ("groups, rg", "copies", ["--split-by", "rg", "-n", "-@", "2"]),
    ("groups, merge", "sorted", ["--merge", "--split-by", "contig", "-@", "2"]),
    ("duplicates, kept", "copies", ["--fixmate", "--markdup=-r -t", "-k", "-@", "2"]),
]
if columns.pyarrow:
    KINDS += [
        ("columns", "file", ["-O", "arrow", "-@", "2", "-T", "T1"]),
        ("columns, Parquet", "file", ["-O", "parquet", "-n", "-@", "2", "-T", "T1"]),
        ("columns, stream", "pipe", ["-O", "arrows", "--columns", "XS:i,all", "-@", "2"]),
        ("columns, few", "pipe", ["-O", "arrow", "--columns", "pos,NM,tags", "-n", "-@", "2"]),
        ("columns, groups", "copies", ["-O", "arrow", "--fixmate", "--markdup", "--split-by", "rg",
                                       "-@", "2"]),
        ("columns, merge", "sorted", ["--merge", "-O", "arrow", "-@", "2"]),
        ("also", "file", ["--also", "out.bam.also.parquet", "--write-index", "-@", "2", "-T", "T1"]),
        ("also, merge", "sorted", ["--merge", "--also", "out.bam.also.arrow", "-@", "2"]),
    ]


class Wrong(Exception):
    """The sort of a case did not end as it should."""


class Sweep:
    """The working directory with inputs and outputs of undisturbed runs, and the counts."""

    def __init__(self, args, work):
        self.args, self.work = args, pathlib.Path(work)
        self.rng = random.Random(args.seed)
        self.counts = collections.Counter()
        self.outcomes = collections.Counter()
        self.env = {key: value for key, value in os.environ.items()
                    if not key.startswith("ROCKSORT_")}
        self.env.update(TMPDIR=str(self.work / "tmp"), LC_ALL="C",
                        ROCKSORT_TEST_BUDGET=str(args.memory), ROCKSORT_TEST_FILE="32K")
        for name in ("tmp", "T1", "T2", "want"):
            (self.work / name).mkdir()
        self.make_inputs()
        self.seconds = {}

    def make_inputs(self):
        """Makes in.bam, two other inputs with half of its records each, and copies.bam: its genome
        is so short that many pairs are duplicates."""
        n = self.args.records
        for name, count, seed, length in (("in.bam", n, 1, "3G"), ("a.bam", n // 2, 2, "3G"),
                                          ("b.bam", n // 2, 3, "3G"), ("copies.bam", n, 4, "100K")):
            subprocess.run([str(HERE.parent / "bench/simulate-reads"), "-n", str(count), "-s",
                            str(seed), "-L", length, "-O", "bam", "-o", str(self.work / name)],
                           check=True)
        self.make_sorted()

    def make_sorted(self):
        """Makes inputs of --merge: sorted ones, and pieces of one that follow each other and have
        indexes, so that their blocks are copied."""
        for i, name in enumerate(("in.bam", "a.bam", "b.bam")):
            self.run([self.args.program, "--no-PG", "--fixmate", "-o", f"sorted{i}.bam", name])
        whole = bamfile.read(str(self.work / "sorted0.bam"))
        records = bamfile.split(whole.records)
        third = (len(records) + 2) // 3
        for i in range(3):
            part = records[i * third : (i + 1) * third]
            (self.work / "raw.bam").write_bytes(bamfile.bam_file(whole.text, whole.refs, part))
            self.run([self.args.program, "--no-PG", "--write-index", "-o", f"piece{i}.bam",
                      "raw.bam"])

    def command(self, kind, options):
        size = str(400 * self.args.records)
        words = [size if word == "SIZE" else word for word in options]
        inputs = {"file": ["in.bam"], "pipe": ["-"], "files": ["a.bam", "b.bam"],
                  "copies": ["copies.bam"],
                  "sorted": ["sorted0.bam", "sorted1.bam", "sorted2.bam"],
                  "pieces": ["piece0.bam", "piece1.bam", "piece2.bam"]}[kind]
        # Blocks are copied only if nobody asks for another level.
        level = [] if kind == "pieces" else ["-l", "1"]
        output = "out.bam.%.bam" if "--split-by" in options else "out.bam"
        return [self.args.program, *words, *level, "-o", output, *inputs]

    def start(self, command):
        """Starts a command; if its input is `-`, feeds it through a pipe."""
        feeder = None
        if command[-1] == "-":
            feeder = subprocess.Popen(["cat", "in.bam"], cwd=self.work, stdout=subprocess.PIPE)
        env = self.env
        if "--merge" in command:        # it spills nothing, and refuses too little memory
            env = {**env, "ROCKSORT_TEST_BUDGET": "64M"}
        with open(self.work / "err", "wb") as err:
            process = subprocess.Popen(command, cwd=self.work, env=env, stderr=err,
                                       stdin=feeder.stdout if feeder else subprocess.DEVNULL)
        if feeder:
            feeder.stdout.close()
        return process, feeder

    def end(self, process, feeder):
        """Waits for the process and its feeder; returns the status and the messages."""
        status = process.wait(timeout=self.args.limit)
        if feeder:
            feeder.wait(timeout=self.args.limit)
        return status, (self.work / "err").read_text(errors="replace")

    def run(self, command):
        status, err = self.end(*self.start(command))
        if status:
            raise Wrong(f"exit {status}: {err}")

    def outputs(self):
        return sorted(glob.glob("out.bam*", root_dir=self.work))

    def prepare(self, number, kind, options):
        """Runs the sort undisturbed, and keeps its outputs and its time."""
        begin = time.monotonic()
        self.run(self.command(kind, options))
        self.seconds[number] = time.monotonic() - begin
        (self.work / "want" / str(number)).mkdir()
        for name in self.outputs():
            shutil.move(self.work / name, self.work / "want" / str(number) / name)
        self.clean()

    def checkpoints(self):
        """{directory: state} of the checkpoints that --clean lists."""
        found = {}
        self.unfinished = False
        for place in ("tmp", "T1", "T2", "."):
            done = subprocess.run([self.args.program, "--clean", place], cwd=self.work,
                                  env=self.env, capture_output=True, text=True, check=True,
                                  timeout=self.args.limit)
            for line in done.stdout.splitlines():
                self.unfinished |= line.startswith("unfinished")
                # Not: the second line of a checkpoint, and incomplete outputs.
                if not (line.startswith(("no ", " ", "unfinished")) or
                        line.endswith((".tmp", ".journal"))):
                    found[line.split(" MB ")[1].strip().split(" (")[0]] = line.split()[0]
        return found

    def clean(self):
        """Removes the checkpoints that are left."""
        for place in ("tmp", "T1", "T2", "."):
            subprocess.run([self.args.program, "--clean", place, "--yes"], cwd=self.work,
                           env=self.env, stdout=subprocess.DEVNULL, check=True,
                           timeout=self.args.limit)

    def kill(self, command, seconds):
        """Starts a command and kills it after a random part of seconds; returns whether it ended
        before that."""
        process, feeder = self.start(command)
        time.sleep(self.rng.random() * seconds * 1.05)
        process.send_signal(signal.SIGKILL)
        status, err = self.end(process, feeder)
        if status not in (0, -signal.SIGKILL):
            raise Wrong(f"exit {status}: {err}")
        return status == 0

    def refuses(self, checkpoint):
        """Whether --resume refuses a checkpoint, as it should."""
        done = subprocess.run([self.args.program, "--resume", checkpoint], cwd=self.work,
                              env=self.env, capture_output=True, text=True, check=False,
                              timeout=self.args.limit)
        return done.returncode == 1 and "cannot resume" in done.stderr

    def remove_outputs(self):
        """Removes all files that a sort has made, but not its temporary directories."""
        for name in self.outputs():
            if not (self.work / name).is_dir():
                os.unlink(self.work / name)

    def is_whole(self, number):
        """Whether all files of the output have their names."""
        want = set(os.listdir(self.work / "want" / str(number)))
        return self.is_split(number) and want <= set(self.outputs()) or (
            self.work / "out.bam").exists()

    @staticmethod
    def is_split(number):
        return "--split-by" in KINDS[number][2]

    def finish(self, number, kind, options):
        """Finishes a killed sort: resumes it, or starts it again; returns the state that was
        found."""
        checkpoints = self.checkpoints()
        # A sort that was killed while files got their names: what a checkpoint does not finish,
        # --clean does.
        if self.unfinished:
            self.outcomes["had some names"] += 1
        if self.unfinished and not {"complete", "resumable"} & set(checkpoints.values()):
            self.clean()
            checkpoints = self.checkpoints()
        elif self.unfinished:
            pass
        elif self.is_split(number) and (checkpoints or not self.is_whole(number)):
            self.remove_outputs()
        states = set(checkpoints.values())
        for state in ("complete", "resumable", "partial", "useless"):
            if state in states:
                break
        else:
            state = "nothing left"
        if state in ("complete", "resumable"):
            checkpoint = sorted(path for path, found in checkpoints.items() if found == state)[0]
            resume = [self.args.program, "--resume", checkpoint]
            if self.rng.random() < 0.33:
                self.outcomes["resumed, killed again"] += 1
                if not self.kill(resume, self.seconds[number]):
                    return self.finish(number, kind, options) and state
            else:
                self.run(resume)
            self.outcomes["resumed"] += 1
        else:
            for checkpoint in checkpoints:
                if not self.refuses(checkpoint):
                    raise Wrong(f"{checkpoint} ({checkpoints[checkpoint]}) was not refused")
            # With nothing left and an output, the sort was killed after the output was renamed.
            if state != "nothing left" or not self.is_whole(number):
                self.run(self.command(kind, options))
                self.outcomes["started again"] += 1
        return state

    def content(self, path):
        """Opens the content of an output: BAM is inflated, CRAM is read by the program itself, and
        columns become rows."""
        with open(path, "rb") as file:
            begin = file.read(4)
        if begin in (b"ARRO", b"PAR1", b"\xff\xff\xff\xff"):
            table = columns.read_table(path)
            return io.BytesIO(repr((table.schema, table.to_pylist())).encode())
        if begin == b"CRAM":
            plain = self.work / "plain.bam"
            subprocess.run([self.args.program, "--quiet", "--no-PG", "-n", "-O", "bam", "-o",
                            str(plain), str(path)], check=True, timeout=self.args.limit,
                           env={**self.env, "ROCKSORT_TEST_BUDGET": "1G"})
            path = plain.rename(self.work / f"plain-{path.parent.name}")
        return gzip.open(path) if begin[:2] == b"\x1f\x8b" or begin == b"CRAM" else open(path, "rb")

    def answers(self, index):
        """The counts of an index of out.bam, and the reads of some regions."""
        with pysam.AlignmentFile(self.work / "out.bam",
                                 index_filename=str(self.work / index)) as file:
            reads = [[(read.query_name, read.flag) for read in file.fetch(name, begin, begin + 50_000)]
                     for name, length in zip(file.references, file.lengths)
                     for begin in range(0, length, length // 8 + 1)]
            return file.get_index_statistics(), file.unmapped, reads

    def check_content(self, want, got):
        """Both have the same content; compared uncompressed, as the ends of BGZF blocks, and so
        the index, depend on timing."""
        if not got.exists():
            raise Wrong(f"no {got.name}")
        with self.content(want) as a, self.content(got) as b:
            same = True
            while same and (part := a.read(1 << 20)):
                same = part == b.read(1 << 20)
            if not same or b.read(1):
                raise Wrong(f"{got.name} differs")

    def check(self, number, state):
        """The output is that of an undisturbed run, and no other files are left."""
        want = self.work / "want" / str(number)
        for name in sorted(os.listdir(want)):
            if name.endswith((".bam", ".parquet", ".arrow")):
                self.check_content(want / name, self.work / name)
            elif self.is_split(number) and not (self.work / name).exists():
                raise Wrong(f"no {name}")
        # After a kill between the output and its index, without a checkpoint, it is missing.
        has_index = (self.work / "out.bam.csi").exists()
        if "out.bam.csi" in os.listdir(want) and not has_index and state != "nothing left":
            raise Wrong("no out.bam.csi")
        if has_index and pysam:
            pysam.index("-c", "-o", str(self.work / "csi"), str(self.work / "out.bam"))
            if self.answers("out.bam.csi") != self.answers("csi"):
                raise Wrong("out.bam.csi answers otherwise")
            with gzip.open(self.work / "csi") as a, gzip.open(self.work / "out.bam.csi") as b:
                # The index of copied blocks is made of those of the inputs: other bytes are right.
                if a.read() != b.read() and KINDS[number][1] != "pieces":
                    raise Wrong("out.bam.csi differs")
        for name in ("out.bam.flagstat", "out.bam.idxstats", "out.bam.coverage"):
            # After a kill between the output and its counts, without a checkpoint, they are missing.
            is_there = (self.work / name).exists()
            if name in os.listdir(want) and (is_there or state != "nothing left") and (
                    not is_there
                    or (want / name).read_bytes() != (self.work / name).read_bytes()):
                raise Wrong(f"{name} differs")
        left = [path for place in ("tmp", "T1", "T2") for path in (self.work / place).iterdir()]
        left += [self.work / name for name in self.outputs() if name not in os.listdir(want)]
        left += self.work.glob(".groups*")
        for path in left:
            # Two things may be left. A directory without a lock, if the sort was killed before it
            # could lock it: --clean removes it only after a minute. And an incomplete output, if
            # there was no checkpoint, which --clean removes: --resume would have removed it.
            if path.is_dir() and set(os.listdir(path)) <= {"LOCK.new"}:
                shutil.rmtree(path)
            elif path.name.endswith(".tmp") and state == "nothing left":
                self.clean()
                if path.exists():
                    raise Wrong(f"--clean does not find {path}")
            else:
                raise Wrong(f"left: {path}")

    def case(self, i):
        """Kills one sort, finishes it and checks the output."""
        number = i % len(KINDS)
        name, kind, options = KINDS[number]
        self.remove_outputs()
        if number not in self.seconds:
            self.prepare(number, kind, options)
        if self.kill(self.command(kind, options), self.seconds[number]):
            state = "had ended"
        else:
            state = self.finish(number, kind, options)
        self.clean()
        self.check(number, state)
        self.counts[name, state] += 1

    def summary(self):
        """Prints what was found after the kills."""
        states = ["nothing left", "useless", "resumable", "partial", "complete", "had ended"]
        print(f"{'killed':18}" + "".join(f"{state:>14}" for state in states))
        for name, _, _ in KINDS:
            row = [self.counts[name, state] for state in states]
            if sum(row):
                print(f"{name:18}" + "".join(f"{n:14}" for n in row))
        total = [sum(self.counts[name, state] for name, _, _ in KINDS) for state in states]
        print(f"{'all':18}" + "".join(f"{n:14}" for n in total))
        print(", ".join(f"{n} {what}" for what, n in sorted(self.outcomes.items())))


def main():
    """Runs the sweep of the command line and prints the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True, help="samtools-rocksort")
    parser.add_argument("-n", "--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--records", type=int, default=200000)
    parser.add_argument("--memory", type=int, default=4 << 20, help="budget in bytes")
    parser.add_argument("--limit", type=float, default=300, help="seconds for one run")
    args = parser.parse_args()
    args.program = str(pathlib.Path(args.program).resolve())
    print(f"kill sweep: {args.cases} cases, seed {args.seed}, {args.records} records")
    with tempfile.TemporaryDirectory(prefix="rocksort-kill-") as work:
        sweep = Sweep(args, work)
        for i in range(args.cases):
            try:
                sweep.case(i)
            except Wrong as wrong:
                print(f"case {i} ({KINDS[i % len(KINDS)][0]}, seed {args.seed}): {wrong}")
                return 1
        sweep.summary()
    print(f"all {args.cases} outputs are right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
