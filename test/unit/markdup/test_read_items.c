/* test_read_items.c -- which of two reads is the better one, and the order in which groups of items
   are visited. */
#include "unit_test.h"

#include "markdup/read_items.h"

/* ---- ranks ---- */

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

/* ---- groups ---- */

static char log_text[64];       /* what was called */
static const char *fails;       /* the function that fails */

static int note(char what, const char *function)
{
    size_t n = strlen(log_text);
    assert_true(n + 1 < sizeof log_text);
    log_text[n] = what;
    return fails && strcmp(fails, function) == 0 ? -1 : 0;
}

static int look(void *arg, const uint8_t *item, bool is_first)
{
    (void)arg;
    return note((char)(is_first ? item[8] - 'a' + 'A' : item[8]), "look");
}

static int decide(void *arg)
{
    (void)arg;
    return note('!', "decide");
}

static int take(void *arg, const uint8_t *item, size_t n_bytes)
{
    (void)arg;
    assert_int_equal(n_bytes, 9);
    return note((char)item[8], "take");
}

static void check_visit(bool skips_alone, const char *failing, const char *want)
{
    static const char *const items[] = {"group  2c", "group  1a", "group  3d", "group  1b",
                                        "group  3e", "group  3f", "group  4g"};
    const struct item_visitor visitor = {.key_bytes = 8, .skips_alone = skips_alone, .look = look,
                                         .decide = decide, .take = take};
    const struct external_sort_settings settings = {.memory_bytes = 1 << 20};
    struct external_sort *sort = external_sort_create(&settings);
    memset(log_text, 0, sizeof log_text);
    fails = failing;
    for (size_t i = 0; i < sizeof items / sizeof *items; i++)
        assert_int_equal(external_sort_add(sort, (const uint8_t *)items[i], 9), 0);
    assert_int_equal(item_groups_visit(sort, &visitor, NULL), failing ? -1 : 0);
    assert_string_equal(log_text, want);
    external_sort_destroy(sort);
}

TEST(test_each_group_is_seen_then_decided_then_taken)
{
    check_visit(false, NULL, "Ab!abC!cDef!defG!g");
    check_visit(true, NULL, "Ab!abDef!def");
    check_visit(false, "look", "A");
    check_visit(false, "decide", "Ab!");
    check_visit(false, "take", "Ab!a");
}
