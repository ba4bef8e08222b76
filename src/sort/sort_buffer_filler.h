/*
 * sort_buffer_filler.h -- gives records that were read a place in a sort buffer, and has workers
 * take them in.
 *
 * One job for each place copies the records there, checks them and makes their entries. When a
 * sort buffer is closed and all these jobs are done, one more job sorts it. After a failure jobs do
 * no work.
 *
 * Order of calls: begin; room, make_room and place in turns; end; release. Threads: the loader's.
 * Errors: -1 after a message.
 */
#ifndef ROCKSORT_SORT_SORT_BUFFER_FILLER_H
#define ROCKSORT_SORT_SORT_BUFFER_FILLER_H

#include "sort/sort_context.h"

struct sort_buffer_filler {     /* for reading, but for sort_buffer_filler.c */
    const struct sort_context *sort;
    struct sort_buffer *buffer; /* NULL: none was taken yet */
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
int sort_buffer_filler_begin(struct sort_buffer_filler *filler, const struct sort_context *sort);

/* How many bytes of records the sort buffer at hand has room for. */
size_t sort_buffer_filler_room(const struct sort_buffer_filler *filler);

/* Takes another sort buffer, with room for n_bytes at least. */
int sort_buffer_filler_make_room(struct sort_buffer_filler *filler, size_t n_bytes);

/* Places records in the sort buffer at hand, which has room for them. */
int sort_buffer_filler_place(struct sort_buffer_filler *filler,
                             const struct placed_records *records);

/* Closes the last sort buffer. */
void sort_buffer_filler_end(struct sort_buffer_filler *filler);

/* With no job left: frees the sort buffer at hand, if there is one after a failure. */
void sort_buffer_filler_release(struct sort_buffer_filler *filler);

#endif
