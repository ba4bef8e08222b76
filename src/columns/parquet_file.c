/*
 * parquet_file.c -- see parquet_file.h.
 *
 * After its head a note has the place of the group in 8 bytes. The rest is varints and the bytes of
 * bounds.
 */
#include "columns/parquet_file.h"

#include "util/byte_order.h"
#include "util/diag.h"
#include "util/version.h"

#include <assert.h>
#include <stdlib.h>

/* ---- notes ---- */

int parquet_bound_compare(enum parquet_type type, const struct parquet_bound *a,
                          const struct parquet_bound *b)
{
    if (type == PARQUET_BYTE_ARRAY)
        return compare_bytes(a->bytes, a->n_bytes, b->bytes, b->n_bytes);
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

/* A note that is written or read: the same functions describe its format for both. */
struct note {
    struct column_bytes *to;    /* NULL: reading */
    const uint8_t *from;
};

static void note_number(struct note *note, uint64_t *value)
{
    if (note->to)
        column_bytes_varint(note->to, *value);
    else
        *value = get_varint(&note->from);
}

static void note_truth(struct note *note, bool *value)
{
    uint64_t n = note->to && *value;
    note_number(note, &n);
    *value = n != 0;
}

static void note_bound(struct note *note, struct parquet_bound *bound)
{
    uint64_t n_bytes = bound->n_bytes;
    note_number(note, &n_bytes);
    bound->n_bytes = (uint8_t)n_bytes;
    if (note->to) {
        column_bytes_copy(note->to, bound->bytes, bound->n_bytes);
        return;
    }
    memcpy(bound->bytes, note->from, bound->n_bytes);
    note->from += bound->n_bytes;
}

static void note_bounds(struct note *note, struct parquet_bounds *bounds)
{
    note_truth(note, &bounds->are_known);
    if (!bounds->are_known) return;
    note_bound(note, &bounds->least);
    note_bound(note, &bounds->most);
}

static void note_chunk(struct note *note, struct parquet_chunk *chunk)
{
    uint64_t encoding = chunk->encoding, n_pages = chunk->n_pages;
    note_number(note, &encoding);
    chunk->encoding = (enum parquet_encoding)encoding;
    note_number(note, &chunk->n_values);
    note_number(note, &chunk->n_nulls);
    note_number(note, &chunk->raw_bytes);
    note_number(note, &chunk->n_bytes);
    note_number(note, &chunk->dictionary_bytes);
    note_truth(note, &chunk->has_page_bounds);
    note_number(note, &n_pages);
    chunk->n_pages = (size_t)n_pages;
    note_bounds(note, &chunk->bounds);
    if (!note->to)
        xgrow(&chunk->pages, &chunk->pages_room, chunk->n_pages, chunk->n_pages,
              sizeof *chunk->pages);
    for (size_t i = 0; i < chunk->n_pages; i++) {
        struct parquet_page *page = &chunk->pages[i];
        note_number(note, &page->n_rows);
        note_number(note, &page->n_bytes);
        if (!chunk->has_page_bounds) continue;
        note_number(note, &page->n_nulls);
        note_bounds(note, &page->bounds);
    }
}

size_t row_group_metadata_begin(struct column_bytes *notes, const struct parquet_group *group)
{
    size_t place = notes->n_bytes;
    uint8_t *at = column_bytes_append(notes, PARQUET_NOTE_HEAD_BYTES + 8);
    (void)put_u64(at + PARQUET_NOTE_HEAD_BYTES, group->at);
    column_bytes_varint(notes, group->n_rows);
    column_bytes_varint(notes, group->is_sorted);
    return place;
}

void row_group_metadata_chunk(struct column_bytes *notes, struct parquet_chunk *written)
{
    note_chunk(&(struct note){.to = notes}, written);
}

void row_group_metadata_end(struct column_bytes *notes, size_t place)
{
    (void)put_u32(notes->bytes + place, notes->n_bytes - place - PARQUET_NOTE_HEAD_BYTES);
}

const uint8_t *row_group_metadata_read(const uint8_t *at, struct parquet_group *group)
{
    group->at = get_u64(at);
    at += 8;
    group->n_rows = get_varint(&at);
    group->is_sorted = get_varint(&at) != 0;
    return at;
}

const uint8_t *row_group_metadata_read_chunk(const uint8_t *at, struct parquet_chunk *read)
{
    struct note note = {.from = at};
    note_chunk(&note, read);
    return note.from;
}

size_t row_group_metadata_move(uint8_t *notes, size_t notes_bytes, uint64_t n_bytes,
                               uint64_t *n_rows)
{
    size_t n = 0;
    struct parquet_group group;
    for (uint8_t *at = notes; at < notes + notes_bytes; n++) {
        uint8_t *place = at + PARQUET_NOTE_HEAD_BYTES;
        (void)put_u64(place, get_u64(place) + n_bytes);
        (void)row_group_metadata_read(place, &group);
        *n_rows += group.n_rows;
        at = place + row_group_metadata_bytes(at);
    }
    return n;
}

/* ---- indexes of pages ---- */

/* State of writing the end of a file. */
struct end_maker {
    const struct parquet_file *file;
    const struct column_sink *sink;
    bool has_failed;            /* after a message: nothing more is written */
    struct column_bytes out;    /* bytes not passed to the sink yet */
    uint64_t position;          /* in the file, of the first of these */
    struct parquet_leaf *leaves;
    unsigned n_leaves;
    struct thrift_writer *footer;
    size_t n_groups;            /* in the footer so far */
    /* Places in the file of the two indexes of the next chunk in the footer. */
    uint64_t bounds_at, offsets_at;
    struct column_bytes measured;       /* an index that is made again to learn its size */
    struct parquet_chunk chunk; /* read last; the memory of its pages is reused */
};

static bool is_null_page(const struct parquet_page *page)
{
    return page->n_nulls == page->n_rows;
}

/* True if the bounds of pages never decrease. */
static bool pages_ascend(const struct parquet_chunk *chunk, enum parquet_type type)
{
    const struct parquet_bounds *last = NULL;
    for (size_t i = 0; i < chunk->n_pages; i++) {
        const struct parquet_bounds *bounds = &chunk->pages[i].bounds;
        if (is_null_page(&chunk->pages[i])) continue;
        if (last && (parquet_bound_compare(type, &last->least, &bounds->least) > 0 ||
                     parquet_bound_compare(type, &last->most, &bounds->most) > 0))
            return false;
        last = bounds;
    }
    return true;
}

static void put_page_bound(struct thrift_writer *writer, const struct parquet_page *page,
                           const struct parquet_bound *bound)
{
    thrift_item_bytes(writer, bound->bytes, is_null_page(page) ? 0 : bound->n_bytes);
}

/* ColumnIndex */
static void put_page_bounds(struct column_bytes *out, const struct parquet_chunk *chunk,
                            enum parquet_type type)
{
    struct thrift_writer writer = thrift_begin(out);
    size_t n = chunk->n_pages;
    const struct parquet_page *pages = chunk->pages;
    thrift_list(&writer, 1, THRIFT_BOOL, n);
    for (size_t i = 0; i < n; i++) thrift_item_bool(&writer, is_null_page(&pages[i]));
    thrift_list(&writer, 2, THRIFT_BYTES, n);
    for (size_t i = 0; i < n; i++) put_page_bound(&writer, &pages[i], &pages[i].bounds.least);
    thrift_list(&writer, 3, THRIFT_BYTES, n);
    for (size_t i = 0; i < n; i++) put_page_bound(&writer, &pages[i], &pages[i].bounds.most);
    thrift_i32(&writer, 4, pages_ascend(chunk, type) ? ORDER_ASCENDING : ORDER_NONE);
    thrift_list(&writer, 5, THRIFT_I64, n);
    for (size_t i = 0; i < n; i++) thrift_item_integer(&writer, (int64_t)pages[i].n_nulls);
    thrift_end(&writer);
}

/* OffsetIndex; the first page is at byte `at` of the file. */
static void put_page_offsets(struct column_bytes *out, const struct parquet_chunk *chunk,
                             uint64_t at)
{
    struct thrift_writer writer = thrift_begin(out);
    uint64_t row = 0;
    thrift_list(&writer, 1, THRIFT_STRUCT, chunk->n_pages);
    for (size_t i = 0; i < chunk->n_pages; i++) {
        const struct parquet_page *page = &chunk->pages[i];
        thrift_item_struct(&writer);
        thrift_i64(&writer, 1, at);
        thrift_i32(&writer, 2, (int32_t)page->n_bytes);
        thrift_i64(&writer, 3, row);
        thrift_end(&writer);
        at += page->n_bytes;
        row += page->n_rows;
    }
    thrift_end(&writer);
}

/* The place of the next byte in the file. */
static uint64_t next_position(const struct end_maker *maker)
{
    return maker->position + maker->out.n_bytes;
}

static void write_out(struct end_maker *maker)
{
    struct column_bytes *out = &maker->out;
    if (!maker->has_failed && out->n_bytes > 0)
        maker->has_failed = !maker->sink->write(maker->sink->arg, out->bytes, out->n_bytes);
    maker->position += out->n_bytes;
    out->n_bytes = 0;
}

/* Reads the note of the next group. Returns the address of its first chunk, or NULL on failure. */
static const uint8_t *read_note(struct end_maker *maker, struct parquet_group *group)
{
    const struct footer_spool *notes = maker->file->notes;
    const uint8_t *note = notes->read(notes->arg, PARQUET_NOTE_HEAD_BYTES);
    if (note) note = notes->read(notes->arg, row_group_metadata_bytes(note));
    if (!note) maker->has_failed = true;
    return note ? row_group_metadata_read(note, group) : NULL;
}

/* Calls `visit` for each group, with the address of its first chunk in the note. */
static void visit_groups(struct end_maker *maker,
                         void (*visit)(struct end_maker *, const struct parquet_group *,
                                       const uint8_t *))
{
    enum { WRITE_BYTES = 1 << 20 };
    const struct parquet_file *file = maker->file;
    struct parquet_group group;
    file->notes->rewind(file->notes->arg);
    for (size_t i = 0; i < file->n_groups && !maker->has_failed; i++) {
        const uint8_t *at = read_note(maker, &group);
        if (!at) return;
        visit(maker, &group, at);
        if (maker->out.n_bytes >= WRITE_BYTES) write_out(maker);
    }
}

static void put_bounds_indexes(struct end_maker *maker, const struct parquet_group *group,
                               const uint8_t *at)
{
    (void)group;
    for (unsigned i = 0; i < maker->n_leaves; i++) {
        at = row_group_metadata_read_chunk(at, &maker->chunk);
        if (maker->chunk.has_page_bounds)
            put_page_bounds(&maker->out, &maker->chunk, maker->leaves[i].type);
    }
}

static void put_offset_indexes(struct end_maker *maker, const struct parquet_group *group,
                               const uint8_t *at)
{
    uint64_t place = group->at;
    for (unsigned i = 0; i < maker->n_leaves; i++) {
        at = row_group_metadata_read_chunk(at, &maker->chunk);
        put_page_offsets(&maker->out, &maker->chunk, place + maker->chunk.dictionary_bytes);
        place += maker->chunk.n_bytes;
    }
}

/* ---- the footer ---- */

static void put_statistics(struct thrift_writer *writer, const struct parquet_chunk *chunk)
{
    const struct parquet_bounds *bounds = &chunk->bounds;
    thrift_struct(writer, COLUMN_STATISTICS);
    thrift_i64(writer, STATISTICS_NULLS, chunk->n_nulls);
    if (bounds->are_known) {
        thrift_bytes(writer, STATISTICS_MOST, bounds->most.bytes, bounds->most.n_bytes);
        thrift_bytes(writer, STATISTICS_LEAST, bounds->least.bytes, bounds->least.n_bytes);
        thrift_bool(writer, STATISTICS_MOST_IS_VALUE, true);
        thrift_bool(writer, STATISTICS_LEAST_IS_VALUE, true);
    }
    thrift_end(writer);
}

/* ColumnMetaData */
static void put_chunk_metadata(struct thrift_writer *writer, const struct end_maker *maker,
                               const struct parquet_leaf *leaf, uint64_t at)
{
    const struct parquet_chunk *chunk = &maker->chunk;
    bool has_dictionary = chunk->dictionary_bytes > 0;
    thrift_struct(writer, CHUNK_METADATA);
    thrift_i32(writer, COLUMN_PHYSICAL, leaf->type);
    thrift_list(writer, COLUMN_ENCODINGS, THRIFT_I32, has_dictionary ? 3 : 2);
    thrift_item_integer(writer, PARQUET_RLE);
    thrift_item_integer(writer, chunk->encoding);
    if (has_dictionary) thrift_item_integer(writer, PARQUET_PLAIN);
    parquet_put_path(writer, COLUMN_PATH, maker->file->schema, leaf);
    thrift_i32(writer, COLUMN_CODEC,
               maker->file->is_compressed ? PARQUET_CODEC_ZSTD : PARQUET_CODEC_NONE);
    thrift_i64(writer, COLUMN_VALUES, chunk->n_values);
    thrift_i64(writer, COLUMN_RAW_BYTES, chunk->raw_bytes);
    thrift_i64(writer, COLUMN_STORED_BYTES, chunk->n_bytes);
    thrift_i64(writer, COLUMN_DATA_AT, (at + chunk->dictionary_bytes));
    if (has_dictionary) thrift_i64(writer, COLUMN_DICTIONARY_AT, at);
    put_statistics(writer, chunk);
    thrift_end(writer);
}

/* Writes the place and size of the index in `measured`, clears `measured`, and moves *at past the
   index. */
static void put_index_place(struct thrift_writer *writer, struct end_maker *maker, uint64_t *at,
                            int at_field, int bytes_field)
{
    size_t n_bytes = maker->measured.n_bytes;
    thrift_i64(writer, at_field, *at);
    thrift_i32(writer, bytes_field, (int32_t)n_bytes);
    *at += n_bytes;
    maker->measured.n_bytes = 0;
}

/* Writes the chunk of a leaf, which is at byte `at` of the file. */
static void put_chunk(struct thrift_writer *writer, struct end_maker *maker,
                      const struct parquet_leaf *leaf, uint64_t at)
{
    const struct parquet_chunk *chunk = &maker->chunk;
    thrift_item_struct(writer);
    thrift_i64(writer, CHUNK_AT, 0);    /* no other copy of the metadata */
    put_chunk_metadata(writer, maker, leaf, at);
    put_page_offsets(&maker->measured, chunk, at + chunk->dictionary_bytes);
    put_index_place(writer, maker, &maker->offsets_at, CHUNK_OFFSETS_AT, CHUNK_OFFSETS_BYTES);
    if (chunk->has_page_bounds) {
        put_page_bounds(&maker->measured, chunk, leaf->type);
        put_index_place(writer, maker, &maker->bounds_at, CHUNK_BOUNDS_AT, CHUNK_BOUNDS_BYTES);
    }
    thrift_end(writer);
}

/* The number of a field's leaf. */
static int32_t leaf_of(const struct end_maker *maker, enum column_field field)
{
    unsigned i = 0;
    while (maker->leaves[i].field != field) i++;
    return (int32_t)i;
}

static void put_sorting(struct thrift_writer *writer, const struct end_maker *maker)
{
    static const enum column_field by[] = {FIELD_RNAME, FIELD_POS};
    thrift_list(writer, GROUP_SORTING, THRIFT_STRUCT, 2);
    for (unsigned i = 0; i < 2; i++) {
        thrift_item_struct(writer);
        thrift_i32(writer, 1, leaf_of(maker, by[i]));
        thrift_bool(writer, 2, false);  /* not descending */
        thrift_bool(writer, 3, false);  /* nulls are not first */
        thrift_end(writer);
    }
}

static void put_group(struct end_maker *maker, const struct parquet_group *group,
                      const uint8_t *note)
{
    struct thrift_writer *writer = maker->footer;
    uint64_t raw_bytes = 0, place = group->at;
    thrift_item_struct(writer);
    thrift_list(writer, GROUP_CHUNKS, THRIFT_STRUCT, maker->n_leaves);
    for (unsigned i = 0; i < maker->n_leaves; i++) {
        note = row_group_metadata_read_chunk(note, &maker->chunk);
        put_chunk(writer, maker, &maker->leaves[i], place);
        place += maker->chunk.n_bytes;
        raw_bytes += maker->chunk.raw_bytes;
    }
    thrift_i64(writer, GROUP_RAW_BYTES, raw_bytes);
    thrift_i64(writer, GROUP_ROWS, group->n_rows);
    if (group->is_sorted) put_sorting(writer, maker);
    thrift_i64(writer, GROUP_AT, group->at);
    thrift_i64(writer, GROUP_BYTES, (place - group->at));
    if (maker->n_groups <= INT16_MAX)
        thrift_integer(writer, GROUP_ORDINAL, THRIFT_I16, (int64_t)maker->n_groups);
    thrift_end(writer);
    maker->n_groups++;
}

static void put_metadata_pair(struct thrift_writer *writer, const char *key, const char *value)
{
    thrift_item_struct(writer);
    thrift_text(writer, PAIR_KEY, key);
    thrift_text(writer, PAIR_VALUE, value);
    thrift_end(writer);
}

/* FileMetaData */
static void put_footer(struct end_maker *maker)
{
    struct thrift_writer writer = thrift_begin(&maker->out);
    const struct parquet_file *file = maker->file;
    thrift_i32(&writer, FILE_VERSION, 2);
    parquet_put_schema(&writer, FILE_SCHEMA, file->schema);
    thrift_i64(&writer, FILE_ROWS, file->n_rows);
    thrift_list(&writer, FILE_GROUPS, THRIFT_STRUCT, file->n_groups);
    maker->footer = &writer;
    visit_groups(maker, put_group);
    struct column_metadata metadata;
    column_metadata_make(&metadata, file->header);
    thrift_list(&writer, FILE_METADATA, THRIFT_STRUCT, metadata.n);
    for (unsigned i = 0; i < metadata.n; i++)
        put_metadata_pair(&writer, metadata.pairs[i].key, metadata.pairs[i].value);
    column_metadata_release(&metadata);
    thrift_text(&writer, FILE_CREATED_BY, "rocksort version " ROCKSORT_VERSION);
    thrift_list(&writer, FILE_ORDERS, THRIFT_STRUCT, maker->n_leaves);
    for (unsigned i = 0; i < maker->n_leaves; i++) {
        thrift_item_struct(&writer);
        thrift_empty_struct(&writer, 1);        /* the type-defined order */
        thrift_end(&writer);
    }
    thrift_end(&writer);
}

static int refuse_footer(const char *name)
{
    diag_error("cannot write '%s': its footer would exceed 1 GiB: give more memory (-m), for "
               "larger row groups, or use --split-by", name);
    return -1;
}

int parquet_file_check(const struct parquet_file *file)
{
    /* Minimum size of a chunk in the footer. Usually it is 68 to 115. */
    enum { LEAST_CHUNK_BYTES = 44 };
    size_t most = PARQUET_MOST_FOOTER_BYTES / LEAST_CHUNK_BYTES / file->schema->n_columns;
    return file->n_groups <= most ? 0 : refuse_footer(file->name);
}

int parquet_put_file_end(const struct parquet_file *file, uint64_t position,
                         const struct column_sink *sink)
{
    struct end_maker maker = {.file = file, .sink = sink, .position = position};
    maker.leaves = parquet_leaves(file->schema, &maker.n_leaves);
    maker.bounds_at = position;
    visit_groups(&maker, put_bounds_indexes);
    uint64_t offsets_begin = maker.offsets_at = next_position(&maker);
    visit_groups(&maker, put_offset_indexes);
    uint64_t footer = next_position(&maker);
    put_footer(&maker);
    uint64_t footer_bytes = next_position(&maker) - footer;
    (void)put_u32(column_bytes_append(&maker.out, 4), footer_bytes);
    column_bytes_copy(&maker.out, PARQUET_MAGIC, PARQUET_MAGIC_BYTES);
    if (!maker.has_failed) {
        assert(maker.bounds_at == offsets_begin && maker.offsets_at == footer);
        if (footer_bytes > PARQUET_MOST_FOOTER_BYTES)
            maker.has_failed = refuse_footer(file->name) < 0;
    }
    /* After a failure the file must not look complete: its last bytes are not written. */
    write_out(&maker);
    free(maker.out.bytes);
    free(maker.measured.bytes);
    free(maker.leaves);
    free(maker.chunk.pages);
    return maker.has_failed ? -1 : 0;
}
