/*
 * optical.h -- finds optical duplicates: those near a better read of their set on the flow cell.
 *
 * Order of calls: create; add, for the duplicates of some sets; resolve, which removes them;
 * destroy. Threads: one at a time.
 */
#ifndef ROCKSORT_MARKDUP_OPTICAL_H
#define ROCKSORT_MARKDUP_OPTICAL_H

#include "markdup/read_items.h"

struct optical;

/* Receives a duplicate whose is_optical is final, and the name of its original read. Pointers are
   valid during the call. Returns 0, or -1 after a message. */
struct duplicate_taker {
    int (*take)(void *arg, const struct item_read *read, struct read_name original);
    void *arg;
};

/* Takes ownership of the sort. */
struct optical *optical_create(const struct markdup_rules *rules, struct external_sort *sort,
                               struct duplicate_taker taker);

/* NULL is accepted. */
void optical_destroy(struct optical *optical);

/* Adds a duplicate with coordinates of the set with this key, and the name that the taker gets.
   Returns 0, or -1 after a message. */
int optical_add(struct optical *optical, struct duplicate_key set, struct item_read *read,
                struct read_name original);

/* Passes all duplicates to the taker. Returns 0, or -1 after a message. */
int optical_resolve(struct optical *optical);

#endif
