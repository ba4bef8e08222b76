#!/bin/sh
# Collects real alignment files from Debian packages for the tests. Installs nothing.
#
#     scripts/fetch-real-bams.sh DIR
#
# DIR/bams    *.bam, *.sam (also .sam.gz) and *.cram that samtools reads to the end, named
#             PACKAGE--FILE, each content once
# DIR/broken  those that it cannot read: truncated or malformed, or CRAM without its reference
#
# If apt cannot reach its server, it says so and exits with 0, and tests that need these files are
# skipped. If DIR is complete, it does nothing.
set -eu

if [ $# -ne 1 ] || [ "$1" = --help ]; then
    echo "usage: scripts/fetch-real-bams.sh DIR" >&2
    exit 1
fi

# Files of the second line have few reads, but all the oddities of samtools' own tests: CRAM 2.1 and
# 3, positions beyond 2^31, records without a header line. (In Debian 12, libbio-samtools-perl and
# python3-pysam have no such files: the tests of pysam are a separate package.) Those of the last
# have recent Illumina reads, and long ones of Oxford Nanopore, which bench/bench_input.py tiles;
# the many reads of covtobed-examples have no bases.
packages="covtobed-examples r-bioc-rsamtools r-bioc-genomicalignments
    python-pysam-tests samtools-test bedtools-test
    mosdepth-examples python3-nanoget-examples"

mkdir -p "$1"
dir=$(cd "$1" && pwd)
stamp=$dir/complete
# shellcheck disable=SC2086 # joins lines and runs of blanks
# shellcheck disable=SC2116
packages=$(echo $packages)

if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$packages" ] && [ -d "$dir/bams" ]; then
    exit 0
fi

skip() {
    echo "fetch-real-bams: $1: no real files collected" >&2
    exit 0
}

for program in apt-get apt-cache dpkg samtools; do
    command -v $program >/dev/null 2>&1 || skip "no $program here"
done

known() {
    for package in $packages; do
        if apt-cache show "$package" >/dev/null 2>&1; then
            echo "$package"
        fi
    done
}

# Few tries and short waits, so that a machine without a network goes on soon. Root downloads, as
# apt's own user may not write to DIR.
apt_quick() {
    apt-get -qq -o Acquire::Retries=1 -o Acquire::http::Timeout=20 \
        -o Acquire::https::Timeout=20 -o APT::Sandbox::User=root "$@" </dev/null
}

work=$dir/work.$$
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
mkdir -p "$work/debs" "$work/bams" "$work/broken" "$work/empty"

download() {
    complete=yes
    for package in $(known); do
        (cd "$work/debs" && apt_quick download "$package") >>"$work/log" 2>&1 || complete=no
    done
    # Not `ls`: there may be none.
    set -- "$work"/debs/*.deb
    [ -f "$1" ]
}

# A machine that never ran `apt-get update` knows no packages; one with old lists may ask the
# server for versions that are gone.
if ! download || [ "$complete" = no ]; then
    if [ "$(id -u)" -eq 0 ]; then
        apt_quick update >>"$work/log" 2>&1 || true
    fi
    download || skip "apt cannot be reached"
fi

# CRAM must not ask a server for its reference.
readable() {
    case $1 in
    *.bam) samtools quickcheck -u "$1" >/dev/null 2>&1 || return 1 ;;
    esac
    REF_PATH=$work/empty REF_CACHE=$work/empty/%s \
        samtools view -h -o /dev/null "$1" </dev/null >/dev/null 2>&1
}

# $1: a file below $tree, the unpacked package
collect() {
    # The path within the package distinguishes files of one name. The part that all share is cut.
    name=$(printf '%s' "${1#"$tree"/}" |
        sed -e 's,^usr/\(share\|lib\)/\(doc/\)\?,,' -e 's,[^A-Za-z0-9._/-],_,g' -e 's,/,--,g')
    name=$package--$name
    case $name in
    *.bam.gz | *.cram.gz) # packages compress their documentation, these files too
        name=${name%.gz}
        gzip -dc "$1" >"$work/file" || return 0 ;;
    *)
        cp "$1" "$work/file" ;;
    esac
    sum=$(cksum <"$work/file")
    if grep -qxF "$sum" "$work/sums"; then
        return 0
    fi
    echo "$sum" >>"$work/sums"
    # The file needs its extension before samtools reads it.
    mv "$work/file" "$work/bams/$name"
    readable "$work/bams/$name" || mv "$work/bams/$name" "$work/broken/$name"
}

: >"$work/sums"
for deb in "$work"/debs/*.deb; do
    package=$(basename "$deb")
    package=${package%%_*}
    tree=$work/tree
    rm -rf "$tree"
    mkdir "$tree"
    dpkg -x "$deb" "$tree"
    find "$tree" -type f \( -name '*.bam' -o -name '*.sam' -o -name '*.cram' -o -name '*.bam.gz' \
        -o -name '*.sam.gz' -o -name '*.cram.gz' \) | LC_ALL=C sort >"$work/list"
    while IFS= read -r file; do
        collect "$file"
    done <"$work/list"
done

rm -rf "$dir/bams" "$dir/broken" "$stamp"
mv "$work/bams" "$work/broken" "$dir/"
[ "$complete" = no ] || echo "$packages" >"$stamp"
count() {
    find "$1" -type f | wc -l | tr -d ' '
}
echo "fetch-real-bams: $(count "$dir/bams") files in $dir/bams," \
    "$(count "$dir/broken") unreadable ones in $dir/broken"
