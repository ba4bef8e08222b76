/*
 * flat_buffer.h -- makes FlatBuffers: tables, vectors and texts in one piece of memory, which
 * readers use where they are (FlatBuffers Internals, "Encoding"). Arrow's metadata are FlatBuffers.
 *
 * A buffer is made from its end to its beginning, because what a table refers to must lie after it:
 * make texts, vectors and inner tables first, then the table, then the root. A place is counted
 * from the end of the buffer; 0 is no place.
 *
 * nanoarrow 0.9 can write neither compressed batches nor dictionaries, and Debian 12 has no library
 * for FlatBuffers in C.
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
    uint8_t *bytes;             /* those used are the last n_bytes of room */
    size_t room, n_bytes;
    size_t n_after;             /* bytes of the caller that follow these */
    unsigned n_fields;          /* of the table that is being made */
    flat_place fields[FLAT_MOST_FIELDS], table_end;
};

void flat_clear(struct flat_buffer *flat);
void flat_release(struct flat_buffer *flat);

flat_place flat_text(struct flat_buffer *flat, const char *text, size_t n_bytes);

/* A vector of structs, whose n items of item_bytes lie in memory as they are stored; each begins at
   a multiple of 8. */
flat_place flat_structs(struct flat_buffer *flat, const uint8_t *items, size_t n,
                        size_t item_bytes);

/* Like flat_structs, for items that the caller writes itself, after the finished buffer. Call it
   before anything else is made; n * item_bytes is a multiple of 8. */
flat_place flat_structs_after(struct flat_buffer *flat, size_t n, size_t item_bytes);

/* A vector of texts or tables. */
flat_place flat_vector(struct flat_buffer *flat, const flat_place *places, size_t n);

/* A table: begin; its fields by their numbers in the schema; end. No other thing can be made
   meanwhile. flat_field adds a number of 1, 2, 4 or 8 bytes. A field that is left out has its
   default value. */
void flat_table_begin(struct flat_buffer *flat);
void flat_field(struct flat_buffer *flat, unsigned field, size_t n_bytes, uint64_t value);
void flat_field_place(struct flat_buffer *flat, unsigned field, flat_place place);
flat_place flat_table_end(struct flat_buffer *flat);

/* Makes the table the root. The buffer is then complete: its size, a multiple of 8, in *n_bytes. */
const uint8_t *flat_finish(struct flat_buffer *flat, flat_place root, size_t *n_bytes);

#endif
