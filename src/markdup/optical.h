/*
 * optical.h -- which duplicates of a set are near to a better one on the flow cell (-d).
 *
 * Order of calls: create; begin_set and add, for the duplicates of some sets; resolve, which
 * empties it; destroy. Threads: one at a time.
 */
#ifndef ROCKSORT_MARKDUP_OPTICAL_H
#define ROCKSORT_MARKDUP_OPTICAL_H

#include "markdup/read_items.h"

struct optical;

/* Who takes a duplicate, of which is_optical is known now, and the name of its original. Returns 0,
   or -1 after a message. All is there during the call. */
struct duplicate_taker {
    int (*take)(void *arg, const struct item_read *read, struct read_name original);
    void *arg;
};

/* Takes the sort over. */
struct optical *optical_create(const struct markdup_rules *rules, struct external_sort *sort,
                               struct duplicate_taker taker);

/* NULL is accepted. */
void optical_destroy(struct optical *optical);

/* A set, by its key, with the name of its best read. Returns 0, or -1 after a message. */
int optical_begin_set(struct optical *optical, struct duplicate_key set, struct read_name best);

/* A duplicate of the set, with coordinates. is_optical: that is known already. Returns 0, or -1
   after a message. */
int optical_add(struct optical *optical, struct duplicate_key set, struct item_read *read);

/* Gives all duplicates to the taker. Returns 0, or -1 after a message. */
int optical_resolve(struct optical *optical);

#endif
