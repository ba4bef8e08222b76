/*
 * test_progress_line.c -- shares, time left, rates, units, and lines for narrow terminals.
 */
#include "unit_test.h"

#include "sort/progress.h"

#include <math.h>

static struct progress_facts reading(void)
{
    return (struct progress_facts){
        .now.phase = SORT_PHASE_LOAD,
        .now.seconds = 75,
        .phase_seconds = 75,
        .now.records_in = 12345678,
        .now.file_bytes = 1000000,
        .now.file_bytes_read = 250000,
        .now.n_runs = 12,
        .bytes_per_second = 123.4e6,
    };
}

static struct progress_facts merging(void)
{
    return (struct progress_facts){
        .now.phase = SORT_PHASE_MERGE,
        .now.seconds = 4000,
        .phase_seconds = 100,
        .now.records_in = 3000,
        .now.records_out = 2000,
        .now.n_runs = 1,
        .bytes_per_second = 2.34e6,
    };
}

static void check_line(const struct progress_facts *facts, size_t width, const char *expected)
{
    char line[256];
    assert_int_equal(progress_line(line, sizeof line, width, facts), strlen(expected));
    assert_string_equal(line, expected);
}

TEST(test_line_while_reading)
{
    struct progress_facts facts = reading();
    check_line(&facts, 200,
               "reading 25 %, 3:45 left, 123 MB/s, 12.3 M records, 12 runs, 1:15 so far");
    /* A pipe. */
    facts.now.file_bytes = facts.now.file_bytes_read = 0;
    check_line(&facts, 200, "reading, 123 MB/s, 12.3 M records, 12 runs, 1:15 so far");
    /* Nothing was read yet. */
    facts = (struct progress_facts){.now.seconds = 0.3};
    check_line(&facts, 200, "reading, 0 records, 0:00 so far");
}

TEST(test_time_left_follows_from_what_this_process_read)
{
    struct progress_facts facts = reading();
    facts.now.file_bytes_before = 800000;
    facts.now.file_bytes_read = 850000;
    facts.phase_seconds = 10;
    assert_true(fabs(progress_share(&facts) - 0.85) < 1e-9);
    assert_true(fabs(progress_seconds_left(&facts) - 30) < 1e-9);
    facts.now.file_bytes_read = 800000;            /* this process has read nothing yet */
    assert_true(progress_seconds_left(&facts) < 0);
    facts.now.file_bytes_read = 1000000;
    assert_true(progress_seconds_left(&facts) == 0);
    facts.now.file_bytes = 700000;                 /* the file has shrunk */
    assert_true(progress_seconds_left(&facts) < 0);
}

TEST(test_line_while_merging)
{
    struct progress_facts facts = merging();
    check_line(&facts, 200,
               "merging 66 %, 0:50 left, 2.3 MB/s, 3.00 K records, 1 run, 1:06:40 so far");
}

TEST(test_each_phase_has_its_words)
{
    struct progress_facts facts = {.now.phase = SORT_PHASE_SETTLE, .now.n_runs = 7,
                                   .now.records_in = 7,
                                   .now.seconds = 59.6};
    check_line(&facts, 200, "finishing runs, 7 records, 7 runs, 1:00 so far");
    facts.now.phase = SORT_PHASE_MARK;
    check_line(&facts, 200, "marking duplicates, 7 records, 7 runs, 1:00 so far");
    facts.now.phase = SORT_PHASE_CLOSE;
    facts.now.n_runs = 0;
    check_line(&facts, 200, "closing, 7 records, 1:00 so far");
    facts.writes_index = true;
    check_line(&facts, 200, "indexing, 7 records, 1:00 so far");
}

TEST(test_share_stays_between_nothing_and_all)
{
    struct progress_facts facts = reading();
    assert_true(fabs(progress_share(&facts) - 0.25) < 1e-9);
    facts.now.file_bytes_read = 1000001;           /* the file grew */
    assert_true(progress_share(&facts) == 1);
    assert_true(progress_seconds_left(&facts) == 0);
    facts.now.file_bytes_read = 0;
    assert_true(progress_share(&facts) < 0);
    facts = merging();
    facts.now.records_in = facts.now.records_out = 0;       /* an empty input */
    assert_true(progress_share(&facts) < 0);
    facts.now.phase = SORT_PHASE_CLOSE;
    assert_true(progress_share(&facts) < 0);
}

TEST(test_time_left_is_said_when_it_is_known)
{
    struct progress_facts facts = reading();
    assert_true(fabs(progress_seconds_left(&facts) - 225) < 1e-6);
    facts.phase_seconds = 1;                    /* too early to say */
    assert_true(progress_seconds_left(&facts) < 0);
    facts = reading();
    facts.now.file_bytes_read = 1000;
    assert_true(progress_seconds_left(&facts) < 0);
    facts.now.file_bytes_read = 4000;
    facts.phase_seconds = 1e9;
    char line[256];
    assert_true(progress_line(line, sizeof line, 200, &facts) > 0);
    assert_non_null(strstr(line, "2777:46:40 left"));
}

