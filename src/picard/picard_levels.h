/*
 * picard_levels.h -- the units of each level (all reads, samples, libraries, read groups), and
 * their counts.
 *
 * A unit has a name: of a sample its SM, of a library its LB, of a read group its PU, as in Picard;
 * "unknown" without that field, and for reads without a read group. Units come in the order of the
 * @RG lines. "unknown" comes last, and only if it has records, unless an @RG line lacks the field.
 *
 * Order of calls: create, from the header; of a level gather, read, release. Threads: one at a
 * time. Nothing fails.
 */
#ifndef ROCKSORT_PICARD_PICARD_LEVELS_H
#define ROCKSORT_PICARD_PICARD_LEVELS_H

#include "picard/picard_counts.h"
#include "picard/picard_print.h"

#include <htslib/sam.h>

enum picard_level { LEVEL_ALL_READS, LEVEL_SAMPLE, LEVEL_LIBRARY, LEVEL_READ_GROUP, N_LEVELS };

struct picard_labels {          /* the last columns of most metrics; NULL: empty */
    const char *sample, *library, *read_group;
};

struct picard_groups;           /* the fields of the @RG lines */

struct picard_groups *picard_groups_create(sam_hdr_t *header);
void picard_groups_destroy(struct picard_groups *groups);
size_t picard_groups_n_cells(const struct picard_groups *groups);
/* The cell of a read group with this ID. */
uint32_t picard_groups_cell(const struct picard_groups *groups, const char *id);

struct picard_gathered {        /* the counts of a level */
    size_t n_units;
    size_t n_summed;            /* without the unknown one if that only has histograms */
    struct picard_labels *labels;       /* of each unit */
    uint64_t (*sums)[PICARD_N_CATEGORIES][SUM_N_SUMS];  /* of each unit */
    /* Private: all bins, sorted by key, with the unit as cell. */
    uint64_t *keys;
    struct picard_bin *bins;
    size_t n_bins;
};

/* The histogram of a unit. */
struct picard_bins picard_gathered_bins(const struct picard_gathered *gathered, size_t unit,
                                        enum picard_category category,
                                        enum picard_histogram histogram);

/* Adds up the cells of the units of a level. */
void picard_gather(const struct picard_groups *groups, enum picard_level level,
                   const struct picard_counts *counts, struct picard_gathered *gathered);
void picard_gathered_release(struct picard_gathered *gathered);

/* What precedes the names of a unit's curves. */
const char *picard_labels_name(const struct picard_labels *labels);

#endif
