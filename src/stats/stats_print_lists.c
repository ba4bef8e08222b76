/* stats_print_lists.c -- prints the sections of --stats about insert sizes, lengths, mapping
   qualities, indels, depths and bins (stats_print.h). */
#include "stats/stats_print.h"

#include "util/xalloc.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void print_inserts(const struct stats_totals *totals, uint64_t n_rows, bool is_sparse,
                          FILE *to)
{
    const struct stats_insert *next = totals->inserts, *end = next + totals->n_inserts;
    (void)fputs("# Insert sizes. Use `grep ^IS | cut -f 2-` to extract this part. The columns are: "
                "insert size, pairs total, inward oriented pairs, outward oriented pairs, other "
                "pairs\n", to);
    for (uint64_t size = 0; size < n_rows; size++) {
        struct stats_insert insert = {.size = (uint32_t)size};
        if (next < end && next->size == size) insert = *next++;
        const uint64_t *n = insert.n, sum = n[0] + n[1] + n[2];
        if (sum == 0 && is_sparse) continue;
        (void)fprintf(to, "IS\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n",
                      size, sum, n[STATS_INWARD], n[STATS_OUTWARD], n[STATS_OTHER_WAY]);
    }
}

static void print_lengths(const struct stats_report *report, int which, uint32_t longest, FILE *to)
{
    static const char *const names[] = {"RL", "FRL", "LRL"};
    static const char *const remarks[] = {"", " - first fragments", " - last fragments"};
    (void)fprintf(to, "# Read lengths%s. Use `grep ^%s | cut -f 2-` to extract this part. The "
                  "columns are: read length, count\n", remarks[which], names[which]);
    for (uint32_t length = 1; length <= longest; length++) {
        uint64_t n = 0;
        for (size_t i = 0; i < report->n_counts; i++)
            n += stats_row_get(&report->counts[i]->lengths[which], length);
        if (n > 0) (void)fprintf(to, "%s\t%u\t%" PRIu64 "\n", names[which], length, n);
    }
}

static void print_mapqs(const struct stats_report *report, FILE *to)
{
    (void)fputs("# Mapping qualities for reads !(UNMAP|SECOND|SUPPL|QCFAIL|DUP). Use `grep ^MAPQ | "
                "cut -f 2-` to extract this part. The columns are: mapq, count\n", to);
    for (int mapq = 0; mapq < 256; mapq++) {
        uint64_t n = 0;
        for (size_t i = 0; i < report->n_counts; i++) n += report->counts[i]->mapqs[mapq];
        if (n > 0) (void)fprintf(to, "MAPQ\t%d\t%" PRIu64 "\n", mapq, n);
    }
}

static void print_indels(const struct stats_report *report, uint32_t longest, FILE *to)
{
    (void)fputs("# Indel distribution. Use `grep ^ID | cut -f 2-` to extract this part. The "
                "columns are: length, number of insertions, number of deletions\n", to);
    for (int i = 0; i < STATS_MOST_INDEL; i++) {
        uint64_t n[STATS_N_INDELS] = {0};
        for (size_t k = 0; k < report->n_counts; k++)
            for (int kind = 0; kind < STATS_N_INDELS; kind++)
                n[kind] += report->counts[k]->indels[kind][i];
        if (n[STATS_INSERTIONS] > 0 || n[STATS_DELETIONS] > 0)
            (void)fprintf(to, "ID\t%d\t%" PRIu64 "\t%" PRIu64 "\n", i + 1, n[STATS_INSERTIONS],
                          n[STATS_DELETIONS]);
    }
    (void)fputs("# Indels per cycle. Use `grep ^IC | cut -f 2-` to extract this part. The columns "
                "are: cycle, number of insertions (fwd), .. (rev) , number of deletions (fwd), .. "
                "(rev)\n", to);
    for (size_t cycle = 0; cycle <= longest; cycle++) {
        uint64_t n[STATS_N_INDELS][STATS_N_FRAGMENTS] = {{0}}, all = 0;
        for (size_t k = 0; k < report->n_counts; k++)
            for (int kind = 0; kind < STATS_N_INDELS; kind++)
                for (int i = 0; i < STATS_N_FRAGMENTS; i++)
                    n[kind][i] += stats_row_get(&report->counts[k]->indel_cycles[kind][i], cycle);
        for (int i = 0; i < STATS_N_FRAGMENTS; i++)
            all += n[STATS_INSERTIONS][i] + n[STATS_DELETIONS][i];
        if (all == 0) continue;
        (void)fprintf(to, "IC\t%zu\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n",
                      cycle + 1, n[STATS_INSERTIONS][STATS_FIRST], n[STATS_INSERTIONS][STATS_LAST],
                      n[STATS_DELETIONS][STATS_FIRST], n[STATS_DELETIONS][STATS_LAST]);
    }
}

