/*
 * picard_print.h -- prints metrics and histograms as Picard 3.4 does (its MetricsFile).
 *
 *     ## htsjdk.samtools.metrics.StringHeader
 *     # tool, prefix, command line
 *
 *     ## METRICS CLASS        picard.analysis.NAME
 *     names of columns, then a row for each struct
 *
 *     ## HISTOGRAM    java.lang.Integer
 *     names of columns, then a row for each bin
 *
 * A class of metrics is a struct and a table of its columns. Any thread; errors of the file are
 * found by whoever closes it.
 */
#ifndef ROCKSORT_PICARD_PICARD_PRINT_H
#define ROCKSORT_PICARD_PICARD_PRINT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum picard_type { PICARD_COUNT, PICARD_REAL, PICARD_TEXT };    /* uint64_t, double, char * */

struct picard_column {
    const char *name;
    enum picard_type type;
    size_t at;                  /* offset in the struct */
};

struct picard_class {
    const char *name;           /* after picard.analysis. */
    const struct picard_column *columns;
    size_t n_columns;
};

/* The last two members of a class. */
#define PICARD_COLUMNS(columns) columns, sizeof(columns) / sizeof *(columns)

struct picard_bin {
    int64_t at;
    uint64_t n;
};

struct picard_bins {            /* of a histogram, sorted, each with n > 0 */
    const struct picard_bin *bins;
    size_t n;
};

struct picard_curve {           /* a column of a printed histogram */
    const char *name;
    struct picard_bins bins;
};

/* Names the tool and the prefix as Picard does, so that MultiQC finds the sample. */
void picard_print_head(const char *tool, const char *prefix, const char *command_line, FILE *to);
void picard_print_class(const struct picard_class *class, FILE *to);
void picard_print_row(const struct picard_class *class, const void *metrics, FILE *to);

/* A number with at most six decimals, as Java's DecimalFormat rounds it: HALF_DOWN. */
void picard_print_real(double value, FILE *to);

/* Prints nothing if there are no curves. */
void picard_print_curves(const char *bin_type, const char *bin_name,
                         const struct picard_curve *curves, size_t n_curves, FILE *to);

/* ---- figures of histograms ---- */

void picard_bins_sort(struct picard_bin *bins, size_t n);

uint64_t picard_bins_total(struct picard_bins bins);
double picard_bins_mean(struct picard_bins bins);
double picard_bins_deviation(struct picard_bins bins, double mean);     /* NaN for one item */
double picard_bins_median(struct picard_bins bins);
double picard_bins_median_deviation(struct picard_bins bins, double median);
int64_t picard_bins_mode(struct picard_bins bins);      /* the first of the largest bins */

#endif
