#!/bin/sh
# make-deb.sh TARBALL DIR -- builds the Debian package of a source tarball in DIR, without network.
#
# packaging/debian is taken from the tarball. The package's maintainer is the one who builds it:
# DEBFULLNAME and DEBEMAIL, or git's user, or the user's name on this machine.
# DEB_BUILD_OPTIONS=nocheck leaves out the unit tests. Leaves DIR/*.deb, .changes and .buildinfo, and
# prints the name of the .deb last.
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
full_name=${DEBFULLNAME:-$(git config user.name || id -un)}
email=${DEBEMAIL:-$(git config user.email || echo "$(id -un)@$(uname -n)")}
builder=$(printf '%s <%s>' "$full_name" "$email" | sed 's/[\\&|]/\\&/g')
sed -i "s|@BUILDER@|$builder|" "$dir/$name/debian/control" "$dir/$name/debian/changelog"

# No package of debug symbols: those who need them can build the program themselves.
DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS:+$DEB_BUILD_OPTIONS }noautodbgsym"
export DEB_BUILD_OPTIONS
# The make that runs this script would pass its settings (PREFIX=, MAKEFLAGS) to the package's.
(cd "$dir/$name" && env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS -u PREFIX -u DESTDIR \
    dpkg-buildpackage --build=binary --no-sign --jobs="$(nproc)")
rm -rf "${dir:?}/$name"
echo "made $(ls "$dir"/samtools-rocksort_*.deb)"
echo "install it with: sudo apt install ./$(ls "$dir"/samtools-rocksort_*.deb)"
