"""The report of bench-2014.py: messages of the programs, tables, bounds, prices, plots."""

import json
import os
import re
import statistics
import subprocess
import sys
import time

from bench import describe
from compare import commit
from measure import MIB, ROOT, output_of, progress

HOURS_A_MONTH = 730
MAX_LINES = 60

# The numbers of a result whose median is in a summary.
MEASURES = ("wall_s", "cpu_s", "rss_bytes", "sync_s", "temp_peak_bytes", "output_bytes",
            "spilled_bytes", "own_amplification", "disk_amplification", "load_s", "merge_s")
DISK_MEASURES = ("busy_s", "seeks", "read_seeks", "reads", "writes", "read_bytes", "write_bytes",
                 "mean_read_bytes", "mean_write_bytes", "consecutive_ratio", "small_reads", "syncs",
                 "read_busy_s", "write_busy_s", "stall_s", "spindle_cpu_s")


# ---- one run ----


def said_in(log):
    """The facts about spilling that a log has, and its lines."""
    lines = [re.sub(r"^samtools rocksort: ", "", line) for line in log.splitlines()
             if line.strip()][:MAX_LINES]
    found = {"said": lines}
    match = re.search(r"; (\d+) runs on disk, ([\d.]+) MB temporary, ([\d.]+) MB compacted; "
                      r"(?:written to '.*'; )?[\d.]+ s wall \(load ([\d.]+), merge ([\d.]+)\)", log)
    if match:
        found.update(n_runs=int(match[1]), spilled_bytes=float(match[2]) * 1e6,
                     compacted_bytes=float(match[3]) * 1e6, load_s=float(match[4]),
                     merge_s=float(match[5]))
    match = re.search(r"merging from (\d+) files", log)
    if match:
        found["n_runs"] = int(match[1])
    return found


def note_amplification(result):
    """Bytes written to the temporary directory by bytes spilled: as the program reports them, and
    as the disk counts them. samtools has spilled what lies there when its last merge begins."""
    spilled = result.get("spilled_bytes")
    if not spilled and result.get("marks"):
        spilled = result["spilled_bytes"] = result["marks"][0]["temp_bytes"]
    if not spilled:
        return
    if "compacted_bytes" in result:
        result["own_amplification"] = (spilled + result["compacted_bytes"]) / spilled
    if result.get("disk") and result.get("output_bytes"):
        result["disk_amplification"] = (result["disk"]["write_bytes"]
                                        - result["output_bytes"]) / spilled


def said_of(run):
    """A finished run in a line."""
    text = "%-14s level %-7s " % (run["who"], run["level"])
    if "wall_s" not in run:
        return text + str(run["wrong"]).split("\n", 1)[0]
    text += "wall %6.1f s  CPU %6.1f s  RSS %4.0f MiB" % (run["wall_s"], run["cpu_s"],
                                                        run["rss_bytes"] / MIB)
    if run.get("disk"):
        text += "  disk %6.1f s busy, %7d seeks" % (busy_of(run), run["disk"]["seeks"])
    return text


def n_drives(run):
    return (run.get("device") or {}).get("drives", 1)


def busy_of(run):
    """Busy seconds, the mean of the drives."""
    return run["disk"]["busy_s"] / n_drives(run)


# ---- summaries ----


def median_of(runs, key):
    values = [run[key] for run in runs if run.get(key) is not None]
    return statistics.median(values) if values else None


def summary_of(part):
    """Medians by level and program, in the order of the runs, and ratios to samtools."""
    keys = list(dict.fromkeys((r["level"], r["who"]) for r in part["runs"]))
    rows = []
    for level, who in keys:
        runs = [r for r in part["runs"] if (r["level"], r["who"]) == (level, who)]
        row = {"level": level, "who": who, "repeats": len(runs),
               "wrong": next((r["wrong"] for r in runs if r["wrong"]), None),
               "device": next((r["device"] for r in runs if r.get("device")), None)}
        row.update({key: median_of(runs, key) for key in MEASURES + ("n_runs",)})
        disks = [r["disk"] for r in runs if r.get("disk")]
        row["disk"] = {key: median_of(disks, key) for key in DISK_MEASURES} if disks else None
        rows.append(row)
    for row in rows:
        base = find_row(rows, row["level"], "samtools")
        row["wall_ratio"] = ratio(row["wall_s"], base and base["wall_s"])
        row["seeks_ratio"] = (ratio(row["disk"]["seeks"], base["disk"]["seeks"])
                              if row["disk"] and base and base["disk"] else None)
    return rows


def find_row(rows, level, who):
    return next((r for r in rows if (r["level"], r["who"]) == (level, who)), None)


