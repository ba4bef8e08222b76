#!/bin/sh
# make-venv.sh DIR -- a Python environment for the CLI tests, with pysam, whose samtools 1.24 is the
# reference for sort orders. Without a package index the tests run all the same and skip what needs
# pysam.
set -eu
dir=$1
pysam_version=0.24.1

python3 -m venv "$dir"
"$dir/bin/python" -m pip install --quiet --disable-pip-version-check "pysam==$pysam_version" ||
    echo "make-venv.sh: pysam $pysam_version cannot be installed; tests against it are skipped" >&2
