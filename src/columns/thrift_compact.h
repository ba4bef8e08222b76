/*
 * thrift_compact.h -- writes structs in Apache Thrift's compact protocol, which Parquet uses for
 * its metadata.
 *
 * Order of calls: thrift_begin; a call for each field, in ascending order of field numbers;
 * thrift_end. For a field that is a struct, call thrift_struct, its fields, and thrift_end. For a
 * list, call thrift_list with the number of items, then a call for each item. Fields without a call
 * are not set.
 *
 * Ownership: the caller frees the bytes. One thread at a time. Nothing can fail.
 */
#ifndef ROCKSORT_COLUMNS_THRIFT_COMPACT_H
#define ROCKSORT_COLUMNS_THRIFT_COMPACT_H

#include "util/byte_buffer.h"

#include <stdbool.h>

enum { THRIFT_MOST_DEPTH = 8 };         /* structs within structs */

enum thrift_type {              /* of integers, and of the items of a list */
    THRIFT_BOOL = 1,
    THRIFT_I8 = 3,
    THRIFT_I16 = 4,
    THRIFT_I32 = 5,
    THRIFT_I64 = 6,
    THRIFT_BYTES = 8,
    THRIFT_STRUCT = 12
};

struct thrift_writer {
    struct byte_buffer *out;
    unsigned depth;
    int last[THRIFT_MOST_DEPTH];        /* the previous field, in each open struct */
};

/* Begins an outermost struct; or continues a struct, at any depth, whose last field was `last`. */
struct thrift_writer thrift_begin(struct byte_buffer *out);
struct thrift_writer thrift_continue(struct byte_buffer *out, int last);

/* Ends the innermost open struct. */
void thrift_end(struct thrift_writer *writer);

void thrift_bool(struct thrift_writer *writer, int field, bool value);
void thrift_integer(struct thrift_writer *writer, int field, enum thrift_type type, int64_t value);

/* The usual types. */
static inline void thrift_i32(struct thrift_writer *writer, int field, int32_t value)
{
    thrift_integer(writer, field, THRIFT_I32, value);
}

static inline void thrift_i64(struct thrift_writer *writer, int field, uint64_t value)
{
    thrift_integer(writer, field, THRIFT_I64, (int64_t)value);
}

void thrift_bytes(struct thrift_writer *writer, int field, const void *bytes, size_t n_bytes);
void thrift_text(struct thrift_writer *writer, int field, const char *text);
void thrift_struct(struct thrift_writer *writer, int field);

/* A struct without fields: begins and ends it. */
void thrift_empty_struct(struct thrift_writer *writer, int field);

void thrift_list(struct thrift_writer *writer, int field, enum thrift_type type, size_t n);
void thrift_item_bool(struct thrift_writer *writer, bool value);
void thrift_item_integer(struct thrift_writer *writer, int64_t value);  /* i32 and i64 */
void thrift_item_bytes(struct thrift_writer *writer, const void *bytes, size_t n_bytes);
void thrift_item_struct(struct thrift_writer *writer);

#endif
