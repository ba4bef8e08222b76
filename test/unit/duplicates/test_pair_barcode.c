/* test_pair_barcode.c -- which records wait for a barcode, and which have one for others. */
#include "sam_line.h"

#include "duplicates/pair_barcode.h"

#define MATE "=\t200\t0\tACGT\tFFFF\tMC:Z:4M\tms:i:148"
#define NO_MATE "*\t0\t0\tACGT\tFFFF"
#define TAG "\tRX:Z:AC"

static const struct duplicate_rules sharing = {.barcode_source = BARCODE_TAG,
                                               .barcode_tag = {'R', 'X'}};

static enum barcode_role role_of(const struct duplicate_rules *rules, const char *line,
                                 struct record_views *views, struct duplicate_view *giver)
{
    /* Names and barcodes point into the record of the last call. */
    static uint8_t *rec;
    free(rec);
    rec = line ? record_of_line(line) : NULL;
    if (!rec) return BARCODE_NO_ROLE;
    assert_null(duplicate_views_make(rules, rec, views));
    return pair_barcode_role(rules, rec, views, giver);
}

static void check(const struct duplicate_rules *rules, const char *line, enum barcode_role expected)
{
    struct record_views views;
    struct duplicate_view giver = {.name = NULL};
    assert_int_equal(role_of(rules, line, &views, &giver), expected);
    if (expected == BARCODE_GIVER_APART) {
        assert_int_equal(giver.kind, VIEW_OTHER);
        assert_memory_equal(giver.name, "q", giver.name_bytes);
        assert_true(giver.barcode != 0);
    }
    for (unsigned i = 0; i < views.n && expected == BARCODE_SEEKER; i++) {
        assert_int_equal(views.view[i].name_bytes, 1);
        assert_memory_equal(views.view[i].name, "q", 1);
        assert_true(views.view[i].barcode == 0);
    }
    (void)role_of(rules, NULL, &views, &giver);
}

static void test_roles(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        enum barcode_role role;
    } cases[] = {
        {"q\t99\tc\t100\t9\t4M\t" MATE, BARCODE_SEEKER},
        {"q\t99\tc\t100\t9\t4M\t" MATE TAG, BARCODE_GIVER},
        {"q\t99\tc\t100\t9\t4M\t" MATE "\tRX:Z:", BARCODE_SEEKER},
        {"q\t99\tc\t100\t9\t4M\t" MATE "\tRX:i:5", BARCODE_SEEKER},
        {"q\t99\tc\t100\t9\t4M\t" MATE "\tBX:Z:AC", BARCODE_SEEKER},
        /* Both reads on one strand: two views. */
        {"q\t115\tc\t100\t9\t4M\t" MATE, BARCODE_SEEKER},
        /* The mate is not mapped. */
        {"q\t73\tc\t100\t9\t4M\t" MATE, BARCODE_SEEKER},
        {"q\t73\tc\t100\t9\t4M\t" MATE TAG, BARCODE_GIVER_APART},
        /* Not examined: unmapped, failed. */
        {"q\t133\tc\t100\t0\t*\t" MATE TAG, BARCODE_GIVER_APART},
        {"q\t133\tc\t100\t0\t*\t" MATE, BARCODE_NO_ROLE},
        {"q\t611\tc\t100\t9\t4M\t" MATE TAG, BARCODE_GIVER_APART},
        {"q\t611\tc\t100\t9\t4M\t" MATE, BARCODE_NO_ROLE},
        /* Secondary, supplementary. */
        {"q\t355\tc\t100\t9\t4M\t" MATE TAG, BARCODE_NO_ROLE},
        {"q\t2147\tc\t100\t9\t4M\t" MATE, BARCODE_NO_ROLE},
        /* No mate, no name. */
        {"q\t65\tc\t100\t9\t4M\t" NO_MATE, BARCODE_NO_ROLE},
        {"q\t65\tc\t100\t9\t4M\t" NO_MATE TAG, BARCODE_NO_ROLE},
        {"q\t0\tc\t100\t9\t4M\t" MATE, BARCODE_NO_ROLE},
        {"*\t99\tc\t100\t9\t4M\t" MATE, BARCODE_NO_ROLE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(&sharing, cases[i].line, cases[i].role);
}

static void test_failed_reads(void **state)
{
    (void)state;
    struct duplicate_rules rules = sharing;
    rules.include_fails = true;
    check(&rules, "q\t611\tc\t100\t9\t4M\t" MATE, BARCODE_SEEKER);
    check(&rules, "q\t611\tc\t100\t9\t4M\t" MATE TAG, BARCODE_GIVER);
}

/* Text is needed for mismatches only. */
static void test_text(void **state)
{
    (void)state;
    for (unsigned mismatches = 0; mismatches < 2; mismatches++) {
        struct duplicate_rules rules = sharing;
        struct record_views views;
        struct duplicate_view giver;
        rules.barcode_mismatches = mismatches;
        assert_int_equal(role_of(&rules, "q\t133\tc\t100\t0\t*\t" MATE TAG, &views, &giver),
                         BARCODE_GIVER_APART);
        assert_int_equal(giver.barcode_text != NULL, mismatches);
        if (mismatches) assert_memory_equal(giver.barcode_text, "AC", 2);
        struct duplicate_view pair = giver;
        assert_int_equal(role_of(&rules, "q\t99\tc\t100\t9\t4M\t" MATE TAG, &views, &giver),
                         BARCODE_GIVER);
        assert_true(views.view[0].barcode == pair.barcode);
        (void)role_of(&rules, NULL, &views, &giver);
    }
}

static void test_rules(void **state)
{
    (void)state;
    struct duplicate_rules own = sharing;
    own.own_barcodes = true;
    const struct duplicate_rules in_names = {.barcode_source = BARCODE_NAME},
                                 none = {.barcode_source = BARCODE_NONE};
    assert_true(duplicate_rules_share_barcodes(&sharing));
    const struct duplicate_rules *others[] = {&own, &in_names, &none};
    for (size_t i = 0; i < 3; i++) {
        assert_false(duplicate_rules_share_barcodes(others[i]));
        check(others[i], "q\t99\tc\t100\t9\t4M\t" MATE, BARCODE_NO_ROLE);
    }
}

static void test_counts(void **state)
{
    (void)state;
    struct barcode_counts sum = {1, 2, 3, 4, 5, 6, 7};
    const struct barcode_counts more = {10, 20, 30, 40, 50, 60, 70};
    barcode_counts_join(&sum, &more);
    assert_true(sum.n_examined == 11 && sum.n_lacking == 22 && sum.n_unreadable == 33);
    assert_true(sum.n_seekers == 44 && sum.n_givers == 55);
    assert_true(sum.n_names == 66 && sum.n_without_coords == 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roles),  cmocka_unit_test(test_failed_reads),
        cmocka_unit_test(test_text),   cmocka_unit_test(test_rules),
        cmocka_unit_test(test_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
