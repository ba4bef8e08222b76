/*
 * picard_options.h -- the options of --picard, by the names of Picard's arguments:
 * --picard='LEVELS=ALL_READS,SAMPLE R=ref.fa PREFIX'.
 *
 * Ownership and threads: see bam/count_kind.h.
 */
#ifndef ROCKSORT_PICARD_PICARD_OPTIONS_H
#define ROCKSORT_PICARD_PICARD_OPTIONS_H

#include "picard/picard_levels.h"
#include "util/option_table.h"

struct picard_options {
    bool levels[N_LEVELS];
    const char *reference;      /* NULL: that of --reference */
    double minimum_share, deviations;   /* of insert sizes */
    int most_insert;
    bool with_duplicates;
    struct option_list list;
    char **memory;              /* private: the words that the texts point into */
};

/* As parse and free_options of struct count_kind. */
void *picard_options_parse(int argc, char **argv);
void picard_options_free(void *options);

#endif
