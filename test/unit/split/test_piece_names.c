/*
 * test_piece_names.c -- names of pieces: safe, short, each of them once, and the same each time;
 * random names against a plain list of those that are taken.
 */
#include "random_records.h"

#include "split/piece_names.h"

static const char safe[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+=,@";

/* Takes a name, which must become `want`. */
static void check_take(struct piece_names *names, const char *name, const char *want)
{
    char *got = piece_names_take(names, name);
    assert_string_equal(got, want);
    free(got);
}

static void test_examples(void **state)
{
    (void)state;
    struct piece_names *names = piece_names_create();
    check_take(names, "chr1", "chr1");
    check_take(names, "HLA:A*01", "HLA_A_01");
    check_take(names, "HLA/A 01", "HLA_A_01_2");
    check_take(names, "HLA_A_01_2", "HLA_A_01_2_2");
    check_take(names, "HLA%A%01", "HLA_A_01_3");
    check_take(names, "..", "_.");
    check_take(names, "-x-", "_x-");
    check_take(names, "", "_");
    check_take(names, ".", "__2");
    check_take(names, "\xc3\xa9", "__");
    check_take(names, "a\nb", "a_b");
    piece_names_destroy(names);
    piece_names_destroy(NULL);
}

static void test_expand(void **state)
{
    (void)state;
    static const char *const examples[][2] = {
        {"%.bam", "x_1.bam"}, {"d/%", "d/x_1"}, {"a", "a"}, {"", ""}, {"%%-%", "x_1x_1-x_1"},
    };
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        char *got = piece_names_expand(examples[i][0], "x_1");
        assert_string_equal(got, examples[i][1]);
        free(got);
    }
}

/* A name of a few characters, or a long one, without the byte 0. */
static void make_name(struct rng *rng, char *name)
{
    static const char few[] = "aa_2/:.-%\xff";
    size_t n = rng_below(rng, 4);
    if (rng_one_in(rng, 20)) n = PIECE_NAME_BYTES - 2 + rng_below(rng, 5);
    for (size_t i = 0; i < n; i++)
        name[i] = n > 10 ? 'a' : few[rng_below(rng, sizeof few - 1)];
    name[n] = '\0';
}

static void test_random_names(void **state)
{
    (void)state;
    enum { N_NAMES = 700, ROOM = PIECE_NAME_BYTES + 8 };
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct rng rng = rng_start(seed);
        char (*asked)[ROOM] = test_alloc(N_NAMES * sizeof *asked);
        char **taken = test_alloc(N_NAMES * sizeof *taken);
        struct piece_names *names = piece_names_create();
        for (size_t i = 0; i < N_NAMES; i++) {
            make_name(&rng, asked[i]);
            taken[i] = piece_names_take(names, asked[i]);
            size_t n = strlen(taken[i]);
            CHECK(&rng, n > 0 && n <= PIECE_NAME_BYTES + 4 && strspn(taken[i], safe) == n);
            CHECK(&rng, taken[i][0] != '.' && taken[i][0] != '-');
            for (size_t k = 0; k < i; k++) CHECK(&rng, strcmp(taken[i], taken[k]) != 0);
        }
        piece_names_destroy(names);
        names = piece_names_create();
        for (size_t i = 0; i < N_NAMES; i++) {
            char *again = piece_names_take(names, asked[i]);
            CHECK(&rng, strcmp(again, taken[i]) == 0);
            free(again);
            free(taken[i]);
        }
        piece_names_destroy(names);
        free(taken);
        free(asked);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_expand),
        cmocka_unit_test(test_random_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
