/* test_barcode_table.c -- the barcodes of names, against an array. */
#include "random_records.h"

#include "duplicates/barcode_table.h"

enum { MOST_NAMES = 20000, MOST_TEXT = 40, SMALL = 64 << 10, LARGE = 16 << 20 };

struct expected {
    uint64_t barcode;           /* 0: there is none */
    bool is_ambiguous, has_text;
    uint8_t text_bytes, text[MOST_TEXT];
};

static struct duplicate_key key_of(size_t name)
{
    return duplicate_key_of_name((const uint8_t *)&name, sizeof name);
}

static void check_find(struct rng *rng, const struct barcode_table *table, size_t name,
                       const struct expected *e)
{
    struct duplicate_view view = {.kind = VIEW_PAIR, .score = 7};
    barcode_table_give(table, key_of(name), &view);
    bool is_there = e->barcode != 0 && !e->is_ambiguous;
    CHECK(rng, view.kind == VIEW_PAIR && view.score == 7);
    CHECK(rng, view.barcode == (is_there ? e->barcode : 0));
    if (!is_there || !e->has_text) {
        CHECK(rng, !view.barcode_text && view.barcode_bytes == 0);
        return;
    }
    CHECK(rng, view.barcode_bytes == e->text_bytes);
    CHECK(rng, memcmp(view.barcode_text, e->text, e->text_bytes) == 0);
}

/* Names come once or several times, with one barcode or several. */
static void check_round(struct rng *rng, struct barcode_table *table, size_t n_names,
                        struct expected *names)
{
    memset(names, 0, MOST_NAMES * sizeof *names);
    barcode_table_reset(table, rng_one_in(rng, 2) ? 2 * n_names : 1 << 20);
    for (size_t i = 0; i < 2 * n_names; i++) {
        size_t name = rng_below(rng, n_names);
        struct expected *e = &names[name];
        uint8_t text[MOST_TEXT];
        struct duplicate_view view = {.kind = VIEW_OTHER};
        view.barcode = e->barcode != 0 && !rng_one_in(rng, 9) ? e->barcode : 1 + rng_below(rng, 9);
        if (rng_one_in(rng, 2)) {
            rng_fill(rng, text, MOST_TEXT);
            view.barcode_text = text;
            view.barcode_bytes = (uint8_t)(1 + rng_below(rng, MOST_TEXT));
        }
        CHECK(rng, barcode_table_add(table, key_of(name), &view));
        if (e->barcode != 0) {
            e->is_ambiguous |= e->barcode != view.barcode;
            continue;
        }
        *e = (struct expected){view.barcode, false, view.barcode_text != NULL, view.barcode_bytes,
                               {0}};
        if (view.barcode_text) memcpy(e->text, text, view.barcode_bytes);
    }
    for (size_t name = 0; name < n_names; name++) check_find(rng, table, name, &names[name]);
    const struct expected none = {0};
    for (size_t name = MOST_NAMES; name < MOST_NAMES + 100; name++)
        check_find(rng, table, name, &none);
}

static void test_barcodes(void **state)
{
    (void)state;
    struct rng rng = rng_start(811);
    struct barcode_table *table = barcode_table_create(LARGE);
    struct expected *names = test_alloc(MOST_NAMES * sizeof *names);
    for (int i = 0; i < 12; i++)
        check_round(&rng, table, 1 + rng_below(&rng, i % 4 == 0 ? MOST_NAMES : 30), names);
    free(names);
    barcode_table_destroy(table);
    barcode_table_destroy(NULL);
}

/* A table of 64 KB takes some hundreds of names and refuses more, with texts of any length. A name
   that it has needs no room. */
static void test_limit(void **state)
{
    (void)state;
    uint8_t text[255] = {1, 2, 3};
    for (unsigned text_bytes = 0; text_bytes <= 255; text_bytes += 51) {
        struct barcode_table *table = barcode_table_create(1);
        struct duplicate_view view = {.kind = VIEW_OTHER, .barcode = 5};
        if (text_bytes > 0) view.barcode_text = text;
        view.barcode_bytes = (uint8_t)text_bytes;
        barcode_table_reset(table, 1 << 30);
        size_t n = 0;
        while (barcode_table_add(table, key_of(n), &view)) n++;
        assert_in_range(n * (32 + text_bytes), SMALL / 8, SMALL);
        assert_true(barcode_table_add(table, key_of(0), &view));
        struct duplicate_view seeker = {.kind = VIEW_PAIR};
        barcode_table_give(table, key_of(n - 1), &seeker);
        assert_true(seeker.barcode == 5);
        barcode_table_reset(table, 1);
        seeker.barcode = 0;
        barcode_table_give(table, key_of(0), &seeker);
        assert_true(seeker.barcode == 0);
        barcode_table_destroy(table);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_barcodes),
        cmocka_unit_test(test_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
