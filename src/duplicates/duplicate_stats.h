/*
 * duplicate_stats.h -- what --markdup counts, and its reports: in the form of samtools markdup -f,
 * as text or JSON, and in that of Picard MarkDuplicates (--metrics), which MultiQC reads.
 *
 * Each thread counts for itself; sums are joined at the end. Counts are kept for each read group
 * (read_groups.h), group 0 first, or in one array element for all records. Pure but for the stream;
 * the caller checks that with ferror.
 */
#ifndef ROCKSORT_DUPLICATES_DUPLICATE_STATS_H
#define ROCKSORT_DUPLICATES_DUPLICATE_STATS_H

#include "duplicates/read_groups.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct duplicate_counts {       /* of records; both reads of a pair count */
    uint64_t read, written;
    uint64_t excluded, examined;        /* of those that were read */
    uint64_t paired, single;    /* of those that were examined */
    uint64_t paired_duplicates, single_duplicates;
    uint64_t paired_optical, single_optical;    /* of the duplicates */
    uint64_t other_duplicates, other_optical;   /* -S: of secondary, supplementary and unmapped
                                                   records */
    /* only for Picard's form */
    uint64_t unmapped;          /* of those that were read */
    uint64_t other_alignments;  /* mapped secondary and supplementary records that were read */
};

void duplicate_counts_join(struct duplicate_counts *sum, const struct duplicate_counts *other);

/*
 * The number of molecules in the library, by how many pairs were seen again, as Picard and samtools
 * estimate it. The numbers are of pairs: all but optical duplicates, and those that are no
 * duplicates. 0: it cannot be estimated.
 */
uint64_t duplicate_library_size(uint64_t n_pairs, uint64_t n_unique_pairs);

/*
 * Writes the report of samtools markdup, byte for byte, with `command` as its command line. MultiQC
 * takes it for one if the command line has the words "samtools markdup", and as text no colon.
 * Without `groups`, counts has one element. With groups it has read_groups_count(groups) + 1, and
 * each group gets a part of the report after that of their sum; group 0 only if it has records.
 */
void duplicate_stats_write(FILE *to, bool json, const char *command,
                           const struct duplicate_counts *counts,
                           const struct read_groups *groups);

/*
 * Writes the metrics of Picard MarkDuplicates. counts[i] is of library i (read_groups.h); the
 * unknown library is left out if it has no records and there are others. With one library, a
 * histogram says how many more pairs deeper sequencing would find. started: when the sort began, as
 * text.
 */
void duplicate_metrics_write(FILE *to, const char *command, const char *started,
                             const struct duplicate_counts *counts,
                             const struct read_groups *groups);

#endif
