/* test_template_cut.c -- which names are equal; fuzz_template.c cuts streams into spans. */
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
