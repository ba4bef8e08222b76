#!/bin/sh
# run-unit.sh DIR PROGRAM... -- runs unit tests, one line each: its path below DIR.
#
# What a program prints is shown if it fails, or always if V is not empty. ROCKSORT_TEST_WRAPPER has
# words to put before each program, such as those of valgrind. Stops at the first failure.
set -eu
dir=$1
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT

for program in "$@"; do
    echo "TEST ${program#"$dir"/}"
    status=0
    # shellcheck disable=SC2086 # these are words
    ${ROCKSORT_TEST_WRAPPER:-} "$program" >"$log" 2>&1 || status=$?
    [ "$status" -eq 0 ] && [ -z "${V:-}" ] || cat "$log"
    if [ "$status" -ne 0 ]; then
        echo "FAIL ${program#"$dir"/}: exit status $status"
        exit 1
    fi
done
echo "$# unit test programs passed"
