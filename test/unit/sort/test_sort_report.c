/*
 * test_sort_report.c -- the samples of a sort: even distances, and a limited number of them.
 */
#include "unit_test.h"

#include "sort/sort_report.h"

/* Every `tick` seconds until `end`, adds a sample if one is due. */
static void run(struct sample_series *series, double tick, double end)
{
    sample_series_start(series);
    uint64_t n = 0;
    for (double t = 0; t <= end; t += tick) {
        if (t < sample_series_due(series)) continue;
        struct sample sample = {.seconds = t, .records_in = ++n};
        sample_series_add(series, &sample);
        assert_true(series->n <= SAMPLE_MOST);
    }
}

TEST(test_short_series_has_all_samples)
{
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

TEST(test_long_series_is_at_least_half_full)
{
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

TEST(test_late_samples_are_in_order)
{
    struct sample_series series;
    run(&series, 0.7, 7000);
    for (size_t k = 1; k < series.n; k++)
        assert_true(series.samples[k].seconds > series.samples[k - 1].seconds);
    sample_series_release(&series);
}

TEST(test_series_without_room_takes_no_sample)
{
    RELEASED(sample_series_release) struct sample_series series = {0};
    struct sample sample = {.seconds = 1};
    sample_series_add(&series, &sample);
    assert_int_equal(series.n, 0);
}
