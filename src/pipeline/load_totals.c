/* load_totals.c -- see load_totals.h. */
#include "pipeline/load_totals.h"

#include "util/xalloc.h"

#include <stdlib.h>

struct load_totals *load_totals_create(struct crew *crew, uint64_t asked_bytes)
{
    struct load_totals *totals = xcalloc(1, sizeof *totals);
    totals->crew = crew;
    totals->size_is_given = asked_bytes > 0;
    totals->counts.expected_bytes = asked_bytes;
    return totals;
}

void load_totals_destroy(struct load_totals *totals)
{
    free(totals);
}

void load_totals_look(struct load_totals *totals, struct load_counts *counts)
{
    crew_lock(totals->crew);
    *counts = totals->counts;
    crew_unlock(totals->crew);
}

void load_totals_add(struct load_totals *totals, const struct content_sum *sum, bool any_placed)
{
    struct load_counts *counts = load_totals_locked(totals);
    content_sum_join(&counts->sum, sum);
    counts->any_placed |= any_placed;
}

void load_totals_set_loading(struct load_totals *totals, bool is_loading)
{
    crew_lock(totals->crew);
    totals->counts.is_loading = is_loading;
    crew_announce(totals->crew);
    crew_unlock(totals->crew);
}

void load_totals_set_bad(struct load_totals *totals)
{
    crew_lock(totals->crew);
    totals->counts.input_is_bad = true;
    crew_unlock(totals->crew);
}

void load_totals_add_before(struct load_totals *totals, const struct content_sum *sum,
                            bool any_placed)
{
    crew_lock(totals->crew);
    load_totals_add(totals, sum, any_placed);
    totals->counts.raw_bytes_before = totals->counts.sum.n_bytes;
    crew_unlock(totals->crew);
}
