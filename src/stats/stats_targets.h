/*
 * stats_targets.h -- the regions of --stats='-t FILE': only records that overlap one are counted.
 *
 * A line of the file has a reference, a first and a last position, which count from 1. References
 * that the header lacks are skipped, with one warning. Regions that overlap are joined.
 *
 * Order of calls: read; look up; release. After read any thread may look up. Errors: -1 after a
 * message that names the file and the line.
 */
#ifndef ROCKSORT_STATS_STATS_TARGETS_H
#define ROCKSORT_STATS_STATS_TARGETS_H

#include <htslib/sam.h>
#include <stddef.h>
#include <stdint.h>

struct stats_target {           /* positions from 1, the last included */
    int32_t tid;
    int64_t first, last;
};

struct stats_targets {          /* starts as {0} */
    struct stats_target *at;    /* sorted; those of a reference do not overlap */
    size_t n, room;
    uint64_t n_positions;       /* in all of them */
};

int stats_targets_read(struct stats_targets *targets, const char *path, sam_hdr_t *header);

/* Returns the first target of a reference that ends after `pos` and begins at or before `end`, or
   NULL. The record covers [pos, end), from 0. */
const struct stats_target *stats_targets_find(const struct stats_targets *targets, int32_t tid,
                                              int64_t pos, int64_t end);

void stats_targets_release(struct stats_targets *targets);

#endif
