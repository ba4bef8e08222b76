/*
 * large_barcodes.h -- joins barcodes that may be errors of each other (barcode_clusters.h) among
 * reads that do not fit in memory. The different barcodes of one key must fit: which are joined
 * depends on all of them. A barcode takes LARGE_BARCODE_BYTES and its text.
 *
 * Order of calls: create; add; join; destroy. Threads: one at a time.
 */
#ifndef ROCKSORT_PIPELINE_LARGE_BARCODES_H
#define ROCKSORT_PIPELINE_LARGE_BARCODES_H

#include "pipeline/chain_items.h"

struct large_barcodes;

/* memory: for each of two sorts; barcode_bytes: for the barcodes of a key. */
struct large_barcodes *large_barcodes_create(const struct duplicate_rules *rules,
                                             const struct temp_sort_settings *memory,
                                             size_t barcode_bytes);

/* NULL is accepted. */
void large_barcodes_destroy(struct large_barcodes *barcodes);

/* A single read or a pair. Returns 0, or -1 after a message. */
int large_barcodes_add(struct large_barcodes *barcodes, const struct duplicate_view *view,
                       uint32_t run);

/* Takes a read, and the hashes of the barcodes that it has as a single read and as a pair. Returns
   0, or -1 after a message. */
typedef int (*large_barcodes_taker)(void *arg, const struct duplicate_view *view, uint32_t run,
                                    uint64_t single_barcode, uint64_t pair_barcode);

/* Gives each read to `take`, in any order. Returns 0, or -1 after a message. */
int large_barcodes_join(struct large_barcodes *barcodes, large_barcodes_taker take, void *arg);

#endif
