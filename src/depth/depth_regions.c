/* depth_regions.c -- see depth_regions.h. */
#include "depth/depth_regions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_MEDIAN = 65535 };   /* greater depths count as this one */

void depth_regions_begin_ref(struct depth_regions *regions, int32_t tid, int64_t n_bases)
{
    regions->n_bases = n_bases;
    regions->next_window = 0;
    if (regions->window > 0) return;
    const struct bed_intervals *bed = regions->bed;
    /* References come in order, and some have no regions. */
    while (regions->next < bed->n && bed->intervals[regions->next].tid < tid) regions->next++;
    regions->end = regions->next;
    while (regions->end < bed->n && bed->intervals[regions->end].tid == tid) regions->end++;
}

/* Gets the next region of the reference, if it begins before `end`. */
static bool next_region(struct depth_regions *regions, int64_t end, struct depth_region *region)
{
    *region = (struct depth_region){.name = NULL};
    if (regions->window == 0) {
        const struct bed_interval *at = regions->bed->intervals + regions->next;
        if (regions->next == regions->end || at->begin >= end) return false;
        *region = (struct depth_region){.begin = at->begin, .end = at->end, .name = at->name};
        regions->next++;
        return true;
    }
    int64_t begin = regions->next_window;
    if (begin >= regions->n_bases || begin >= end) return false;
    bool is_last = regions->n_bases - begin <= regions->window;
    region->begin = begin;
    regions->next_window = region->end = is_last ? regions->n_bases : begin + regions->window;
    return true;
}

static void open_region(struct depth_regions *regions, struct depth_region *region)
{
    if (regions->n_thresholds > 0)
        region->n_covered = xcalloc(regions->n_thresholds, sizeof *region->n_covered);
    xgrow(&regions->open, &regions->open_room, regions->n_open + 1, regions->n_open,
          sizeof *regions->open);
    regions->open[regions->n_open++] = *region;
}

/* Adds a number n times, with the rounding of each addition. While the exponent of the sum stays
   the same, and two additions in turn have the same result, so have all others. */
static double add_times(double sum, double number, int64_t n)
{
    while (n > 0) {
        double first = sum + number, second = first + number;
        double limit = n > 8 && sum > 0 ? ldexp(1.0, ilogb(sum) + 1) : 0;
        if (second < limit && second - first == first - sum) {
            double n_steps = floor((limit - sum) / (first - sum)) - 1;
            if (n_steps > (double)n) n_steps = (double)n;
            sum += n_steps * (first - sum);
            n -= (int64_t)n_steps;
        } else {
            sum = first;
            n--;
        }
    }
    return sum;
}

static void add_median(struct depth_region *region, int64_t depth, int64_t n)
{
    size_t at = depth < 0 ? 0 : depth < MOST_MEDIAN ? (size_t)depth : MOST_MEDIAN;
    xgrow_zeroed(&region->n_of_depth, &region->n_depths, at + 1, at / 2 + 16, sizeof(uint64_t));
    region->n_of_depth[at] += (uint64_t)n;
}

/* Adds the part of a run that is in a region. */
static void add_run(const struct depth_regions *regions, struct depth_region *region,
                    const struct depth_run *run)
{
    int64_t begin = run->begin > region->begin ? run->begin : region->begin;
    int64_t end = run->end < region->end ? run->end : region->end;
    region->has_ended = region->end <= run->end;
    if (begin >= end) return;
    int64_t n = end - begin;
    if (regions->takes_median)
        add_median(region, run->depth, n);
    else if (run->depth != 0)
        region->depth = add_times(region->depth,
                                  (double)run->depth / (double)(region->end - region->begin), n);
    for (size_t i = 0; i < regions->n_thresholds && regions->thresholds[i] <= run->depth; i++)
        region->n_covered[i] += (uint64_t)n;
    regions->visit_run(regions->arg, &(struct depth_run){begin, end, run->depth});
}

static double median(const struct depth_region *region)
{
    uint64_t stop = ((uint64_t)(region->end - region->begin) + 1) / 2, sum = 0;
    for (size_t i = 0; i < region->n_depths; i++)
        if ((sum += region->n_of_depth[i]) >= stop) return (double)i;
    return 0;
}

/* Visits the first regions, which have ended, and removes them. */
static void close_regions(struct depth_regions *regions)
{
    size_t n = 0;
    for (; n < regions->n_open && regions->open[n].has_ended; n++) {
        struct depth_region *region = &regions->open[n];
        if (regions->takes_median) region->depth = median(region);
        regions->visit(regions->arg, region);
        free(region->n_covered);
        free(region->n_of_depth);
    }
    if (n == 0) return;
    for (size_t i = 0; i < regions->n_live; i++) regions->live[i] -= n;
    regions->n_open -= n;
    memmove(regions->open, regions->open + n, regions->n_open * sizeof *regions->open);
}

/* Adds a run to an open region, which stays alive if it has not ended. */
static void add_to_region(struct depth_regions *regions, size_t number,
                          const struct depth_run *run)
{
    add_run(regions, &regions->open[number], run);
    if (regions->open[number].has_ended) return;
    xgrow(&regions->live, &regions->live_room, regions->n_live + 1, regions->n_live,
          sizeof *regions->live);
    regions->live[regions->n_live++] = number;
}

void depth_regions_add_run(struct depth_regions *regions, const struct depth_run *run)
{
    size_t n = regions->n_live;
    regions->n_live = 0;
    for (size_t i = 0; i < n; i++) add_to_region(regions, regions->live[i], run);
    struct depth_region region;
    while (next_region(regions, run->end, &region)) {
        open_region(regions, &region);
        add_to_region(regions, regions->n_open - 1, run);
        close_regions(regions);
    }
    close_regions(regions);
}

void depth_regions_end_ref(struct depth_regions *regions)
{
    const struct depth_run beyond = {regions->n_bases, INT64_MAX, 0};
    depth_regions_add_run(regions, &beyond);
}

void depth_regions_release(struct depth_regions *regions)
{
    for (size_t i = 0; i < regions->n_open; i++) {
        free(regions->open[i].n_covered);
        free(regions->open[i].n_of_depth);
    }
    free(regions->open);
    free(regions->live);
}
