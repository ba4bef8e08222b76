/*
 * barcodes.h -- gives reads the barcode of their cluster (--barcode-mismatches).
 *
 * Among reads whose keys agree but for the barcode, barcodes of one length are joined by the
 * directional method of UMI-tools. The most frequent barcode is the first, of equal ones that which
 * memcmp puts first. With n reads it takes in the barcodes that differ in one character and have at
 * most (n + 1) / 2 reads, and each of those does the same. Then comes the most frequent barcode
 * that is left. So errors of a frequent barcode are found, also two errors in a read, but two
 * frequent barcodes that happen to be similar stay two molecules. To join whatever is similar would
 * make one molecule of all in deep piles, where most of the possible barcodes occur. Both reads of
 * a pair meet the same barcodes equally often, so they are decided alike.
 *
 * Order of calls: create; add; join, which empties it; destroy. Threads: one at a time, but several
 * may share a barcode_room.
 */
#ifndef ROCKSORT_MARKDUP_BARCODES_H
#define ROCKSORT_MARKDUP_BARCODES_H

#include "markdup/read_items.h"
#include "os/thread_pool.h"

struct barcodes;

/* Memory for the different barcodes of one key, which must fit in it. Who needs more than
   small_bytes waits for the lock. */
struct barcode_room {
    const struct threads *threads; /* when it has failed, nothing is joined any more */
    pthread_mutex_t lock;
    size_t small_bytes, most_bytes;
};

/* What each barcode takes besides five quarters of its text. */
enum { BARCODE_LIST_BYTES = 44 };

/* Takes the sort over. */
struct barcodes *barcodes_create(struct external_sort *sort, struct barcode_room *room);

/* NULL is accepted. */
void barcodes_destroy(struct barcodes *barcodes);

/* A read, and its key without the barcode. text NULL: it has none that can be joined, and its key
   stays. Returns 0, or -1 after a message. */
int barcodes_add(struct barcodes *barcodes, struct duplicate_key key, struct read_name text,
                 const struct item_read *read);

/* Adds all reads, with the keys of their clusters, to a sort. Returns 0, or -1 after a message or
   if the thread pool has failed. */
int barcodes_join(struct barcodes *barcodes, struct external_sort *to);

#endif
