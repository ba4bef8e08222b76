/*
 * interval_list.h -- the union of intervals that come roughly in order: which positions of one
 * reference are covered.
 *
 * In coordinate order nearly each interval touches the last one or comes after it. Those after a
 * deletion or an intron come too early: the next records begin before them. So the list has two
 * parts: `sorted`, of intervals in order that do not touch each other, and `late`, of intervals
 * that would have to be put in between. When there are many late ones all are merged into the
 * sorted part at once. So an interval costs a few nanoseconds, and with late ones O(log n) on
 * average, whatever the records look like. An array of depths would take memory for each position.
 *
 * Order of calls: a list starts as {0}; add; settle, before the sorted part is read; release.
 * Threads: a list has one owner at a time. No errors.
 */
#ifndef ROCKSORT_STATS_INTERVAL_LIST_H
#define ROCKSORT_STATS_INTERVAL_LIST_H

#include <stddef.h>
#include <stdint.h>

struct interval {               /* positions from begin (included) to end (not included) */
    int64_t begin, end;
};

struct interval_list {
    struct interval *sorted;
    size_t n, room;
    size_t found;               /* where the last search in `sorted` ended */
    struct interval *late;      /* in the order in which they came */
    size_t n_late, late_room;
};

/* For interval_list_add: one after all others of `sorted`, and one that begins before the last. */
void interval_list_append(struct interval_list *list, int64_t begin, int64_t end);
void interval_list_insert(struct interval_list *list, int64_t begin, int64_t end);

/* Adds an interval that is not empty. */
static inline void interval_list_add(struct interval_list *list, int64_t begin, int64_t end)
{
    struct interval *last = list->n > 0 ? &list->sorted[list->n - 1] : NULL;
    if (!last || begin > last->end)
        interval_list_append(list, begin, end);
    else if (begin < last->begin)
        interval_list_insert(list, begin, end);
    else if (end > last->end)
        last->end = end;
}

/* Merges late intervals into the sorted part. */
void interval_list_settle(struct interval_list *list);

/* Merges late intervals into the sorted part, and gives back memory that is not needed then. */
void interval_list_trim(struct interval_list *list);

/* Forgets all intervals and keeps the memory. */
void interval_list_clear(struct interval_list *list);

void interval_list_release(struct interval_list *list);

/* The number of positions in n intervals that do not touch each other. */
uint64_t interval_sum(const struct interval *intervals, size_t n);

/* Writes the union of two arrays of intervals, each in order and without any that touch, to out,
   which has room for n_a + n_b. Returns the number of intervals in it. */
size_t interval_merge(const struct interval *a, size_t n_a, const struct interval *b, size_t n_b,
                      struct interval *out);

#endif
