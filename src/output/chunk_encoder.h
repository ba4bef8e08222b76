/*
 * chunk_encoder.h -- the bytes of an output chunk in the format of one output: what workers make of
 * its merged records.
 *
 * Bytes are gathered in spans. With --split-by a span ends where a group of the output does.
 *
 * One worker at a time makes the output of an output chunk; nothing else is shared but the form.
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

#include <stdatomic.h>

/* What all output chunks of one output share. */
struct output_form {
    unsigned number;            /* of the output, below MOST_OUTPUTS */
    const struct output_file *file;     /* its settings and its index */
    size_t column_batch_bytes;  /* of records: a batch of columns ends when it has as many */
    _Atomic size_t
        room_hint; /* bytes of the largest output chunk so far, and a margin; starts as 0 */
};

/* The records of an output chunk, in order. */
struct chunk_records {
    const struct sort_rules *rules;
    sam_hdr_t *header;          /* of the output */
    const struct split_plan *split;     /* NULL: the output is one group */
    const struct sort_entry *entries;
    size_t n_entries;
    /* The first output restores the records (bam_sort_key.h), adds them to the sum and counts those
       that are written. For others `is_first` is false. */
    bool is_first;
    struct content_sum *sum;
    struct observed_parts *observed;
};

/* Records that belong to the same group of the output and follow each other. In BAM and compressed
   SAM they begin a BGZF block. */
struct output_span {
    size_t begin, end;          /* their bytes in the output of the output chunk */
    uint64_t n_records, raw_bytes;      /* that are written */
    struct bam_index_part part; /* of the index, if one is written; counted from `begin` */
    size_t group, span;         /* split by place (split_plan.h) */
    struct column_bytes notes;  /* Arrow and Parquet: of its sort buffers (column_encoder_put),
                                   counted  from `begin`; owned */
    uint8_t *value;             /* split by tag; owned */
    size_t value_bytes;
};

struct chunk_encoder {          /* starts as {0} */
    uint8_t *bytes;             /* owned; NULL: there are none */
    size_t n_bytes, room;
    /* In formats that may take several times as much as the records: of its lines of SAM, or of its
       largest batch of columns before it is encoded; else 0. */
    size_t large_bytes;
    struct output_span *spans;          /* one, if the output is one group */
    size_t n_spans, spans_room;
};

/* Makes the output. Returns 0, or -1 after a message. */
int chunk_encoder_make(struct chunk_encoder *out, struct output_form *form,
                       const struct chunk_records *records, struct worker *worker);

void chunk_encoder_release(struct chunk_encoder *out);

#endif
