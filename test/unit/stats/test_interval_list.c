/*
 * test_interval_list.c -- the union of intervals, compared with an array that has a byte for each
 * position, in every order in which intervals can come.
 */
#include "unit_test.h"

#include "stats/interval_list.h"

enum { N_POSITIONS = 4000 };

/* Checks that a list is in order, touches nothing, and has exactly the positions that are set. */
static void check_list(const struct rng *rng, const struct interval_list *list,
                       const uint8_t *covered)
{
    uint8_t found[N_POSITIONS] = {0};
    uint64_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        const struct interval *one = &list->sorted[i];
        CHECK(rng, one->begin >= 0 && one->begin < one->end && one->end <= N_POSITIONS);
        CHECK(rng, i == 0 || one->begin > list->sorted[i - 1].end);
        memset(found + one->begin, 1, (size_t)(one->end - one->begin));
    }
    for (size_t i = 0; i < N_POSITIONS; i++) n += covered[i];
    CHECK(rng, memcmp(found, covered, sizeof found) == 0);
    CHECK(rng, interval_sum(list->sorted, list->n) == n);
}

/* One record after the other, each with several intervals; `reach` is how far they lie apart. */
static void add_records(struct rng *rng, struct interval_list *list, uint8_t *covered,
                        size_t n_records, size_t reach)
{
    for (size_t i = 0; i < n_records; i++) {
        int64_t at = (int64_t)(i * (N_POSITIONS / 2) / n_records);
        for (size_t k = rng_below(rng, 6); k-- > 0;) {
            int64_t end = at + 1 + (int64_t)rng_below(rng, 12);
            if (end > N_POSITIONS) break;
            interval_list_add(list, at, end);
            memset(covered + at, 1, (size_t)(end - at));
            at = end + (int64_t)rng_below(rng, reach);
        }
    }
}

TEST(test_records_in_order)
{
    static const size_t reaches[] = {1, 3, 40, 900};
    for (size_t seed = 0; seed < 80; seed++) {
        struct rng rng = rng_start(1000 + seed);
        RELEASED(interval_list_release) struct interval_list list = {0};
        uint8_t covered[N_POSITIONS] = {0};
        add_records(&rng, &list, covered, seed % 5 == 0 ? 3000 : 1 + rng_below(&rng, 200),
                    reaches[seed % 4]);
        interval_list_settle(&list);
        check_list(&rng, &list, covered);
        if (rng_one_in(&rng, 2)) interval_list_trim(&list);
        add_records(&rng, &list, covered, 50, reaches[seed / 4 % 4]);
        interval_list_trim(&list);
        check_list(&rng, &list, covered);
        CHECK(&rng, list.room == list.n && list.late_room == 0);
        interval_list_clear(&list);
        CHECK(&rng, list.n == 0);
        memset(covered, 0, sizeof covered);
        add_records(&rng, &list, covered, 20, 40);
        interval_list_settle(&list);
        check_list(&rng, &list, covered);
    }
}

/* Far apart and in no order: each search begins somewhere else. */
TEST(test_intervals_are_joined_in_any_order)
{
    for (size_t seed = 0; seed < 40; seed++) {
        struct rng rng = rng_start(2000 + seed);
        RELEASED(interval_list_release) struct interval_list list = {0};
        uint8_t covered[N_POSITIONS] = {0};
        for (size_t i = rng_below(&rng, 2500); i-- > 0;) {
            int64_t begin = (int64_t)rng_below(&rng, N_POSITIONS);
            int64_t end = begin + 1 + (int64_t)rng_below(&rng, seed % 2 ? 2 : 30);
            if (end > N_POSITIONS) end = N_POSITIONS;
            interval_list_add(&list, begin, end);
            memset(covered + begin, 1, (size_t)(end - begin));
        }
        interval_list_settle(&list);
        check_list(&rng, &list, covered);
    }
}

/* A list as it is while a long read covers everything: later intervals must cost no memory. */
TEST(test_covered_interval_changes_nothing)
{
    RELEASED(interval_list_release) struct interval_list list = {0};
    interval_list_add(&list, 0, 1000000);
    interval_list_add(&list, 2000000, 2000001);
    for (int64_t i = 0; i < 900000; i++) interval_list_add(&list, i, i + 100);
    assert_int_equal(list.n, 2);
    assert_int_equal(list.n_late, 0);
    interval_list_add(&list, 999999, 1000005);
    interval_list_add(&list, 1999990, 2000000);
    assert_int_equal(list.n_late, 0);
    interval_list_add(&list, 1000000, 1999995);
    interval_list_settle(&list);
    assert_int_equal(list.n, 1);
    assert_true(interval_sum(list.sorted, list.n) == 2000001);
}

TEST(test_lists_that_overlap_are_merged)
{
    static const struct interval a[] = {{0, 5}, {10, 20}, {30, 40}};
    static const struct interval b[] = {{5, 6}, {8, 9}, {15, 30}, {50, 60}};
    struct interval out[7];
    assert_int_equal(interval_merge(a, 3, b, 4, out), 4);
    assert_true(out[0].end == 6 && out[1].begin == 8 && out[2].end == 40 && out[3].begin == 50);
    assert_int_equal(interval_merge(a, 0, b, 4, out), 4);
    assert_int_equal(interval_merge(a, 3, b, 0, out), 3);
    assert_int_equal(interval_merge(NULL, 0, NULL, 0, out), 0);
}
