/*
 * stats_print.c -- see stats_print.h. Prints the comments, checksums and summary numbers.
 *
 * Where samtools computes in single precision, so does this module.
 */
#include "stats/stats_print.h"

#include "util/version.h"
#include "util/xalloc.h"

#include <htslib/hts.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* ---- sums ---- */

static void sum_quals(const struct stats_counts *counts, struct stats_totals *totals)
{
    for (int i = 0; i < STATS_N_FRAGMENTS; i++) {
        const struct fragment_cycles *cycles = &counts->cycles.fragments[i];
        for (size_t cycle = 0; cycle < cycles->n_cycles; cycle++)
            stats_cycles_quals(cycles, cycle, totals->quals);
        for (size_t n = 1; n <= cycles->n_cycles; n++)
            totals->quals[STATS_N_QUALS - 1] += n * (uint64_t)cycles->without_quals[n];
    }
}

static void sum_inserts(const struct stats_report *report, struct stats_totals *totals)
{
    const struct stats_inserts **all = xcalloc(report->n_counts + 1, sizeof *all);
    for (size_t i = 0; i < report->n_counts; i++) all[i] = &report->counts[i]->inserts;
    totals->inserts = stats_inserts_list(all, report->n_counts, &totals->n_inserts);
    for (size_t i = 0; i < totals->n_inserts; i++)
        for (int k = 0; k < STATS_N_ORIENTATIONS; k++) totals->inserts[i].n[k] /= 2;
    free(all);
}

static void sum_counts(const struct stats_report *report, struct stats_totals *totals)
{
    for (size_t i = 0; i < report->n_counts; i++) {
        const struct stats_counts *counts = report->counts[i];
        for (int k = 0; k < STATS_N_NUMBERS; k++) totals->numbers[k] += counts->numbers[k];
        for (int k = 0; k < STATS_N_LENGTHS; k++)
            if (counts->longest[k] > totals->longest[k]) totals->longest[k] = counts->longest[k];
        sum_quals(counts, totals);
    }
    const struct stats_overlaps *overlaps = report->depth->overlaps;
    if (overlaps) totals->numbers[STATS_BASES_CIGAR] -= stats_overlaps_removed(overlaps);
    sum_inserts(report, totals);
    int best = STATS_N_QUALS - 1;
    while (best > 0 && totals->quals[best] == 0) best--;
    totals->columns = best < STATS_N_QUALS - 1 ? best + 2 : STATS_N_QUALS;
}

/* ---- insert sizes ---- */

struct insert_summary {
    uint64_t n[STATS_N_ORIENTATIONS];
    double mean, deviation;
    uint64_t n_rows;            /* the sizes below it are printed */
};

static uint64_t insert_pairs(const struct stats_insert *insert)
{
    return insert->n[STATS_INWARD] + insert->n[STATS_OUTWARD] + insert->n[STATS_OTHER_WAY];
}

/* Mean and deviation are those of the smaller sizes, the main share of all pairs. */
static struct insert_summary summarise_inserts(const struct stats_totals *totals, float main_share)
{
    struct insert_summary summary = {.n = {0}};
    uint64_t n_pairs = 0;
    double n_main = 0;
    for (size_t i = 0; i < totals->n_inserts; i++) {
        for (int k = 0; k < STATS_N_ORIENTATIONS; k++) summary.n[k] += totals->inserts[i].n[k];
        n_pairs += insert_pairs(&totals->inserts[i]);
    }
    for (size_t i = 0; i < totals->n_inserts; i++) {
        const struct stats_insert *insert = &totals->inserts[i];
        const uint64_t n = insert_pairs(insert);
        if (n == 0) continue;
        summary.n_rows = (uint64_t)insert->size + 1;
        n_main += (double)n;
        summary.mean += (double)(insert->size * n);
        if (n_main / (double)n_pairs > (double)main_share) {
            n_pairs = (uint64_t)n_main;
            break;
        }
    }
    const double n = n_pairs > 0 ? (double)n_pairs : 1;
    summary.mean /= n;
    for (size_t i = 0; i < totals->n_inserts; i++) {
        const struct stats_insert *insert = &totals->inserts[i];
        const double distance = (double)insert->size - summary.mean;
        if (insert->size > 0 && insert->size < summary.n_rows)
            summary.deviation += (double)insert_pairs(insert) * distance * distance / n;
    }
    summary.deviation = sqrt(summary.deviation);
    return summary;
}

