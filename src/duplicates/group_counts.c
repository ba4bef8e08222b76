/*
 * group_counts.c -- see group_counts.h.
 *
 * The place of a group is its number modulo the number of places. With few groups each has a place
 * of its own, and the lock is taken only when a part ends.
 */
#include "duplicates/group_counts.h"

#include "util/xalloc.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct group_totals {
    size_t n;
    struct duplicate_counts *counts, *marked;
    pthread_mutex_t lock;       /* for adding to counts */
};

struct group_totals *group_totals_create(size_t n)
{
    struct group_totals *totals = xcalloc(1, sizeof *totals);
    totals->n = n;
    totals->counts = xcalloc(n, sizeof *totals->counts);
    totals->marked = xcalloc(n, sizeof *totals->marked);
    (void)pthread_mutex_init(&totals->lock, NULL);
    return totals;
}

void group_totals_destroy(struct group_totals *totals)
{
    if (!totals) return;
    free(totals->counts);
    free(totals->marked);
    (void)pthread_mutex_destroy(&totals->lock);
    free(totals);
}

void group_totals_mark(struct group_totals *totals)
{
    memcpy(totals->marked, totals->counts, totals->n * sizeof *totals->counts);
}

void group_totals_undo(struct group_totals *totals)
{
    memcpy(totals->counts, totals->marked, totals->n * sizeof *totals->counts);
}

const struct duplicate_counts *group_totals_counts(const struct group_totals *totals, size_t *n)
{
    *n = totals ? totals->n : 0;
    return totals ? totals->counts : NULL;
}

/* ---- parts ---- */

static void create_places(struct group_counts *part, size_t n_groups)
{
    size_t n = 1;
    while (n < n_groups && n < GROUP_COUNTS_PLACES) n *= 2;
    part->places = xcalloc(n, sizeof *part->places);
    part->mask = n - 1;
    for (size_t i = 0; i < n; i++) part->places[i].group = i < n_groups ? i : 0;
}

static void empty_place(struct group_place *place, struct group_totals *totals)
{
    (void)pthread_mutex_lock(&totals->lock);
    duplicate_counts_join(&totals->counts[place->group], &place->counts);
    (void)pthread_mutex_unlock(&totals->lock);
    place->counts = (struct duplicate_counts){0};
}

struct duplicate_counts *group_counts_of(struct group_counts *part, struct group_totals *totals,
                                         size_t group)
{
    if (!part->places) create_places(part, totals->n);
    struct group_place *place = &part->places[group & part->mask];
    if (place->group != group) {
        empty_place(place, totals);
        place->group = group;
    }
    return &place->counts;
}

void group_counts_end(struct group_counts *part, struct group_totals *totals)
{
    for (size_t i = 0; part->places && i <= part->mask; i++) empty_place(&part->places[i], totals);
}

void group_counts_release(struct group_counts *part)
{
    free(part->places);
    *part = (struct group_counts){0};
}
