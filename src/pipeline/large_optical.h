/*
 * large_optical.h -- compares the duplicates of chains that do not fit in memory with each other:
 * which are optical. The rules are those of duplicates/duplicate_chains.h.
 *
 * Order of calls: create; for each chain begin_chain, once, and add its duplicates, in any order;
 * decide, which gives all of them to the taker; destroy. Threads: one at a time.
 */
#ifndef ROCKSORT_PIPELINE_LARGE_OPTICAL_H
#define ROCKSORT_PIPELINE_LARGE_OPTICAL_H

#include "pipeline/chain_items.h"

struct large_optical;

struct large_optical *large_optical_create(const struct duplicate_rules *rules,
                                           const struct temp_sort_settings *memory,
                                           struct chain_taker taker);

/* NULL is accepted. */
void large_optical_destroy(struct large_optical *optical);

/* A chain, and the name of its best read. Returns 0, or -1 after a message. */
int large_optical_begin_chain(struct large_optical *optical, struct duplicate_key chain,
                              const struct duplicate_view *best);

/* A duplicate of a chain; it and the best read have coordinates. Returns 0, or -1 after a
   message. */
int large_optical_add(struct large_optical *optical, struct duplicate_key chain,
                      struct item_read *read, const struct item_found *found);

/* Returns 0, or -1 after a message. */
int large_optical_decide(struct large_optical *optical);

#endif
