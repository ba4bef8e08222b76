/* library_versions.c -- see library_versions.h. The Makefile defines ROCKSDB_VERSION and
 * SNAPPY_VERSION; it gets them from pkg-config, or from the header under ROCKSDB_DIR. */
#include "cli/library_versions.h"

#include "bam/bgzf_engine.h"

#include <htslib/hts.h>
#include <lz4.h>
#include <stdio.h>
#include <xxhash.h>
#include <zstd.h>

#ifndef ROCKSDB_VERSION
#define ROCKSDB_VERSION ""
#endif
#ifndef SNAPPY_VERSION
#define SNAPPY_VERSION ""
#endif

static const char *known(const char *version)
{
    return *version ? version : "of unknown version";
}

void library_versions(struct library_version list[LIBRARY_COUNT])
{
    unsigned number = XXH_versionNumber();
    char xxhash[sizeof "00000.00.00"];
    const char *libdeflate = "", *zlib = "", *isal = "";
    const char *libdeflate_name = bgzf_engine_library(BGZF_ENGINE_LIBDEFLATE, &libdeflate);
    const char *zlib_name = bgzf_engine_library(BGZF_ENGINE_ZLIB, &zlib);
    const char *isal_name = bgzf_engine_library(BGZF_ENGINE_IGZIP, &isal);
    (void)snprintf(xxhash, sizeof xxhash, "%u.%u.%u", number / 10000 % 1000, number / 100 % 100,
                   number % 100);
    const struct {
        const char *field, *name, *version;
    } known_ones[LIBRARY_COUNT] = {
        {"htslib", "htslib", hts_version()},
        {NULL, libdeflate_name, libdeflate},
        {"isal", isal_name, isal},
        {"zlib", zlib_name, zlib},
        {"rocksdb", "RocksDB", known(ROCKSDB_VERSION)},
        {"snappy", "snappy", known(SNAPPY_VERSION)},
        {"lz4", "lz4", LZ4_versionString()},
        {"zstd", "zstd", ZSTD_versionString()},
        {"xxhash", "xxHash", xxhash},
    };
    for (int i = 0; i < LIBRARY_COUNT; i++) {
        list[i] = (struct library_version){known_ones[i].field, known_ones[i].name, ""};
        (void)snprintf(list[i].version, LIBRARY_VERSION_BYTES, "%s", known_ones[i].version);
    }
}
