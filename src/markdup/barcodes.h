/*
 * barcodes.h -- clusters similar barcodes (UMIs) of reads that could be duplicates, and gives each
 * read the barcode of its cluster (--barcode-mismatches).
 *
 * Clusters are made among reads whose keys differ only in the barcode, for each length of barcodes,
 * by the directional method of UMI-tools. The most frequent barcode starts a cluster; of equally
 * frequent ones, the first by memcmp. A barcode with n reads takes in the barcodes that differ from
 * it in one character and have at most (n + 1) / 2 reads, and each of those does the same. Then the
 * most frequent remaining barcode starts a cluster. This finds sequencing errors of a frequent
 * barcode, even two in a read, but keeps two frequent, similar barcodes apart. Joining all similar
 * barcodes would merge all molecules at deep positions, where most possible barcodes occur. Both
 * reads of a pair get the same result, because they see the same barcodes with the same counts.
 *
 * Order of calls: create; add; join, which removes all reads; destroy. Threads: one at a time;
 * several objects may share a barcode_room.
 */
#ifndef ROCKSORT_MARKDUP_BARCODES_H
#define ROCKSORT_MARKDUP_BARCODES_H

#include "markdup/read_items.h"
#include "os/thread_pool.h"

struct barcodes;

/* Limits the memory for the distinct barcodes of one key. A job that needs more than small_bytes
   takes the lock, and may then use most_bytes. More barcodes are an error. */
struct barcode_room {
    const struct threads *threads; /* joining stops when this has failed */
    pthread_mutex_t lock;
    size_t small_bytes, most_bytes;
};

/* Memory for a barcode, in addition to 5/4 of its length. */
enum { BARCODE_LIST_BYTES = 44 };

/* Takes ownership of the sort. */
struct barcodes *barcodes_create(struct external_sort *sort, struct barcode_room *room);

/* Accepts NULL. */
void barcodes_destroy(struct barcodes *barcodes);

/* Adds a read and its key without the barcode. text NULL: the read has no barcode that can be
   joined, so its key stays. Returns 0, or -1 after a message. */
int barcodes_add(struct barcodes *barcodes, struct duplicate_key key, struct read_name text,
                 const struct item_read *read);

/* Adds all reads to a sort, with keys that include the barcode of their cluster. Returns 0, or -1
   after a message or if the thread pool has failed. */
int barcodes_join(struct barcodes *barcodes, struct external_sort *to);

#endif
