/* parquet_file.c -- see parquet_file.h. */
#include "columns/parquet_file.h"

#include "columns/column_metadata.h"
#include "columns/parquet_format.h"
#include "util/byte_order.h"
#include "util/version.h"

#include <stdlib.h>

void parquet_put_file_begin(struct column_bytes *out)
{
    column_bytes_copy(out, PARQUET_MAGIC, PARQUET_MAGIC_BYTES);
}

/* ---- indexes of pages ---- */

struct place {
    uint64_t at;                /* in the file */
    uint32_t n_bytes;           /* 0: there is no such index */
};

struct chunk_places {
    struct place bounds, offsets;
};

/* The end of a file that is being made. */
struct end_maker {
    const struct parquet_file *file;
    const struct column_sink *sink;
    bool sink_failed;
    struct column_bytes out;    /* what was not written yet */
    uint64_t position;          /* of its first byte in the file */
    struct parquet_leaf *leaves;
    unsigned n_leaves;
    struct chunk_places *places;        /* of all chunks of all groups */
    size_t n_places, places_room;
    uint64_t n_groups, n_rows;
    struct parquet_chunk chunk; /* its pages are used again */
};

static bool is_null_page(const struct parquet_page *page)
{
    return page->n_nulls == page->n_rows;
}

/* True if the bounds of each page are not below those of the page before. */
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
        thrift_i64(&writer, 1, (int64_t)at);
        thrift_i32(&writer, 2, (int32_t)page->n_bytes);
        thrift_i64(&writer, 3, (int64_t)row);
        thrift_end(&writer);
        at += page->n_bytes;
        row += page->n_rows;
    }
    thrift_end(&writer);
}

/* Where the next byte goes in the file. */
static uint64_t next_position(const struct end_maker *maker)
{
    return maker->position + maker->out.n_bytes;
}

static struct place place_since(const struct end_maker *maker, uint64_t begin)
{
    return (struct place){begin, (uint32_t)(next_position(maker) - begin)};
}

static void write_out(struct end_maker *maker)
{
    struct column_bytes *out = &maker->out;
    if (!maker->sink_failed && out->n_bytes > 0)
        maker->sink_failed = !maker->sink->write(maker->sink->arg, out->bytes, out->n_bytes);
    maker->position += out->n_bytes;
    out->n_bytes = 0;
}

/* Writes what was made if it is much. */
static void write_much(struct end_maker *maker)
{
    enum { WRITE_BYTES = 1 << 20 };
    if (maker->out.n_bytes >= WRITE_BYTES) write_out(maker);
}

/* Calls `visit` for each chunk of all groups, with its number and where it begins. */
static void visit_chunks(struct end_maker *maker,
                         void (*visit)(struct end_maker *, size_t number, uint64_t at))
{
    const struct column_bytes *notes = maker->file->notes;
    size_t number = 0;
    struct parquet_group group;
    for (const uint8_t *at = notes->bytes; at < column_bytes_at(notes, notes->n_bytes);) {
        at = parquet_note_read(at, &group);
        for (unsigned i = 0; i < maker->n_leaves; i++) {
            at = parquet_note_read_chunk(at, &maker->chunk);
            visit(maker, number++, group.at);
            group.at += maker->chunk.n_bytes;
        }
        write_much(maker);
    }
}

static void add_bounds_index(struct end_maker *maker, size_t number, uint64_t at)
{
    (void)at;
    uint64_t begin = next_position(maker);
    xgrow(&maker->places, &maker->places_room, number + 1, number, sizeof *maker->places);
    maker->places[number] = (struct chunk_places){0};
    maker->n_places = number + 1;
    if (!maker->chunk.has_page_bounds) return;
    put_page_bounds(&maker->out, &maker->chunk, maker->leaves[number % maker->n_leaves].type);
    maker->places[number].bounds = place_since(maker, begin);
}

static void add_offset_index(struct end_maker *maker, size_t number, uint64_t at)
{
    uint64_t begin = next_position(maker);
    put_page_offsets(&maker->out, &maker->chunk, at + maker->chunk.dictionary_bytes);
    maker->places[number].offsets = place_since(maker, begin);
}

/* ---- the footer ---- */

static void put_statistics(struct thrift_writer *writer, const struct parquet_chunk *chunk)
{
    const struct parquet_bounds *bounds = &chunk->bounds;
    thrift_struct(writer, COLUMN_STATISTICS);
    thrift_i64(writer, STATISTICS_NULLS, (int64_t)chunk->n_nulls);
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
    thrift_i64(writer, COLUMN_VALUES, (int64_t)chunk->n_values);
    thrift_i64(writer, COLUMN_RAW_BYTES, (int64_t)chunk->raw_bytes);
    thrift_i64(writer, COLUMN_STORED_BYTES, (int64_t)chunk->n_bytes);
    thrift_i64(writer, COLUMN_DATA_AT, (int64_t)(at + chunk->dictionary_bytes));
    if (has_dictionary) thrift_i64(writer, COLUMN_DICTIONARY_AT, (int64_t)at);
    put_statistics(writer, chunk);
    thrift_end(writer);
}