def ratio(value, base):
    return value / base if value is not None and base else None


def bounds_of(row, threads):
    """The least time that a program needs: its CPU time spread over the processors, and its
    transfers at the disk's full rate. Besides, the time that the disk spends on seeks."""
    cores = min(len(os.sched_getaffinity(0)), max(threads, 1))
    bounds = {"cpu_s": row["cpu_s"] / cores, "cores": cores, "transfer_s": None, "seek_s": None}
    device = row["device"]
    if device and row["disk"]:
        seconds = 0.0
        for way in ("read", "write"):
            rate = device["%s_bytes_s" % way]
            seconds += row["disk"]["%s_bytes" % way] / rate / device["drives"] if rate else 0
        bounds["transfer_s"] = seconds
        bounds["seek_s"] = max(0.0, row["disk"]["busy_s"] / device["drives"] - seconds)
    return bounds


# ---- tables ----


def cell(form, value, scale=1):
    return "-" if value is None else form % (value / scale)


def verdict(value, target):
    if value is None:
        return "-"
    if target is None:
        return "%.2f" % value
    return "**%.2f** (<= %.2f) %s" % (value, target, "ok" if value <= target else "**MISS**")


def first_line(text):
    return text.split("\n", 1)[0].replace("|", "\\|")


def result_of(row):
    return "**WRONG**: " + first_line(row["wrong"]) if row["wrong"] else "ok"


def table_line(cells):
    return "| %s |" % " | ".join(cells)


def table_row(row, experiment):
    disk = row["disk"] or {}
    # Targets are for level 1.
    has_target = row["who"].startswith("rocksort") and row["level"] == "1"
    drives = (row["device"] or {}).get("drives", 1)
    return table_line([
        row["level"], row["who"], cell("%.1f", row["wall_s"]),
        verdict(row["wall_ratio"], experiment["wall_target"] if has_target else None),
        cell("%.1f", row["cpu_s"]), cell("%.0f", row["rss_bytes"], MIB),
        cell("%.1f", disk.get("busy_s"), drives), cell("%.0f", disk.get("seeks")),
        verdict(row["seeks_ratio"], experiment["seeks_target"] if has_target else None),
        result_of(row)])


def disk_row(row):
    disk = row["disk"] or {}
    return table_line([
        row["level"], row["who"], cell("%.0f", disk.get("read_bytes"), 1e6),
        cell("%.0f", disk.get("write_bytes"), 1e6), cell("%.0f", disk.get("mean_read_bytes"), 1024),
        cell("%.0f", disk.get("mean_write_bytes"), 1024),
        cell("%.0f %%", disk.get("consecutive_ratio"), 0.01), cell("%.0f", disk.get("syncs")),
        cell("%.0f", row["n_runs"]), cell("%.0f", row["spilled_bytes"], 1e6),
        cell("%.2f", row["own_amplification"]), cell("%.2f", row["disk_amplification"]),
        cell("%.1f", disk.get("spindle_cpu_s"))])


def experiment_text(part, report):
    e, rows = part["experiment"], summary_of(part)
    yield "## %s: %s" % (e["name"], e["title"])
    yield ""
    yield "2014: %s (%.2f)." % (e["in_2014"], e["ratio_2014"])
    yield "Here: %.2f GB : %d MiB on %s; input %s, %d records, %.2f GB BAM." % (
        part["input"]["raw_bytes"] / 1e9, e["memory_mib"], e["disk"][0],
        part["input"]["name"], part["input"]["records"], part["input"]["bytes"] / 1e9)
    yield ""
    yield ("| level | program | wall s | ratio to samtools | CPU s | peak RSS MiB | disk busy s "
           "| seeks | ratio of seeks | result |")
    yield "|---|---|" + "---|" * 8
    for row in rows:
        yield table_row(row, e)
    yield ""
    yield ("| level | program | MB read | MB written | KiB a read | KiB a write | continue the "
           "last | syncs | runs | MB spilled | amplification, own | by the disk "
           "| spindle's CPU s |")
    yield "|---|---|" + "---|" * 11
    for row in rows:
        yield disk_row(row)
    yield ""
    if e["seeks_target"]:
        yield from goal_text(e, rows, report["settings"]["threads"])
    for name in part.get("plots", []):
        yield "![%s](%s)" % (name, name)
        yield ""
    yield "Messages of the programs:"
    yield ""
    for run in part["runs"]:
        if run["repeat"] == 1:
            for line in run.get("said", []):
                yield "    %s: %s" % (run["who"], line)
    yield ""


