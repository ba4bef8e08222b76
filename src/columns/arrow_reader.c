/* arrow_reader.c -- see arrow_reader.h. The numbers of fields are those of arrow_message.c. */
#include "columns/arrow_reader.h"

#include "columns/arrow_format.h"
#include "columns/column_metadata.h"
#include "columns/column_record.h"
#include "columns/flat_reader.h"
#include "util/xalloc.h"

#include <lz4frame.h>
#include <stdlib.h>
#include <zstd.h>

enum {
    MOST_METADATA_BYTES = 1 << 30,
    READ_BYTES = 8 << 20,       /* at a time: a size that is claimed may be wrong */
    MOST_COLUMNS = 8192,
    KEPT_BYTES = 256 << 20,     /* of a batch: each column may have needed much once */
};

/* Of a batch, decompressed: a few bytes may claim to be many. */
#define MOST_BATCH_BYTES ((uint64_t)2 << 30)

struct arrow_reader {
    arrow_read read;
    void *arg;
    const char *problem;
    char *header;
    struct column_schema *schema;
    struct column_values *columns;
    const char *const *references;
    uint32_t n_references;
    bool has_references;        /* those of the columns were read, and compared */
    struct column_bytes metadata, body;
    uint8_t start[ARROW_START_BYTES];   /* of a stream: read already */
    bool has_start;
    LZ4F_dctx *lz4;
};

static const char damaged[] = "it is damaged";
static const char truncated[] = "it is truncated";

struct arrow_reader *arrow_reader_create(arrow_read read, void *arg)
{
    struct arrow_reader *reader = xcalloc(1, sizeof *reader);
    reader->read = read;
    reader->arg = arg;
    return reader;
}

/* Forgets the batch. Returns how many bytes of memory are kept. */
static size_t forget_batch(struct arrow_reader *reader, bool is_kept)
{
    return column_values_forget(reader->columns, reader->columns ? reader->schema->n_columns : 0,
                                is_kept);
}

void arrow_reader_destroy(struct arrow_reader *reader)
{
    if (!reader) return;
    (void)forget_batch(reader, false);
    free(reader->columns);
    column_schema_destroy(reader->schema);
    free(reader->header);
    free(reader->metadata.bytes);
    free(reader->body.bytes);
    if (reader->lz4) (void)LZ4F_freeDecompressionContext(reader->lz4);
    free(reader);
}

const char *arrow_reader_problem(const struct arrow_reader *reader)
{
    return reader->problem;
}

const char *arrow_reader_header(const struct arrow_reader *reader)
{
    return reader->header;
}

const struct column_schema *arrow_reader_schema(const struct arrow_reader *reader)
{
    return reader->schema;
}

void arrow_reader_set_references(struct arrow_reader *reader, const char *const *names, uint32_t n)
{
    reader->references = names;
    reader->n_references = n;
}

static int fail(struct arrow_reader *reader, const char *problem)
{
    if (!reader->problem) reader->problem = problem;
    return -1;
}

/* ---- bytes ---- */

/* Reads n bytes into the buffer, which grows as they come. */
static int read_bytes(struct arrow_reader *reader, size_t n, struct column_bytes *to)
{
    to->n_bytes = 0;
    while (to->n_bytes < n) {
        size_t want = n - to->n_bytes < READ_BYTES ? n - to->n_bytes : READ_BYTES;
        xgrow(&to->bytes, &to->room, to->n_bytes + want, to->n_bytes / 2, 1);
        ssize_t got = reader->read(reader->arg, to->bytes + to->n_bytes, want);
        if (got < 0) return -1;
        to->n_bytes += (size_t)got;
        if ((size_t)got < want) return fail(reader, truncated);
    }
    return 0;
}

bool arrow_reader_knows(const uint8_t *start)
{
    bool is_file = memcmp(start, ARROW_MAGIC "\0", ARROW_START_BYTES) == 0;
    uint32_t size = get_u32(start + 4);
    return is_file || (get_u32(start) == UINT32_MAX && size > 0 && size <= MOST_METADATA_BYTES);
}

