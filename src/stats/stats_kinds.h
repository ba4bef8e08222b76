/*
 * stats_kinds.h -- reports that count records as samtools does: flagstat, idxstats, coverage,
 * stats, checksum.
 */
#ifndef ROCKSORT_STATS_STATS_KINDS_H
#define ROCKSORT_STATS_STATS_KINDS_H

#include "bam/count_kind.h"

extern const struct count_kind flagstat_kind, idxstats_kind, coverage_kind, stats_kind,
    samtools_checksum_kind;

#endif
