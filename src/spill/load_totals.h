/*
 * load_totals.h -- counts what was read so far, for all who want to know.
 *
 * The reader and its jobs count; a sort that resumes a checkpoint begins with the totals of its
 * runs. Threads: any. The thread pool's lock guards the counts.
 */
#ifndef ROCKSORT_SPILL_LOAD_TOTALS_H
#define ROCKSORT_SPILL_LOAD_TOTALS_H

#include "bam/content_sum.h"
#include "bam/input_position.h"
#include "os/thread_pool.h"

#include <stdatomic.h>

struct load_counts {
    struct content_sum sum;     /* of all records */
    bool any_placed;            /* some record has a reference */
    uint64_t expected_bytes;    /* uncompressed size of the whole input, by -s or by what was read so
                                   far; 0: unknown */
    uint64_t file_bytes;        /* size of all inputs as they are stored; 0: unknown */
    uint64_t file_bytes_read;   /* how many of file_bytes were read; 0: unknown */
    uint64_t file_bytes_before, raw_bytes_before;       /* read by an earlier process */
    bool is_loading;
    uint64_t n_paired, n_alone; /* if mates are fixed: primary records of pairs, and those of them
                                   whose mate is not beside them */
    bool input_is_bad;          /* reading it again would fail again: it is damaged or changed */
    bool input_is_cut;          /* after an error or a signal; what came is to be kept */
};

struct load_totals {
    struct threads *threads;
    bool size_is_given;         /* by -s: expected_bytes stays */
    atomic_int stop_signal;     /* not 0: the reader is to stop because of this signal, and what has
                                   been read is kept */
    struct load_counts counts;  /* by load_totals_locked */
};

/* asked_bytes: the uncompressed size of the input by -s; 0: unknown, then it is estimated. */
struct load_totals *load_totals_create(struct threads *threads, uint64_t asked_bytes);

/* NULL is accepted. */
void load_totals_destroy(struct load_totals *totals);

/* Copies the counts. */
void load_totals_look(struct load_totals *totals, struct load_counts *counts);

/* The counts, with the lock held. */
static inline struct load_counts *load_totals_locked(struct load_totals *totals)
{
    thread_pool_assert_locked(totals->threads);
    return &totals->counts;
}

/* With the lock held: adds records. */
void load_totals_add(struct load_totals *totals, const struct content_sum *sum, bool any_placed);

/* The reader has begun, or it and its jobs have ended. */
void load_totals_set_loading(struct load_totals *totals, bool is_loading);

/* Sets input_is_bad. */
void load_totals_set_bad(struct load_totals *totals);

/* Before loading: adds the records of a run that is there already. */
void load_totals_add_before(struct load_totals *totals, const struct content_sum *sum,
                            bool any_placed);

#endif
