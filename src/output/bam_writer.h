/*
 * bam_writer.h -- writes the output: BAM, SAM, Arrow and Parquet from bytes that workers have
 * made, CRAM from records.
 *
 * Output is written under a temporary name and renamed when it is complete (output_path.h).
 *
 * Order of calls: create; start; write in sorted order; end; close; then commit. Or, at any time
 * before commit, abort, which removes what was written.
 *
 * Ownership: the writer borrows what its settings point to, and the header.
 * Threads: one at a time. CRAM needs a second thread between create and end: bam_writer_pump runs
 * in it (cram_pump.h), and it must have ended before close or abort.
 * Errors: -1 or NULL after a message that names the file.
 */
#ifndef ROCKSORT_OUTPUT_BAM_WRITER_H
#define ROCKSORT_OUTPUT_BAM_WRITER_H

#include "bam/bgzf_engine.h"
#include "columns/column_file.h"
#include "output/output_format.h"
#include "output/output_path.h"

#include <htslib/sam.h>
#include <htslib/thread_pool.h>
#include <stdbool.h>

struct bam_writer;

/* The header as bytes of the file. Files with the same header share it: the first one makes it.
   Starts as {0}; the owner frees `bytes`. */
struct bam_writer_header {
    uint8_t *bytes;
    size_t n_bytes, room;
};

struct output_settings {
    struct output_path *path;           /* its name is NULL: standard output */
    struct output_path *index_path;     /* its name is NULL: no index. CRAM: written here */
    bool index_is_bai;          /* else it is a CSI; the same for all pieces of an output */
    struct output_format format;
    struct bgzf_method method;  /* CRAM: only its level, 0-9, or -1: the default */
    htsThreadPool *pool;        /* CRAM: htslib encodes there */
    const struct column_output *columns;        /* of Arrow and Parquet; else NULL */
    struct cram_doubt *doubt;   /* of the records of CRAM so far */
    struct bam_writer_header *shared_header;    /* BAM and SAM; NULL: the file has its own */
};

/* Prepares to write about raw_bytes of records, which messages about a full disk say; makes no file
   yet. notes: with columns. */
struct bam_writer *bam_writer_create(const struct output_settings *settings, uint64_t raw_bytes,
                                     const struct column_notes *notes);

/* True if bam_writer_pump must run in a thread of its own. bam_writer_pump returns after
   bam_writer_end was called, whatever that returned. */
bool bam_writer_needs_pump(const struct bam_writer *writer);
void bam_writer_pump(struct bam_writer *writer);

/* Opens the file and writes the header. May block on a named pipe. */
int bam_writer_start(struct bam_writer *writer, sam_hdr_t *header);

/* Writes BGZF blocks or, for uncompressed SAM, text. */
int bam_writer_write_bytes(struct bam_writer *writer, const uint8_t *bytes, size_t n_bytes);

/* Arrow and Parquet: tells the writer what the next write has; the places of these notes
   (column_file.h) are counted from its begin, and changed. */
int bam_writer_note_batches(struct bam_writer *writer, struct column_bytes *notes);

/* Tells the writer that the next write holds raw_bytes of records; for messages about a full
   disk. */
void bam_writer_expect(struct bam_writer *writer, uint64_t raw_bytes);

/* BAM and SAM: where in the file the next write goes. */
uint64_t bam_writer_position(const struct bam_writer *writer);

/* Writes a sequence of whole records, as BAM has them. */
int bam_writer_write_records(struct bam_writer *writer, const uint8_t *records, size_t n_bytes);

/* Call this after the last write. The mark of the end of the file is written only if the output is
   complete. */
int bam_writer_end(struct bam_writer *writer, bool complete);

struct output_result {
    uint64_t n_bytes;           /* size of the file, if known */
    bool lost_reader;           /* the program that reads standard output closed it */
};

/* Closes the file: all is written. */
int bam_writer_close(struct bam_writer *writer);

/* Commits the file that was closed, sends the index of CRAM if that is a URL, and frees the writer.
   On failure removes the file, unless only the index failed, and frees the writer. */
int bam_writer_commit(struct bam_writer *writer, struct output_result *result);

/* Closes the file if that was not done, removes it and frees the writer. Accepts NULL. */
void bam_writer_abort(struct bam_writer *writer, struct output_result *result);

#endif
