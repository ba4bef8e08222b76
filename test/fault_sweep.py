#!/usr/bin/env python3
"""Fails the calls of a small sort one at a time (reads, writes, allocations and others).

    build/venv/bin/python test/fault_sweep.py [--program PATH] [--library PATH] [--most N]
        [--kinds LIST] [--without LIST] [--scenarios LIST] [--part I/N] [--jobs J]

A preloaded library (test/fault/fault_inject.c) fails the n-th call of a kind. n goes over all calls
that a run makes. If a run makes more than --most calls, n goes over --most of them at equal
distances. Each run must end within --limit seconds, in one of two ways:

 - with exit status 0 and the right output (and index), and nothing else is left;
 - with exit status 1 and one message of ours. The output must be complete if it has its final name;
   what went to standard output must not look complete, unless it is.
   Files that are left must be named in a message. If the message names a checkpoint, --resume of it
   must give the right output.

Prints how many faults were injected, and each run that ended in another way, with the command that
repeats it. The exit status is 1 if there was such a run.
"""

import argparse
import collections
import concurrent.futures
import gzip
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import zlib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "cli"))

import bamfile  # noqa: E402
import columns  # noqa: E402
import generate  # noqa: E402
import templates  # noqa: E402

CRAM_END = bytes.fromhex("ee63014b")       # the last bytes of the marker of CRAM 3

ARROW_STREAM_END = bytes.fromhex("ffffffff00000000")

N_RECORDS = 6000
BUDGET = "300K"

# {kind of call: the ways in which it fails}.
ACTIONS = {
    "read": ("EIO", "short", "EINTR"), "pread": ("EIO", "short"),
    "write": ("ENOSPC", "EIO", "short", "EINTR"), "pwrite": ("ENOSPC",), "writev": ("ENOSPC",),
    "open": ("EMFILE", "EACCES"), "openat": ("EMFILE",), "fopen": ("EMFILE",),
    "fdopen": ("ENOMEM",),
    "close": ("EIO",), "fsync": ("EIO", "ENOSPC"), "fdatasync": ("EIO", "ENOSPC"),
    "sync_file_range": ("EIO",), "ftruncate": ("EIO",), "fallocate": ("ENOSPC",),
    "posix_fallocate": ("ENOSPC",), "rename": ("EIO",), "renameat2": ("EIO", "EINVAL"),
    "link": ("EIO", "EXDEV"),
    "unlink": ("EIO",), "unlinkat": ("EIO",), "mkdir": ("ENOSPC",), "mkdtemp": ("ENOSPC",),
    "rmdir": ("EIO",), "opendir": ("EMFILE",), "fdopendir": ("ENOMEM",), "readdir": ("EIO",),
    "stat": ("EIO",), "fstat": ("EIO",), "lstat": ("EIO",), "statvfs": ("EIO",), "fstatfs": ("EIO",),
    "fcntl": ("EIO",), "socketpair": ("EMFILE",), "realpath": ("ENOMEM",), "mmap": ("ENOMEM",),
    "malloc": ("ENOMEM",), "calloc": ("ENOMEM",), "realloc": ("ENOMEM",),
    "posix_memalign": ("ENOMEM",), "aligned_alloc": ("ENOMEM",), "strdup": ("ENOMEM",),
    "strndup": ("ENOMEM",), "pthread_create": ("EAGAIN",),
}

# `source` has the names of all inputs. With to_stdout standard output is redirected to the file of
# the output.
Scenario = collections.namedtuple("Scenario", "name source options budget to_stdout",
                                  defaults=(False,))
