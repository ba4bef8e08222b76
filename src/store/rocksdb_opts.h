/*
 * rocksdb_opts.h -- every RocksDB option that rocksort sets, with its reason (in rocksdb_opts.c).
 *
 * In: where the trade-offs lie, as plain numbers. Out: RocksDB objects that a run_db uses and
 * destroys with rocksdb_opts_release.
 */
#ifndef ROCKSORT_STORE_ROCKSDB_OPTS_H
#define ROCKSORT_STORE_ROCKSDB_OPTS_H

#include "store/run_db.h"

#include <rocksdb/c.h>
#include <stdbool.h>
#include <stddef.h>

struct rocksdb_opts {
    rocksdb_options_t *db;                      /* database and SST writer */
    rocksdb_options_t *direct_db;               /* to open it again and read past the page cache */
    rocksdb_block_based_table_options_t *table;
    rocksdb_env_t *threads;                     /* RocksDB's own threads and files */
    rocksdb_envoptions_t *env;
    rocksdb_ingestexternalfileoptions_t *ingest;
};

/*
 * Returns 0, or -1 after a message; on failure nothing has to be released.
 */
int rocksdb_opts_init(struct rocksdb_opts *opts, const struct run_db_settings *settings);

/* For a scan that reads read_bytes of a file at a time, or 0; to be destroyed by the caller. */
rocksdb_readoptions_t *rocksdb_opts_scan(size_t read_bytes);

/* A setting of a database that is open. */
struct rocksdb_setting {
    const char *name;
    char value[192];
};

enum { ROCKSDB_N_COMPACTION_SETTINGS = 3 };

/* The settings by which least_width to width files of about one size become one whenever there are
   more than max_files files. */
void rocksdb_opts_compaction(struct rocksdb_setting settings[ROCKSDB_N_COMPACTION_SETTINGS],
                             unsigned least_width, unsigned width, unsigned max_files);

/* Accepts {0} and half-made options. */
void rocksdb_opts_release(struct rocksdb_opts *opts);

#endif
