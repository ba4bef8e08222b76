#!/bin/sh
# Installs what rocksort needs, if it is missing, by Debian package name.
#
#     scripts/install-deps.sh [build|test|demo|bench|fuzz|deb|test-deb]
#
# build is the default; all contain it.
#
# Quick when all is there: one dpkg-query, no `apt-get update`. Where packages cannot be installed
# (no apt, or neither root nor sudo without a password) it says what to install by apt, conda or
# Homebrew and exits with 1, unless the compiler finds all that is needed anyway (HTSDIR= and
# ROCKSDB_DIR= name places of one's own, as for make).
set -eu

build_apt="gcc make pkg-config libhts-dev librocksdb-dev libsnappy-dev liblz4-dev libzstd-dev
    zlib1g-dev libdeflate-dev libxxhash-dev"
build_conda="c-compiler make pkg-config htslib rocksdb snappy lz4-c zstd zlib libdeflate xxhash"
build_brew="make pkg-config htslib rocksdb snappy lz4 zstd zlib libdeflate xxhash"
build_modules="htslib rocksdb snappy liblz4 libzstd zlib libdeflate libxxhash"

what=${1:-build}
case $what in
build)
    apt=$build_apt conda=$build_conda brew=$build_brew modules=$build_modules programs="" ;;
test)
    # man-db to fish: the tests of the manual page and of completions, skipped elsewhere
    apt="$build_apt libcmocka-dev python3 python3-venv samtools man-db mandoc zsh fish"
    conda="$build_conda cmocka python samtools"
    brew="$build_brew cmocka python samtools"
    modules="$build_modules cmocka"
    programs="python3 samtools" ;;
demo)
    apt="$build_apt samtools"
    conda="$build_conda samtools"
    brew="$build_brew samtools"
    modules=$build_modules
    programs="samtools" ;;
bench) # the disk model, with libfuse 3; where there is none, benchmarks run on the plain disk
    apt="$build_apt python3 samtools libfuse3-dev fuse3"
    conda="$build_conda python samtools libfuse"
    brew="$build_brew python samtools"
    modules="$build_modules fuse3"
    programs="python3 samtools" ;;
fuzz) # clang with libFuzzer
    apt="$build_apt python3 clang libclang-rt-dev"
    conda="$build_conda python clang compiler-rt"
    brew="$build_brew python llvm"
    modules="$build_modules"
    programs="python3 clang" ;;
deb | test-deb) # Debian's own tools: there is nothing to install elsewhere
    apt="$build_apt dpkg-dev debhelper libcmocka-dev"
    [ "$what" = deb ] || apt="$apt debootstrap lintian"
    conda=$build_conda brew=$build_brew modules="$build_modules cmocka"
    programs="dpkg-buildpackage dh" ;;
*)
    echo "usage: scripts/install-deps.sh [build|test|demo|bench|fuzz|deb|test-deb]" >&2
    exit 1 ;;
esac

have() {
    command -v "$1" >/dev/null 2>&1
}

# One word a line. A package that dpkg never heard of makes dpkg-query fail, but it still prints
# the others; `pkg-config` may be installed as pkgconf, which provides it.
missing_packages() {
    # shellcheck disable=SC2086 # the list is words
    installed=$(dpkg-query -W -f '${db:Status-Status} ${Package} ${Provides}\n' $apt pkgconf \
        2>/dev/null | grep '^installed ' || true)
    for package in $apt; do
        # Names are wrapped in blanks to match whole ones; `pkg-config (= 1.8)` still matches.
        case " $(printf '%s' "$installed" | tr ',\n' '  ') " in
        *" $package "*) ;;
        *) echo "$package" ;;
        esac
    done
}

# What a build would not find, whoever installed it.
missing_otherwise() {
    have "${CC:-cc}" || have gcc || have clang || echo "C-compiler"
    have make || have gmake || echo make
    for program in $programs; do
        have "$program" || echo "$program"
    done
    if ! have pkg-config; then
        echo pkg-config
        return
    fi
    for module in $modules; do
        case $module in
        htslib) [ -z "${HTSDIR:-}" ] || continue ;;
        rocksdb) [ -z "${ROCKSDB_DIR:-}" ] || continue ;;
        esac
        pkg-config --exists "$module" || has_header "$module" || echo "$module"
    done
}

# Some builds of these libraries come without a .pc file.
has_header() {
    case $1 in
    snappy) header=snappy-c.h ;;
    liblz4) header=lz4.h ;;
    libzstd) header=zstd.h ;;
    zlib) header=zlib.h ;;
    libdeflate) header=libdeflate.h ;;
    libxxhash) header=xxhash.h ;;
    *) return 1 ;;
    esac
    # shellcheck disable=SC2086 # flags are words
    echo "#include <$header>" | ${CC:-cc} ${CPPFLAGS:-} ${CFLAGS:-} -E -x c - >/dev/null 2>&1
}

words() {
    # shellcheck disable=SC2086 # joins lines and runs of blanks
    echo $1
}

# Says what to install and ends. $1: why this script does not do it.
give_up() {
    missing=$(words "$(missing_otherwise)")
    if [ -z "$missing" ]; then
        echo "install-deps: all that is needed was found"
        exit 0
    fi
    cat >&2 <<END
install-deps: $1
install-deps: not found: $missing
Install one of these, then run this again:
  Debian, Ubuntu:  apt-get install --no-install-recommends $(words "$apt")
  conda:           conda install -c conda-forge -c bioconda $(words "$conda")
  Homebrew:        brew install $(words "$brew")
With conda or Homebrew, PKG_CONFIG_PATH must name their lib/pkgconfig; HTSDIR= and ROCKSDB_DIR=
name other places of htslib and RocksDB.
END
    exit 1
}

if ! have apt-get || ! have dpkg-query; then
    give_up "there is no apt here"
fi

missing=$(words "$(missing_packages)")
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ]; then
    as_root=""
elif have sudo && sudo -n true 2>/dev/null; then
    as_root="sudo -n"
else
    give_up "not root, and sudo needs a password or is missing; packages missing: $missing"
fi

echo "install-deps: installing $missing"
# `env` because sudo drops the caller's variables.
# shellcheck disable=SC2086 # both are words
if ! $as_root apt-get update -qq; then
    echo "install-deps: apt-get update failed; going on with the package lists there are" >&2
fi
# shellcheck disable=SC2086
if ! $as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq -o DPkg::Lock::Timeout=120 \
    --no-install-recommends $missing </dev/null; then
    give_up "apt-get could not install: $missing"
fi
