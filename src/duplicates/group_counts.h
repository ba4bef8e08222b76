/*
 * group_counts.h -- the counts of --markdup of all read groups, to which many jobs add.
 *
 * A header may have a hundred thousand read groups, so all jobs share one array of counts. Each
 * job collects the counts of some groups, and adds them to the array when another group takes the
 * place, and at the end.
 *
 * Order of calls: group_totals_create; parts, which start as {0}: group_counts_of for each record,
 * group_counts_end, group_counts_release; group_totals_counts when all parts have ended;
 * group_totals_destroy. group_totals_mark and group_totals_undo only while all parts have ended or
 * were released. A part that is released before its end may have added some of its counts.
 * Memory: two elements for each group in all, and GROUP_COUNTS_PLACES for each part.
 * Threads: a part has one owner at a time; several threads may have parts. No errors.
 */
#ifndef ROCKSORT_DUPLICATES_GROUP_COUNTS_H
#define ROCKSORT_DUPLICATES_GROUP_COUNTS_H

#include "duplicates/duplicate_stats.h"

enum { GROUP_COUNTS_PLACES = 128 };     /* at most, of a part: 15 KiB; a power of two */

struct group_totals;

struct group_place {
    size_t group;
    struct duplicate_counts counts;
};

struct group_counts {           /* a part */
    struct group_place *places; /* NULL: nothing was counted */
    size_t mask;                /* the number of places less one */
};

/* Groups are 0 to n - 1. */
struct group_totals *group_totals_create(size_t n);

/* NULL is accepted. */
void group_totals_destroy(struct group_totals *totals);

/* Remembers all counts; and makes them again what they were then. */
void group_totals_mark(struct group_totals *totals);
void group_totals_undo(struct group_totals *totals);

/* One element for each group; of NULL none. */
const struct duplicate_counts *group_totals_counts(const struct group_totals *totals, size_t *n);

/* The part's counts of a group, to add to; until the next call. */
struct duplicate_counts *group_counts_of(struct group_counts *part, struct group_totals *totals,
                                         size_t group);

/* Adds all that the part still has, and makes it empty. */
void group_counts_end(struct group_counts *part, struct group_totals *totals);

/* Frees the part, and forgets what it still has. */
void group_counts_release(struct group_counts *part);

#endif
