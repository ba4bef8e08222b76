/*
 * batch_filler.h -- gives records that were read a place in a batch, and has workers take them in.
 *
 * One job for each place copies the records there, checks them and makes their entries. When a
 * batch is closed and all these jobs are done, one more job sorts it. After a failure jobs do no
 * work.
 *
 * Order of calls: begin; room, make_room and place in turns; end; release. Threads: the loader's.
 * Errors: -1 after a message.
 */
#ifndef ROCKSORT_PIPELINE_BATCH_FILLER_H
#define ROCKSORT_PIPELINE_BATCH_FILLER_H

#include "pipeline/sort_context.h"

struct batch_filler {           /* for reading, but for batch_filler.c */
    const struct sort_context *sort;
    struct batch *batch;        /* NULL: none was taken yet */
    struct input_position at;   /* after the last record that was placed */
    uint64_t n_bytes;           /* of records that were read, for an estimate; set by the callers */
};

/* Records that are to be placed. */
struct placed_records {
    const uint8_t *at;
    size_t n_bytes, n_records;
    uint64_t first;             /* number of the first one, or RECORD_NUMBER_UNKNOWN */
    const char *input;          /* its name in messages */
    struct input_position end;  /* after these records */
    unsigned *n_users;          /* of their memory, under the lock */
    void (*drop)(void *owner);  /* removes a user; called with the lock */
    void *owner;
};

/* Returns 0, or -1. */
int batch_filler_begin(struct batch_filler *filler, const struct sort_context *sort);

/* How many bytes of records the batch at hand has room for. */
size_t batch_filler_room(const struct batch_filler *filler);

/* Takes another batch, with room for n_bytes at least. */
int batch_filler_make_room(struct batch_filler *filler, size_t n_bytes);

/* Places records in the batch at hand, which has room for them. */
int batch_filler_place(struct batch_filler *filler, const struct placed_records *records);

/* Closes the last batch. */
void batch_filler_end(struct batch_filler *filler);

/* With no job left: frees the batch at hand, if there is one after a failure. */
void batch_filler_release(struct batch_filler *filler);

#endif
