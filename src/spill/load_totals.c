/* load_totals.c -- see load_totals.h. */
#include "spill/load_totals.h"

void load_totals_look(struct load_totals *totals, struct load_counts *counts)
{
    thread_pool_lock(totals->threads);
    *counts = totals->counts;
    thread_pool_unlock(totals->threads);
}

void load_totals_add(struct load_totals *totals, const struct content_sum *sum, bool any_placed)
{
    struct load_counts *counts = load_totals_locked(totals);
    content_sum_join(&counts->sum, sum);
    counts->any_placed |= any_placed;
}

void load_totals_set_loading(struct load_totals *totals, bool is_loading)
{
    thread_pool_lock(totals->threads);
    totals->counts.is_loading = is_loading;
    thread_pool_announce(totals->threads);
    thread_pool_unlock(totals->threads);
}

void load_totals_set_bad(struct load_totals *totals)
{
    thread_pool_lock(totals->threads);
    totals->counts.input_is_bad = true;
    thread_pool_unlock(totals->threads);
}
