/*
 * resolve_duplicates.h -- finds the duplicates among the views of all records: jobs that resolve
 * one partition of the streams (view_chunks.h) after another.
 *
 * The views of a partition, or of a part of its places at a time, are sorted by what must be equal,
 * and each group is scanned (resolve_sets.h). With -S the names of duplicates that have other
 * records are collected and sorted together with those records, which then are marked, too.
 *
 * Threads: the caller submits the jobs and waits for them.
 */
#ifndef ROCKSORT_PIPELINE_RESOLVE_DUPLICATES_H
#define ROCKSORT_PIPELINE_RESOLVE_DUPLICATES_H

#include "duplicates/duplicate_rules.h"
#include "duplicates/duplicate_stats.h"
#include "pipeline/crew.h"
#include "pipeline/duplicate_marks.h"
#include "store/temp_streams.h"

/* Labels of chunks of views (view_chunks.h) that do not count. */
struct undone_runs {
    uint64_t *labels;
    size_t n, room;
};

struct resolve_settings {
    struct crew *crew;
    const struct duplicate_rules *rules;
    unsigned n_threads;
    size_t memory_bytes;           /* for all jobs */
    struct temp_places places;     /* of temporary files */
    struct temp_streams *views;    /* VIEW_N_STREAMS, complete */
    struct undone_runs undone;
    struct temp_streams *names;    /* VIEW_N_PARTITIONS, empty, for -S; or NULL */
    struct temp_streams *sent;     /* VIEW_N_PARTITIONS, empty, if reads need their sets */
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
   after a message and crew_fail. */
int resolve_duplicates(const struct resolve_settings *settings, uint64_t *file_bytes);

#endif
