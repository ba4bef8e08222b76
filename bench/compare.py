#!/usr/bin/env python3
"""Compares `samtools rocksort` with the other programs that sort BAM: time, memory, disk.

It runs rocksort and those of samtools, fgumi, sambamba, biobambam2's bamsort and picard that are
installed. All sort the same input by position with the same total memory, threads and level, in
turn, and in another order in each repeat. The input is read into the page cache before each run.
The table shows medians, and how many times as long as rocksort each program took. The same level
does not mean the same to all programs (compare the bytes written); fgumi is given the level of
libdeflate that htslib uses for the level.

    bench/compare.py --input in.bam --settings 1G:6
    bench/compare.py --records 2M --settings 64M:1,512M:1,512M:default,all:1
    bench/compare.py --reads a.bam b.bam --records 6M     real reads, tiled from these
    bench/compare.py --programs samtools,fgumi --json x.json --markdown x.md --plot x.png

SIZE takes K, M and G, powers of 1024. `all` is one and a half times the records' bytes: some
programs keep all in memory then. Programs that are not installed are named, with a command that
installs them.

Each result is checked with bench/bamcheck.py, which shares no code with the programs: it must be
complete and sorted, with as many records and the same content as the input. `rocksort
--checksum-only` compares the content once more. Results that are byte for byte the same are checked
once. As in bench.py a helper process touches as much memory as a run may need before the run
(`--cold-memory` leaves this out).

Tiled reads stay in --dir for the next benchmark. All other files but the tables go to a new
directory in --dir, which is removed at the end. Exit code: 0
if all results are right, 1 if one is not or if a program failed.
"""

import argparse
import collections
import hashlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
from bench_input import choose_input, said_of_input
from measure import (MIB, BenchError, cell, check_paths, checksum, commit, find_plotter, machine,
                     make_parser, medians_of, name_list, need_disk, parse_level, parse_positive,
                     parse_size, prepare, progress, room_for_run, run_main, run_measured,
                     said_of_run, write_json)
from peers import PROGRAMS, Job, codec_of, find_all, version_of

HERE = os.path.dirname(os.path.abspath(__file__))
DEFAULT_LEVEL = 6  # the default of rocksort, samtools and zlib

# The settings that all programs get at the same time. memory is in bytes.
Setting = collections.namedtuple("Setting", "name title memory level")

# ---- the command line ----


def parse_memory(text):
    """A number of bytes, or the word all."""
    return text if text == "all" else parse_size(text, ", nor `all`")


def parse_settings(text):
    pairs = []
    for pair in text.split(","):
        memory, colon, level = pair.partition(":")
        if not colon:
            raise argparse.ArgumentTypeError("%r is not MEMORY:LEVEL" % pair)
        pairs.append((parse_memory(memory), parse_level(level)))
    return pairs


def parse_arguments():
    parser = make_parser(__doc__, "2M")
    parser.add_argument("--settings", metavar="LIST", type=parse_settings, default="512M:1",
                        help="MEMORY:LEVEL of all programs, with commas between them [512M:1]")
    parser.add_argument("--threads", metavar="N", type=parse_positive, default=2,
                        help="threads of each program [2]")
    known = [program.name for program in PROGRAMS]
    parser.add_argument("--programs", metavar="LIST", type=name_list("program", known),
                        default=known, help="comma-separated, of %s [all]; rocksort is always there"
                        % ", ".join(known))
    parser.add_argument("--markdown", metavar="FILE",
                        help="also write the table and its notes to FILE")
    parser.add_argument("--plot", metavar="FILE", help="also draw a PNG")
    args = parser.parse_args()
    args.programs = [p for p in PROGRAMS if p.name in args.programs or p.name == "rocksort"]
    return args


