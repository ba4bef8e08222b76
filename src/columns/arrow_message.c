/*
 * arrow_message.c -- see arrow_message.h.
 *
 * Field numbers and names are those of Arrow's Message.fbs, Schema.fbs and File.fbs, version 5.
 */
#include "columns/arrow_message.h"

#include "util/byte_order.h"
#include "util/xalloc.h"

#include <lz4frame.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { REFERENCES_ID = 0 };

enum { ARROW_METADATA_VERSION = 4 };    /* V5 */
enum { ARROW_HEADER_SCHEMA = 1, ARROW_HEADER_DICTIONARY = 2, ARROW_HEADER_BATCH = 3 };
enum {
    ARROW_TYPE_INT = 2,
    ARROW_TYPE_FLOAT = 3,
    ARROW_TYPE_UTF8 = 5,
    ARROW_TYPE_LIST = 12,
    ARROW_TYPE_STRUCT = 13,
    ARROW_TYPE_MAP = 17
};
enum { ARROW_PRECISION_SINGLE = 1 };
enum { ARROW_CODEC_LZ4 = 0, ARROW_CODEC_ZSTD = 1 };

static const char magic[] = "ARROW1";

void arrow_coder_release(struct arrow_coder *coder)
{
    flat_release(&coder->flat);
    (void)ZSTD_freeCCtx(coder->zstd);
    (void)LZ4F_freeCompressionContext(coder->lz4);
    *coder = (struct arrow_coder){0};
}

/* ---- bytes ---- */

/* Appends zeros until n_bytes is a multiple of 8. */
static void append_padding(struct byte_buffer *out, size_t n_bytes)
{
    static const uint8_t zeros[8];
    byte_buffer_copy(out, zeros, (0 - n_bytes) & 7);
}

/* Appends the metadata of a message, which precede its body. Returns their size. */
static uint32_t append_metadata(struct arrow_coder *coder, flat_place message,
                                struct byte_buffer *out)
{
    size_t n_bytes;
    const uint8_t *metadata = flat_finish(&coder->flat, message, &n_bytes);
    uint8_t *at = byte_buffer_append(out, 8 + n_bytes);
    at = put_u32(put_u32(at, UINT32_MAX), n_bytes);
    memcpy(at, metadata, n_bytes);
    return (uint32_t)(8 + n_bytes);
}

/* Makes the message around its header. */
static flat_place make_message(struct arrow_coder *coder, uint8_t kind, flat_place header,
                               uint64_t body_bytes)
{
    struct flat_buffer *flat = &coder->flat;
    flat_table_begin(flat);
    flat_field(flat, 3, 8, body_bytes);
    flat_field_place(flat, 2, header);
    flat_field(flat, 0, 2, ARROW_METADATA_VERSION);
    flat_field(flat, 1, 1, kind);
    return flat_table_end(flat);
}

void arrow_put_file_begin(struct byte_buffer *out)
{
    byte_buffer_copy(out, magic, strlen(magic));
    append_padding(out, strlen(magic));
}

void arrow_put_stream_end(struct byte_buffer *out)
{
    (void)put_u32(put_u32(byte_buffer_append(out, 8), UINT32_MAX), 0);
}

/* ---- schema ---- */

/* The table of a type without parameters. */
static flat_place make_plain_type(struct flat_buffer *flat)
{
    flat_table_begin(flat);
    return flat_table_end(flat);
}

/* The type of a column of numbers, or of the elements of its lists. */
static flat_place make_number_type(struct flat_buffer *flat, struct column_number number)
{
    flat_table_begin(flat);
    if (number.is_float) {
        flat_field(flat, 0, 2, ARROW_PRECISION_SINGLE);
    } else {
        flat_field(flat, 0, 4, 8u * number.n_bytes);
        flat_field(flat, 1, 1, number.is_signed);
    }
    return flat_table_end(flat);
}

struct field {
    const char *name;
    bool is_required;
    uint8_t type_kind;
    flat_place type, dictionary, children[2];
    size_t n_children;
};

static flat_place make_field(struct flat_buffer *flat, const struct field *field)
{
    /* Every field has a vector of children, because some readers require it. */
    flat_place children = flat_vector(flat, field->children, field->n_children);
    flat_place name = flat_text(flat, field->name, strlen(field->name));
    flat_table_begin(flat);
    flat_field_place(flat, 0, name);
    flat_field_place(flat, 3, field->type);
    if (field->dictionary) flat_field_place(flat, 4, field->dictionary);
    flat_field_place(flat, 5, children);
    flat_field(flat, 1, 1, !field->is_required);
    flat_field(flat, 2, 1, field->type_kind);
    return flat_table_end(flat);
}

