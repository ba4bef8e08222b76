/* test_duplicate_table.c -- a table that grows keeps the best of each key, within its limit. */
#include "random_records.h"

#include "duplicates/duplicate_table.h"

enum { N_READS = 20000, N_KEYS = 6000, LIMIT_BYTES = 4 << 20 };

/* What has the highest index came first in the input. */
static uint64_t ordinal_of(uint32_t index)
{
    return (UINT64_C(1) << 39) - ((uint64_t)index << 18);
}

static struct duplicate_view view_of(struct rng *rng, uint32_t index, char *name)
{
    name_of_letters(rng, name, 1 + rng_below(rng, 30), "0123456789:");
    return (struct duplicate_view){
        .kind = VIEW_PAIR, .index = index, .ordinal = ordinal_of(index) & DUPLICATE_ORDINAL_MASK,
        .here = (int64_t)rng_below(rng, N_KEYS), .score = (int64_t)rng_below(rng, 3), .name = (const uint8_t *)name,
        .name_bytes = (uint8_t)strlen(name)};
}

/* Whether the first of two pairs is the better one. */
static bool is_better(const struct duplicate_view *a, const struct duplicate_view *b)
{
    if (a->score != b->score) return a->score > b->score;
    int r = strcmp((const char *)a->name, (const char *)b->name);
    return r != 0 ? r < 0 : a->ordinal < b->ordinal;
}

/* The table is prepared for one view, or for all: what it finds is the same. */
static void check_growth(uint64_t n_views)
{
    static char names[N_READS][TEST_MAX_NAME + 1];
    static struct duplicate_view views[N_READS];
    static bool is_duplicate[N_READS];
    static uint32_t best[N_KEYS];
    const struct duplicate_rules rules = {0};
    struct rng rng = rng_start(92);
    struct duplicate_table *table = duplicate_table_create(LIMIT_BYTES);
    duplicate_table_reset(table, n_views);
    assert_true(duplicate_table_is_empty(table));
    memset(is_duplicate, 0, sizeof is_duplicate);
    for (uint32_t i = 0; i < N_KEYS; i++) best[i] = UINT32_MAX;
    for (uint32_t i = 0; i < N_READS; i++) {
        struct duplicate_record record;
        views[i] = view_of(&rng, i, names[i]);
        enum table_result r = duplicate_table_add(
            table, duplicate_key_of_pair(&rules, &views[i]), &views[i], 0, &record);
        CHECK(&rng, r == TABLE_NO_DUPLICATE || r == TABLE_DUPLICATE);
        if (r == TABLE_DUPLICATE) is_duplicate[record.index] = true;
        uint32_t *so_far = &best[views[i].here];
        if (*so_far == UINT32_MAX || is_better(&views[i], &views[*so_far])) *so_far = i;
    }
    for (uint32_t i = 0; i < N_READS; i++)
        CHECK(&rng, is_duplicate[i] == (best[views[i].here] != i));
    duplicate_table_destroy(table);
}

static void test_growth(void **state)
{
    (void)state;
    check_growth(1);
    check_growth(N_READS);
}

/* A table that cannot grow says so for a new key, and goes on to take those that it has. */
static void test_limit(void **state)
{
    (void)state;
    const struct duplicate_rules rules = {0};
    struct duplicate_table *table = duplicate_table_create(1);
    struct duplicate_view view = {.kind = VIEW_PAIR, .name = (const uint8_t *)"n", .name_bytes = 1};
    struct duplicate_record record;
    duplicate_table_reset(table, UINT64_MAX);
    enum table_result r = TABLE_NO_DUPLICATE;
    while (r == TABLE_NO_DUPLICATE) {
        view.here++;
        r = duplicate_table_add(table, duplicate_key_of_pair(&rules, &view), &view, 0, &record);
    }
    assert_int_equal(r, TABLE_FULL);
    assert_in_range(view.here, 64, (64 << 10) / 64);    /* entries of 64 bytes in 64 KB */
    for (view.here--; view.here > 0; view.here--) {
        r = duplicate_table_add(table, duplicate_key_of_pair(&rules, &view), &view, 1, &record);
        assert_int_equal(r, TABLE_DUPLICATE);
    }
    duplicate_table_destroy(table);
}

