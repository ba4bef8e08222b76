/*
 * test_range_counts.c -- bytes in windows of the genome, divided into ranges: each range has its
 * share, up to one window, and the ranges are those of a plain sum over all records.
 */
#include "split_header.h"
#include "unit_test.h"

#include "split/split_plan.h"

enum { MAX_REFS = 5, RECORD_ROOM = 256, MAX_RANGES = 40 };

struct genome {
    int64_t lengths[MAX_REFS];
    size_t n_refs;
    int64_t window;             /* bases of a window */
};

static void make_genome(struct rng *rng, struct genome *genome)
{
    double all = 0;
    genome->n_refs = 1 + rng_below(rng, MAX_REFS);
    for (size_t i = 0; i < genome->n_refs; i++) {
        genome->lengths[i] = 1 + (int64_t)rng_below(rng, rng_one_in(rng, 2) ? 300 : 3000000);
        all += (double)genome->lengths[i];
    }
    genome->window = (int64_t)(all / RANGE_COUNTS_WINDOWS) + 1;
}

static bool is_before(struct range_place a, struct range_place b)
{
    return a.tid != b.tid ? a.tid < b.tid : a.pos < b.pos;
}

/* The window of a record, as the place where it begins. */
static struct range_place window_of(const struct genome *genome, int32_t tid, int64_t pos)
{
    int64_t last = (genome->lengths[tid] - 1) / genome->window, at = pos / genome->window;
    if (pos < 0) at = 0;
    return (struct range_place){tid, (at < last ? at : last) * genome->window};
}

/* Adds records in any order, in several parts, and divides. */
static void check_genome(uint64_t seed)
{
    struct rng rng = rng_start(seed);
    struct genome genome;
    struct range_place begins[MAX_RANGES], places[400];
    size_t sizes[400], n_records = rng_below(&rng, 400), all = 0, largest = 0;
    make_genome(&rng, &genome);
    OWNED_HEADER sam_hdr_t *header = make_header(genome.lengths, genome.n_refs);
    struct range_counts *counts = range_counts_create(header);
    uint8_t *records = test_alloc(n_records * RECORD_ROOM), *from = records, *to = records;
    for (size_t i = 0; i < n_records; i++) {
        int32_t tid = (int32_t)rng_below(&rng, genome.n_refs + 1) - 1;
        int64_t reach = tid < 0 ? 100 : genome.lengths[tid] + 10;
        int32_t pos = (int32_t)rng_below(&rng, (size_t)reach) - 1;
        if (rng_one_in(&rng, 3) && pos > 5) pos = 5;
        size_t n = put_at(&rng, to, tid, pos);
        sizes[i] = tid < 0 ? 0 : n;
        all += sizes[i];
        if (tid >= 0) places[i] = window_of(&genome, tid, pos);
        to += n;
        if (rng_one_in(&rng, 10)) {
            (void)observe(&counts->base, from, to);
            from = to;
        }
    }
    (void)observe(&counts->base, from, to);
    (void)observe(&counts->base, to, to);
    for (size_t i = 0; i < n_records; i++) {
        size_t window = 0;
        for (size_t k = 0; sizes[i] && k < n_records; k++)
            if (sizes[k] && places[k].tid == places[i].tid && places[k].pos == places[i].pos)
                window += sizes[k];
        if (window > largest) largest = window;
    }
    unsigned n = 1 + (unsigned)rng_below(&rng, MAX_RANGES);
    range_counts_divide(counts, n, begins);
    CHECK(&rng, begins[0].tid == 0 && begins[0].pos == 0);
    for (unsigned i = 1; i < n; i++) {
        size_t before = 0;
        CHECK(&rng, !is_before(begins[i], begins[i - 1]) && begins[i].pos % genome.window == 0);
        for (size_t k = 0; k < n_records; k++)
            if (sizes[k] && is_before(places[k], begins[i])) before += sizes[k];
        double off = (double)before - (double)all / n * i;
        CHECK(&rng, off <= (double)largest / 2 + 1e-6 && -off <= (double)largest / 2 + 1e-6);
    }
    free(records);
    unobserve(&counts->base);
}

TEST(test_each_range_has_its_share)
{
    for (uint64_t seed = 0; seed < 200; seed++) check_genome(seed);
}

TEST(test_ranges_without_references_are_empty)
{
    struct rng rng = rng_start(1);
    struct range_place begins[3];
    uint8_t record[RECORD_ROOM];
    OWNED_HEADER sam_hdr_t *header = make_header(NULL, 0);
    struct range_counts *counts = range_counts_create(header);
    size_t n = put_at(&rng, record, -1, -1);
    (void)observe(&counts->base, record, record + n);
    range_counts_divide(counts, 3, begins);
    for (size_t i = 0; i < 3; i++) assert_int_equal(begins[i].tid, 0);
    unobserve(&counts->base);
}
