#!/usr/bin/env bash
# test-deb.sh DIR -- checks the Debian package in DIR, which make-deb.sh made, as users get it.
#
# Lintian may report nothing. debootstrap makes a fresh Debian, in which the package is installed
# beside Debian's samtools, run (packaging/debian/tests/sort) and purged. No file may remain, and
# Debian's samtools must be unchanged. Needs root, debootstrap, lintian, and packages of
# Debian to install from.
#
#     TEST_DEB_BUILD=TARBALL   builds that source tarball in there and tests that package, which
#                              shows whether Build-Depends names all that is needed
#     TEST_DEB_DIR=DIR         place of that Debian (default: a temporary directory; 400 MB, or
#                              1 GB with TEST_DEB_BUILD)
#     MIRROR=URL               where debootstrap gets it from, if not from its default
set -euo pipefail
cd "$(dirname "$0")/.."
packages=$(cd "$1" && pwd)

fail() {
    echo "test-deb: $1" >&2
    exit 1
}

[ "$(id -u)" -eq 0 ] || fail "debootstrap needs root"
for tool in debootstrap lintian chroot; do
    command -v "$tool" >/dev/null || fail "no $tool: sh scripts/install-deps.sh test-deb"
done
shopt -s nullglob
debs=("$packages"/samtools-rocksort_*.deb)
[ "${#debs[@]}" -eq 1 ] || fail "not one samtools-rocksort_*.deb in $packages, but ${#debs[@]}"
deb=${debs[0]}

echo "== lintian"
lintian --allow-root --display-info --pedantic --fail-on error,warning,info \
    "$packages"/samtools-rocksort_*.changes

# shellcheck disable=SC1091 # not of this repository
suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-stable}")
top=${TEST_DEB_DIR:-$(mktemp -d)}
root=$top/root
clean_up() {
    # Do not delete the files of a file system that is still mounted.
    if mountpoint -q "$root/proc"; then umount "$root/proc" || return; fi
    rm -rf --one-file-system "$root"
    rm -f "$top"/{debootstrap,apt,build}.log "$top"/{before,after}
    [ -n "${TEST_DEB_DIR:-}" ] || rmdir "$top"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

echo "== debootstrap $suite"
mkdir -p "$root"
debootstrap --variant=minbase "$suite" "$root" ${MIRROR:+"$MIRROR"} >"$top/debootstrap.log" ||
    fail "debootstrap failed: $(tail -n 3 "$top/debootstrap.log")"
rm -f "$top/debootstrap.log"
mount -t proc proc "$root/proc"
cp /etc/resolv.conf "$root/etc/resolv.conf"
# Services must not start; documents are unpacked as on a user's machine.
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod +x "$root/usr/sbin/policy-rc.d"

inside() {
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"
}

apt_get() {
    inside apt-get -y -qq --no-install-recommends -o Dpkg::Use-Pty=0 "$@" >"$top/apt.log" 2>&1 || {
        cat "$top/apt.log" >&2
        fail "apt-get $* failed"
    }
    rm -f "$top/apt.log"
}

# All file names except those of data that change by themselves.
names() {
    inside find / -xdev \( -path /proc -o -path /var/cache -o -path /var/lib/apt \
        -o -path /var/log -o -path /tmp -o -path /var/lib/dpkg \) -prune -o -print | sort
}

apt_get update
if [ -n "${TEST_DEB_BUILD:-}" ]; then
    echo "== build with Build-Depends alone"
    name=$(basename "$TEST_DEB_BUILD" .tar.gz)
    mkdir "$root/build"
    tar -C "$root/build" -xzf "$TEST_DEB_BUILD"
    cp "$TEST_DEB_BUILD" "$root/build/"
    cp -R "$root/build/$name/packaging/debian" "$root/build/$name/debian"
    apt_get install build-essential
    apt_get build-dep "/build/$name"
    inside env DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS-}" sh "/build/$name/scripts/make-deb.sh" \
        "/build/$name.tar.gz" /build/deb >"$top/build.log" 2>&1 ||
        fail "the build failed: $(tail -n 20 "$top/build.log")"
    grep -E 'PASSED|^[0-9]+ passed' "$top/build.log" | tail -n 1 || true
    rm -f "$top/build.log"
    cp "$root"/build/deb/samtools-rocksort_*.deb "$root/tmp/"
    rm -rf "$root/build"
else
    cp "$deb" "$root/tmp/"
fi

echo "== install"
apt_get install samtools
names >"$top/before"
samtools_sum=$(inside sha256sum /usr/bin/samtools)
apt_get install "/tmp/$(basename "$deb")"
inside dpkg --verify samtools-rocksort

echo "== run"
cp packaging/debian/tests/sort "$root/tmp/test"
inside sh /tmp/test
for file in /usr/bin/samtools-rocksort /usr/lib/rocksort/bin/samtools \
    /usr/bin/rocksort-columns2sam /usr/share/man/man1/samtools-rocksort.1.gz \
    /usr/share/bash-completion/completions/samtools-rocksort \
    /usr/share/zsh/vendor-completions/_samtools-rocksort \
    /usr/share/fish/vendor_completions.d/samtools-rocksort.fish \
    /usr/share/doc/samtools-rocksort/README.md \
    /usr/share/doc/samtools-rocksort/doc/report.md \
    /usr/share/doc/samtools-rocksort/examples/plot-run.py; do
    # minbase may be set up to leave out manual pages, but the package has them.
    inside dpkg -L samtools-rocksort | grep -Fx "$file" >/dev/null || fail "no $file in the package"
done

echo "== remove"
apt_get autoremove --purge samtools-rocksort
names >"$top/after"
diff "$top/before" "$top/after" || fail "these files came or went"
rm -f "$top/before" "$top/after"
[ "$(inside sha256sum /usr/bin/samtools)" = "$samtools_sum" ] || fail "Debian's samtools changed"
inside samtools --version | head -n 1
echo "test-deb: the package installs, runs and leaves nothing"
