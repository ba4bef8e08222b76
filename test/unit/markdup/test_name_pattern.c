/* test_name_pattern.c -- patterns, also in several threads at one time. */
#include "unit_test.h"

#include "markdup/read_names.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 8, CALLS = 3000 };

TEST(test_groups_of_a_pattern_are_found)
{
    char why[NAME_PATTERN_WHY_BYTES];
    regmatch_t found[NAME_PATTERN_GROUPS + 1];
    struct name_pattern *pattern = name_pattern_compile("([a-z]+):([0-9]+)(x)?", why);
    assert_non_null(pattern);
    assert_int_equal(name_pattern_n_groups(pattern), 3);
    assert_true(name_pattern_match(pattern, "A:ab:12", found));
    assert_int_equal(found[0].rm_so, 2);
    assert_int_equal(found[1].rm_eo, 4);
    assert_int_equal(found[2].rm_so, 5);
    assert_int_equal(found[2].rm_eo, 7);
    assert_int_equal(found[3].rm_so, -1);
    assert_false(name_pattern_match(pattern, "A:ab:x", found));
    name_pattern_destroy(pattern);
    name_pattern_destroy(NULL);
}

TEST(test_wrong_pattern_is_explained)
{
    char why[NAME_PATTERN_WHY_BYTES] = "";
    assert_null(name_pattern_compile("(", why));
    assert_true(strlen(why) > 0);
}

/* Each thread asks for numbers of its own. */
static void *match_many(void *arg)
{
    static atomic_uint n_threads;
    unsigned number = atomic_fetch_add(&n_threads, 1);
    char name[32];
    for (int i = 0; i < CALLS; i++) {
        regmatch_t found[NAME_PATTERN_GROUPS + 1];
        int length = snprintf(name, sizeof name, "%.*s:%d", (int)number + 1, "xxxxxxxxxxxx", i);
        if (!name_pattern_match(arg, name, found) || found[1].rm_so != (int)number + 2 ||
            found[1].rm_eo != length)
            return arg;
    }
    return NULL;
}

TEST(test_threads_match_at_one_time)
{
    char why[NAME_PATTERN_WHY_BYTES];
    pthread_t threads[THREADS];
    struct name_pattern *pattern = name_pattern_compile("^x+:([0-9]+)$", why);
    assert_non_null(pattern);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, match_many, pattern), 0);
    for (size_t i = 0; i < THREADS; i++) {
        void *wrong;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
    name_pattern_destroy(pattern);
}
