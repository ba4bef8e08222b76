#!/usr/bin/env python3
"""Draws CPU, memory, disk traffic and seeks of runs over time, and when each run ended.

    scripts/plot-run.py [-o run.png] [--rows cpu,memory] rocksort.json samtools.json

A file is a JSON object. Its `columns`, or those of its object `series`, are lists of equal length.
Only t_s (seconds since the start) is required:

    cpu_s, read_bytes, write_bytes, seeks    count from the start; the rate a second is drawn
    rss_bytes                                at that time

Optional: `label` and `title` (texts), `marks` (a list of {"t_s", "label"}: vertical lines) and
`limit` ({"rss_bytes", "label"}: a horizontal line). All else is ignored. A row of the figure for
which no file has data is left out. Needs matplotlib.

The files of `samtools rocksort --report FILE` can be drawn, too, with marks where phases end, and a
line at the most memory that the sort may take: its budget and what it may take beside it.
"""

import argparse
import io
import json
import os
import sys

COLORS = ["#c2410c", "#1d4ed8", "#15803d", "#7e22ce"]
MIB = 1 << 20
# Rates are means over at least this share of the time axis: in an hour, rates of single seconds
# are noise.
MIN_STEPS = 240
INK_BYTES_COLORS = 64
LETTER_POINTS = 3.6     # a letter of the labels of marks is at most so wide on average
REPORT_SCHEMA = "samtools-rocksort-report"
MOST_TITLE = 110


class Row:
    """One row of the figure: columns with their signs, and their divisor."""

    def __init__(self, name, title, columns, unit, is_rate):
        self.name, self.title, self.columns = name, title, columns
        self.unit, self.is_rate = unit, is_rate


ROWS = [
    Row("cpu", "CPU, cores", [("cpu_s", 1)], 1, True),
    Row("memory", "memory, MiB", [("rss_bytes", 1)], MIB, False),
    Row("disk", "disk, MB/s\n(up: read, down: written)", [("read_bytes", 1), ("write_bytes", -1)],
        1e6, True),
    Row("seeks", "seeks a second", [("seeks", 1)], 1, True),
]


def prepare_report(data):
    """Adds marks, limit and title to a file of --report (doc/report.md)."""
    marks, t_s = [], 0.0
    for name, phase in data.get("phases", {}).items():
        # Marks of phases that took no time would cover each other.
        if t_s > 0 and phase["wall_s"] > 0.02 * data["total"]["wall_s"]:
            marks.append({"t_s": t_s, "label": name})
        t_s += phase["wall_s"]
    data.setdefault("marks", marks)
    budget, beside = (data.get("memory", {}).get(name)
                      for name in ("budget_bytes", "allowance_bytes"))
    if budget is not None and beside is not None:
        data.setdefault("limit", {"rss_bytes": budget + beside,
                                  "label": "budget %.0f + %.0f MiB" % (budget / MIB,
                                                                       beside / MIB)})
    # matplotlib takes text between dollar signs for a formula.
    title = str(data.get("command_line") or "").replace("$", r"\$")
    data.setdefault("title", title if len(title) <= MOST_TITLE else title[:MOST_TITLE] + " ...")
    if data.get("total", {}).get("disk_read_bytes") is None:
        for name in ("read_bytes", "write_bytes"):
            data["columns"].pop(name, None)


def load(path):
    """Reads a file and checks its columns. Raises ValueError with what is wrong."""
    with open(path, encoding="utf-8") as f:
        data = json.load(f)
    if not isinstance(data, dict):
        raise ValueError("is no JSON object")
    if "columns" not in data and isinstance(data.get("series"), dict):
        data = dict(data, **data["series"])
    if data.get("schema") == REPORT_SCHEMA and isinstance(data.get("columns"), dict):
        prepare_report(data)
    columns = data.get("columns")
    if not isinstance(columns, dict) or not columns.get("t_s"):
        raise ValueError("has no columns with t_s")
    n = len(columns["t_s"])
    for row in ROWS:
        for name, _ in row.columns:
            if name in columns and len(columns[name]) != n:
                raise ValueError("has %d values of %s but %d of t_s" % (len(columns[name]), name,
                                                                        n))
    data.setdefault("label", os.path.splitext(os.path.basename(path))[0])
    return data


def rates(times, values, step_s):
    """(times, rates between them); each step is at least step_s long."""
    points_t, points_v = [0.0], []
    last_t = last_v = 0.0
    for at, (t, v) in enumerate(zip(times, values)):
        if t - last_t < step_s and at + 1 < len(times) or t <= last_t:
            continue
        points_t.append(t)
        points_v.append((v - last_v) / (t - last_t))
        last_t, last_v = t, v
    return points_t, points_v


def draw_series(axes, row, run, color, step_s, scale):
    columns = run["columns"]
    for name, sign in row.columns:
        if name not in columns:
            continue
        if row.is_rate:
            times, values = rates(columns["t_s"], columns[name], step_s)
            values = [sign * v / row.unit for v in values]
            axes.stairs(values, [t / scale for t in times], color=color, linewidth=0.9,
                        label=run["label"] if sign > 0 else None)
            axes.stairs(values, [t / scale for t in times], color=color, alpha=0.18, fill=True)
        else:
            # When the last sample was taken, the processes had ended.
            axes.plot([t / scale for t in columns["t_s"]], [v / row.unit for v in columns[name]],
                      color=color, linewidth=1, label=run["label"])
    for mark in run.get("marks", []):
        axes.axvline(mark["t_s"] / scale, color=color, linewidth=0.7, linestyle=":")


def has_row(row, runs):
    return any(any(run["columns"].get(name, [])) for run in runs for name, _ in row.columns)


