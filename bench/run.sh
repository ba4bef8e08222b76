#!/bin/sh
# run.sh TARGET -- the commands of `make TARGET` for each benchmark. The Makefile sets:
#
#   BAM         files of reads, or `simulated`. Without it the reads are those of a Debian package
#               (bench_input.py), or simulated where that cannot be fetched. Each benchmark but
#               bench-2014 says which they were.
#   RECORDS     another number of them, such as 500K
#   SCALE       full, or small for a run of minutes
#   PEERS       the programs that bench-peers and bench-scaling run, such as samtools,fgumi
#   SCALING     more options of scaling.py, such as '--threads 1,8,16 --settings 4G:1 --records 24M'
#   BENCH_2014  more options of bench-2014.py, such as '--experiment storage'
#   PYTHON      a Python that has the libraries of columns.py
# shellcheck disable=SC2086 # variables hold several words
set -eu
reads="--reads ${BAM:-debian} ${RECORDS:+--records $RECORDS}"
# Rocksort's files as those of the others, and as they are without --deflate.
deflate="--deflate libdeflate,auto"
programs=${PEERS:+--programs $PEERS}

run() {
    script=$1
    shift
    python3 "bench/$script.py" "$@"
}

case $1 in
bench)
    run bench $reads
    run one_pass $deflate $reads
    run deflate --reads ${BAM:-debian debian-long simulated}
    run tail $reads
    [ -n "${BAM:-}" ] || run bench --points l1-512M,l1-64M,default-512M --reads debian-long
    ;;
bench-peers)
    # All sorters, then the chains from the aligner to marked duplicates: tables, runs and a plot.
    case ${SCALE:-full} in
    full) sorters="--records 2M --settings 64M:1,512M:1,512M:default,all:1" chains="--records 6M" ;;
    small)
        sorters="--records 500K --repeats 2 --settings 64M:1,64M:default,all:1"
        chains="--records 500K --repeats 2"
        ;;
    *)
        echo "bench-peers: SCALE is full or small" >&2
        exit 1
        ;;
    esac
    mkdir -p build/peers
    run compare $sorters $reads $programs --json build/peers/peers.json \
        --markdown build/peers/peers.md --plot build/peers/peers.png
    run one_pass --peers $chains --levels 1 $deflate $reads --json build/peers/one-pass.json
    ;;
bench-scaling)
    mkdir -p build/scaling
    run scaling $reads $programs --json build/scaling/scaling.json \
        --markdown build/scaling/scaling.md ${SCALING:-}
    ;;
bench-columns) "${PYTHON:-python3}" bench/columns.py $reads ;;
# Without libfuse 3 it runs on the plain disk, and says so. Results go to build/bench-2014.
bench-2014) run bench-2014 --scale "${SCALE:-full}" ${BENCH_2014:-} ;;
bench-options | bench-merge | bench-qc) run "${1#bench-}" $reads ;;
*)
    echo "run.sh: no benchmark $1" >&2
    exit 1
    ;;
esac
