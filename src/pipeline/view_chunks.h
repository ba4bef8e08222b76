/*
 * view_chunks.h -- chunks of views (duplicates/view_streams.h) in temporary streams.
 *
 * Threads: one at a time appends; any number may read, each with a reader of its own.
 */
#ifndef ROCKSORT_PIPELINE_VIEW_CHUNKS_H
#define ROCKSORT_PIPELINE_VIEW_CHUNKS_H

#include "duplicates/view_streams.h"
#include "store/temp_streams.h"

/* Appends chunks, each with its view_chunk_head, to their streams. Returns 0, or -1 after a
   message. */
int view_chunks_append(struct temp_streams *views, const uint8_t *chunks, size_t n_bytes);

/* Begins to read the next chunk of a stream; it is there until the next call. Returns 1, 0 if there
   is none, or -1 after a message. */
int view_chunks_next(struct temp_stream_reader *reader, struct view_chunk *chunk);

#endif