static flat_place make_text_field(struct flat_buffer *flat, const char *name, bool is_required)
{
    const struct field field = {
        .name = name, .is_required = is_required, .type_kind = ARROW_TYPE_UTF8,
        .type = make_plain_type(flat),
    };
    return make_field(flat, &field);
}

static flat_place make_number_field(struct flat_buffer *flat, const char *name, bool is_required,
                                    enum column_type type)
{
    const struct column_number number = column_type_number(type);
    const struct field field = {
        .name = name, .is_required = is_required,
        .type_kind = number.is_float ? ARROW_TYPE_FLOAT : ARROW_TYPE_INT,
        .type = make_number_type(flat, number),
    };
    return make_field(flat, &field);
}

/* The fields of a map's entries have the names that the specification recommends. */
static flat_place make_entries_field(struct flat_buffer *flat)
{
    flat_place key = make_text_field(flat, "key", true);
    flat_place value = make_text_field(flat, "value", false);
    const struct field field = {
        .name = "entries", .is_required = true, .type_kind = ARROW_TYPE_STRUCT,
        .type = make_plain_type(flat), .children = {key, value}, .n_children = 2,
    };
    return make_field(flat, &field);
}

static flat_place make_column_field(struct flat_buffer *flat, const struct column *column)
{
    struct field field = {.name = column->name};
    if (column_type_is_text(column->type)) return make_text_field(flat, column->name, false);
    if (column_type_is_list(column->type)) {
        field.type_kind = ARROW_TYPE_LIST;
        field.children[field.n_children++] = make_number_field(flat, "item", true, column->type);
        field.type = make_plain_type(flat);
    } else if (column->type == COLUMN_MAP) {
        field.type_kind = ARROW_TYPE_MAP;
        field.children[field.n_children++] = make_entries_field(flat);
        flat_table_begin(flat);
        flat_field(flat, 0, 1, false);  /* keys are not sorted */
        field.type = flat_table_end(flat);
    } else if (column->type == COLUMN_REFERENCE) {
        field.type_kind = ARROW_TYPE_UTF8;
        flat_place index = make_number_type(flat, column_type_number(column->type));
        flat_table_begin(flat);
        flat_field(flat, 0, 8, REFERENCES_ID);
        flat_field_place(flat, 1, index);
        field.dictionary = flat_table_end(flat);
        field.type = make_plain_type(flat);
    } else {
        return make_number_field(flat, column->name, false, column->type);
    }
    return make_field(flat, &field);
}

static flat_place make_metadata_pair(struct flat_buffer *flat, const char *key, const char *value)
{
    flat_place key_place = flat_text(flat, key, strlen(key));
    flat_place value_place = flat_text(flat, value, strlen(value));
    flat_table_begin(flat);
    flat_field_place(flat, 0, key_place);
    flat_field_place(flat, 1, value_place);
    return flat_table_end(flat);
}

static flat_place make_metadata(struct flat_buffer *flat, sam_hdr_t *header)
{
    struct column_metadata metadata;
    flat_place pairs[3];
    column_metadata_make(&metadata, header);
    for (unsigned i = 0; i < metadata.n; i++)
        pairs[i] = make_metadata_pair(flat, metadata.pairs[i].key, metadata.pairs[i].value);
    column_metadata_release(&metadata);
    return flat_vector(flat, pairs, metadata.n);
}

static flat_place make_schema(struct arrow_coder *coder, const struct column_schema *schema,
                              sam_hdr_t *header)
{
    struct flat_buffer *flat = &coder->flat;
    flat_place metadata = make_metadata(flat, header);
    flat_place *fields = xmalloc(schema->n_columns * sizeof *fields);
    for (unsigned i = 0; i < schema->n_columns; i++)
        fields[i] = make_column_field(flat, &schema->columns[i]);
    flat_place all = flat_vector(flat, fields, schema->n_columns);
    free(fields);
    flat_table_begin(flat);
    flat_field_place(flat, 1, all);
    flat_field_place(flat, 2, metadata);
    return flat_table_end(flat);
}

