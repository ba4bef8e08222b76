/* library_versions.c -- see library_versions.h. The Makefile defines ROCKSDB_VERSION and
 * SNAPPY_VERSION; it gets them from pkg-config, or from the header under ROCKSDB_DIR. */
#include "command/library_versions.h"

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

const char *library_version(enum library library, char text[LIBRARY_VERSION_BYTES])
{
    const char *name = "", *version = "";
    unsigned number = XXH_versionNumber();
    char xxhash[sizeof "00000.00.00"];
    switch (library) {
    case LIBRARY_HTSLIB: name = "htslib", version = hts_version(); break;
    case LIBRARY_LIBDEFLATE: name = bgzf_engine_library(BGZF_ENGINE_LIBDEFLATE, &version); break;
    case LIBRARY_ISAL: name = bgzf_engine_library(BGZF_ENGINE_IGZIP, &version); break;
    case LIBRARY_ZLIB: name = bgzf_engine_library(BGZF_ENGINE_ZLIB, &version); break;
    case LIBRARY_ROCKSDB: name = "RocksDB", version = known(ROCKSDB_VERSION); break;
    case LIBRARY_SNAPPY: name = "snappy", version = known(SNAPPY_VERSION); break;
    case LIBRARY_LZ4: name = "lz4", version = LZ4_versionString(); break;
    case LIBRARY_ZSTD: name = "zstd", version = ZSTD_versionString(); break;
    case LIBRARY_XXHASH:
        (void)snprintf(xxhash, sizeof xxhash, "%u.%u.%u", number / 10000 % 1000,
                       number / 100 % 100, number % 100);
        name = "xxHash", version = xxhash;
        break;
    case LIBRARY_COUNT: break;
    }
    if (!name) return NULL;
    (void)snprintf(text, LIBRARY_VERSION_BYTES, "%s %s", name, version);
    return text;
}
