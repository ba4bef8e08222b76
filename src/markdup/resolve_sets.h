/*
 * resolve_sets.h -- who is a duplicate of whom: scans of reads that are sorted by what must be
 * equal of duplicates.
 *
 * The results are those of samtools markdup 1.24 with a window without end. It reads the records in
 * the order of the sorted file: reference, position, strand, run, ordinal. Whenever two reads of
 * one key meet, the worse of them becomes a duplicate of the better one. A best read with all that
 * became duplicates of it, or of a duplicate of it, is a *set*. When the set is complete,
 * duplicates are compared with the best read once more, and then with each other (optical.h).
 *
 * Other than in 1.24, a read whose name has no coordinates is not optical, and names whose tiles
 * differ in length are on different tiles.
 *
 * Single reads and members of pairs meet by the key of a single read, pairs by that of a pair. All
 * pairs of a key are one set, together with the single reads of the keys of which the first pair is
 * in it: that pair never leaves its place in samtools' table of single reads. Such single reads are
 * sent to the set of the pair, which may be in another partition.
 *
 * Order of calls: create; add_single and add_end; end_singles; add_pair and add_sent; end_pairs;
 * then the same for other reads; destroy. Threads: one at a time.
 */
#ifndef ROCKSORT_MARKDUP_RESOLVE_SETS_H
#define ROCKSORT_MARKDUP_RESOLVE_SETS_H

#include "markdup/barcodes.h"
#include "markdup/optical.h"

struct resolve_sets;

struct resolve_sets_settings {
    const struct markdup_rules *rules;
    struct external_sort_settings sort; /* its memory is for all of it */
    struct barcode_room *barcode_room;
    struct duplicate_taker taker;
    /* Takes the number of reads in the set of a best read, if there are more than one. */
    int (*take_count)(void *arg, const struct item_read *best, uint64_t count);
    /* Takes an item for add_sent, for a set at (reference, here). */
    int (*send)(void *arg, int32_t ref, int64_t here, const uint8_t *item, size_t n_bytes);
    void *arg; /* of both */
};

struct resolve_sets *resolve_sets_create(const struct resolve_sets_settings *settings);

/* NULL is accepted. */
void resolve_sets_destroy(struct resolve_sets *sets);

/* What read ends is to a set: a single read; a pair, as what single reads meet at its 5' end; a
 * pair. */
enum set_role { ROLE_SINGLE, ROLE_END, ROLE_PAIR };

/* Add read ends, and an item that was sent. Return 0, or -1 after a message. */
int resolve_sets_add(struct resolve_sets *sets, enum set_role role, const struct read_ends *ends,
                     uint32_t run);
int resolve_sets_add_sent(struct resolve_sets *sets, const uint8_t *item);

/* Resolve what was added. Return 0, or -1 after a message. */
int resolve_sets_end_singles(struct resolve_sets *sets);
int resolve_sets_end_pairs(struct resolve_sets *sets);

/* The key by which single reads and ends meet, without the barcode if barcodes are joined. */
struct duplicate_key resolve_sets_single_key(const struct markdup_rules *rules,
                                             const struct read_ends *ends);

#endif
