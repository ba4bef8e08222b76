/* depth_summary.c -- see depth_summary.h. */
#include "depth/depth_summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* mosdepth counts greater depths as 10 less than the greatest one. */
enum { MOST_DEPTH = 400000, DEPTH_OF_MORE = MOST_DEPTH - 10 };

void depth_counts_clear(struct depth_counts *counts)
{
    counts->n_positions = counts->sum = 0;
    counts->least = UINT32_MAX;
    counts->most = 0;
    counts->n_depths = 0;
}

static uint64_t *count_of(struct depth_counts *counts, size_t depth)
{
    if (depth >= counts->n_depths) {
        xgrow(&counts->n_of_depth, &counts->depths_room, depth + 1, 2048,
              sizeof *counts->n_of_depth);
        memset(counts->n_of_depth + counts->n_depths, 0,
               (depth + 1 - counts->n_depths) * sizeof *counts->n_of_depth);
        counts->n_depths = depth + 1;
    }
    return &counts->n_of_depth[depth];
}

void depth_counts_add_depth(struct depth_counts *counts, int64_t depth, uint64_t n)
{
    if (depth < 0) return;
    *count_of(counts, depth > MOST_DEPTH ? DEPTH_OF_MORE : (size_t)depth) += n;
}

void depth_counts_add_run(struct depth_counts *counts, const struct depth_run *run)
{
    uint32_t depth = (uint32_t)run->depth;
    uint64_t n = (uint64_t)(run->end - run->begin);
    counts->n_positions += n;
    counts->sum += (uint64_t)run->depth * n;
    if (depth < counts->least) counts->least = depth;
    if (depth > counts->most) counts->most = depth;
}

void depth_counts_add(struct depth_counts *to, const struct depth_counts *counts)
{
    to->n_positions += counts->n_positions;
    to->sum += counts->sum;
    if (counts->least < to->least) to->least = counts->least;
    if (counts->most > to->most) to->most = counts->most;
    for (size_t i = counts->n_depths; i-- > 0;) *count_of(to, i) += counts->n_of_depth[i];
}

/* Appends at most 80 bytes after a name and a tab. */
#define APPEND(to, name, ...)                                                                    \
    do {                                                                                         \
        size_t name_bytes_ = strlen(name);                                                       \
        byte_buffer_copy(to, name, name_bytes_);                                                 \
        (to)->n_bytes += (size_t)snprintf((char *)byte_buffer_reserve(to, 512), 512, __VA_ARGS__); \
    } while (0)

void depth_counts_print(const struct depth_counts *counts, const char *name, int n_decimals,
                        struct byte_buffer *to)
{
    double mean = counts->n_positions > 0 ? (double)counts->sum / (double)counts->n_positions : 0;
    APPEND(to, name, "\t%" PRIu64 "\t%" PRIu64 "\t%#.*f\t%" PRIu32 "\t%" PRIu32 "\n",
           counts->n_positions, counts->sum, n_decimals, mean,
           counts->least == UINT32_MAX ? 0 : counts->least, counts->most);
}

void depth_counts_print_distribution(const struct depth_counts *counts, const char *name,
                                     int n_decimals, struct byte_buffer *to)
{
    enum { ALWAYS_PRINTED = 300 };      /* up to this depth lines are printed without positions */
    const double least_printed = 8e-5;
    uint64_t n_positions = 0;
    double part = 0;
    for (size_t i = 0; i < counts->n_depths; i++) n_positions += counts->n_of_depth[i];
    if (n_positions == 0) return;
    for (size_t i = counts->n_depths; i-- > 0;) {
        if (i > ALWAYS_PRINTED && counts->n_of_depth[i] == 0) continue;
        part += (double)counts->n_of_depth[i] / (double)n_positions;
        if (part < least_printed) continue;
        APPEND(to, name, "\t%zu\t%#.*f\n", i, n_decimals, part);
    }
}

void depth_counts_release(struct depth_counts *counts)
{
    free(counts->n_of_depth);
}
