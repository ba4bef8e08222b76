#!/bin/sh
# Installs what rocksort needs, if it is missing. The table below is the one list of it.
#
#     scripts/install-deps.sh SET            installs the packages of SET that are missing, by apt
#     scripts/install-deps.sh --check SET    installs nothing: says what a build would not find
#
# SET is build (the default), unit, test, demo, spindle, bench, fuzz, deb or test-deb.
#
# When all is there, the first form runs dpkg-query once and no `apt-get update`. Where it cannot
# install (no apt, or neither root nor sudo without a password) it fails, unless a build finds all
# that it needs anyway. Both forms fail with one message: what is missing, and the command that
# installs it. Variables as for make: CC, PKG_CONFIG, HTSDIR, ROCKSDB_DIR,
# LIBDEFLATE_DIR, ISAL_DIR.
set -eu

# One line each: name, how it is looked for, its packages (apt, conda, Homebrew; - is none), and
# the sets that need it. `all` is every set. A set with a ? does without it if there is no package.
#   program  a command; CC and PKG_CONFIG may name another
#   library  pkg-config knows it
#   package  is not looked for: only apt installs it
table() {
    cat <<'END'
C-compiler        program gcc              c-compiler  gcc         all
make              program make             make        make        all
pkg-config        program pkg-config       pkg-config  pkg-config  all
htslib            library libhts-dev       htslib      htslib      all
rocksdb           library librocksdb-dev   rocksdb     rocksdb     all
snappy            library libsnappy-dev    snappy      snappy      all
liblz4            library liblz4-dev       lz4-c       lz4         all
libzstd           library libzstd-dev      zstd        zstd        all
zlib              library zlib1g-dev       zlib        zlib        all
libxxhash         library libxxhash-dev    xxhash      xxhash      all
libdeflate        library libdeflate-dev   libdeflate  libdeflate  all?
libisal           library libisal-dev      isa-l       isa-l       all?
cmocka            library libcmocka-dev    cmocka      cmocka      unit,test,deb,test-deb
python3           program python3          python      python      test,bench,fuzz
python3-venv      package python3-venv     -           -           test
pytest            package python3-pytest   pytest      -           test
pytest-xdist      package python3-pytest-xdist pytest-xdist -      test
samtools          program samtools         samtools    samtools    test,demo,bench
mosdepth          program mosdepth         mosdepth    -           test
bedtools          program bedtools         bedtools    bedtools    test?
man               program man-db           -           -           test?
mandoc            program mandoc           -           -           test?
zsh               program zsh              -           -           test?
fish              program fish             -           -           test?
fuse3             library libfuse3-dev     libfuse     -           spindle,test?,bench?
fusermount3       program fuse3            -           -           test?,bench?
java              program default-jre-headless openjdk openjdk test?
mvn               program maven            maven       maven       test?
clang             program clang            clang       llvm        fuzz
libFuzzer         package libclang-rt-dev  compiler-rt -           fuzz
dpkg-buildpackage program dpkg-dev         -           -           deb,test-deb
dh                program debhelper        -           -           deb,test-deb
debootstrap       program debootstrap      -           -           test-deb
lintian           program lintian          -           -           test-deb
END
}

usage() {
    echo "usage: scripts/install-deps.sh [--check]" \
        "[build|unit|test|demo|spindle|bench|fuzz|deb|test-deb]" >&2
    exit 1
}

only_check=no
if [ "${1:-}" = --check ]; then
    only_check=yes
    shift
fi
set=${1:-build}
case $set in
build | unit | test | demo | spindle | bench | fuzz | deb | test-deb) ;;
*) usage ;;
esac
pkg_config=${PKG_CONFIG:-pkg-config}

have() {
    command -v "$1" >/dev/null 2>&1
}

# The lines of the table for this set. $1: "needed", or "wanted" for those with a ? too.
rows() {
    table | while read -r name kind apt conda brew sets; do
        case ",$sets," in
        *,all,* | *,"$set",*) ;;
        *,all\?,* | *,"$set"\?,*) [ "$1" = wanted ] || continue ;;
        *) continue ;;
        esac
        echo "$name $kind $apt $conda $brew"
    done
}

