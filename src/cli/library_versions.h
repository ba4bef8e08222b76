/*
 * library_versions.h -- lists the versions of the libraries that this program uses.
 *
 * Most libraries report the version that is loaded. xxHash is compiled in, and the C interfaces of
 * RocksDB, snappy, libdeflate and ISA-L do not; for these it is the version that the program was
 * built with. Any thread.
 */
#ifndef ROCKSORT_CLI_LIBRARY_VERSIONS_H
#define ROCKSORT_CLI_LIBRARY_VERSIONS_H

enum {
    LIBRARY_LIBDEFLATE = 1,     /* index in the list; if not built in, zlib inflates */
    LIBRARY_ZLIB = 3,
    LIBRARY_COUNT = 9,
    LIBRARY_VERSION_BYTES = 48,
};

struct library_version {
    const char *field;          /* in --report; NULL: no field of its own */
    const char *name;           /* NULL: the library is not built in */
    const char *version;
};

void library_versions(struct library_version list[LIBRARY_COUNT]);

#endif
