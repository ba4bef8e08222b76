/* interval_list.c -- see interval_list.h. */
#include "stats/interval_list.h"

#include "util/xalloc.h"

#include <stdbool.h>
#include <stdlib.h>

/* Late intervals are merged when there are at least this many, and a quarter as many as sorted
   ones: merging walks through all sorted ones. */
enum { LEAST_LATE = 256 };

void interval_list_append(struct interval_list *list, int64_t begin, int64_t end)
{
    xgrow(&list->sorted, &list->room, list->n + 1, list->n / 2 + 16, sizeof *list->sorted);
    list->sorted[list->n++] = (struct interval){begin, end};
}

/* Returns how many sorted intervals begin at or before `begin`. Searches from the last result in
   doubling steps, since the next interval is mostly of the same record. */
static size_t count_before(struct interval_list *list, int64_t begin)
{
    const struct interval *sorted = list->sorted;
    size_t low = 0, high = list->n, step = 1, at = list->found;
    if (at < list->n && sorted[at].begin <= begin) {
        for (low = at + 1; low < list->n && sorted[low].begin <= begin; step *= 2) {
            at = low;
            low = list->n - low > step ? low + step : list->n;
        }
        high = low;
        low = at + 1;
    } else {
        while (at > 0 && (at >= list->n || sorted[at].begin > begin)) {
            high = at < list->n ? at : list->n;
            at = at > step ? at - step : 0;
            step *= 2;
        }
        low = at;
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sorted[middle].begin <= begin)
            low = middle + 1;
        else
            high = middle;
    }
    list->found = low > 0 ? low - 1 : 0;
    return low;
}

static void add_late(struct interval_list *list, int64_t begin, int64_t end)
{
    size_t most = list->n / 4 > LEAST_LATE ? list->n / 4 : LEAST_LATE;
    xgrow(&list->late, &list->late_room, list->n_late + 1, list->n_late + 64, sizeof *list->late);
    list->late[list->n_late++] = (struct interval){begin, end};
    if (list->n_late >= most) interval_list_settle(list);
}

void interval_list_insert(struct interval_list *list, int64_t begin, int64_t end)
{
    size_t at = count_before(list, begin);
    /* The last interval begins after `begin`, so there is a next one. */
    struct interval *before = at > 0 ? &list->sorted[at - 1] : NULL, *next = &list->sorted[at];
    if (before && begin <= before->end) {
        if (end <= before->end) return;
        if (end < next->begin)
            before->end = end;
        else
            add_late(list, begin, end);
    } else if (end >= next->begin && end <= next->end) {
        next->begin = begin;
    } else {
        add_late(list, begin, end);
    }
}

static int compare_begin(const void *a, const void *b)
{
    const struct interval *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Adds an interval, which does not begin before the last of n, to `out`. Returns the new n. */
static inline size_t put(struct interval *out, size_t n, const struct interval *interval)
{
    if (n == 0 || interval->begin > out[n - 1].end) {
        out[n] = *interval;
        return n + 1;
    }
    if (interval->end > out[n - 1].end) out[n - 1].end = interval->end;
    return n;
}

size_t interval_merge(const struct interval *a, size_t n_a, const struct interval *b, size_t n_b,
                      struct interval *out)
{
    size_t n = 0;
    const struct interval *end_a = a + n_a, *end_b = b + n_b;
    while (a < end_a || b < end_b) {
        bool take_a = b == end_b || (a < end_a && a->begin <= b->begin);
        n = put(out, n, take_a ? a++ : b++);
    }
    return n;
}

void interval_list_settle(struct interval_list *list)
{
    if (list->n_late == 0) return;
    qsort(list->late, list->n_late, sizeof *list->late, compare_begin);
    size_t n_late = 0;
    for (size_t i = 0; i < list->n_late; i++) n_late = put(list->late, n_late, &list->late[i]);
    size_t room = list->n + n_late;
    struct interval *merged = xmalloc(room * sizeof *merged);
    list->n = interval_merge(list->sorted, list->n, list->late, n_late, merged);
    free(list->sorted);
    list->sorted = merged;
    list->room = room;
    list->n_late = 0;
}

void interval_list_trim(struct interval_list *list)
{
    interval_list_settle(list);
    free(list->late);
    list->late = NULL;
    list->late_room = 0;
    if (list->n < list->room)
        list->sorted = xrealloc(list->sorted, list->n * sizeof *list->sorted);
    list->room = list->n;
}

void interval_list_clear(struct interval_list *list)
{
    list->n = list->n_late = list->found = 0;
}

void interval_list_release(struct interval_list *list)
{
    free(list->sorted);
    free(list->late);
    *list = (struct interval_list){0};
}

uint64_t interval_sum(const struct interval *intervals, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += (uint64_t)(intervals[i].end - intervals[i].begin);
    return sum;
}
