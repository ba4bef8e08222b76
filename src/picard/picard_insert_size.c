/*
 * picard_insert_size.c -- counts the insert sizes of pairs by orientation, and computes their
 * metrics: the file .insert_size_metrics.
 *
 * The second read of each pair counts, unless the template length is 0.
 */
#include "picard/picard_collect.h"
#include "picard/picard_files.h"
#include "picard/picard_levels.h"
#include "util/xalloc.h"

#include <math.h>
#include <stdlib.h>

enum picard_orientation picard_orientation(const struct picard_read *read)
{
    bool mate_is_reverse = read->flag & BAM_FMREVERSE;
    if (read->is_reverse == mate_is_reverse) return PAIR_TANDEM;
    int64_t forward = read->pos, reverse;       /* 5' ends */
    if (read->is_reverse) {
        forward = bam_record_true_mate_pos(read->rec);
        reverse = read->pos + bam_cigar_reference_bases(read->cigar) - 1;
    } else {
        reverse = read->pos + bam_record_true_template_length(read->rec);
    }
    return forward < reverse ? PAIR_FR : PAIR_RF;
}

void picard_count_insert_size(struct picard_counts *counts, uint32_t cell,
                              const struct picard_read *read, const struct picard_limits *limits)
{
    const uint32_t left_out = BAM_FUNMAP | BAM_FMUNMAP | BAM_FREAD1 | BAM_FSECONDARY |
                              BAM_FSUPPLEMENTARY;
    int64_t n = bam_record_true_template_length(read->rec);
    if (!(read->flag & BAM_FPAIRED) || read->flag & left_out || n == 0) return;
    if (read->flag & BAM_FDUP && !limits->with_duplicates) return;
    uint64_t bin = (uint64_t)(n < 0 ? -n : n);
    int histogram = HISTOGRAM_FR + (int)picard_orientation(read);
    uint64_t key = picard_key(cell, PICARD_SECOND, (enum picard_histogram)histogram);
    picard_table_add(&counts->table, key | (bin > UINT32_MAX ? UINT32_MAX : bin), 1);
}

/* ---- the file ---- */

enum { N_WIDTHS = 11, N_ORIENTATIONS = 3 };

struct insert_row {
    double median, median_deviation, mean, deviation;
    uint64_t mode, least, most, n_pairs, widths[N_WIDTHS];
    const char *orientation;
    struct picard_labels labels;
};

