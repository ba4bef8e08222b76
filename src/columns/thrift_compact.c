/*
 * thrift_compact.c -- see thrift_compact.h.
 *
 * A field begins with a byte: the difference of its number to the previous one, and its type. If
 * the difference exceeds 15, the number itself follows. Integers are zigzag varints.
 */
#include "columns/thrift_compact.h"

enum { FIELD_TRUE = 1, FIELD_FALSE = 2, FIELD_LIST = 9 };
enum { MOST_STEP = 15, MOST_SHORT_LIST = 14 };

static void put_byte(struct thrift_writer *writer, unsigned value)
{
    *byte_buffer_append(writer->out, 1) = (uint8_t)value;
}

static void put_field(struct thrift_writer *writer, int field, unsigned type)
{
    int *last = &writer->last[writer->depth - 1], step = field - *last;
    if (step > 0 && step <= MOST_STEP) {
        put_byte(writer, (unsigned)step << 4 | type);
    } else {
        put_byte(writer, type);
        byte_buffer_signed_varint(writer->out, field);
    }
    *last = field;
}

struct thrift_writer thrift_begin(struct byte_buffer *out)
{
    return thrift_continue(out, 0);
}

struct thrift_writer thrift_continue(struct byte_buffer *out, int last)
{
    return (struct thrift_writer){.out = out, .depth = 1, .last = {last}};
}

void thrift_end(struct thrift_writer *writer)
{
    put_byte(writer, 0);
    writer->depth--;
}

void thrift_bool(struct thrift_writer *writer, int field, bool value)
{
    put_field(writer, field, value ? FIELD_TRUE : FIELD_FALSE);
}

void thrift_integer(struct thrift_writer *writer, int field, enum thrift_type type, int64_t value)
{
    put_field(writer, field, type);
    if (type == THRIFT_I8)
        put_byte(writer, (uint8_t)value);
    else
        byte_buffer_signed_varint(writer->out, value);
}

void thrift_bytes(struct thrift_writer *writer, int field, const void *bytes, size_t n_bytes)
{
    put_field(writer, field, THRIFT_BYTES);
    thrift_item_bytes(writer, bytes, n_bytes);
}

void thrift_text(struct thrift_writer *writer, int field, const char *text)
{
    thrift_bytes(writer, field, text, strlen(text));
}

void thrift_struct(struct thrift_writer *writer, int field)
{
    put_field(writer, field, THRIFT_STRUCT);
    thrift_item_struct(writer);
}

void thrift_empty_struct(struct thrift_writer *writer, int field)
{
    thrift_struct(writer, field);
    thrift_end(writer);
}

void thrift_list(struct thrift_writer *writer, int field, enum thrift_type type, size_t n)
{
    put_field(writer, field, FIELD_LIST);
    if (n <= MOST_SHORT_LIST) {
        put_byte(writer, (unsigned)n << 4 | type);
    } else {
        put_byte(writer, 0xf0u | type);
        byte_buffer_varint(writer->out, n);
    }
}

void thrift_item_bool(struct thrift_writer *writer, bool value)
{
    put_byte(writer, value ? FIELD_TRUE : FIELD_FALSE);
}

void thrift_item_integer(struct thrift_writer *writer, int64_t value)
{
    byte_buffer_signed_varint(writer->out, value);
}

void thrift_item_bytes(struct thrift_writer *writer, const void *bytes, size_t n_bytes)
{
    byte_buffer_varint(writer->out, n_bytes);
    byte_buffer_copy(writer->out, bytes, n_bytes);
}

void thrift_item_struct(struct thrift_writer *writer)
{
    writer->last[writer->depth++] = 0;
}
