/*
 * library_versions.h -- the versions of the libraries that this program runs with.
 *
 * Most libraries tell their version when the program runs, so it is the version of the library that
 * is loaded. The C interfaces of RocksDB, snappy, libdeflate and ISA-L do not tell it; for them it
 * is the version that the program was built with. Pure functions; any thread.
 */
#ifndef ROCKSORT_COMMAND_LIBRARY_VERSIONS_H
#define ROCKSORT_COMMAND_LIBRARY_VERSIONS_H

enum library {
    LIBRARY_HTSLIB,
    LIBRARY_LIBDEFLATE,         /* may be not built in, as ISA-L */
    LIBRARY_ISAL,
    LIBRARY_ZLIB,
    LIBRARY_ROCKSDB,
    LIBRARY_SNAPPY,
    LIBRARY_LZ4,
    LIBRARY_ZSTD,
    LIBRARY_XXHASH,
    LIBRARY_COUNT
};

enum { LIBRARY_VERSION_BYTES = 64 };

/* Writes "RocksDB 7.8.3", name and version, into text and returns it. Returns NULL if the library
   is not built in. */
const char *library_version(enum library library, char text[LIBRARY_VERSION_BYTES]);

#endif
