/*
 * rocksdb_opts.h -- every RocksDB option that rocksort sets, with its reason (in rocksdb_opts.c).
 *
 * In: where the trade-offs lie, as plain numbers. Out: RocksDB objects that the run store uses and
 * destroys with rocksdb_opts_release.
 */
#ifndef ROCKSORT_ROCKSDB_OPTS_H
#define ROCKSORT_ROCKSDB_OPTS_H

#include <rocksdb/c.h>
#include <stddef.h>

struct rocksdb_opts {
    rocksdb_options_t *db;                      /* database and SST writer */
    rocksdb_block_based_table_options_t *table;
    rocksdb_envoptions_t *env;
    rocksdb_ingestexternalfileoptions_t *ingest;
    rocksdb_readoptions_t *scan;                /* the one ordered scan */
};

/* Returns 0, or -1 after a message; on failure nothing has to be released. */
int rocksdb_opts_init(struct rocksdb_opts *opts);

/* Accepts {0} and half-made options. */
void rocksdb_opts_release(struct rocksdb_opts *opts);

#endif
