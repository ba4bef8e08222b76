/*
 * parquet_note.c -- see parquet_note.h.
 *
 * After its head a note has 8 bytes, where the group is. The rest is varints and the bytes of
 * bounds.
 */
#include "columns/parquet_note.h"

int parquet_bound_compare(enum parquet_type type, const struct parquet_bound *a,
                          const struct parquet_bound *b)
{
    if (type == PARQUET_BYTE_ARRAY) {
        size_t n = a->n_bytes < b->n_bytes ? a->n_bytes : b->n_bytes;
        int r = memcmp(a->bytes, b->bytes, n);
        return r ? r : a->n_bytes - b->n_bytes;
    }
    if (type == PARQUET_FLOAT) {
        float x, y;
        uint32_t x_bits = get_u32(a->bytes), y_bits = get_u32(b->bytes);
        memcpy(&x, &x_bits, sizeof x);
        memcpy(&y, &y_bits, sizeof y);
        return (x > y) - (x < y);
    }
    int64_t x = (int64_t)get_u64(a->bytes), y = (int64_t)get_u64(b->bytes);
    if (type == PARQUET_INT32) {
        x = (int32_t)get_u32(a->bytes);
        y = (int32_t)get_u32(b->bytes);
    }
    return (x > y) - (x < y);
}

/* ---- writing and reading ---- */

/* A note that is being written or read: what it holds is described once, for both. */
struct note {
    struct column_bytes *to;    /* NULL: it is read */
    const uint8_t *from;
};

static void number(struct note *note, uint64_t *value)
{
    if (note->to)
        column_bytes_varint(note->to, *value);
    else
        *value = get_varint(&note->from);
}

static void truth(struct note *note, bool *value)
{
    uint64_t n = *value;
    number(note, &n);
    *value = n != 0;
}

static void bound(struct note *note, struct parquet_bound *bound)
{
    uint64_t n_bytes = bound->n_bytes;
    number(note, &n_bytes);
    bound->n_bytes = (uint8_t)n_bytes;
    if (note->to) {
        column_bytes_copy(note->to, bound->bytes, bound->n_bytes);
        return;
    }
    memcpy(bound->bytes, note->from, bound->n_bytes);
    note->from += bound->n_bytes;
}

static void bounds(struct note *note, struct parquet_bounds *bounds)
{
    truth(note, &bounds->are_known);
    if (!bounds->are_known) return;
    bound(note, &bounds->least);
    bound(note, &bounds->most);
}

static void chunk(struct note *note, struct parquet_chunk *chunk)
{
    uint64_t encoding = chunk->encoding, n_pages = chunk->n_pages;
    number(note, &encoding);
    chunk->encoding = (enum parquet_encoding)encoding;
    number(note, &chunk->n_values);
    number(note, &chunk->n_nulls);
    number(note, &chunk->raw_bytes);
    number(note, &chunk->n_bytes);
    number(note, &chunk->dictionary_bytes);
    truth(note, &chunk->has_page_bounds);
    number(note, &n_pages);
    chunk->n_pages = (size_t)n_pages;
    bounds(note, &chunk->bounds);
    if (!note->to)
        xgrow(&chunk->pages, &chunk->pages_room, chunk->n_pages, chunk->n_pages,
              sizeof *chunk->pages);
    for (size_t i = 0; i < chunk->n_pages; i++) {
        struct parquet_page *page = &chunk->pages[i];
        number(note, &page->n_rows);
        number(note, &page->n_bytes);
        if (!chunk->has_page_bounds) continue;
        number(note, &page->n_nulls);
        bounds(note, &page->bounds);
    }
}

size_t parquet_note_begin(struct column_bytes *notes, const struct parquet_group *group)
{
    size_t place = notes->n_bytes;
    uint8_t *at = column_bytes_append(notes, PARQUET_NOTE_HEAD_BYTES + 8);
    (void)put_u64(at + PARQUET_NOTE_HEAD_BYTES, group->at);
    column_bytes_varint(notes, group->n_rows);
    column_bytes_varint(notes, group->is_sorted);
    return place;
}

void parquet_note_chunk(struct column_bytes *notes, struct parquet_chunk *written)
{
    chunk(&(struct note){.to = notes}, written);
}

void parquet_note_end(struct column_bytes *notes, size_t place)
{
    (void)put_u32(notes->bytes + place, notes->n_bytes - place - PARQUET_NOTE_HEAD_BYTES);
}

const uint8_t *parquet_note_read(const uint8_t *at, struct parquet_group *group)
{
    group->at = get_u64(at);
    at += 8;
    group->n_rows = get_varint(&at);
    group->is_sorted = get_varint(&at) != 0;
    return at;
}

const uint8_t *parquet_note_read_chunk(const uint8_t *at, struct parquet_chunk *read)
{
    struct note note = {.from = at};
    chunk(&note, read);
    return note.from;
}

size_t parquet_note_move(uint8_t *notes, size_t notes_bytes, uint64_t n_bytes, uint64_t *n_rows)
{
    size_t n = 0;
    struct parquet_group group;
    for (uint8_t *at = notes; at < notes + notes_bytes; n++) {
        uint8_t *place = at + PARQUET_NOTE_HEAD_BYTES;
        (void)put_u64(place, get_u64(place) + n_bytes);
        (void)parquet_note_read(place, &group);
        *n_rows += group.n_rows;
        at = place + parquet_note_bytes(at);
    }
    return n;
}
