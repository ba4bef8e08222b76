/*
 * stats_options.h -- the options of --stats='OPTIONS FILE', which are those of samtools stats.
 *
 * Order of calls: parse; free. Threads: one at a time. Errors: NULL after a message.
 */
#ifndef ROCKSORT_STATS_STATS_OPTIONS_H
#define ROCKSORT_STATS_STATS_OPTIONS_H

#include "util/option_table.h"

#include <stdint.h>

struct stats_options {
    const char *reference;      /* FASTA file, or NULL */
    const char *targets;        /* file of regions, or NULL */
    const char *group;          /* only this read group or sample; NULL: all records */
    int required_flags, excluded_flags;
    int n_bases;                /* only reads of this length; -1: all */
    int trim_quality;           /* of bwa; 0: no trimming */
    int most_insert;            /* larger ones count as this; 0: no limit */
    float main_inserts;         /* the share of insert sizes that are reported */
    int bin_bases;              /* of the graph of GC content and depth */
    int least_depth, most_depth, depth_step;    /* of the distribution of depths */
    size_t n_depths;            /* in it, with those below and above */
    int target_depth;           /* positions of targets above it are counted */
    bool is_sparse;             /* does not print insert sizes without pairs */
    bool removes_overlaps;      /* of mates, from the depths */
    bool excludes_duplicates;
    struct option_list list;
};

void *stats_options_parse(int argc, char **argv);

void stats_options_free(void *options);

/* The index of a depth in the distribution. */
static inline size_t stats_depth_index(const struct stats_options *options, int32_t depth)
{
    if (depth < options->least_depth) return 0;
    if (depth > options->most_depth) return options->n_depths - 1;
    int32_t above = depth - options->least_depth;
    return 1 + (size_t)(options->depth_step == 1 ? above : above / options->depth_step);
}

#endif
