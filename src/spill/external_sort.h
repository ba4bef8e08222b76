/*
 * external_sort.h -- sorts any number of byte strings (items) in bounded memory, in the order of
 * memcmp; a prefix comes before a longer item.
 *
 * Items are collected in a buffer. If all fit, they are sorted in memory and read from there.
 * Otherwise each full buffer becomes a sorted piece on one of FAN_IN tapes (tape.h); FAN_IN pieces
 * are merged into one of the next level, and at the end all are merged into one. So an item is
 * written once for each level and once at the end.
 *
 * Order of calls: create; add; finish; readers; then destroy, or clear and add again. Threads: one
 * at a time.
 */
#ifndef ROCKSORT_SPILL_EXTERNAL_SORT_H
#define ROCKSORT_SPILL_EXTERNAL_SORT_H

#include "os/tape.h"

struct external_sort;

enum { EXTERNAL_SORT_LEAST_BYTES = 8 }; /* of an item */

struct external_sort_settings {
    size_t memory_bytes;       /* without readers, which take a 64th of it each if the items do not
                                  fit; at least 32 KiB */
    struct temp_places places; /* of temporary files */
    uint64_t *file_bytes;      /* counts the bytes written to temporary files; or NULL */
};

struct external_sort *external_sort_create(const struct external_sort_settings *settings);

/* Accepts NULL. */
void external_sort_destroy(struct external_sort *sort);

/* Removes all items. Readers must be released before. */
void external_sort_clear(struct external_sort *sort);

/* Add an item, add all items of a tape, and finish. Return 0, or -1 after a message. */
int external_sort_add(struct external_sort *sort, const uint8_t *item, size_t n_bytes);
int external_sort_add_tape(struct external_sort *sort, struct tape_set *from, unsigned tape);
int external_sort_finish(struct external_sort *sort);

struct external_sort_reader {
    const struct external_sort *sort;
    size_t next;                /* index of the next item in memory */
    struct tape_reader tape;
    const uint8_t *item;        /* valid until the next call */
    size_t n_bytes;
};

/* Starts before the first item. The reader starts as {0}, or is reused. */
void external_sort_read(struct external_sort_reader *reader, const struct external_sort *sort);

/* Reads the next item. Returns 1; 0 at the end, where item is NULL; or -1 after a message. */
int external_sort_next(struct external_sort_reader *reader);

/* True if the next item is known to differ from this one in its first bytes. */
bool external_sort_is_alone(const struct external_sort_reader *reader);

void external_sort_reader_release(struct external_sort_reader *reader);

/* ---- tapes: streams of items ---- */

/* Returns 0, or -1 after a message. */
int tape_append_item(struct tape_set *to, unsigned tape, const uint8_t *item, size_t n_bytes);

/* Reads the next item, which is valid until the next call; NULL at the end. Returns 0, or -1 after
   a message. */
int tape_read_item(struct tape_reader *reader, const uint8_t **item, size_t *n_bytes);

#endif