def goal_text(experiment, rows, threads):
    """The lines about the time that the ratio of 2014 would need."""
    base = find_row(rows, rows[0]["level"], "samtools")
    if not base or not base["wall_s"]:
        return
    goal = experiment["ratio_2014"] * base["wall_s"]
    yield ("What the ratio of 2014, %.2f, would take: %.1f s, where samtools takes %.1f s. The "
           "least that each program needs, if it did all at once:" % (
               experiment["ratio_2014"], goal, base["wall_s"]))
    yield ""
    yield ("| program | wall s | its CPU on %d cores, s | transfers at full rate, s | seeks "
           "besides, s | more than the larger of the first two, s |" % bounds_of(
               base, threads)["cores"])
    yield "|---|---|---|---|---|---|"
    for row in rows:
        if row["wall_s"] is None:
            continue
        b = bounds_of(row, threads)
        floor = max(b["cpu_s"], b["transfer_s"] or 0)
        yield "| %s | %.1f | %.1f | %s | %s | %.1f |" % (
            row["who"], row["wall_s"], b["cpu_s"], cell("%.1f", b["transfer_s"]),
            cell("%.1f", b["seek_s"]), row["wall_s"] - floor)
    yield ""
    for row in rows:
        if row["who"].startswith("rocksort") and row["wall_s"] is not None:
            b = bounds_of(row, threads)
            yield "- %s: %s" % (row["who"], goal_verdict(goal, row, b))
    yield ""


def goal_verdict(goal, row, bounds):
    """How many seeks are possible if CPU, disk and all drives work at the same time."""
    floor = max(bounds["cpu_s"], bounds["transfer_s"] or 0)
    if row["wall_s"] <= goal:
        return "is there."
    if floor > goal:
        return ("not with this CPU time and this traffic: they take %.1f s at the least, %.2f "
                "times the goal. The disk would have to be so much slower beside the processors, "
                "as it was in 2014, or the work less." % (floor, floor / goal))
    text = "%.1f s are to be saved" % (row["wall_s"] - goal)
    if not bounds["seek_s"]:
        return text + "."
    seeks = row["disk"]["seeks"] * (goal - bounds["transfer_s"]) / bounds["seek_s"]
    return text + (": its CPU and transfers would fit, with at most %.0f seeks (%.2f of what it "
                   "makes) if all drives always worked, beside the CPU." % (
                       seeks, seeks / row["disk"]["seeks"]))


def storage_rows(report):
    """Rows for each device and program, with the cost."""
    rows = []
    for part in report["storage"]:
        options = part["experiment"]["disk"][1]
        device = options[options.index("--device") + 1]
        price = report["prices"][device]
        for row in summary_of(part):
            cost = price / HOURS_A_MONTH / 3600 * row["wall_s"] if row["wall_s"] else None
            rows.append(dict(row, storage=device, title=part["experiment"]["disk"][0],
                             price=price, cost=cost))
    base = next((r for r in rows if r["who"] == "samtools" and r["wall_s"]), None)
    for row in rows:
        row["relative_wall"] = ratio(row["wall_s"], base and base["wall_s"])
        row["relative_cost"] = ratio(row["cost"], base and base["cost"])
    return rows


def storage_text(report):
    part = report["storage"][0]
    yield "## storage: one step of a pipeline"
    yield ""
    yield ("%.2f GB : %d MiB, level %s. The price is that of the whole instance with the storage; "
           "cost = price / %d h x time. 100 %% is %s." % (
               part["input"]["raw_bytes"] / 1e9, part["experiment"]["memory_mib"],
               part["experiment"]["levels"][0], HOURS_A_MONTH,
               "samtools on " + part["experiment"]["disk"][0]))
    yield ""
    yield ("| storage | $ a month | program | wall s | time | $ for 1000 runs | cost | disk busy s "
           "| seeks | ratio of time to samtools | result |")
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for row in storage_rows(report):
        disk = row["disk"] or {}
        yield "| %s | %.2f | %s | %s | %s | %s | %s | %s | %s | %s | %s |" % (
            row["title"], row["price"], row["who"], cell("%.1f", row["wall_s"]),
            cell("%.0f %%", row["relative_wall"], 0.01), cell("%.2f", row["cost"], 0.001),
            cell("**%.0f %%**", row["relative_cost"], 0.01), cell("%.1f", disk.get("busy_s")),
            cell("%.0f", disk.get("seeks")), cell("%.2f", row["wall_ratio"]),
            result_of(row))
    yield ""


