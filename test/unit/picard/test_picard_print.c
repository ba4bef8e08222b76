/*
 * test_picard_print.c -- numbers as Java rounds them, and figures of histograms at their limits.
 * test/cli/sort/test_picard.py compares whole files with those of Picard.
 */
#include "unit_test.h"

#include "picard/picard_counts.h"
#include "picard/picard_print.h"

#include <math.h>

static void assert_printed(double value, const char *want)
{
    char text[512];
    FILE *to = fmemopen(text, sizeof text, "w");
    assert_non_null(to);
    picard_print_real(value, to);
    assert_int_equal(fclose(to), 0);
    assert_string_equal(text, want);
}

TEST(test_reals_have_six_decimals_and_ties_go_down)
{
    assert_printed(0, "0");
    assert_printed(35, "35");
    assert_printed(0.5, "0.5");
    assert_printed(1.0 / 3, "0.333333");
    assert_printed(2.0 / 3, "0.666667");
    assert_printed(3.0 / 128, "0.023437");      /* 0.0234375: to the even digit it is 0.023438 */
    assert_printed(1.0 / 128, "0.007812");
    assert_printed(1e15 + 0.5, "1000000000000000.5");
    assert_printed(4e-7, "0");
    assert_printed(NAN, "?");
    assert_printed(INFINITY, "?");
}

TEST(test_figures_of_histograms)
{
    const struct picard_bin bins[] = {{-1, 2}, {4, 1}, {5, 3}, {100, 2}};
    const struct picard_bins all = {bins, 4}, one = {bins + 1, 1};
    const struct picard_bins even = {bins, 2}, none = {bins, 0};
    assert_int_equal(picard_bins_total(all), 8);
    assert_true(picard_bins_median(all) == 5 && picard_bins_mode(all) == 5);
    assert_true(picard_bins_median_deviation(all, 5) == 3.5);   /* 0 0 0 1 6 6 95 95 */
    assert_true(picard_bins_median((struct picard_bins){bins + 1, 3}) == 5);
    assert_true(picard_bins_median(even) == -1 && picard_bins_mean(even) == 2.0 / 3);
    assert_true(isnan(picard_bins_deviation(one, 4)) && picard_bins_median(one) == 4);
    assert_true(picard_bins_median(none) == 0 && picard_bins_mean(none) == 0);
}

/* More bins than the first table has room for, with the same low bits. */
TEST(test_bins_are_kept_when_tables_grow_and_merge)
{
    enum { N_CELLS = 3000 };
    struct picard_counts sum, part;
    picard_counts_init(&sum, N_CELLS);
    for (int round = 0; round < 2; round++) {
        picard_counts_init(&part, N_CELLS);
        for (uint32_t cell = 0; cell < N_CELLS; cell++) {
            picard_table_add(&part.table, picard_key(cell, PICARD_FIRST, HISTOGRAM_FR), cell + 1);
            picard_counts_sums(&part, cell, PICARD_SECOND)[SUM_TOTAL_READS] += cell;
        }
        picard_counts_merge(&sum, &part);
        picard_counts_release(&part);
    }
    assert_int_equal(sum.table.n, N_CELLS);
    uint64_t n = 0;
    for (size_t i = 0; i < sum.table.room; i++) n += sum.table.at[i].n;
    assert_int_equal(n, N_CELLS * (N_CELLS + 1));
    for (uint32_t cell = 0; cell < N_CELLS; cell++)
        assert_int_equal(picard_counts_sums(&sum, cell, PICARD_SECOND)[SUM_TOTAL_READS], 2 * cell);
    picard_counts_release(&sum);
}
