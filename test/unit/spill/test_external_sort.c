/* test_external_sort.c -- items come back in the order of memcmp, however many there are. */
#include "test_place.h"
#include "unit_test.h"

#include "spill/external_sort.h"

enum { MOST_BYTES = 120 };

struct item {
    uint8_t bytes[MOST_BYTES];
    size_t n_bytes;
};

static int compare_items(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    int r = memcmp(x->bytes, y->bytes, x->n_bytes < y->n_bytes ? x->n_bytes : y->n_bytes);
    return r != 0 ? r : (x->n_bytes > y->n_bytes) - (x->n_bytes < y->n_bytes);
}

static struct external_sort *create(const struct place *place, size_t memory_bytes)
{
    static const char *prefixes[1];
    prefixes[0] = place->path;
    const struct external_sort_settings settings = {.memory_bytes = memory_bytes,
                                                    .places = {prefixes, 1, NULL}};
    return external_sort_create(&settings);
}

/* Few letters: many items agree in their first bytes, or are equal. */
static void fill(struct rng *rng, struct item *item)
{
    item->n_bytes = EXTERNAL_SORT_LEAST_BYTES + rng_below(rng, rng_one_in(rng, 9) ? 12 : 112);
    for (size_t i = 0; i < item->n_bytes; i++)
        item->bytes[i] = (uint8_t)(rng_one_in(rng, 12) ? 255 - rng_below(rng, 3) : 7);
}

static void check_sorted(struct external_sort_reader *reader, const struct external_sort *sort,
                         const struct item *items, size_t n)
{
    external_sort_read(reader, sort);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(external_sort_next(reader), 1);
        assert_int_equal(reader->n_bytes, items[i].n_bytes);
        assert_memory_equal(reader->item, items[i].bytes, items[i].n_bytes);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(external_sort_next(reader), 0);
        assert_null(reader->item);
    }
}

/* In the least memory a buffer has 16 KiB: from one to more than the 64 that become one. In much,
   all fit. The sort is used again for each size. */
static void check_sizes(struct external_sort *sort)
{
    static const size_t sizes[] = {0, 1, 2, 1000, 30000, 60000, 250000};
    struct rng rng = rng_start(701);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        struct external_sort_reader reader = {0};
        OWNED struct item *items = test_alloc(sizes[k] * sizeof *items);
        for (size_t i = 0; i < sizes[k]; i++) {
            fill(&rng, &items[i]);
            assert_int_equal(external_sort_add(sort, items[i].bytes, items[i].n_bytes), 0);
        }
        assert_int_equal(external_sort_finish(sort), 0);
        qsort(items, sizes[k], sizeof *items, compare_items);
        check_sorted(&reader, sort, items, sizes[k]);
        check_sorted(&reader, sort, items, sizes[k]);
        external_sort_reader_release(&reader);
        external_sort_clear(sort);
    }
    external_sort_destroy(sort);
}

TEST_IN_OWN_DIR(items_come_back_in_order)
{
    check_sizes(create(*state, 0));
    check_sizes(create(*state, 128 << 20));
}

/* Is the next item known to begin otherwise? Only that of a sort in memory is. */
TEST_IN_OWN_DIR(items_with_other_beginnings_are_alone)
{
    static const char *const items[] = {"aaaaaaaa1", "aaaaaaaa2", "bbbbbbbb"};
    struct external_sort *sort = create(*state, 1 << 20);
    RELEASED(external_sort_reader_release) struct external_sort_reader reader = {0};
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(external_sort_add(sort, (const uint8_t *)items[i], strlen(items[i])), 0);
    assert_int_equal(external_sort_finish(sort), 0);
    external_sort_read(&reader, sort);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(external_sort_next(&reader), 1);
        assert_int_equal(external_sort_is_alone(&reader), i > 0);
    }
    external_sort_destroy(sort);
}

TEST_IN_OWN_DIR(readers_do_not_disturb_each_other)
{
    enum { N = 20000 };
    struct external_sort *sort = create(*state, 0);
    RELEASED(external_sort_reader_release) struct external_sort_reader lead = {0}, follow = {0};
    for (uint32_t i = 0; i < N; i++) {
        char text[16];
        (void)snprintf(text, sizeof text, "%08" PRIu32, i * 7919 % N);
        assert_int_equal(external_sort_add(sort, (const uint8_t *)text, 8), 0);
    }
    assert_int_equal(external_sort_finish(sort), 0);
    external_sort_read(&lead, sort);
    external_sort_read(&follow, sort);
    for (uint32_t i = 0; i < N + 100; i++) {
        char text[16];
        assert_int_equal(external_sort_next(&lead), i < N);
        if (i < 100) continue;
        assert_int_equal(external_sort_next(&follow), 1);
        (void)snprintf(text, sizeof text, "%08" PRIu32, i - 100);
        assert_memory_equal(follow.item, text, 8);
    }
    external_sort_destroy(sort);
}

TEST_IN_OWN_DIR(a_sort_may_stay_empty)
{
    external_sort_destroy(NULL);
    external_sort_destroy(create(*state, 0));
}
