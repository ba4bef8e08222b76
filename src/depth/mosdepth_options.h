/*
 * mosdepth_options.h -- the options of mosdepth, and which files it writes.
 *
 * The options are those of mosdepth 0.3.3, and -a, -l and -u of later versions. All functions after
 * mosdepth_options_parse only read them.
 */
#ifndef ROCKSORT_DEPTH_MOSDEPTH_OPTIONS_H
#define ROCKSORT_DEPTH_MOSDEPTH_OPTIONS_H

#include "util/option_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mosdepth_file {
    MOSDEPTH_SUMMARY, MOSDEPTH_GLOBAL_DIST, MOSDEPTH_REGION_DIST,
    /* each followed by its index */
    MOSDEPTH_PER_BASE, MOSDEPTH_PER_BASE_INDEX, MOSDEPTH_REGIONS, MOSDEPTH_REGIONS_INDEX,
    MOSDEPTH_QUANTIZED, MOSDEPTH_QUANTIZED_INDEX, MOSDEPTH_THRESHOLDS, MOSDEPTH_THRESHOLDS_INDEX,
    MOSDEPTH_N_FILES
};

struct mosdepth_options {
    const char *by, *chrom, *read_groups;       /* in the words; NULL: not given */
    int64_t window;             /* of --by; 0: a BED file or none */
    bool no_per_base, is_fast, is_fragment, takes_median;
    int left_out, needed;       /* flags */
    int mapq;
    int least_fragment, most_fragment;  /* -1: any */
    int64_t *quantize, *thresholds;     /* owned; in order */
    size_t n_quantize, n_thresholds;
    char **labels;              /* owned; n_quantize - 1 names of the ranges of depth */
    int n_decimals;             /* MOSDEPTH_PRECISION */
    int n_threads;              /* not used */
    const char *fasta;          /* not used */
    struct option_list given;   /* with absolute paths */
};

/* For count_kind.h. */
void *mosdepth_options_parse(int argc, char **argv);
void mosdepth_options_free(void *options);
const char *mosdepth_suffix(const void *options, unsigned i);
bool mosdepth_is_streamed(const void *options, unsigned i);

/* The number of a file among those that the options want, or -1. */
int mosdepth_file_number(const struct mosdepth_options *options, enum mosdepth_file file);

#endif