static void put_chunk(struct thrift_writer *writer, const struct end_maker *maker, size_t number,
                      uint64_t at)
{
    const struct chunk_places *places = &maker->places[number];
    thrift_item_struct(writer);
    thrift_i64(writer, CHUNK_AT, 0);    /* there is no other copy of the metadata */
    put_chunk_metadata(writer, maker, &maker->leaves[number % maker->n_leaves], at);
    thrift_i64(writer, CHUNK_OFFSETS_AT, (int64_t)places->offsets.at);
    thrift_i32(writer, CHUNK_OFFSETS_BYTES, (int32_t)places->offsets.n_bytes);
    if (places->bounds.n_bytes > 0) {
        thrift_i64(writer, CHUNK_BOUNDS_AT, (int64_t)places->bounds.at);
        thrift_i32(writer, CHUNK_BOUNDS_BYTES, (int32_t)places->bounds.n_bytes);
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

/* Writes a group. Returns what follows its note. */
static const uint8_t *put_group(struct thrift_writer *writer, struct end_maker *maker,
                                const uint8_t *note)
{
    struct parquet_group group;
    uint64_t raw_bytes = 0;
    const uint8_t *at = parquet_note_read(note, &group);
    uint64_t place = group.at;
    thrift_item_struct(writer);
    thrift_list(writer, GROUP_CHUNKS, THRIFT_STRUCT, maker->n_leaves);
    for (unsigned i = 0; i < maker->n_leaves; i++) {
        at = parquet_note_read_chunk(at, &maker->chunk);
        put_chunk(writer, maker, (size_t)maker->n_groups * maker->n_leaves + i, place);
        place += maker->chunk.n_bytes;
        raw_bytes += maker->chunk.raw_bytes;
    }
    thrift_i64(writer, GROUP_RAW_BYTES, (int64_t)raw_bytes);
    thrift_i64(writer, GROUP_ROWS, (int64_t)group.n_rows);
    if (group.is_sorted) put_sorting(writer, maker);
    thrift_i64(writer, GROUP_AT, (int64_t)group.at);
    thrift_i64(writer, GROUP_BYTES, (int64_t)(place - group.at));
    if (maker->n_groups <= INT16_MAX)
        thrift_i16(writer, GROUP_ORDINAL, (int16_t)maker->n_groups);
    thrift_end(writer);
    maker->n_groups++;
    return at;
}

static void count_rows(struct end_maker *maker, size_t *n_groups)
{
    *n_groups = maker->n_leaves > 0 ? maker->n_places / maker->n_leaves : 0;
    const struct column_bytes *notes = maker->file->notes;
    struct parquet_group group;
    for (const uint8_t *at = notes->bytes; at < column_bytes_at(notes, notes->n_bytes);
         at += parquet_note_bytes(at)) {
        (void)parquet_note_read(at, &group);
        maker->n_rows += group.n_rows;
    }
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
    const struct column_bytes *notes = maker->file->notes;
    size_t n_groups;
    count_rows(maker, &n_groups);
    thrift_i32(&writer, FILE_VERSION, 2);
    parquet_put_schema(&writer, FILE_SCHEMA, maker->file->schema);
    thrift_i64(&writer, FILE_ROWS, (int64_t)maker->n_rows);
    thrift_list(&writer, FILE_GROUPS, THRIFT_STRUCT, n_groups);
    for (const uint8_t *at = notes->bytes; at < column_bytes_at(notes, notes->n_bytes);) {
        at = put_group(&writer, maker, at);
        write_much(maker);
    }
    struct column_metadata metadata;
    column_metadata_make(&metadata, maker->file->header);
    thrift_list(&writer, FILE_METADATA, THRIFT_STRUCT, metadata.n);
    for (unsigned i = 0; i < metadata.n; i++)
        put_metadata_pair(&writer, metadata.pairs[i].key, metadata.pairs[i].value);
    column_metadata_release(&metadata);
    thrift_text(&writer, FILE_CREATED_BY, "rocksort version " ROCKSORT_VERSION);
    thrift_list(&writer, FILE_ORDERS, THRIFT_STRUCT, maker->n_leaves);
    for (unsigned i = 0; i < maker->n_leaves; i++) {
        thrift_item_struct(&writer);
        thrift_empty_struct(&writer, 1);        /* the order that is defined for the type */
        thrift_end(&writer);
    }
    thrift_end(&writer);
}

const char *parquet_put_file_end(const struct parquet_file *file, uint64_t position,
                                 const struct column_sink *sink)
{
    struct end_maker maker = {.file = file, .sink = sink, .position = position};
    maker.leaves = parquet_leaves(file->schema, &maker.n_leaves);
    visit_chunks(&maker, add_bounds_index);
    visit_chunks(&maker, add_offset_index);
    uint64_t footer = next_position(&maker);
    put_footer(&maker);
    uint64_t footer_bytes = next_position(&maker) - footer;
    (void)put_u32(column_bytes_append(&maker.out, 4), footer_bytes);
    column_bytes_copy(&maker.out, PARQUET_MAGIC, PARQUET_MAGIC_BYTES);
    write_out(&maker);
    free(maker.out.bytes);
    free(maker.leaves);
    free(maker.places);
    free(maker.chunk.pages);
    return footer_bytes <= INT32_MAX ? NULL : "it has too many row groups for the footer of Parquet";
}
