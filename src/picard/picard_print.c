/* picard_print.c -- see picard_print.h. */
#include "picard/picard_print.h"

#include "util/xalloc.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void picard_print_head(const char *tool, const char *prefix, const char *command_line, FILE *to)
{
    (void)fprintf(to, "## htsjdk.samtools.metrics.StringHeader\n"
                      "# CollectMultipleMetrics INPUT=%s OUTPUT=%s PROGRAM=%s (%s)\n\n",
                  prefix, prefix, tool, command_line);
}

void picard_print_class(const struct picard_class *class, FILE *to)
{
    (void)fprintf(to, "## METRICS CLASS\tpicard.analysis.%s\n", class->name);
    for (size_t i = 0; i < class->n_columns; i++)
        (void)fprintf(to, "%s%s", i > 0 ? "\t" : "", class->columns[i].name);
    (void)fputc('\n', to);
}

void picard_print_real(double value, FILE *to)
{
    char text[400];
    if (!isfinite(value)) {
        (void)fputc('?', to);
        return;
    }
    /* Half of the sixth decimal is a multiple of 1/128; other numbers are no ties. */
    double in_128ths = fabs(value) * 128;
    if (in_128ths < 0x1p53 && floor(in_128ths) == in_128ths && fmod(in_128ths, 2) > 0)
        value = nextafter(value, 0);
    int n = snprintf(text, sizeof text, "%.6f", value);
    while (text[n - 1] == '0') n--;
    if (text[n - 1] == '.') n--;
    (void)fprintf(to, "%.*s", n, text);
}

void picard_print_row(const struct picard_class *class, const void *metrics, FILE *to)
{
    for (size_t i = 0; i < class->n_columns; i++) {
        const struct picard_column *column = &class->columns[i];
        const char *at = (const char *)metrics + column->at;
        if (i > 0) (void)fputc('\t', to);
        if (column->type == PICARD_COUNT) {
            (void)fprintf(to, "%" PRIu64, *(const uint64_t *)(const void *)at);
        } else if (column->type == PICARD_REAL) {
            picard_print_real(*(const double *)(const void *)at, to);
        } else {
            const char *text = *(const char *const *)(const void *)at;
            if (text) (void)fputs(text, to);
        }
    }
    (void)fputc('\n', to);
}

void picard_print_curves(const char *bin_type, const char *bin_name,
                         const struct picard_curve *curves, size_t n_curves, FILE *to)
{
    if (n_curves == 0) return;
    (void)fprintf(to, "## HISTOGRAM\tjava.lang.%s\n%s", bin_type, bin_name);
    for (size_t i = 0; i < n_curves; i++) (void)fprintf(to, "\t%s", curves[i].name);
    size_t *next = xcalloc(n_curves, sizeof *next);
    for (int64_t last = INT64_MIN;;) {
        int64_t at = INT64_MAX;
        for (size_t i = 0; i < n_curves; i++) {
            struct picard_bins bins = curves[i].bins;
            if (next[i] < bins.n && bins.bins[next[i]].at == last) next[i]++;
            if (next[i] < bins.n && bins.bins[next[i]].at < at) at = bins.bins[next[i]].at;
        }
        (void)fputc('\n', to);
        if (at == INT64_MAX) break;
        (void)fprintf(to, "%" PRId64, last = at);
        for (size_t i = 0; i < n_curves; i++) {
            struct picard_bins bins = curves[i].bins;
            bool is_here = next[i] < bins.n && bins.bins[next[i]].at == at;
            (void)fprintf(to, "\t%" PRIu64, is_here ? bins.bins[next[i]].n : 0);
        }
    }
    free(next);
}

/* ---- figures of histograms ---- */

uint64_t picard_bins_total(struct picard_bins bins)
{
    uint64_t n = 0;
    for (size_t i = 0; i < bins.n; i++) n += bins.bins[i].n;
    return n;
}

double picard_bins_mean(struct picard_bins bins)
{
    double sum = 0;
    for (size_t i = 0; i < bins.n; i++) sum += (double)bins.bins[i].at * (double)bins.bins[i].n;
    return bins.n > 0 ? sum / (double)picard_bins_total(bins) : 0;
}

double picard_bins_deviation(struct picard_bins bins, double mean)
{
    double sum = 0;
    for (size_t i = 0; i < bins.n; i++) {
        double from_mean = (double)bins.bins[i].at - mean;
        sum += (double)bins.bins[i].n * from_mean * from_mean;
    }
    return bins.n > 0 ? sqrt(sum / (double)(picard_bins_total(bins) - 1)) : 0;
}

/* The value of item number `rank`, from 1. */
static int64_t ranked(struct picard_bins bins, uint64_t rank)
{
    uint64_t n = 0;
    size_t i = 0;
    while (i + 1 < bins.n && (n += bins.bins[i].n) < rank) i++;
    return bins.bins[i].at;
}

double picard_bins_median(struct picard_bins bins)
{
    uint64_t n = picard_bins_total(bins);
    if (n == 0) return 0;
    return (double)(ranked(bins, (n + 1) / 2) + ranked(bins, n / 2 + 1)) / 2;
}

static int compare_bins(const void *a, const void *b)
{
    const struct picard_bin *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

void picard_bins_sort(struct picard_bin *bins, size_t n)
{
    qsort(bins, n, sizeof *bins, compare_bins);
}

double picard_bins_median_deviation(struct picard_bins bins, double median)
{
    if (bins.n == 0) return 0;
    struct picard_bin *from_median = xmemdup(bins.bins, bins.n * sizeof *bins.bins);
    for (size_t i = 0; i < bins.n; i++)         /* doubled, as the median may end in .5 */
        from_median[i].at = (int64_t)fabs(2 * ((double)bins.bins[i].at - median));
    picard_bins_sort(from_median, bins.n);
    double twice = picard_bins_median((struct picard_bins){from_median, bins.n});
    free(from_median);
    return twice / 2;
}

int64_t picard_bins_mode(struct picard_bins bins)
{
    size_t best = 0;
    for (size_t i = 1; i < bins.n; i++)
        if (bins.bins[i].n > bins.bins[best].n) best = i;
    return bins.n > 0 ? bins.bins[best].at : 0;
}
