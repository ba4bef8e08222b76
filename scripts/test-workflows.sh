#!/usr/bin/env bash
# test-workflows.sh [snakemake] [nextflow] -- runs the Snakemake wrapper and the Nextflow module
# (both, if none is named) in small pipelines: real aligners align simulated reads of two samples in
# two lanes, rocksort sorts their output from pipes, and merges the lanes.
#
# Needs the built ./samtools-rocksort, samtools, bwa, minimap2 and Python, and the engines of
# scripts/make-engines.sh in build/engines, if none are on PATH.
# PROGRAMS=DIR tests the programs of another directory.
set -euo pipefail
cd "$(dirname "$0")/.."
top=$PWD
[ $# -gt 0 ] || set -- snakemake nextflow

fail() {
    echo "test-workflows: $1" >&2
    exit 1
}

programs=$(cd "${PROGRAMS:-.}" && pwd)
[ -x "$programs/samtools-rocksort" ] || fail "no $programs/samtools-rocksort: run make"
for tool in samtools bwa minimap2 python3; do
    command -v "$tool" >/dev/null || fail "no $tool: apt-get install samtools bwa minimap2 python3"
done
# The `samtools` there is our front end, which runs the other samtools.
export PATH=$programs:$PATH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# check_bam FILE INDEX N_READS: fails unless FILE is complete and sorted by coordinate, with N_READS
# primary records and both read groups, and the index finds what a scan finds.
check_bam() {
    local n_indexed n_scanned
    samtools quickcheck "$1" || fail "$1 is not whole"
    [ -s "$2" ] || fail "no index $2"
    [ "$(samtools view -c -F 0x900 "$1")" -eq "$3" ] || fail "$1 has not $3 reads"
    samtools view -H "$1" | grep '^@HD.*SO:coordinate' >/dev/null || fail "$1 has no order"
    [ "$(samtools view -H "$1" | grep -c '^@RG')" -eq 2 ] || fail "$1 has not two read groups"
    # chrM is the last sequence; unplaced reads come after it.
    samtools view "$1" | awk -F '\t' '
        { chr = $3 == "*" ? 9 : $3 == "chrM" ? 8 : substr($3, 4) + 0 }
        chr < last || (chr == last && chr < 9 && $4 < pos) { exit 1 }
        { last = chr; pos = $4 }' || fail "$1 is not sorted"
    n_indexed=$(samtools view -c -X "$1" "$2" chr2:5000-9000)
    n_scanned=$(samtools view -c -e 'rname=="chr2" && pos<=9000 && endpos>=5000' "$1")
    if [ "$n_indexed" -ne "$n_scanned" ] || [ "$n_scanned" -eq 0 ]; then
        fail "$2 finds $n_indexed records of $n_scanned"
    fi
}

# check_mates FILE: fails unless the reads of FILE were told of their mates.
check_mates() {
    [ "$(samtools view -c -d ms -f 1 -F 0x900 "$1")" -eq "$(samtools view -c -f 1 -F 0x900 "$1")" ] ||
        fail "the mates in $1 were not fixed"
}

# check_reports FILE: fails unless duplicates in FILE.bam are marked, and the reports beside it agree
# with it.
check_reports() {
    local n
    n=$(samtools view -c -f 0x400 "$1.bam")
    [ "$n" -gt 0 ] || fail "no duplicates are marked in $1.bam"
    samtools flagstat "$1.bam" | cmp - "$1.flagstat" || fail "$1.flagstat is wrong"
    samtools idxstats "$1.bam" | cmp - "$1.idxstats" || fail "$1.idxstats is wrong"
    [ "$(wc -l <"$1.coverage")" -eq 4 ] || fail "$1.coverage has not three references"
    grep -q "^DUPLICATE TOTAL: $n\$" "$1.dups" || fail "$1.dups does not count $n duplicates"
    grep -q 'picard.sam.DuplicationMetrics' "$1.metrics" || fail "$1.metrics is not Picard's"
}

# engine NAME: prints its command.
engine() {
    command -v "$1" || ls "$top/build/engines/$1" || fail "no $1: bash scripts/make-engines.sh build/engines"
}

run_snakemake() {
    local snakemake dir=$work/snakemake sample
    snakemake=$(engine snakemake)
    echo "== Snakemake $("$snakemake" --version)"
    python3 scripts/make-reads.py "$dir"
    "$snakemake" --snakefile packaging/snakemake/test/Snakefile --directory "$dir" --cores 2 \
        --config wrapper="file://$top/packaging/snakemake" >"$work/snakemake.log" 2>&1 || {
        cat "$work/snakemake.log" "$dir"/logs/*/*.log >&2
        fail "Snakemake failed"
    }
    for sample in tumour normal; do
        check_bam "$dir/samples/$sample.bam" "$dir/samples/$sample.bam.csi" 6000
        for lane in L1 L2; do
            [ -s "$dir/lanes/$sample-$lane.bam.bai" ] || fail "no BAI of $sample-$lane"
            check_mates "$dir/lanes/$sample-$lane.bam"
            samtools view "$dir/lanes/$sample-$lane.bam" | grep 'ct:Z:' >/dev/null ||
                fail "the options of params.fixmate did not reach rocksort"
            grep 'xxh3sum:.* records:' "$dir/logs/sort_lane/$sample-$lane.log" >/dev/null ||
                fail "params.extra did not reach rocksort"
        done
        check_reports "$dir/samples/$sample"
    done
    samtools view -H "$dir/long/normal.cram" | grep 'SO:queryname' >/dev/null ||
        fail "the CRAM is not sorted by name"
    # rocksort was given the job's threads, and memory from the job's.
    samtools view -H "$dir/samples/normal.bam" | grep '^@PG.*-@ 2 --max-memory 3[0-9][0-9]M' \
        >/dev/null || fail "threads or memory did not reach rocksort"
    [ -z "$(find "$dir" -name '*.rocksort')" ] || fail "temporary directories are left"
    echo "Snakemake: 2 samples of 2 lanes, and one by name: sorted, marked, counted and indexed"
    resume_in_snakemake "$snakemake" "$dir"
}

# A job that dies while it merges is retried by Snakemake, and the wrapper resumes it.
resume_in_snakemake() {
    local snakemake=$1 dir=$2
    mkdir "$work/dies"
    cat >"$work/dies/samtools-rocksort" <<END
#!/bin/sh
# The first sort leaves its temporary data, no output, and dies.
case \$* in
*--resume*) ;;
*) mkdir "$work/died" 2>/dev/null && {
    "$programs/samtools-rocksort" "\$@" --max-memory 1M -k
    rm samples/normal.bam*
    kill -9 \$\$
} ;;
esac
exec "$programs/samtools-rocksort" "\$@"
END
    chmod +x "$work/dies/samtools-rocksort"
    rm "$dir"/samples/normal.bam*
    touch "$dir"/lanes/*
    PATH=$work/dies:$PATH "$snakemake" samples/normal.bam --retries 1 --allowed-rules unite_lanes \
        --snakefile packaging/snakemake/test/Snakefile --directory "$dir" --cores 2 \
        --config wrapper="file://$top/packaging/snakemake" >"$work/snakemake.log" 2>&1 || {
        cat "$work/snakemake.log" "$dir/logs/unite_lanes/normal.log" >&2
        fail "Snakemake failed to resume"
    }
    [ -d "$work/died" ] || fail "nothing died"
    check_bam "$dir/samples/normal.bam" "$dir/samples/normal.bam.csi" 6000
    check_reports "$dir/samples/normal"
    # -k in the header shows that the first sort read the data; a new sort would not have it.
    samtools view -H "$dir/samples/normal.bam" | grep '^@PG.*rocksort .* --max-memory 1M -k' \
        >/dev/null || fail "the job was not resumed"
    [ ! -e "$dir/samples/normal.bam.rocksort" ] || fail "the temporary directory is left"
    echo "Snakemake: a job that died was resumed"
}

run_nextflow() {
    local nextflow dir=$work/nextflow sample
    nextflow=$(engine nextflow)
    python3 scripts/make-reads.py "$dir"
    echo "== Nextflow $(NXF_HOME="$work/nxf" "$nextflow" -version | sed -n 's/^ *version //p')"
    (cd "$dir" && NXF_OFFLINE=true NXF_HOME="$work/nxf" NXF_ANSI_LOG=false "$nextflow" run \
        "$top/packaging/nextflow/tests/pipeline.nf" \
        -c "$top/packaging/nextflow/tests/pipeline.config" \
        --genome "$dir/genome.fasta" --reads "$dir/reads/*_{1,2}.fastq" --outdir "$dir/results") \
        >"$work/nextflow.log" 2>&1 || {
        cat "$work/nextflow.log" >&2
        fail "Nextflow failed"
    }
    for sample in tumour normal; do
        check_bam "$dir/results/$sample.bam" "$dir/results/$sample.bam.csi" 6000
        check_mates "$dir/results/$sample.bam"
        check_reports "$dir/results/$sample"
        samtools view -H "$dir/results/$sample.bam" | grep '^@PG.*-@ 2 --max-memory 372M' \
            >/dev/null || fail "threads or memory did not reach rocksort"
        samtools view "$dir/results/$sample.merged.bam" >"$work/merged.sam"
        samtools view "$dir/results/$sample.bam" | cmp - "$work/merged.sam" ||
            fail "groups of $sample, merged, are not what they were made of"
        samtools view -H "$dir/results/$sample.merged.bam" >"$work/merged.header"
        for option in --split-by --merge; do
            grep -q "^@PG.*$option" "$work/merged.header" || fail "$option did not reach rocksort"
        done
    done
    echo "Nextflow: 2 samples of 2 lanes: sorted, marked, counted and indexed; divided and merged"
}

for engine in "$@"; do
    case $engine in
    snakemake | nextflow) "run_$engine" ;;
    *) fail "snakemake or nextflow, not '$engine'" ;;
    esac
done
