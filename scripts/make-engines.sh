#!/usr/bin/env bash
# make-engines.sh DIR -- Snakemake and Nextflow for the tests of workflows: DIR/snakemake and
# DIR/nextflow. Snakemake comes from the Python package index with the versions of
# test/engines/requirements.txt, Nextflow by Maven with those of test/engines/pom.xml; it needs
# Java 17 or newer, and takes no launcher that downloads the rest. Without an index or Maven the
# tests run all the same and skip what needs an engine. DIR/complete is there when both are
# installed.
set -euo pipefail
mkdir -p "$1"
dir=$(cd "$1" && pwd)
source=$(dirname "$0")/../test/engines

say() {
    echo "make-engines.sh: $1; its tests are skipped" >&2
}

snakemake() {
    rm -rf "$dir/venv" "$dir/snakemake"
    python3 -m venv "$dir/venv" &&
        "$dir/venv/bin/python" -m pip install --quiet --disable-pip-version-check --retries 1 \
            -r "$source/requirements.txt" &&
        ln -s venv/bin/snakemake "$dir/snakemake"
}

# Nextflow's own launcher opens these packages of Java to its libraries, too.
java_packages="java.io java.lang java.net java.nio java.util java.util.concurrent.atomic
    java.util.concurrent.locks java.util.regex jdk.internal.misc jdk.internal.vm sun.nio.ch
    sun.nio.fs sun.net.www.protocol.file sun.net.www.protocol.ftp sun.net.www.protocol.http
    sun.net.www.protocol.https"

nextflow() {
    rm -rf "${dir:?}/lib" "$dir/nextflow"
    mvn --quiet --batch-mode --file "$source/pom.xml" dependency:copy-dependencies \
        -DincludeScope=runtime -DoutputDirectory="$dir/lib" || return
    local opens
    # shellcheck disable=SC2086 # these are words
    opens=$(printf -- '--add-opens=java.base/%s=ALL-UNNAMED ' $java_packages)
    printf '#!/bin/sh\nexec java -XX:TieredStopAtLevel=1 %s-cp "%s/lib/*" nextflow.cli.Launcher "$@"\n' \
        "$opens" "$dir" >"$dir/nextflow"
    chmod +x "$dir/nextflow"
}

rm -f "$dir/complete"
complete=yes
[ "$dir/snakemake" -nt "$source/requirements.txt" ] || snakemake || {
    say "Snakemake cannot be installed"
    complete=no
}
[ "$dir/nextflow" -nt "$source/pom.xml" ] || nextflow || {
    say "Nextflow cannot be installed: it needs java and mvn"
    complete=no
}
[ "$complete" = no ] || touch "$dir/complete"
