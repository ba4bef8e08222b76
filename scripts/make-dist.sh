#!/bin/sh
# make-dist.sh NAME DIR -- makes DIR/NAME.tar.gz, the source tarball of the last commit.
#
# The same commit gives the same bytes: git archive takes all times from the commit, modes do not
# depend on the user's settings, and gzip -n adds neither name nor time.
set -eu
name=$1 dir=$2

fail() {
    echo "make-dist: $1" >&2
    exit 1
}

git rev-parse --verify --quiet HEAD >/dev/null ||
    fail "this is no git checkout: the tarball is made of a commit"
[ -z "$(git status --porcelain --untracked-files=no)" ] ||
    echo "make-dist: warning: changes that are not committed are left out" >&2

mkdir -p "$dir"
trap 'rm -f "$dir/$name.tar" "$dir/$name.tar.gz.new"' EXIT
git -c tar.umask=0022 archive --format=tar --prefix="$name/" --output="$dir/$name.tar" HEAD
gzip -9 -n <"$dir/$name.tar" >"$dir/$name.tar.gz.new"
mv "$dir/$name.tar.gz.new" "$dir/$name.tar.gz"
sha256sum "$dir/$name.tar.gz"
