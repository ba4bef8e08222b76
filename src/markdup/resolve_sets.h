/*
 * resolve_sets.h -- finds duplicate sets, by scanning reads that are sorted by key.
 *
 * The results are those of samtools markdup 1.24 with an unlimited window. It reads the records in
 * the order of the sorted file: reference, position, strand, run, ordinal. When it meets a read
 * with the key of an earlier one, the worse of the two becomes a duplicate of the better one. A
 * *set* is a best read with its duplicates and their duplicates. In a complete set, duplicates are
 * compared with the best read again, and then with each other, to find optical ones.
 *
 * Unlike 1.24, a read without coordinates is not optical, and tiles of different lengths differ.
 *
 * Single reads meet pairs by the single key; pairs meet each other by the pair key. A set consists
 * of all pairs of a key, and of the single reads of each single key whose first pair belongs to the
 * set (in samtools' table of single reads, the first pair is never replaced). These single reads
 * are sent to the set of the pair, which may be in another partition.
 *
 * Order of calls: create; add single reads and ends; end; add pairs, and add_sent; end;
 * repeat for other reads; destroy. Threads: one at a time.
 */
#ifndef ROCKSORT_MARKDUP_RESOLVE_SETS_H
#define ROCKSORT_MARKDUP_RESOLVE_SETS_H

#include "markdup/barcodes.h"

struct resolve_sets;

struct resolve_sets_settings {
    const struct markdup_rules *rules;
    struct external_sort_settings sort; /* its memory limit is that of the whole object */
    struct barcode_room *barcode_room;
    /* Receives a duplicate whose is_optical is final, and the name of its original read. */
    int (*take)(void *arg, const struct item_read *read, struct read_name original);
    /* Receives the number of reads in the set of a best read, if it is more than one. */
    int (*take_count)(void *arg, const struct item_read *best, uint64_t count);
    /* Receives an item for add_sent; its set is at (ref, here). */
    int (*send)(void *arg, int32_t ref, int64_t here, const uint8_t *item, size_t n_bytes);
    void *arg; /* of the functions, which return 0, or -1 after a message */
};

struct resolve_sets *resolve_sets_create(const struct resolve_sets_settings *settings);

/* Accepts NULL. */
void resolve_sets_destroy(struct resolve_sets *sets);

/* The role of read ends: a single read; the 5' end of a pair, which single reads meet; a pair. */
enum set_role { ROLE_SINGLE, ROLE_END, ROLE_PAIR };

/* Add read ends, or an item that was sent. Return 0, or -1 after a message. */
int resolve_sets_add(struct resolve_sets *sets, enum set_role role, const struct read_ends *ends,
                     uint32_t run);
int resolve_sets_add_sent(struct resolve_sets *sets, const uint8_t *item);

/* Resolves the single reads and ends, or the pairs, that were added so far. Returns 0, or -1 after
   a message. */
int resolve_sets_end(struct resolve_sets *sets, bool of_singles);

#endif
