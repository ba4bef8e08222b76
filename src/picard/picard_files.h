/*
 * picard_files.h -- prints the files of --picard, without their heads.
 *
 * Files of levels are printed for `gathered` counts of each level that the user asked for, in the
 * order of enum picard_level; others have no rows (n_units 0). One thread; errors of the file are
 * found by whoever closes it.
 */
#ifndef ROCKSORT_PICARD_PICARD_FILES_H
#define ROCKSORT_PICARD_PICARD_FILES_H

#include "picard/picard_levels.h"

struct picard_report {
    const struct picard_counts *counts;
    const struct picard_gathered *levels;       /* N_LEVELS */
    double minimum_share, deviations;   /* of insert sizes; Picard's MINIMUM_PCT and DEVIATIONS */
    const uint64_t *gc_windows; /* of the reference by GC: PICARD_GC_BINS */
};

void picard_print_alignment(const struct picard_report *report, FILE *to);
void picard_print_insert_sizes(const struct picard_report *report, FILE *to);
void picard_print_quals(const struct picard_report *report, FILE *to);
void picard_print_cycle_quals(const struct picard_report *report, FILE *to);
void picard_print_bases(const struct picard_report *report, FILE *to);
void picard_print_yield(const struct picard_report *report, FILE *to);
void picard_print_gc_details(const struct picard_report *report, FILE *to);
void picard_print_gc_summary(const struct picard_report *report, FILE *to);

#endif
