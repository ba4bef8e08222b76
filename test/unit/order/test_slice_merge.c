/*
 * test_slice_merge.c -- cutting and merging: wherever sources are cut, the merged segments one after
 * another are what a plain stable sort of all entries gives.
 */
#include "unit_test.h"
#include "test_rules.h"

#include "order/slice_merge.h"

enum { MAX_RUNS = 40 };

static const struct merge_limit no_limit = {NULL, 0};

static const enum sort_order all_orders[] = {SORT_COORDINATE, SORT_NAME_NATURAL,
                                             SORT_NAME_LEXICAL};

/* One entry, and what the test itself knows about it. */
struct item {
    uint8_t key[2 * TEST_MAX_NAME + 16];
    size_t key_bytes;
    uint32_t run;
    uint64_t index;             /* of the entry in its run */
    struct sort_entry entry;
    struct keyed_record *keyed; /* NULL in a fixed order */
};

/* Sorted runs, each divided into sources as a run is divided into blocks. */
struct runs {
    enum sort_order order;
    size_t n_items;
    struct item *items;         /* run by run, each sorted */
    const struct item **expected;       /* in the order that merging must give */
    struct sort_entry *entries; /* of the items */
    struct merge_source *sources;       /* in the order of runs */
    size_t n_sources;
};

static int compare_item_keys(const struct item *a, const struct item *b)
{
    size_t n = a->key_bytes < b->key_bytes ? a->key_bytes : b->key_bytes;
    int c = memcmp(a->key, b->key, n);
    return c ? c : (a->key_bytes > b->key_bytes) - (a->key_bytes < b->key_bytes);
}

static int compare_full_keys(const struct item *a, const struct item *b)
{
    int c = compare_item_keys(a, b);
    if (c == 0) c = (a->run > b->run) - (a->run < b->run);
    if (c == 0) c = (a->index > b->index) - (a->index < b->index);
    return (c > 0) - (c < 0);
}

static int compare_expected(const void *a, const void *b)
{
    return compare_full_keys(*(const struct item *const *)a, *(const struct item *const *)b);
}

/* Keys are taken from few values, with many ties, or are nearly all different. */
enum variety { ALL_EQUAL, FEW_KEYS, MANY_KEYS, VARIETY_COUNT };

static void set_random_key(struct rng *rng, enum sort_order order, enum variety variety,
                           struct item *item)
{
    char name[TEST_MAX_NAME + 1] = "the only name";
    uint8_t record[512];
    struct record_fields fields = {.name = name};
    if (variety == FEW_KEYS) {
        fields.pos = (int32_t)rng_below(rng, 4);
        memset(name, 'p', 100);
        name_of_letters(rng, name + 100, rng_below(rng, 3), "01");
    } else if (variety == MANY_KEYS) {
        random_place(rng, 5, &fields);
        fields.flag = random_flag(rng);
        tricky_name(rng, name);
    }
    (void)put_record(record, &fields, 0);
    if (sort_order_is_fixed(order)) {
        item->entry.prefix = sort_key_coordinate(record);
        sort_key_store_fixed(item->entry.prefix, item->key);
        item->key_bytes = SORT_KEY_FIXED_BYTES;
    } else {
        item->key_bytes = test_key_encode(order, record, item->key);
    }
}

static int compare_unsorted_items(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    int c = compare_item_keys(x, y);
    return c ? c : (x->index > y->index) - (x->index < y->index);
}

/* Makes one sorted run of n items at `items`. */
static void make_run(struct rng *rng, enum sort_order order, enum variety variety, uint32_t run,
                     struct item *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        items[i] = (struct item){.run = run, .index = i};
        set_random_key(rng, order, variety, &items[i]);
    }
    qsort(items, n, sizeof *items, compare_unsorted_items);
    for (size_t i = 0; i < n; i++) {
        items[i].index = i;
        if (sort_order_is_fixed(order)) {
            items[i].entry.ref = &items[i];     /* never read */
            continue;
        }
        size_t bytes = sizeof(struct keyed_record) + items[i].key_bytes;
        items[i].keyed = test_alloc(bytes);
        *items[i].keyed = (struct keyed_record){.record = items[i].key,
                                                .key_bytes = (uint32_t)items[i].key_bytes};
        memcpy(items[i].keyed->key, items[i].key, items[i].key_bytes);
        /* Prefixes may be anything: those of different sources come from different depths. */
        items[i].entry = (struct sort_entry){rng_next(rng), items[i].keyed};
    }
}

