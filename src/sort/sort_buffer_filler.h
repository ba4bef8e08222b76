/*
 * sort_buffer_filler.h -- assigns places in sort buffers to records, and submits the jobs that copy
 * them there.
 *
 * One job for each place copies the records, checks them and makes their entries. When a sort
 * buffer is frozen and all these jobs are done, one more job sorts it. After a failure jobs do
 * nothing.
 *
 * Order of calls: begin; room, make_room and place in turns; end; release. Threads: the loader's.
 * Errors: -1 after a message.
 */
#ifndef ROCKSORT_SORT_SORT_BUFFER_FILLER_H
#define ROCKSORT_SORT_SORT_BUFFER_FILLER_H

#include "sort/sort_context.h"

struct sort_buffer_filler {     /* read-only outside of sort_buffer_filler.c */
    const struct sort_context *sort;
    struct sort_buffer *buffer; /* current sort buffer; NULL: none yet */
    struct input_position at;   /* after the last placed record */
    uint64_t n_bytes;           /* of records read, for an estimate; set by callers */
};

/* Records to place. */
struct placed_records {
    const uint8_t *at;
    size_t n_bytes, n_records;
    uint64_t first;             /* number of the first one, or RECORD_NUMBER_UNKNOWN */
    const char *input;          /* its name in messages */
    struct input_position end;  /* after these records */
    unsigned *n_users;          /* count of users of their memory, under the lock */
    void (*drop)(void *owner);  /* removes a user; called with the lock held */
    void *owner;
};

/* Returns 0, or -1. */
int sort_buffer_filler_begin(struct sort_buffer_filler *filler, const struct sort_context *sort);

/* The bytes of records that still fit in the current sort buffer. */
size_t sort_buffer_filler_room(const struct sort_buffer_filler *filler);

/* Takes a new sort buffer with room for at least n_bytes. */
int sort_buffer_filler_make_room(struct sort_buffer_filler *filler, size_t n_bytes);

/* Places records in the current sort buffer, which must have room for them. */
int sort_buffer_filler_place(struct sort_buffer_filler *filler,
                             const struct placed_records *records);

/* Freezes the last sort buffer. */
void sort_buffer_filler_end(struct sort_buffer_filler *filler);

/* After a failure, with no job left: frees the current sort buffer, if any. */
void sort_buffer_filler_release(struct sort_buffer_filler *filler);

#endif