static void print_depths(const struct stats_depth *depth, FILE *to)
{
    const int least = depth->options->least_depth, step = depth->options->depth_step;
    const int n = (int)depth->options->n_depths;
    const uint64_t *depths = depth->depths;
    (void)fputs("# Coverage distribution. Use `grep ^COV | cut -f 2-` to extract this part.\n", to);
    if (depths[0] > 0)
        (void)fprintf(to, "COV\t[<%d]\t%d\t%" PRIu64 "\n", least, least - 1, depths[0]);
    for (int i = 1; i < n - 1; i++) {
        const int first = least + (i - 1) * step, last = first + step - 1;
        if (depths[i] > 0)
            (void)fprintf(to, "COV\t[%d-%d]\t%d\t%" PRIu64 "\n", first, last, last, depths[i]);
    }
    const int last = least + (n - 2) * step - 1;
    if (depths[n - 1] > 0)
        (void)fprintf(to, "COV\t[%d<]\t%d\t%" PRIu64 "\n", last, last, depths[n - 1]);
}

/* ---- GC content and depth ---- */

static int compare_bins(const void *a, const void *b)
{
    const struct stats_bin *x = a, *y = b;
    if (x->gc != y->gc) return x->gc < y->gc ? -1 : 1;
    return (x->depth > y->depth) - (x->depth < y->depth);
}

/* A percentile of the depths of n bins, in single precision. */
static float percentile(const struct stats_bin *bins, uint32_t n, int percent)
{
    const float at = (float)percent * (float)(n + 1) / 100;
    const uint32_t k = (uint32_t)at;
    if (k == 0) return (float)bins[0].depth;
    if (k >= n) return (float)bins[n - 1].depth;
    return (float)bins[k - 1].depth +
           (at - (float)k) * (float)(bins[k].depth - bins[k - 1].depth);
}

/* Returns what samtools sorts: an empty bin, and all others with their share of G and C in percent,
   apart from the last one, which keeps its sum. */
static struct stats_bin *make_percent(const struct stats_depth *depth)
{
    struct stats_bin *bins = xcalloc(depth->n_bins + 1, sizeof *bins);
    for (size_t i = 0; i < depth->n_bins; i++) {
        struct stats_bin *bin = &bins[i + 1];
        *bin = depth->bins[i];
        if (i + 1 == depth->n_bins) break;
        const double percent = 100. * (double)bin->gc;
        bin->gc = (float)rint(depth->reference ? percent : percent / bin->depth);
    }
    qsort(bins, depth->n_bins + 1, sizeof *bins, compare_bins);
    return bins;
}

static void print_bins(const struct stats_depth *depth, float mean_length, FILE *to)
{
    static const int percents[] = {10, 25, 50, 75, 90};
    struct stats_bin *bins = make_percent(depth);
    const float bin_bases = (float)depth->options->bin_bases;
    (void)fputs("# GC-depth. Use `grep ^GCD | cut -f 2-` to extract this part. The columns are: "
                "GC%, unique sequence percentiles, 10th, 25th, 50th, 75th and 90th depth "
                "percentile\n", to);
    for (size_t i = 0, n = 0; i < depth->n_bins; i += n) {
        for (n = 0; i + n < depth->n_bins; n++)
            if (!(fabs((double)(bins[i + n].gc - bins[i].gc)) < 0.1)) break;
        (void)fprintf(to, "GCD\t%.1f\t%.3f", (double)bins[i].gc,
                      (double)(i + n + 1) * 100. / (double)(depth->n_bins + 1));
        for (int k = 0; k < 5; k++)
            (void)fprintf(to, "\t%.3f", (double)(percentile(&bins[i], (uint32_t)n, percents[k]) *
                                                 mean_length / bin_bases));
        (void)fputc('\n', to);
    }
    free(bins);
}

void stats_print_lists(const struct stats_report *report, const struct stats_totals *totals,
                       uint64_t n_insert_rows, FILE *to)
{
    print_inserts(totals, n_insert_rows, report->options->is_sparse, to);
    for (int i = 0; i < STATS_N_LENGTHS; i++) print_lengths(report, i, totals->longest[i], to);
    print_mapqs(report, to);
    print_indels(report, totals->longest[STATS_LENGTHS_ALL], to);
    if (!report->depth->is_sorted) return;
    print_depths(report->depth, to);
    print_bins(report->depth, stats_mean_length(totals), to);
}
