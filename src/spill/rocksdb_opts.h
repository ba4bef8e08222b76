/*
 * rocksdb_opts.h -- makes all RocksDB options that rocksort sets. rocksdb_opts.c has the reasons.
 *
 * The arguments are the few numbers that vary. The results are RocksDB objects for run_db.c.
 *
 * Order of calls: init; any of the others; release. Threads: any; the caller must not use one
 * struct rocksdb_opts in two threads at a time.
 */
#ifndef ROCKSORT_SPILL_ROCKSDB_OPTS_H
#define ROCKSORT_SPILL_ROCKSDB_OPTS_H

#include <rocksdb/c.h>
#include <stdbool.h>
#include <stddef.h>

/* Files whose sizes differ by more than this are not compacted together. Runs differ by less;
   compacted files differ from runs by more. */
enum { SIMILAR_FILES_PERCENT = 80 };

struct rocksdb_opts {
    rocksdb_options_t *db;                      /* for the database and for SST writers */
    rocksdb_options_t *direct_db;               /* to open it again with O_DIRECT */
    rocksdb_block_based_table_options_t *table;
    rocksdb_env_t *threads;                     /* RocksDB's own threads and files */
    rocksdb_envoptions_t *env;
    rocksdb_ingestexternalfileoptions_t *ingest;
    size_t block_bytes;                         /* a file grows in steps of this size */
};

/*
 * Makes all objects. `existing`: open an existing database. compaction_read_bytes: how much a
 * compaction reads of a file at a time (0: the kernel's readahead). n_compactions: how many
 * compactions all databases of the process may run at a time. few_files: compacted files can be as
 * large as all data, so the memory for each must not grow with its size. long_keys: keys may have
 * tens of thousands of bytes. Returns 0, or -1 after a message; then nothing needs to be released.
 */
int rocksdb_opts_init(struct rocksdb_opts *opts, bool existing, size_t compaction_read_bytes,
                      unsigned n_compactions, bool few_files, bool long_keys);

/* Returns the options of a scan that reads read_bytes of a file at a time (0: the kernel's
   readahead). The caller destroys them. */
rocksdb_readoptions_t *rocksdb_opts_scan(size_t read_bytes);

/* Turns compaction of an open database on: whenever there are more than max_files files, it makes
   one file of least_width to width files of similar sizes. */
void rocksdb_opts_compact(rocksdb_t *db, unsigned least_width, unsigned width, unsigned max_files,
                          char **error);

/* Accepts {0}, and incomplete options. */
void rocksdb_opts_release(struct rocksdb_opts *opts);

#endif