# Whether the user names the place of a library.
has_own_place() {
    case $1 in
    htslib) [ -n "${HTSDIR:-}" ] ;;
    rocksdb) [ -n "${ROCKSDB_DIR:-}" ] ;;
    *) false ;;
    esac
}

# $1: name, $2: kind
is_there() {
    case $1 in
    C-compiler) have "${CC%% *}" ;;
    make) have make || have gmake ;;
    pkg-config) have "${pkg_config%% *}" ;;
    *)
        case $2 in
        program) have "$1" ;;
        library) has_own_place "$1" || $pkg_config --exists "$1" 2>/dev/null ;;
        *) true ;;
        esac ;;
    esac
}

# make's default; a machine may have only gcc or clang.
if [ -z "${CC:-}" ]; then
    CC=cc
    have cc || ! have gcc || CC=gcc
    have "$CC" || ! have clang || CC=clang
fi

# The lines of what is needed and not found.
missing_rows() {
    # One call of pkg-config for all libraries is enough when nothing is missing.
    libraries=$(rows needed | while read -r name kind rest; do
        [ "$kind" != library ] || has_own_place "$name" || echo "$name"
    done)
    # Without pkg-config nobody knows which libraries are there.
    # shellcheck disable=SC2086 # these are words
    if ! have "${pkg_config%% *}" || $pkg_config --exists $libraries 2>/dev/null; then
        kinds="program"
    else
        kinds="program library"
    fi
    rows needed | while read -r name kind rest; do
        case " $kinds " in
        *" $kind "*) is_there "$name" "$kind" || echo "$name $kind $rest" ;;
        esac
    done
}

# Prints column $2 of lines $1 in one line, without those that have no package there.
column() {
    printf '%s\n' "$1" | awk -v n="$2" \
        'NF && $n != "-" { line = line (line == "" ? "" : " ") $n } END { print line }'
}

# What is wrong with the directories that HTSDIR and its like name.
wrong_places() {
    if [ -n "${HTSDIR:-}" ]; then
        check_place HTSDIR "$HTSDIR" htslib/sam.h libhts
    fi
    if [ -n "${ROCKSDB_DIR:-}" ]; then
        check_place ROCKSDB_DIR "$ROCKSDB_DIR" rocksdb/c.h librocksdb
    fi
    case ${LIBDEFLATE_DIR:-no} in
    no) ;;
    *) check_place LIBDEFLATE_DIR "$LIBDEFLATE_DIR" libdeflate.h libdeflate ;;
    esac
    case ${ISAL_DIR:-no} in
    no) ;;
    *) check_place ISAL_DIR "$ISAL_DIR" isa-l/igzip_lib.h libisal ;;
    esac
}

# $1: variable, $2: directory, $3: a header, $4: a library
check_place() {
    if [ ! -d "$2" ]; then
        echo "$1=$2 is not a directory"
        return
    fi
    what=
    [ -f "$2/$3" ] || [ -f "$2/include/$3" ] || what=$3
    ls "$2/$4".so* "$2/$4".a "$2/lib/$4".so* "$2/lib/$4".a 2>/dev/null | grep -q . ||
        what="${what:+$what and no }$4.so or $4.a (is it built?)"
    [ -z "$what" ] || echo "$1=$2 has no $what"
}

# The command that installs the packages of lines $1, for the package managers that are here.
commands() {
    apt="apt-get install --no-install-recommends $(column "$1" 3)"
    conda="conda install -c conda-forge -c bioconda $(column "$1" 4)"
    brew="brew install $(column "$1" 5)"
    [ "$(id -u)" -eq 0 ] || apt="sudo $apt"
    if have apt-get; then
        echo "  $apt"
    elif have conda || [ -n "${CONDA_PREFIX:-}" ]; then
        echo "  $conda"
    elif have brew; then
        echo "  $brew"
    else
        printf '  Debian, Ubuntu:  %s\n  conda:           %s\n  Homebrew:        %s\n' \
            "$apt" "$conda" "$brew"
    fi
}

