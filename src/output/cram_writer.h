/*
 * cram_writer.h -- writes records as CRAM with htslib, and its index.
 *
 * htslib's output goes through a pump (cram_pump.h), which needs a thread of its own.
 *
 * Order of calls: create; pump, in its thread; start; write, in sorted order; check and end;
 * write_index, if the output is complete, when the pump's thread has ended; destroy. Ownership: the
 * writer borrows what its settings point to. Threads: one, besides the pump's. Errors: -1 after a
 * message that names the output.
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
    /* Says why writing to the target failed, by errno. Returns -1. */
    int (*explain)(void *arg);
    void *arg;
};

/* NULL after a message. */
struct cram_writer *cram_writer_create(void);

/* Runs the pump; returns after cram_writer_end was called, even if that failed. */
void cram_writer_pump(struct cram_writer *writer);

/* Begins the file, and writes the header. Returns -1 with errno set if there was no message. */
int cram_writer_start(struct cram_writer *writer, const struct cram_writer_settings *settings);

/* Writes whole records in BAM format. */
int cram_writer_write(struct cram_writer *writer, const uint8_t *records, size_t n_bytes);

/* Call this after the last write. Writes the EOF container only if the output is complete. */
int cram_writer_end(struct cram_writer *writer, bool complete);

/* Reports the error of the pump, which htslib does not see. */
int cram_writer_check(struct cram_writer *writer);

/* Writes and commits the index, if there is one. */
int cram_writer_write_index(const struct cram_writer *writer);

/* Call this when the pump's thread has ended. Accepts NULL. */
void cram_writer_destroy(struct cram_writer *writer);

#endif