/* Makes n_runs runs of at most max_items. A run is one source, or several if it is divided. */
static void make_runs(struct rng *rng, enum sort_order order, enum variety variety, size_t n_runs,
                      size_t max_items, bool divided, struct runs *runs)
{
    size_t most = n_runs * max_items, at = 0;
    *runs = (struct runs){.order = order,
                          .items = test_alloc(most * sizeof *runs->items),
                          .expected = test_alloc(most * sizeof *runs->expected),
                          .entries = test_alloc(most * sizeof *runs->entries),
                          .sources = test_alloc((most + n_runs) * sizeof *runs->sources)};
    for (uint32_t run = 0; run < n_runs; run++) {
        size_t n = rng_one_in(rng, 5) ? 0 : rng_below(rng, max_items + 1);
        make_run(rng, order, variety, run, runs->items + at, n);
        size_t done = 0;
        do {
            size_t some = divided ? rng_below(rng, n - done + 1) : n - done;
            if (divided && n > done && some == 0) some = 1;
            runs->sources[runs->n_sources++] =
                (struct merge_source){runs->entries + at + done, some, run, done};
            done += some;
        } while (done < n);
        at += n;
    }
    runs->n_items = at;
    for (size_t i = 0; i < at; i++) {
        runs->entries[i] = runs->items[i].entry;
        runs->expected[i] = &runs->items[i];
    }
    qsort(runs->expected, at, sizeof *runs->expected, compare_expected);
}

static void release_runs(struct runs *runs)
{
    for (size_t i = 0; i < runs->n_items; i++) free(runs->items[i].keyed);
    free(runs->items);
    free(runs->expected);
    free(runs->entries);
    free(runs->sources);
}

/* Merges the entries of all sources from cut_at up to the bound, and compares them with the
   expected items from *at on. Moves cut_at and *at on. */
static void check_segment(struct rng *rng, const struct runs *runs, const struct merge_limit *bound,
                          struct merge_space *space, size_t *cut_at, size_t *at)
{
    OWNED struct merge_slice *slices = test_alloc(runs->n_sources * sizeof *slices);
    for (size_t i = 0; i < runs->n_sources; i++) {
        size_t to = merge_cut(test_rules(runs->order), &runs->sources[i], bound);
        CHECK(rng, to >= cut_at[i] && to <= runs->sources[i].n_entries);
        slices[i] = (struct merge_slice){runs->sources[i].entries + cut_at[i], to - cut_at[i]};
        cut_at[i] = to;
    }
    const struct sort_entry *merged = NULL;
    size_t n = merge_slices(test_rules(runs->order), slices, runs->n_sources, space, &merged);
    CHECK(rng, *at + n <= runs->n_items);
    for (size_t i = 0; i < n; i++, ++*at)
        CHECK(rng, merged[i].ref == runs->expected[*at]->entry.ref);
}

/* Cuts at the full keys of the expected items whose places are given in ascending order. */
static void check_cuts(struct rng *rng, const struct runs *runs, const size_t *places,
                       size_t n_places)
{
    RELEASED(merge_space_release) struct merge_space space = {0};
    uint8_t bound[TEST_BOUND_BYTES];
    size_t *cut_at = calloc(runs->n_sources, sizeof *cut_at), at = 0;
    assert_non_null(cut_at);
    for (size_t i = 0; i < n_places; i++) {
        const struct item *item = runs->expected[places[i]];
        /* A source of one entry: the bound must not depend on how runs are divided. */
        struct merge_source source = {&item->entry, 1, item->run, item->index};
        const struct merge_limit limit = {
            bound, merge_bound_store(runs->order, &source, 0, bound)};
        check_segment(rng, runs, &limit, &space, cut_at, &at);
        CHECK(rng, at == places[i]);
    }
    check_segment(rng, runs, &no_limit, &space, cut_at, &at);
    CHECK(rng, at == runs->n_items);
    free(cut_at);
}

