/*
 * picard_collect.h -- counts a record for each file of --picard. Each function returns nothing and
 * cannot fail; any thread, on different counts.
 */
#ifndef ROCKSORT_PICARD_PICARD_COLLECT_H
#define ROCKSORT_PICARD_PICARD_COLLECT_H

#include "bam/fasta_reference.h"
#include "picard/picard_read.h"

struct picard_limits {          /* as of Picard's options */
    int64_t most_insert;        /* MAX_INSERT_SIZE: pairs further apart are chimeras */
    bool with_duplicates;       /* INCLUDE_DUPLICATES in insert sizes */
};

/* picard_bases.c: bases and qualities by cycle. The read is neither secondary nor supplementary. */
void picard_count_bases(struct picard_counts *counts, const struct picard_read *read);

/* picard_quality.c: distribution and yield of qualities. The same holds. */
void picard_count_quals(struct picard_counts *counts, const struct picard_read *read);

/* picard_alignment.c: not secondary. `window` NULL: no reference. */
void picard_count_alignment(struct picard_counts *counts, uint32_t cell,
                            const struct picard_read *read, const struct picard_limits *limits,
                            const struct fasta_window *window);

/* picard_insert_size.c: any record. */
void picard_count_insert_size(struct picard_counts *counts, uint32_t cell,
                              const struct picard_read *read, const struct picard_limits *limits);

enum picard_orientation { PAIR_FR, PAIR_RF, PAIR_TANDEM };

/* The orientation of a pair whose reads are both mapped. */
enum picard_orientation picard_orientation(const struct picard_read *read);

/* picard_adapters.c: true if the first 16 bases are those of an Illumina adapter, with at most one
   difference. */
bool picard_is_adapter(const struct picard_read *read);

#endif
