/* test_read_items.c -- which of two reads is the better one. test_resolve_sets.c tests the rest. */
#include "unit_test.h"

#include "markdup/read_items.h"

static struct item_read make_read(enum read_ends_kind kind, const char *name, int64_t score,
                                  uint32_t ordinal)
{
    const struct read_ends ends = {.kind = kind, .score = score, .ordinal = ordinal,
                                   .name = (const uint8_t *)name,
                                   .name_bytes = (uint8_t)strlen(name)};
    struct item_read read;
    item_read_ends(&ends, 9 - ordinal, &read);  /* the run precedes the ordinal */
    return read;
}

#define PAIR(name, score, ordinal) make_read(READ_ENDS_PAIR, name, score, ordinal)
#define SINGLE(name, score, ordinal) make_read(READ_ENDS_SINGLE, name, score, ordinal)

TEST(test_qc_then_score_then_name_then_moment_decide_which_read_stays)
{
    /* Each is better than the next; the last two are equal but for their place in the file. */
    struct item_read reads[] = {PAIR("x", 9, 0), PAIR("a", 8, 1), PAIR("ab", 8, 2),
                                PAIR("b", 8, 3), PAIR("a", 99, 4), PAIR("a", 99, 5)};
    reads[4].failed_qc = reads[5].failed_qc = true;
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 6; k++) {
            int want = i >= 4 && k >= 4 ? 0 : sign(i, k);
            assert_int_equal(sign(duplicate_rank_compare(&reads[i], &reads[k]), 0), want);
            assert_int_equal(duplicate_rank_is_better(&reads[i], &reads[k]), i < k);
        }
}

TEST(test_pairs_stay_whatever_the_score_of_single_reads)
{
    const struct item_read pair = PAIR("p", 1, 0), single = SINGLE("s", 5, 1),
                           equal = SINGLE("e", 5, 2), better = SINGLE("b", 6, 3);
    assert_true(duplicate_rank_single_loses(&better, &pair));
    assert_true(duplicate_rank_single_loses(&equal, &single));
    assert_false(duplicate_rank_single_loses(&better, &single));
    assert_true(duplicate_rank_is_better(&pair, &better));
    assert_false(duplicate_rank_is_better(&better, &pair));
}
