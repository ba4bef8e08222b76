/*
 * view_chunks.h -- chunks of views (duplicates/view_streams.h) in temporary streams.
 *
 * Streams with a number below VIEW_N_STREAMS are those in which duplicates are looked for. The
 * others, for reads that wait for a barcode, lie apart: they are read while the first are written,
 * and the other way round, and of one temp_streams only one is possible.
 */
#ifndef ROCKSORT_PIPELINE_VIEW_CHUNKS_H
#define ROCKSORT_PIPELINE_VIEW_CHUNKS_H

#include "duplicates/view_streams.h"
#include "store/temp_streams.h"

/* Appends chunks, each with its view_chunk_head, to their streams. waiting: VIEW_N_BARCODE_STREAMS,
   or NULL if no chunk is for them. One thread at a time. Returns 0, or -1 after a message. */
int view_chunks_append(struct temp_streams *views, struct temp_streams *waiting,
                       const uint8_t *chunks, size_t n_bytes);

/* Begins to read the next chunk of a stream; it is there until the next call. Returns 1, 0 if there
   is none, or -1 after a message. */
int view_chunks_next(struct temp_stream_reader *reader, struct view_chunk *chunk);

#endif
