/* test_template_cut.c -- which names are equal, and where the last template begins. */
#include "unit_test.h"

#include "fixmate/template_cut.h"

TEST(test_names_that_do_not_fit_equal_no_other)
{
    OWNED uint8_t *a = test_alloc(36), *b = test_alloc(36);
    memset(a, 0, 36);
    a[0] = 32;
    a[12] = 200;
    memcpy(b, a, 36);
    assert_false(template_same_name(a, b));
    a[12] = b[12] = 0;
    assert_true(template_same_name(a, b));
}

TEST(test_zeros_after_a_name_do_not_count)
{
    static const struct {
        const char *a, *b;      /* with a zero after each */
        size_t a_bytes, b_bytes;
        bool is_same;
    } cases[] = {
        {"q", "q\0\0", 2, 4, true}, {"q\0a", "q\0b", 4, 4, true}, {"q", "qq", 2, 3, false},
        {"qq", "q\0", 3, 3, false}, {"", "\0", 1, 2, true}, {"qa", "qb", 3, 3, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t a[40] = {0}, b[40] = {0};
        a[0] = (uint8_t)(32 + cases[i].a_bytes);
        b[0] = (uint8_t)(32 + cases[i].b_bytes);
        a[12] = (uint8_t)cases[i].a_bytes;
        b[12] = (uint8_t)cases[i].b_bytes;
        memcpy(a + 36, cases[i].a, cases[i].a_bytes);
        memcpy(b + 36, cases[i].b, cases[i].b_bytes);
        assert_int_equal(template_same_name(a, b), cases[i].is_same);
        assert_int_equal(template_same_name(b, a), cases[i].is_same);
    }
}

TEST(test_last_template_is_found)
{
    enum { MOST = 60, RECORD_BYTES = 60 };
    struct rng rng = rng_start(4);
    OWNED uint8_t *records = test_alloc(MOST * RECORD_BYTES);
    for (int i = 0; i < 1000; i++) {
        size_t n_bytes = 0, n = rng_below(&rng, MOST), n_last = n > 0 ? 1 + rng_below(&rng, n) : 0;
        struct last_template want = {0, n_last};
        for (size_t k = 0; k < n; k++) {
            const struct record_fields f = {.name = k >= n - n_last ? "q" : k % 3 ? "r" : "s"};
            if (k == n - n_last) want.at = n_bytes;
            n_bytes += put_record(records + n_bytes, &f, 0);
        }
        struct last_template got = template_find_last(records, records + n_bytes);
        CHECK(&rng, got.at == want.at && got.n_records == want.n_records);
    }
}
