/*
 * thrift_reader.h -- reads structs that Apache Thrift's compact protocol has written
 * (thrift_compact.h writes them), of bytes that nobody has checked.
 *
 * Order of calls: thrift_read; thrift_next until it returns false, and for each field one of the
 * functions that read its value, or thrift_skip. A field that is a struct is entered; then
 * thrift_next reads its fields until it returns false, and after that those of the struct around
 * it. A list is begun, which tells how many items it has; a call for each item follows.
 *
 * Errors: what is not sound sets `damaged`, after which all functions return false, 0 or NULL. The
 * caller asks once, at the end. Texts lie in the bytes that are read. One thread at a time.
 */
#ifndef ROCKSORT_COLUMNS_THRIFT_READER_H
#define ROCKSORT_COLUMNS_THRIFT_READER_H

#include "columns/thrift_compact.h"

struct thrift_reader {
    const uint8_t *at, *end;
    bool damaged;
    unsigned depth;
    int last[THRIFT_MOST_DEPTH];        /* the field before, in each open struct */
};

struct thrift_field {
    int number;
    unsigned type;
};

/* Begins a struct that no other contains. */
struct thrift_reader thrift_read(const uint8_t *bytes, size_t n_bytes);

/* Finds the next field of the innermost open struct. Returns false at its end. */
bool thrift_next(struct thrift_reader *reader, struct thrift_field *field);

/* Passes over the value of the field. */
void thrift_skip(struct thrift_reader *reader, const struct thrift_field *field);

bool thrift_read_bool(struct thrift_reader *reader, const struct thrift_field *field);
int64_t thrift_read_integer(struct thrift_reader *reader, const struct thrift_field *field);

/* NULL if it is damaged. */
const uint8_t *thrift_read_bytes(struct thrift_reader *reader, const struct thrift_field *field,
                                 size_t *n_bytes);

/* Begins a struct. Returns false if the field is none. */
bool thrift_enter(struct thrift_reader *reader, const struct thrift_field *field);

/* Begins a list and returns how many items it has, at most one for each byte that is left. */
size_t thrift_enter_list(struct thrift_reader *reader, const struct thrift_field *field,
                         enum thrift_type type);

/* Begins an item that is a struct. */
bool thrift_enter_item(struct thrift_reader *reader);

#endif
