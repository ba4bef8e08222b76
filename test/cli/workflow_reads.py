"""Reads for the tests of scattering a sample over contigs, and the aligner of these tests."""

import gzip
import os
import random
import subprocess

from harness import ROOT

SIMULATE = ROOT / "bench/simulate-reads"
UMIS = ("ACGTACGT", "ACGTACGA", "TTTTGGGG", "CCCCAAAA")
SUPPLEMENTARY_OR_SECONDARY = 0x900

# Takes the names of the reads in the chunk and prints their records, from SAM that has all. The
# first one waits for a second one, which shows that tasks run at the same time.
ALIGNER = r"""#!/bin/sh
# aligner ALL.sam READS1 READS2 REFERENCE
set -eu
marks="{marks}"
align() {{
    gzip -dc "$2" | sed -n '1~4s/^@//p' | awk -F '\t' '
        BEGIN {{ while ((getline name <"/dev/stdin") > 0) wanted[name] }}
        /^@/ || $1 in wanted' "$1"
}}
[ -e "$4.fai" ]
touch "$marks/aligner.$$"
n=0
until [ "$(ls "$marks" | grep -c '^aligner')" -ge 2 ]; do
    n=$((n + 1))
    [ $n -lt 600 ] || {{ touch "$marks/alone"; exit 1; }}
    sleep 0.1
done
align "$@"
"""

# rocksort, of which two are killed: the first one that reads from an aligner, when it has read some
# records, and the one that gathers a certain group of sample x, which has three inputs, when it has
# written some records.
KILLED = r"""#!/bin/bash
rocksort="{rocksort}"
marks="{marks}"
fault() {{
    ASAN_OPTIONS=verify_asan_link_order=0:$ASAN_OPTIONS LD_PRELOAD="{library}" FAULT=$1 \
        "$rocksort" "${{@:2}}"
}}
case "$*" in
*--split-by*\ -)
    mkdir "$marks/killed-align" 2>/dev/null || exec "$rocksort" "$@"
    mkfifo "$marks/pipe"
    "$rocksort" "$@" <"$marks/pipe" &
    exec 3>"$marks/pipe"
    head -c 200000 >&3
    kill -9 $!
    wait $!
    exit 137 ;;
*--markdup=*/x/group000001/* | *--markdup=*in/3/group000001.bam*)
    mkdir "$marks/killed-gather" 2>/dev/null || exec "$rocksort" "$@"
    fault write:2:kill:.rocksort. "$@"
    status=$?
    find . -path '*group000001*.rocksort.*.tmp' -size +0 >"$marks/half-written"
    exit $status ;;
esac
exec "$rocksort" "$@"
"""


def templates(n_records, seed):
    """(header lines, templates as lists of lines) of simulated pairs, in the order of an aligner.
    A third of them has copies further on, wherever both reads lie: on two contigs, clipped
    otherwise, supplementary. Some are as good, some are not; names end in a UMI, and many reads
    have one as tag RX, too."""
    command = [SIMULATE, "-n", str(n_records), "-L", "3M", "-s", str(seed), "-o", "-"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = text.splitlines()
    header = [line for line in lines if line.startswith("@")]
    by_name = {}
    for line in lines[len(header):]:
        by_name.setdefault(line.split("\t", 1)[0], []).append(line.split("\t"))
    pairs = [records for records in by_name.values()
             if {int(record[1]) & 0xc0 for record in records
                 if not int(record[1]) & SUPPLEMENTARY_OR_SECONDARY} == {0x40, 0x80}]
    rng = random.Random(seed)
    made, names = list(pairs), set(by_name)
    for records in pairs:
        on_two = len({record[2] for record in records}) > 1
        for _ in range(rng.choice((1, 2) if on_two else (0, 0, 0, 0, 1, 2))):
            made.insert(rng.randrange(len(made) + 1), copied(records, names, rng))
    return header, [finished(records, rng) for records in made]


def copied(records, names, rng):
    """A duplicate of a template, from a place near by on the flow cell or elsewhere; most are of
    lower quality (which supplementary records may lack)."""
    name, far = records[0][0], rng.choice((0, 5000))
    while name in names:
        *place, x, y = records[0][0].split(":")
        name = ":".join([*place, str(int(x) + far + rng.randrange(60)), y])
    names.add(name)
    n_worse = rng.choice((0, 0, 20, 20, 20))
    return [[name, *clipped(record, rng)[1:10], "-" * n_worse + record[10][n_worse:]
             if len(record[10]) > n_worse else record[10], *record[11:]]
            for record in records]


def clipped(record, rng):
    """Perhaps begins to align ten bases later. What its mate says of it is left to --fixmate."""
    if record[5] != "150M" or rng.random() < 0.6:
        return record
    return [*record[:3], str(int(record[3]) + 10), record[4], "10S140M", *record[6:]]


def finished(records, rng):
    """The lines of a template, with UMIs. Some reads have failed the quality check."""
    umi, tagged = rng.choice(UMIS), rng.choice((0, 0x40, 0xc0, 0xc0))
    failed = 0x200 if rng.random() < 0.05 else 0
    return ["\t".join([f"{record[0]}:{umi}", str(int(record[1]) | failed), *record[2:]] +
                      ([f"RX:Z:{umi}"] if int(record[1]) & tagged else []))
            for record in records]


def with_names(header, some, names):
    """The same reads on contigs with other names ({old: new})."""
    def renamed(field):
        return "SN:" + names.get(field[3:], field[3:]) if field.startswith("SN:") else field

    header = ["\t".join(map(renamed, line.split("\t"))) for line in header]
    made = []
    for lines in some:
        made.append([])
        for line in lines:
            fields = line.split("\t")
            for i in (2, 6):
                fields[i] = names.get(fields[i], fields[i])
            made[-1].append("\t".join(fields))
    return header, made


def write_sam(path, header, some):
    """Writes templates as SAM."""
    with open(path, "w", encoding="ascii") as file:
        for line in header + [line for lines in some for line in lines]:
            file.write(line + "\n")
    return path


def write_fai(path, header):
    """Writes the index of a reference that is not there: names and lengths."""
    with open(path, "w", encoding="ascii") as file:
        for line in header:
            if line.startswith("@SQ"):
                fields = dict(field.split(":", 1) for field in line.split("\t")[1:])
                file.write(f"{fields['SN']}\t{fields['LN']}\t0\t60\t61\n")


def write_fastq(paths, some):
    """Writes the names of templates as two FASTQ files; the aligner of the tests needs no more."""
    for path in paths:
        with gzip.open(path, "wt", compresslevel=1) as file:
            for lines in some:
                file.write(f"@{lines[0].split(chr(9), 1)[0]}\nA\n+\nF\n")


def write_script(path, text, **values):
    with open(path, "w", encoding="ascii") as file:
        file.write(text.format(**values))
    os.chmod(path, 0o755)