static void check_records(uint64_t n, const char *expected)
{
    struct progress_facts facts = {.now.records_in = n};
    char line[256], wanted[64];
    (void)progress_line(line, sizeof line, 200, &facts);
    (void)snprintf(wanted, sizeof wanted, "reading, %s records, 0:00 so far", expected);
    assert_string_equal(line, wanted);
}

TEST(test_counts_have_three_digits)
{
    check_records(0, "0");
    check_records(999, "999");
    check_records(1000, "1.00 K");
    check_records(1234, "1.23 K");
    check_records(12345, "12.3 K");
    check_records(99949, "99.9 K");
    check_records(99960, "100 K");
    check_records(999499, "999 K");
    check_records(999500, "1.00 M");
    check_records(1234567890, "1.23 G");
    check_records(UINT64_MAX, "18446744 T");
}

/* Whole parts are left out, the least important first; the line never exceeds the width. */
TEST(test_narrow_line_leaves_out_whole_parts)
{
    struct progress_facts facts = reading();
    check_line(&facts, 72,
               "reading 25 %, 3:45 left, 123 MB/s, 12.3 M records, 12 runs, 1:15 so far");
    check_line(&facts, 70, "reading 25 %, 3:45 left, 123 MB/s, 12.3 M records, 12 runs");
    check_line(&facts, 40, "reading 25 %, 3:45 left, 123 MB/s");
    check_line(&facts, 22, "reading 25 %");
    check_line(&facts, 12, "reading 25 %");
    check_line(&facts, 7, "reading");
    check_line(&facts, 4, "read");
    check_line(&facts, 0, "");
    for (size_t width = 0; width < 120; width++) {
        char line[256];
        assert_true(progress_line(line, sizeof line, width, &facts) <= width);
        assert_true(progress_line(line, width + 1, 256, &facts) <= width);
    }
    char none[1];
    assert_int_equal(progress_line(none, 0, 80, &facts), 0);
}

TEST(test_line_is_printable_whatever_the_facts)
{
    struct rng rng = rng_start(313);
    for (int i = 0; i < 20000; i++) {
        struct progress_facts facts = {
            .now.phase = (enum sort_phase)rng_below(&rng, SORT_N_PHASES),
            .now.seconds = (double)rng_next(&rng),
            .phase_seconds = (double)(rng_next(&rng) >> rng_below(&rng, 64)),
            .now.records_in = rng_next(&rng) >> rng_below(&rng, 64),
            .now.records_out = rng_next(&rng) >> rng_below(&rng, 64),
            .now.file_bytes = rng_next(&rng) >> rng_below(&rng, 64),
            .now.file_bytes_read = rng_next(&rng) >> rng_below(&rng, 64),
            .now.n_runs = (unsigned)rng_next(&rng),
            .bytes_per_second = (double)(rng_next(&rng) >> rng_below(&rng, 64)),
        };
        char line[128];
        size_t n = progress_line(line, sizeof line, 100, &facts);
        assert_true(n > 0 && n <= 100 && n == strlen(line));
        for (size_t k = 0; k < n; k++) assert_true(line[k] >= ' ' && line[k] <= '~');
        assert_true(progress_share(&facts) <= 1);
    }
}

TEST(test_rate_needs_two_looks)
{
    struct progress_rate rate = {0};
    progress_rate_update(&rate, 100, 5000000);
    assert_true(rate.bytes_per_second == 0);    /* one look gives no rate */
    /* While the rate stays the same it is right from the second look on. */
    for (int i = 1; i <= 40; i++) {
        progress_rate_update(&rate, 100 + 0.25 * i, 5000000 + (uint64_t)i * 1000000);
        assert_true(fabs(rate.bytes_per_second - 4e6) < 1);
    }
    /* Then half as fast: the mean is close to the new rate after 15 seconds, not at once. */
    uint64_t n_bytes = rate.n_bytes;
    progress_rate_update(&rate, 110.25, n_bytes + 500000);
    assert_true(rate.bytes_per_second > 3.8e6);
    for (int i = 2; i <= 60; i++)
        progress_rate_update(&rate, 110 + 0.25 * i, n_bytes + (uint64_t)i * 500000);
    assert_true(rate.bytes_per_second > 1.99e6 && rate.bytes_per_second < 2.15e6);
    /* A clock that stands still, or a counter that goes back, changes nothing. */
    double before = rate.bytes_per_second;
    progress_rate_update(&rate, rate.seconds, rate.n_bytes + 7);
    progress_rate_update(&rate, rate.seconds + 1, 5);
    assert_true(rate.bytes_per_second == before);
}