SCENARIOS = (
    Scenario("memory", "in.bam", ("-@", "2", "--write-index"), None),
    Scenario("spill", "in.bam", ("-@", "2", "--write-index", "-T", "{temp}"), BUDGET),
    Scenario("compact", "in.bam", ("-n", "-s", "1M", "-T", "{temp}", "-T", "{temp2}"), BUDGET),
    Scenario("fsync", "in.bam", ("--fsync", "--write-index", "-l", "1", "-T", "{temp}"), "1M"),
    Scenario("text", "in.sam", ("-O", "sam", "--temp-codec", "zstd", "-T", "{temp}"), BUDGET),
    Scenario("cram", "in.bam", ("-O", "cram,no_ref=1", "--write-index", "-T", "{temp}"), BUDGET),
    Scenario("gzip", "in.bam", ("-O", "sam.gz", "--write-index", "-@", "2"), None),
    Scenario("fixmate", "in.bam", ("--fixmate", "-@", "2", "-T", "{temp}"), BUDGET),
    Scenario("markdup", "copies.sam", ("--fixmate", "--markdup", "--write-index", "-@", "2",
                                       "-T", "{temp}", "-T", "{temp2}"), BUDGET),
    Scenario("markdup-tags", "copies.sam", ("--fixmate", "-@", "2", "-T", "{temp}",
                                            "--markdup=-S -t -d 2500 --duplicate-count"), BUDGET),
    Scenario("markdup-barcodes", "half.sam", ("--fixmate", "-@", "2", "-T", "{temp}",
                                              "--markdup=--barcode-tag RX --barcode-mismatches 1"),
             BUDGET),
    Scenario("counts", "in.bam", ("-@", "2", "-T", "{temp}", "--flagstat", "{out}/out.flagstat",
                                  "--idxstats", "{out}/out.idxstats", "--coverage",
                                  "{out}/out.coverage"), BUDGET),
    Scenario("merge", "sorted0.bam sorted1.bam sorted2.bam",
             ("--merge", "--write-index", "-@", "2"), None),
    Scenario("merge-markdup", "sorted0.bam sorted1.bam sorted2.bam",
             ("--merge", "--markdup", "-@", "2"), None),
    Scenario("merge-copy", "piece0.bam piece1.bam piece2.bam",
             ("--merge", "--write-index", "-@", "2"), None),
    Scenario("split", "in.bam", ("--split-by", "contig", "-@", "2", "-T", "{temp}"), BUDGET),
    Scenario("split-tag", "in.bam", ("--split-by", "tag:Xi", "-n", "-@", "2"), None),
    Scenario("split-ranges", "sorted0.bam sorted1.bam sorted2.bam",
             ("--merge", "--split-by", "ranges:3", "--fsync", "-@", "2"), None),
    Scenario("split-cram", "in.bam", ("--split-by", "contig", "-O", "cram,no_ref=1", "-@", "2"),
             None),
    Scenario("columns", "in.bam", ("-O", "arrow", "-@", "2", "-T", "{temp}"), BUDGET),
    Scenario("columns-parquet", "in.bam", ("-O", "parquet", "-@", "2", "-T", "{temp}"), BUDGET),
    Scenario("columns-merge", "sorted0.bam sorted1.bam sorted2.bam",
             ("--merge", "-O", "arrow", "-@", "2", "--columns", "all,Xi:i"), None),
    Scenario("columns-split", "in.bam", ("--split-by", "contig", "-O", "arrow", "-l", "3", "-@", "2",
                                         "--columns", "qname,pos,XI:i,tags"), None),
    Scenario("columns-stdout", "in.bam", ("-O", "arrow", "-@", "2", "-T", "{temp}"), BUDGET, True),
    Scenario("columns-also", "in.bam", ("--also", "{out}/out.also.parquet", "--write-index", "-@",
                                        "2", "-T", "{temp}"), BUDGET),
    Scenario("stdout", "in.bam", ("-@", "2", "-T", "{temp}"), BUDGET, True),
    Scenario("cram-stdout", "in.bam", ("-O", "cram,no_ref=1", "-@", "2"), None, True),
)


if not columns.pyarrow:
    SCENARIOS = tuple(one for one in SCENARIOS if not one.name.startswith("columns"))


