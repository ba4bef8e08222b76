/*
 * output_notes.h -- keeps the notes of a file of columns (column_bytes.h): in memory, and when that
 * is full in a temporary file without a name.
 *
 * 1.5 billion reads in 512 MiB of memory become 54,000 row groups, whose notes take 70 MB.
 *
 * Threads: one at a time. Errors: messages, as temp_streams.h.
 */
#ifndef ROCKSORT_PIPELINE_OUTPUT_NOTES_H
#define ROCKSORT_PIPELINE_OUTPUT_NOTES_H

#include "columns/column_bytes.h"
#include "store/temp_streams.h"

/* Memory for the notes of a file; and of a piece, of which many may be open. */
enum { OUTPUT_NOTES_BYTES = 1 << 20, OUTPUT_NOTES_PIECE_BYTES = 64 << 10 };

struct output_notes {           /* starts as {0}; must not move */
    struct column_notes notes;
    struct temp_streams *streams;
    struct temp_stream_reader reader;
};

/* memory_bytes: that the notes may take. */
void output_notes_begin(struct output_notes *notes, size_t memory_bytes,
                        const struct temp_places *places);

/* Accepts notes that were not begun. */
void output_notes_release(struct output_notes *notes);

#endif
