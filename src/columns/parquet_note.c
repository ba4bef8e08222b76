/*
 * parquet_note.c -- see parquet_note.h.
 *
 * After its head a note has 8 bytes, where the group is. The rest is varints and the bytes of
 * bounds.
 */
#include "columns/parquet_note.h"

#include "util/varint.h"

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

/* ---- writing ---- */

static void note_number(struct column_bytes *notes, uint64_t number)
{
    uint8_t *at = column_bytes_reserve(notes, VARINT_MAX_BYTES);
    notes->n_bytes += (size_t)(put_varint(at, number) - at);
}

static void note_bound(struct column_bytes *notes, const struct parquet_bound *bound)
{
    note_number(notes, bound->n_bytes);
    column_bytes_copy(notes, bound->bytes, bound->n_bytes);
}

static void note_bounds(struct column_bytes *notes, const struct parquet_bounds *bounds)
{
    note_number(notes, bounds->are_known);
    if (!bounds->are_known) return;
    note_bound(notes, &bounds->least);
    note_bound(notes, &bounds->most);
}

size_t parquet_note_begin(struct column_bytes *notes, const struct parquet_group *group)
{
    size_t place = notes->n_bytes;
    uint8_t *at = column_bytes_append(notes, PARQUET_NOTE_HEAD_BYTES + 8);
    (void)put_u64(at + PARQUET_NOTE_HEAD_BYTES, group->at);
    note_number(notes, group->n_rows);
    note_number(notes, group->is_sorted);
    return place;
}

void parquet_note_chunk(struct column_bytes *notes, const struct parquet_chunk *chunk)
{
    const uint64_t numbers[] = {chunk->encoding, chunk->n_values, chunk->n_nulls, chunk->raw_bytes,
                                chunk->n_bytes, chunk->dictionary_bytes, chunk->has_page_bounds,
                                chunk->n_pages};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) note_number(notes, numbers[i]);
    note_bounds(notes, &chunk->bounds);
    for (size_t i = 0; i < chunk->n_pages; i++) {
        const struct parquet_page *page = &chunk->pages[i];
        note_number(notes, page->n_rows);
        note_number(notes, page->n_bytes);
        if (!chunk->has_page_bounds) continue;
        note_number(notes, page->n_nulls);
        note_bounds(notes, &page->bounds);
    }
}

void parquet_note_end(struct column_bytes *notes, size_t place)
{
    (void)put_u32(notes->bytes + place, notes->n_bytes - place - PARQUET_NOTE_HEAD_BYTES);
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

/* ---- reading ---- */

static void read_bound(const uint8_t **at, struct parquet_bound *bound)
{
    bound->n_bytes = (uint8_t)get_varint(at);
    memcpy(bound->bytes, *at, bound->n_bytes);
    *at += bound->n_bytes;
}

static void read_bounds(const uint8_t **at, struct parquet_bounds *bounds)
{
    bounds->are_known = get_varint(at) != 0;
    if (!bounds->are_known) return;
    read_bound(at, &bounds->least);
    read_bound(at, &bounds->most);
}

const uint8_t *parquet_note_read(const uint8_t *at, struct parquet_group *group)
{
    group->at = get_u64(at);
    at += 8;
    group->n_rows = get_varint(&at);
    group->is_sorted = get_varint(&at) != 0;
    return at;
}

const uint8_t *parquet_note_read_chunk(const uint8_t *at, struct parquet_chunk *chunk)
{
    chunk->encoding = (enum parquet_encoding)get_varint(&at);
    chunk->n_values = get_varint(&at);
    chunk->n_nulls = get_varint(&at);
    chunk->raw_bytes = get_varint(&at);
    chunk->n_bytes = get_varint(&at);
    chunk->dictionary_bytes = get_varint(&at);
    chunk->has_page_bounds = get_varint(&at) != 0;
    chunk->n_pages = (size_t)get_varint(&at);
    read_bounds(&at, &chunk->bounds);
    xgrow(&chunk->pages, &chunk->pages_room, chunk->n_pages, chunk->n_pages, sizeof *chunk->pages);
    for (size_t i = 0; i < chunk->n_pages; i++) {
        struct parquet_page *page = &chunk->pages[i];
        page->n_rows = get_varint(&at);
        page->n_bytes = get_varint(&at);
        if (!chunk->has_page_bounds) continue;
        page->n_nulls = get_varint(&at);
        read_bounds(&at, &page->bounds);
    }
    return at;
}
