/*
 * barcode_clusters.h -- joins barcodes that differ in one character: most likely errors of one
 * barcode. Which are joined, and why not all that are similar, is in duplicate_chains.h.
 *
 * Pure, but for memory; any thread.
 */
#ifndef ROCKSORT_DUPLICATES_BARCODE_CLUSTERS_H
#define ROCKSORT_DUPLICATES_BARCODE_CLUSTERS_H

#include "duplicates/duplicate_table.h"

/* The barcode of a read. */
struct barcode_item {
    struct duplicate_key key;   /* only reads of one key are compared */
    const uint8_t *text;
    uint8_t n_bytes;
    uint32_t number;            /* of the read, as the caller likes */
    uint32_t joined;            /* result: the number of a read that has the barcode of its cluster,
                                   one and the same for the whole cluster */
};

/* Sets `joined` of all items, whose order changes. */
void barcode_clusters_join(struct barcode_item *items, size_t n);

#endif
