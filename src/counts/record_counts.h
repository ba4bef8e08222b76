/*
 * record_counts.h -- the counts that a sort can make of its output on the way: those of
 * flagstat.h, idxstats.h and coverage.h.
 *
 * Order of calls: create, with the counts that are wanted. For each segment of the output:
 * part_create, part_add for each record as it is written and in its order, part_end, all by the
 * worker that makes the segment; then join, in the order of the segments; part_destroy.
 * finish after the last join; print; destroy.
 * Threads: a part has one owner at a time; so has the sum but for part_create, part_add and
 * part_end, which several threads may call with different parts. No errors.
 */
#ifndef ROCKSORT_COUNTS_RECORD_COUNTS_H
#define ROCKSORT_COUNTS_RECORD_COUNTS_H

#include "counts/coverage.h"
#include "counts/flagstat.h"
#include "counts/idxstats.h"

enum count_kind {
    COUNT_FLAGSTAT,
    COUNT_IDXSTATS,
    COUNT_COVERAGE,             /* only in an order in which references and positions ascend */
    COUNT_N_KINDS
};

/* "flagstat", "idxstats", "coverage": the option without its dashes. */
const char *count_kind_name(enum count_kind kind);

struct record_counts {
    sam_hdr_t *header;          /* of the output, borrowed */
    bool has_flagstat;
    struct flagstat flagstat;
    struct idxstats *idxstats;  /* NULL: not wanted */
    struct coverage *coverage;  /* NULL: not wanted */
};

struct record_counts_part {
    struct record_counts *all;
    struct flagstat flagstat;   /* set at the end */
    struct flagstat_part *flags;        /* NULL: not wanted, or the part has ended */
    struct idxstats_part *refs;         /* NULL: not wanted, or the part has ended */
    struct coverage_part *coverage;     /* NULL: not wanted */
};

/* Returns NULL if nothing is wanted. The header must stay as it is. */
struct record_counts *record_counts_create(const bool wanted[COUNT_N_KINDS], sam_hdr_t *header);

/* NULL is accepted. */
void record_counts_destroy(struct record_counts *counts);

/* Returns NULL if counts is NULL. */
struct record_counts_part *record_counts_part_create(struct record_counts *counts);

/* Adds a checked record; nothing happens if the part is NULL. */
static inline void record_counts_part_add(struct record_counts_part *part, const uint8_t *rec)
{
    if (!part) return;
    if (part->flags) flagstat_part_add(part->flags, rec);
    if (part->refs) idxstats_part_add(part->all->idxstats, part->refs, rec);
    if (part->coverage) coverage_part_add(part->coverage, rec);
}

/* After the last record of a segment. NULL is accepted. */
void record_counts_part_end(struct record_counts_part *part);

/* NULL is accepted. */
void record_counts_part_destroy(struct record_counts_part *part);

/* Adds a part that has ended. Nothing happens if the part is NULL. */
void record_counts_join(const struct record_counts_part *part);

void record_counts_finish(struct record_counts *counts);

/* Prints counts that were wanted. The caller looks at the errors of the stream. */
void record_counts_print(const struct record_counts *counts, enum count_kind kind, FILE *to);

#endif
