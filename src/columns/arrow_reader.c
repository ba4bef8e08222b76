/* arrow_reader.c -- see arrow_reader.h. The numbers of fields are those of arrow_message.c. */
#include "columns/arrow_reader.h"

#include "columns/arrow_format.h"
#include "columns/arrow_normal.h"
#include "columns/column_metadata.h"
#include "columns/column_record.h"
#include "util/xalloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    MOST_METADATA_BYTES = 1 << 30,
    READ_BYTES = 8 << 20,       /* at a time: a size that is claimed may be wrong */
    MOST_FIELDS = 8192,         /* and their children */
    MOST_PROBLEM_BYTES = 160,
};

/* A column of the file. */
struct file_column {
    struct arrow_field field;
    unsigned place;             /* in the schema, or NO_COLUMN: it is not read */
};

struct arrow_reader {
    struct arrow_input input;
    char problem[MOST_PROBLEM_BYTES];
    char *header;
    struct file_column *file_columns;
    unsigned n_file_columns;
    struct column_schema *schema;
    char *unknown;              /* the name of a column that is not read */
    struct arrow_dictionaries dictionaries;
    struct text_map references; /* of the header: their numbers by their names */
    uint32_t n_references;
    struct column_bytes metadata, body;
    uint8_t start[ARROW_START_BYTES];   /* of a stream: read already */
    bool has_start;
    uint64_t at;                /* byte of the input, if it is a file */
    uint64_t *blocks;           /* where dictionaries and batches of a file begin; NULL: a stream */
    size_t n_blocks, next_block;
};

static const char damaged[] = "it is damaged";
static const char truncated[] = "it is truncated";

struct arrow_reader *arrow_reader_create(const struct arrow_input *input)
{
    struct arrow_reader *reader = xcalloc(1, sizeof *reader);
    reader->input = *input;
    return reader;
}

size_t arrow_reader_bytes(const struct arrow_reader *reader)
{
    return reader->metadata.room + reader->body.room + reader->n_blocks * sizeof *reader->blocks;
}

void arrow_reader_destroy(struct arrow_reader *reader)
{
    if (!reader) return;
    column_schema_destroy(reader->schema);
    for (unsigned i = 0; i < reader->n_file_columns; i++)
        arrow_field_release(&reader->file_columns[i].field);
    free(reader->file_columns);
    free(reader->unknown);
    arrow_dictionaries_release(&reader->dictionaries);
    text_map_release(&reader->references);
    free(reader->header);
    free(reader->blocks);
    free(reader->metadata.bytes);
    free(reader->body.bytes);
    free(reader);
}

const char *arrow_reader_problem(const struct arrow_reader *reader)
{
    return reader->problem[0] ? reader->problem : NULL;
}

const char *arrow_reader_header(const struct arrow_reader *reader)
{
    return reader->header;
}

const struct column_schema *arrow_reader_schema(const struct arrow_reader *reader)
{
    return reader->schema;
}

const char *arrow_reader_unknown(const struct arrow_reader *reader)
{
    return reader->unknown;
}

void arrow_reader_set_references(struct arrow_reader *reader, const char *const *names, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) (void)text_map_put(&reader->references, text_of(names[i]), i);
    reader->n_references = n;
}

