#!/bin/sh
# run-unit.sh DIR PROGRAM... -- runs unit tests, as many at a time as there are cores; one line each:
# its path below DIR.
#
# What a program prints is shown if it fails, or always if V is not empty. ROCKSORT_TEST_WRAPPER has
# words to put before each program, such as those of valgrind. Starts no more after a failure.
set -eu

# One program, as xargs calls it: --one DIR PROGRAM. Status 255 ends xargs.
if [ "$1" = --one ]; then
    name=${3#"$2"/}
    status=0
    # shellcheck disable=SC2086 # these are words
    printed=$(${ROCKSORT_TEST_WRAPPER:-} "$3" 2>&1) || status=$?
    if [ "$status" -ne 0 ]; then
        printf 'TEST %s\n%s\nFAIL %s: exit status %s\n' "$name" "$printed" "$name" "$status"
        exit 255
    fi
    printf 'TEST %s\n%s' "$name" "${V:+$printed
}"
    exit 0
fi

dir=$1
shift
printf '%s\n' "$@" |
    xargs -P "$(nproc 2>/dev/null || echo 1)" -I '{}' sh "$0" --one "$dir" '{}' 2>/dev/null || exit 1
echo "$# unit test programs passed"
