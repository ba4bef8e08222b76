/*
 * large_chains.h -- decides the duplicates of a place whose views do not fit in memory, as
 * duplicates/duplicate_chains.h does and with the same results. Memory is bounded, whatever the
 * number of reads; only the different barcodes of one key must fit if barcodes may have errors.
 *
 * Order of calls: create; add and add_guest; route or decide; destroy. Threads: one at a time.
 */
#ifndef ROCKSORT_PIPELINE_LARGE_CHAINS_H
#define ROCKSORT_PIPELINE_LARGE_CHAINS_H

#include "pipeline/chain_items.h"

struct large_chains;

struct large_chains_settings {
    const struct duplicate_rules *rules;
    size_t memory_bytes;        /* raised to 2 MiB */
    struct temp_places places;  /* of temporary files */
    uint64_t *file_bytes;       /* as in temp_sort.h */
    /* what may be among the views; guests count as singles */
    bool has_singles, has_pairs, has_ends;
    /* Takes the result of each duplicate, and of each read with a count above 1 that is none. Of
       `original` and `found_by` only the names, and the place of `found_by`, are set; the name of
       `found_by` only with --no-multi-dup, or if the duplicate has other records. */
    struct chain_taker taker;
};

struct large_chains *large_chains_create(const struct large_chains_settings *settings);

/* NULL is accepted. */
void large_chains_destroy(struct large_chains *chains);

/* A view of any kind. Its texts need not stay. Returns 0, or -1 after a message. */
int large_chains_add(struct large_chains *chains, const struct duplicate_view *view, uint32_t run);

/* The same for a single read that belongs to a pair here, though it lies elsewhere. */
int large_chains_add_guest(struct large_chains *chains, const struct duplicate_view *view,
                           uint32_t run);

/* Calls send for each single read that must be decided elsewhere (duplicate_chains_route), with the
   VIEW_END of the pair that it belongs to. Returns 0, or -1 after a message. */
int large_chains_route(struct large_chains *chains,
                       int (*send)(void *arg, const struct duplicate_view *single, uint32_t run,
                                   const struct duplicate_view *end), void *arg);

/* Decides all that is not to be routed. Returns 0, or -1 after a message. */
int large_chains_decide(struct large_chains *chains);

#endif
