/* flat_buffer.c -- see flat_buffer.h. */
#include "columns/flat_buffer.h"

#include "util/byte_order.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

void flat_clear(struct flat_buffer *flat)
{
    flat->n_bytes = flat->n_after = 0;
}

void flat_release(struct flat_buffer *flat)
{
    free(flat->bytes);
    *flat = (struct flat_buffer){0};
}

/* Makes room for n_bytes in front and returns its address. */
static uint8_t *prepend(struct flat_buffer *flat, size_t n_bytes)
{
    if (!flat->bytes || flat->room - flat->n_bytes < n_bytes) {
        size_t room = 2 * flat->room + n_bytes + 256;
        uint8_t *bytes = xmalloc(room);
        if (flat->n_bytes > 0)
            memcpy(bytes + room - flat->n_bytes, flat->bytes + flat->room - flat->n_bytes,
                   flat->n_bytes);
        free(flat->bytes);
        flat->bytes = bytes;
        flat->room = room;
    }
    flat->n_bytes += n_bytes;
    return flat->bytes + flat->room - flat->n_bytes;
}

static flat_place here(const struct flat_buffer *flat)
{
    return (flat_place)(flat->n_bytes + flat->n_after);
}

/* Prepends zeros, so that after n_bytes more the front is aligned. Alignment counts from the end of
   the buffer, which is at a multiple of 8. */
static void align(struct flat_buffer *flat, size_t n_bytes, size_t alignment)
{
    size_t n_zeros = (0 - (here(flat) + n_bytes)) & (alignment - 1);
    memset(prepend(flat, n_zeros), 0, n_zeros);
}

/* Prepends a number of 32 bits. */
static void prepend_u32(struct flat_buffer *flat, size_t value)
{
    (void)put_u32(prepend(flat, 4), value);
}

/* Prepends the distance from here to the place. */
static void prepend_distance(struct flat_buffer *flat, flat_place place)
{
    prepend_u32(flat, here(flat) + 4 - place);
}

flat_place flat_text(struct flat_buffer *flat, const char *text, size_t n_bytes)
{
    align(flat, n_bytes + 1, 4);
    *prepend(flat, 1) = 0;
    memcpy(prepend(flat, n_bytes), text, n_bytes);
    prepend_u32(flat, n_bytes);
    return here(flat);
}

flat_place flat_structs(struct flat_buffer *flat, const uint8_t *items, size_t n, size_t item_bytes)
{
    align(flat, n * item_bytes, 8);
    if (n > 0) memcpy(prepend(flat, n * item_bytes), items, n * item_bytes);
    prepend_u32(flat, n);
    return here(flat);
}

flat_place flat_structs_after(struct flat_buffer *flat, size_t n, size_t item_bytes)
{
    flat->n_after = n * item_bytes;
    prepend_u32(flat, n);
    return here(flat);
}

flat_place flat_vector(struct flat_buffer *flat, const flat_place *places, size_t n)
{
    align(flat, 0, 4);
    for (size_t i = n; i-- > 0;) prepend_distance(flat, places[i]);
    prepend_u32(flat, n);
    return here(flat);
}

/* ---- tables ---- */

void flat_table_begin(struct flat_buffer *flat)
{
    flat->n_fields = 0;
    memset(flat->fields, 0, sizeof flat->fields);
    flat->table_end = here(flat);
}

void flat_field(struct flat_buffer *flat, unsigned field, size_t n_bytes, uint64_t value)
{
    align(flat, n_bytes, n_bytes);
    uint8_t *at = prepend(flat, n_bytes);
    for (size_t i = 0; i < n_bytes; i++) at[i] = (uint8_t)(value >> 8 * i);
    flat->fields[field] = here(flat);
    if (flat->n_fields <= field) flat->n_fields = field + 1;
}

void flat_field_place(struct flat_buffer *flat, unsigned field, flat_place place)
{
    align(flat, 4, 4);
    flat_field(flat, field, 4, here(flat) + 4 - place);
}

/* A vtable precedes the table. It has its own size, that of the table, and for each field the
   offset in the table, or 0. The table begins with the distance to the vtable. */
flat_place flat_table_end(struct flat_buffer *flat)
{
    size_t vtable_bytes = 4 + 2 * (size_t)flat->n_fields;
    align(flat, 4, 4);
    prepend_u32(flat, vtable_bytes);
    flat_place table = here(flat);
    uint8_t *at = prepend(flat, vtable_bytes);
    at = put_u16(put_u16(at, vtable_bytes), table - flat->table_end);
    for (unsigned i = 0; i < flat->n_fields; i++)
        at = put_u16(at, flat->fields[i] ? table - flat->fields[i] : 0);
    return table;
}

const uint8_t *flat_finish(struct flat_buffer *flat, flat_place root, size_t *n_bytes)
{
    align(flat, 4, 8);
    prepend_distance(flat, root);
    *n_bytes = flat->n_bytes;
    return flat->bytes + flat->room - flat->n_bytes;
}
