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

# No package of debug symbols: those who need them can build the program themselves.
DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS:+$DEB_BUILD_OPTIONS }noautodbgsym"
export DEB_BUILD_OPTIONS
# The make that runs this script would pass its settings (PREFIX=, MAKEFLAGS) to the package's.
(cd "$dir/$name" && env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS -u PREFIX -u DESTDIR \
    dpkg-buildpackage --build=binary --no-sign --jobs="$(nproc)")
rm -rf "${dir:?}/$name"
ls -l "$dir"
