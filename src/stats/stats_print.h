/*
 * stats_print.h -- prints the report of --stats, as `samtools stats` 1.24 does.
 *
 * All counts are complete. Threads: one. Errors of writing stay in the FILE.
 */
#ifndef ROCKSORT_STATS_STATS_PRINT_H
#define ROCKSORT_STATS_STATS_PRINT_H

#include "stats/stats_counts.h"
#include "stats/stats_depth.h"

#include <stdio.h>

struct stats_report {
    const struct stats_options *options;
    const char *command_line;
    const struct stats_counts *const *counts;   /* their sums are printed */
    size_t n_counts;
    const struct stats_depth *depth;            /* ended; has the sums of all depths */
    const struct barcode_layout *layout;
    uint64_t n_target_positions;                /* 0: no targets */
};

void stats_print(const struct stats_report *report, FILE *to);

/* ---- used by stats_print.c ---- */

/* Sums over all counters, for what is printed more than once. */
struct stats_totals {
    uint64_t numbers[STATS_N_NUMBERS];
    uint32_t longest[STATS_N_LENGTHS];
    uint64_t quals[STATS_N_QUALS];              /* bases by quality */
    int columns;                                /* of qualities that are printed */
    struct stats_insert *inserts;               /* halved: each pair was counted twice */
    size_t n_inserts;
};

static inline uint64_t stats_n_reads(const struct stats_totals *totals)
{
    const uint64_t *n = totals->numbers;
    return n[STATS_READS_FIRST] + n[STATS_READS_LAST] + n[STATS_READS_OTHER];
}

static inline float stats_ratio(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (float)part / (float)whole : 0;
}

static inline float stats_mean_length(const struct stats_totals *totals)
{
    return stats_ratio(totals->numbers[STATS_BASES], stats_n_reads(totals));
}

/* Print the sections with a line for each cycle; and those of insert sizes, lengths, mapping
   qualities, indels, depths and bins. */
void stats_print_cycles(const struct stats_report *report, const struct stats_totals *totals,
                        FILE *to);
void stats_print_lists(const struct stats_report *report, const struct stats_totals *totals,
                       uint64_t n_insert_rows, FILE *to);

#endif
