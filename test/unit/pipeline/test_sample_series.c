/*
 * test_sample_series.c -- a bounded number of samples at even distances, however many come; and
 * what the process itself counts.
 */
#include "random_records.h"

#include "machine/process_usage.h"
#include "pipeline/sample_series.h"

#include <math.h>

/* Takes a sample whenever one is due, every `tick` seconds, until `end`. */
static void run(struct sample_series *series, double tick, double end)
{
    assert_int_equal(sample_series_init(series), 0);
    uint64_t n = 0;
    for (double t = 0; t <= end; t += tick) {
        if (t < sample_series_due(series)) continue;
        struct sample sample = {.seconds = t, .records_in = ++n};
        sample_series_add(series, &sample);
        assert_true(series->n <= SAMPLE_MOST);
    }
}

static void test_short(void **state)
{
    (void)state;
    struct sample_series series;
    run(&series, SAMPLE_SECONDS, 10);
    assert_int_equal(series.n, (size_t)(10 / SAMPLE_SECONDS) + 1);
    for (size_t i = 0; i < series.n; i++) {
        assert_true(series.samples[i].seconds == (double)i * SAMPLE_SECONDS);
        assert_int_equal(series.samples[i].records_in, i + 1);
    }
    sample_series_release(&series);
    assert_null(series.samples);
}

/* From half full to full, all distances equal, beginning with the first. */
static void test_long(void **state)
{
    (void)state;
    static const double ends[] = {255.75, 256, 300, 1000, 1023.75, 5000, 86400};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct sample_series series;
        run(&series, SAMPLE_SECONDS, ends[i]);
        assert_true(series.n >= SAMPLE_MOST / 2 && series.n <= SAMPLE_MOST);
        assert_true(series.samples[0].seconds == 0);
        for (size_t k = 1; k < series.n; k++)
            assert_true(series.samples[k].seconds - series.samples[k - 1].seconds ==
                        series.interval_seconds);
        assert_true(ends[i] - series.samples[series.n - 1].seconds < series.interval_seconds);
        sample_series_release(&series);
    }
}

/* Late samples: never more than wanted, in order. */
static void test_late(void **state)
{
    (void)state;
    struct sample_series series;
    run(&series, 0.7, 7000);
    for (size_t k = 1; k < series.n; k++)
        assert_true(series.samples[k].seconds > series.samples[k - 1].seconds);
    sample_series_release(&series);
}

static void test_none(void **state)
{
    (void)state;
    struct sample_series series = {0};
    struct sample sample = {.seconds = 1};
    sample_series_add(&series, &sample);
    assert_int_equal(series.n, 0);
    sample_series_release(&series);
}

static void test_usage(void **state)
{
    (void)state;
    struct process_usage before, after, sum = {0};
    process_usage_now(&before);
    size_t n_bytes = (size_t)32 << 20;
    char *memory = malloc(n_bytes);
    assert_non_null(memory);
    for (size_t i = 0; i < n_bytes; i += 1024) memory[i] = (char)i;
    uint64_t resident = process_resident_bytes();
    process_usage_now(&after);
    assert_true(resident == 0 || resident >= n_bytes);
    assert_true(process_peak_bytes() >= resident);
    free(memory);
    process_usage_add(&sum, &before, &after);
    process_usage_add(&sum, &before, &after);
    assert_true(fabs(sum.wall_seconds - 2 * (after.wall_seconds - before.wall_seconds)) < 1e-6);
    assert_true(sum.wall_seconds > 0 && sum.user_seconds >= 0 && sum.system_seconds >= 0);
    assert_int_equal(sum.has_io, before.has_io && after.has_io);
    assert_int_equal(sum.read_bytes, 2 * (after.read_bytes - before.read_bytes));
    if (sum.has_io) assert_true(sum.read_bytes > 0);    /* /proc itself */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_usage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
