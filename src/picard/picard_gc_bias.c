/*
 * picard_gc_bias.c -- counts reads by the GC content of the window of the reference in which they
 * start, and prints the files .gc_bias.detail_metrics and .gc_bias.summary_metrics.
 *
 * A window has 100 bases; its bin is the percentage of G and C, unless more than four are N. Picard
 * takes positions from 1 for offsets from 0, so each window begins a base late; it leaves out the
 * first window of a reference and its last ones, and gives bin 0 to reads that start in the latter.
 */
#include "picard/picard_gc_bias.h"

#include "picard/picard_files.h"
#include "util/xalloc.h"

#include <math.h>
#include <stdlib.h>

enum { WINDOW = 100, MOST_N = 4, N_BINS = WINDOW + 1, NO_BIN = -1 };

static bool is_gc(uint8_t code)
{
    return code == CODE_G || code == CODE_C;
}

/* ---- reads ---- */

/* The bin of the window at a position, or NO_BIN. */
static int find_bin(struct fasta_window *window, int32_t tid, int64_t at, int *bin)
{
    *bin = 0;
    if (fasta_window_move(window, tid, at, at + WINDOW) < 0) return -1;
    if (at >= window->n_bases - WINDOW) return 0;
    const uint8_t *codes = window->codes + (at - window->begin);
    int n_gc = 0, n_unknown = 0;
    for (int i = 0; i < WINDOW; i++) {
        n_gc += is_gc(codes[i]);
        n_unknown += codes[i] == CODE_N;
    }
    *bin = n_unknown > MOST_N ? NO_BIN : n_gc;
    return 0;
}

/* How many bases differ from the reference, are inserted or deleted. */
static uint64_t count_errors(const struct picard_read *read, const struct fasta_window *window)
{
    uint64_t n_errors = 0;
    struct bam_cigar_walk step = bam_cigar_walk(read->cigar, read->pos);
    while (bam_cigar_next(&step)) {
        const int64_t n_bases = (int64_t)read->n_bases;
        if (step.op == BAM_CINS || step.op == BAM_CDEL) n_errors += (uint64_t)step.n;
        for (int64_t i = 0; step.type == 3 && i < step.n && step.at + i < n_bases; i++)
            n_errors += step.pos + i < window->end &&
                        read->forward[step.at + i] != window->codes[step.pos + i - window->begin];
    }
    return n_errors;
}

int picard_count_gc(struct picard_counts *counts, uint32_t cell, const struct picard_read *read,
                    struct fasta_window *window)
{
    enum { CLUSTERS, ALIGNED };
    struct picard_table *table = &counts->table;
    uint64_t totals = picard_key(cell, PICARD_FIRST, HISTOGRAM_GC_TOTALS);
    int32_t tid = bam_record_tid(read->rec);
    if (read->n_bases == 0) return 0;
    if (read->category != PICARD_SECOND) picard_table_add(table, totals | CLUSTERS, 1);
    if (read->flag & BAM_FUNMAP || tid < 0) return 0;
    picard_table_add(table, totals | ALIGNED, 1);
    int64_t end = read->pos + bam_cigar_reference_bases(read->cigar);
    int64_t at = read->is_reverse ? end - WINDOW : read->pos + 1;
    int bin;
    if (at <= 0 || read->pos < 0) return 0;
    if (find_bin(window, tid, at, &bin) < 0) return -1;
    if (bin == NO_BIN) return 0;
    if (fasta_window_move(window, tid, read->pos, end) < 0) return -1;
    uint64_t n_errors = count_errors(read, window);
    const uint64_t n[3] = {1, read->n_bases, n_errors};
    for (int i = 0; i < 3; i++) {
        enum picard_histogram histogram = (enum picard_histogram)(HISTOGRAM_GC_READS + i);
        if (n[i] > 0)
            picard_table_add(table, picard_key(cell, PICARD_FIRST, histogram) | (uint64_t)bin,
                             n[i]);
    }
    return 0;
}

/* ---- windows of the reference ---- */

int picard_count_windows(struct fasta_window *window, int32_t tid, int64_t from, int64_t to,
                         uint64_t *n_windows)
{
    if (fasta_window_move(window, tid, from, to + WINDOW) < 0) return -1;
    if (from < 1) from = 1;
    if (to > window->n_bases - WINDOW) to = window->n_bases - WINDOW;
    const uint8_t *codes = window->codes - window->begin;
    int n_gc = 0, n_unknown = 0;
    for (int64_t at = from; at < to; at++) {
        int64_t first = at == from ? at : at + WINDOW - 1;
        if (at > from) {
            n_gc -= is_gc(codes[at - 1]);
            n_unknown -= codes[at - 1] == CODE_N;
        }
        for (int64_t i = first; i < at + WINDOW; i++) {
            n_gc += is_gc(codes[i]);
            n_unknown += codes[i] == CODE_N;
        }
        if (n_unknown <= MOST_N) n_windows[n_gc]++;
    }
    return 0;
}

