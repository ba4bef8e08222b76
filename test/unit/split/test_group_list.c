/*
 * test_group_list.c -- names of groups: safe, short, each of them once, and the same each time;
 * random titles against a plain list of the names that are taken; names of files.
 */
#include "unit_test.h"

#include "split/group_list.h"
#include "util/xalloc.h"

OWNER(struct group_list, group_list_destroy)

static const char safe[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+,@";

/* Adds a title, whose name must become `want`. */
static void check_add(struct group_list *list, const char *title, const char *want)
{
    size_t n = group_list_count(list);
    assert_int_equal(group_list_add(list, title), n);
    assert_int_equal(group_list_count(list), n + 1);
    assert_string_equal(group_list_title(list, n), title);
    assert_string_equal(group_list_name(list, n), want);
}

TEST(test_colliding_names_get_numbers)
{
    RELEASED(own_group_list_destroy) struct group_list *list = group_list_create();
    assert_int_equal(group_list_find(list, "chr1"), -1);
    check_add(list, "chr1", "chr1");
    check_add(list, "HLA:A*01", "HLA_A_01");
    check_add(list, "HLA/A 01", "HLA_A_01_2");
    check_add(list, "HLA_A_01_2", "HLA_A_01_2_2");
    check_add(list, "HLA%A%01", "HLA_A_01_3");
    check_add(list, "..", "_.");
    check_add(list, "-x-", "_x-");
    check_add(list, "", "_");
    check_add(list, ".", "__2");
    check_add(list, "\xc3\xa9", "__");
    check_add(list, "a\nb", "a_b");
    check_add(list, "chr1", "chr1_2");
    assert_int_equal(group_list_find(list, "chr1"), 0);
    assert_int_equal(group_list_find(list, "HLA/A 01"), 2);
    assert_int_equal(group_list_find(list, ""), 7);
    assert_int_equal(group_list_find(list, "HLA_A_01"), -1);
    assert_int_equal(group_list_find(list, "chr"), -1);
    group_list_counts(list, 2)->n_records = 7;
    assert_int_equal(group_list_counts(list, 2)->n_records, 7);
    assert_int_equal(group_list_counts(list, 1)->n_records, 0);
    assert_null(group_list_begin(list, 2));
    group_list_set_begin(list, 2, NULL);
    assert_null(group_list_begin(list, 2));
    group_list_set_begin(list, 2, xstrdup("chr1:1"));
    assert_string_equal(group_list_begin(list, 2), "chr1:1");
    assert_null(group_list_begin(list, 1));
    assert_string_equal(group_list_title(list, 0), "chr1");
    group_list_destroy(NULL);
}

TEST(test_pattern_makes_names_of_files)
{
    static const char *const examples[][2] = {
        {"%.bam", "x_1.bam"}, {"d/%", "d/x_1"}, {"a", "a"}, {"", ""}, {"%%-%", "x_1x_1-x_1"},
    };
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        const char *want = examples[i][1];
        char put[16], shorter[4];
        RELEASED(own_group_list_destroy) struct group_list *list = group_list_create();
        size_t group = group_list_add(list, "x:1");
        bool index = i % 2 == 1;
        group_list_set_patterns(list, index ? "%" : examples[i][0], index ? examples[i][0] : NULL);
        OWNED char *file = group_list_file(list, group);
        OWNED char *index_file = group_list_index(list, group);
        assert_string_equal(index ? index_file : file, want);
        if (!index) assert_null(index_file);
        group_list_put_file(list, group, index, put, sizeof put);
        assert_string_equal(put, want);
        group_list_put_file(list, group, index, shorter, sizeof shorter);
        assert_int_equal(strncmp(shorter, want, sizeof shorter - 1), 0);
        assert_int_equal(strlen(shorter), strlen(want) < 3 ? strlen(want) : 3);
    }
}

/* A name of a few characters, or a long one, without the byte 0. */
static void make_title(struct rng *rng, char *title)
{
    static const char few[] = "aa_2/:.-%\xff";
    size_t n = rng_below(rng, 4);
    if (rng_one_in(rng, 20)) n = GROUP_NAME_BYTES - 2 + rng_below(rng, 5);
    for (size_t i = 0; i < n; i++)
        title[i] = n > 10 ? 'a' : few[rng_below(rng, sizeof few - 1)];
    title[n] = '\0';
}

enum { N_NAMES = 700, ROOM = GROUP_NAME_BYTES + 8 };

TEST(test_random_titles_get_safe_names_once)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct rng rng = rng_start(seed);
        OWNED char (*titles)[ROOM] = test_alloc(N_NAMES * sizeof *titles);
        RELEASED(own_group_list_destroy) struct group_list *list = group_list_create();
        for (size_t i = 0; i < N_NAMES; i++) {
            make_title(&rng, titles[i]);
            CHECK(&rng, group_list_add(list, titles[i]) == i);
            const char *name = group_list_name(list, i);
            size_t n = strlen(name), first = 0;
            CHECK(&rng, n > 0 && n <= GROUP_NAME_BYTES + 4 && strspn(name, safe) == n);
            CHECK(&rng, name[0] != '.' && name[0] != '-');
            for (size_t k = 0; k < i; k++) CHECK(&rng, strcmp(group_list_name(list, k), name) != 0);
            while (strcmp(titles[first], titles[i]) != 0) first++;
            CHECK(&rng, group_list_find(list, titles[i]) == (ssize_t)first);
        }
        RELEASED(own_group_list_destroy) struct group_list *again = group_list_create();
        for (size_t i = 0; i < N_NAMES; i++) {
            (void)group_list_add(again, titles[i]);
            CHECK(&rng, strcmp(group_list_name(again, i), group_list_name(list, i)) == 0);
            CHECK(&rng, strcmp(group_list_title(list, i), titles[i]) == 0);
        }
    }
}

TEST(test_clashes_are_those_of_all_pairs)
{
    enum { N = 40 };
    static const char *const patterns[][2] = {
        {"%", "%.csi"}, {"%.csi", "%"}, {"a%", "%a"}, {"%%", "%"}, {"%", "%_%"}, {"%-%", "%-_%"},
        {"%", NULL}, {"x/%", "y/%"}, {"%", "%%%"},
    };
    size_t n_clashes = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct rng rng = rng_start(seed);
        const char *const *pattern = patterns[seed % (sizeof patterns / sizeof *patterns)];
        char *files[N], *indexes[N];
        RELEASED(own_group_list_destroy) struct group_list *list = group_list_create();
        group_list_set_patterns(list, pattern[0], pattern[1]);
        for (size_t i = 0; i < N; i++) {
            char title[ROOM] = "";
            size_t n = rng_below(&rng, 4);
            for (size_t k = 0; k < n; k++) strcat(title, rng_one_in(&rng, 2) ? "a" : "a_");
            if (rng_one_in(&rng, 4)) strcat(title, ".csi");
            (void)group_list_add(list, title);
            files[i] = group_list_file(list, i);
            indexes[i] = group_list_index(list, i);
            bool clashes = false;
            for (size_t k = 0; indexes[i] && k <= i; k++)
                clashes |= strcmp(files[i], indexes[k]) == 0 || strcmp(files[k], indexes[i]) == 0;
            OWNED char *clash = group_list_clash(list, i);
            CHECK(&rng, (clash != NULL) == clashes);
            CHECK(&rng, !clash || strcmp(clash, files[i]) == 0 || strcmp(clash, indexes[i]) == 0);
            n_clashes += clashes;
        }
        for (size_t i = 0; i < N; i++) {
            free(files[i]);
            free(indexes[i]);
        }
    }
    assert_true(n_clashes > 100);
}
