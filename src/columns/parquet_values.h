/*
 * parquet_values.h -- the values of a page that are there, one after the other, by whichever
 * encoding they are stored: the same numbers and texts. Nothing that is read is believed.
 *
 * Order of calls: parquet_entries_read for the page of a dictionary, if the chunk has one; for each
 * page parquet_values_begin, then values in pieces of at most PARQUET_PIECE. Meanwhile the bytes of
 * pages must stay where they are; texts lie in them, or in the memory of the values until the next
 * call.
 *
 * Both structs start as {0}. One thread at a time. Errors: static texts; NULL is none.
 */
#ifndef ROCKSORT_COLUMNS_PARQUET_VALUES_H
#define ROCKSORT_COLUMNS_PARQUET_VALUES_H

#include "columns/column_bytes.h"
#include "columns/parquet_decode.h"
#include "columns/parquet_schema.h"

enum { PARQUET_PIECE = 1024 };

extern const char parquet_damaged[];

struct parquet_text {
    const uint8_t *at;
    size_t n;
};

/* The entries of a dictionary: numbers or texts. */
struct parquet_entries {
    size_t n;
    int64_t *numbers;
    struct parquet_text *texts;
    size_t numbers_room, texts_room;
};

void parquet_entries_release(struct parquet_entries *entries);

/* Reads n entries, of PLAIN. */
const char *parquet_entries_read(struct parquet_entries *entries, enum parquet_type type, size_t n,
                                 const uint8_t *at, const uint8_t *end);

struct parquet_values {
    enum parquet_type type;
    enum parquet_encoding encoding;
    const struct parquet_entries *entries;
    const uint8_t *at, *end;
    struct parquet_run_reader indexes;          /* of entries */
    struct parquet_delta_reader numbers;        /* or lengths of texts, without what they share */
    struct parquet_delta_reader shared;         /* with the text before */
    struct column_bytes last, made;             /* that text; all of the piece */
    uint32_t piece[PARQUET_PIECE];
    int64_t lengths[PARQUET_PIECE], starts[PARQUET_PIECE];
};

void parquet_values_release(struct parquet_values *values);

/* Forgets the texts that were read last. Their memory is kept, if told so. Returns how many bytes
   are. */
size_t parquet_values_forget(struct parquet_values *values, bool is_kept);

/* Begins a page. `entries` may be NULL: there is no dictionary. */
const char *parquet_values_begin(struct parquet_values *values, enum parquet_type type,
                                 int64_t encoding, const struct parquet_entries *entries,
                                 const uint8_t *at, const uint8_t *end);

/* Integers have their sign; of a number with a fraction these are the bits. */
const char *parquet_read_numbers(struct parquet_values *values, int64_t *to, size_t n);
const char *parquet_read_texts(struct parquet_values *values, struct parquet_text *to, size_t n);

#endif