/* ---- the files ---- */

struct unit {                   /* the numbers of a unit by bin */
    struct picard_labels labels;
    const char *level;
    uint64_t n_clusters, n_aligned, n_reads;
    uint64_t reads[N_BINS], bases[N_BINS], errors[N_BINS];
    const uint64_t *windows;
    uint64_t n_windows;
    double mean;                /* reads a window */
};

static uint64_t bin_of(struct picard_bins bins, int64_t at)
{
    for (size_t i = 0; i < bins.n; i++)
        if (bins.bins[i].at == at) return bins.bins[i].n;
    return 0;
}

/* Returns false if the unit has no reads. */
static bool take_unit(const struct picard_report *report, int level, size_t number,
                      struct unit *unit)
{
    static const char *const names[N_LEVELS] = {"All Reads", "Sample", "Library", "Read Group"};
    const struct picard_gathered *gathered = &report->levels[level];
    struct picard_labels labels = gathered->labels[number];
    *unit = (struct unit){.level = names[level], .windows = report->gc_windows};
    if (level == LEVEL_SAMPLE) unit->labels.sample = labels.sample;
    if (level == LEVEL_LIBRARY) unit->labels.library = labels.library;
    if (level == LEVEL_READ_GROUP) unit->labels.read_group = labels.read_group;
    struct picard_bins bins[HISTOGRAM_GC_TOTALS - HISTOGRAM_GC_READS + 1];
    for (int i = HISTOGRAM_GC_READS; i <= HISTOGRAM_GC_TOTALS; i++)
        bins[i - HISTOGRAM_GC_READS] = picard_gathered_bins(gathered, number, PICARD_FIRST,
                                                            (enum picard_histogram)i);
    struct picard_bins totals = bins[HISTOGRAM_GC_TOTALS - HISTOGRAM_GC_READS];
    unit->n_clusters = bin_of(totals, 0);
    unit->n_aligned = bin_of(totals, 1);
    for (int i = 0; i < N_BINS; i++) {
        unit->reads[i] = bin_of(bins[0], i);
        unit->bases[i] = bin_of(bins[1], i);
        unit->errors[i] = bin_of(bins[2], i);
        unit->n_reads += unit->reads[i];
        unit->n_windows += unit->windows[i];
    }
    unit->mean = (double)unit->n_reads / (double)unit->n_windows;
    return unit->n_aligned > 0;
}

struct detail_row {
    const char *level, *used;
    uint64_t gc, n_windows, n_reads;
    double quality, coverage, error;
    struct picard_labels labels;
};

static const struct picard_column detail_columns[] = {
    {"ACCUMULATION_LEVEL", PICARD_TEXT, offsetof(struct detail_row, level)},
    {"READS_USED", PICARD_TEXT, offsetof(struct detail_row, used)},
    {"GC", PICARD_COUNT, offsetof(struct detail_row, gc)},
    {"WINDOWS", PICARD_COUNT, offsetof(struct detail_row, n_windows)},
    {"READ_STARTS", PICARD_COUNT, offsetof(struct detail_row, n_reads)},
    {"MEAN_BASE_QUALITY", PICARD_REAL, offsetof(struct detail_row, quality)},
    {"NORMALIZED_COVERAGE", PICARD_REAL, offsetof(struct detail_row, coverage)},
    {"ERROR_BAR_WIDTH", PICARD_REAL, offsetof(struct detail_row, error)},
    {"SAMPLE", PICARD_TEXT, offsetof(struct detail_row, labels.sample)},
    {"LIBRARY", PICARD_TEXT, offsetof(struct detail_row, labels.library)},
    {"READ_GROUP", PICARD_TEXT, offsetof(struct detail_row, labels.read_group)},
};
static const struct picard_class detail_class = {"GcBiasDetailMetrics",
                                                 PICARD_COLUMNS(detail_columns)};

