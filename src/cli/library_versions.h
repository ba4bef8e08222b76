/*
 * library_versions.h -- the versions of the libraries that this program runs with.
 *
 * Most libraries tell their version when the program runs, so it is the version of the library that
 * is loaded. The C interfaces of RocksDB, snappy, libdeflate and ISA-L do not tell it; for them it
 * is the version that the program was built with. Any thread.
 */
#ifndef ROCKSORT_CLI_LIBRARY_VERSIONS_H
#define ROCKSORT_CLI_LIBRARY_VERSIONS_H

enum {
    LIBRARY_LIBDEFLATE = 1,     /* numbers in the list; if it is not built in zlib inflates */
    LIBRARY_ZLIB = 3,
    LIBRARY_COUNT = 9,
    LIBRARY_VERSION_BYTES = 48,
};

struct library_version {
    const char *field;          /* in the statistics; NULL: it has none of its own */
    const char *name;           /* NULL: the library is not built in */
    char version[LIBRARY_VERSION_BYTES];
};

void library_versions(struct library_version list[LIBRARY_COUNT]);

#endif