def label_marks(axes, runs, scale):
    """Writes the labels of marks above the first row, each as low as no other is in its way."""
    last_x = [-1.0] * 9         # where the last label of each height ends, from the lowest height
    marks = [(mark["t_s"] / scale, mark["label"], color) for run, color in zip(runs, COLORS)
             for mark in run.get("marks", [])]
    points_across = axes.get_window_extent().width * 72 / axes.figure.dpi
    begin, end = axes.get_xlim()
    for x, text, color in sorted(marks):
        width = (LETTER_POINTS * len(text) + 4) * (end - begin) / points_across
        if x + width > end:     # at the right edge: to the left of its mark
            left, ha = x - width, "right"
        else:
            left, ha = x, "left"
        height = next((i for i, right in enumerate(last_x) if left >= right), len(last_x) - 1)
        last_x[height] = max(last_x[height], left + width)
        axes.annotate(text, (x, 1), xytext=(2 if ha == "left" else -2, 1 + 7 * height),
                      textcoords="offset points", fontsize=6, color=color, va="bottom", ha=ha,
                      xycoords=("data", "axes fraction"))


def label_ends(axes, runs, scale):
    """Writes each run's name and time at its end in the first row, in several heights, since ends
    may be near each other."""
    end_of_all = axes.get_xlim()[1]
    for at, (run, color) in enumerate(zip(runs, COLORS)):
        end_s = run["columns"]["t_s"][-1]
        said = "%.1f min" % (end_s / 60) if scale > 1 else "%.0f s" % end_s
        axes.axvline(end_s / scale, color=color, linewidth=1)
        axes.annotate(" %s: %s " % (run["label"], said), (end_s / scale, 0.05 + 0.17 * at),
                      fontsize=8, color=color, xycoords=("data", "axes fraction"), va="bottom",
                      ha="right" if end_s / scale > 0.5 * end_of_all else "left", weight="bold")


def draw_limits(axes, runs):
    """Draws the memory that runs may take, one line for each size, with its label."""
    limits = {run["limit"]["rss_bytes"]: run["limit"].get("label") for run in runs
              if run.get("limit")}
    for limit, label in limits.items():
        axes.axhline(limit / MIB, color="black", linewidth=0.7, linestyle="--")
        axes.annotate(label or "limit %.0f MiB" % (limit / MIB), (0.005, limit / MIB), fontsize=6,
                      xycoords=("axes fraction", "data"), va="bottom")


def draw(pyplot, runs, title, rows):
    rows = [row for row in rows if has_row(row, runs)]
    if not rows:
        raise ValueError("nothing to draw")
    end_s = max(run["columns"]["t_s"][-1] for run in runs)
    scale, unit = (60, "minutes") if end_s > 600 else (1, "seconds")
    figure, grid = pyplot.subplots(len(rows), 1, squeeze=False, sharex=True,
                                   figsize=(8.4, 1.35 * len(rows) + 0.8))
    for (axes,), row in zip(grid, rows):
        for run, color in zip(runs, COLORS):
            draw_series(axes, row, run, color, end_s / MIN_STEPS, scale)
        if row.name == "memory":
            draw_limits(axes, runs)
        axes.set_ylabel(row.title, fontsize=7)
        axes.tick_params(labelsize=7)
        if len(row.columns) == 1:
            axes.set_ylim(bottom=0)
        else:
            axes.axhline(0, color="black", linewidth=0.5)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    grid[-1][0].set_xlabel(unit, fontsize=7)
    grid[-1][0].set_xlim(0, end_s / scale)
    figure.suptitle(title, fontsize=8, x=0.01, ha="left")
    figure.align_ylabels()
    figure.tight_layout()
    label_marks(grid[0][0], runs, scale)
    label_ends(grid[0][0], runs, scale)
    figure.tight_layout()       # makes room for the labels above
    return figure


def save(figure, path):
    """Writes the PNG. With a palette, which needs Pillow, it is a third as large."""
    full = io.BytesIO()
    figure.savefig(full, dpi=110, format="png")
    try:
        from PIL import Image
    except ImportError:
        with open(path, "wb") as f:
            f.write(full.getvalue())
        return
    Image.open(full).convert("P", palette=Image.Palette.ADAPTIVE, colors=INK_BYTES_COLORS).save(
        path, "PNG", optimize=True)


def main():
    first, _, rest = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(description=first, epilog=rest,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", metavar="PNG",
                        help="[the first file's name with .png instead of .json]")
    parser.add_argument("--title", help="[the first file's]")
    names = [row.name for row in ROWS]
    parser.add_argument("--rows", metavar="NAME,...", default=",".join(names),
                        help="which rows to draw [%(default)s]")
    parser.add_argument("files", metavar="FILE", nargs="+", help="up to %d" % len(COLORS))
    args = parser.parse_args()
    if len(args.files) > len(COLORS):
        parser.error("more than %d files" % len(COLORS))
    asked = args.rows.split(",")
    if set(asked) - set(names):
        parser.error("--rows: %s is none of %s" % (min(set(asked) - set(names)), ", ".join(names)))
    output = args.output or os.path.splitext(args.files[0])[0] + ".png"
    runs = []
    for path in args.files:
        try:
            runs.append(load(path))
        except (OSError, ValueError) as e:
            return "plot-run.py: %s %s" % (path, e)
    try:
        import matplotlib
    except ImportError:
        return "plot-run.py: there is no matplotlib: apt-get install python3-matplotlib"
    matplotlib.use("Agg")
    from matplotlib import pyplot
    try:
        rows = [row for row in ROWS if row.name in asked]
        save(draw(pyplot, runs, args.title or runs[0].get("title", ""), rows), output)
    except (OSError, ValueError) as e:
        return "plot-run.py: %s: %s" % (output, e)
    return 0


if __name__ == "__main__":
    sys.exit(main())
