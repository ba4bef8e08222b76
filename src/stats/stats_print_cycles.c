/* stats_print_cycles.c -- prints the sections of --stats that have a line for each cycle, and those
   of GC content and barcodes (stats_print.h). */
#include "stats/stats_print.h"

#include "util/decimal.h"
#include "util/xalloc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- qualities ---- */

/* Prints a line: its name, the number of the cycle, and counts. Long reads have millions of counts,
   for which fprintf would take most of the time. */
static void print_counts(const char *name, size_t cycle, const uint64_t *n, int n_columns, FILE *to)
{
    uint8_t line[STATS_N_QUALS * (1 + DECIMAL_MOST_BYTES) + 1], *at = line;
    for (int i = 0; i < n_columns; i++) {
        *at++ = '\t';
        at = put_decimal(at, n[i]);
    }
    *at++ = '\n';
    (void)fprintf(to, "%s\t%zu", name, cycle + 1);
    (void)fwrite(line, 1, (size_t)(at - line), to);
}

/* Returns how many reads without qualities have more than [cycle] bases, up to n cycles. */
static uint64_t *count_without_quals(const struct stats_report *report, int fragment, size_t n)
{
    uint64_t *longer = xcalloc(n + 1, sizeof *longer);
    for (size_t i = 0; i < report->n_counts; i++) {
        const struct fragment_cycles *cycles = &report->counts[i]->cycles.fragments[fragment];
        for (size_t k = 1; k <= cycles->n_cycles && k <= n; k++)
            longer[k - 1] += cycles->without_quals[k];
    }
    for (size_t k = n; k-- > 0;) longer[k] += longer[k + 1];
    return longer;
}

static void print_quals(const struct stats_report *report, const struct stats_totals *totals,
                        int fragment, FILE *to)
{
    const size_t n_cycles = totals->longest[1 + fragment];
    uint64_t *without_quals = count_without_quals(report, fragment, n_cycles);
    const char *name = fragment == STATS_FIRST ? "FFQ" : "LFQ";
    (void)fprintf(to, "# %s Fragment Qualities. Use `grep ^%s | cut -f 2-` to extract this part.\n"
                  "# Columns correspond to qualities and rows to cycles. First column is the cycle "
                  "number.\n", fragment == STATS_FIRST ? "First" : "Last", name);
    for (size_t cycle = 0; cycle < n_cycles; cycle++) {
        uint64_t sums[STATS_N_QUALS] = {0};
        for (size_t i = 0; i < report->n_counts; i++)
            stats_cycles_quals(&report->counts[i]->cycles.fragments[fragment], cycle, sums);
        sums[STATS_N_QUALS - 1] += without_quals[cycle];
        print_counts(name, cycle, sums, totals->columns, to);
    }
    free(without_quals);
}

static void print_mismatches(const struct stats_report *report, const struct stats_totals *totals,
                             FILE *to)
{
    (void)fputs("# Mismatches per cycle and quality. Use `grep ^MPC | cut -f 2-` to extract this "
                "part.\n# Columns correspond to qualities, rows to cycles. First column is the "
                "cycle number, second\n# is the number of N's and the rest is the number of "
                "mismatches\n", to);
    for (size_t cycle = 0; cycle <= totals->longest[STATS_LENGTHS_ALL]; cycle++) {
        uint64_t sums[STATS_N_QUALS] = {0};
        for (size_t i = 0; i < report->n_counts; i++)
            for (int q = 0; q < totals->columns; q++)
                sums[q] += stats_row_get(&report->counts[i]->mismatches,
                                         cycle * STATS_MISMATCH_COLUMNS + (size_t)q);
        print_counts("MPC", cycle, sums, totals->columns, to);
    }
}

/* ---- GC content ---- */

static void print_gc(const struct stats_report *report, int fragment, FILE *to)
{
    const char *name = fragment == STATS_FIRST ? "GCF" : "GCL";
    uint64_t n[STATS_GC_STEPS] = {0};
    int last = 0;               /* a line is for the range of shares from it on */
    (void)fprintf(to, "# GC Content of %s fragments. Use `grep ^%s | cut -f 2-` to extract this "
                  "part.\n", fragment == STATS_FIRST ? "first" : "last", name);
    for (int i = 0; i < STATS_GC_STEPS; i++) {
        n[i] = i > 0 ? n[i - 1] : 0;
        for (size_t k = 0; k < report->n_counts; k++)
            n[i] += (uint64_t)report->counts[k]->gc_steps[fragment][i];
        if (n[i] == n[last]) continue;
        (void)fprintf(to, "%s\t%.2f\t%" PRIu64 "\n", name,
                      (i + last) * 0.5 * 100. / (STATS_GC_STEPS - 1), n[last]);
        last = i;
    }
}

