/*
 * chunk_encoder.h -- encodes the merged records of an output chunk in the format of one output.
 *
 * The bytes are divided into spans. With --split-by a span ends where a group ends.
 *
 * Threads: one worker at a time for each chunk_encoder; workers share only the output_file.
 */
#ifndef ROCKSORT_OUTPUT_CHUNK_ENCODER_H
#define ROCKSORT_OUTPUT_CHUNK_ENCODER_H

#include "bam/bgzf_engine.h"
#include "bam/content_sum.h"
#include "bam_sort_key.h"
#include "columns/column_file.h"
#include "os/thread_pool.h"
#include "output/output_file.h"
#include "spill/record_observers.h"
#include "split/split_plan.h"

/* The records of an output chunk, in order. */
struct chunk_records {
    const struct sort_rules *rules;
    sam_hdr_t *header;          /* of the output */
    const struct split_plan *split;     /* NULL: the output is one group */
    const struct sort_entry *entries;
    size_t n_entries;
    unsigned output;            /* its number, below MOST_OUTPUTS */
    /* For output 0 only, which restores the records (bam_sort_key.h), adds them to the sum, and
       shows the observers those that are written. */
    struct content_sum *sum;
    struct observed_parts *observed;
};

/* Consecutive records of the same group. In BAM and compressed SAM a span begins a BGZF block. */
struct output_span {
    size_t begin, end;          /* in chunk_encoder.bytes */
    uint64_t n_records, raw_bytes;      /* written */
    struct bam_index_part part; /* of the index, if one is written; counted from `begin` */
    size_t group, span;         /* split by place (split_plan.h) */
    struct byte_buffer metadata;       /* of its column batches (column_encoder_put), counted from
                                           `begin`; owned */
    uint8_t *value;             /* split by tag; owned */
    size_t value_bytes;
};

struct chunk_encoder {          /* starts as {0} */
    uint8_t *bytes;             /* owned; NULL if empty */
    size_t n_bytes, room;
    /* Size of the SAM lines, or of the largest column batch before it is encoded: these may take
       several times as much memory as the records. Else 0. */
    size_t large_bytes;
    struct output_span *spans;          /* one, if the output is one group */
    size_t n_spans, spans_room;
};

/* Encodes all records. Returns 0, or -1 after a message. */
int chunk_encoder_make(struct chunk_encoder *out, struct output_file *file,
                       const struct chunk_records *records, struct worker *worker);

void chunk_encoder_release(struct chunk_encoder *out);

#endif
