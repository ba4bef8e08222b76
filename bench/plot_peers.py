#!/usr/bin/env python3
"""Draws what compare.py measured: plot_peers.py FILE.png, its JSON on standard input.

It is a separate program for two reasons: matplotlib is often installed for another Python than the
one that runs compare.py, and it would make compare.py larger than some programs that it measures.

There is a row for each setting. On the left it shows wall clock (bars, with dots for single runs)
and CPU (thin bars), on the right peak memory, with a line at the limit.
"""

import io
import json
import sys

import matplotlib
matplotlib.use("Agg")
from matplotlib import pyplot
from PIL import Image

OURS, OTHERS, PALE = "#c2410c", "#64748b", "#cbd5e1"
MIB = 1 << 20


def color_of(row):
    return OURS if row["who"].startswith("rocksort") else OTHERS


def draw_time(axes, rows, runs):
    for at, row in enumerate(rows):
        if "wall_s" not in row:
            axes.text(0, at, " failed", va="center", fontsize=7)
            continue
        axes.barh(at - 0.12, row["wall_s"], 0.52, color=color_of(row))
        axes.barh(at + 0.30, row["cpu_s"], 0.2, color=PALE)
        walls = [r["wall_s"] for r in runs if r["who"] == row["who"] and "wall_s" in r]
        axes.plot(walls, [at - 0.12] * len(walls), ".", color="black", markersize=2.5)
        note = " %.1f s" % row["wall_s"]
        if row["wall_ratio"] and row["who"] != "rocksort":
            note += ", x %.2f" % row["wall_ratio"]
        axes.text(max(walls + [row["cpu_s"]]), at, note + (" WRONG" if row["wrong"] else ""),
                  va="center", fontsize=7)
    axes.set_xlim(right=axes.get_xlim()[1] * 1.25)


def draw_memory(axes, rows):
    for at, row in enumerate(rows):
        if "rss_bytes" in row:
            axes.barh(at, row["rss_bytes"] / MIB, 0.6, color=color_of(row))
            axes.text(row["rss_bytes"] / MIB, at, " %.0f" % (row["rss_bytes"] / MIB), va="center",
                      fontsize=7)
    axes.axvline(rows[0]["memory_bytes"] / MIB, color="black", linewidth=0.8, linestyle="--")
    axes.set_xlim(right=axes.get_xlim()[1] * 1.15)


def main():
    report = json.load(sys.stdin)
    settings, n_programs = report["settings"], len(report["programs"])
    figure, grid = pyplot.subplots(len(settings), 2, squeeze=False,
                                   figsize=(8.4, (0.24 * n_programs + 0.62) * len(settings) + 0.5),
                                   gridspec_kw={"width_ratios": [3, 2]})
    for (left, right), setting in zip(grid, settings):
        rows = [r for r in report["summary"] if r["point"] == setting["name"]]
        draw_time(left, rows, [r for r in report["runs"] if r["point"] == setting["name"]])
        draw_memory(right, rows)
        left.set_title(setting["title"], fontsize=8, loc="left")
        for axes in (left, right):
            axes.set_yticks(range(len(rows)))
            axes.set_ylim(len(rows) - 0.5, -0.5)
            axes.tick_params(labelsize=7)
            for side in ("top", "right"):
                axes.spines[side].set_visible(False)
        left.set_yticklabels([r["who"] for r in rows])
        right.set_yticklabels([])
    grid[-1][0].set_xlabel("wall clock, seconds (pale: CPU; dots: single runs)", fontsize=7)
    grid[-1][1].set_xlabel("peak resident memory, MiB (line: limit)", fontsize=7)
    figure.suptitle(report["input"]["said"] + ", %d threads" % report["threads"], fontsize=8)
    figure.tight_layout()
    full = io.BytesIO()
    figure.savefig(full, dpi=110)
    # With a palette the file is a third as large. (matplotlib writes PNG with Pillow.)
    Image.open(full).convert("P", palette=Image.Palette.ADAPTIVE, colors=32).save(
        sys.argv[1], "PNG", optimize=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: plot_peers.py FILE.png < compare.json")
    main()
