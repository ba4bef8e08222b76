/*
 * flagstat.h -- counts records by their flags, and prints the counts as `samtools flagstat` 1.24
 * does. Its observer is flagstat_observer (count_kinds.h).
 *
 * Adding a record must take about a nanosecond, so a part only counts how often each combination of
 * flags occurs. The lines of flagstat are derived from these numbers once for each part.
 */
#ifndef ROCKSORT_STATS_FLAGSTAT_H
#define ROCKSORT_STATS_FLAGSTAT_H

#include <stdint.h>
#include <stdio.h>

/* The lines of flagstat in their order. */
enum flagstat_line {
    FLAGSTAT_TOTAL,
    FLAGSTAT_PRIMARY,
    FLAGSTAT_SECONDARY,
    FLAGSTAT_SUPPLEMENTARY,
    FLAGSTAT_DUPLICATES,
    FLAGSTAT_PRIMARY_DUPLICATES,
    FLAGSTAT_MAPPED,
    FLAGSTAT_PRIMARY_MAPPED,
    FLAGSTAT_PAIRED,
    FLAGSTAT_READ1,
    FLAGSTAT_READ2,
    FLAGSTAT_PROPER,
    FLAGSTAT_BOTH_MAPPED,
    FLAGSTAT_SINGLETONS,
    FLAGSTAT_OTHER_REFERENCE,
    FLAGSTAT_OTHER_REFERENCE_SURE,      /* mapping quality 5 or more */
    FLAGSTAT_N_LINES
};

struct flagstat {
    uint64_t n[FLAGSTAT_N_LINES][2];    /* [1]: of reads that failed quality checks */
};

void flagstat_print(const struct flagstat *sum, FILE *to);

#endif