class Sweep:
    """The settings, inputs, right outputs and counts of all runs."""

    def __init__(self, args, folder):
        self.args, self.folder = args, pathlib.Path(folder)
        self.tally = collections.Counter()  # (scenario, kind) -> points
        self.ends = collections.Counter()   # "right", "refused", "resumed", "bad"
        self.bad = []
        source = self.folder / "in.sam"
        source.write_text(generate.odd(N_RECORDS, seed=5))
        copies = templates.Molecules(5).sam(N_RECORDS)
        (self.folder / "copies.sam").write_text(copies)
        # Some reads lack the barcode that their mate has.
        lines = copies.splitlines(keepends=True)
        (self.folder / "half.sam").write_text("".join(
            re.sub(r"\tRX:Z:[^\t\n]*", "", line) if i % 3 == 0 else line
            for i, line in enumerate(lines)))
        self.run_plain("--no-PG", "--shuffle", "-o", self.folder / "in.bam", source)
        self.make_sorted()
        self.wanted, self.wanted_counts, self.wanted_also = {}, {}, {}

    def make_sorted(self):
        """Makes inputs of --merge: three of the same places, and three that follow each other and
        have indexes, so that their blocks are copied."""
        fixed = self.folder / "fixed.bam"
        self.run_plain("--no-PG", "--fixmate", "--write-index", "-o", fixed,
                       self.folder / "copies.sam")
        whole = bamfile.read(str(fixed))
        records = bamfile.split(whole.records)
        third = (len(records) + 2) // 3
        for i in range(3):
            for name, part in ((f"sorted{i}", records[i::3]),
                               (f"piece{i}", records[i * third : (i + 1) * third])):
                raw = self.folder / "raw.bam"
                raw.write_bytes(bamfile.bam_file(whole.text, whole.refs, part))
                self.run_plain("--no-PG", "--write-index", "-o", self.folder / f"{name}.bam", raw)

    def run_plain(self, *words):
        """Runs the program without faults; it must succeed."""
        subprocess.run([self.args.program, "--verbosity", "1", *map(str, words)], check=True,
                       env=self.environment(None))

    def environment(self, scenario, fault=None, report=None):
        env = {key: value for key, value in os.environ.items()
               if not key.startswith(("ROCKSORT_", "FAULT"))}
        env.update(LC_ALL="C", TMPDIR=str(self.folder), REF_PATH=":", REF_CACHE=":")
        if fault or report:
            env["LD_PRELOAD"] = self.args.library
            asan = "verify_asan_link_order=0:exitcode=77:allocator_may_return_null=1"
            env["ASAN_OPTIONS"] = asan + ":" + env.get("ASAN_OPTIONS", "")
        if fault:
            env["FAULT"] = fault
        if report:
            env["FAULT_REPORT"] = str(report)
        if scenario:
            env["ROCKSORT_TEST_BUDGET"] = scenario.budget or "100M"
            env["ROCKSORT_TEST_FILE"] = "32K"       # runs are several files
            env["ROCKSORT_TEST_DURABLE"] = "0"      # sync from the start
        return env

    def words(self, scenario, work):
        places = {"temp": str(work / "temp"), "temp2": str(work / "temp2"),
                  "out": str(work / "out")}
        options = [word.format(**places) for word in scenario.options]
        output = ["-o", str(self.output(scenario, work))]
        return [self.args.program, "--no-PG", "--verbosity", "1", *options,
                *([] if scenario.to_stdout else output),
                *(str(self.folder / name) for name in scenario.source.split())]

    def output(self, scenario, work):
        return work / "out" / self.output_name(scenario)

    def run_program(self, scenario, work, env):
        """Runs the scenario; returns what subprocess.run does."""
        path = self.output(scenario, work) if scenario.to_stdout else os.devnull
        with open(path, "wb") as stdout:
            return subprocess.run(self.words(scenario, work), stdout=stdout, env=env, check=False,
                                  stderr=subprocess.PIPE, timeout=self.args.limit)

    @staticmethod
    def output_name(scenario):
        """out.bam, out.cram, out.arrow, out.parquet, out.sam or out.sam.gz, or with --split-by
        the pattern out.%.bam."""
        formats = [word for word in scenario.options if word.startswith(
            ("cram", "sam", "arrow", "parquet"))]
        groups = "%." if "--split-by" in scenario.options else ""
        return "out." + groups + (formats[0].split(",")[0] if formats else "bam")

    @staticmethod
    def groups(out):
        """{name of a group: its path} of the output of --split-by."""
        before, after = out.name.split("%")
        return {path.name[len(before) : -len(after)]: path
                for path in out.parent.glob(f"{before}*{after}")}

    @classmethod
    def exists(cls, out):
        """Whether there is an output, or a group of one."""
        return bool(cls.groups(out)) if "%" in out.name else out.exists()

    def make_folder(self):
        work = pathlib.Path(tempfile.mkdtemp(dir=self.folder, prefix="run-"))
        for name in ("temp", "temp2", "out"):
            (work / name).mkdir()
        return work

    def content(self, path):
        """The content of an output, which does not depend on how it is cut into blocks; of groups,
        with the ends of the names of their indexes."""
        if "%" in path.name:
            return {name: (self.content(group),
                           [other.suffix for other in path.parent.glob(group.name + ".*")])
                    for name, group in self.groups(path).items()}
        if path.suffix == ".bam":
            return bamfile.read(str(path))
        if path.suffix == ".sam":
            return path.read_bytes()
        if path.suffix in (".arrow", ".parquet"):
            return self.rows(path)
        if path.suffix == ".gz":
            return gzip.decompress(path.read_bytes())
        plain = path.with_suffix(".again.bam")
        self.run_plain("--no-PG", "-n", "-O", "bam", "-o", plain, path)
        try:
            return bamfile.read(str(plain))
        finally:
            plain.unlink()

    @staticmethod
    def rows(path):
        """The rows of columns, which do not depend on how they are cut into batches."""
        table = columns.read_table(path)
        return table.schema.metadata, table.to_pylist()

    @staticmethod
    def counts_of(work):
        """{file name: text} of the counts that a run wrote, such as those of --flagstat."""
        return {path.name: path.read_text() for path in (work / "out").iterdir()
                if path.suffix in (".flagstat", ".idxstats", ".coverage")}

    def count_calls(self, scenario):
        """Runs the scenario without faults; returns the number of calls of each kind, and stores
        the right output in self.wanted."""
        work = self.make_folder()
        report = work / "report"
        done = self.run_program(scenario, work, self.environment(scenario, report=report))
        if done.returncode:
            raise SystemExit(f"fault_sweep: without faults: exit {done.returncode}: {done.stderr}")
        self.wanted[scenario.name] = self.content(self.output(scenario, work))
        self.wanted_counts[scenario.name] = self.counts_of(work)
        if "--also" in scenario.options:
            self.wanted_also[scenario.name] = self.rows(work / "out" / "out.also.parquet")[1]
        counts = dict(line.split() for line in report.read_text().splitlines())
        shutil.rmtree(work)
        return {kind: int(n) for kind, n in counts.items()}

    def run_with(self, scenario, kind, number, action):
        """Runs the scenario with one fault; returns how it ended, and what was wrong or None."""
        work = self.make_folder()
        fault = f"{kind}:{number}:{action}"
        try:
            done = self.run_program(scenario, work, self.environment(scenario, fault))
            err = done.stderr.decode(errors="replace")
            return self.judge(scenario, work, done.returncode, err)
        except subprocess.TimeoutExpired as late:
            return "bad", f"no end within {late.timeout:g} s"
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def judge(self, scenario, work, status, err):
        """Returns how a run ended ("right", "refused", "resumed" or "bad"), and why it is bad."""
        out = self.output(scenario, work)
        own = [line for line in err.splitlines()
               if re.match("samtools|rocksort", line) and ": warning:" not in line
               and "temporary files kept" not in line
               and "Assertion" not in line]  # RocksDB prints this before it aborts
        checkpoint = re.search(r"--resume '?([^\s';]+)", err)
        if scenario.to_stdout and status and not self.looks_complete(out):
            out.unlink()
        whole = self.exists(out) and self.is_right(scenario, out)
        if self.exists(out) and not whole:
            return "bad", f"exit {status}, the output is not the right one; {err[-600:]}"
        if not self.also_is_right(scenario, work, must_be=whole):
            return "bad", f"exit {status}, the second output is not the right one; {err[-600:]}"
        if status not in (0, 1):
            return "bad", f"exit {status}: {err[-600:]}"
        if status == 0 and not whole:
            return "bad", f"exit 0 without output; {err[-600:]}"
        if status == 0 and own or status == 1 and len(own) != 1:
            return "bad", f"exit {status}, {len(own)} messages: {err[-600:]}"
        if status == 0 and "--write-index" in scenario.options and not self.has_index(work, out):
            return "bad", f"exit 0 without index; {err[-600:]}"
        counts = self.counts_of(work)
        if (status == 0 and counts != self.wanted_counts[scenario.name]
                or counts.items() - self.wanted_counts[scenario.name].items()):
            return "bad", f"exit {status}, counts {counts}; {err[-600:]}"
        left = [path for name in ("temp", "temp2", "out") for path in (work / name).iterdir()
                if not path.name.startswith("out.") or path.name.endswith(".tmp")]
        kept = self.directories_of(checkpoint.group(1)) if checkpoint else []
        left = [path for path in left if path.name not in err and str(path) not in kept]
        if left:
            return "bad", f"exit {status}, left behind: {left}; {err[-600:]}"
        if status == 1 and checkpoint:
            return self.resume(scenario, checkpoint.group(1), work)
        return ("right" if status == 0 else "refused"), None

    @staticmethod
    def looks_complete(out):
        """Whether the output ends as a complete one does."""
        end = {".cram": CRAM_END, ".arrow": ARROW_STREAM_END}.get(out.suffix, bamfile.EOF_BLOCK)
        return out.read_bytes().endswith(end)

    def is_right(self, scenario, out):
        try:
            return self.content(out) == self.wanted[scenario.name]
        except (OSError, EOFError, ValueError, subprocess.SubprocessError, ArithmeticError):
            return False

    def also_is_right(self, scenario, work, must_be):
        """Whether the output of --also, if there is or must be one, has the right content."""
        also = work / "out" / "out.also.parquet"
        if "--also" not in scenario.options or not (must_be or also.exists()):
            return True
        return also.exists() and self.rows(also)[1] == self.wanted_also[scenario.name]

    @staticmethod
    def directories_of(checkpoint):
        """All directories of a checkpoint, from its file STORE."""
        text = pathlib.Path(checkpoint, "STORE").read_text(encoding="latin-1")
        return re.findall("\0path ([^\0]*)", text)

    @staticmethod
    def has_index(work, out):
        """Whether there is an index beside the output that is not empty."""
        return any(path.stat().st_size for path in (work / "out").iterdir()
                   if path != out and path.name.startswith(out.name + "."))

    def resume(self, scenario, checkpoint, work):
        """Resumes the checkpoint of a failed run, and judges the result as judge() does."""
        out = work / "out" / ("again." + self.output_name(scenario))
        done = subprocess.run([self.args.program, "--verbosity", "1", "--resume", checkpoint, "-o",
                               str(out)], stderr=subprocess.PIPE, check=False, text=True,
                              env=self.environment(None), timeout=self.args.limit)
        if (done.returncode or not self.is_right(scenario, out)
                or not self.also_is_right(scenario, work, must_be=True)):
            return "bad", f"--resume: exit {done.returncode}: {done.stderr[-600:]}"
        return "resumed", None

    def points(self, scenario, counts):
        """The faults of a scenario: (scenario, kind, number, action)."""
        for kind, actions in ACTIONS.items():
            n_calls = counts.get(kind, 0)
            if kind in self.args.without or self.args.kinds and kind not in self.args.kinds:
                continue
            for action in actions:
                n = min(n_calls, self.args.most)
                # Each action begins at another place, so that actions with few calls are spread
                # over all parts, too.
                part, parts = self.args.part
                begins = zlib.crc32(f"{scenario.name} {kind} {action}".encode()) + part - 1
                for i in range(begins % parts, n, parts):
                    yield scenario, kind, 1 + i * n_calls // n, action

    def sweep(self, scenarios):
        """Runs all points; returns whether all runs ended well."""
        with concurrent.futures.ThreadPoolExecutor(self.args.jobs) as pool:
            for scenario in scenarios:
                counts = self.count_calls(scenario)
                jobs = {pool.submit(self.run_with, *point): point
                        for point in self.points(scenario, counts)}
                for job in concurrent.futures.as_completed(jobs):
                    self.add(jobs[job], *job.result())
                    if len(self.bad) >= self.args.most_bad:
                        pool.shutdown(cancel_futures=True)
                        print(f"{len(self.bad)} runs ended badly: giving up")
                        return False
                if self.args.verbose:
                    self.print_scenario(scenario, counts)
        return not self.bad

    def add(self, point, end, problem):
        """Counts one run, and prints it if it ended badly."""
        scenario, kind, number, action = point
        self.tally[scenario.name, kind] += 1
        self.ends[end] += 1
        if problem is None:
            return
        self.bad.append(point)
        words = self.words(scenario, pathlib.Path("DIR"))
        budget = ("ROCKSORT_TEST_DURABLE=0 ROCKSORT_TEST_FILE=32K "
                  f"ROCKSORT_TEST_BUDGET={scenario.budget or '100M'} ")
        print(f"BAD {scenario.name} {kind}:{number}:{action}: {problem}\n"
              f"    LD_PRELOAD={self.args.library} FAULT={kind}:{number}:{action} "
              f"{budget}{shlex.join(words)}", flush=True)

    def print_scenario(self, scenario, counts):
        """Prints the number of runs and of calls of each kind."""
        kinds = [f"{kind} {self.tally[scenario.name, kind]}/{counts[kind]}"
                 for kind in ACTIONS if self.tally[scenario.name, kind]]
        print(f"{scenario.name}: runs/calls: {', '.join(kinds)}", flush=True)

    def summary(self):
        ends = ", ".join(f"{n} {end}" for end, n in sorted(self.ends.items()))
        return f"{sum(self.ends.values())} faults injected: {ends}"


