/*
 * chain_rules.h -- the rules of chains (duplicate_chains.h) for two reads that meet, and for where
 * they lie: for chains in memory, and for those that do not fit (pipeline/large_chains.h).
 *
 * Pure; any thread.
 */
#ifndef ROCKSORT_DUPLICATES_CHAIN_RULES_H
#define ROCKSORT_DUPLICATES_CHAIN_RULES_H

#include "duplicates/duplicate_view.h"

static inline bool chain_is_paired(const struct duplicate_view *view)
{
    return view->kind != VIEW_SINGLE;
}

/* A single read, and the best read of its single key so far: is it a duplicate of that one? If not,
   it is the best now. */
static inline bool chain_single_loses(const struct duplicate_view *single,
                                      const struct duplicate_view *best)
{
    return chain_is_paired(best) || single->score <= best->score;
}

/* Two pairs of one key meet: returns the one that lacks a score that is needed, or NULL. */
const struct duplicate_view *chain_lacks_score(const struct duplicate_view *view,
                                               const struct duplicate_view *best);

/* Of two reads that are both pairs or both single: below 0 if a is better, 0 if their names are
   equal, too. */
int chain_compare_reads(const struct duplicate_view *a, const struct duplicate_view *b);

/* The same of two duplicates of one chain. If it is 0, the one that became a duplicate last is the
   better one, as in samtools. */
int chain_compare_duplicates(const struct duplicate_view *a, const struct duplicate_view *b);

/*
 * The flow cell is divided into square cells of which the sides are one longer than the optical
 * distance, so all reads in a cell are near to each other. The number of the cell of a
 * coordinate.
 */
static inline int64_t chain_cell(const struct duplicate_rules *rules, int64_t coordinate)
{
    int64_t side = rules->optical_distance + 1;
    return coordinate / side - (coordinate % side < 0);
}

#endif
