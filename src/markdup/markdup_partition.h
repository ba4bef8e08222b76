/*
 * markdup_partition.h -- finds the duplicates among the read ends of all records, with jobs that
 * resolve one partition (read_ends_store.h) after another.
 *
 * The read ends of a partition, or of a part of its places at a time, are sorted by key, and each
 * group of equal keys is scanned (resolve_sets.h). With -S, names of duplicates are sorted together
 * with other records (secondary, supplementary, unmapped) to mark those.
 *
 * Threads: one thread calls, submits the jobs and waits for them.
 */
#ifndef ROCKSORT_MARKDUP_MARKDUP_PARTITION_H
#define ROCKSORT_MARKDUP_MARKDUP_PARTITION_H

#include "markdup/duplicate_marks.h"
#include "markdup/markdup_rules.h"
#include "markdup/markdup_stats.h"
#include "os/tape.h"
#include "os/thread_pool.h"

/* Labels of chunks (read_ends_store.h) to ignore: of runs that were written again. */
struct undone_runs {
    uint64_t *labels;
    size_t n, room;
};

struct resolve_settings {
    struct threads *threads;
    const struct markdup_rules *rules;
    unsigned n_threads;
    size_t memory_bytes;           /* for all jobs */
    struct temp_places places;     /* of temporary files */
    struct tape_set *ends_tapes;   /* READ_ENDS_N_STREAMS, complete */
    struct undone_runs undone;
    struct tape_set *names;        /* READ_ENDS_N_PARTITIONS, empty, for -S; or NULL */
    struct tape_set *sent;         /* READ_ENDS_N_PARTITIONS, empty, if duplicate sets are needed */
    struct duplicate_marks *marks; /* knows all runs */
    struct group_totals *counts;   /* duplicates are added */
};

/* How the memory is divided among n_threads jobs. */
struct resolve_shares {
    size_t job_bytes;                /* memory_bytes / n_threads */
    size_t filter_bytes, sort_bytes; /* of each job */
    size_t small_bytes;              /* of each job, for barcodes of one key */
    size_t barcode_bytes;            /* for a key that needs more, one at a time; at least 1 MiB */
};

struct resolve_shares resolve_share(size_t memory_bytes, unsigned n_threads, bool joins_barcodes);

/* Marks all duplicates, and adds the bytes of its own temporary files to *file_bytes. Returns 0, or
   -1 after a message and thread_pool_fail. */
int resolve_duplicates(const struct resolve_settings *settings, uint64_t *file_bytes);

#endif
