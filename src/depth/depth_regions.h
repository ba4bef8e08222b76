/*
 * depth_regions.h -- computes mean or median depth, and the covered positions, of the regions of
 * mosdepth's --by: windows of the reference, or the intervals of a BED file.
 *
 * Order of calls: init; for each reference in order begin_ref, add_run for all runs in order,
 * end_ref; release. Calls a function for each region, in the order of the regions.
 *
 * The mean is computed as mosdepth does, by adding depth / length for each position in order: the
 * sum of rounding errors decides how a mean in the middle of two decimal numbers is printed.
 *
 * Memory: 72 bytes for each region that has begun and has not been visited, because an earlier one
 * has not ended; with the median, 8 bytes for each depth up to 65,535.
 * Threads: one at a time. Nothing can fail.
 */
#ifndef ROCKSORT_DEPTH_DEPTH_REGIONS_H
#define ROCKSORT_DEPTH_DEPTH_REGIONS_H

#include "depth/depth_runs.h"
#include "split/bed_file.h"

struct depth_region {
    int64_t begin, end;
    const char *name;           /* NULL: none */
    double depth;               /* the mean or the median */
    uint64_t *n_covered;        /* positions with at least each threshold */
    bool has_ended;
    uint64_t *n_of_depth;       /* positions with each depth; for the median */
    size_t n_depths;
};

struct depth_regions {
    /* set by the caller */
    int64_t window;             /* 0: intervals */
    const struct bed_intervals *bed;
    const int64_t *thresholds;  /* in order */
    size_t n_thresholds;
    bool takes_median;
    void (*visit)(void *arg, const struct depth_region *region);
    /* Gets each part of a run that is in a region. */
    void (*visit_run)(void *arg, const struct depth_run *run);
    void *arg;
    /* the current reference */
    int64_t n_bases;
    int64_t next_window;
    size_t next, end;           /* in `bed` */
    struct depth_region *open;  /* those that have begun, in order */
    size_t n_open, open_room;
    size_t *live;               /* numbers in `open` of those that have not ended, in order */
    size_t n_live, live_room;
};

/* Begins a reference. */
void depth_regions_begin_ref(struct depth_regions *regions, int32_t tid, int64_t n_bases);

void depth_regions_add_run(struct depth_regions *regions, const struct depth_run *run);

/* Ends a reference after its last run. Positions beyond its end have depth 0. */
void depth_regions_end_ref(struct depth_regions *regions);

void depth_regions_release(struct depth_regions *regions);

#endif
