/*
 * cram_writer.h -- writes records as CRAM with htslib, and its index.
 *
 * Order of calls: start; write, in sorted order; end; write_index, if the output is complete;
 * destroy. Ownership: the writer borrows what its settings point to. Threads: one. Errors: -1 after
 * a message that names the output.
 */
#ifndef ROCKSORT_OUTPUT_CRAM_WRITER_H
#define ROCKSORT_OUTPUT_CRAM_WRITER_H

#include "output/cram_check.h"
#include "output/output_path.h"

#include <htslib/sam.h>
#include <htslib/thread_pool.h>

struct cram_writer;

struct cram_writer_settings {
    const char *name;           /* of the output, for messages */
    hFILE *target;              /* where the CRAM goes */
    sam_hdr_t *header;
    const htsFormat *format;    /* with its options */
    int level;                  /* 0-9, or -1: the default */
    htsThreadPool *pool;        /* htslib encodes there */
    struct cram_doubt *doubt;   /* of the records so far */
    struct output_path *index_path;     /* NULL: no index */
    /* Prints why writing to the target failed (errno). Returns -1. */
    int (*explain)(void *arg);
    void *arg;
};

/* Begins the file, and writes the header. *to: the writer, also on failure. Returns -1 with errno
   set if there was no message. */
int cram_writer_start(const struct cram_writer_settings *settings, struct cram_writer **to);

/* Writes whole records in BAM format. */
int cram_writer_write(struct cram_writer *writer, const uint8_t *records, size_t n_bytes);

/* Call this after the last write, or after a failure. Writes the EOF container only if the output
   is complete. */
int cram_writer_end(struct cram_writer *writer, bool complete);

/* Writes and commits the index, if there is one. */
int cram_writer_write_index(const struct cram_writer *writer);

/* Call this after end. Accepts NULL. */
void cram_writer_destroy(struct cram_writer *writer);

#endif
