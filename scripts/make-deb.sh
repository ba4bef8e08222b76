#!/bin/sh
# make-deb.sh TARBALL DIR -- builds the Debian package of a source tarball in DIR, without network.
#
# packaging/debian is taken from the tarball. DEB_BUILD_OPTIONS=nocheck leaves out the unit tests.
# Leaves DIR/*.deb, .changes and .buildinfo.
set -eu
tarball=$1 dir=$2

fail() {
    echo "make-deb: $1" >&2
    exit 1
}

for tool in dpkg-buildpackage dh; do
    command -v "$tool" >/dev/null ||
        fail "no $tool: apt-get install --no-install-recommends dpkg-dev debhelper"
done

name=$(basename "$tarball" .tar.gz)
rm -rf "$dir"
mkdir -p "$dir"
tar -C "$dir" -xzf "$tarball"
[ -d "$dir/$name/packaging/debian" ] || fail "no packaging/debian in $tarball"
cp -R "$dir/$name/packaging/debian" "$dir/$name/debian"

# One package of a small program; whoever needs its symbols builds it with -g.
DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS:+$DEB_BUILD_OPTIONS }noautodbgsym"
export DEB_BUILD_OPTIONS
# A `make` above us would hand its settings (PREFIX=, MAKEFLAGS) down to that of the package.
(cd "$dir/$name" && env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS -u PREFIX -u DESTDIR \
    dpkg-buildpackage --build=binary --no-sign --jobs="$(nproc)")
rm -rf "${dir:?}/$name"
ls -l "$dir"
