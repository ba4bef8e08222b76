/*
 * barcodes.h -- gives reads the barcode of their cluster (--barcode-mismatches): among reads whose
 * keys agree but for the barcode, barcodes that differ in one character are joined by the
 * directional method of UMI-tools (duplicates/barcode_clusters.h).
 *
 * Order of calls: create; add; join, which empties it; destroy. Threads: one at a time, but several
 * may share a barcode_room.
 */
#ifndef ROCKSORT_PIPELINE_BARCODES_H
#define ROCKSORT_PIPELINE_BARCODES_H

#include "pipeline/read_items.h"

#include <pthread.h>

struct barcodes;

/* Memory for the different barcodes of one key, which must fit in it. Who needs more than
   small_bytes waits for the lock. */
struct barcode_room {
    pthread_mutex_t lock;
    size_t small_bytes, most_bytes;
};

struct barcodes *barcodes_create(const struct external_sort_settings *settings,
                                 struct barcode_room *room);

/* NULL is accepted. */
void barcodes_destroy(struct barcodes *barcodes);

/* A read, and its key without the barcode. text NULL: it has none that can be joined, and its key
   stays. Returns 0, or -1 after a message. */
int barcodes_add(struct barcodes *barcodes, struct duplicate_key key, struct read_name text,
                 const struct item_read *read);

/* Adds all reads, with the keys of their clusters, to a sort. Returns 0, or -1 after a message. */
int barcodes_join(struct barcodes *barcodes, struct external_sort *to);

#endif
