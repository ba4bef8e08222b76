/*
 * stats_depth.h -- computes what --stats says about the places of records in coordinate order: the
 * distribution of depths, the bins of GC content and depth, and whether the records are sorted.
 *
 * Depth. samtools counts it in a ring of positions that begins at the last record. The ring has
 * 1500 positions, or five times the length of the read that last made it grow. Bases beyond its
 * end, after a long intron, are counted at its beginning, and when it grows, some of its counts are
 * lost. So the numbers depend on the order of records, and are only the same if they are counted in
 * the same way. But they are sums: a worker counts the records of a part in an empty ring, and
 * keeps the depths of the first positions, as many as a ring has. combine adds those that earlier
 * records left in the ring. If the ring of the worker had the wrong size, or grew, or if a count
 * remains in its last position at the end of a reference, combine counts the records of the part
 * again.
 *
 * Bins. Each begins at the first record after the end of the last one, and the sum of GC contents
 * in it has single precision. combine adds the records one by one, which takes a nanosecond for
 * each.
 *
 * Order of calls: a worker adds the places of a part, then counts them: stats_part_start,
 * stats_part_count. stats_depth_start; stats_depth_combine for all parts in their order;
 * stats_depth_end. A struct stats_places starts as {0}.
 */
#ifndef ROCKSORT_STATS_STATS_DEPTH_H
#define ROCKSORT_STATS_STATS_DEPTH_H

#include "bam/fasta_reference.h"
#include "stats/stats_options.h"
#include "stats/stats_overlaps.h"

#include <stdbool.h>

enum { STATS_FEWEST_BASES = 300 };      /* the initial value of n_bases of a ring */

struct depth_span {             /* covered positions */
    uint32_t gap;               /* after the last span, or after the position of the record */
    uint32_t n;
};

struct stats_place {            /* a mapped record */
    int64_t pos;
    int32_t tid;
    uint32_t n_spans;
    float gc;                   /* without a reference: the share of G and C */
    uint32_t n_bases;           /* from pos, as samtools counts them: read and deleted ones */
};

struct stats_places {           /* of a part, in order */
    struct stats_place *at;
    size_t n, room;
    struct stats_mate *mates;   /* of each place; only to remove overlaps */
    size_t mates_room;
    struct depth_span *spans;
    size_t n_spans, spans_room;
    /* Records with more bases than all earlier ones: the ring may grow before a place. */
    struct long_read {
        size_t place;
        uint32_t n_bases;
    } *longer;
    size_t n_longer, longer_room;
    uint32_t most_bases;
};

struct depth_ring {             /* starts with stats_ring_start */
    int64_t pos;                /* of its first position */
    int32_t tid;
    uint32_t n_bases;           /* grows for reads with at least as many bases */
    uint32_t size, start;
    int64_t depth;              /* at the first position */
    int32_t *steps;             /* changes of the depth; at `start`: that after the last one */
    uint32_t n_used;            /* positions after the first one that may have a step */
};

struct stats_bin {
    float gc;                   /* sum of its reads, or of its reference */
    uint32_t depth;             /* records */
};

struct depth_part {             /* what a worker has counted */
    struct depth_ring ring;
    int32_t *first;             /* depths of the first positions, as many as the ring has */
    uint64_t n_positions;       /* that have left the ring */
    uint64_t *depths;           /* [stats_depth_index] of the other ones */
    bool is_unsorted;           /* a place comes before the last one of its reference */
    bool is_renumbered;         /* a reference has ended */
    bool needs_order;           /* must be counted again by combine */
    bool needs_last;            /* the same, if the last position of the ring is in use before it */
};

struct stats_depth {            /* of the output; starts with stats_depth_start */
    const struct stats_options *options;
    struct depth_ring ring;
    bool is_sorted;
    struct stats_overlaps *overlaps;            /* NULL: they are not removed */
    /* The last record and the bins. */
    int32_t tid;
    int64_t pos, bin_pos;       /* -1: none yet */
    struct stats_bin *bins;
    size_t n_bins, bins_room;
    /* The part of the reference that samtools holds, and the size of its memory for it. */
    struct fasta_window *reference;             /* NULL: none */
    int64_t window_pos, window_end, window_bases;
    uint32_t n_bases;           /* as that of the ring */
    uint64_t *depths;           /* [stats_depth_index] */
};

/* Adds a mapped record, without spans; then n positions, `gap` after the last span. */
void stats_places_add(struct stats_places *places, const struct stats_place *place);
void stats_places_span(struct stats_places *places, int64_t gap, uint32_t n);

/* Adds the length of a read, mapped or not, before its place: the ring may grow. */
void stats_places_length(struct stats_places *places, uint32_t n_bases);

void stats_places_release(struct stats_places *places);

/* Starts a part, with a ring of the size that that of the output has now. */
void stats_part_start(struct depth_part *part, uint32_t n_bases, uint32_t size);

/* Counts a part in its ring. */
void stats_part_count(struct depth_part *part, const struct stats_places *places,
                      const struct stats_options *options);

void stats_part_release(struct depth_part *part);

/* `reference`, or NULL, is owned by the caller. */
void stats_depth_start(struct stats_depth *depth, const struct stats_options *options,
                       struct fasta_window *reference);

/* Adds a part. Returns 0, or -1 after a message. */
int stats_depth_combine(struct stats_depth *depth, const struct depth_part *part,
                        const struct stats_places *places);

/* Counts what is left in the ring, after the last part. */
void stats_depth_end(struct stats_depth *depth);

void stats_depth_release(struct stats_depth *depth);

#endif