void arrow_put_schema(struct arrow_coder *coder, const struct column_schema *schema,
                      sam_hdr_t *header, struct byte_buffer *out)
{
    flat_clear(&coder->flat);
    flat_place place = make_schema(coder, schema, header);
    (void)append_metadata(coder, make_message(coder, ARROW_HEADER_SCHEMA, place, 0), out);
}

/* ---- batches ---- */

/* The body of a batch, and what its metadata need. */
struct body {
    struct arrow_coder *coder;
    enum column_codec codec;
    int level;
    struct byte_buffer *out;           /* NULL: only count nodes and buffers */
    size_t begin;                       /* of the body in `out` */
    struct byte_buffer nodes, buffers; /* pairs of numbers of 64 bits */
};

static void put_pair(struct byte_buffer *pairs, uint64_t first, uint64_t second)
{
    (void)put_u64(put_u64(byte_buffer_append(pairs, 16), first), second);
}

static void add_node(struct body *body, uint64_t n_rows, uint64_t n_nulls)
{
    put_pair(&body->nodes, n_rows, n_nulls);
}

/*
 * Both functions append the compressed bytes. They return false on failure. They do not reserve the
 * room for incompressible bytes: most bytes need a third of it, for which `out` has room from the
 * start (chunk_encoder.c), and growing it would copy it.
 */
static bool append_zstd(struct body *body, const uint8_t *from, size_t n_bytes)
{
    struct byte_buffer *out = body->out;
    struct arrow_coder *coder = body->coder;
    size_t bound = ZSTD_compressBound(n_bytes), spare = ZSTD_compressBound(ZSTD_BLOCKSIZE_MAX);
    if (!coder->zstd) coder->zstd = ZSTD_createCCtx();
    xalloc_require(coder->zstd != NULL);
    if (out->room - out->n_bytes < n_bytes / 4) (void)byte_buffer_reserve(out, bound);
    size_t room = out->room - out->n_bytes;
    size_t size = ZSTD_compressCCtx(coder->zstd, byte_buffer_reserve(out, 0), room, from, n_bytes,
                                    body->level);
    /* With little room zstd writes other bytes, but the output must not depend on the room. */
    if (room < bound && (ZSTD_isError(size) || room - size < spare))
        size = ZSTD_compressCCtx(coder->zstd, byte_buffer_reserve(out, bound), bound, from,
                                 n_bytes, body->level);
    if (ZSTD_isError(size)) return false;
    out->n_bytes += size;
    return true;
}

/* Makes room block by block. */
static bool append_lz4(struct body *body, const uint8_t *from, size_t n_bytes)
{
    enum { BLOCK_BYTES = 256 << 10 };
    const LZ4F_preferences_t preferences = {
        .frameInfo = {.blockSizeID = LZ4F_max256KB, .contentSize = n_bytes},
        .autoFlush = 1,
    };
    static const LZ4F_compressOptions_t options = {.stableSrc = 1};
    struct byte_buffer *out = body->out;
    LZ4F_cctx *lz4 = body->coder->lz4;
    if (!lz4) xalloc_require(!LZ4F_isError(LZ4F_createCompressionContext(&lz4, LZ4F_VERSION)));
    body->coder->lz4 = lz4;
    size_t size = LZ4F_compressBegin(lz4, byte_buffer_reserve(out, LZ4F_HEADER_SIZE_MAX),
                                     LZ4F_HEADER_SIZE_MAX, &preferences);
    for (size_t at = 0; at < n_bytes && !LZ4F_isError(size);) {
        out->n_bytes += size;
        size_t n = n_bytes - at < BLOCK_BYTES ? n_bytes - at : BLOCK_BYTES;
        size_t bound = LZ4F_compressBound(n, &preferences);
        size = LZ4F_compressUpdate(lz4, byte_buffer_reserve(out, bound), bound, from + at, n,
                                   &options);
        at += n;
    }
    if (LZ4F_isError(size)) return false;
    out->n_bytes += size;
    size_t bound = LZ4F_compressBound(0, &preferences);
    size = LZ4F_compressEnd(lz4, byte_buffer_reserve(out, bound), bound, &options);
    if (LZ4F_isError(size)) return false;
    out->n_bytes += size;
    return true;
}

