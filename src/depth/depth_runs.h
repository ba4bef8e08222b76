/*
 * depth_runs.h -- computes the depth of records in coordinate order as runs of equal depth, in
 * parts and without an array of the reference.
 *
 * Workers add the intervals of the records of one part; the result is a list of *steps* for each
 * reference: the positions where the depth of the part's own records changes. Depth is a sum, so
 * steps of different parts are merged by adding their changes. Records reach into later parts. So
 * depth_join, which gets the parts in order, merges the steps of a part with those of earlier
 * records, calls a function for each run that ends before the last record of the part begins, and
 * keeps all later steps. Where no earlier record reaches (depth_join_is_clear), the runs are those
 * that a worker can compute from the part alone.
 *
 * Order of calls: in a worker depth_part_add_record for each record that counts, then
 * depth_part_add for each of its intervals; depth_part_end. For each piece of the part in order: if
 * its reference is not that of the last one, depth_join_finish and depth_join_begin;
 * depth_join_is_clear; depth_join_add_piece. Structs start as {0}.
 *
 * Memory: 8 bytes for each end of an interval of one reference of a part (twice while they are
 * sorted), 16 bytes for each step. depth_join keeps the steps at or after the begin of the last
 * record. Threads: each struct has one owner at a time. Nothing can fail.
 */
#ifndef ROCKSORT_DEPTH_DEPTH_RUNS_H
#define ROCKSORT_DEPTH_DEPTH_RUNS_H

#include "util/xalloc.h"

#include <stdbool.h>
#include <stdint.h>

struct depth_step {             /* the depth changes at a position */
    int64_t pos;
    int64_t change;             /* not 0 */
};

struct depth_steps {            /* in order of position; each position once */
    struct depth_step *at;
    size_t n, room;
};

/* ---- parts ---- */

struct depth_piece {            /* the records of a part on one reference */
    int32_t tid;
    int64_t last_begin;         /* where the last record begins */
    size_t first_step, n_steps;         /* in the part's steps */
};

struct depth_part {
    struct depth_piece *pieces;
    size_t n_pieces, pieces_room;
    struct depth_steps steps;
    /* of the last piece: position * 2, + 1 if the depth falls */
    uint64_t *events;
    size_t n_events, events_room;
};

/* Begins a record, which begins at pos or later, on a reference. */
void depth_part_add_record(struct depth_part *part, int32_t tid, int64_t pos);

/* Adds 1 to the depth of [begin, end), or -1 if it is_less. The caller cuts intervals to the
   reference. */
static inline void depth_part_add(struct depth_part *part, int64_t begin, int64_t end, bool is_less)
{
    if (begin >= end) return;
    if (part->n_events + 2 > part->events_room)
        xgrow(&part->events, &part->events_room, part->n_events + 2, part->n_events + 1024,
              sizeof *part->events);
    part->events[part->n_events++] = (uint64_t)begin << 1 | is_less;
    part->events[part->n_events++] = (uint64_t)end << 1 | !is_less;
}

/* Makes the steps of the last piece. */
void depth_part_end(struct depth_part *part);

void depth_part_release(struct depth_part *part);

static inline const struct depth_step *depth_piece_steps(const struct depth_part *part,
                                                         const struct depth_piece *piece)
{
    return part->steps.at + piece->first_step;
}

/* ---- parts in order ---- */

struct depth_run {              /* [begin, end), as long as possible */
    int64_t begin, end;
    int64_t depth;
};

typedef void depth_run_fn(void *arg, const struct depth_run *run);

struct depth_join {
    struct depth_run run;       /* the run that has not ended; `end` is not set */
    struct depth_steps open;    /* not in it yet */
    depth_run_fn *visit;        /* set by the caller: gets the runs in order */
    void *arg;
};

/* Begins a reference, at position 0 and depth 0. */
void depth_join_begin(struct depth_join *join);

/* True if no record of earlier pieces reaches into [begin, end], and no step of theirs is at
   `begin` or `end`. Call it before depth_join_add_piece. *from is 0 at first; successive calls,
   with intervals in order, pass it on. */
struct depth_cursor {
    size_t at;                  /* in `open` */
    int64_t depth;
};
bool depth_join_is_clear(const struct depth_join *join, struct depth_cursor *from, int64_t begin,
                         int64_t end);

/* Merges n more steps into those that are open. None is before the end of the last run. */
void depth_join_add(struct depth_join *join, const struct depth_step *steps, size_t n);

/* Adds the steps of a piece, or NULL for none, and visits all runs that end before `until`: no
   later record begins before that. */
void depth_join_add_piece(struct depth_join *join, const struct depth_part *part,
                          const struct depth_piece *piece, int64_t until);

/* Ends a reference of n_bases: visits the remaining runs. They cover the whole reference. */
void depth_join_finish(struct depth_join *join, int64_t n_bases);

void depth_join_release(struct depth_join *join);

#endif
