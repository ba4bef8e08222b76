/*
 * resolve_duplicates.h -- finds the duplicates among the read ends of all records: jobs that
 * resolve one partition of the streams (read_ends_store.h) after another.
 *
 * The read ends of a partition, or of a part of its places at a time, are sorted by what must be
 * equal, and each group is scanned (resolve_sets.h). With -S the names of duplicates that have
 * other records are collected and sorted together with those records, which then are marked, too.
 *
 * Threads: the caller submits the jobs and waits for them.
 */
#ifndef ROCKSORT_MARKDUP_RESOLVE_DUPLICATES_H
#define ROCKSORT_MARKDUP_RESOLVE_DUPLICATES_H

#include "markdup/duplicate_marks.h"
#include "markdup/markdup_rules.h"
#include "markdup/markdup_stats.h"
#include "os/tape.h"
#include "os/thread_pool.h"

/* Labels of chunks of read ends (read_ends_store.h) that do not count. */
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
    struct tape_set *all_ends;     /* READ_ENDS_N_STREAMS, complete */
    struct undone_runs undone;
    struct tape_set *names;        /* READ_ENDS_N_PARTITIONS, empty, for -S; or NULL */
    struct tape_set *sent;         /* READ_ENDS_N_PARTITIONS, empty, if reads need their sets */
    struct duplicate_marks *marks; /* knows all runs */
    struct group_totals *counts;   /* what is found is added */
};

/* How the memory is divided among n_threads jobs. */
struct resolve_shares {
    size_t job_bytes;                /* all of it by n_threads */
    size_t filter_bytes, sort_bytes; /* of each job */
    size_t small_bytes;              /* of each job, for the barcodes of one key */
    size_t barcode_bytes;            /* for those of a key that need more; a MiB at least */
};

struct resolve_shares resolve_share(size_t memory_bytes, unsigned n_threads, bool joins_barcodes);

/* Marks all duplicates, and adds the bytes of other temporary files to *file_bytes. Returns 0, or -1
   after a message and thread_pool_fail. */
int resolve_duplicates(const struct resolve_settings *settings, uint64_t *file_bytes);

#endif
