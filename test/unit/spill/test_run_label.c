/* test_run_label.c -- labels of runs, and the chain that tells which runs count. */
#include "unit_test.h"

#include "spill/run_label.h"

static struct run_label make_label(uint32_t run, uint32_t before)
{
    return (struct run_label){.run = run, .before = before, .sum = {run + 1, 100 * run, 7 * run},
                              .any_placed = run % 2, .open_bytes = 1000 + run,
                              .end = {run / 10, (uint64_t)run << 20, 55 * run}};
}

static bool same(const struct run_label *a, const struct run_label *b)
{
    return a->run == b->run && a->before == b->before && content_sum_equal(&a->sum, &b->sum) &&
           a->any_placed == b->any_placed && a->open_bytes == b->open_bytes &&
           a->end.input == b->end.input && a->end.offset == b->end.offset &&
           a->end.n_records == b->end.n_records;
}

TEST(test_label_that_is_written_is_read)
{
    uint8_t bytes[RUN_LABEL_BYTES + 1];
    const struct run_label labels[] = {
        make_label(0, RUN_LABEL_NONE), make_label(7, 3), make_label(UINT32_MAX - 1, UINT32_MAX - 2),
        {.run = 5, .before = RUN_LABEL_NONE, .sum = {UINT64_MAX, UINT64_MAX, UINT64_MAX},
         .open_bytes = UINT64_MAX, .end = {UINT32_MAX, INPUT_OFFSET_UNKNOWN, UINT64_MAX}}};
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        struct run_label decoded;
        run_label_encode(&labels[i], bytes);
        assert_int_equal(run_label_decode(bytes, RUN_LABEL_BYTES, &decoded), 0);
        assert_true(same(&decoded, &labels[i]));
    }
}

TEST(test_damaged_label_is_refused)
{
    uint8_t bytes[RUN_LABEL_BYTES + 1] = {0};
    struct run_label label = make_label(7, 3);
    run_label_encode(&label, bytes);
    for (size_t n = 0; n <= RUN_LABEL_BYTES + 1; n++)
        assert_int_equal(run_label_decode(bytes, n, &label), n == RUN_LABEL_BYTES ? 0 : -1);
    for (size_t i = 0; i < 8 * RUN_LABEL_BYTES; i++) {
        bytes[i / 8] ^= (uint8_t)(1 << i % 8);
        assert_int_equal(run_label_decode(bytes, RUN_LABEL_BYTES, &label), -1);
        bytes[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    /* A run must have a greater number than the run before it. */
    label = make_label(3, 3);
    run_label_encode(&label, bytes);
    assert_int_equal(run_label_decode(bytes, RUN_LABEL_BYTES, &label), -1);
    label = make_label(RUN_LABEL_NONE, 3);
    run_label_encode(&label, bytes);
    assert_int_equal(run_label_decode(bytes, RUN_LABEL_BYTES, &label), -1);
}

/* Shuffles the labels. The runs that are given must be the chain, in order. */
static void check_chain(struct rng *rng, const struct run_label *labels, size_t n,
                        const uint32_t *chain, ssize_t n_chain)
{
    struct run_label mixed[64];
    if (n > 0) memcpy(mixed, labels, n * sizeof *labels);
    for (size_t i = n; i-- > 1;) {
        size_t k = rng_below(rng, i + 1);
        struct run_label other = mixed[i];
        mixed[i] = mixed[k];
        mixed[k] = other;
    }
    CHECK(rng, run_labels_chain(mixed, n) == n_chain);
    for (ssize_t i = 0; i < n_chain; i++) CHECK(rng, mixed[i].run == chain[i]);
    uint64_t runs = 0, wanted = 0;
    for (size_t i = 0; n_chain >= 0 && i < n; i++) {
        runs += mixed[i].sum.hash;
        wanted += labels[i].sum.hash;
    }
    CHECK(rng, runs == wanted);
}

TEST(test_labels_form_chains)
{
    struct rng rng = rng_start(511);
    const uint32_t none = RUN_LABEL_NONE;
    for (int i = 0; i < 20; i++) {
        check_chain(&rng, NULL, 0, NULL, 0);
        /* All runs; without the first; without one in the middle. */
        const struct run_label whole[] = {make_label(0, none), make_label(1, 0), make_label(2, 1),
                                          make_label(3, 2)};
        check_chain(&rng, whole, 4, (const uint32_t[]){0, 1, 2, 3}, 4);
        check_chain(&rng, whole + 1, 3, NULL, 0);
        const struct run_label gap[] = {make_label(0, none), make_label(1, 0), make_label(3, 2)};
        check_chain(&rng, gap, 3, (const uint32_t[]){0, 1}, 2);
        /* Two processes went on: first 3 and then 6 had lost the run before it. */
        const struct run_label again[] = {make_label(0, none), make_label(1, 0), make_label(3, 2),
                                          make_label(4, 1),    make_label(6, 5), make_label(7, 4),
                                          make_label(8, 7)};
        check_chain(&rng, again, 7, (const uint32_t[]){0, 1, 4, 7, 8}, 5);
        /* The first run was lost, and loading began again. */
        const struct run_label anew[] = {make_label(1, 0), make_label(2, none), make_label(3, 2)};
        check_chain(&rng, anew, 3, (const uint32_t[]){2, 3}, 2);
    }
}

/* Runs that end at an unknown place are left out at the end of the chain; then another run takes
   the place of the first of them. */
TEST(test_runs_with_unknown_ends_are_passed_over)
{
    struct rng rng = rng_start(513);
    for (int i = 0; i < 20; i++) {
        struct run_label labels[] = {make_label(0, RUN_LABEL_NONE), make_label(1, 0),
                                     make_label(2, 1), make_label(3, 2), make_label(4, 3),
                                     make_label(5, 1), make_label(6, 5), make_label(7, 1)};
        labels[2].end.offset = labels[3].end.offset = INPUT_OFFSET_UNKNOWN;
        assert_int_equal(run_labels_known(labels, 0), 0);
        assert_int_equal(run_labels_known(labels, 3), 2);
        assert_int_equal(run_labels_known(labels, 4), 2);
        assert_int_equal(run_labels_known(labels, 5), 5);
        assert_int_equal(run_labels_known(labels + 2, 2), 0);
        check_chain(&rng, labels, 4, (const uint32_t[]){0, 1, 2, 3}, 4);
        check_chain(&rng, labels, 7, (const uint32_t[]){0, 1, 5, 6}, 4);
        check_chain(&rng, labels, 8, NULL, -1);
        labels[5].end.offset = INPUT_OFFSET_UNKNOWN;
        check_chain(&rng, labels, 8, (const uint32_t[]){0, 1, 7}, 3);
    }
}

TEST(test_contradicting_labels_are_refused)
{
    struct rng rng = rng_start(512);
    const uint32_t none = RUN_LABEL_NONE;
    for (int i = 0; i < 20; i++) {
        const struct run_label two_firsts[] = {make_label(0, none), make_label(1, none)};
        check_chain(&rng, two_firsts, 2, NULL, -1);
        const struct run_label fork[] = {make_label(0, none), make_label(1, 0), make_label(2, 0)};
        check_chain(&rng, fork, 3, NULL, -1);
        const struct run_label twice[] = {make_label(0, none), make_label(5, 3), make_label(6, 4),
                                          make_label(7, 4), make_label(5, 4)};
        check_chain(&rng, twice, 5, NULL, -1);
    }
}
