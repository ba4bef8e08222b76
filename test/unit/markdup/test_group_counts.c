/* test_group_counts.c -- what parts count of many or few groups is in the sum, once. */
#include "unit_test.h"

#include "markdup/markdup_stats.h"

enum { MOST_GROUPS = 5 * GROUP_COUNTS_PLACES, N_PARTS = 3, N_RECORDS = 5000 };

/* Counts records of random groups in parts, and in `counts` if that is not NULL. */
static void count_records(struct rng *rng, struct group_totals *totals, size_t n_groups,
                          struct duplicate_counts *counts)
{
    struct group_counts parts[N_PARTS];
    memset(parts, 0, sizeof parts);
    for (size_t i = 0; i < N_RECORDS; i++) {
        size_t group = rng_below(rng, n_groups);
        struct duplicate_counts *of_part =
            group_counts_of(&parts[rng_below(rng, N_PARTS)], totals, group);
        of_part->read += 2;
        of_part->written--;     /* what was counted by another part */
        if (counts) {
            counts[group].read += 2;
            counts[group].written--;
        }
        if (rng_one_in(rng, 100) && counts)
            group_counts_end(&parts[rng_below(rng, N_PARTS)], totals);
    }
    for (size_t i = 0; i < N_PARTS && counts; i++) group_counts_end(&parts[i], totals);
}

static void check(struct rng *rng, size_t n_groups)
{
    struct duplicate_counts counts[MOST_GROUPS] = {{.read = 0}};
    struct group_totals *totals = group_totals_create(n_groups);
    size_t n;
    count_records(rng, totals, n_groups, counts);
    group_totals_mark(totals);
    count_records(rng, totals, n_groups, NULL);
    group_totals_undo(totals);
    count_records(rng, totals, n_groups, counts);
    const struct duplicate_counts *got = group_totals_counts(totals, &n);
    CHECK(rng, n == n_groups);
    CHECK(rng, memcmp(got, counts, n * sizeof *got) == 0);
    group_totals_destroy(totals);
}

TEST(test_sums_are_those_of_all_parts)
{
    struct rng rng = rng_start(14);
    const size_t n_groups[] = {1, 2, 3, GROUP_COUNTS_PLACES - 1, GROUP_COUNTS_PLACES,
                               GROUP_COUNTS_PLACES + 1, MOST_GROUPS};
    for (size_t i = 0; i < sizeof n_groups / sizeof *n_groups; i++) check(&rng, n_groups[i]);
    size_t n = 1;
    assert_null(group_totals_counts(NULL, &n));
    assert_int_equal(n, 0);
    group_totals_destroy(NULL);
}
