/*
 * split_plan.h -- decides to which output group each record belongs (--split-by).
 *
 * By place: the genome is divided into consecutive spans. Each belongs to one group; a group has
 * several spans if a BED file gives several intervals the same name. Overlapping intervals must
 * have the same name. A record belongs to the span in which it starts. By tag: the records with one
 * value are a group; the sort order (SORT_TAG) makes them consecutive.
 *
 * Groups known before the first record is read have numbers. Groups of the header or the BED file
 * come first, in that order, then groups for the other records: SPLIT_OUTSIDE (outside all
 * intervals), SPLIT_UNPLACED (no reference), SPLIT_NO_VALUE (tag missing). Other values of a tag
 * become groups when they are first seen (sorted_output.h).
 *
 * Order of calls: create; with SPLIT_RANGES set_ranges; then any thread may call the rest. Errors:
 * NULL after a message.
 */
#ifndef ROCKSORT_SPLIT_SPLIT_PLAN_H
#define ROCKSORT_SPLIT_SPLIT_PLAN_H

#include "bam/record_observer.h"
#include "split/group_list.h"

#include <htslib/sam.h>
#include <stdatomic.h>
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

/* ---- ranges of about equal size ---- */

/*
 * Counts the bytes of records in RANGE_COUNTS_WINDOWS windows of the genome, plus a shorter one at
 * the end of each reference. Windows of a human genome have 47,000 bases; the counts take less than
 * a megabyte. Several threads may add records at the same time; divide only after that.
 */
enum { RANGE_COUNTS_WINDOWS = 1 << 16 };

struct range_counts {
    struct record_observer base;        /* an observer of the input, which destroys it */
    int64_t window_bases;
    int32_t n_refs;
    size_t *first_window;       /* of each reference, and the total at the end */
    _Atomic uint64_t *bytes;    /* of records that begin in each window */
};

struct range_counts *range_counts_create(const sam_hdr_t *header);

struct range_place {
    int32_t tid;
    int64_t pos;
};

/* Sets begins[i] to the start of range i of n; the first is the start of the first reference. */
void range_counts_divide(const struct range_counts *counts, unsigned n,
                         struct range_place *begins);

/* ---- the plan ---- */

/* Kept small: 100,000 intervals make 200,000 spans. */
struct split_span {
    int64_t pos;                /* start; the span ends where the next one starts */
    int32_t tid;
    uint32_t group;
};

struct split_plan {             /* constant after create and set_ranges */
    struct split_request request;
    size_t n_groups;            /* known before the first record is read */
    uint32_t *last_span;        /* by place: the last span of each known group */
    struct split_span *spans;
    size_t n_spans, spans_room;
    size_t most_open;           /* by place: maximum number of groups open at the same time */
};

/* Prints that there would be more than SPLIT_MOST_GROUPS groups. */
void split_plan_refuse(enum split_kind kind);

/* Makes the plan, and adds the known groups to an empty list. */
struct split_plan *split_plan_create(const struct split_request *request, sam_hdr_t *header,
                                     struct group_list *groups);

/* Accepts NULL. */
void split_plan_destroy(struct split_plan *plan);

/* Divides the genome into the requested ranges. */
void split_plan_set_ranges(struct split_plan *plan, const struct range_counts *counts);

/* The group of records without a value. */
static inline size_t split_plan_none(const struct split_plan *plan)
{
    return plan->n_groups - 1;
}

/* The start of a range, "chr1:4001"; the caller frees it. NULL if the group is not a range, or an
   empty one, at the start of the next range or after the references. */
char *split_plan_range_begin(const struct split_plan *plan, size_t group, const sam_hdr_t *header);

/* The memory of the spans, without the groups. */
size_t split_plan_bytes(const struct split_plan *plan);

/* True if no span of the group comes after this one. */
bool split_plan_ends(const struct split_plan *plan, size_t group, size_t span);

/* The position of the current record in the plan. Starts as {0}. */
struct split_cursor {
    const uint8_t *record;      /* the current one; NULL before the first */
    size_t span;                /* by place: its span */
    size_t group;               /* by place: its group */
};

/* Moves the cursor to the next record in sort order, which must outlive the cursor. Returns true if
   it belongs to the same group as the record before. */
bool split_cursor_move(struct split_cursor *cursor, const struct split_plan *plan,
                       const uint8_t *rec);

/* Makes an observer of the input that fails after a message if the tag has more than
   SPLIT_MOST_GROUPS values, so that --split-by stops before it writes too many files. Values are
   counted by a hash of their first 512 bytes, so some may be missed. Takes a megabyte. */
struct record_observer *split_values_observer(const char tag[2]);

/* By tag: the value of a record in comparable form (bam_key_tag.h, which turns it into text). The
   caller frees it. */
uint8_t *split_plan_value(const struct split_plan *plan, const uint8_t *rec, size_t *n_bytes);

#endif
