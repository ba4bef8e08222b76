/*
 * duplicate_marks.h -- stores the result of --markdup for each record of each run: whether it is a
 * duplicate, and the values of its tags do, dt and dc.
 *
 * A mark is a bit in memory. Tags are stored as *notes* on tapes (os/tape.h). Jobs write notes in
 * any order; `end` sorts them, so that the merge finds the notes of a block. If the bits do not fit
 * in memory, marks are notes, too.
 *
 * Order of calls: create; add_run for each run; begin; set and put; end; find; destroy. Threads:
 * any thread may call add_run (one at a time), set, put, and later find.
 */
#ifndef ROCKSORT_MARKDUP_DUPLICATE_MARKS_H
#define ROCKSORT_MARKDUP_DUPLICATE_MARKS_H

#include "os/tape.h"
#include "os/thread_pool.h"

struct duplicate_marks;

struct duplicate_marks_settings {
    struct threads *threads;
    unsigned n_threads;
    size_t bits_bytes;         /* memory for bits, or for notes if the bits do not fit */
    size_t tags_bytes;         /* memory for notes with tags; 0: no tags */
    struct temp_places places; /* of temporary files */
};

struct duplicate_marks *duplicate_marks_create(const struct duplicate_marks_settings *settings);

/* Accepts NULL. */
void duplicate_marks_destroy(struct duplicate_marks *marks);

/* Says that a run has at least n_records. */
void duplicate_marks_add_run(struct duplicate_marks *marks, uint32_t run, uint32_t n_records);

/* Called when all runs are known. Returns the memory that marks without tags take until `end`. */
size_t duplicate_marks_begin(struct duplicate_marks *marks);

struct duplicate_note {
    uint32_t run, index;
    bool is_optical;
    uint32_t count;          /* tag dc, for a record that is not marked; 0: marked */
    const uint8_t *original; /* tag do, without NUL; NULL: no tag */
    size_t original_bytes;
};

/* set marks a record that gets no tags. put marks a record with tags, or stores the count of a
   record that is not marked. At most one call for each record. Return 0, or -1 after a message. */
int duplicate_marks_set(struct duplicate_marks *marks, uint32_t run, uint32_t index);
int duplicate_marks_put(struct duplicate_marks *marks, const struct duplicate_note *note);

/* Ends marking: sorts the notes, in about memory_bytes besides the memory of the tapes. Returns 0,
   or -1 after a message and thread_pool_fail. */
int duplicate_marks_end(struct duplicate_marks *marks, size_t memory_bytes);

/* Bytes of tags for a record on average, which is about how much it grows; and bytes written to
   temporary files. Call it after end. */
size_t duplicate_marks_average_bytes(const struct duplicate_marks *marks);
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

/* Finds the marks of records [first, first + n) of a run, which must exist. `found` starts as {0}
   and can be reused. Returns 0, or -1 after a message. */
int duplicate_marks_find(const struct duplicate_marks *marks, uint32_t run, uint64_t first,
                         uint64_t n, struct found_marks *found);

/* True if record first + i is marked. */
static inline bool found_marks_have(const struct found_marks *found, uint64_t i)
{
    uint64_t at = found->at + i;
    return found->bits[at >> 3] >> (at & 7) & 1;
}

void found_marks_release(struct found_marks *found);

#endif
