/*
 * segment_output.h -- the bytes of a segment in the format of one output: what workers make of its
 * merged records.
 *
 * Bytes are gathered in stretches. With --split-by a stretch ends where a piece of the output does.
 *
 * One worker at a time makes the output of a segment; nothing else is shared but the form.
 */
#ifndef ROCKSORT_PIPELINE_SEGMENT_OUTPUT_H
#define ROCKSORT_PIPELINE_SEGMENT_OUTPUT_H

#include "bam/bgzf_engine.h"
#include "bam/content_sum.h"
#include "bam_sort_key.h"
#include "columns/column_file.h"
#include "pipeline/crew.h"
#include "pipeline/output_file.h"
#include "pipeline/record_observers.h"
#include "split/split_plan.h"

#include <stdatomic.h>

/* What all segments of one output share. */
struct output_form {
    unsigned number;            /* of the output, below MOST_OUTPUTS */
    const struct output_file *file;     /* its settings and its index */
    size_t column_batch_bytes;  /* of records: a batch of columns ends when it has as many */
    _Atomic size_t room_hint;   /* bytes of the largest segment so far, and a margin; starts as 0 */
};

/* The records of a segment, in order. */
struct segment_records {
    const struct sort_rules *rules;
    sam_hdr_t *header;          /* of the output */
    const struct split_plan *split;     /* NULL: the output is one piece */
    const struct sort_entry *entries;
    size_t n_entries;
    /* The first output restores the records (bam_sort_key.h), adds them to the sum and counts those
       that are written. For others `is_first` is false. */
    bool is_first;
    struct content_sum *sum;
    struct observed_parts *observed;
};

/* Records that belong to the same piece of the output and follow each other. In BAM and compressed
   SAM they begin a BGZF block. */
struct segment_stretch {
    size_t begin, end;          /* their bytes in the output of the segment */
    uint64_t n_records, raw_bytes;      /* that are written */
    struct bam_index_part part; /* of the index, if one is written; counted from `begin` */
    size_t piece, span;         /* split by place (split_plan.h) */
    struct column_bytes notes;  /* Arrow and Parquet: of its batches (column_encoder_put), counted
                                   from `begin`; owned */
    uint8_t *value;             /* split by tag; owned */
    size_t value_bytes;
};

struct segment_output {         /* starts as {0} */
    uint8_t *bytes;             /* owned; NULL: there are none */
    size_t n_bytes, room;
    /* In formats that may take several times as much as the records: of its lines of SAM, or of its
       largest batch of columns before it is encoded; else 0. */
    size_t large_bytes;
    struct segment_stretch *stretches;  /* one, if the output is one piece */
    size_t n_stretches, stretches_room;
};

/* Makes the output. Returns 0, or -1 after a message. */
int segment_output_make(struct segment_output *out, struct output_form *form,
                        const struct segment_records *records, struct worker *worker);

void segment_output_release(struct segment_output *out);

#endif
