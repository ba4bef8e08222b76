/*
 * arrow_message.h -- writes Arrow IPC streams and files (Arrow Columnar Format, "Serialization and
 * Interprocess Communication").
 *
 * A stream consists of a schema message, a dictionary message (reference names, for rname and
 * rnext), one message for each record batch, and an end marker. A file consists of a magic number,
 * a stream, and a footer with the place of each batch.
 *
 * Functions append to `out`, which the caller frees. The size of a message is a multiple of 8, and
 * so must be its place.
 *
 * Threads: one at a time for each coder.
 */
#ifndef ROCKSORT_COLUMNS_ARROW_MESSAGE_H
#define ROCKSORT_COLUMNS_ARROW_MESSAGE_H

#include "columns/column_batch.h"
#include "columns/flat_buffer.h"

/* Scratch memory of a thread that makes messages. Starts as {0}. */
struct arrow_coder {
    struct flat_buffer flat;
    void *zstd;                 /* a ZSTD_CCtx */
    void *lz4;                  /* an LZ4F_cctx */
};

void arrow_coder_release(struct arrow_coder *coder);

/* The place of a message in a file, as it is in the footer (Block in Arrow's File.fbs; this machine
   is little-endian). */
struct arrow_place {
    uint64_t at;                /* in the file; of a new message, in `out` */
    uint64_t metadata_bytes;    /* 32 bits, and 32 of padding */
    uint64_t body_bytes;
};

/* Appends the bytes of a file that precede the stream. */
void arrow_put_file_begin(struct byte_buffer *out);

void arrow_put_schema(struct arrow_coder *coder, const struct column_schema *schema,
                      sam_hdr_t *header, struct byte_buffer *out);

/* Appends the dictionary of reference names. */
struct arrow_place arrow_put_references(struct arrow_coder *coder, sam_hdr_t *header,
                                        struct byte_buffer *out);

struct arrow_place arrow_put_batch(struct arrow_coder *coder, const struct encoded_batch *batch,
                                   struct byte_buffer *out);

void arrow_put_stream_end(struct byte_buffer *out);

/* Write the end of a file: call put_file_end; write the places of n_batches; call
   put_file_end_after. references NULL: no column has reference names. put_file_end returns the
   number of bytes that it has appended. */
size_t arrow_put_file_end(struct arrow_coder *coder, const struct column_schema *schema,
                          sam_hdr_t *header, const struct arrow_place *references, size_t n_batches,
                          struct byte_buffer *out);
void arrow_put_file_end_after(size_t end_bytes, size_t n_batches, struct byte_buffer *out);

#endif