/* Appends a buffer. With compression its original size precedes it, or -1 if it is stored. */
static void add_buffer(struct body *body, const uint8_t *bytes, size_t n_bytes)
{
    struct byte_buffer *out = body->out;
    if (!out) {
        put_pair(&body->buffers, 0, 0);
        return;
    }
    size_t begin = out->n_bytes;
    if (n_bytes > 0 && body->codec != COLUMN_CODEC_NONE) {
        (void)put_u64(byte_buffer_append(out, 8), n_bytes);
        bool done = body->codec == COLUMN_CODEC_ZSTD ? append_zstd(body, bytes, n_bytes)
                                                     : append_lz4(body, bytes, n_bytes);
        if (!done || out->n_bytes >= begin + 8 + n_bytes) {
            out->n_bytes = begin;
            (void)put_u64(byte_buffer_append(out, 8), UINT64_MAX);
            byte_buffer_copy(out, bytes, n_bytes);
        }
    } else {
        byte_buffer_copy(out, bytes, n_bytes);
    }
    put_pair(&body->buffers, begin - body->begin, out->n_bytes - begin);
    append_padding(out, out->n_bytes - begin);
}

static void add_buffers(struct body *body, const struct column_values *column,
                        enum column_buffer first, enum column_buffer last)
{
    for (unsigned i = first; i <= last; i++)
        add_buffer(body, column->buffers[i].bytes, column->buffers[i].n_bytes);
}

/* Adds the texts of keys or values of a map, with their offsets. */
static void add_child_texts(struct body *body, const struct column_values *column,
                            enum column_buffer offsets, uint64_t n)
{
    add_node(body, n, 0);
    add_buffer(body, NULL, 0);
    add_buffers(body, column, offsets, offsets + 1);
}

static void add_column(struct body *body, enum column_type type, const struct column_values *column)
{
    add_node(body, column->n_rows, column->n_nulls);
    if (column_type_is_text(type)) {
        add_buffers(body, column, BUFFER_VALIDITY, BUFFER_VALUES);
    } else if (column_type_is_list(type)) {
        add_buffers(body, column, BUFFER_VALIDITY, BUFFER_OFFSETS);
        add_node(body, column->buffers[BUFFER_VALUES].n_bytes / column_type_bytes(type), 0);
        add_buffer(body, NULL, 0);
        add_buffers(body, column, BUFFER_VALUES, BUFFER_VALUES);
    } else if (type == COLUMN_MAP) {
        uint64_t n_entries = column->buffers[BUFFER_KEY_OFFSETS].n_bytes / 4 - 1;
        add_buffers(body, column, BUFFER_VALIDITY, BUFFER_OFFSETS);
        add_node(body, n_entries, 0);
        add_buffer(body, NULL, 0);
        add_child_texts(body, column, BUFFER_KEY_OFFSETS, n_entries);
        add_child_texts(body, column, BUFFER_MAPPED_OFFSETS, n_entries);
    } else {
        add_buffers(body, column, BUFFER_VALIDITY, BUFFER_VALIDITY);
        add_buffers(body, column, BUFFER_VALUES, BUFFER_VALUES);
    }
}

/* Makes the table RecordBatch. */
static flat_place make_batch(const struct body *body, uint64_t n_rows)
{
    struct flat_buffer *flat = &body->coder->flat;
    flat_place compression = 0;
    bool is_zstd = body->codec == COLUMN_CODEC_ZSTD;
    if (body->codec != COLUMN_CODEC_NONE) {
        flat_table_begin(flat);
        flat_field(flat, 0, 1, is_zstd ? ARROW_CODEC_ZSTD : ARROW_CODEC_LZ4);
        flat_field(flat, 1, 1, 0);      /* buffers are compressed separately */
        compression = flat_table_end(flat);
    }
    flat_place buffers = flat_structs(flat, body->buffers.bytes, body->buffers.n_bytes / 16, 16);
    flat_place nodes = flat_structs(flat, body->nodes.bytes, body->nodes.n_bytes / 16, 16);
    flat_table_begin(flat);
    flat_field(flat, 0, 8, n_rows);
    flat_field_place(flat, 1, nodes);
    flat_field_place(flat, 2, buffers);
    if (compression) flat_field_place(flat, 3, compression);
    return flat_table_end(flat);
}

static void release_body(struct body *body)
{
    free(body->nodes.bytes);
    free(body->buffers.bytes);
}

static flat_place make_batch_message(const struct body *body, uint64_t n_rows, uint64_t body_bytes)
{
    flat_clear(&body->coder->flat);
    flat_place batch = make_batch(body, n_rows);
    return make_message(body->coder, ARROW_HEADER_BATCH, batch, body_bytes);
}