static void print_details(const struct unit *unit, FILE *to)
{
    for (int i = 0; i < N_BINS; i++) {
        struct detail_row row = {.level = unit->level, .used = "ALL", .gc = (uint64_t)i,
                                 .n_windows = unit->windows[i], .n_reads = unit->reads[i],
                                 .labels = unit->labels};
        if (unit->errors[i] > 0)
            row.quality = floor(
                -10 * log10((double)unit->errors[i] / (double)unit->bases[i]) + 0.5);
        if (row.n_windows > 0) {
            double n = (double)row.n_windows;
            row.coverage = (double)row.n_reads / n / unit->mean;
            row.error = sqrt((double)row.n_reads) / n / unit->mean;
        }
        picard_print_row(&detail_class, &row, to);
    }
}

enum { N_FIFTHS = 5 };

struct summary_row {
    const char *level, *used;
    uint64_t window, n_clusters, n_aligned;
    double at_dropout, gc_dropout, coverage[N_FIFTHS];
    struct picard_labels labels;
};

static const struct picard_column summary_columns[] = {
    {"ACCUMULATION_LEVEL", PICARD_TEXT, offsetof(struct summary_row, level)},
    {"READS_USED", PICARD_TEXT, offsetof(struct summary_row, used)},
    {"WINDOW_SIZE", PICARD_COUNT, offsetof(struct summary_row, window)},
    {"TOTAL_CLUSTERS", PICARD_COUNT, offsetof(struct summary_row, n_clusters)},
    {"ALIGNED_READS", PICARD_COUNT, offsetof(struct summary_row, n_aligned)},
    {"AT_DROPOUT", PICARD_REAL, offsetof(struct summary_row, at_dropout)},
    {"GC_DROPOUT", PICARD_REAL, offsetof(struct summary_row, gc_dropout)},
    {"GC_NC_0_19", PICARD_REAL, offsetof(struct summary_row, coverage[0])},
    {"GC_NC_20_39", PICARD_REAL, offsetof(struct summary_row, coverage[1])},
    {"GC_NC_40_59", PICARD_REAL, offsetof(struct summary_row, coverage[2])},
    {"GC_NC_60_79", PICARD_REAL, offsetof(struct summary_row, coverage[3])},
    {"GC_NC_80_100", PICARD_REAL, offsetof(struct summary_row, coverage[4])},
    {"SAMPLE", PICARD_TEXT, offsetof(struct summary_row, labels.sample)},
    {"LIBRARY", PICARD_TEXT, offsetof(struct summary_row, labels.library)},
    {"READ_GROUP", PICARD_TEXT, offsetof(struct summary_row, labels.read_group)},
};
static const struct picard_class summary_class = {"GcBiasSummaryMetrics",
                                                  PICARD_COLUMNS(summary_columns)};

static void print_summary(const struct unit *unit, FILE *to)
{
    enum { HALF = 50, FIFTH = 20 };
    struct summary_row row = {.level = unit->level, .used = "ALL", .window = WINDOW,
                              .n_clusters = unit->n_clusters, .n_aligned = unit->n_aligned,
                              .labels = unit->labels};
    uint64_t n_windows[N_FIFTHS] = {0}, n_reads[N_FIFTHS] = {0};
    for (int i = 0; i < N_BINS; i++) {
        int fifth = i / FIFTH < N_FIFTHS ? i / FIFTH : N_FIFTHS - 1;
        n_windows[fifth] += unit->windows[i];
        n_reads[fifth] += unit->reads[i];
        double dropout = ((double)unit->windows[i] / (double)unit->n_windows -
                          (double)unit->reads[i] / (double)unit->n_reads) * 100;
        if (dropout > 0 && i <= HALF) row.at_dropout += dropout;
        if (dropout > 0 && i > HALF) row.gc_dropout += dropout;
    }
    for (int i = 0; i < N_FIFTHS; i++)
        if (n_windows[i] > 0)
            row.coverage[i] = (double)n_reads[i] / (double)n_windows[i] / unit->mean;
    picard_print_row(&summary_class, &row, to);
}

static void print_units(const struct picard_report *report, const struct picard_class *class,
                        void (*print)(const struct unit *unit, FILE *to), FILE *to)
{
    struct unit *unit = xmalloc(sizeof *unit);
    bool has_head = false;
    for (int level = 0; level < N_LEVELS; level++)
        for (size_t i = 0; i < report->levels[level].n_units; i++)
            if (take_unit(report, level, i, unit)) {
                if (!has_head) picard_print_class(class, to);
                has_head = true;
                print(unit, to);
            }
    (void)fputs("\n\n", to);
    free(unit);
}

void picard_print_gc_details(const struct picard_report *report, FILE *to)
{
    print_units(report, &detail_class, print_details, to);
}

void picard_print_gc_summary(const struct picard_report *report, FILE *to)
{
    print_units(report, &summary_class, print_summary, to);
}
