/* thrift_reader.c -- see thrift_reader.h; thrift_compact.c says how fields look. */
#include "columns/thrift_reader.h"

#include "util/varint.h"

enum {
    TYPE_TRUE = 1,
    TYPE_FALSE = 2,
    TYPE_I8 = 3,
    TYPE_I16 = 4,
    TYPE_I32 = 5,
    TYPE_I64 = 6,
    TYPE_DOUBLE = 7,
    TYPE_BYTES = 8,
    TYPE_LIST = 9,
    TYPE_SET = 10,
    TYPE_MAP = 11,
    TYPE_STRUCT = 12,
    TYPE_UUID = 13
};
enum { MOST_SKIPPED_DEPTH = 32, LONG_LIST = 15 };

struct thrift_reader thrift_read(const uint8_t *bytes, size_t n_bytes)
{
    const uint8_t *end = n_bytes > 0 ? bytes + n_bytes : bytes;         /* which may be NULL */
    return (struct thrift_reader){.at = bytes, .end = end, .depth = 1};
}

static uint64_t fail(struct thrift_reader *reader)
{
    reader->damaged = true;
    return 0;
}

static size_t bytes_left(const struct thrift_reader *reader)
{
    return (size_t)(reader->end - reader->at);
}

static uint8_t read_byte(struct thrift_reader *reader)
{
    if (reader->damaged || reader->at == reader->end) return (uint8_t)fail(reader);
    return *reader->at++;
}

static uint64_t read_length(struct thrift_reader *reader)
{
    uint64_t value;
    if (reader->damaged || !read_varint(&reader->at, reader->end, &value)) return fail(reader);
    return value;
}

static int64_t read_integer(struct thrift_reader *reader)
{
    return unfold_varint(read_length(reader));
}

static const uint8_t *take_bytes(struct thrift_reader *reader, uint64_t n)
{
    const uint8_t *at = reader->at;
    if (reader->damaged || n > bytes_left(reader)) {
        (void)fail(reader);
        return NULL;
    }
    reader->at += n;
    return at;
}

/* Reads the head of the next field. Returns false at the end of the struct. */
static bool read_head(struct thrift_reader *reader, int *last, struct thrift_field *field)
{
    uint8_t head = read_byte(reader);
    if (head == 0) return false;
    int64_t number = head >> 4 ? *last + (head >> 4) : read_integer(reader);
    if (number < INT16_MIN || number > INT16_MAX) (void)fail(reader);
    if (reader->damaged) return false;
    *last = (int)number;
    *field = (struct thrift_field){(int)number, head & 15u};
    return true;
}

bool thrift_next(struct thrift_reader *reader, struct thrift_field *field)
{
    if (reader->damaged || reader->depth == 0) return false;
    if (read_head(reader, &reader->last[reader->depth - 1], field)) return true;
    reader->depth--;
    return false;
}

/* Reads the head of a list, but for its items. */
static size_t read_list_head(struct thrift_reader *reader, unsigned *type)
{
    uint8_t head = read_byte(reader);
    uint64_t n = head >> 4 == LONG_LIST ? read_length(reader) : head >> 4;
    *type = head & 15u;
    return n > bytes_left(reader) ? (size_t)fail(reader) : (size_t)n;
}

static void skip_value(struct thrift_reader *reader, unsigned type, unsigned depth);

static void skip_struct(struct thrift_reader *reader, unsigned depth)
{
    struct thrift_field field;
    int last = 0;
    while (read_head(reader, &last, &field))
        if (field.type != TYPE_TRUE && field.type != TYPE_FALSE)
            skip_value(reader, field.type, depth + 1);
}

static void skip_map(struct thrift_reader *reader, unsigned depth)
{
    uint64_t n = read_length(reader);
    unsigned types = n > 0 ? read_byte(reader) : 0;
    if (n > bytes_left(reader)) (void)fail(reader);
    for (uint64_t i = 0; i < n && !reader->damaged; i++) {
        skip_value(reader, types >> 4, depth + 1);
        skip_value(reader, types & 15, depth + 1);
    }
}

/* Passes over a value. Booleans are bytes here: those of fields are in the head. */
static void skip_value(struct thrift_reader *reader, unsigned type, unsigned depth)
{
    unsigned item_type;
    size_t n;
    if (depth > MOST_SKIPPED_DEPTH) (void)fail(reader);
    if (reader->damaged) return;
    switch (type) {
    case TYPE_TRUE:
    case TYPE_FALSE:
    case TYPE_I8: (void)take_bytes(reader, 1); break;
    case TYPE_I16:
    case TYPE_I32:
    case TYPE_I64: (void)read_length(reader); break;
    case TYPE_DOUBLE: (void)take_bytes(reader, 8); break;
    case TYPE_BYTES: (void)take_bytes(reader, read_length(reader)); break;
    case TYPE_LIST:
    case TYPE_SET:
        n = read_list_head(reader, &item_type);
        for (size_t i = 0; i < n && !reader->damaged; i++)
            skip_value(reader, item_type, depth + 1);
        break;
    case TYPE_MAP: skip_map(reader, depth); break;
    case TYPE_STRUCT: skip_struct(reader, depth); break;
    case TYPE_UUID: (void)take_bytes(reader, 16); break;
    default: (void)fail(reader);
    }
}

void thrift_skip(struct thrift_reader *reader, const struct thrift_field *field)
{
    if (field->type != TYPE_TRUE && field->type != TYPE_FALSE) skip_value(reader, field->type, 0);
}

bool thrift_read_bool(struct thrift_reader *reader, const struct thrift_field *field)
{
    if (field->type != TYPE_TRUE && field->type != TYPE_FALSE) (void)fail(reader);
    return field->type == TYPE_TRUE;
}

int64_t thrift_read_integer(struct thrift_reader *reader, const struct thrift_field *field)
{
    if (field->type == TYPE_I8) return (int8_t)read_byte(reader);
    if (field->type >= TYPE_I16 && field->type <= TYPE_I64) return read_integer(reader);
    return (int64_t)fail(reader);
}

const uint8_t *thrift_read_bytes(struct thrift_reader *reader, const struct thrift_field *field,
                                 size_t *n_bytes)
{
    uint64_t n = field->type == TYPE_BYTES ? read_length(reader) : fail(reader);
    const uint8_t *bytes = take_bytes(reader, n);
    *n_bytes = bytes ? (size_t)n : 0;
    return bytes;
}

bool thrift_enter_item(struct thrift_reader *reader)
{
    if (reader->depth == THRIFT_MOST_DEPTH) (void)fail(reader);
    if (reader->damaged) return false;
    reader->last[reader->depth++] = 0;
    return true;
}

bool thrift_enter(struct thrift_reader *reader, const struct thrift_field *field)
{
    if (field->type != TYPE_STRUCT) (void)fail(reader);
    return thrift_enter_item(reader);
}

size_t thrift_enter_list(struct thrift_reader *reader, const struct thrift_field *field,
                         enum thrift_type type)
{
    unsigned item_type;
    if (field->type != TYPE_LIST) return (size_t)fail(reader);
    size_t n = read_list_head(reader, &item_type);
    return n > 0 && item_type != (unsigned)type ? (size_t)fail(reader) : n;
}