/* Notes a problem, unless there was one before. Returns -1. */
__attribute__((format(printf, 2, 3)))
static int fail(struct arrow_reader *reader, const char *format, ...)
{
    va_list args;
    if (reader->problem[0]) return -1;
    va_start(args, format);
    (void)vsnprintf(reader->problem, sizeof reader->problem, format, args);
    va_end(args);
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
        ssize_t got = reader->input.read(reader->input.arg, to->bytes + to->n_bytes, want);
        if (got < 0) return -1;
        reader->at += (uint64_t)got;
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

/* Goes to the next message that the end of a file names. Returns 1, 0 if there is none, or -1. */
static int seek_message(struct arrow_reader *reader)
{
    if (reader->next_block == reader->n_blocks) return 0;
    uint64_t at = reader->blocks[reader->next_block++];
    if (at > INT64_MAX) return fail(reader, damaged);
    if (at != reader->at && reader->input.seek(reader->input.arg, (int64_t)at, SEEK_SET) < 0)
        return -1;
    reader->at = at;
    return 1;
}

/* Reads a message without its body. Returns 1, 0 at the end, or -1. */
static int read_message(struct arrow_reader *reader, struct message *message)
{
    struct flat_table root;
    if (reader->blocks) {
        int r = seek_message(reader);
        if (r <= 0) return r;
    }
    if (!reader->has_start && read_start(reader) < 0) return -1;
    reader->has_start = false;
    uint32_t n_bytes = get_u32(reader->start + 4);
    if (get_u32(reader->start) != UINT32_MAX || n_bytes > MOST_METADATA_BYTES)
        return fail(reader, damaged);
    if (n_bytes == 0) return reader->blocks ? fail(reader, damaged) : 0;
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

/* Fails with a text that was made, and frees it. */
static int fail_with(struct arrow_reader *reader, char *problem)
{
    (void)fail(reader, "%s", problem);
    free(problem);
    return -1;
}

/* Finds out what the column of the file is. Returns 1, 0 if it is not read, or -1. */
static int read_column(struct arrow_reader *reader, const struct flat_table *table,
                       const struct arrow_field *field, struct column *column)
{
    size_t n_bytes;
    const char *name = flat_read_text(table, 0, &n_bytes);
    if (!name) return fail(reader, damaged);
    enum column_role role = column_schema_role(name, n_bytes, column);
    if (role == COLUMN_IS_UNKNOWN && !reader->unknown)
        reader->unknown = xasprintf("%.*s", (int)n_bytes, name);
    if (role != COLUMN_IS_READ) return 0;
    bool can_read = column->field == FIELD_TAG ? arrow_normal_tag_type(field, name, &column->type)
                                               : arrow_normal_can(field, column->type);
    return can_read ? 1 : fail_with(reader, column_schema_wrong_type(name, n_bytes));
}

/* Notes the dictionaries that a field and its children have. */
static void expect_dictionaries(struct arrow_reader *reader, const struct arrow_field *field)
{
    if (field->has_dictionary) arrow_dictionaries_expect(&reader->dictionaries, field);
    for (unsigned i = 0; i < field->n_children; i++)
        expect_dictionaries(reader, &field->children[i]);
}

/* Reads the columns of the file. `columns` gets those that become the schema. Returns their number,
   or -1. */
static int read_columns(struct arrow_reader *reader, const struct flat_items *fields,
                        struct column *columns)
{
    struct flat_table table;
    unsigned n_left = MOST_FIELDS, n = 0;
    for (size_t i = 0; i < fields->n; i++) {
        struct file_column *column = &reader->file_columns[i];
        if (!flat_read_item(fields, i, &table) ||
            !arrow_field_read(&table, &n_left, &column->field))
            return fail(reader, "its schema is damaged, or has types that rocksort does not know");
        reader->n_file_columns++;
        int r = read_column(reader, &table, &column->field, &columns[n]);
        if (r < 0) return -1;
        column->place = r > 0 ? n++ : NO_COLUMN;
        if (r > 0) expect_dictionaries(reader, &column->field);
    }
    return (int)n;
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

static bool metadata_are(const struct flat_table *schema, const char *key, const char *value)
{
    size_t n_bytes;
    const char *found = find_metadata(schema, key, &n_bytes);
    return found && n_bytes == strlen(value) && memcmp(found, value, n_bytes) == 0;
}

/* Reads the metadata of the schema, if it has any. */
static int read_pairs(struct arrow_reader *reader, const struct flat_table *schema)
{
    size_t n_bytes;
    if (find_metadata(schema, COLUMN_VERSION_KEY, &n_bytes) &&
        !metadata_are(schema, COLUMN_VERSION_KEY, COLUMN_SCHEMA_VERSION))
        return fail(reader, COLUMN_OTHER_VERSION);
    const char *header = find_metadata(schema, COLUMN_HEADER_KEY, &n_bytes);
    if (!header) return 0;
    if (memchr(header, 0, n_bytes)) return fail(reader, damaged);
    reader->header = xmalloc(n_bytes + 1);
    memcpy(reader->header, header, n_bytes);
    reader->header[n_bytes] = '\0';
    if (metadata_are(schema, COLUMN_ENCODING_KEY, COLUMN_LATIN))
        column_metadata_undo_latin(reader->header);
    return 0;
}

static int read_schema(struct arrow_reader *reader, const struct flat_table *schema)
{
    if (read_pairs(reader, schema) < 0) return -1;
    struct flat_items fields = flat_read_vector(schema, 1, 4);
    bool is_little_endian = flat_read_number(schema, 0, 2, 0) == 0;
    if (!is_little_endian || fields.n > MOST_FIELDS)
        return fail(reader, "it is big-endian, or has too many columns");
    reader->file_columns = xcalloc(fields.n + 1, sizeof *reader->file_columns);
    struct column *columns = xcalloc(fields.n + 1, sizeof *columns);
    int n = read_columns(reader, &fields, columns);
    char *problem = NULL;
    if (n >= 0) reader->schema = column_schema_of(columns, (unsigned)n, &problem);
    free(columns);
    if (reader->schema) problem = column_schema_problem(reader->schema);
    if (problem) return fail_with(reader, problem);
    return n < 0 ? -1 : 0;
}

/* ---- files ---- */

enum { FILE_END_BYTES = 4 + sizeof ARROW_MAGIC - 1, BLOCK_BYTES = 24 };

/* Notes where the messages begin that a list of the footer has. */
static void note_blocks(struct arrow_reader *reader, const struct flat_items *blocks)
{
    reader->blocks = xrealloc(reader->blocks,
                              (reader->n_blocks + blocks->n + 1) * sizeof *reader->blocks);
    for (size_t i = 0; i < blocks->n; i++)
        reader->blocks[reader->n_blocks++] =
            get_u64(blocks->view->bytes + blocks->at + BLOCK_BYTES * i);
}

/* Reads the end of a file, which has the schema, and says where all dictionaries and batches are:
   they may stand in any order. `end` is where the last bytes begin. */
static int read_footer(struct arrow_reader *reader, int64_t end)
{
    struct flat_table footer, schema;
    if (read_bytes(reader, FILE_END_BYTES, &reader->metadata) < 0) return -1;
    uint32_t n_bytes = get_u32(reader->metadata.bytes);
    if (memcmp(reader->metadata.bytes + 4, ARROW_MAGIC, sizeof ARROW_MAGIC - 1) != 0)
        return fail(reader, truncated);
    if (n_bytes > MOST_METADATA_BYTES || n_bytes > end) return fail(reader, damaged);
    if (reader->input.seek(reader->input.arg, end - n_bytes, SEEK_SET) < 0 ||
        read_bytes(reader, n_bytes, &reader->metadata) < 0)
        return -1;
    reader->at = (uint64_t)end;
    struct flat_view view = {reader->metadata.bytes, reader->metadata.n_bytes, false};
    if (!flat_read_root(&view, &footer) || !flat_read_table(&footer, 1, &schema))
        return fail(reader, damaged);
    const struct flat_items dictionaries = flat_read_vector(&footer, 2, BLOCK_BYTES);
    const struct flat_items batches = flat_read_vector(&footer, 3, BLOCK_BYTES);
    note_blocks(reader, &dictionaries);
    note_blocks(reader, &batches);
    return view.damaged ? fail(reader, damaged) : read_schema(reader, &schema);
}

/* Reads the first message of a stream, or of a file from a pipe, which has no end yet. */
static int read_first(struct arrow_reader *reader, bool is_file)
{
    struct message message;
    if (is_file) {
        if (read_start(reader) < 0) return -1;
        /* Polars 2.1 writes the magic over the first bytes of this message, where its size was. */
        if (get_u32(reader->start) != UINT32_MAX)
            return fail(reader, "this Arrow file cannot be read from a pipe: write a stream, or "
                                "give its name");
    }
    reader->has_start = true;
    int r = read_message(reader, &message);
    if (r == 0 || (r > 0 && message.kind != ARROW_HEADER_SCHEMA)) return fail(reader, damaged);
    return r < 0 ? -1 : read_schema(reader, &message.header);
}

int arrow_reader_open(struct arrow_reader *reader)
{
    if (read_start(reader) < 0) return -1;
    bool is_file = memcmp(reader->start, ARROW_MAGIC "\0", ARROW_START_BYTES) == 0;
    int64_t end = is_file ? reader->input.seek(reader->input.arg, -FILE_END_BYTES, SEEK_END) : -1;
    return end < 0 ? read_first(reader, is_file) : read_footer(reader, end);
}

/* ---- batches ---- */

static struct arrow_normal normal_of(struct arrow_reader *reader, struct arrow_body *body)
{
    return (struct arrow_normal){.body = body, .dictionaries = &reader->dictionaries,
                                 .references = &reader->references};
}

/* Reads a dictionary, or goes over one that no column needs. */
static int read_dictionary(struct arrow_reader *reader, struct message *message)
{
    struct flat_table batch;
    struct arrow_body body;
    struct arrow_array array = {0};
    if (read_body(reader, message) < 0) return -1;
    struct arrow_dictionary *dictionary = arrow_dictionaries_find(
        &reader->dictionaries, (int64_t)flat_read_number(&message->header, 0, 8, 0));
    if (!dictionary) return 0;
    if (!flat_read_table(&message->header, 1, &batch)) return fail(reader, damaged);
    if (flat_read_number(&message->header, 2, 1, 0) == 0) arrow_dictionary_clear(dictionary);
    arrow_body_open(&body, &batch, reader->body.bytes, reader->body.n_bytes);
    struct arrow_normal normal = normal_of(reader, &body);
    if (arrow_array_read(&body, &dictionary->values, &array))
        (void)arrow_normal_add(&normal, &array, dictionary);
    arrow_array_release(&array);
    arrow_body_release(&body);
    if (body.problem) return fail(reader, "%s", body.problem);
    return message->view.damaged ? fail(reader, damaged) : 0;
}

/* Reads a column of the batch, or goes over it. */
static int read_values(struct arrow_reader *reader, const struct file_column *column,
                       uint64_t n_rows, struct arrow_body *body, struct column_values *columns)
{
    struct arrow_normal normal = normal_of(reader, body);
    struct arrow_array array;
    uint64_t bytes_left = body->bytes_left;
    if (column->place == NO_COLUMN)
        return arrow_array_skip(body, &column->field) ? 0 : fail(reader, "%s", body->problem);
    struct column_values *values = &columns[column->place];
    const struct column *of = &reader->schema->columns[column->place];
    bool is_read = arrow_array_read(body, &column->field, &array) &&
                   (array.n_rows == n_rows || arrow_body_fail(body, damaged)) &&
                   arrow_normal_put(&normal, &column->field, &array, of->type, values);
    arrow_array_release(&array);
    if (!is_read && body->problem) return fail(reader, "%s", body->problem);
    if (!is_read) return fail(reader, "its column '%s' %s", of->name, normal.problem);
    /* What the array took is free again. */
    uint64_t n_bytes = column_values_bytes(values);
    body->bytes_left = bytes_left > n_bytes ? bytes_left - n_bytes : 0;
    return 0;
}

/* Reads the batch of a message into columns that are empty. */
static int read_batch(struct arrow_reader *reader, struct message *message,
                      struct column_values *columns, uint64_t *n_rows)
{
    struct arrow_body body;
    int r = 0;
    if (read_body(reader, message) < 0) return -1;
    arrow_body_open(&body, &message->header, reader->body.bytes, reader->body.n_bytes);
    *n_rows = flat_read_number(&message->header, 0, 8, 0);
    if (*n_rows > INT32_MAX) r = fail(reader, damaged);
    for (unsigned i = 0; r == 0 && i < reader->n_file_columns; i++)
        r = read_values(reader, &reader->file_columns[i], *n_rows, &body, columns);
    arrow_body_release(&body);
    if (r == 0 && message->view.damaged) r = fail(reader, damaged);
    if (r < 0) return -1;
    const char *problem = column_values_problem(reader->schema, columns, *n_rows,
                                                reader->n_references);
    return problem ? fail(reader, "%s", problem) : 1;
}

int arrow_reader_next(struct arrow_reader *reader, struct column_values **columns,
                      uint64_t *n_rows)
{
    struct message message;
    for (;;) {
        int r = read_message(reader, &message);
        if (r <= 0) return r;
        if (message.kind == ARROW_HEADER_BATCH) break;
        if (message.kind != ARROW_HEADER_DICTIONARY) return fail(reader, damaged);
        if (read_dictionary(reader, &message) < 0) return -1;
    }
    unsigned n = reader->schema->n_columns;
    *columns = xcalloc(n, sizeof **columns);
    int r = read_batch(reader, &message, *columns, n_rows);
    if (r < 0) column_values_free(*columns, n);
    return r;
}
