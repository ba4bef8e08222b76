/*
 * sorted_output.h -- the output of a sort and its index: opened, written in order, closed, named.
 *
 * Order of calls: create_index, before segments are made; open; write, for each segment; close.
 * Threads: one at a time. Errors: -1 after a message.
 */
#ifndef ROCKSORT_PIPELINE_SORTED_OUTPUT_H
#define ROCKSORT_PIPELINE_SORTED_OUTPUT_H

#include "output/bam_writer.h"
#include "pipeline/segment.h"

struct output_settings {
    struct output_path *path;           /* its name is NULL: standard output */
    struct output_path *index_path;     /* its name is NULL: no index */
    htsFormat format;
    struct bgzf_method method;
    htsThreadPool *pool;        /* CRAM: htslib encodes there */
};

struct sorted_output {          /* starts as {settings} */
    struct output_settings settings;
    struct bam_index *index;    /* NULL: none, or htslib makes it */
    struct bam_writer *writer;
    pthread_t pump_thread;      /* CRAM only */
    bool pump_runs;
};

/* What became of the output. */
struct output_result {
    uint64_t n_bytes;
    bool lost_reader;           /* the program that reads standard output closed it */
};

/* Makes the index to which segments add their parts: BAI if its name ends so, else CSI. */
int sorted_output_create_index(struct sorted_output *out, sam_hdr_t *header);

/* Opens the output, about raw_bytes of records, and writes the header. */
int sorted_output_open(struct sorted_output *out, sam_hdr_t *header, uint64_t raw_bytes);

int sorted_output_write(struct sorted_output *out, const struct segment *segment);

/* Writes BGZF blocks as they are. With an index, sorted_output_copy_index comes first: `part` is of
   the file whose blocks from byte `begin` on will be written. */
int sorted_output_copy(struct sorted_output *out, const uint8_t *blocks, size_t n_bytes);
int sorted_output_copy_index(struct sorted_output *out, const struct bam_index_part *part,
                             uint64_t begin);

/* Closes the output. If it is complete it gets its name, and the index is written; else it is
   removed. Returns 0 if both is well. A complete output stays if only its index fails. */
int sorted_output_close(struct sorted_output *out, bool complete, struct output_result *result);

#endif
