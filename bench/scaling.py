#!/usr/bin/env python3
"""Measures how rocksort and other programs that sort BAM scale with the number of threads.

Each program sorts the same input at each number of threads; the memory in all stays the same. The
first table shows wall clock, CPU, memory, how many cores were busy, the speed-up, the efficiency
(speed-up / threads) and how many times as long as rocksort each program took.

The second table shows rocksort's CPU time by the role of its threads, in seconds per million
records, for the two phases of a sort: loading, until the thread `writer` starts, and merging. A
role is the thread's name (`top -H` shows it): `worker` is the pool, whose number -@ gives, and
`main` reads while loading and dispatches while merging. Work of the pool can be shared by any
number of cores, that of another thread cannot. So the busiest thread outside the pool is the serial
bound: no number of cores makes a phase shorter than its CPU time. The CPU time of all threads
divided by that of this one says how many cores the program can use at most. The bound needs no
machine with many cores; a measurement does.

    bench/scaling.py                                   1, 2, 4 ... threads, as many as cores
    bench/scaling.py --threads 1,8,16 --settings 4G:1,4G:default,all:0 --records 24M
    bench/scaling.py --input in.bam --json scaling.json
    bench/scaling.py --reads a.bam b.bam --records 24M        real reads, tiled from these

SIZE takes K, M and G, powers of 1024. `all` is one and a half times the records' bytes. Level 0 is
-u. Settings come one after the other; within one, the largest number of threads comes first, and
the programs run in turn. Tiled reads stay in --dir for the next benchmark.

CPU times of threads come from /proc every 50 ms; what a thread did after the last look is in the
row `not seen`. Of each program and setting the first result is checked by `rocksort
--checksum-only` and, if the program orders reads of one position by strand as samtools does, by
`--verify`. The input is read into the page cache before each run. All other files go to a new
directory in --dir, which is removed at the end. Exit code: 0 if all runs worked, otherwise 1.
"""

import collections
import os
import shlex
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
from compare import make_setting, memory_of_run, parse_settings
from bench_input import choose_input, said_of_input
from measure import (MIB, TICK_S, BenchError, Watch, cell, check_paths, checksum, commit, count,
                     in_turn, machine, make_parser, medians_of, name_list, need_disk,
                     parse_positive, prepare, progress, read_text, room_for_run, run_main,
                     run_measured, said_of_run, usable_cores, write_json)
from peers import PROGRAMS, Job, find_all, version_of

POOL = "worker"
# Programs whose order `rocksort --verify=coordinate` accepts: at one position by strand.
ORDER_BY_STRAND = ("rocksort", "rocksort-auto", "samtools", "fgumi", "mako")
PHASES = ("load", "merge")

# A phase of one run. roles: {role: (CPU s, of these in the kernel)}; busiest and busiest_s: the
# thread outside the pool with the most CPU.
Phase = collections.namedtuple("Phase", "wall_s cpu_s roles busiest busiest_s")


# ---- the command line ----


def powers_of_two(most):
    """1, 2, 4 ... and `most`."""
    return sorted({most} | {1 << i for i in range(most.bit_length()) if 1 << i <= most})


def parse_threads(text):
    return sorted({parse_positive(word) for word in text.split(",")})


def parse_arguments():
    parser = make_parser(__doc__, "6M")
    parser.set_defaults(repeats=1)
    parser.add_argument("--threads", metavar="LIST", type=parse_threads,
                        default=powers_of_two(usable_cores()),
                        help="numbers of threads [1, 2, 4 ... as many as there are cores]")
    parser.add_argument("--settings", metavar="LIST", type=parse_settings,
                        default=parse_settings("512M:1,512M:default,all:1"),
                        help="memory in all and level, MEMORY:LEVEL,... "
                        "[512M:1,512M:default,all:1]")
    known = [program.name for program in PROGRAMS]
    parser.add_argument("--programs", metavar="LIST", type=name_list("program", known),
                        default=["rocksort", "samtools", "fgumi"],
                        help="of %s [rocksort,samtools,fgumi]; rocksort is always there"
                        % ", ".join(known))
    parser.add_argument("--markdown", metavar="FILE", help="also write the tables to FILE")
    return parser.parse_args()