static int read_start(struct arrow_reader *reader)
{
    if (read_bytes(reader, ARROW_START_BYTES, &reader->metadata) < 0) return -1;
    memcpy(reader->start, reader->metadata.bytes, ARROW_START_BYTES);
    return 0;
}

struct message {
    struct flat_view view;
    unsigned kind;
    struct flat_table header;
    uint64_t body_bytes;
};

/* Reads a message without its body. Returns 1, 0 at the end, or -1. */
static int read_message(struct arrow_reader *reader, struct message *message)
{
    struct flat_table root;
    if (!reader->has_start && read_start(reader) < 0) return -1;
    reader->has_start = false;
    uint32_t n_bytes = get_u32(reader->start + 4);
    if (get_u32(reader->start) != UINT32_MAX || n_bytes > MOST_METADATA_BYTES)
        return fail(reader, damaged);
    if (n_bytes == 0) return 0;
    if (read_bytes(reader, n_bytes, &reader->metadata) < 0) return -1;
    message->view = (struct flat_view){reader->metadata.bytes, reader->metadata.n_bytes, false};
    if (!flat_read_root(&message->view, &root)) return fail(reader, damaged);
    message->kind = (unsigned)flat_read_number(&root, 1, 1, 0);
    message->body_bytes = flat_read_number(&root, 3, 8, 0);
    bool is_known = flat_read_number(&root, 0, 2, 0) == ARROW_METADATA_VERSION;
    if (!is_known) return fail(reader, "its version of Arrow is not 5");
    return flat_read_table(&root, 2, &message->header) ? 1 : fail(reader, damaged);
}

static int read_body(struct arrow_reader *reader, const struct message *message)
{
    if (message->body_bytes > INT64_MAX) return fail(reader, damaged);
    return read_bytes(reader, (size_t)message->body_bytes, &reader->body);
}

/* ---- schema ---- */

static const char no_columns_of_ours[] =
    "its columns are not as rocksort writes them: only these can become records";

/* The type of numbers, or of the elements of a list. Returns false if there is no such column. */
static bool number_type(const struct flat_table *field, bool is_list, enum column_type *type)
{
    struct flat_table inner;
    unsigned kind = (unsigned)flat_read_number(field, 2, 1, 0);
    bool is_float = kind == ARROW_TYPE_FLOAT;
    if ((!is_float && kind != ARROW_TYPE_INT) || !flat_read_table(field, 3, &inner)) return false;
    uint64_t n_bits = is_float ? 32 : flat_read_number(&inner, 0, 4, 0);
    bool is_signed = is_float || flat_read_number(&inner, 1, 1, 0) != 0;
    if (is_float && flat_read_number(&inner, 0, 2, 0) != ARROW_PRECISION_SINGLE) return false;
    for (*type = COLUMN_UINT8; *type < COLUMN_MAP; ++*type) {
        const struct column_number number = column_type_number(*type);
        if (number.is_list == is_list && number.is_float == is_float &&
            number.is_signed == is_signed && 8u * number.n_bytes == n_bits &&
            *type != COLUMN_REFERENCE)
            return true;
    }
    return false;
}

static bool field_type(const struct flat_table *field, enum column_type *type)
{
    unsigned kind = (unsigned)flat_read_number(field, 2, 1, 0);
    struct flat_items children = flat_read_vector(field, 5, 4);
    struct flat_table inner;
    if (kind == ARROW_TYPE_UTF8) {
        *type = flat_read_table(field, 4, &inner) ? COLUMN_REFERENCE : COLUMN_TEXT;
        return true;
    }
    if (kind == ARROW_TYPE_LIST)
        return children.n == 1 && flat_read_item(&children, 0, &inner) &&
               number_type(&inner, true, type);
    *type = COLUMN_MAP;
    return kind == ARROW_TYPE_MAP || number_type(field, false, type);
}

