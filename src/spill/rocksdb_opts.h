/*
 * rocksdb_opts.h -- all RocksDB options that rocksort sets. The reason for each is in
 * rocksdb_opts.c.
 *
 * The arguments are plain numbers, which say where the trade-offs lie. The results are RocksDB
 * objects for run_db.c.
 *
 * Order of calls: init; any of the others; release. Threads: any; the caller must not use one
 * struct rocksdb_opts in two threads at a time.
 */
#ifndef ROCKSORT_SPILL_ROCKSDB_OPTS_H
#define ROCKSORT_SPILL_ROCKSDB_OPTS_H

#include <rocksdb/c.h>
#include <stdbool.h>
#include <stddef.h>

struct rocksdb_opts {
    rocksdb_options_t *db;                      /* for the database and for SST writers */
    rocksdb_options_t *direct_db;               /* opens it again, to read past the page cache */
    rocksdb_block_based_table_options_t *table;
    rocksdb_env_t *threads;                     /* RocksDB's own threads and files */
    rocksdb_envoptions_t *env;
    rocksdb_ingestexternalfileoptions_t *ingest;
    size_t block_bytes;                         /* a file grows when it has got so many */
};

/*
 * Makes all objects. `existing`: the database is there already. compaction_read_bytes: how much a
 * compaction reads of a file at a time; 0: as much as the kernel reads ahead. n_compactions: how
 * many compactions all databases of the process may run at a time. few_files: compacted files can
 * be as large as all data, and what is in memory of each must not grow with its size. long_keys:
 * keys may have tens of thousands of bytes. Returns 0, or -1 after a message; then nothing needs to
 * be released.
 */
int rocksdb_opts_init(struct rocksdb_opts *opts, bool existing, size_t compaction_read_bytes,
                      unsigned n_compactions, bool few_files, bool long_keys);

/* Options of a scan that reads read_bytes of a file at a time; 0: as much as the kernel reads
   ahead. The caller destroys them. */
rocksdb_readoptions_t *rocksdb_opts_scan(size_t read_bytes);

/* Switches compaction of an open database on: whenever there are more than max_files files,
   least_width to width of them that have about one size become one file. */
void rocksdb_opts_compact(rocksdb_t *db, unsigned least_width, unsigned width, unsigned max_files,
                          char **error);

/* Accepts {0}, and options of which only some were made. */
void rocksdb_opts_release(struct rocksdb_opts *opts);

#endif
