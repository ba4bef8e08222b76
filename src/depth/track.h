/*
 * track.h -- collects values along references as the sections of a file: sorted runs of equal value
 * and, at up to ten zoom levels, their summaries in windows; parts are made and encoded in workers.
 *
 * An *item* is a run (level 0) or the summary of a window (levels from 1 on; each window is four
 * times as long as those of the level below). Up to 1024 items are encoded together: a *section*.
 * The last run of a part and the first one of the next may be one run, and both may lie in one
 * window or bin. So the ends of a part stay as items, and the track joins them with those of its
 * neighbours; all other items are encoded in the worker.
 *
 * Sections of level 0 are written at once. Those of other levels, and all if the scale is not known
 * before the end, are kept on tapes (os/tape.h) until track_finish.
 *
 * Order of calls: track_part_create, track_part_add in order, track_part_end, in a worker; then
 * track_take of the parts in order; at last track_finish. Threads: a part and a track each have one
 * owner at a time. Errors: -1 after a message.
 */
#ifndef ROCKSORT_DEPTH_TRACK_H
#define ROCKSORT_DEPTH_TRACK_H

#include "bam/bgzf_engine.h"
#include "os/tape.h"
#include "os/thread_pool.h"
#include "util/byte_buffer.h"

#include <htslib/sam.h>

enum { TRACK_MOST_ITEMS = 1024, TRACK_MOST_LEVELS = 11 };

struct track_item {
    int64_t tid, begin, end;
    uint64_t n_bases;           /* with a value; those of other bases count as missing, not as 0 */
    double min, max, sum, squares;      /* of the values; sums over bases */
};

struct track_section {          /* items of one reference; of several on levels from 1 on */
    int64_t tid, begin;         /* of the first item */
    int64_t last_tid, end;      /* of the last item */
    uint32_t n_items, n_bytes;
};

/* Appends the bytes of a section to `out`. */
typedef int track_encode_fn(const void *settings, struct bgzf_coder *coder, unsigned level,
                            const struct track_item *items, size_t n, struct byte_buffer *out);

struct track_settings {
    const sam_hdr_t *header;    /* names and lengths of the references */
    int64_t bin_bases;          /* values are means over bins of this length; 1: there are none */
    double scale;               /* factor of all values; 0: known at the end */
    unsigned n_levels;
    int64_t windows[TRACK_MOST_LEVELS]; /* [1] and higher */
    track_encode_fn *encode;    /* gets encode_arg and scaled items */
    const void *encode_arg;
    /* Writes a section, or ends a level after its last section (NULL). */
    int (*write)(void *arg, unsigned level, const struct track_section *section,
                 const uint8_t *bytes);
    void *write_arg;
    const struct temp_places *places;
    size_t tape_bytes;          /* of memory */
    struct threads *threads;    /* encode at the end; NULL: the caller's does */
};

/* ---- parts ---- */

struct track_part;

/* The settings outlive the part. */
struct track_part *track_part_create(const struct track_settings *settings);

/* Adds a value of [begin, end), which lie after all before. Runs of 0 may be left out. */
void track_part_add(struct track_part *part, int32_t tid, int64_t begin, int64_t end, double value);

int track_part_end(struct track_part *part);

/* Accepts NULL. */
void track_part_destroy(struct track_part *part);

/* ---- the track ---- */

struct track;

struct track *track_create(const struct track_settings *settings);
void track_destroy(struct track *track);

/* Adds a part and frees it. */
int track_take(struct track *track, struct track_part *part);

/* Writes what is left. Leaves out zoom levels that have more than half as many items as the last
   one that is written. scale: if that of the settings is 0. Stores the summary of all values. */
int track_finish(struct track *track, double scale, struct track_item *all);

#endif
