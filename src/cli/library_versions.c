/* library_versions.c -- see library_versions.h. The Makefile defines ROCKSDB_VERSION and
 * SNAPPY_VERSION; it gets them from pkg-config, or from the header under ROCKSDB_DIR. */
#include "cli/library_versions.h"

#include "bam/bgzf_engine.h"

#include <htslib/hts.h>
#include <lz4.h>
#include <string.h>
#include <xxhash.h>
#include <zstd.h>

#ifndef ROCKSDB_VERSION
#define ROCKSDB_VERSION ""
#endif
#ifndef SNAPPY_VERSION
#define SNAPPY_VERSION ""
#endif

#define TEXT_OF(x) #x
#define VERSION_OF(major, minor, release) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(release)
#define XXHASH_VERSION VERSION_OF(XXH_VERSION_MAJOR, XXH_VERSION_MINOR, XXH_VERSION_RELEASE)

static const char *known(const char *version)
{
    return *version ? version : "of unknown version";
}

void library_versions(struct library_version list[LIBRARY_COUNT])
{
    const char *libdeflate = "", *zlib = "", *isal = "";
    const char *libdeflate_name = bgzf_engine_library(BGZF_ENGINE_LIBDEFLATE, &libdeflate);
    const char *zlib_name = bgzf_engine_library(BGZF_ENGINE_ZLIB, &zlib);
    const char *isal_name = bgzf_engine_library(BGZF_ENGINE_IGZIP, &isal);
    const struct library_version all[LIBRARY_COUNT] = {
        {"htslib", "htslib", hts_version()},
        {NULL, libdeflate_name, libdeflate},
        {"isal", isal_name, isal},
        {"zlib", zlib_name, zlib},
        {"rocksdb", "RocksDB", known(ROCKSDB_VERSION)},
        {"snappy", "snappy", known(SNAPPY_VERSION)},
        {"lz4", "lz4", LZ4_versionString()},
        {"zstd", "zstd", ZSTD_versionString()},
        {"xxhash", "xxHash", XXHASH_VERSION},
    };
    memcpy(list, all, sizeof all);
}