/* ---- the report ---- */

static void print_head(const struct stats_report *report, const struct stats_totals *totals,
                       FILE *to)
{
    const uint64_t *n = totals->numbers;
    (void)fprintf(to, "# This file was produced by samtools stats (rocksort-%s+htslib-%s) and can "
                  "be plotted using plot-bamstats\n"
                  "# This file contains statistics for all reads.\n"
                  "# The command line was:  %s\n"
                  "# CHK, Checksum\t[2]Read Names\t[3]Sequences\t[4]Qualities\n"
                  "# CHK, CRC32 of reads which passed filtering followed by addition (32bit "
                  "overflow)\n"
                  "CHK\t%08x\t%08x\t%08x\n", ROCKSORT_VERSION, hts_version(),
                  report->command_line, (uint32_t)n[STATS_CRC_NAMES],
                  (uint32_t)n[STATS_CRC_BASES], (uint32_t)n[STATS_CRC_QUALS]);
}

struct summary_row {
    const char *name;
    enum stats_number number;
    const char *remark;         /* or NULL */
};

static void print_rows(const struct stats_totals *totals, const struct summary_row *rows,
                       size_t n_rows, FILE *to)
{
    for (size_t i = 0; i < n_rows; i++)
        (void)fprintf(to, "SN\t%s:\t%" PRId64 "%s%s\n", rows[i].name,
                      (int64_t)totals->numbers[rows[i].number], rows[i].remark ? "\t# " : "",
                      rows[i].remark ? rows[i].remark : "");
}

static const char no_clipping[] = "ignores clipping";

static const struct summary_row read_rows[] = {
    {"1st fragments", STATS_READS_FIRST, NULL},
    {"last fragments", STATS_READS_LAST, NULL},
};
static const struct summary_row pair_rows[] = {
    {"reads mapped and paired", STATS_MAPPED_PAIRED,
     "paired-end technology bit set + both mates mapped"},
    {"reads unmapped", STATS_UNMAPPED, NULL},
    {"reads properly paired", STATS_PROPER, "proper-pair bit set"},
    {"reads paired", STATS_PAIRED, "paired-end technology bit set"},
    {"reads duplicated", STATS_DUPLICATES, "PCR or optical duplicate bit set"},
    {"reads MQ0", STATS_MAPQ_0, "mapped and MQ=0"},
    {"reads QC failed", STATS_QC_FAILED, NULL},
    {"non-primary alignments", STATS_SECONDARY, NULL},
    {"supplementary alignments", STATS_SUPPLEMENTARY, NULL},
    {"total length", STATS_BASES, no_clipping},
    {"total first fragment length", STATS_BASES_FIRST, no_clipping},
    {"total last fragment length", STATS_BASES_LAST, no_clipping},
    {"bases mapped", STATS_BASES_MAPPED, no_clipping},
    {"bases mapped (cigar)", STATS_BASES_CIGAR, "more accurate"},
    {"bases trimmed", STATS_BASES_TRIMMED, NULL},
    {"bases duplicated", STATS_BASES_DUPLICATED, NULL},
    {"mismatches", STATS_MISMATCHES, "from NM fields"},
};

