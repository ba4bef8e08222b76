#!/usr/bin/env bash
# Build script of the conda recipe. conda-build sets PREFIX, CC, CFLAGS, CPPFLAGS, LDFLAGS and
# CPU_COUNT. All libraries are in PREFIX; pkg-config must find each of them.
set -euo pipefail

export PKG_CONFIG_PATH="$PREFIX/lib/pkgconfig:$PREFIX/share/pkgconfig"
settings=(CC="$CC" CPPFLAGS="${CPPFLAGS:-} -I$PREFIX/include"
    LDFLAGS="${LDFLAGS:-} -L$PREFIX/lib -Wl,-rpath,$PREFIX/lib")

make -j"${CPU_COUNT:-1}" V=1 "${settings[@]}" all completions
make "${settings[@]}" install PREFIX="$PREFIX" SAMTOOLS_DIR="$PREFIX/libexec/rocksort"
