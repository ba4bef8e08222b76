/* test_name_filter.c -- all names that were added are known, and few others. */
#include "random_records.h"

#include "duplicates/name_filter.h"

static void check(struct rng *rng, size_t n_names, size_t limit_bytes, size_t most_of_1000)
{
    struct name_filter *filter = name_filter_create(n_names, limit_bytes);
    uint64_t *hashes = test_alloc((n_names + 1) * sizeof *hashes);
    for (size_t i = 0; i < n_names; i++)
        name_filter_add(filter, hashes[i] = rng_next(rng));
    for (size_t i = 0; i < n_names; i++) CHECK(rng, name_filter_may_have(filter, hashes[i]));
    size_t n_wrong = 0, n_tries = 100000;
    for (size_t i = 0; i < n_tries; i++) n_wrong += name_filter_may_have(filter, rng_next(rng));
    CHECK(rng, n_wrong * 1000 <= most_of_1000 * n_tries);
    free(hashes);
    name_filter_destroy(filter);
}

static void test_names(void **state)
{
    (void)state;
    struct rng rng = rng_start(812);
    check(&rng, 0, 1 << 20, 0);
    check(&rng, 1, 0, 1);
    check(&rng, 1000, 0, 20);
    check(&rng, 100000, 1 << 20, 20);
    check(&rng, 1000000, 4 << 20, 20);
    check(&rng, 1000000, 1 << 20, 200);  /* with little memory it knows more than it should */
    name_filter_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
