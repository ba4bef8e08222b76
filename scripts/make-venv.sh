#!/bin/sh
# make-venv.sh DIR -- a Python environment for the CLI tests: pytest and pytest-xdist, pysam, whose
# samtools 1.24 is the reference for sort orders, matplotlib for the plots, MultiQC, which reads
# reports, pyBigWig, three libraries that read columns, DuckDB's shell, and the S3 server moto, of
# which only the packages that S3 needs (with all that they need, 1.2 GB). pysam and the readers of
# columns have exact versions, which run with the Python of Debian 12 (3.11): the same change is
# always judged alike. So the environment does not see what else is installed for Python on the
# machine; only without a package index it does, for Debian's pytest, and skips what needs the
# others.
# DIR/complete is there when all are installed.
set -eu
dir=$1

install() {
    "$dir/bin/python" -m pip install --quiet --disable-pip-version-check --retries 1 "$@" && return
    echo "make-venv.sh: $* cannot be installed" >&2
    return 1
}

python3 -m venv "$dir"
if ! install 'pytest>=7.2' 'pytest-xdist>=3.1'; then
    python3 -m venv --system-site-packages "$dir"
    if ! "$dir/bin/python" -c 'import pytest, xdist'; then
        echo "make-venv.sh: no test can run: apt-get install python3-pytest python3-pytest-xdist" >&2
        exit 1
    fi
fi
complete=yes
install pysam==0.24.1 || complete=no
install 'matplotlib>=3.4' || complete=no
install multiqc || complete=no
install pyBigWig || complete=no
install pyarrow==26.0.1 polars==2.1.0 duckdb==2.0.0 || complete=no
install duckdb-cli==1.5.6 || complete=no
install 'moto[s3]>=5.2.5,<6' flask flask-cors || complete=no     # 5.2.1 ends uploads wrongly
rm -f "$dir/complete"
if [ "$complete" = yes ]; then
    touch "$dir/complete"
else
    echo "make-venv.sh: tests that need these are skipped" >&2
fi
