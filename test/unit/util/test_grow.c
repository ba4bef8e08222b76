/* test_grow.c -- arrays that get longer. */
#include "random_records.h"

#include "util/grow.h"

#include <errno.h>

static void test_items_stay(void **state)
{
    (void)state;
    uint64_t *items = NULL;
    size_t room = 0;
    for (size_t n = 0; n < 1000; n++) {
        assert_int_equal(grow_array(&items, &room, n + 1, n / 2, sizeof *items), 0);
        assert_true(room > n);
        items[n] = n;
    }
    for (size_t n = 0; n < 1000; n++) assert_int_equal(items[n], n);
    size_t before = room;
    const uint64_t *there = items;
    assert_int_equal(grow_array(&items, &room, room, 50, sizeof *items), 0);
    assert_int_equal(room, before);
    assert_ptr_equal(items, there);
    free(items);
}

static void test_too_many(void **state)
{
    (void)state;
    uint64_t *items = NULL;
    size_t room = 0;
    errno = 0;
    assert_int_equal(grow_array(&items, &room, SIZE_MAX / 8 + 1, 0, sizeof *items), -1);
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(grow_array(&items, &room, 1, SIZE_MAX / 8, sizeof *items), -1);
    assert_int_equal(grow_array(&items, &room, 1, SIZE_MAX, sizeof *items), -1);
    assert_null(items);
    assert_int_equal(room, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_items_stay),
        cmocka_unit_test(test_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