/* Reads a field of the schema. */
static bool read_column(const struct flat_table *field, struct column *column)
{
    size_t n_bytes;
    enum column_type type;
    const char *name = flat_read_text(field, 0, &n_bytes);
    if (!name || !field_type(field, &type)) return false;
    if (!column_schema_field(name, n_bytes, column)) {
        if (n_bytes != 2 || (type == COLUMN_REFERENCE || type == COLUMN_MAP)) return false;
        *column = (struct column){{name[0], name[1]}, FIELD_TAG, type};
        return true;
    }
    bool is_same = column->type == type;
    column->type = type;
    return is_same;
}

/* Finds a value in the metadata of the schema. NULL: it is not there. */
static const char *find_metadata(const struct flat_table *schema, const char *key, size_t *n_bytes)
{
    struct flat_items pairs = flat_read_vector(schema, 2, 4);
    struct flat_table pair;
    for (size_t i = 0; i < pairs.n && flat_read_item(&pairs, i, &pair); i++) {
        const char *name = flat_read_text(&pair, 0, n_bytes);
        if (!name || *n_bytes != strlen(key) || memcmp(name, key, *n_bytes) != 0) continue;
        return flat_read_text(&pair, 1, n_bytes);
    }
    return NULL;
}

static int read_schema(struct arrow_reader *reader, const struct flat_table *schema)
{
    size_t n_bytes;
    const char *version = find_metadata(schema, COLUMN_VERSION_KEY, &n_bytes);
    if (!version || n_bytes != strlen(COLUMN_SCHEMA_VERSION) ||
        memcmp(version, COLUMN_SCHEMA_VERSION, n_bytes) != 0)
        return fail(reader, no_columns_of_ours);
    const char *header = find_metadata(schema, COLUMN_HEADER_KEY, &n_bytes);
    if (!header || memchr(header, 0, n_bytes)) return fail(reader, no_columns_of_ours);
    reader->header = xmalloc(n_bytes + 1);
    memcpy(reader->header, header, n_bytes);
    reader->header[n_bytes] = '\0';
    const char *encoding = find_metadata(schema, COLUMN_ENCODING_KEY, &n_bytes);
    if (encoding && n_bytes == strlen(COLUMN_LATIN) && memcmp(encoding, COLUMN_LATIN, n_bytes) == 0)
        column_metadata_undo_latin(reader->header);
    struct flat_items fields = flat_read_vector(schema, 1, 4);
    if (fields.n > MOST_COLUMNS) return fail(reader, no_columns_of_ours);
    struct column *columns = xcalloc(fields.n + 1, sizeof *columns);
    struct flat_table field;
    bool are_known = flat_read_number(schema, 0, 2, 0) == 0;    /* little-endian */
    for (size_t i = 0; are_known && i < fields.n; i++)
        are_known = flat_read_item(&fields, i, &field) && read_column(&field, &columns[i]);
    const char *problem = no_columns_of_ours;
    if (are_known) reader->schema = column_schema_of(columns, (unsigned)fields.n, &problem);
    free(columns);
    if (!reader->schema) return fail(reader, problem);
    if (!column_schema_is_whole(reader->schema))
        return fail(reader, "it has not all columns, so no records can be made of it");
    reader->columns = xcalloc(reader->schema->n_columns, sizeof *reader->columns);
    return 0;
}

int arrow_reader_open(struct arrow_reader *reader)
{
    struct message message;
    if (read_start(reader) < 0) return -1;
    reader->has_start = memcmp(reader->start, ARROW_MAGIC "\0", ARROW_START_BYTES) != 0;
    int r = read_message(reader, &message);
    if (r == 0 || (r > 0 && message.kind != ARROW_HEADER_SCHEMA)) return fail(reader, damaged);
    return r < 0 ? -1 : read_schema(reader, &message.header);
}

/* ---- batches ---- */

/* Goes through the nodes and buffers of a batch. */
struct cursor {
    struct arrow_reader *reader;
    struct flat_items nodes, buffers;
    size_t node, buffer;
    uint64_t n_bytes;           /* of all buffers so far */
    int codec;                  /* -1: none */
};

