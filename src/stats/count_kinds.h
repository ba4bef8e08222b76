/*
 * count_kinds.h -- the statistics that a sort can compute of its output (--flagstat and others):
 * one line for each, with the name of its option and of its observer (bam/record_observer.h), as in
 * flagstat_observer.
 */
#ifndef ROCKSORT_STATS_COUNT_KINDS_H
#define ROCKSORT_STATS_COUNT_KINDS_H

#include "bam/record_observer.h"

#define COUNT_KINDS(KIND)                                                                          \
    KIND(FLAGSTAT, flagstat)                                                                       \
    KIND(IDXSTATS, idxstats)                                                                       \
    KIND(COVERAGE, coverage)    /* only in coordinate order */

#define DECLARE_KIND(upper, lower) COUNT_##upper,
enum count_kind { COUNT_KINDS(DECLARE_KIND) COUNT_N_KINDS };
#undef DECLARE_KIND

/* Each makes an observer of the output. The header is that of the output and does not change. */
#define DECLARE_KIND(upper, lower) struct record_observer *lower##_observer(sam_hdr_t *header);
COUNT_KINDS(DECLARE_KIND)
#undef DECLARE_KIND

/* The option, and its name without dashes. */
const char *count_kind_option(enum count_kind kind);
const char *count_kind_name(enum count_kind kind);

struct record_observer *count_kind_observer(enum count_kind kind, sam_hdr_t *header);

#endif
