/*
 * split_plan.h -- which group of the output a record belongs to (--split-by).
 *
 * By place, the genome is divided into spans, one after the other; each belongs to a group, and a
 * group may have several spans, if a BED file gives several intervals one name. Intervals that
 * overlap must have one name. A record belongs to the span in which it begins. By tag, records of
 * one value are a group; in the order that the sort has then (SORT_TAG) they follow each other.
 *
 * Groups that are known before a record was read have numbers. Those of the header or the BED file
 * come first, in the order there, then those of records that belong to none of them: SPLIT_OUTSIDE
 * of all intervals, SPLIT_UNPLACED without a reference, SPLIT_NO_VALUE of the tag. Other values of
 * a tag become groups when they are met (sorted_output.h).
 *
 * Order of calls: create; with SPLIT_RANGES set_ranges; then any thread may ask. Errors: NULL after
 * a message.
 */
#ifndef ROCKSORT_SPLIT_SPLIT_PLAN_H
#define ROCKSORT_SPLIT_SPLIT_PLAN_H

#include "split/group_list.h"
#include "split/range_counts.h"

#include <htslib/sam.h>
#include <stdbool.h>

#define SPLIT_UNPLACED "unplaced"
#define SPLIT_OUTSIDE "outside"
#define SPLIT_NO_VALUE "none"

enum split_kind {
    SPLIT_NONE,
    SPLIT_CONTIG,               /* a group for each reference */
    SPLIT_BED,                  /* a group for each name in a BED file */
    SPLIT_RANGES,               /* groups of about the same size, by position */
    SPLIT_READ_GROUP,           /* a group for each read group */
    SPLIT_TAG,                  /* a group for each value of a tag */
};

enum { SPLIT_MOST_GROUPS = 100000 };

struct split_request {
    enum split_kind kind;
    const char *bed;            /* SPLIT_BED: the file; borrowed from the argument */
    unsigned n_ranges;          /* SPLIT_RANGES */
    char tag[2];                /* SPLIT_TAG, SPLIT_READ_GROUP */
};

/* Parses the argument of --split-by. Returns 0, or -1 after a message. */
int split_request_parse(const char *text, struct split_request *request);

/* True if groups are parts of the genome, false if they are values of a tag. */
static inline bool split_is_by_place(enum split_kind kind)
{
    return kind == SPLIT_CONTIG || kind == SPLIT_BED || kind == SPLIT_RANGES;
}

static inline bool split_is_by_tag(enum split_kind kind)
{
    return kind == SPLIT_READ_GROUP || kind == SPLIT_TAG;
}

/* There may be 100,000 intervals, with two spans each: these are as small as they can be. */
struct split_span {
    int64_t pos;                /* where it begins; it ends where the next one begins */
    int32_t tid;
    uint32_t group;
};

struct split_plan {             /* fixed once it is made, and ranges are set */
    struct split_request request;
    size_t n_groups;            /* that are known */
    uint32_t *last_span;        /* by place: of each of them */
    struct split_span *spans;
    size_t n_spans, spans_room;
    size_t most_open;           /* by place: groups that are open at the same time, at the most */
};

/* Says that there would be more than SPLIT_MOST_GROUPS groups. */
void split_plan_refuse(enum split_kind kind);

/* Adds the groups that are known to an empty list. */
struct split_plan *split_plan_create(const struct split_request *request, sam_hdr_t *header,
                                     struct group_list *groups);

/* Accepts NULL. */
void split_plan_destroy(struct split_plan *plan);

/* Divides the genome into the ranges that were asked for. */
void split_plan_set_ranges(struct split_plan *plan, const struct range_counts *counts);

/* The group of records without a value. */
static inline size_t split_plan_none(const struct split_plan *plan)
{
    return plan->n_groups - 1;
}

/* Where a range begins, "chr1:4001"; the caller frees it. NULL if the group is no range, or if no
   record can belong to it, because the next range begins there or no reference is left. */
char *split_plan_range_begin(const struct split_plan *plan, size_t group, const sam_hdr_t *header);

/* The memory that its spans take; the groups are not in it. */
size_t split_plan_bytes(const struct split_plan *plan);

/* True if no span of the group comes after this one. */
bool split_plan_ends(const struct split_plan *plan, size_t group, size_t span);

/* Where records are. Starts as {0}. */
struct split_cursor {
    const uint8_t *record;      /* the last one; NULL: there was none */
    size_t span;                /* by place: its span */
    size_t group;               /* by place: its group */
};

/* Moves the cursor to a record, which comes after that before it in the order of the sort and
   outlives the cursor. Returns true if both belong to the same group. */
bool split_cursor_move(struct split_cursor *cursor, const struct split_plan *plan,
                       const uint8_t *rec);

/* An observer of the input that counts the values of the tag, and fails after a message if there
   are more than SPLIT_MOST_GROUPS: so --split-by finds out early that it would write too many
   files. A value counts by the hash of its first 512 bytes, so there may be more values than are
   counted. Takes a megabyte. */
struct record_observer *split_values_observer(const char tag[2]);

/* By tag: the value of a record as it is compared (bam_key_tag.h, which has its text). The caller
   frees it. */
uint8_t *split_plan_value(const struct split_plan *plan, const uint8_t *rec, size_t *n_bytes);

#endif
