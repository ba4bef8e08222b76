/*
 * parquet_encode.h -- encodes values for Parquet (Parquet format, "Encodings"): RLE with bit
 * packing, deltas, and dictionaries.
 *
 * Functions append to `out`, which the caller frees. One thread at a time. Nothing can fail.
 */
#ifndef ROCKSORT_COLUMNS_PARQUET_ENCODE_H
#define ROCKSORT_COLUMNS_PARQUET_ENCODE_H

#include "util/byte_buffer.h"

/* The number of bits that a value needs. */
unsigned parquet_bit_width(uint64_t value);

enum { PARQUET_PENDING = 504 };         /* values: 63 groups of 8, a count that fits in a byte */

/*
 * RLE, the hybrid of run lengths and packed bits, for values of the same width, at most 32 bits.
 * Order of calls: begin, add, end. With a width of 0 all values are 0.
 */
struct parquet_runs {
    struct byte_buffer *out;
    unsigned width;
    uint32_t value;             /* of the current run */
    uint64_t n_equal;           /* values in the current run */
    unsigned n_pending;         /* values before it, to be bit-packed */
    uint32_t pending[PARQUET_PENDING];
};

void parquet_runs_begin(struct parquet_runs *runs, unsigned width, struct byte_buffer *out);
void parquet_runs_flush(struct parquet_runs *runs);
void parquet_runs_end(struct parquet_runs *runs);

/* Adds n equal values. */
static inline void parquet_runs_add(struct parquet_runs *runs, uint32_t value, uint64_t n)
{
    if (value != runs->value) {
        parquet_runs_flush(runs);
        runs->value = value;
    }
    runs->n_equal += n;
}

/* DELTA_BINARY_PACKED: n integers of n_bits bits, 32 or 64. Integers of 32 bits are taken modulo
   2^32. */
void parquet_put_deltas(const int64_t *values, size_t n, unsigned n_bits, struct byte_buffer *out);

/*
 * The distinct values of a column, numbered in the order of their first occurrence. Order of calls:
 * clear; add for each value, all numbers or all texts. Texts are not copied and must not change. A
 * dictionary starts as {0}.
 */
struct parquet_entry {
    uint64_t number;            /* of a text: its length in bytes */
    const uint8_t *text;
};

struct parquet_dictionary {
    struct parquet_entry *entries;
    uint32_t n_entries;
    size_t entries_room;
    uint64_t text_bytes;        /* of all entries */
    uint32_t *slots;            /* of a hash table: numbers of entries */
    size_t n_slots;
};

void parquet_dictionary_clear(struct parquet_dictionary *dictionary);
void parquet_dictionary_release(struct parquet_dictionary *dictionary);

/* Add a value unless it is there. Return the number of its entry. */
uint32_t parquet_dictionary_add_number(struct parquet_dictionary *dictionary, uint64_t number);
uint32_t parquet_dictionary_add_text(struct parquet_dictionary *dictionary, const uint8_t *text,
                                     size_t n_bytes);

#endif
