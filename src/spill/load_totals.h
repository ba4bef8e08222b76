/*
 * load_totals.h -- counts the records and bytes read so far.
 *
 * The reader and its jobs add to the counts; a resumed sort starts with those of its runs. Any
 * thread. The thread pool's lock guards the counts.
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
    uint64_t expected_bytes;    /* uncompressed size of the whole input, given by -s or estimated;
                                   0: unknown */
    uint64_t file_bytes;        /* compressed size of all inputs; 0: unknown */
    uint64_t file_bytes_read;   /* how many of file_bytes were read; 0: unknown */
    uint64_t file_bytes_before, raw_bytes_before;       /* read by the interrupted sort */
    bool is_loading;
    uint64_t n_paired, n_alone; /* --fixmate: primary records of pairs, and those whose mate is not
                                   next to them */
    bool input_is_bad;          /* damaged or changed: reading it again would fail again */
    bool input_is_cut;          /* truncated by an error or a signal; keep the records read */
};

struct load_totals {
    struct threads *threads;
    bool size_is_given;         /* by -s, as expected_bytes: it is not estimated */
    atomic_int stop_signal;     /* not 0: the reader must stop because of this signal, and the
                                   records read are kept */
    struct load_counts counts;  /* by load_totals_locked */
};

/* Copies the counts. */
void load_totals_look(struct load_totals *totals, struct load_counts *counts);

/* With the lock held: returns the counts. */
static inline struct load_counts *load_totals_locked(struct load_totals *totals)
{
    thread_pool_assert_locked(totals->threads);
    return &totals->counts;
}

/* With the lock held: adds records. */
void load_totals_add(struct load_totals *totals, const struct content_sum *sum, bool any_placed);

/* Sets is_loading: true when the reader starts, false when it and its jobs have ended. */
void load_totals_set_loading(struct load_totals *totals, bool is_loading);

/* Sets input_is_bad. */
void load_totals_set_bad(struct load_totals *totals);

#endif