/* Decompresses to a buffer that has room. */
static bool decompress(struct arrow_reader *reader, int codec, const uint8_t *from, size_t n_from,
                       uint8_t *to, size_t n_to)
{
    if (codec == ARROW_CODEC_ZSTD) return ZSTD_decompress(to, n_to, from, n_from) == n_to;
    if (codec != ARROW_CODEC_LZ4) return false;
    if (!reader->lz4) {
        bool made = !LZ4F_isError(LZ4F_createDecompressionContext(&reader->lz4, LZ4F_VERSION));
        xalloc_require(made);
    }
    LZ4F_resetDecompressionContext(reader->lz4);
    size_t left = 1, done = 0, used = 0;
    while (left > 0) {
        size_t n_out = n_to - done, n_in = n_from - used;
        left = LZ4F_decompress(reader->lz4, to + done, &n_out, from + used, &n_in, NULL);
        if (LZ4F_isError(left) || (n_out == 0 && n_in == 0)) return false;
        done += n_out;
        used += n_in;
    }
    return done == n_to && used == n_from;
}

/* Reads the next node. */
static bool next_node(struct cursor *cursor, uint64_t *n_rows, uint64_t *n_nulls)
{
    if (cursor->node >= cursor->nodes.n) return false;
    const uint8_t *at = cursor->nodes.view->bytes + cursor->nodes.at + 16 * cursor->node++;
    *n_rows = get_u64(at);
    *n_nulls = get_u64(at + 8);
    return true;
}

/* Reads the next buffer of the body into `to`. */
static bool next_buffer(struct cursor *cursor, struct column_bytes *to)
{
    struct arrow_reader *reader = cursor->reader;
    const struct column_bytes *body = &reader->body;
    to->n_bytes = 0;
    if (cursor->buffer >= cursor->buffers.n) return false;
    const uint8_t *at = cursor->buffers.view->bytes + cursor->buffers.at + 16 * cursor->buffer++;
    uint64_t begin = get_u64(at), n = get_u64(at + 8), size = n;
    if (begin > body->n_bytes || n > body->n_bytes - begin) return false;
    if (n == 0) return true;
    const uint8_t *bytes = body->bytes + begin;
    bool is_stored = cursor->codec < 0;
    if (!is_stored) {
        if (n < 8) return false;
        size = get_u64(bytes);
        is_stored = size == UINT64_MAX;
        bytes += 8;
        n -= 8;
        if (is_stored) size = n;
    }
    if (size > MOST_BATCH_BYTES - cursor->n_bytes) return false;
    cursor->n_bytes += size;
    xgrow(&to->bytes, &to->room, (size_t)size, 0, 1);
    to->n_bytes = (size_t)size;
    if (size == 0) return true;
    if (is_stored) memcpy(to->bytes, bytes, to->n_bytes);
    return is_stored ||
           decompress(reader, cursor->codec, bytes, (size_t)n, to->bytes, to->n_bytes);
}

/* Reads buffers first to last of a column. */
static bool read_buffers(struct cursor *cursor, struct column_values *column,
                         enum column_buffer first, enum column_buffer last)
{
    for (unsigned i = first; i <= last; i++)
        if (!next_buffer(cursor, &column->buffers[i])) return false;
    return true;
}

/* Reads the node and the validity of a child, which must have no nulls. */
static bool read_child(struct cursor *cursor)
{
    struct column_bytes validity = {0};
    uint64_t n_rows, n_nulls;
    bool r = next_node(cursor, &n_rows, &n_nulls) && n_nulls == 0 && next_buffer(cursor, &validity);
    free(validity.bytes);
    return r;
}

static bool read_values(struct cursor *cursor, enum column_type type, struct column_values *column)
{
    if (!next_node(cursor, &column->n_rows, &column->n_nulls)) return false;
    if (column_type_is_text(type))
        return read_buffers(cursor, column, BUFFER_VALIDITY, BUFFER_VALUES);
    if (column_type_is_list(type))
        return read_buffers(cursor, column, BUFFER_VALIDITY, BUFFER_OFFSETS) &&
               read_child(cursor) && read_buffers(cursor, column, BUFFER_VALUES, BUFFER_VALUES);
    if (type == COLUMN_MAP)
        return read_buffers(cursor, column, BUFFER_VALIDITY, BUFFER_OFFSETS) &&
               read_child(cursor) && read_child(cursor) &&
               read_buffers(cursor, column, BUFFER_KEY_OFFSETS, BUFFER_KEYS) &&
               read_child(cursor) &&
               read_buffers(cursor, column, BUFFER_MAPPED_OFFSETS, BUFFER_MAPPED);
    return read_buffers(cursor, column, BUFFER_VALIDITY, BUFFER_VALIDITY) &&
           read_buffers(cursor, column, BUFFER_VALUES, BUFFER_VALUES);
}

