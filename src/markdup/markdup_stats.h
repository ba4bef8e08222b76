/*
 * markdup_stats.h -- what --markdup counts, and its reports: in the form of samtools markdup -f,
 * as text or JSON, and in that of Picard MarkDuplicates (--metrics), which MultiQC reads.
 *
 * Counts are kept for each read group or library (read_groups.h), group 0 first, or in one array
 * element for all records. The caller checks streams with ferror.
 */
#ifndef ROCKSORT_MARKDUP_MARKDUP_STATS_H
#define ROCKSORT_MARKDUP_MARKDUP_STATS_H

#include "markdup/read_groups.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct duplicate_counts {       /* of records; both reads of a pair count. All are uint64_t */
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

/* ---- the counts of all groups, to which many jobs add ---- */

/*
 * A header may have a hundred thousand read groups, so all jobs share one array of counts. A job
 * collects the counts of some groups in a *part*, and adds them to the array when another group
 * takes the place, and at the end.
 *
 * Order of calls: group_totals_create; parts, which start as {0}: group_counts_of for each record,
 * group_counts_end, group_counts_release; group_totals_counts when all parts have ended;
 * group_totals_destroy. group_totals_mark and group_totals_undo only while all parts have ended or
 * were released. Threads: a part has one owner at a time.
 */

enum { GROUP_COUNTS_PLACES = 128 };     /* at most, of a part: 15 KiB; a power of two */

struct group_totals;

struct group_place {
    size_t group;
    struct duplicate_counts counts;
};

struct group_counts {           /* a part */
    struct group_place *places; /* NULL: nothing was counted */
    size_t mask;                /* the number of places less one */
};

/* Groups are 0 to n - 1. */
struct group_totals *group_totals_create(size_t n);

/* NULL is accepted. */
void group_totals_destroy(struct group_totals *totals);

/* Remembers all counts; and makes them again what they were then. */
void group_totals_mark(struct group_totals *totals);
void group_totals_undo(struct group_totals *totals);

/* One element for each group; of NULL none. */
const struct duplicate_counts *group_totals_counts(const struct group_totals *totals, size_t *n);

/* The part's counts of a group, to add to; until the next call. */
struct duplicate_counts *group_counts_of(struct group_counts *part, struct group_totals *totals,
                                         size_t group);

/* Adds all that the part still has, and makes it empty. */
void group_counts_end(struct group_counts *part, struct group_totals *totals);

/* Frees the part, and forgets what it still has. */
void group_counts_release(struct group_counts *part);

/* ---- reports ---- */

/* The number of molecules in the library, by how many pairs were seen again, as Picard and samtools
   estimate it: of all pairs but optical duplicates, and of those that are no duplicates. 0: it
   cannot be estimated. */
uint64_t duplicate_library_size(uint64_t n_pairs, uint64_t n_unique_pairs);

/* Writes the report of samtools markdup, byte for byte. MultiQC wants the words "samtools markdup"
   in the command line, and as text no colon. Without `groups`, counts has one element; else that of
   group 0, and one for each ID. Each group gets a part after that of their sum; group 0 only if it
   has records. */
void markdup_stats_write(FILE *to, bool json, const char *command,
                         const struct duplicate_counts *counts, const struct read_groups *groups);

/* Writes the metrics of Picard MarkDuplicates. counts[i] is of library i; the unknown library is
   left out if it has no records and there are others. started: when the sort began, as text. */
void duplicate_metrics_write(FILE *to, const char *command, const char *started,
                             const struct duplicate_counts *counts,
                             const struct read_groups *groups);

#endif
