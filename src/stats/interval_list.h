/*
 * interval_list.h -- computes the union of intervals that arrive roughly in order: the covered
 * positions of one reference.
 *
 * In coordinate order nearly every interval touches the last one or comes after it. An exception
 * are records that follow one with a deletion or an intron: their intervals begin before the last
 * one. So the list has two parts: `sorted`, of intervals in order that do not touch, and `late`, of
 * intervals that would have to be inserted. Many late intervals are merged into the sorted part at
 * once. An interval takes a few nanoseconds, a late one O(log n) on average, for any input. An
 * array of depths would need memory for each position.
 *
 * Order of calls: a list starts as {0}; add; settle, before reading the sorted part; release.
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

/* For interval_list_add: append to `sorted`; insert an interval that begins before the last one. */
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

/* Merges late intervals into the sorted part, and frees memory that is no longer needed. */
void interval_list_trim(struct interval_list *list);

/* Removes all intervals and keeps the memory. */
void interval_list_clear(struct interval_list *list);

void interval_list_release(struct interval_list *list);

/* The number of positions in n intervals that do not touch each other. */
uint64_t interval_sum(const struct interval *intervals, size_t n);

/* Writes the union of two arrays of intervals, in order and not touching, to out, which has room
   for n_a + n_b. Returns the number of intervals in the union. */
size_t interval_merge(const struct interval *a, size_t n_a, const struct interval *b, size_t n_b,
                      struct interval *out);

#endif
