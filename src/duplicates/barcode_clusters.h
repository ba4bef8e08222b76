/*
 * barcode_clusters.h -- joins barcodes that differ in one character: most likely errors of one
 * barcode. With --barcode-mismatches 1, barcodes of one length are joined by the directional method
 * of UMI-tools. Among reads whose keys agree but for the barcode, the most frequent barcode is the
 * first, of equal ones that which memcmp puts first. With n reads it takes in the barcodes that
 * differ in one character and have at most (n + 1) / 2 reads, and each of those does the same. Then
 * comes the most frequent barcode that is left. So errors of a frequent barcode are found, also two
 * errors in a read, but two frequent barcodes that happen to be similar stay two molecules. To join
 * whatever is similar (transitive closure) would make one molecule of all in deep piles, where most
 * of the possible barcodes occur. Both reads of a pair meet the same barcodes equally often, so
 * they are decided alike.
 *
 * Order of calls: barcode_list_begin; barcode_list_add for each read, in the order of the barcodes;
 * barcode_list_join; again; barcode_list_release.
 *
 * Pure, but for memory; any thread.
 */
#ifndef ROCKSORT_DUPLICATES_BARCODE_CLUSTERS_H
#define ROCKSORT_DUPLICATES_BARCODE_CLUSTERS_H

#include <stddef.h>
#include <stdint.h>

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
