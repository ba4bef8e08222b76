#!/usr/bin/env bash
# Shows rocksort at work beside samtools sort: both sort the same simulated reads from a pipe, as
# they would come from an aligner. Then checksums and records are compared. `make demo` runs it after
# building. Needs only bash and samtools. Its output fits on a screen of 24 lines.
#
#     DEMO_RECORDS=400000  number of records
#     DEMO_DIR=DIR         keep the results there (default: a temporary directory, removed)
#     DEMO_ROCKSORT=CMD    another command to show instead of ./samtools rocksort
set -euo pipefail

cd "$(dirname "$0")/.."
records=${DEMO_RECORDS:-400000}
read -ra rocksort <<<"${DEMO_ROCKSORT:-./samtools rocksort}"
upstream=${SAMTOOLS_UPSTREAM:-samtools}
simulator=bench/simulate-reads

fail() {
    echo "demo: $1" >&2
    exit 1
}

[ -x "$simulator" ] || fail "no $simulator: run make demo"
command -v "${rocksort[0]}" >/dev/null || fail "no ${rocksort[0]}: run make demo"

work=$(mktemp -d)
watcher=
clean_up() {
    [ -z "$watcher" ] || kill "$watcher" 2>/dev/null || true
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
dir=${DEMO_DIR:-$work}
mkdir -p "$dir"

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

# measure NAME WORDS: pipes the reads into a sorter and keeps the line of the table about it.
measure() {
    local name=$1 rc=0 kib peak=unknown wall user sys TIMEFORMAT='%R %U %S'
    shift
    rm -f "$work/pid" "$work/peak"
    if [ -r /proc/self/status ]; then
        watch_peak &
        watcher=$!
    fi
    # The inner shell writes its process id and then becomes the sorter. The sorter's messages go to
    # another file than the line of `time`.
    # shellcheck disable=SC2002
    cat "$work/reads.sam" | {
        time sh -c 'echo $$ >"$0"; log=$1; shift; exec "$@" 2>"$log"' "$work/pid" "$work/log" "$@"
    } 2>"$work/time" || rc=$?
    cat "$work/log" >&2
    [ "$rc" -eq 0 ] || fail "$name: exit code $rc"
    if [ -n "$watcher" ]; then
        wait "$watcher" || true
        watcher=
    fi
    if [ -s "$work/peak" ]; then
        read -r _ kib _ <"$work/peak"
        peak="$(((kib + 1023) / 1024)) MiB"
    fi
    # The locale decides whether `time` prints 1.5 or 1,5.
    read -r wall user sys <<<"$(tail -n 1 "$work/time" | tr , .)"
    printf '%-15s%6.1f s%9.1f s   %s\n' "$name" "$wall" \
        "$(awk "BEGIN { print $user + $sys }")" "$peak" >>"$work/table"
}

# The records of a BAM file as text, in their order.
records_of() {
    "$upstream" view "$1"
}

settings=(-@ 2 -m 32M -l 1)
echo "\$ $simulator -O sam -n $records > reads.sam"
"$simulator" -O sam -n "$records" >"$work/reads.sam"
echo "\$ cat reads.sam | ${rocksort[*]} ${settings[*]} -o sorted.bam -"
measure rocksort "${rocksort[@]}" "${settings[@]}" -o "$dir/sorted.bam" -
there=
if command -v "$upstream" >/dev/null; then
    there=yes
    echo "\$ cat reads.sam | samtools sort ${settings[*]} -o other.bam -"
    measure "samtools sort" "$upstream" sort "${settings[@]}" -T "$work/temp" \
        -o "$dir/other.bam" - 2>"$work/said" || { cat "$work/said" >&2; exit 1; }
fi
echo
echo "program        wall clock  CPU time   peak memory (rocksort's is at most 2 x 32 + 64 MiB)"
cat "$work/table"
echo
into=$("${rocksort[@]}" --checksum-only "$work/reads.sam")
out=$("${rocksort[@]}" --checksum-only "$dir/sorted.bam")
echo "checksum of reads.sam   $into"
echo "checksum of sorted.bam  $out"
[ "$into" = "$out" ] || fail "the checksums differ"
verified=$("${rocksort[@]}" --verify "$dir/sorted.bam") || fail "sorted.bam is not in order"
echo "rocksort --verify       sorted.bam${verified#"$dir/sorted.bam"}"
if [ -z "$there" ]; then
    echo "not compared with samtools sort: no samtools on PATH (apt-get install samtools)"
    exit 0
fi
cmp -s <(records_of "$dir/sorted.bam") <(records_of "$dir/other.bam") ||
    fail "sorted.bam and other.bam differ"
echo "samtools view           sorted.bam and other.bam have the same records in the same order"
[ -z "${DEMO_DIR:-}" ] || echo "kept: $dir"