static int compare_sizes(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

TEST(test_random_runs_and_cuts)
{
    struct rng rng = rng_start(31);
    size_t places[64];
    for (int round = 0; round < 360; round++) {
        enum sort_order order = all_orders[round % 3];
        enum variety variety = (enum variety)(round / 3 % VARIETY_COUNT);
        struct runs runs;
        size_t n_runs = 1 + rng_below(&rng, MAX_RUNS), most = rng_one_in(&rng, 2) ? 8 : 120;
        make_runs(&rng, order, variety, n_runs, most, rng_one_in(&rng, 2), &runs);
        size_t n_places = runs.n_items ? rng_below(&rng, 64) : 0;
        for (size_t i = 0; i < n_places; i++) places[i] = rng_below(&rng, runs.n_items);
        qsort(places, n_places, sizeof *places, compare_sizes);
        check_cuts(&rng, &runs, places, n_places);
        release_runs(&runs);
    }
}

/* Every possible cut, one at a time and all together, also between equal keys. */
TEST(test_cuts_at_every_place)
{
    struct rng rng = rng_start(32);
    for (int round = 0; round < 18; round++) {
        enum variety variety = (enum variety)(round / 3 % VARIETY_COUNT);
        struct runs runs;
        make_runs(&rng, all_orders[round % 3], variety, 5, 40, round >= 9, &runs);
        OWNED size_t *places = test_alloc(runs.n_items * sizeof *places);
        for (size_t i = 0; i < runs.n_items; i++) {
            places[i] = i;
            check_cuts(&rng, &runs, &i, 1);
        }
        check_cuts(&rng, &runs, places, runs.n_items);
        release_runs(&runs);
    }
}

/* A record larger than a block or a batch is a source of one entry. Merging reads only entries. In
   the coordinate order it reads no byte of a record: the addresses in this test are not valid. */
TEST(test_sources_of_one_giant_record)
{
    struct rng rng = rng_start(33);
    enum { N = 200 };
    struct sort_entry entries[N];
    struct merge_slice slices[N];
    RELEASED(merge_space_release) struct merge_space space = {0};
    for (size_t i = 0; i < N; i++) {
        entries[i] = (struct sort_entry){rng_below(&rng, 20), (const void *)(uintptr_t)(i + 1)};
        slices[i] = (struct merge_slice){&entries[i], 1};
    }
    const struct sort_entry *merged;
    CHECK(&rng, merge_slices(test_rules(SORT_COORDINATE), slices, N, &space, &merged) == N);
    for (size_t i = 1; i < N; i++) {
        CHECK(&rng, merged[i - 1].prefix <= merged[i].prefix);
        if (merged[i - 1].prefix == merged[i].prefix)
            CHECK(&rng, (uintptr_t)merged[i - 1].ref < (uintptr_t)merged[i].ref);
    }
}

/* merge_is_sorted notices any two records with different keys that change places. */
TEST(test_order_is_told)
{
    struct rng rng = rng_start(35);
    for (int round = 0; round < 90; round++) {
        enum sort_order order = all_orders[round % 3];
        enum { N = 50 };
        OWNED struct item *items = calloc(N, sizeof *items);
        struct sort_entry entries[N];
        uint8_t bound[TEST_BOUND_BYTES];
        assert_non_null(items);
        make_run(&rng, order, (enum variety)(round / 3 % VARIETY_COUNT), 0, items, N);
        for (size_t i = 0; i < N; i++) entries[i] = items[i].entry;
        const struct merge_source source = {entries, N, 0, 0};
        CHECK(&rng, merge_is_sorted(test_rules(order), entries, N));
        CHECK(&rng, merge_is_sorted(test_rules(order), entries, 0));
        for (int swap = 0; swap < 20; swap++) {
            size_t a = rng_below(&rng, N), b = rng_below(&rng, N);
            int c = compare_item_keys(&items[a], &items[b]);
            const struct merge_limit limit = {
                bound, merge_bound_store(order, &source, b, bound)};
            int told = merge_compare(test_rules(order), &entries[a], &limit);
            CHECK(&rng, (told > 0) - (told < 0) == (c > 0) - (c < 0));
            entries[a] = items[b].entry;
            entries[b] = items[a].entry;
            CHECK(&rng, merge_is_sorted(test_rules(order), entries, N) == (c == 0));
            entries[a] = items[a].entry;
            entries[b] = items[b].entry;
        }
        for (size_t i = 0; i < N; i++) free(items[i].keyed);
    }
}

TEST(test_nothing_to_merge)
{
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
    const struct merge_limit limit = {bound, sizeof bound};
    assert_int_equal(merge_cut(test_rules(SORT_COORDINATE), &none, &limit), 0);
    assert_int_equal(merge_cut(test_rules(SORT_COORDINATE), &none, &no_limit), 0);
}

TEST(test_bounds_compare_like_full_keys)
{
    struct rng rng = rng_start(34);
    for (size_t o = 0; o < sizeof all_orders / sizeof *all_orders; o++) {
        enum { N = 300 };
        OWNED struct item *items = calloc(N, sizeof *items);
        OWNED uint8_t (*bounds)[TEST_BOUND_BYTES] = test_alloc(N * sizeof *bounds);
        size_t n_bytes[N];
        assert_non_null(items);
        make_run(&rng, all_orders[o], MANY_KEYS, 0, items, N);
        for (size_t i = 0; i < N; i++) {
            struct item *item = &items[i];
            /* Runs and indexes of all sizes, equal and different. */
            item->run = (uint32_t)(rng_next(&rng) >> (32 + 8 * rng_below(&rng, 4)));
            item->index = rng_next(&rng) >> (8 * rng_below(&rng, 8));
            if (i > 0 && rng_one_in(&rng, 2)) item->run = items[i - 1].run;
            struct sort_entry two[2] = {item->entry, item->entry};
            struct merge_source source = {two, 2, item->run, item->index - 1};
            n_bytes[i] = merge_bound_store(all_orders[o], &source, 1, bounds[i]);
            CHECK(&rng, n_bytes[i] == merge_bound_bytes(all_orders[o], &item->entry));
            CHECK(&rng, n_bytes[i] == item->key_bytes + MERGE_BOUND_TAIL_BYTES);
            CHECK(&rng, n_bytes[i] <= TEST_BOUND_BYTES);
            uint32_t run;
            uint64_t index;
            merge_bound_position(bounds[i], n_bytes[i], &run, &index);
            CHECK(&rng, run == item->run && index == item->index);
        }
        for (size_t i = 0; i < N; i++) {
            const struct merge_limit limit = {bounds[i], n_bytes[i]};
            for (size_t k = 0; k < N; k++) {
                const struct merge_limit other = {bounds[k], n_bytes[k]};
                int c = merge_bound_compare(&limit, &other);
                CHECK(&rng, (c > 0) - (c < 0) == compare_full_keys(&items[i], &items[k]));
            }
            CHECK(&rng, merge_bound_compare(&limit, &no_limit) < 0);
            CHECK(&rng, merge_bound_compare(&no_limit, &limit) > 0);
        }
        assert_int_equal(merge_bound_compare(&no_limit, &no_limit), 0);
        for (size_t i = 0; i < N; i++) free(items[i].keyed);
    }
}

/* One space serves a large merge, a smaller one, and a larger one. */
TEST(test_space_is_reused)
{
    struct merge_space space = {0};
    static const size_t wanted[] = {10, 5000, 1, 5001, 100000, 0, 200000};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        size_t n = wanted[i];
        merge_space_reserve(&space, n, n / 10);
        assert_true(space.n_room >= n && space.n_starts > n / 10);
        for (int k = 0; k < 2; k++) {
            assert_non_null(space.buffer[k]);
            memset(space.buffer[k], k, n * sizeof *space.buffer[k]);
        }
        memset(space.starts, 1, (n / 10 + 1) * sizeof *space.starts);
    }
    merge_space_release(&space);
    assert_null(space.buffer[0]);
    assert_null(space.starts);
    merge_space_release(&space);
}