static struct cursor cursor_of(struct arrow_reader *reader, const struct flat_table *batch)
{
    struct cursor cursor = {.reader = reader, .codec = -1};
    struct flat_table compression;
    cursor.nodes = flat_read_vector(batch, 1, 16);
    cursor.buffers = flat_read_vector(batch, 2, 16);
    if (flat_read_table(batch, 3, &compression))
        cursor.codec = (int)flat_read_number(&compression, 0, 1, 0);
    return cursor;
}

/* Compares the names of references with those of the header. Other programs write a dictionary for
   rname, and the same for rnext. */
static int read_references(struct arrow_reader *reader, const struct message *message)
{
    struct flat_table batch;
    struct column_values names = {0};
    if (read_body(reader, message) < 0) return -1;
    bool same = flat_read_number(&message->header, 2, 1, 0) == 0 &&
                flat_read_table(&message->header, 1, &batch);
    if (same) {
        struct cursor cursor = cursor_of(reader, &batch);
        same = read_values(&cursor, COLUMN_TEXT, &names) &&
               names.n_rows == reader->n_references && names.n_nulls == 0;
    }
    const uint8_t *offsets = names.buffers[BUFFER_OFFSETS].bytes;
    size_t n_bytes = names.buffers[BUFFER_VALUES].n_bytes;
    if (same && names.n_rows > 0)
        same = names.buffers[BUFFER_OFFSETS].n_bytes / 4 > names.n_rows;
    for (uint64_t i = 0; same && i < names.n_rows; i++) {
        uint32_t begin = get_u32(offsets + 4 * i), end = get_u32(offsets + 4 * i + 4);
        size_t n = strlen(reader->references[i]);
        same = begin <= end && end <= n_bytes && end - begin == n &&
               memcmp(names.buffers[BUFFER_VALUES].bytes + begin, reader->references[i], n) == 0;
    }
    for (unsigned i = 0; i < N_COLUMN_BUFFERS; i++) free(names.buffers[i].bytes);
    if (!same) return fail(reader, "its references are not those of its header");
    reader->has_references = true;
    return 0;
}

/* Reads the batch of a message. */
static int read_batch(struct arrow_reader *reader, struct message *message, uint64_t *n_rows)
{
    const struct column_schema *schema = reader->schema;
    if (forget_batch(reader, true) > KEPT_BYTES) (void)forget_batch(reader, false);
    if (read_body(reader, message) < 0) return -1;
    struct cursor cursor = cursor_of(reader, &message->header);
    *n_rows = flat_read_number(&message->header, 0, 8, 0);
    bool is_sound = *n_rows <= INT32_MAX;
    for (unsigned i = 0; is_sound && i < schema->n_columns; i++)
        is_sound = read_values(&cursor, schema->columns[i].type, &reader->columns[i]);
    if (!is_sound || message->view.damaged) return fail(reader, damaged);
    const char *problem = column_values_problem(schema, reader->columns, *n_rows,
                                                reader->has_references ? reader->n_references : 0);
    return problem ? fail(reader, problem) : 1;
}

int arrow_reader_next(struct arrow_reader *reader, const struct column_values **columns,
                      uint64_t *n_rows)
{
    struct message message;
    *columns = reader->columns;
    for (;;) {
        int r = read_message(reader, &message);
        if (r <= 0) return r;
        if (message.kind == ARROW_HEADER_BATCH) return read_batch(reader, &message, n_rows);
        if (message.kind != ARROW_HEADER_DICTIONARY) return fail(reader, damaged);
        if (read_references(reader, &message) < 0) return -1;
    }
}