def part_of(text):
    """(I, N) from the text "I/N", which means the I-th of N parts."""
    part, parts = map(int, text.split("/"))
    if not 1 <= part <= parts:
        raise ValueError(text)
    return part, parts


def parse_args(words=None):
    build = pathlib.Path(os.environ.get("ROCKSORT_BUILD_DIR", "."))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(build / "samtools-rocksort"))
    parser.add_argument("--library", default="build/fault_inject.so")
    parser.add_argument("--most", type=int, default=2000, metavar="N",
                        help="calls to fail of each kind, in each way, in each scenario")
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=[])
    # For builds with sanitizers: realloc,posix_memalign. The sanitizers handle these themselves.
    parser.add_argument("--without", type=lambda text: text.split(","), default=[])
    parser.add_argument("--scenarios", type=lambda text: text.split(","),
                        default=[scenario.name for scenario in SCENARIOS])
    parser.add_argument("--part", type=part_of, default=(1, 1), metavar="I/N",
                        help="run every N-th point; all N parts make the whole sweep")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=60, metavar="SECONDS", help="for one run")
    parser.add_argument("--most-bad", type=int, default=40, metavar="N",
                        help="give up after N bad runs")
    parser.add_argument("--quiet", dest="verbose", action="store_false")
    args = parser.parse_args(words)
    args.program = str(pathlib.Path(args.program).resolve())
    args.library = str(pathlib.Path(args.library).resolve())
    return args


def run(args, base=None):
    """Runs the sweep; returns the Sweep and whether all runs ended well."""
    base = base or ("/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    with tempfile.TemporaryDirectory(prefix="rocksort-fault-", dir=base) as folder:
        sweep = Sweep(args, folder)
        good = sweep.sweep([scenario for scenario in SCENARIOS if scenario.name in args.scenarios])
    return sweep, good


def main():
    sweep, good = run(parse_args())
    print(sweep.summary())
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
