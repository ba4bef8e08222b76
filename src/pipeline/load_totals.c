/* load_totals.c -- see load_totals.h. */
#include "pipeline/load_totals.h"

#include "util/xalloc.h"

#include <stdatomic.h>
#include <stdlib.h>

struct load_totals {
    struct crew *crew;
    uint64_t asked_bytes;
    atomic_int stop_signal;
    struct load_counts counts;  /* under the crew's lock */
};

struct load_totals *load_totals_create(struct crew *crew, uint64_t asked_bytes)
{
    struct load_totals *totals = xcalloc(1, sizeof *totals);
    totals->crew = crew;
    totals->asked_bytes = asked_bytes;
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

const struct load_counts *load_totals_locked(const struct load_totals *totals)
{
    crew_assert_locked(totals->crew);
    return &totals->counts;
}

uint64_t load_totals_expected_bytes(struct load_totals *totals)
{
    struct load_counts counts;
    load_totals_look(totals, &counts);
    return counts.expected_bytes;
}

void load_totals_add(struct load_totals *totals, const struct content_sum *sum, bool any_placed)
{
    crew_assert_locked(totals->crew);
    content_sum_join(&totals->counts.sum, sum);
    totals->counts.any_placed |= any_placed;
}

void load_totals_add_pairs(struct load_totals *totals, size_t n_paired, size_t n_alone)
{
    crew_assert_locked(totals->crew);
    totals->counts.n_paired += n_paired;
    totals->counts.n_alone += n_alone;
}

void load_totals_set_loading(struct load_totals *totals, bool is_loading)
{
    crew_lock(totals->crew);
    totals->counts.is_loading = is_loading;
    crew_announce(totals->crew);
    crew_unlock(totals->crew);
}

void load_totals_set_position(struct load_totals *totals, uint64_t file_bytes,
                              uint64_t file_bytes_read)
{
    crew_assert_locked(totals->crew);
    totals->counts.file_bytes = file_bytes;
    totals->counts.file_bytes_read = file_bytes_read;
}

void load_totals_add_position(struct load_totals *totals, uint64_t n_bytes)
{
    crew_assert_locked(totals->crew);
    totals->counts.file_bytes_read += n_bytes;
}

void load_totals_set_estimate(struct load_totals *totals, uint64_t raw_bytes)
{
    crew_lock(totals->crew);
    if (totals->asked_bytes == 0) totals->counts.expected_bytes = raw_bytes;
    crew_unlock(totals->crew);
}

void load_totals_set_bad(struct load_totals *totals)
{
    crew_lock(totals->crew);
    totals->counts.input_is_bad = true;
    crew_unlock(totals->crew);
}

void load_totals_set_cut(struct load_totals *totals)
{
    crew_lock(totals->crew);
    totals->counts.input_is_cut = true;
    crew_unlock(totals->crew);
}

void load_totals_add_before(struct load_totals *totals, const struct content_sum *sum,
                            bool any_placed)
{
    crew_lock(totals->crew);
    content_sum_join(&totals->counts.sum, sum);
    totals->counts.any_placed |= any_placed;
    totals->counts.raw_bytes_before = totals->counts.sum.n_bytes;
    crew_unlock(totals->crew);
}

void load_totals_set_before(struct load_totals *totals, uint64_t file_bytes)
{
    crew_lock(totals->crew);
    totals->counts.file_bytes_before = file_bytes;
    crew_unlock(totals->crew);
}

void load_totals_stop(struct load_totals *totals, int signal_number)
{
    atomic_store(&totals->stop_signal, signal_number);
}

int load_totals_stop_signal(const struct load_totals *totals)
{
    return atomic_load_explicit(&totals->stop_signal, memory_order_relaxed);
}