/*
 * Metadata precede the body and contain the places of its buffers. Their size depends only on the
 * number of buffers, so they are made twice, first to learn their size: then the body is written to
 * its final place, without a copy.
 */
struct arrow_place arrow_put_batch(struct arrow_coder *coder, const struct encoded_batch *batch,
                                   struct byte_buffer *out)
{
    const struct column_schema *schema = batch->schema;
    struct body counted = {.coder = coder, .codec = batch->request->codec}, body = counted;
    struct arrow_place place = {.at = out->n_bytes};
    for (unsigned i = 0; i < schema->n_columns; i++)
        add_column(&counted, schema->columns[i].type, &batch->columns[i]);
    place.metadata_bytes =
        append_metadata(coder, make_batch_message(&counted, batch->n_rows, 0), out);
    body.level = batch->request->level;
    body.out = out;
    body.begin = out->n_bytes;
    for (unsigned i = 0; i < schema->n_columns; i++)
        add_column(&body, schema->columns[i].type, &batch->columns[i]);
    place.body_bytes = out->n_bytes - body.begin;
    out->n_bytes = place.at;
    (void)append_metadata(coder, make_batch_message(&body, batch->n_rows, place.body_bytes), out);
    out->n_bytes += place.body_bytes;
    release_body(&counted);
    release_body(&body);
    return place;
}

struct arrow_place arrow_put_references(struct arrow_coder *coder, sam_hdr_t *header,
                                        struct byte_buffer *out)
{
    struct byte_buffer offsets = {0}, names = {0}, bytes = {0};
    struct body body = {.coder = coder, .out = &bytes};
    int n = sam_hdr_nref(header);
    (void)put_u32(byte_buffer_append(&offsets, 4), 0);
    for (int i = 0; i < n; i++) {
        const char *name = sam_hdr_tid2name(header, i);
        byte_buffer_copy(&names, name, strlen(name));
        (void)put_u32(byte_buffer_append(&offsets, 4), names.n_bytes);
    }
    flat_clear(&coder->flat);
    add_node(&body, (uint64_t)n, 0);
    add_buffer(&body, NULL, 0);
    add_buffer(&body, offsets.bytes, offsets.n_bytes);
    add_buffer(&body, names.bytes, names.n_bytes);
    free(offsets.bytes);
    free(names.bytes);
    struct flat_buffer *flat = &coder->flat;
    flat_place batch = make_batch(&body, (uint64_t)n);
    flat_table_begin(flat);
    flat_field(flat, 0, 8, REFERENCES_ID);
    flat_field_place(flat, 1, batch);
    struct arrow_place place = {.at = out->n_bytes, .body_bytes = bytes.n_bytes};
    flat_place message = make_message(coder, ARROW_HEADER_DICTIONARY, flat_table_end(flat),
                                      bytes.n_bytes);
    place.metadata_bytes = append_metadata(coder, message, out);
    byte_buffer_copy(out, bytes.bytes, bytes.n_bytes);
    free(bytes.bytes);
    release_body(&body);
    return place;
}

/* ---- files ---- */

size_t arrow_put_file_end(struct arrow_coder *coder, const struct column_schema *schema,
                          sam_hdr_t *header, const struct arrow_place *references, size_t n_batches,
                          struct byte_buffer *out)
{
    struct flat_buffer *flat = &coder->flat;
    size_t n_bytes;
    flat_clear(flat);
    flat_place batch_places = flat_structs_after(flat, n_batches, sizeof *references);
    flat_place reference_places = flat_structs(flat, (const uint8_t *)references,
                                               references != NULL, sizeof *references);
    flat_place schema_place = make_schema(coder, schema, header);
    flat_table_begin(flat);
    flat_field_place(flat, 1, schema_place);
    flat_field_place(flat, 2, reference_places);
    flat_field_place(flat, 3, batch_places);
    flat_field(flat, 0, 2, ARROW_METADATA_VERSION);
    flat_place footer = flat_table_end(flat);
    const uint8_t *bytes = flat_finish(flat, footer, &n_bytes);
    byte_buffer_copy(out, bytes, n_bytes);
    return n_bytes;
}

void arrow_put_file_end_after(size_t end_bytes, size_t n_batches, struct byte_buffer *out)
{
    (void)put_u32(byte_buffer_append(out, 4), end_bytes + n_batches * sizeof(struct arrow_place));
    byte_buffer_copy(out, magic, strlen(magic));
}
