/*
 * mosdepth_part.h -- the work of mosdepth that workers do: the depth of the records of a part, and
 * the compressed lines of per-base.bed.gz where no record of earlier parts reaches.
 *
 * Order of calls: init; add for each record in order; end; the fields; release. Threads: one owner
 * at a time. The rules do not change.
 */
#ifndef ROCKSORT_DEPTH_MOSDEPTH_PART_H
#define ROCKSORT_DEPTH_MOSDEPTH_PART_H

#include "depth/bed_output.h"
#include "depth/depth_runs.h"
#include "depth/mate_overlaps.h"
#include "depth/mosdepth_options.h"

#include <stdbool.h>

struct mosdepth_rules {
    const sam_hdr_t *header;
    const struct mosdepth_options *options;
    const bool *is_skipped;     /* of each reference; NULL: none is */
};

struct per_base_text {          /* lines of [begin, end), which end where the depth changes */
    struct bed_text text;
    int64_t begin, end;
    size_t piece;               /* of the depth */
};

struct mosdepth_part {
    const struct mosdepth_rules *rules;
    struct depth_part depth;    /* has a piece for each reference with records, counted or not */
    struct mate_part mates;
    struct per_base_text *texts;
    size_t n_texts, texts_room;
    int64_t n_bases;            /* of the last reference */
    struct span *spans;         /* of a record */
    size_t spans_room;
    bool failed;                /* after a message */
};

void mosdepth_part_init(struct mosdepth_part *part, const struct mosdepth_rules *rules);
void mosdepth_part_add(struct mosdepth_part *part, const uint8_t *rec);
void mosdepth_part_end(struct mosdepth_part *part);
void mosdepth_part_release(struct mosdepth_part *part);

/* Appends the line of a run. */
void per_base_line(struct bed_text *text, const char *name, int32_t tid,
                   const struct depth_run *run);

#endif