/* The best single read of a key is a duplicate of the first pair that it meets, once. */
static void test_meeting_pairs(void **state)
{
    (void)state;
    const struct duplicate_rules rules = {0};
    struct duplicate_table *table = duplicate_table_create(LIMIT_BYTES);
    struct duplicate_view single = {.kind = VIEW_SINGLE, .here = 5, .other_place = 5, .index = 3};
    struct duplicate_view end = {.kind = VIEW_END, .here = 5};
    struct duplicate_record record = {.index = 0};
    struct duplicate_key key = duplicate_key_of_single(&rules, &single);
    duplicate_table_reset(table, 2);
    assert_int_equal(duplicate_table_meet_pair(table, key, &record), TABLE_NO_DUPLICATE);
    assert_int_equal(duplicate_table_add(table, key, &single, 0, &record), TABLE_NO_DUPLICATE);
    key = duplicate_key_of_single(&rules, &end);
    assert_int_equal(duplicate_table_meet_pair(table, key, &record), TABLE_DUPLICATE);
    assert_int_equal(record.index, 3);
    assert_int_equal(duplicate_table_meet_pair(table, key, &record), TABLE_NO_DUPLICATE);
    duplicate_table_destroy(table);
}

/* Of equal single reads at one place the one with the lowest run stays, then the one with the lowest
   ordinal, whatever their indexes. */
static void test_equal_singles(void **state)
{
    (void)state;
    static const struct {
        uint32_t run, index;
        uint64_t ordinal;
    } reads[] = {       /* in the order of the input */
        {0, 9, 5}, {0, 0, UINT64_C(5) << 30}, {0, 4, UINT64_C(6) << 30}, {2, 7, 0}, {2, 1, 3},
    };
    enum { N = sizeof reads / sizeof *reads };
    const struct duplicate_rules rules = {0};
    struct duplicate_table *table = duplicate_table_create(LIMIT_BYTES);
    struct rng rng = rng_start(93);
    for (int round = 0; round < 500; round++) {
        size_t order[N], first = N;
        struct duplicate_record lost;
        duplicate_table_reset(table, N);
        rng_permute(&rng, order, N);
        for (size_t i = 0; i < N; i++) {
            size_t number = order[i];
            const struct duplicate_view view = {
                .kind = VIEW_SINGLE, .index = reads[number].index,
                .ordinal = reads[number].ordinal & DUPLICATE_ORDINAL_MASK, .score = 7};
            enum table_result r =
                duplicate_table_add(table, duplicate_key_of_single(&rules, &view), &view,
                                    reads[number].run, &lost);
            CHECK(&rng, r == (i == 0 ? TABLE_NO_DUPLICATE : TABLE_DUPLICATE));
            size_t loser = number < first ? first : number;
            CHECK(&rng, i == 0 || (lost.run == reads[loser].run &&
                                   lost.index == reads[loser].index &&
                                   lost.ordinal == reads[loser].ordinal));
            if (number < first) first = number;
        }
    }
    duplicate_table_destroy(table);
}

/* Of two duplicates of one name the first in the file counts; that one has turned optical is kept,
   in whichever order they come. */
static void test_names(void **state)
{
    (void)state;
    const struct duplicate_name first = {.place = 8, .ordinal = 2, .was_optical = true},
                                second = {.place = 9, .ordinal = 1, .turned_optical = true};
    const struct duplicate_name *const orders[][2] = {{&first, &second}, {&second, &first}};
    const struct duplicate_key key = duplicate_key_of_name((const uint8_t *)"q", 1);
    struct duplicate_table *table = duplicate_table_create(LIMIT_BYTES);
    for (int i = 0; i < 2; i++) {
        struct duplicate_name found;
        duplicate_table_reset(table, 2);
        assert_false(duplicate_table_find_name(table, key, &found));
        for (int k = 0; k < 2; k++)
            assert_int_equal(duplicate_table_add_name(table, key, orders[i][k]),
                             TABLE_NO_DUPLICATE);
        assert_true(duplicate_table_find_name(table, key, &found));
        assert_true(found.ordinal == 2 && found.was_optical && found.turned_optical);
    }
    duplicate_table_destroy(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_growth), cmocka_unit_test(test_equal_singles),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_meeting_pairs),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
