/*
 * arrow_message.h -- record batches as Arrow IPC has them: the bytes of streams and files (Arrow
 * Columnar Format, "Serialization and Interprocess Communication").
 *
 * A stream is: the message of the schema; one of the names of all references, the dictionary of
 * rname and rnext; a message a batch; the mark of the end. A file is a mark of the beginning, a
 * stream, and a footer, which says where each batch is.
 *
 * Functions append to `out`, which the caller frees. Messages take a multiple of 8 bytes and must
 * begin at one.
 *
 * Threads: a coder is used by one thread at a time.
 */
#ifndef ROCKSORT_COLUMNS_ARROW_MESSAGE_H
#define ROCKSORT_COLUMNS_ARROW_MESSAGE_H

#include "columns/column_batch.h"
#include "columns/flat_buffer.h"

/* The memory of one thread that makes messages. Starts as {0}. */
struct arrow_coder {
    struct flat_buffer flat;
    void *zstd;                 /* a ZSTD_CCtx */
    void *lz4;                  /* an LZ4F_cctx */
};

void arrow_coder_release(struct arrow_coder *coder);

/* Where a message lies in a file. */
struct arrow_place {
    uint64_t at;                /* in the file; of a new message, in `out` */
    uint32_t metadata_bytes;
    uint64_t body_bytes;
};

/* A file holds these bytes before the stream, and the end of a file after its mark of the end. */
void arrow_put_file_begin(struct column_bytes *out);

void arrow_put_schema(struct arrow_coder *coder, const struct column_schema *schema,
                      sam_hdr_t *header, struct column_bytes *out);

/* The names of the header's references. */
struct arrow_place arrow_put_references(struct arrow_coder *coder, sam_hdr_t *header,
                                        struct column_bytes *out);

struct arrow_place arrow_put_batch(struct arrow_coder *coder, const struct encoded_batch *batch,
                                   struct column_bytes *out);

void arrow_put_stream_end(struct column_bytes *out);

/* The end of a file: put_file_end, the places of its batches, each as put_place puts it, and
   put_file_end_after. references: NULL if no column has their names. put_file_end returns how many
   bytes it has put. */
size_t arrow_put_file_end(struct arrow_coder *coder, const struct column_schema *schema,
                          sam_hdr_t *header, const struct arrow_place *references, size_t n_buffers,
                          struct column_bytes *out);
enum { ARROW_PLACE_BYTES = 24 };
void arrow_put_place(uint8_t *to, const struct arrow_place *place);
void arrow_put_file_end_after(size_t end_bytes, size_t n_buffers, struct column_bytes *out);

#endif
