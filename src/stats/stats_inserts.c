/* stats_inserts.c -- see stats_inserts.h. */
#include "stats/stats_inserts.h"

#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

enum { N_SMALL = 8192, LEAST_LARGE = 4096 };

static int compare_sizes(const void *a, const void *b)
{
    const struct stats_insert *x = a, *y = b;
    return (x->size > y->size) - (x->size < y->size);
}

/* Sorts a list, and joins those of one size. Returns how many are left. */
static size_t join_sizes(struct stats_insert *list, size_t n)
{
    size_t n_left = 0;
    if (n > 1) qsort(list, n, sizeof *list, compare_sizes);
    for (size_t i = 0; i < n; i++) {
        if (n_left == 0 || list[n_left - 1].size != list[i].size) {
            list[n_left++] = list[i];
            continue;
        }
        for (int k = 0; k < STATS_N_ORIENTATIONS; k++) list[n_left - 1].n[k] += list[i].n[k];
    }
    return n_left;
}

void stats_inserts_add(struct stats_inserts *inserts, uint32_t size, enum stats_orientation way)
{
    if (!inserts->small) inserts->small = xcalloc(N_SMALL, sizeof *inserts->small);
    if (size < N_SMALL) {
        inserts->small[size][way]++;
        return;
    }
    if (inserts->n_large >= LEAST_LARGE && inserts->n_large >= 2 * inserts->n_sorted)
        inserts->n_large = inserts->n_sorted = join_sizes(inserts->large, inserts->n_large);
    xgrow(&inserts->large, &inserts->room, inserts->n_large + 1, inserts->n_large,
          sizeof *inserts->large);
    struct stats_insert *insert = &inserts->large[inserts->n_large++];
    *insert = (struct stats_insert){.size = size};
    insert->n[way] = 1;
}

struct stats_insert *stats_inserts_list(const struct stats_inserts *const *all, size_t n_all,
                                        size_t *n)
{
    size_t room = N_SMALL;
    for (size_t i = 0; i < n_all; i++) room += all[i]->n_large;
    struct stats_insert *list = xcalloc(room, sizeof *list);
    for (uint32_t size = 0; size < N_SMALL; size++) list[size].size = size;
    *n = N_SMALL;
    for (size_t i = 0; i < n_all; i++) {
        for (uint32_t size = 0; all[i]->small && size < N_SMALL; size++)
            for (int k = 0; k < STATS_N_ORIENTATIONS; k++)
                list[size].n[k] += all[i]->small[size][k];
        if (all[i]->n_large == 0) continue;
        memcpy(list + *n, all[i]->large, all[i]->n_large * sizeof *list);
        *n += all[i]->n_large;
    }
    *n = join_sizes(list, *n);
    return list;
}

void stats_inserts_release(struct stats_inserts *inserts)
{
    free(inserts->small);
    free(inserts->large);
}
