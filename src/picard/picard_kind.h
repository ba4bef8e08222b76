/*
 * picard_kind.h -- --picard: the files of Picard's CollectMultipleMetrics (bam/count_kind.h).
 */
#ifndef ROCKSORT_PICARD_PICARD_KIND_H
#define ROCKSORT_PICARD_PICARD_KIND_H

#include "bam/count_kind.h"

extern const struct count_kind picard_kind;

#endif