# Says what is missing and ends with status 1; returns if nothing is. $1: why this script does not
# install it, or nothing.
complain() {
    wrong=$(wrong_places)
    missing=$(missing_rows)
    [ -n "$wrong$missing" ] || return 0
    {
        [ -z "${1:-}" ] || echo "install-deps: $1"
        [ -z "$wrong" ] || printf '%s\n' "$wrong" | sed 's/^/cannot build: /'
        [ -z "$missing" ] || echo "cannot build: not found: $(column "$missing" 1)"
        if [ -n "$missing" ]; then
            echo "This command installs what is missing:"
            case $(column "$missing" 1) in
            *pkg-config*) commands "$(rows wanted)" ;;
            *) commands "$missing" ;;
            esac
            case $(column "$missing" 2) in
            *library*)
                echo "If a library is installed elsewhere, name its lib/pkgconfig in" \
                    "PKG_CONFIG_PATH=. For htslib and RocksDB see also HTSDIR= and ROCKSDB_DIR=." ;;
            esac
        fi
        if [ -n "$wrong" ]; then
            echo "HTSDIR=, ROCKSDB_DIR= and LIBDEFLATE_DIR= name a source directory where the" \
                "library is built, or the prefix where it is installed; ISAL_DIR= names a prefix." \
                "Without them the build takes what this installs:"
            commands "$(rows wanted | grep -E '^(htslib|rocksdb|libdeflate|libisal) ')"
        fi
    } >&2
    exit 1
}

if [ "$only_check" = yes ]; then
    complain
    exit 0
fi

# Prints the packages that apt has not installed, one a line. A package that dpkg never heard of
# makes dpkg-query fail, but it still prints the others. pkg-config may be installed as pkgconf,
# which provides it.
missing_packages() {
    packages=$(column "$(rows wanted)" 3)
    # shellcheck disable=SC2086 # these are words
    installed=$(dpkg-query -W -f '${db:Status-Status} ${Package} ${Provides}\n' $packages pkgconf \
        2>/dev/null | grep '^installed ' || true)
    for package in $packages; do
        # Blanks around names match whole ones; `pkg-config (= 1.8)` still matches.
        case " $(printf '%s' "$installed" | tr ',\n' '  ') " in
        *" $package "*) ;;
        *) echo "$package" ;;
        esac
    done
}

# $1: why nothing is installed
give_up() {
    complain "$1"
    echo "install-deps: all that is needed was found"
    exit 0
}

if ! have apt-get || ! have dpkg-query; then
    give_up "there is no apt here"
fi

missing=$(missing_packages | tr '\n' ' ')
missing=${missing% }
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ]; then
    as_root=""
elif have sudo && sudo -n true 2>/dev/null; then
    as_root="sudo -n"
else
    give_up "not root, and sudo needs a password or is missing; packages missing: $missing"
fi

# The packages of $missing that a build cannot do without.
needed_packages() {
    needed=" $(column "$(rows needed)" 3) "
    for package in $missing; do
        case $needed in
        *" $package "*) printf '%s ' "$package" ;;
        esac
    done
}

# `env` because sudo drops the caller's variables.
# shellcheck disable=SC2086 # words
install() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
        -o DPkg::Lock::Timeout=120 --no-install-recommends "$@" </dev/null
}

echo "install-deps: installing $missing"
if ! $as_root apt-get update -qq; then
    echo "install-deps: apt-get update failed; going on with the package lists there are" >&2
fi
# shellcheck disable=SC2086 # words
if install $missing; then
    exit 0
fi
# apt-get installs nothing if it does not know one package. Not every architecture has all of them.
needed=$(needed_packages)
# shellcheck disable=SC2086 # words
if [ "$needed" = "$missing " ] || { [ -n "$needed" ] && ! install $needed; }; then
    give_up "apt-get could not install: $missing"
fi
for package in $missing; do
    case " $needed" in
    *" $package "*) ;;
    *) install "$package" || echo "install-deps: going on without $package" ;;
    esac
done
