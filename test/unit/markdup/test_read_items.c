/* test_read_items.c -- which of two reads is the better one. test_resolve_sets.c tests the rest. */
#include "unit_test.h"

#include "markdup/read_items.h"

static struct item_read make_read(const char *name, int64_t score, uint32_t ordinal)
{
    const struct read_ends ends = {.kind = READ_ENDS_PAIR, .score = score, .ordinal = ordinal,
                                   .name = (const uint8_t *)name,
                                   .name_bytes = (uint8_t)strlen(name)};
    struct item_read read;
    item_read_ends(&ends, 3, &read);
    return read;
}

TEST(test_qc_then_score_then_name_decide_which_read_stays)
{
    /* each is better than the next */
    const struct item_read good[] = {make_read("x", 9, 0), make_read("a", 8, 1),
                                     make_read("ab", 8, 2), make_read("b", 8, 3)};
    struct item_read failed = make_read("a", 99, 4);
    failed.failed_qc = true;
    for (size_t i = 0; i < 4; i++) {
        for (size_t k = 0; k < 4; k++)
            assert_int_equal(sign(duplicate_rank_compare(&good[i], &good[k]), 0),
                             sign((long long)i, (long long)k));
        assert_true(duplicate_rank_compare(&good[i], &failed) < 0);
        assert_true(duplicate_rank_compare(&failed, &good[i]) > 0);
    }
    const struct item_read later = make_read("x", 9, 5);
    assert_int_equal(duplicate_rank_compare(&good[0], &later), 0);
    assert_true(duplicate_rank_is_better(&later, &good[0]));
    assert_false(duplicate_rank_is_better(&good[0], &later));
}

TEST(test_pairs_stay_whatever_the_score_of_single_reads)
{
    const struct item_read pair = make_read("p", 1, 0);
    struct item_read single = make_read("s", 5, 1), equal = make_read("e", 5, 2),
                     better = make_read("b", 6, 3);
    single.is_paired = equal.is_paired = better.is_paired = false;
    assert_true(duplicate_rank_single_loses(&better, &pair));
    assert_true(duplicate_rank_single_loses(&equal, &single));
    assert_false(duplicate_rank_single_loses(&better, &single));
    assert_true(duplicate_rank_is_better(&pair, &better));
    assert_false(duplicate_rank_is_better(&better, &pair));
}

TEST(test_earlier_run_comes_first_at_one_place)
{
    const struct read_ends first = {.ordinal = 9}, second = {.ordinal = 2};
    struct item_read a, b;
    item_read_ends(&first, 3, &a);
    item_read_ends(&second, 4, &b);
    assert_true(read_moment_compare(&a.moment, &b.moment) < 0);
}
