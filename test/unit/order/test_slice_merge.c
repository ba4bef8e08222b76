/* test_slice_merge.c -- runs in order and out of order, and nothing to merge; fuzz_merge.c cuts and
   merges runs of random records. */
#include "test_rules.h"
#include "unit_test.h"

#include "order/slice_merge.h"

TEST(test_records_that_change_places_are_noticed)
{
    static const uint64_t keys[] = {0, 3, 3, 7, UINT64_MAX};
    static const char *const names[] = {"", "a", "a", "a1", "b"};
    enum { N = 5 };
    uint64_t memory[N][8];
    for (int o = 0; o < 2; o++) {
        const struct sort_rules *rules = test_rules(o ? SORT_NAME_LEXICAL : SORT_COORDINATE);
        struct sort_entry entries[N];
        for (size_t i = 0; i < N; i++) {
            struct keyed_record *kr = (struct keyed_record *)memory[i];
            kr->key_bytes = (uint32_t)strlen(names[i]) + 1;
            memcpy(kr->key, names[i], kr->key_bytes);
            entries[i] = (struct sort_entry){o ? 99 - i : keys[i], kr};
        }
        assert_true(merge_is_sorted(rules, entries, N) && merge_is_sorted(rules, entries, 0));
        for (size_t a = 0; a < N; a++) {
            for (size_t b = a + 1; b < N; b++) {
                struct sort_entry swapped[N];
                memcpy(swapped, entries, sizeof swapped);
                swapped[a] = entries[b];
                swapped[b] = entries[a];
                assert_int_equal(merge_is_sorted(rules, swapped, N), keys[a] == keys[b]);
            }
        }
    }
}

TEST(test_nothing_to_merge)
{
    static const struct merge_bound no_limit = {NULL, 0};
    const struct sort_entry entry = {1, NULL}, *merged = &entry;
    RELEASED(merge_space_release) struct merge_space space = {0};
    struct merge_slice slices[3] = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
    assert_int_equal(merge_slices(test_rules(SORT_COORDINATE), slices, 0, &space, &merged), 0);
    assert_int_equal(merge_slices(test_rules(SORT_COORDINATE), slices, 3, &space, &merged), 0);
    assert_int_equal(merge_slices(test_rules(SORT_NAME_NATURAL), slices, 3, &space, &merged), 0);
    /* The only slice is not copied. */
    slices[0] = (struct merge_slice){&entry, 1};
    assert_int_equal(merge_slices(test_rules(SORT_COORDINATE), slices, 1, &space, &merged), 1);
    assert_ptr_equal(merged, &entry);
    struct merge_source none = {NULL, 0, 3, 0};
    uint8_t bound[SORT_KEY_FIXED_BYTES + MERGE_BOUND_TAIL_BYTES] = {0};
    const struct merge_bound limit = {bound, sizeof bound};
    assert_int_equal(merge_cut(test_rules(SORT_COORDINATE), &none, &limit), 0);
    assert_int_equal(merge_cut(test_rules(SORT_COORDINATE), &none, &no_limit), 0);
}
