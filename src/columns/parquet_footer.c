/*
 * parquet_footer.c -- see parquet_footer.h.
 *
 * The places of page indexes are known only at the end. So the stream of groups is a sequence of
 * parts of the footer, each with a head (struct part_head); the places of the indexes of a chunk
 * are filled in after the part that describes it.
 */
#include "columns/parquet_footer.h"

#include "util/byte_order.h"
#include "util/diag.h"
#include "util/version.h"

#include <stdlib.h>

/* ---- indexes of pages ---- */

static const struct parquet_page *pages_of(const struct parquet_chunk *chunk)
{
    return (const void *)(chunk + 1);
}

static bool is_null_page(const struct parquet_page *page)
{
    return page->n_nulls == page->n_rows;
}

/* True if the bounds of pages never decrease. */
static bool pages_ascend(const struct parquet_chunk *chunk, enum parquet_type type)
{
    const struct parquet_bounds *last = NULL;
    const struct parquet_page *page = pages_of(chunk), *end = page + chunk->n_pages;
    for (; page < end; page++) {
        const struct parquet_bounds *bounds = &page->bounds;
        if (is_null_page(page)) continue;
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
static void put_page_bounds(struct byte_buffer *out, const struct parquet_chunk *chunk,
                            enum parquet_type type)
{
    struct thrift_writer writer = thrift_begin(out);
    size_t n = chunk->n_pages;
    const struct parquet_page *pages = pages_of(chunk);
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
static void put_page_offsets(struct byte_buffer *out, const struct parquet_chunk *chunk,
                             uint64_t at)
{
    struct thrift_writer writer = thrift_begin(out);
    uint64_t row = 0;
    thrift_list(&writer, 1, THRIFT_STRUCT, chunk->n_pages);
    for (size_t i = 0; i < chunk->n_pages; i++) {
        const struct parquet_page *page = &pages_of(chunk)[i];
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

/* ---- groups ---- */

struct part_head {
    uint32_t n_bytes;
    uint32_t offsets_bytes, bounds_bytes;       /* of the page indexes of a chunk; 0: none */
};

/* What groups add to each stream. */
struct additions {
    struct byte_buffer streams[PARQUET_N_STREAMS];
    size_t part;                /* where the head of the last part is */
};

static void begin_part(struct additions *to)
{
    to->part = to->streams[PARQUET_GROUPS].n_bytes;
    (void)byte_buffer_append(&to->streams[PARQUET_GROUPS], sizeof(struct part_head));
}

static void end_part(struct additions *to, size_t offsets_bytes, size_t bounds_bytes)
{
    struct byte_buffer *groups = &to->streams[PARQUET_GROUPS];
    const struct part_head head = {(uint32_t)(groups->n_bytes - to->part - sizeof head),
                                   (uint32_t)offsets_bytes, (uint32_t)bounds_bytes};
    memcpy(groups->bytes + to->part, &head, sizeof head);
}

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
static void put_chunk_metadata(struct thrift_writer *writer, const struct parquet_footer *file,
                               const struct parquet_chunk *chunk, const struct parquet_leaf *leaf,
                               uint64_t at)
{
    bool has_dictionary = chunk->dictionary_bytes > 0;
    thrift_struct(writer, CHUNK_METADATA);
    thrift_i32(writer, COLUMN_PHYSICAL, leaf->type);
    thrift_list(writer, COLUMN_ENCODINGS, THRIFT_I32, has_dictionary ? 3 : 2);
    thrift_item_integer(writer, PARQUET_RLE);
    thrift_item_integer(writer, chunk->encoding);
    if (has_dictionary) thrift_item_integer(writer, PARQUET_PLAIN);
    parquet_put_path(writer, COLUMN_PATH, file->schema, leaf);
    thrift_i32(writer, COLUMN_CODEC, file->is_compressed ? PARQUET_CODEC_ZSTD : PARQUET_CODEC_NONE);
    thrift_i64(writer, COLUMN_VALUES, chunk->n_values);
    thrift_i64(writer, COLUMN_RAW_BYTES, chunk->raw_bytes);
    thrift_i64(writer, COLUMN_STORED_BYTES, chunk->n_bytes);
    thrift_i64(writer, COLUMN_DATA_AT, at + chunk->dictionary_bytes);
    if (has_dictionary) thrift_i64(writer, COLUMN_DICTIONARY_AT, at);
    put_statistics(writer, chunk);
    thrift_end(writer);
}

/* Adds the chunk of a leaf, which is at byte `at` of the file. */
static void add_chunk(struct additions *to, const struct parquet_footer *file,
                      const struct parquet_chunk *chunk, const struct parquet_leaf *leaf,
                      uint64_t at)
{
    struct byte_buffer *bounds = &to->streams[PARQUET_BOUNDS];
    struct byte_buffer *offsets = &to->streams[PARQUET_OFFSETS];
    size_t bounds_begin = bounds->n_bytes, offsets_begin = offsets->n_bytes;
    begin_part(to);
    struct thrift_writer writer = thrift_begin(&to->streams[PARQUET_GROUPS]);
    thrift_i64(&writer, CHUNK_AT, 0);   /* no other copy of the metadata */
    put_chunk_metadata(&writer, file, chunk, leaf, at);
    put_page_offsets(offsets, chunk, at + chunk->dictionary_bytes);
    if (chunk->has_page_bounds) put_page_bounds(bounds, chunk, leaf->type);
    end_part(to, offsets->n_bytes - offsets_begin, bounds->n_bytes - bounds_begin);
}

/* The number of a field's leaf. */
static int32_t leaf_of(const struct parquet_leaf *leaves, enum column_field field)
{
    int32_t i = 0;
    while (leaves[i].field != field) i++;
    return i;
}

static void put_sorting(struct thrift_writer *writer, const struct parquet_leaf *leaves)
{
    static const enum column_field by[] = {FIELD_RNAME, FIELD_POS};
    thrift_list(writer, GROUP_SORTING, THRIFT_STRUCT, 2);
    for (unsigned i = 0; i < 2; i++) {
        thrift_item_struct(writer);
        thrift_i32(writer, 1, leaf_of(leaves, by[i]));
        thrift_bool(writer, 2, false);  /* not descending */
        thrift_bool(writer, 3, false);  /* nulls are not first */
        thrift_end(writer);
    }
}

/* Adds a group, whose chunks are at `metadata`. Returns the end of the metadata. */
static const uint8_t *add_group(struct additions *to, struct parquet_footer *file,
                                const struct parquet_group *group, const uint8_t *metadata,
                                uint64_t position)
{
    uint64_t raw_bytes = 0, begin = position + group->at, at = begin;
    struct thrift_writer writer = thrift_begin(&to->streams[PARQUET_GROUPS]);
    begin_part(to);
    thrift_list(&writer, GROUP_CHUNKS, THRIFT_STRUCT, file->n_leaves);
    end_part(to, 0, 0);
    for (unsigned i = 0; i < file->n_leaves; i++) {
        const struct parquet_chunk *chunk = (const void *)metadata;
        add_chunk(to, file, chunk, &file->leaves[i], at);
        at += chunk->n_bytes;
        raw_bytes += chunk->raw_bytes;
        metadata = (const uint8_t *)(pages_of(chunk) + chunk->n_pages);
    }
    begin_part(to);
    thrift_i64(&writer, GROUP_RAW_BYTES, raw_bytes);
    thrift_i64(&writer, GROUP_ROWS, group->n_rows);
    if (group->is_sorted) put_sorting(&writer, file->leaves);
    thrift_i64(&writer, GROUP_AT, begin);
    thrift_i64(&writer, GROUP_BYTES, at - begin);
    if (file->n_groups <= INT16_MAX)
        thrift_integer(&writer, GROUP_ORDINAL, THRIFT_I16, (int64_t)file->n_groups);
    thrift_end(&writer);
    end_part(to, 0, 0);
    file->n_groups++;
    file->n_rows += group->n_rows;
    return metadata;
}

/* Returns -1 after a message if a footer of n_bytes is too large. */
static int check_footer(const struct parquet_footer *file, uint64_t n_bytes)
{
    if (n_bytes <= file->most_footer_bytes) return 0;
    diag_error("cannot write '%s': its footer would exceed 1 GiB: give more memory (-m), for "
               "larger row groups, or use --split-by", file->name);
    return -1;
}

int parquet_footer_add(struct parquet_footer *file, const struct byte_buffer *metadata,
                       uint64_t position)
{
    struct additions to = {.part = 0};
    int r = 0;
    if (metadata->n_bytes == 0) return 0;
    const uint8_t *end = metadata->bytes + metadata->n_bytes;
    for (const uint8_t *at = metadata->bytes; at < end;) {
        const struct parquet_group *group = (const void *)at;
        at = add_group(&to, file, group, at + sizeof *group, position);
    }
    for (unsigned i = 0; i < PARQUET_N_STREAMS; i++) {
        struct byte_buffer *bytes = &to.streams[i];
        if (r == 0) r = tape_set_append(file->spool, i, bytes->bytes, bytes->n_bytes);
        free(bytes->bytes);
    }
    return r < 0 ? r : check_footer(file, tape_set_bytes(file->spool, PARQUET_GROUPS));
}

/* ---- the end of the file ---- */

struct end_maker {
    const struct parquet_footer *file;
    const struct column_sink *sink;
    struct tape_reader reader;
    struct byte_buffer out;    /* bytes of the footer not passed to the sink yet */
    uint64_t n_written;         /* bytes of the footer that were */
    uint64_t bounds_at, offsets_at;     /* places in the file of the next page indexes */
};

static int write_out(struct end_maker *maker)
{
    struct byte_buffer *out = &maker->out;
    bool is_written = maker->sink->write(maker->sink->arg, out->bytes, out->n_bytes);
    maker->n_written += out->n_bytes;
    out->n_bytes = 0;
    return is_written ? 0 : -1;
}

/* Writes the place and size of a page index, and moves *at past it. */
static void put_index_place(struct thrift_writer *writer, int field, uint64_t *at, uint32_t n_bytes)
{
    if (n_bytes == 0) return;
    thrift_i64(writer, field, *at);
    thrift_i32(writer, field + 1, (int32_t)n_bytes);
    *at += n_bytes;
}

static int put_groups(struct end_maker *maker)
{
    enum { WRITE_BYTES = 1 << 20 };     /* at a time */
    struct tape_reader *reader = &maker->reader;
    tape_reader_begin(reader, maker->file->spool, PARQUET_GROUPS);
    while (tape_left(reader) > 0) {
        struct part_head head;
        const uint8_t *bytes = tape_read(reader, sizeof head);
        if (!bytes) return -1;
        memcpy(&head, bytes, sizeof head);
        bytes = tape_read(reader, head.n_bytes);
        if (!bytes) return -1;
        byte_buffer_copy(&maker->out, bytes, head.n_bytes);
        if (head.offsets_bytes > 0) {
            struct thrift_writer writer = thrift_continue(&maker->out, CHUNK_METADATA);
            put_index_place(&writer, CHUNK_OFFSETS_AT, &maker->offsets_at, head.offsets_bytes);
            put_index_place(&writer, CHUNK_BOUNDS_AT, &maker->bounds_at, head.bounds_bytes);
            thrift_end(&writer);
        }
        if (maker->out.n_bytes >= WRITE_BYTES && write_out(maker) < 0) return -1;
    }
    return 0;
}

static void put_metadata(struct thrift_writer *writer, sam_hdr_t *header)
{
    struct column_metadata metadata;
    column_metadata_make(&metadata, header);
    thrift_list(writer, FILE_METADATA, THRIFT_STRUCT, metadata.n);
    for (unsigned i = 0; i < metadata.n; i++) {
        thrift_item_struct(writer);
        thrift_text(writer, PAIR_KEY, metadata.pairs[i].key);
        thrift_text(writer, PAIR_VALUE, metadata.pairs[i].value);
        thrift_end(writer);
    }
    column_metadata_release(&metadata);
}

/* FileMetaData */
static int put_footer(struct end_maker *maker, sam_hdr_t *header)
{
    struct thrift_writer writer = thrift_begin(&maker->out);
    const struct parquet_footer *file = maker->file;
    thrift_i32(&writer, FILE_VERSION, 2);
    parquet_put_schema(&writer, FILE_SCHEMA, file->schema);
    thrift_i64(&writer, FILE_ROWS, file->n_rows);
    thrift_list(&writer, FILE_GROUPS, THRIFT_STRUCT, file->n_groups);
    if (put_groups(maker) < 0) return -1;
    put_metadata(&writer, header);
    thrift_text(&writer, FILE_CREATED_BY, "rocksort version " ROCKSORT_VERSION);
    thrift_list(&writer, FILE_ORDERS, THRIFT_STRUCT, file->n_leaves);
    for (unsigned i = 0; i < file->n_leaves; i++) {
        thrift_item_struct(&writer);
        thrift_empty_struct(&writer, 1);        /* the type-defined order */
        thrift_end(&writer);
    }
    thrift_end(&writer);
    uint64_t n_bytes = maker->n_written + maker->out.n_bytes;
    if (check_footer(file, n_bytes) < 0) return -1;
    (void)put_u32(byte_buffer_append(&maker->out, 4), n_bytes);
    byte_buffer_copy(&maker->out, PARQUET_MAGIC, PARQUET_MAGIC_BYTES);
    return write_out(maker);
}

/* After a failure the file must not look complete: its last bytes are not written. */
int parquet_footer_end(const struct parquet_footer *file, sam_hdr_t *header, uint64_t position,
                       const struct column_sink *sink)
{
    struct end_maker maker = {
        .file = file, .sink = sink, .bounds_at = position,
        .offsets_at = position + tape_set_bytes(file->spool, PARQUET_BOUNDS),
    };
    int r = column_sink_copy(sink, file->spool, PARQUET_BOUNDS);
    if (r == 0) r = column_sink_copy(sink, file->spool, PARQUET_OFFSETS);
    if (r == 0) r = put_footer(&maker, header);
    tape_reader_release(&maker.reader);
    free(maker.out.bytes);
    return r;
}
