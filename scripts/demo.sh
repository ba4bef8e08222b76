#!/usr/bin/env bash
# Shows rocksort at work: it sorts simulated reads from a pipe, as they would come from an aligner.
# `make demo` runs it after building. Needs only bash and samtools. Its output fits on a screen of
# 24 lines of 80 characters.
#
#     DEMO_RECORDS=400000  number of records
#     DEMO_DIR=DIR         keep the result there (default: a temporary directory, removed)
#     DEMO_ROCKSORT=CMD    another command to show instead of ./samtools rocksort
set -euo pipefail

cd "$(dirname "$0")/.."
records=${DEMO_RECORDS:-400000}
read -ra sorter <<<"${DEMO_ROCKSORT:-./samtools rocksort}"
simulator=bench/simulate-reads

fail() {
    echo "demo: $1" >&2
    exit 1
}

[ -x "$simulator" ] || fail "no $simulator: run make demo"
command -v "${sorter[0]}" >/dev/null || fail "no ${sorter[0]}: run make demo"

work=$(mktemp -d)
watcher=
clean_up() {
    [ -z "$watcher" ] || kill "$watcher" 2>/dev/null || true
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

dir=${DEMO_DIR:-$work/demo}
mkdir -p "$dir"
out=$dir/sorted.bam

# Measures peak memory without GNU time, which a fresh machine lacks. The kernel keeps the largest
# size of a running process, so the last look before its end is right, or nearly.
watch_peak() {
    local pid line
    until [ -s "$work/pid" ]; do sleep 0.02; done
    read -r pid <"$work/pid"
    while line=$(grep VmHWM "/proc/$pid/status" 2>/dev/null); do
        echo "$line" >"$work/peak.new"
        mv "$work/peak.new" "$work/peak"
        sleep 0.02
    done
}
if [ -r /proc/self/status ]; then
    watch_peak &
    watcher=$!
fi

feed=("$simulator" -O sam -n "$records")
sort=("${sorter[@]}" -@ 2 -m 32M -o "$out" -)
echo "\$ ${feed[*]} | ${sort[*]}"
TIMEFORMAT='%R %U %S'
rc=0
# The inner shell writes its process id and then becomes the sorter. The sorter's messages go to
# another file than the line of `time`.
"${feed[@]}" | {
    time sh -c 'echo $$ >"$0"; log=$1; shift; exec "$@" 2>"$log"' \
        "$work/pid" "$work/log" "${sort[@]}"
} 2>"$work/time" || rc=$?
cat "$work/log" >&2
[ "$rc" -eq 0 ] || fail "exit code $rc"

if [ -n "$watcher" ]; then
    wait "$watcher" || true
    watcher=
fi
peak=unknown
if [ -s "$work/peak" ]; then
    read -r _ kib _ <"$work/peak"
    peak="$(((kib + 1023) / 1024)) MiB"
fi
# The locale decides whether `time` prints 1.5 or 1,5.
read -r wall user sys <<<"$(tail -n 1 "$work/time" | tr , .)"
cpu=$(awk "BEGIN { printf \"%.2f\", $user + $sys }")

upstream=${SAMTOOLS_UPSTREAM:-samtools}
echo
if command -v "$upstream" >/dev/null; then
    echo "records      $("$upstream" view -c "$out") of $records"
else
    echo "records      $records went in"
fi
echo "wall         $wall s (the simulator runs beside it)"
echo "CPU          $cpu s"
echo "peak memory  $peak (budget: 2 x 32 MiB)"
echo "output       $(wc -c <"$out" | tr -d ' ') bytes"
if ! command -v "$upstream" >/dev/null; then
    echo "quickcheck   skipped: no samtools on PATH (apt-get install samtools)"
    exit 0
fi
"$upstream" quickcheck -v "$out" || fail "samtools quickcheck rejects $out"
echo "quickcheck   ok"
echo
echo "\$ samtools view $out | cut -f 1-4 | head -n 5"
# After five lines the pipe is closed; that `view` fails then is no failure here.
"$upstream" view "$out" 2>/dev/null | cut -f 1-4 | sed 5q || true
[ -z "${DEMO_DIR:-}" ] || echo "kept: $out"