static void print_means(const struct stats_totals *totals, FILE *to)
{
    const uint64_t *n = totals->numbers;
    double quals = 0;
    for (int i = 0; i < STATS_N_QUALS; i++) quals += (double)i * (double)totals->quals[i];
    (void)fprintf(to, "SN\terror rate:\t%e\t# mismatches / bases mapped (cigar)\n",
                  (double)stats_ratio(n[STATS_MISMATCHES], n[STATS_BASES_CIGAR]));
    (void)fprintf(to, "SN\taverage length:\t%.0f\n", (double)stats_mean_length(totals));
    (void)fprintf(to, "SN\taverage first fragment length:\t%.0f\n",
                  (double)stats_ratio(n[STATS_BASES_FIRST], n[STATS_READS_FIRST]));
    (void)fprintf(to, "SN\taverage last fragment length:\t%.0f\n",
                  (double)stats_ratio(n[STATS_BASES_LAST], n[STATS_READS_LAST]));
    (void)fprintf(to, "SN\tmaximum length:\t%u\n", totals->longest[STATS_LENGTHS_ALL]);
    (void)fprintf(to, "SN\tmaximum first fragment length:\t%u\n",
                  totals->longest[1 + STATS_FIRST]);
    (void)fprintf(to, "SN\tmaximum last fragment length:\t%u\n", totals->longest[1 + STATS_LAST]);
    (void)fprintf(to, "SN\taverage quality:\t%.1f\n",
                  n[STATS_BASES] > 0 ? quals / (double)n[STATS_BASES] : 0);
}

static void print_targets(const struct stats_report *report, FILE *to)
{
    const struct stats_options *options = report->options;
    const uint64_t n = report->n_target_positions;
    uint64_t n_covered = 0;
    if (n == 0) return;
    (void)fprintf(to, "SN\tbases inside the target:\t%" PRIu64 "\n", n);
    for (size_t i = (size_t)options->target_depth + 1; i < options->n_depths; i++)
        n_covered += report->depth->depths[i];
    (void)fprintf(to, "SN\tpercentage of target genome with coverage > %d (%%):\t%.2f\n",
                  options->target_depth, (double)stats_ratio(100 * n_covered, n));
}

static void print_summary(const struct stats_report *report, const struct stats_totals *totals,
                          const struct insert_summary *inserts, FILE *to)
{
    const uint64_t *n = totals->numbers;
    const bool is_sorted = report->depth->is_sorted;
    (void)fprintf(to, "# Summary Numbers. Use `grep ^SN | cut -f 2-` to extract this part.\n"
                  "SN\traw total sequences:\t%" PRIu64
                  "\t# excluding supplementary and secondary reads\n"
                  "SN\tfiltered sequences:\t%" PRIu64 "\n"
                  "SN\tsequences:\t%" PRIu64 "\n"
                  "SN\tis sorted:\t%d\t# %ssorted by coordinate\n",
                  n[STATS_FILTERED] + stats_n_reads(totals), n[STATS_FILTERED],
                  stats_n_reads(totals),
                  is_sorted, is_sorted ? "" : "not ");
    print_rows(totals, read_rows, sizeof read_rows / sizeof *read_rows, to);
    (void)fprintf(to, "SN\treads mapped:\t%" PRIu64 "\n",
                  n[STATS_MAPPED_PAIRED] + n[STATS_MAPPED_SINGLE]);
    print_rows(totals, pair_rows, sizeof pair_rows / sizeof *pair_rows, to);
    print_means(totals, to);
    (void)fprintf(to, "SN\tinsert size average:\t%.1f\n"
                  "SN\tinsert size standard deviation:\t%.1f\n"
                  "SN\tinward oriented pairs:\t%" PRIu64 "\n"
                  "SN\toutward oriented pairs:\t%" PRIu64 "\n"
                  "SN\tpairs with other orientation:\t%" PRIu64 "\n"
                  "SN\tpairs on different chromosomes:\t%" PRIu64 "\n"
                  "SN\tpercentage of properly paired reads (%%):\t%.1f\n",
                  inserts->mean, inserts->deviation, inserts->n[STATS_INWARD],
                  inserts->n[STATS_OUTWARD], inserts->n[STATS_OTHER_WAY],
                  n[STATS_OTHER_REFERENCE] / 2,
                  (double)stats_ratio(100 * n[STATS_PROPER], stats_n_reads(totals)));
    print_targets(report, to);
}

void stats_print(const struct stats_report *report, FILE *to)
{
    struct stats_totals *totals = xcalloc(1, sizeof *totals);
    sum_counts(report, totals);
    const struct insert_summary inserts =
        summarise_inserts(totals, report->options->main_inserts);
    print_head(report, totals, to);
    print_summary(report, totals, &inserts, to);
    stats_print_cycles(report, totals, to);
    stats_print_lists(report, totals, inserts.n_rows, to);
    free(totals->inserts);
    free(totals);
}
