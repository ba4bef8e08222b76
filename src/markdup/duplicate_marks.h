/*
 * duplicate_marks.h -- what was found of each record of each run: whether it is a duplicate, and
 * the values of its tags do, dt and dc.
 *
 * A mark is a bit, in memory if all bits fit. Tags are *notes*. Jobs put them in any order; when
 * all are there they are sorted, so that the merge finds those of a block. Notes lie in temporary
 * streams (os/tape.h). If the bits do not fit in memory, a mark is a note, too.
 *
 * Order of calls: create; add_run for each run; begin; set and put; end; find; destroy. Threads:
 * any may call add_run, set, put and later find, but add_run one at a time.
 */
#ifndef ROCKSORT_MARKDUP_DUPLICATE_MARKS_H
#define ROCKSORT_MARKDUP_DUPLICATE_MARKS_H

#include "os/tape.h"
#include "os/thread_pool.h"

struct duplicate_marks;

struct duplicate_marks_settings {
    struct threads *threads;
    unsigned n_threads;
    size_t bits_bytes;         /* memory for bits, or for their notes if they need more */
    size_t tags_bytes;         /* memory for notes of tags; 0: there are no tags */
    struct temp_places places; /* of temporary files */
};

struct duplicate_marks *duplicate_marks_create(const struct duplicate_marks_settings *settings);

/* NULL is accepted. */
void duplicate_marks_destroy(struct duplicate_marks *marks);

/* A run has at least n_records. */
void duplicate_marks_add_run(struct duplicate_marks *marks, uint32_t run, uint32_t n_records);

/* All runs are known. Returns the bytes of memory that marks without tags take until `end`. */
size_t duplicate_marks_begin(struct duplicate_marks *marks);

/* The number of records in all runs, after begin. */
uint64_t duplicate_marks_count(const struct duplicate_marks *marks);

struct duplicate_note {
    uint32_t run, index;
    bool is_optical;
    uint32_t count;          /* dc of a record that is not marked; 0: it is marked */
    const uint8_t *original; /* do, without NUL; NULL: no tag */
    size_t original_bytes;
};

/* Mark a record, without and with tags; put also takes the count of another record. At most one of
   them for each record. Return 0, or -1 after a message. */
int duplicate_marks_set(struct duplicate_marks *marks, uint32_t run, uint32_t index);
int duplicate_marks_put(struct duplicate_marks *marks, const struct duplicate_note *note);

/* Nothing more is marked: sorts the notes, in about memory_bytes besides that of the streams.
   Returns 0, or -1 after a message and thread_pool_fail. */
int duplicate_marks_end(struct duplicate_marks *marks, size_t memory_bytes);

/* Bytes of all tags: about so much longer records get. Bytes that went to temporary files. Both
   after end. */
uint64_t duplicate_marks_tag_bytes(const struct duplicate_marks *marks);
uint64_t duplicate_marks_file_bytes(const struct duplicate_marks *marks);

/* ---- finding ---- */

/* The marks and notes of consecutive records of a run. */
struct found_marks {
    const uint8_t *bits;
    uint64_t at;                  /* the bit of the first record */
    struct duplicate_note *notes; /* in the order of the records */
    size_t n_notes, room;
    /* for duplicate_marks.c */
    struct tape_reader reader;
    uint8_t *own_bits, *names;
    size_t own_bits_room, names_bytes, names_room;
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
