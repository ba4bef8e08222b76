/*
 * markdup_stats.h -- counts duplicates and writes the reports of --markdup: as samtools markdup -f
 * does (text or JSON), and as Picard MarkDuplicates does (--metrics). MultiQC reads both.
 *
 * Counts are in an array with one element for each read group or library (read_groups.h), group 0
 * first, or with one element for all records. The caller checks streams with ferror.
 */
#ifndef ROCKSORT_MARKDUP_MARKDUP_STATS_H
#define ROCKSORT_MARKDUP_MARKDUP_STATS_H

#include "bam/read_groups.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct duplicate_counts {       /* of records (a pair counts as two); all are uint64_t */
    uint64_t read, written;
    uint64_t excluded, examined;        /* of those that were read */
    uint64_t paired, single;    /* of those that were examined */
    uint64_t paired_duplicates, single_duplicates;
    uint64_t paired_optical, single_optical;    /* of the duplicates */
    uint64_t other_duplicates, other_optical;   /* -S: of secondary, supplementary and unmapped
                                                   records */
    /* only for Picard's metrics */
    uint64_t unmapped;          /* of those that were read */
    uint64_t other_alignments;  /* mapped secondary and supplementary records that were read */
    /* only for warnings: what examined reads lack that the options require */
    uint64_t without_barcode;
    uint64_t unreadable_barcode;        /* record_read_ends.lacks_barcode */
    uint64_t names, names_without_coords;       /* names searched for coordinates */
};

void duplicate_counts_join(struct duplicate_counts *sum, const struct duplicate_counts *other);

/* Returns the sum of n counts. */
struct duplicate_counts duplicate_counts_sum(const struct duplicate_counts *counts, size_t n);

/* ---- counts of all groups, shared by jobs ---- */

/*
 * All jobs share one array of counts, since a header may have 100,000 read groups. Each job has a
 * *part*, a small cache of counts. It adds the counts of a group to the array when another group
 * needs the place, and at the end.
 *
 * Order of calls: group_totals_create; parts, which start as {0}: group_counts_of for each record,
 * then group_counts_end; group_totals_counts when all parts have ended;
 * group_totals_destroy. group_totals_mark and group_totals_undo only while all parts have ended or
 * were dropped. Threads: a part has one owner at a time.
 */

enum { GROUP_COUNTS_PLACES = 128 };     /* 18 KiB */

struct group_totals;

struct group_place {
    bool is_used;
    size_t group;
    struct duplicate_counts counts;
};

struct group_counts {           /* a part */
    struct group_place places[GROUP_COUNTS_PLACES];     /* by group, modulo their number */
};

/* Groups are 0 to n - 1. */
struct group_totals *group_totals_create(size_t n);

/* Accepts NULL. */
void group_totals_destroy(struct group_totals *totals);

/* mark saves all counts; undo restores them. */
void group_totals_mark(struct group_totals *totals);
void group_totals_undo(struct group_totals *totals);

/* Returns the counts: *n elements, one for each group; none for NULL. */
const struct duplicate_counts *group_totals_counts(const struct group_totals *totals, size_t *n);

/* Returns the part's counts of a group, to add to; valid until the next call. */
struct duplicate_counts *group_counts_of(struct group_counts *part, struct group_totals *totals,
                                         size_t group);

/* Adds what the part has collected to the totals, and empties it. */
void group_counts_end(struct group_counts *part, struct group_totals *totals);

/* ---- reports ---- */

/* Estimates the number of molecules in the library, as Picard and samtools do. n_pairs: without
   optical duplicates; n_unique_pairs: without any duplicates. Returns 0 if unknown. */
uint64_t duplicate_library_size(uint64_t n_pairs, uint64_t n_unique_pairs);

/* Writes the report of samtools markdup, byte for byte. For MultiQC, the command must contain
   "samtools markdup" and, in a text report, no colon. groups NULL: counts has one element; else one
   for group 0 and one for each ID. The totals come first, then a section for each group; group 0
   has one only if it has records. */
void markdup_stats_write(FILE *to, bool json, const char *command,
                         const struct duplicate_counts *counts, const struct read_groups *groups);

/* Writes the metrics of Picard MarkDuplicates. counts[i] belongs to library i. The unknown library
   is left out if it has no records and there are others. started: start time, as text. */
void markdup_metrics_write(FILE *to, const char *command, const char *started,
                           const struct duplicate_counts *counts, const struct read_groups *groups);

#endif
