/*
 * flat_buffer.h -- builds FlatBuffers: tables, vectors and texts in one piece of memory, which
 * readers use without decoding (FlatBuffers Internals, "Encoding"). Arrow's metadata are
 * FlatBuffers.
 *
 * A buffer is built from its end to its beginning, because a table must precede what it refers to:
 * make texts, vectors and inner tables first, then the table, then the root. A flat_place is a
 * distance from the end of the buffer; 0 is none.
 *
 * Why not a library: nanoarrow 0.9 writes neither compressed batches nor dictionaries, and Debian
 * 12 has no FlatBuffers for C.
 *
 * A buffer starts as {0}; flat_release frees it, flat_clear begins a new one in the same memory.
 * One thread at a time. Nothing can fail.
 */
#ifndef ROCKSORT_COLUMNS_FLAT_BUFFER_H
#define ROCKSORT_COLUMNS_FLAT_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FLAT_MOST_FIELDS = 8 };

typedef uint32_t flat_place;

struct flat_buffer {
    uint8_t *bytes;             /* the last n_bytes of room are used */
    size_t room, n_bytes;
    size_t n_after;             /* bytes that the caller will append */
    unsigned n_fields;          /* of the table that is being made */
    flat_place fields[FLAT_MOST_FIELDS], table_end;
};

void flat_clear(struct flat_buffer *flat);
void flat_release(struct flat_buffer *flat);

flat_place flat_text(struct flat_buffer *flat, const char *text, size_t n_bytes);

/* Adds a vector of n structs of item_bytes, which are copied; each must be aligned to 8 bytes. */
flat_place flat_structs(struct flat_buffer *flat, const uint8_t *items, size_t n,
                        size_t item_bytes);

/* Like flat_structs, for items that the caller writes itself, after the finished buffer. Call it
   before anything else is made; n * item_bytes is a multiple of 8. */
flat_place flat_structs_after(struct flat_buffer *flat, size_t n, size_t item_bytes);

/* Adds a vector of texts or tables. */
flat_place flat_vector(struct flat_buffer *flat, const flat_place *places, size_t n);

/* Add a table: begin; its fields, by their numbers in the schema; end. Nothing else can be added in
   between. flat_field adds a number of 1, 2, 4 or 8 bytes. Fields left out have defaults. */
void flat_table_begin(struct flat_buffer *flat);
void flat_field(struct flat_buffer *flat, unsigned field, size_t n_bytes, uint64_t value);
void flat_field_place(struct flat_buffer *flat, unsigned field, flat_place place);
flat_place flat_table_end(struct flat_buffer *flat);

/* Completes the buffer with this table as its root. *n_bytes: its size, a multiple of 8. */
const uint8_t *flat_finish(struct flat_buffer *flat, flat_place root, size_t *n_bytes);

#endif
