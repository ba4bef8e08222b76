/*
 * load_totals.h -- what was read so far: counted by the load, looked at by all.
 *
 * The reader and its jobs count. Others ask for a copy. A sort that goes on with a checkpoint
 * begins with the totals of the runs that are there.
 *
 * Threads: any; the crew's lock guards everything but the request to stop, which is atomic.
 */
#ifndef ROCKSORT_PIPELINE_LOAD_TOTALS_H
#define ROCKSORT_PIPELINE_LOAD_TOTALS_H

#include "bam/content_sum.h"
#include "bam/input_position.h"
#include "pipeline/crew.h"

struct load_totals;

struct load_counts {
    struct content_sum sum;     /* of all records */
    bool any_placed;            /* some record has a reference */
    uint64_t expected_bytes;    /* uncompressed size of the whole input; 0: unknown */
    uint64_t file_bytes;        /* size of all inputs as they are stored; 0: unknown */
    uint64_t file_bytes_read;   /* how many of file_bytes were read; 0: unknown */
    uint64_t file_bytes_before, raw_bytes_before;       /* read by an earlier process */
    bool is_loading;
    uint64_t n_paired, n_alone; /* if mates are fixed: primary records of pairs, and those of them
                                   whose mate is not beside them */
    bool input_is_bad;          /* reading it again would fail again */
    bool input_is_cut;          /* after an error or a signal; what came is to be kept */
};

/* asked_bytes: the uncompressed size of the input by -s; 0: unknown, then it is estimated. */
struct load_totals *load_totals_create(struct crew *crew, uint64_t asked_bytes);

/* NULL is accepted. */
void load_totals_destroy(struct load_totals *totals);

/* Copies the counts. The second is for a caller that has the lock. */
void load_totals_look(struct load_totals *totals, struct load_counts *counts);
const struct load_counts *load_totals_locked(const struct load_totals *totals);

/* Uncompressed size of the whole input, by -s or by what was read so far; 0: unknown. */
uint64_t load_totals_expected_bytes(struct load_totals *totals);

/* ---- by the load ---- */

/* With the lock held: adds the records of a part of a batch. */
void load_totals_add(struct load_totals *totals, const struct content_sum *sum, bool any_placed);

/* With the lock held: adds what was counted in fixing mates. */
void load_totals_add_pairs(struct load_totals *totals, size_t n_paired, size_t n_alone);

/* The reader has begun, or it and its jobs have ended. */
void load_totals_set_loading(struct load_totals *totals, bool is_loading);

/* With the lock held: how large the inputs are, and how far they have been read; 0: unknown. */
void load_totals_set_position(struct load_totals *totals, uint64_t file_bytes,
                              uint64_t file_bytes_read);

/* With the lock held: so many more bytes of inputs of a known size have been read. */
void load_totals_add_position(struct load_totals *totals, uint64_t n_bytes);

/* The estimate of the whole input. */
void load_totals_set_estimate(struct load_totals *totals, uint64_t raw_bytes);

/* The input is damaged, or has changed: reading it again would end in the same way. */
void load_totals_set_bad(struct load_totals *totals);

/* The input ended early; what came of it is to be kept. */
void load_totals_set_cut(struct load_totals *totals);

/* ---- by a sort that goes on with a checkpoint, before loading ---- */

/* Adds the records of a run that is there already. */
void load_totals_add_before(struct load_totals *totals, const struct content_sum *sum,
                            bool any_placed);

/* Tells that file_bytes of the input files need not be read again. */
void load_totals_set_before(struct load_totals *totals, uint64_t file_bytes);

/* ---- the request to stop ---- */

/* Tells the reader to stop because of a signal; what has been read is kept. */
void load_totals_stop(struct load_totals *totals, int signal_number);

/* That signal, or 0. */
int load_totals_stop_signal(const struct load_totals *totals);

#endif
