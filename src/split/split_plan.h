/*
 * split_plan.h -- which piece of the output a record belongs to (--split-by).
 *
 * By place, the genome is divided into spans, one after the other; each belongs to a piece, and a
 * piece may have several spans, if a BED file gives several intervals one name. Intervals that
 * overlap must have one name. A record belongs to the span in which it begins. By tag, records of
 * one value are a piece; in the order that the sort has then (SORT_TAG) they follow each other.
 *
 * Pieces that are known before a record was read have numbers. Those of the header or the BED file
 * come first, in the order there, then those of records that belong to none of them: SPLIT_OUTSIDE
 * of all intervals, SPLIT_UNPLACED without a reference, SPLIT_NO_VALUE of the tag. Other values of a
 * tag become pieces when they are met (sorted_output.h).
 *
 * Order of calls: create; with SPLIT_RANGES set_ranges; then any thread may ask. Errors: NULL after
 * a message.
 */
#ifndef ROCKSORT_SPLIT_SPLIT_PLAN_H
#define ROCKSORT_SPLIT_SPLIT_PLAN_H

#include "split/piece_list.h"
#include "split/range_counts.h"
#include "split/split_request.h"

#include <htslib/sam.h>
#include <stdbool.h>

#define SPLIT_UNPLACED "unplaced"
#define SPLIT_OUTSIDE "outside"
#define SPLIT_NO_VALUE "none"

struct split_plan;

/* Says that there would be more than SPLIT_MOST_PIECES pieces. */
void split_plan_refuse(enum split_kind kind);

/* Adds the pieces that are known to an empty list. */
struct split_plan *split_plan_create(const struct split_request *request, sam_hdr_t *header,
                                     struct piece_list *pieces);

/* Accepts NULL. */
void split_plan_destroy(struct split_plan *plan);

/* Divides the genome into the ranges that were asked for. */
void split_plan_set_ranges(struct split_plan *plan, const struct range_counts *counts);

enum split_kind split_plan_kind(const struct split_plan *plan);

/* How many pieces are known, and which is that of records without a value. */
size_t split_plan_n_pieces(const struct split_plan *plan);
size_t split_plan_none(const struct split_plan *plan);

/* Where a range begins, "chr1:4001"; the caller frees it. NULL if the piece is no range, or if no
   record can belong to it, because the next range begins there or no reference is left. */
char *split_plan_range_begin(const struct split_plan *plan, size_t piece, const sam_hdr_t *header);

/* The memory that its spans take; the pieces are not in it. */
size_t split_plan_bytes(const struct split_plan *plan);

/* How many pieces have begun and will go on, at the most, while records come by place. */
size_t split_plan_most_open(const struct split_plan *plan);

/* True if no span of the piece comes after this one. */
bool split_plan_ends(const struct split_plan *plan, size_t piece, size_t span);

/* Where records are. Starts as {0}. */
struct split_cursor {
    const uint8_t *record;      /* the last one; NULL: there was none */
    size_t span;                /* by place: its span */
    size_t piece;               /* by place: its piece */
};

/* Moves the cursor to a record, which comes after that before it in the order of the sort and
   outlives the cursor. Returns true if both belong to the same piece. */
bool split_cursor_move(struct split_cursor *cursor, const struct split_plan *plan,
                       const uint8_t *rec);

/* By tag: the value of a record as it is compared (bam_key_tag.h, which has its text). The caller
   frees it. */
uint8_t *split_plan_value(const struct split_plan *plan, const uint8_t *rec, size_t *n_bytes);

#endif
