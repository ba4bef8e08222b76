/* test_loser_tree.c -- the smallest head of any number of sources is found. */
#include "random_records.h"

#include "util/loser_tree.h"

enum { MOST_SOURCES = 70, LENGTH = 40, NUMBERS = 100, ENDED = NUMBERS };

struct source {
    size_t numbers[LENGTH + 1], at;
};

static bool is_before(const void *sources, size_t a, size_t b)
{
    const struct source *x = (const struct source *)sources + a;
    const struct source *y = (const struct source *)sources + b;
    size_t p = x->numbers[x->at], q = y->numbers[y->at];
    return p != q ? p < q : a < b;
}

static void fill(struct rng *rng, struct source *source, size_t *n_of)
{
    size_t n = rng_below(rng, LENGTH), number = 0;
    source->at = 0;
    for (size_t i = 0; i < n; i++) {
        number += rng_below(rng, NUMBERS / LENGTH);
        source->numbers[i] = number;
        n_of[number]++;
    }
    source->numbers[n] = ENDED;
}

static void sources_are_merged_in_order(void **state)
{
    (void)state;
    struct rng rng = rng_start(55);
    RELEASED(loser_tree_release) struct loser_tree tree = {0};
    for (size_t n = 1; n <= MOST_SOURCES; n++) {
        static struct source sources[MOST_SOURCES];
        size_t n_of[NUMBERS + 1] = {0};
        for (size_t i = 0; i < n; i++)
            fill(&rng, &sources[i], n_of);
        loser_tree_build(&tree, n, is_before, sources);
        for (size_t number = 0; number < NUMBERS; number++)
            for (size_t before = 0; n_of[number] > 0; n_of[number]--) {
                size_t first = loser_tree_first(&tree);
                assert_int_equal(sources[first].numbers[sources[first].at++], number);
                assert_true(first >= before);
                before = first;
                loser_tree_replay(&tree, first, is_before, sources);
            }
        struct source *last = &sources[loser_tree_first(&tree)];
        assert_int_equal(last->numbers[last->at], ENDED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sources_are_merged_in_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