def markdown_of(report):
    s = report["settings"]
    yield "# The experiments of 2014 again, scaled"
    yield ""
    if not report["done"]:
        yield "**Not complete yet.**"
        yield ""
    yield ("%s, `%s`. %s; %d run(s) of each program%s, `-@ %d`. Wall clock is that of the pipeline "
           "(`cat` included, as in CPU); peak RSS that of the sorter. Disk: busy seconds (mean of "
           "the drives) and seeks until the last byte was on the disk." % (
               report["date"], report["commit"] or "(unknown commit)",
               "Scale: " + s["scale"], s["repeats"],
               ", in turn, medians" if s["repeats"] > 1 else "", s["threads"]))
    if s["scale"] == "small":
        yield ""
        yield ("A quick run with small data: seeks and reads do not shrink with the data, so that "
               "these ratios are not those of the full scale.")
    yield ""
    for part in report["experiments"]:
        yield from experiment_text(part, report)
    if report["storage"]:
        yield from storage_text(report)
    yield "## How"
    yield ""
    if s["plain"]:
        yield "- disk: **the machine's own, no modelled one**: " + s["plain"]
    else:
        where = "the input lies elsewhere" if s["input_elsewhere"] else \
            "input, temporary data and output lie on it"
        yield "- disk: modelled by bench/spindle; %s; write buffer %s; kernel's readahead %s" % (
            where, s["write_buffer"], s["readahead"])
    yield "- memory: %s" % s["memory"]
    yield ("- amplification: bytes written to the temporary directory by bytes spilled; own: as "
           "rocksort says; by the disk: bytes written less the output's")
    yield "- checks of the outputs: %s" % s["check"]
    loads = [run["load_before"] for part in report["experiments"] + report["storage"]
             for run in part["runs"]]
    if loads:
        yield ("- load average before a run: %.1f to %.1f (of the runs before it, or of others)"
               % (min(loads), max(loads)))
    for key, value in report["environment"].items():
        yield "- %s: %s" % (key, value)
    yield ""
    yield "Commands:"
    yield ""
    seen = set()
    for part in report["experiments"] + report["storage"][:1]:
        for run in part["runs"]:
            if run["command"] not in seen:
                seen.add(run["command"])
                yield "    " + run["command"]


# ---- files ----


def report_of(bench, args):
    return {
        "commit": commit(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "environment": {key: bench.shown(value) for key, value in
                        describe(bench.rocksort, bench.samtools).items()},
        "settings": {"scale": args.scale, "repeats": args.repeats, "threads": args.threads,
                     "write_buffer": args.write_buffer, "readahead": args.readahead,
                     "input_elsewhere": args.input_elsewhere,
                     "memory": bench.said_of_memory(), "plain": None, "check": args.check,
                     "rocksort_options": args.rocksort_options},
        "prices": {}, "experiments": [], "storage": [], "done": False,
    }


def write(report, bench, folder):
    """Writes JSON, Markdown and plots of the results so far."""
    report["settings"]["plain"] = bench.why_plain
    for part in report["experiments"] + report["storage"]:
        part["summary"] = summary_of(part)
    for part in report["experiments"]:
        draw(part, folder)
    with open(os.path.join(folder, "results.json"), "w", encoding="utf-8") as f:
        json.dump(report, f, indent=1)
        f.write("\n")
    with open(os.path.join(folder, "results.md"), "w", encoding="utf-8") as f:
        f.write("\n".join(markdown_of(report)) + "\n")


def find_plotter():
    """The first Python that has matplotlib: this one or Debian's."""
    for python in (sys.executable, "/usr/bin/python3",
                   os.path.join(ROOT, "build/venv/bin/python")):
        if output_of([python, "-c", "import matplotlib; print('there')"]).endswith("there\n"):
            return python
    return None


def draw(part, folder):
    """Draws a PNG for each level, with all programs of the first repeat."""
    if "plots" in part:
        return
    part["plots"] = []
    python = find_plotter()
    if not python:
        progress("bench-2014: no plots, since there is no matplotlib: apt-get install "
                 "python3-matplotlib")
        return
    name = part["experiment"]["name"]
    levels = list(dict.fromkeys(r["level"] for r in part["runs"]))
    for level in levels:
        series = [os.path.join(folder, r["series"]) for r in part["runs"]
                  if r["level"] == level and r["repeat"] == 1 and r.get("series")
                  and r["who"] != "copy"]
        if not series:
            continue
        png = "%s.png" % name if len(levels) == 1 else "%s-l%s.png" % (name, level)
        done = subprocess.run([python, "-B", os.path.join(ROOT, "scripts", "plot-run.py"), "-o",
                               os.path.join(folder, png)] + series, check=False)
        if done.returncode == 0:
            part["plots"].append(png)