/* ---- bases ---- */

/* Adds the bases of a fragment: as they are in the records, or as they were sequenced. */
static void add_bases(const struct stats_report *report, int fragment, size_t cycle,
                      bool as_sequenced, uint64_t sums[STATS_N_BASES])
{
    uint64_t n[2][STATS_N_BASES] = {{0}};       /* by strand */
    for (size_t i = 0; i < report->n_counts; i++)
        for (int strand = 0; strand < 2; strand++)
            stats_cycles_bases(&report->counts[i]->cycles.fragments[fragment], strand, cycle,
                               n[strand]);
    for (int i = 0; i < STATS_N_BASES; i++) {
        int other = as_sequenced && i <= STATS_T ? STATS_T - i : i;
        sums[i] += n[0][i] + n[1][other];
    }
}

/* Prints shares of all A, C, G and T. */
static void print_shares(const char *name, size_t cycle, const uint64_t *n, int n_columns, FILE *to)
{
    const uint64_t n_acgt = n[STATS_A] + n[STATS_C] + n[STATS_G] + n[STATS_T];
    if (n_acgt == 0) return;
    (void)fprintf(to, "%s\t%zu", name, cycle + 1);
    for (int i = 0; i < n_columns; i++)
        (void)fprintf(to, "\t%.2f", 100. * (double)n[i] / (double)n_acgt);
    (void)fputc('\n', to);
}

#define SHARES                                                                                     \
    "The columns are: cycle; A,C,G,T base counts as a percentage of all A/C/G/T bases [%]"
#define SHARES_N SHARES "; and N and O counts as a percentage of all A/C/G/T bases [%]\n"

struct base_section {
    const char *name, *remark;
    int from, to;               /* fragments */
    const char *sums;           /* section of the sums over all cycles; NULL: none */
};

static void print_bases(const struct stats_report *report, const struct base_section *section,
                        size_t n_cycles, FILE *to)
{
    uint64_t all[STATS_N_BASES] = {0};
    const bool as_sequenced = strcmp(section->name, "GCT") == 0;
    (void)fprintf(to, "# ACGT content per cycle%s. Use `grep ^%s | cut -f 2-` to extract this "
                  "part. %s", section->remark, section->name, as_sequenced ? SHARES "\n" : SHARES_N);
    for (size_t cycle = 0; cycle < n_cycles; cycle++) {
        uint64_t n[STATS_N_BASES] = {0};
        for (int i = section->from; i <= section->to; i++)
            add_bases(report, i, cycle, as_sequenced, n);
        for (int i = 0; i < STATS_N_BASES; i++) all[i] += n[i];
        print_shares(section->name, cycle, n, as_sequenced ? STATS_N : STATS_N_BASES, to);
    }
    if (!section->sums) return;
    (void)fprintf(to, "# ACGT raw counters%s. Use `grep ^%s | cut -f 2-` to extract this part. The "
                  "columns are: A,C,G,T,N base counters\n%s", section->remark, section->sums,
                  section->sums);
    for (int i = 0; i <= STATS_N; i++) (void)fprintf(to, "\t%" PRIu64, all[i]);
    (void)fputc('\n', to);
}

static const struct base_section base_sections[] = {
    {"GCC", "", STATS_FIRST, STATS_LAST, NULL},
    {"GCT", ", read oriented", STATS_FIRST, STATS_LAST, NULL},
    {"FBC", " for first fragments", STATS_FIRST, STATS_FIRST, "FTC"},
    {"LBC", " for last fragments", STATS_LAST, STATS_LAST, "LTC"},
};

static void print_barcodes(const struct stats_report *report, FILE *to)
{
    const struct stats_barcodes **all = xcalloc(report->n_counts + 1, sizeof *all);
    for (size_t i = 0; i < report->n_counts; i++) all[i] = &report->counts[i]->barcodes;
    stats_barcodes_print(report->layout, all, report->n_counts, to);
    free(all);
}

void stats_print_cycles(const struct stats_report *report, const struct stats_totals *totals,
                        FILE *to)
{
    for (int i = 0; i < STATS_N_FRAGMENTS; i++) print_quals(report, totals, i, to);
    if (report->options->reference) print_mismatches(report, totals, to);
    for (int i = 0; i < STATS_N_FRAGMENTS; i++) print_gc(report, i, to);
    const size_t n_cycles = (size_t)totals->longest[STATS_LENGTHS_ALL] + 1;
    for (size_t i = 0; i < sizeof base_sections / sizeof *base_sections; i++)
        print_bases(report, &base_sections[i], n_cycles, to);
    print_barcodes(report, to);
}
