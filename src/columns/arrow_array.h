/*
 * arrow_array.h -- takes the values of columns out of the body of a batch, decompressed, laid out
 * as the field says (arrow_field.h). Nothing in them has been checked but that it lies in the body.
 *
 * Order of calls: arrow_body_open; for each field of the schema, in its order, arrow_array_read or
 * arrow_array_skip; arrow_body_release. After a false, arrow_body_problem says what is wrong.
 *
 * Ownership: an array owns its bytes. The body borrows those of the message.
 * Threads: any, on different bodies.
 */
#ifndef ROCKSORT_COLUMNS_ARROW_ARRAY_H
#define ROCKSORT_COLUMNS_ARROW_ARRAY_H

#include "columns/arrow_field.h"
#include "columns/column_bytes.h"

#include <lz4frame.h>

enum { ARROW_MOST_BUFFERS = 3 };

/* All values of a batch may take so much, decompressed: a few bytes may claim to be many. */
#define ARROW_MOST_BATCH_BYTES ((uint64_t)2 << 30)

struct arrow_array {
    uint64_t n_rows, n_nulls;
    struct column_bytes buffers[ARROW_MOST_BUFFERS];    /* validity first, if the type has one */
    struct column_bytes *texts;         /* of views: where the long texts lie */
    size_t n_texts;
    struct arrow_array *children;
    unsigned n_children;
};

struct arrow_body {
    struct flat_items nodes, buffers, view_counts;
    size_t node, buffer, view;          /* the next ones */
    const uint8_t *bytes;
    size_t n_bytes;
    int codec;                          /* -1: none */
    LZ4F_dctx *lz4;
    uint64_t bytes_left;                /* that the values may still take */
    const char *problem;
};

/* batch: the table RecordBatch of the message. bytes: its body. */
void arrow_body_open(struct arrow_body *body, const struct flat_table *batch, const uint8_t *bytes,
                     size_t n_bytes);
void arrow_body_release(struct arrow_body *body);

/* Reads the values of a field. The array is to be released in any case. */
bool arrow_array_read(struct arrow_body *body, const struct arrow_field *field,
                      struct arrow_array *array);
void arrow_array_release(struct arrow_array *array);

/* Goes over the values of a field. */
bool arrow_array_skip(struct arrow_body *body, const struct arrow_field *field);

/* Counts n_bytes of memory for values of this batch. Returns false if there would be too many. */
bool arrow_body_take(struct arrow_body *body, uint64_t n_bytes);

/* Notes what is wrong with the batch, unless something was noted before. Returns false. */
bool arrow_body_fail(struct arrow_body *body, const char *problem);

#endif
