#!/bin/sh
# install.sh install|uninstall -- copies the programs, manual pages and completions to their places,
# or removes them. The Makefile sets BIN, COMPLETIONS, DESTDIR, PREFIX, SAMTOOLS_DIR and ZSH_DIR.
set -eu
share=$DESTDIR$PREFIX/share

# Calls $1 for each file with its mode (or link), source (or what the link holds) and place. The
# names _samtools (bash looks for it last) and vendor_conf.d/samtools.fish leave those free that the
# package of another samtools would install.
each_file() {
    "$1" 755 "$BIN/samtools-rocksort" "$DESTDIR$PREFIX/bin/samtools-rocksort"
    "$1" 755 scripts/columns2sam.py "$DESTDIR$PREFIX/bin/rocksort-columns2sam"
    "$1" 755 "$BIN/samtools" "$DESTDIR$SAMTOOLS_DIR/samtools"
    "$1" 644 doc/samtools-rocksort.1 "$share/man/man1/samtools-rocksort.1"
    "$1" link samtools-rocksort.1 "$share/man/man1/rocksort-columns2sam.1"
    "$1" 644 "$COMPLETIONS/bash" "$share/bash-completion/completions/samtools-rocksort"
    "$1" link samtools-rocksort "$share/bash-completion/completions/_samtools"
    "$1" 644 "$COMPLETIONS/zsh" "$DESTDIR$ZSH_DIR/_samtools-rocksort"
    "$1" 644 "$COMPLETIONS/fish" "$share/fish/vendor_completions.d/samtools-rocksort.fish"
    "$1" 644 completions/samtools.fish "$share/fish/vendor_conf.d/samtools-rocksort.fish"
}

install_file() {
    install -d "$(dirname "$3")"
    case $1 in
    link) ln -sf "$2" "$3" ;;
    *) install -m "$1" "$2" "$3" ;;
    esac
}

# Another samtools may have taken the place of the front end, or of its completion.
remove_file() {
    case $3 in
    "$DESTDIR$SAMTOOLS_DIR/samtools") grep -qs ROCKSORT_FRONT_END_TRIED "$3" || return 0 ;;
    */_samtools) [ "$(readlink "$3")" = "$2" ] || return 0 ;;
    esac
    rm -f "$3"
}

case ${1:-} in
install) each_file install_file ;;
uninstall) each_file remove_file ;;
*)
    echo "usage: scripts/install.sh install|uninstall" >&2
    exit 1
    ;;
esac
