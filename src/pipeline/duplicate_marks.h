/*
 * duplicate_marks.h -- one bit for each record of each run: is it a duplicate?
 *
 * The records of all runs are counted through; bits lie in this order. If they fit into the memory
 * that is given, they are there. Else jobs note down the numbers of marked records in streams
 * (store/temp_streams.h), one for each stretch of records; when all are there, the bits are made of
 * them, some at a time, and go to a temporary file.
 *
 * Order of calls: create; add_run for each run; begin; set; end; find; destroy. Threads: any may
 * set, and later find; one makes the other calls.
 */
#ifndef ROCKSORT_PIPELINE_DUPLICATE_MARKS_H
#define ROCKSORT_PIPELINE_DUPLICATE_MARKS_H

#include "store/temp_streams.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct duplicate_marks;

/* memory_bytes: that bits may take, or else what is written to a file. */
struct duplicate_marks *duplicate_marks_create(size_t memory_bytes,
                                               const struct temp_places *places);

/* NULL is accepted. */
void duplicate_marks_destroy(struct duplicate_marks *marks);

/* Tells that a run has at least n_records. */
void duplicate_marks_add_run(struct duplicate_marks *marks, uint32_t run, uint32_t n_records);

/* All runs are known. Returns the bytes of memory that marks take until `end`. */
size_t duplicate_marks_begin(struct duplicate_marks *marks);

/* The number of a record, counted through all runs; and of all records. After begin. */
uint64_t duplicate_marks_number(const struct duplicate_marks *marks, uint32_t run, uint64_t index);
uint64_t duplicate_marks_count(const struct duplicate_marks *marks);

/*
 * Marks a record, which should be done once. Returns 1; or 0 if it was marked already, which is
 * seen in memory only; or -1 after a message.
 */
int duplicate_marks_set(struct duplicate_marks *marks, uint32_t run, uint32_t index);

/* Nothing more is marked. Takes up to memory_bytes while it runs. Returns 0, or -1 after a
   message. */
int duplicate_marks_end(struct duplicate_marks *marks, size_t memory_bytes);

/* Bytes that went to temporary files. */
uint64_t duplicate_marks_file_bytes(const struct duplicate_marks *marks);

/* ---- finding ---- */

/* The marks of some records that follow one another in a run. */
struct found_marks {
    const uint8_t *bits;
    uint64_t at;                /* the bit of the first record */
    struct temp_stream_reader reader;
};

/* Finds the marks of records [first, first + n) of a run, which has them. `found` starts as {0} and
   may be used again. Returns 0, or -1 after a message. */
int duplicate_marks_find(const struct duplicate_marks *marks, uint32_t run, uint64_t first,
                         uint64_t n, struct found_marks *found);

/* Is record first + i marked? */
static inline bool found_marks_have(const struct found_marks *found, uint64_t i)
{
    uint64_t at = found->at + i;
    return found->bits[at >> 3] >> (at & 7) & 1;
}

void found_marks_release(struct found_marks *found);

#endif
