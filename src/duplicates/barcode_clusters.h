/*
 * barcode_clusters.h -- joins barcodes that differ in one character: most likely errors of one
 * barcode. Which are joined, and why not all that are similar, is in duplicate_chains.h.
 *
 * Pure, but for memory; any thread.
 */
#ifndef ROCKSORT_DUPLICATES_BARCODE_CLUSTERS_H
#define ROCKSORT_DUPLICATES_BARCODE_CLUSTERS_H

#include "duplicates/duplicate_table.h"

/* ---- of reads ---- */

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

/* ---- of different barcodes ---- */

/* All barcodes of one key and one length. They grow with the array of texts and that of numbers. */
struct barcode_list {
    uint8_t *texts;             /* one after another, in the order of memcmp, each once */
    size_t n_bytes;             /* of each */
    uint32_t *n_reads;          /* that have each */
    uint32_t *joined;           /* result: the number of the barcode of its cluster */
    size_t n;
    size_t texts_room, reads_room, joined_room;
};

/* Adds the next barcode, or a read more of the last one. */
void barcode_list_add(struct barcode_list *list, const uint8_t *text);

/* What it takes for each barcode besides five quarters of its text. */
enum { BARCODE_LIST_BYTES = 44 };

/* Sets `joined`. */
void barcode_list_join(struct barcode_list *list);

static inline const uint8_t *barcode_list_text(const struct barcode_list *list, size_t number)
{
    return list->texts + number * list->n_bytes;
}

/* Empties it for barcodes of this length. */
static inline void barcode_list_begin(struct barcode_list *list, size_t n_bytes)
{
    list->n = 0;
    list->n_bytes = n_bytes;
}

void barcode_list_release(struct barcode_list *list);

#endif
