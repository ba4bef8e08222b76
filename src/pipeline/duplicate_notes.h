/*
 * duplicate_notes.h -- what duplicates get besides their flag: the values of tags do, dt and dc.
 *
 * Jobs put notes down in any order. When all are there they are sorted, so that the merge finds
 * those of a block of a run. Notes lie in streams (store/temp_streams.h): in memory, and in a
 * temporary file when that is full.
 *
 * Order of calls: create; begin; put; sort; find; destroy. Threads: any may put, and later find;
 * one sorts.
 */
#ifndef ROCKSORT_PIPELINE_DUPLICATE_NOTES_H
#define ROCKSORT_PIPELINE_DUPLICATE_NOTES_H

#include "pipeline/crew.h"
#include "store/temp_streams.h"

struct duplicate_marks;
struct duplicate_notes;

struct duplicate_note {
    uint32_t run, index;
    bool is_optical;
    uint32_t count;             /* dc; 0: no tag */
    const uint8_t *original;    /* do, without NUL; NULL: no tag */
    size_t original_bytes;
};

/* The marks outlive the notes, and count the records. places: of temporary files. */
struct duplicate_notes *duplicate_notes_create(struct crew *crew, unsigned n_threads,
                                               const struct duplicate_marks *marks,
                                               size_t memory_bytes,
                                               const struct temp_places *places);

/* NULL is accepted. */
void duplicate_notes_destroy(struct duplicate_notes *notes);

/* The marks know all runs. */
void duplicate_notes_begin(struct duplicate_notes *notes);

/* At most one note for each record. Returns 0, or -1 after a message. */
int duplicate_notes_put(struct duplicate_notes *notes, const struct duplicate_note *note);

/* Sorts the notes, in about so much memory besides that of the streams. Returns 0, or -1 after a
   message and crew_fail. */
int duplicate_notes_sort(struct duplicate_notes *notes, size_t memory_bytes);

/* Bytes of all notes, when they are sorted: about so much longer records get. */
uint64_t duplicate_notes_bytes(const struct duplicate_notes *notes);

/* Bytes that went to temporary files, when the notes are sorted. */
uint64_t duplicate_notes_file_bytes(const struct duplicate_notes *notes);

/* The notes of some records that follow one another in a run, in their order. */
struct found_notes {
    struct duplicate_note *notes;
    size_t n, room;
    uint8_t *bytes;             /* names */
    size_t n_bytes, bytes_room;
};

/* Finds the notes of records [first, end) of a run, which has at least one of them. `found` starts
   as {0} and may be used again. Returns 0, or -1 after a message. */
int duplicate_notes_find(struct duplicate_notes *notes, uint32_t run, uint64_t first, uint64_t end,
                         struct found_notes *found);

void found_notes_release(struct found_notes *found);

#endif