# ---- threads of a running program ----


def read_threads(pid):
    """{thread id: (name, user s, kernel s)} of a process. Threads may end meanwhile."""
    threads = {}
    folder = "/proc/%d/task" % pid
    try:
        for task in os.listdir(folder):
            try:
                text = read_text("%s/%s/stat" % (folder, task))
            except OSError:
                continue
            name = text[text.index("(") + 1:text.rindex(")")]
            words = text[text.rindex(")") + 1:].split()
            threads[int(task)] = (name, int(words[11]) * TICK_S, int(words[12]) * TICK_S)
    except (OSError, ValueError, IndexError):
        pass
    return threads


class ThreadWatch(Watch):
    """Also watches the CPU time of each thread.

    `threads` has the last figures of each thread that ever was, `loaded` those at the moment when
    the first thread of the name `writer` was seen, or None.
    """

    def __init__(self, folder):
        super().__init__(folder)
        self.start_s = time.monotonic()
        self.threads, self.loaded = {}, None
        self.loaded_s = 0.0

    def look(self):
        super().look()
        if not self.pid:
            return
        threads = read_threads(self.pid)
        if self.loaded is None and any(name == "writer" for name, _, _ in threads.values()):
            self.loaded = dict(self.threads)
            self.loaded_s = time.monotonic() - self.start_s
        self.threads.update(threads)

    def phases(self, wall_s, cpu_s):
        """{phase: Phase} of a rocksort that has ended, or {} if threads could not be seen."""
        if self.loaded is None or len({name for name, _, _ in self.threads.values()}) < 2:
            return {}
        nothing = ("", 0.0, 0.0)
        parts = {phase: {} for phase in PHASES}
        for task, (name, user, kernel) in self.threads.items():
            role = "main" if task == self.pid else name
            _, user_before, kernel_before = self.loaded.get(task, nothing)
            parts["load"][task] = (role, user_before + kernel_before, kernel_before)
            parts["merge"][task] = (role, user + kernel - user_before - kernel_before,
                                    kernel - kernel_before)
        phases = {"load": make_phase(self.loaded_s, parts["load"].values()),
                  "merge": make_phase(wall_s - self.loaded_s, parts["merge"].values())}
        unseen = max(0.0, cpu_s - sum(phase.cpu_s for phase in phases.values()))
        phases["merge"].roles["not seen"] = (unseen, 0.0)
        return phases


def make_phase(wall_s, threads):
    """threads: (role, CPU s, of these in the kernel) of each thread."""
    roles = {}
    for role, cpu, kernel in threads:
        before = roles.get(role, (0.0, 0.0))
        roles[role] = (before[0] + cpu, before[1] + kernel)
    busiest_s, busiest = max(((cpu, role) for role, cpu, _ in threads
                              if role != POOL and cpu > 0),
                             default=(0.0, "main"))
    return Phase(wall_s, sum(cpu for cpu, _ in roles.values()), roles, busiest, busiest_s)


# ---- running ----