def make_setting(memory, level, raw_bytes):
    where = "all"
    if memory == "all":
        memory = (raw_bytes * 3 // 2 // (64 * MIB) + 1) * 64 * MIB
        title = "all in memory (%d MiB)" % (memory // MIB)
    else:
        where = title = "%d MiB" % (memory // MIB) if memory >= MIB else "%d bytes" % memory
    return Setting("%s:%s" % (where.replace(" MiB", "M"), level),
                   "%s, %s" % ("default level" if level == "default" else "level " + level, title),
                   memory, DEFAULT_LEVEL if level == "default" else int(level))


def memory_of_run(setting, raw_bytes, source):
    """Bytes of memory that a run may need, with its files in the page cache. Temporary data are
    hardly smaller than the records. Some programs take a third more memory than they may."""
    output_bytes = raw_bytes if setting.level == 0 else os.stat(source).st_size
    return (min(setting.memory, raw_bytes * 2) * 4 // 3 + 128 * MIB
            + raw_bytes + output_bytes)


# ---- checking a result ----


def scan(path):
    """The result of bamcheck.py for a BAM. It runs in a child process: the memory measured for a
    program is never less than that of this process."""
    done = subprocess.run([sys.executable, "-B", os.path.join(HERE, "bamcheck.py"), path],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
    try:
        return json.loads(done.stdout)
    except ValueError as e:
        raise BenchError("bamcheck.py failed on %s" % path) from e


def compare_content(want, got, rewrites):
    """(what is wrong or None, how the content was compared)."""
    if "error" in got:
        return got["error"], None
    if got["records"] != want["records"]:
        return "%d records instead of %d" % (got["records"], want["records"]), None
    if got["first_unsorted"] is not None:
        return "not sorted: record %d comes before the one in front of it" % (
            got["first_unsorted"] + 1), None
    if got["sum"] == want["sum"]:
        if got["checksum"] != want["checksum"]:
            return "rocksort's checksum differs, bamcheck.py's does not", None
        return None, "content"
    if got["sum_less_bin"] == want["sum_less_bin"]:
        return None, "content but for the field bin, which it computes anew"
    if rewrites:
        return None, "number of records: " + rewrites
    return "as many records, but with other content", None


class Checker:
    """Compares outputs with the input. Remembers the digests of those that are right."""

    def __init__(self, rocksort, path):
        self.rocksort, self.right = rocksort, {}
        self.want = self.look(path)
        if "error" in self.want:
            raise BenchError("%s %s" % (path, self.want["error"]))

    def look(self, path):
        found = scan(path)
        return found if "error" in found else dict(
            found, checksum=checksum(self.rocksort, path, "--checksum-only"))

    def check(self, path, rewrites):
        """{"wrong": a message or None, "compared": how}."""
        with open(path, "rb") as f:
            digest = hashlib.file_digest(f, "blake2b").hexdigest()
        if digest not in self.right:
            wrong, compared = compare_content(self.want, self.look(path), rewrites)
            if wrong:
                return {"wrong": wrong, "compared": None}
            self.right[digest] = compared
        return {"wrong": None, "compared": self.right[digest]}


# ---- running ----


class Comparison:
    """The input, the programs and all measurements so far."""

    def __init__(self, args, scratch, source, programs, checker):
        self.args, self.scratch, self.source = args, scratch, source
        self.found, self.missing = programs
        self.checker = checker
        self.raw_bytes = checker.want["raw_bytes"]
        self.settings = [make_setting(memory, level, self.raw_bytes)
                         for memory, level in args.settings]
        self.runs = []
        self.codecs = {f.program.name: codec_of(f.program, f.words[0]) for f in self.found}

    def run_all(self):
        """Runs all settings. The programs run in turn, in another order in each repeat."""
        for setting in self.settings:
            broken = set()
            for repeat in range(self.args.repeats):
                at = repeat % len(self.found)
                turn = self.found[at:] + self.found[:at]
                for found in turn[::-1] if repeat % 2 else turn:
                    name = found.program.name
                    if name in broken:
                        continue  # the next repeat would fail, too
                    run = {"who": name, "point": setting.name, "repeat": repeat + 1}
                    run.update(self.run_once(found, setting))
                    self.runs.append(run)
                    if run["wrong"]:
                        broken.add(name)
                        progress("compare: %s: %s: WRONG: %s" % (setting.name, name, run["wrong"]))
                    else:
                        progress("compare: " + said_of_run(run, self.args.repeats))

    def run_once(self, found, setting):
        """Runs one program and checks its result. A failure is recorded as a result."""
        level = found.program.level(setting.level)
        touch = memory_of_run(setting, self.raw_bytes, self.source)
        with room_for_run(self.scratch) as room:
            job = Job(self.source, room.output, room.temp_dir, setting.memory, self.args.threads,
                      level, self.raw_bytes // max(1, self.checker.want["records"]))
            command = found.words + [str(word) for word in found.program.command(job)]
            result = {"command": shlex.join(command), "level_given": level}
            try:
                prepare(self.source, 0 if self.args.cold_memory else touch)
                result.update(run_measured(command, room))
                result.update(self.checker.check(room.output, found.program.rewrites))
                result["left_files"] = len(os.listdir(room.temp_dir))
                if result["left_files"] and found.program.name.startswith("rocksort"):
                    result["wrong"] = result["wrong"] or "left temporary files"
            except BenchError as e:
                result["wrong"] = "failed: %s" % e
        return result

    def measured(self, setting, name):
        """The runs of a program that have figures."""
        return [r for r in self.runs
                if r["who"] == name and r["point"] == setting.name and "wall_s" in r]

    def wrong(self, setting, name):
        """What was wrong with the runs of a program, or None."""
        return next((r["wrong"] for r in self.runs
                     if r["who"] == name and r["point"] == setting.name and r["wrong"]), None)


# ---- tables ----


def summary_of(comparison):
    """Rows with medians and ratios, one for each setting and program."""
    rows = []
    for setting in comparison.settings:
        base = comparison.measured(setting, "rocksort")
        base = medians_of(base) if base else None
        for found in comparison.found:
            name = found.program.name
            runs = comparison.measured(setting, name)
            row = {"point": setting.name, "title": setting.title, "who": name,
                   "wrong": comparison.wrong(setting, name), "repeats": len(runs),
                   "level_given": found.program.level(setting.level),
                   "memory_bytes": setting.memory}
            if runs:
                row.update(medians_of(runs), compared=runs[0].get("compared"),
                           wall_range_s=[min(r["wall_s"] for r in runs),
                                         max(r["wall_s"] for r in runs)])
                row["wall_ratio"] = row["wall_s"] / base["wall_s"] if base else None
                row["cpu_ratio"] = row["cpu_s"] / base["cpu_s"] if base else None
            rows.append(row)
    return rows


def report_of(comparison, said):
    """The content of the JSON file."""
    return {
        "commit": commit(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": machine(),
        "input": said,
        "threads": comparison.args.threads,
        "repeats": comparison.args.repeats,
        "free_memory": "as it comes" if comparison.args.cold_memory else "touched before each run",
        "programs": {f.program.name: {"command": shlex.join(f.words),
                                      "version": version_of(f.program, f.words),
                                      "codec": comparison.codecs[f.program.name],
                                      "memory": f.program.memory} for f in comparison.found},
        "missing": comparison.missing,
        "settings": [setting._asdict() for setting in comparison.settings],
        "summary": summary_of(comparison),
        "runs": comparison.runs,
    }


def first_line(text):
    return text.split("\n", 1)[0].replace("|", "\\|")


def table_row(row):
    if "wall_s" not in row:
        figures = ["-"] * 7
    else:
        wall = "%.2f" % row["wall_s"]
        if row["repeats"] > 1:
            wall += " (%.2f-%.2f)" % tuple(row["wall_range_s"])
        figures = [wall, cell("**%.2f**", row["wall_ratio"]), "%.2f" % row["cpu_s"],
                   cell("%.2f", row["cpu_ratio"]), "%.0f" % (row["rss_bytes"] / MIB),
                   "%.0f" % (row["temp_bytes"] / 1e6), "%.1f" % (row["output_bytes"] / 1e6)]
    result = "**WRONG**: " + first_line(row["wrong"]) if row["wrong"] else "ok"
    level = "default" if row["level_given"] is None else str(row["level_given"])
    return "| %s |" % " | ".join([row["title"], row["who"], level] + figures
                                 + [result])


def markdown_of(report, folder):
    """The lines of the Markdown file. The path folder, the scratch directory, is written as DIR."""
    yield ("Medians (and range) of %d runs each, the programs in turn, %d threads; ratios are to "
           "rocksort. MB are 10^6 bytes. Programs mean different things by the same level: see the "
           "output's size." % (report["repeats"], report["threads"]))
    yield ""
    yield ("| setting | program | level given | wall s | ratio | CPU s | ratio | peak RSS MiB "
           "| temporary MB | output MB | result |")
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    yield from map(table_row, report["summary"])
    yield ""
    for name, program in report["programs"].items():
        yield "- %s %s. Deflates with: %s. Memory: %s." % (
            name, program["version"], program["codec"], program["memory"])
    for name, install in report["missing"].items():
        yield "- %s is not installed: `%s`" % (name, install)
    notes = {(r["who"], r["compared"]) for r in report["summary"]
             if r.get("compared") not in (None, "content")}
    yield ("- Checked: every result is whole, sorted by position, and has the records of the input"
           + (", byte for byte." if not notes else ", byte for byte but for these:"))
    for who, how in sorted(notes):
        yield "  - %s: compared %s" % (who, how)
    for key, value in report["machine"].items():
        yield "- %s: %s" % (key, value)
    yield "- input: %s; free memory: %s" % (report["input"]["said"], report["free_memory"])
    yield "- commit %s, %s" % (report["commit"] or "(unknown)", report["date"])
    yield ""
    yield "Commands of the first setting:"
    yield ""
    for name in report["programs"]:
        command = next((r["command"] for r in report["runs"] if r["who"] == name), "")
        yield "    " + command.replace(folder, "DIR")


def write_report(report, folder, args):
    text = "\n".join(markdown_of(report, folder)) + "\n"
    print(text, end="")
    if args.markdown:
        with open(args.markdown, "w", encoding="utf-8") as f:
            f.write(text)
    write_json(report, args.json)
    python = find_plotter("compare") if args.plot else None
    if python:
        subprocess.run([python, "-B", os.path.join(HERE, "plot_peers.py"), args.plot],
                       input=json.dumps(report), check=True, universal_newlines=True)


# ---- main ----


def compare(args):
    programs = find_all("compare", args.programs, args)
    check_paths(args)
    with tempfile.TemporaryDirectory(prefix="rocksort-compare-", dir=args.dir) as scratch:
        chosen = choose_input("compare", args, scratch)
        checker = Checker(programs[0][0].words, chosen.path)
        want = checker.want
        need_disk(args.dir, want["raw_bytes"] * 2)
        comparison = Comparison(args, scratch, chosen.path, programs, checker)
        comparison.run_all()
        said = "%s (%.1f MB uncompressed)" % (said_of_input(chosen, want["records"]),
                                              want["raw_bytes"] / 1e6)
        report = report_of(comparison, dict(want, said=said))
    write_report(report, scratch, args)
    wrong = sorted({r["who"] for r in report["runs"] if r["wrong"]})
    if wrong:
        progress("compare: wrong results, or none, from: %s" % ", ".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(run_main("compare", lambda: compare(parse_arguments())))
