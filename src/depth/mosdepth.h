/* mosdepth.h -- the files of mosdepth (--mosdepth), as a kind of report. */
#ifndef ROCKSORT_DEPTH_MOSDEPTH_H
#define ROCKSORT_DEPTH_MOSDEPTH_H

#include "bam/count_kind.h"

extern const struct count_kind mosdepth_kind;

#endif
