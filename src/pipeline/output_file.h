/*
 * output_file.h -- one sorted file and its index: opened, written in order, closed, committed.
 *
 * Order of calls: create_index, before segments are made; open; write, for each stretch of a
 * segment; end, if all is written; then close. Threads: one at a time. Errors: -1 after a message.
 */
#ifndef ROCKSORT_PIPELINE_OUTPUT_FILE_H
#define ROCKSORT_PIPELINE_OUTPUT_FILE_H

#include "output/bam_index.h"
#include "output/bam_writer.h"
#include "columns/column_notes.h"
#include "store/temp_streams.h"

#include <pthread.h>

/* The notes of a file of columns (column_notes.h): in memory, and when that is full in a temporary
   file without a name. 1.5 billion reads in 512 MiB of memory become 54,000 row groups, whose notes
   take 70 MB. */
struct output_notes {           /* starts as {0}; must not move */
    struct column_notes notes;
    struct temp_streams *streams;
    struct temp_stream_reader reader;
};

/* Memory for the notes of a file; and of a piece, of which many may be open. */
enum { OUTPUT_NOTES_BYTES = 1 << 20, OUTPUT_NOTES_PIECE_BYTES = 64 << 10 };

void output_notes_begin(struct output_notes *notes, size_t memory_bytes,
                        const struct temp_places *places);

/* Accepts notes that were not begun. */
void output_notes_release(struct output_notes *notes);

struct output_file {            /* starts as {settings} */
    struct output_settings settings;
    size_t notes_bytes;         /* with columns: memory for notes; where others go: */
    const struct temp_places *places;
    struct bam_index *index;    /* NULL: none, or htslib makes it */
    struct bam_writer *writer;
    struct output_notes notes;  /* with columns */
    pthread_t pump_thread;      /* CRAM only */
    bool pump_runs;
    bool is_ended;              /* nothing more can be written */
};

/* True if the index of this name is a BAI, else it is a CSI. */
bool output_index_is_bai(const char *name);

/* Makes the index to which stretches add their parts. */
int output_file_create_index(struct output_file *file, sam_hdr_t *header);

/* Opens the file, about raw_bytes of records, and writes the header. */
int output_file_open(struct output_file *file, sam_hdr_t *header, uint64_t raw_bytes);

/* Writes bytes, or the records of CRAM, that hold raw_bytes of records. `part` is of these bytes;
   it is looked at only if there is an index. */
int output_file_write(struct output_file *file, const uint8_t *bytes, size_t n_bytes,
                      uint64_t raw_bytes, const struct bam_index_part *part);

/* Adds to the index, if there is one, the part of a file whose blocks from byte `begin` on will be
   written as they are (bam_writer_write_bytes). */
int output_file_copy_index(struct output_file *file, const struct bam_index_part *part,
                           uint64_t begin);

/* Writes the end of a complete file, and closes that. After a failure it is to be closed as one that
   is not complete. */
int output_file_end(struct output_file *file);

/* Commits the file, if output_file_end has completed it, and writes and commits the index; else
   removes it. Returns 0 if both is well. A complete file stays if only its index fails. */
int output_file_close(struct output_file *file, bool complete, struct output_result *result);

#endif
