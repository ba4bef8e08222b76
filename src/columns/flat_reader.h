/*
 * flat_reader.h -- reads FlatBuffers (flat_buffer.h) that nobody has checked: every place is looked
 * at before it is used, so that damaged metadata give wrong values or `damaged`, never a read beyond
 * the buffer.
 *
 * A field that is not there has no value: functions say so, or return the default. Once something
 * is found to be impossible, *damaged of the view is true; callers look at it when they are done.
 *
 * The view and everything in it point into the caller's bytes. One thread at a time.
 */
#ifndef ROCKSORT_COLUMNS_FLAT_READER_H
#define ROCKSORT_COLUMNS_FLAT_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct flat_view {
    const uint8_t *bytes;
    size_t n_bytes;
    bool damaged;
};

struct flat_table {
    struct flat_view *view;
    size_t at;                  /* where it begins */
    size_t vtable, vtable_bytes;
};

struct flat_items {             /* of a vector */
    struct flat_view *view;
    size_t at;                  /* of the first */
    size_t n;
};

/* Finds the root table. Returns false, with the view damaged, if there is none. */
bool flat_read_root(struct flat_view *view, struct flat_table *root);

/* The value of a field of n_bytes (1, 2, 4 or 8). */
uint64_t flat_read_number(const struct flat_table *table, unsigned field, unsigned n_bytes,
                          uint64_t default_value);

/* The table in a field; false if it is not there. */
bool flat_read_table(const struct flat_table *table, unsigned field, struct flat_table *inner);

/* The text in a field: n bytes, without the NUL; NULL if it is not there. */
const char *flat_read_text(const struct flat_table *table, unsigned field, size_t *n_bytes);

/* The vector in a field, of structs of item_bytes or, with item_bytes 4, of tables. No items if it
   is not there. */
struct flat_items flat_read_vector(const struct flat_table *table, unsigned field,
                                   size_t item_bytes);

/* A table of a vector. */
bool flat_read_item(const struct flat_items *items, size_t i, struct flat_table *table);

#endif