#define WIDTH(percent, i)                                                                          \
    {"WIDTH_OF_" #percent "_PERCENT", PICARD_COUNT, offsetof(struct insert_row, widths[i])}

static const struct picard_column columns[] = {
    {"MEDIAN_INSERT_SIZE", PICARD_REAL, offsetof(struct insert_row, median)},
    {"MODE_INSERT_SIZE", PICARD_COUNT, offsetof(struct insert_row, mode)},
    {"MEDIAN_ABSOLUTE_DEVIATION", PICARD_REAL, offsetof(struct insert_row, median_deviation)},
    {"MIN_INSERT_SIZE", PICARD_COUNT, offsetof(struct insert_row, least)},
    {"MAX_INSERT_SIZE", PICARD_COUNT, offsetof(struct insert_row, most)},
    {"MEAN_INSERT_SIZE", PICARD_REAL, offsetof(struct insert_row, mean)},
    {"STANDARD_DEVIATION", PICARD_REAL, offsetof(struct insert_row, deviation)},
    {"READ_PAIRS", PICARD_COUNT, offsetof(struct insert_row, n_pairs)},
    {"PAIR_ORIENTATION", PICARD_TEXT, offsetof(struct insert_row, orientation)},
    WIDTH(10, 0), WIDTH(20, 1), WIDTH(30, 2), WIDTH(40, 3), WIDTH(50, 4), WIDTH(60, 5),
    WIDTH(70, 6), WIDTH(80, 7), WIDTH(90, 8), WIDTH(95, 9), WIDTH(99, 10),
    {"SAMPLE", PICARD_TEXT, offsetof(struct insert_row, labels.sample)},
    {"LIBRARY", PICARD_TEXT, offsetof(struct insert_row, labels.library)},
    {"READ_GROUP", PICARD_TEXT, offsetof(struct insert_row, labels.read_group)},
};
static const struct picard_class class = {"InsertSizeMetrics", PICARD_COLUMNS(columns)};

/* The widths of the ranges around the median, in whole steps to both sides, that hold each share of
   the pairs. */
static void measure_widths(struct picard_bins bins, double median, uint64_t widths[N_WIDTHS])
{
    static const double shares[N_WIDTHS] = {.1, .2, .3, .4, .5, .6, .7, .8, .9, .95, .99};
    struct picard_bin *steps = xmemdup(bins.bins, bins.n * sizeof *bins.bins);
    for (size_t i = 0; i < bins.n; i++) {       /* the step in which each bin is included */
        double at = (double)bins.bins[i].at;
        steps[i].at = at <= floor(median) ? (int64_t)(floor(median) - at)
                                          : (int64_t)(at - floor(median));
    }
    picard_bins_sort(steps, bins.n);
    double n = (double)picard_bins_total(bins), covered = 0;
    int share = 0;
    for (size_t i = 0; i < bins.n; i++) {
        covered += (double)steps[i].n;
        if (i + 1 < bins.n && steps[i + 1].at == steps[i].at) continue;
        while (share < N_WIDTHS && covered / n >= shares[share])
            widths[share++] = (uint64_t)(2 * steps[i].at + 1);
    }
    free(steps);
}

/* The bins that are not outliers. */
static struct picard_bins trim(struct picard_bins bins, const struct insert_row *row,
                               double deviations)
{
    double most = trunc(row->median + deviations * row->median_deviation);
    while (bins.n > 0 && (double)bins.bins[bins.n - 1].at > most) bins.n--;
    return bins;
}

/* Returns the bins that the histogram shows. */
static struct picard_bins print_orientation(struct picard_bins bins, struct insert_row *row,
                                            double deviations, FILE *to)
{
    row->n_pairs = picard_bins_total(bins);
    row->median = picard_bins_median(bins);
    row->median_deviation = picard_bins_median_deviation(bins, row->median);
    row->mode = (uint64_t)picard_bins_mode(bins);
    row->least = (uint64_t)bins.bins[0].at;
    row->most = (uint64_t)bins.bins[bins.n - 1].at;
    memset(row->widths, 0, sizeof row->widths);
    measure_widths(bins, row->median, row->widths);
    bins = trim(bins, row, deviations);
    row->mean = picard_bins_mean(bins);
    row->deviation = picard_bins_deviation(bins, row->mean);
    picard_print_row(&class, row, to);
    return bins;
}

struct curves {
    struct picard_curve *at;
    size_t n, room;
};

static void print_unit(const struct picard_report *report, const struct picard_gathered *level,
                       size_t unit, struct curves *curves, FILE *to)
{
    static const char *const names[N_ORIENTATIONS][2] = {
        {"FR", "fr"}, {"RF", "rf"}, {"TANDEM", "tandem"}};
    struct picard_bins bins[N_ORIENTATIONS];
    double total = 0;
    for (int i = 0; i < N_ORIENTATIONS; i++) {
        bins[i] = picard_gathered_bins(level, unit, PICARD_SECOND,
                                       (enum picard_histogram)(HISTOGRAM_FR + i));
        total += (double)picard_bins_total(bins[i]);
    }
    for (int i = 0; i < N_ORIENTATIONS; i++) {
        if (bins[i].n == 0 || (double)picard_bins_total(bins[i]) < total * report->minimum_share)
            continue;
        struct insert_row row = {.orientation = names[i][0], .labels = level->labels[unit]};
        xgrow(&curves->at, &curves->room, curves->n + 1, curves->n, sizeof *curves->at);
        curves->at[curves->n++] = (struct picard_curve){
            xasprintf("%s.%s_count", picard_labels_name(&row.labels), names[i][1]),
            print_orientation(bins[i], &row, report->deviations, to)};
    }
}

void picard_print_insert_sizes(const struct picard_report *report, FILE *to)
{
    struct curves curves = {0};
    picard_print_class(&class, to);
    for (int i = 0; i < N_LEVELS; i++)
        for (size_t unit = 0; unit < report->levels[i].n_units; unit++)
            print_unit(report, &report->levels[i], unit, &curves, to);
    (void)fputc('\n', to);
    picard_print_curves("Integer", "insert_size", curves.at, curves.n, to);
    (void)fputc('\n', to);
    for (size_t i = 0; i < curves.n; i++) free((char *)(uintptr_t)curves.at[i].name);
    free(curves.at);
}