class Scaling:
    """The input, the programs and all measurements so far."""

    def __init__(self, args, scratch, source, found, counted):
        self.args, self.scratch, self.source, self.found = args, scratch, source, found
        self.want, self.records, self.raw_bytes = counted
        self.settings = [make_setting(memory, level, self.raw_bytes)
                         for memory, level in args.settings]
        self.runs, self.checked = [], set()

    def run_all(self, after_each):
        names = {found.program.name: found for found in self.found}
        for setting in self.settings:
            for n_threads in reversed(self.args.threads):
                for repeat, name in in_turn(list(names), self.args.repeats):
                    run = {"who": name, "point": setting.name, "threads": n_threads,
                           "repeat": repeat, **self.run_once(names[name], setting, n_threads)}
                    self.runs.append(run)
                    progress("scaling: -@ %-3d%s" % (n_threads,
                                                     said_of_run(run, self.args.repeats)))
                    after_each()

    def run_once(self, found, setting, n_threads):
        level = found.program.level(setting.level)
        with room_for_run(self.scratch) as room:
            job = Job(self.source, room.output, room.temp_dir, setting.memory, n_threads, level,
                      self.raw_bytes // max(1, self.records))
            command = found.words + [str(word) for word in found.program.command(job)]
            prepare(self.source, 0 if self.args.cold_memory
                    else memory_of_run(setting, self.raw_bytes, self.source))
            watch = ThreadWatch(room.temp_dir)
            result = run_measured(command, room, watch)
            self.check(found.program.name, setting, room.output)
        phases = {}
        if found.program.name == "rocksort":
            phases = watch.phases(result["wall_s"], result["cpu_s"])
        result.update(command=shlex.join(command), level_given=level,
                      phases={name: phase._asdict() for name, phase in phases.items()})
        return result

    def check(self, name, setting, output):
        """Checks the first result of a program at a setting."""
        if (name, setting.name) in self.checked:
            return
        how = ["--verify=coordinate", "--checksum"] if name in ORDER_BY_STRAND else \
            ["--checksum-only"]
        got = checksum(self.found[0].words, output, *how)
        if got != self.want:
            raise BenchError("%s's result is wrong: %s, but the input has %s"
                             % (name, got, self.want))
        self.checked.add((name, setting.name))


# ---- tables ----


def summary_of(scaling):
    """Rows with medians, one for each setting, number of threads and program."""
    rows = []
    for setting in scaling.settings:
        medians = {}
        for n_threads in scaling.args.threads:
            for found in scaling.found:
                runs = [r for r in scaling.runs if (r["point"], r["threads"], r["who"])
                        == (setting.name, n_threads, found.program.name)]
                if runs:
                    medians[n_threads, found.program.name] = medians_of(runs)
        for (n_threads, name), m in medians.items():
            least = min(n for n, who in medians if who == name)
            efficiency = medians[least, name]["wall_s"] * least / (m["wall_s"] * n_threads)
            ours = medians.get((n_threads, "rocksort"))
            rows.append(dict(m, point=setting.name, threads=n_threads, who=name,
                             cores_busy=m["cpu_s"] / m["wall_s"], least_threads=least,
                             speed_up=efficiency * n_threads, efficiency=efficiency,
                             wall_ratio=m["wall_s"] / ours["wall_s"] if ours else None,
                             cpu_ratio=m["cpu_s"] / ours["cpu_s"] if ours else None))
    return rows


def summary_table(rows):
    yield ("| threads | program | wall s | ratio | CPU s | ratio | cores busy | speed-up "
           "| efficiency | peak RSS MiB | temporary MB | output MB |")
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|"
    for row in rows:
        yield "| %d | %s | %.2f | %s | %.2f | %s | %.1f | %.1f | %.2f | %.0f | %.0f | %.0f |" % (
            row["threads"], row["who"], row["wall_s"], cell("%.2f", row["wall_ratio"]),
            row["cpu_s"], cell("%.2f", row["cpu_ratio"]), row["cores_busy"], row["speed_up"],
            row["efficiency"], row["rss_bytes"] / MIB, row["temp_bytes"] / 1e6,
            row["output_bytes"] / 1e6)


def runs_with_phases(runs, point):
    """{threads: the phases of rocksort's first run there}, in order of threads."""
    found = {}
    for run in sorted(runs, key=lambda run: run["threads"]):
        if run["point"] == point and run["phases"]:
            found.setdefault(run["threads"], {name: Phase(**phase)
                                              for name, phase in run["phases"].items()})
    return found


def role_table(runs, records):
    """CPU seconds per million records of each role. runs: by runs_with_phases."""
    millions = records / 1e6
    yield "| phase | role |%s |" % " |".join(" -@ %d" % n for n in runs)
    yield "|---|---%s|" % ("|---" * len(runs))
    for phase in PHASES:
        yield "| %s | wall s |%s |" % (phase, " |".join(
            " %.2f" % phases[phase].wall_s for phases in runs.values()))
        roles = {role: cpu for phases in runs.values()
                 for role, (cpu, _) in phases[phase].roles.items()}
        for role in sorted(roles, key=roles.get, reverse=True):
            figures = []
            for phases in runs.values():
                cpu, kernel = phases[phase].roles.get(role, (0.0, 0.0))
                figures.append(" %.3f (%.3f)" % (cpu / millions, kernel / millions))
            if any(not figure.startswith(" 0.000") for figure in figures):
                yield "| %s | %s |%s |" % (phase, role, " |".join(figures))


def bound_of(phases, records):
    """{phase or "whole sort": {thread, CPU s per million records, cores that it is worth}}."""
    bounds = {}
    for name in PHASES:
        phase = phases[name]
        bounds[name] = {"thread": phase.busiest, "serial_s": phase.busiest_s, "cpu_s": phase.cpu_s}
    bounds["whole sort"] = {"thread": " and ".join(bounds[name]["thread"] for name in PHASES),
                            **{key: sum(bounds[name][key] for name in PHASES)
                               for key in ("serial_s", "cpu_s")}}
    for bound in bounds.values():
        bound["serial_s_per_million"] = bound["serial_s"] / (records / 1e6)
        bound["cores"] = bound["cpu_s"] / bound["serial_s"] if bound["serial_s"] > 0 else None
    return bounds


def bound_lines(runs, records):
    for n_threads, phases in runs.items():
        for name, bound in bound_of(phases, records).items():
            yield ("- serial bound at -@ %d, %s: %s, %.3f CPU s per million records, worth %s "
                   "cores" % (n_threads, name, bound["thread"], bound["serial_s_per_million"],
                              cell("%.1f", bound["cores"])))


def text_of(report):
    yield ("Medians of %d runs each; ratios are to rocksort. The efficiency of the least number of "
           "threads is taken as 1. The memory in all is the same for every number of threads. MB "
           "are 10^6 bytes." % report["repeats"])
    for setting in report["settings"]:
        rows = [row for row in report["summary"] if row["point"] == setting["name"]]
        if not rows:
            continue
        yield ""
        yield "### " + setting["title"]
        yield ""
        yield from summary_table(rows)
        ours = runs_with_phases(report["runs"], setting["name"])
        yield ""
        if ours:
            yield ("CPU s per million records of rocksort's threads, all of a role together (in "
                   "brackets: of these in the kernel):")
            yield ""
            yield from role_table(ours, report["records"])
            yield ""
            yield from bound_lines(ours, report["records"])
        else:
            yield "No figures of rocksort's threads: /proc/PID/task does not show them here."
    yield ""
    for key, value in report["environment"].items():
        yield "- %s: %s" % (key, value)


def report_of(scaling, said):
    """The content of the JSON file."""
    bounds = {setting.name: {n: bound_of(phases, scaling.records) for n, phases
                             in runs_with_phases(scaling.runs, setting.name).items()}
              for setting in scaling.settings}
    return {"commit": commit(), "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "environment": said, "records": scaling.records, "repeats": scaling.args.repeats,
            "settings": [setting._asdict() for setting in scaling.settings],
            "summary": summary_of(scaling), "bounds": bounds, "runs": scaling.runs}


# ---- main ----


def describe(found, args, records, source):
    said = {f.program.name: "%s: %s" % (shlex.join(f.words), version_of(f.program, f.words))
            for f in found}
    said.update(machine())
    said["input"] = said_of_input(source, records)
    said["free memory"] = "as it comes" if args.cold_memory else "touched before each run"
    said["checked"] = "the first result of each program and setting"
    return said


def bench(args):
    wanted = [p for p in PROGRAMS if p.name in args.programs or p.name == "rocksort"]
    found, _ = find_all("scaling", wanted, args)
    check_paths(args)
    with tempfile.TemporaryDirectory(prefix="rocksort-scaling-", dir=args.dir) as scratch:
        source = choose_input("scaling", args, scratch)
        counted = count(found[0].words, source.path)
        need_disk(args.dir, counted[2] * 2)
        scaling = Scaling(args, scratch, source.path, found, counted)
        said = describe(found, args, scaling.records, source)
        scaling.run_all(lambda: write_json(report_of(scaling, said), args.json))
    text = "\n".join(text_of(report_of(scaling, said))) + "\n"
    print(text, end="")
    if args.markdown:
        with open(args.markdown, "w", encoding="utf-8") as f:
            f.write(text)


if __name__ == "__main__":
    sys.exit(run_main("scaling", lambda: bench(parse_arguments())))
