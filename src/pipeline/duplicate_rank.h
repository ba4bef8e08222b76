/*
 * duplicate_rank.h -- which of two reads that meet is the better one, as in samtools markdup 1.24.
 *
 * Pure; any thread.
 */
#ifndef ROCKSORT_PIPELINE_DUPLICATE_RANK_H
#define ROCKSORT_PIPELINE_DUPLICATE_RANK_H

#include "pipeline/read_items.h"

/* Two reads that are both pairs or both single: below 0 if a is better, 0 if their names are equal,
   too. */
static inline int duplicate_rank_compare(const struct item_read *a, const struct item_read *b)
{
    if (a->failed_qc != b->failed_qc) return a->failed_qc ? 1 : -1;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    size_t n = a->name.n_bytes < b->name.n_bytes ? a->name.n_bytes : b->name.n_bytes;
    int r = n > 0 ? memcmp(a->name.text, b->name.text, n) : 0;
    return r != 0 ? r : a->name.n_bytes < b->name.n_bytes ? -1 : a->name.n_bytes > b->name.n_bytes;
}

/* A single read, and the best read of its key so far: is it a duplicate of that one? If not, it is
   the best now. */
static inline bool duplicate_rank_single_loses(const struct item_read *single,
                                               const struct item_read *best)
{
    return best->is_paired || single->score <= best->score;
}

/* Two pairs of one key: the one that lacks a score that is needed, or NULL. */
static inline const struct item_read *duplicate_rank_lacks_score(const struct item_read *a,
                                                                 const struct item_read *best)
{
    if (a->failed_qc != best->failed_qc) return NULL;
    return a->lacks_score ? a : best->lacks_score ? best : NULL;
}

/* Two duplicates of one set: is a the better one? Of equal ones it is the one that was found last,
   as in samtools. */
static inline bool duplicate_rank_is_better(const struct item_read *a, const struct item_read *b)
{
    if (a->is_paired != b->is_paired) return a->is_paired;
    int r = duplicate_rank_compare(a, b);
    return r != 0 ? r < 0 : read_moment_compare(&a->moment, &b->moment) > 0;
}

#endif
