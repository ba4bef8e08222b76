/*
 * bam_writer.h -- output: BAM and SAM as ready-made bytes, CRAM record by record.
 *
 * The file gets its name (output_path.h) when it is complete.
 *
 * Order of calls: create, start, write in sorted order, end, then close, or abort, which removes
 * what was written. CRAM needs a thread of its own from create to end, in which bam_writer_pump
 * runs (cram_pump.h), and which has ended before close or abort. Otherwise one thread at a time.
 * Errors: -1 after a message that names the file.
 */
#ifndef ROCKSORT_OUTPUT_BAM_WRITER_H
#define ROCKSORT_OUTPUT_BAM_WRITER_H

#include "output/output_path.h"

#include <htslib/sam.h>
#include <htslib/thread_pool.h>
#include <stdbool.h>

struct bam_writer;

struct bam_writer_settings {
    const struct output_path *path;     /* NULL: standard output */
    const struct output_path *index_path;       /* CRAM: also write an index there; or NULL */
    htsThreadPool *pool;        /* CRAM is encoded there */
    htsFormat format;           /* from bam_writer_choose_format */
    int level;                  /* 0-9, -1: default of the format */
    uint64_t raw_bytes;         /* of all records, uncompressed: tells how much is to come */
};

/*
 * Chooses the format from the argument of -O (NULL: none), else from the extension of the path,
 * else BAM. Returns 0, or -1 after a message. The caller frees format->specific with hts_opt_free.
 */
int bam_writer_choose_format(const char *option, const char *path, htsFormat *format);

/* True if the format takes bytes as they will stand in the file, false if it takes records. */
bool bam_writer_takes_bytes(const htsFormat *format);

/* Prepares to write; touches no file yet. NULL after a message. The path outlives the writer. */
struct bam_writer *bam_writer_create(const struct bam_writer_settings *settings);

/* True if bam_writer_pump must run; it returns after bam_writer_end. */
bool bam_writer_needs_pump(const struct bam_writer *writer);
void bam_writer_pump(struct bam_writer *writer);

/* Opens the file and writes the header, which outlives the writer. May block on a named pipe. */
int bam_writer_start(struct bam_writer *writer, sam_hdr_t *header);

/* Writes BGZF blocks or, for uncompressed SAM, text. */
int bam_writer_write_bytes(struct bam_writer *writer, const uint8_t *bytes, size_t n_bytes);

/* What is written next holds so many bytes of raw records; for messages about a full disk. */
void bam_writer_expect(struct bam_writer *writer, uint64_t raw_bytes);

/* BAM and SAM: offset in the file of what will be written next. */
uint64_t bam_writer_position(const struct bam_writer *writer);

/* Writes a sequence of whole raw records. */
int bam_writer_write_records(struct bam_writer *writer, const uint8_t *records, size_t n_bytes);

/* Nothing more will be written. Unless it is complete nothing is written that looks like an end. */
int bam_writer_end(struct bam_writer *writer, bool complete);

/* What a writer's file came to be. */
struct bam_writer_result {
    uint64_t n_bytes;           /* size of the file, if known */
    bool lost_reader;           /* writing failed because nobody reads standard output any more */
};

/* Closes the file, renames it and frees the writer, also on failure; no file is left then. */
int bam_writer_close(struct bam_writer *writer, struct bam_writer_result *result);

/* Gives up; NULL is accepted. */
void bam_writer_abort(struct bam_writer *writer, struct bam_writer_result *result);

#endif
