/*
 * parquet_decode.h -- numbers as Parquet stores them, read again: what parquet_encode.h writes, and
 * what other programs write in the same encodings. Nothing that is read is believed.
 *
 * Order of calls, for runs as for differences: begin; then values in pieces of any size. The bytes
 * must stay where they are. Functions return false if the bytes do not hold so many values, or are
 * damaged. One thread at a time.
 */
#ifndef ROCKSORT_COLUMNS_PARQUET_DECODE_H
#define ROCKSORT_COLUMNS_PARQUET_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* RLE, the hybrid of run lengths and packed bits. */
struct parquet_run_reader {
    const uint8_t *at, *end;    /* what comes after the run that is open */
    unsigned width;
    uint64_t n_left;            /* values of that run */
    uint32_t value;             /* of a run of equal values */
    const uint8_t *packed;      /* of packed bits; NULL: the values are equal */
    uint64_t bit;               /* where the next value begins in them */
};

/* Values have `width` bits, at most 32. */
void parquet_run_reader_begin(struct parquet_run_reader *reader, const uint8_t *at,
                              const uint8_t *end, unsigned width);
bool parquet_read_runs(struct parquet_run_reader *reader, uint32_t *to, size_t n);

/* DELTA_BINARY_PACKED */
struct parquet_delta_reader {
    const uint8_t *at, *end;    /* what comes after the miniblock that is open */
    unsigned n_bits;            /* of a value: 32 or 64 */
    uint64_t n_left;            /* values */
    bool has_first;             /* the first value was not read yet: it has no difference */
    uint64_t value;             /* the one before, or the first */
    uint64_t n_miniblocks, miniblock_values;
    uint64_t least;             /* of the differences in the block */
    const uint8_t *widths;      /* of its miniblocks, those that are left */
    uint64_t n_widths;
    const uint8_t *packed;      /* the miniblock */
    unsigned width;
    uint64_t n_packed, bit;     /* its values that are left, and where the next begins */
};

/* Afterwards n_left says how many values there are. */
bool parquet_delta_reader_begin(struct parquet_delta_reader *reader, const uint8_t *at,
                                const uint8_t *end, unsigned n_bits);
bool parquet_read_deltas(struct parquet_delta_reader *reader, int64_t *to, size_t n);

/* Where the bytes of all values end; NULL if they are damaged. */
const uint8_t *parquet_deltas_end(const struct parquet_delta_reader *reader);

#endif
