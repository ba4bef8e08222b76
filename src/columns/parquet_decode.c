/* parquet_decode.c -- see parquet_decode.h; parquet_encode.c says how values look. */
#include "columns/parquet_decode.h"

#include "util/byte_order.h"
#include "util/varint.h"

#include <string.h>

/* ---- packed bits ---- */

/* The n bits, at most 32, that begin at a bit. The bytes must hold them. */
static inline uint32_t bits_at(const uint8_t *packed, const uint8_t *end, uint64_t bit, unsigned n)
{
    const uint8_t *at = packed + bit / 8;
    uint64_t word = 0;
    if (end - at >= 8) {
        word = get_u64(at);
    } else {
        for (unsigned i = 0; at + i < end; i++) word |= (uint64_t)at[i] << 8 * i;
    }
    return (uint32_t)(word >> bit % 8 & ((UINT64_C(1) << n) - 1));
}

/* ---- runs ---- */

void parquet_run_reader_begin(struct parquet_run_reader *reader, const uint8_t *at,
                              const uint8_t *end, unsigned width)
{
    *reader = (struct parquet_run_reader){.at = at, .end = end, .width = width};
}

/* Opens the next run. Groups that the bytes do not hold as a whole are read as far as they go. */
static bool open_run(struct parquet_run_reader *reader)
{
    uint64_t head, width = reader->width;
    if (!read_varint(&reader->at, reader->end, &head) || head >> 1 == 0) return false;
    size_t n_bytes = (size_t)(reader->end - reader->at);
    reader->n_left = head >> 1;
    reader->packed = NULL;
    reader->value = 0;
    if (!(head & 1)) {
        if (n_bytes < (width + 7) / 8) return false;
        for (unsigned bit = 0; bit < width; bit += 8)
            reader->value |= (uint32_t)*reader->at++ << bit;
        return width == 32 || reader->value >> width == 0;
    }
    if (reader->n_left > UINT32_MAX) return false;
    reader->n_left *= 8;
    if (width == 0) return true;
    if (reader->n_left > 8 * (uint64_t)n_bytes / width)
        reader->n_left = 8 * (uint64_t)n_bytes / width;
    reader->packed = reader->at;
    reader->bit = 0;
    reader->at += (reader->n_left * width + 7) / 8;
    return reader->n_left > 0;
}

bool parquet_read_runs(struct parquet_run_reader *reader, uint32_t *to, size_t n)
{
    while (n > 0) {
        if (reader->n_left == 0 && !open_run(reader)) return false;
        size_t n_here = reader->n_left < n ? (size_t)reader->n_left : n;
        if (reader->packed) {
            uint64_t bit = reader->bit;
            for (size_t i = 0; i < n_here; i++, bit += reader->width)
                to[i] = bits_at(reader->packed, reader->end, bit, reader->width);
            reader->bit = bit;
        } else {
            for (size_t i = 0; i < n_here; i++) to[i] = reader->value;
        }
        reader->n_left -= n_here;
        to += n_here;
        n -= n_here;
    }
    return true;
}

/* ---- differences ---- */

/* Larger blocks than any program writes, but such that no product of sizes overflows. */
enum { MOST_BLOCK_VALUES = 1 << 24 };

bool parquet_delta_reader_begin(struct parquet_delta_reader *reader, const uint8_t *at,
                                const uint8_t *end, unsigned n_bits)
{
    uint64_t block;
    int64_t first;
    *reader = (struct parquet_delta_reader){.n_bits = n_bits, .has_first = true};
    if (!read_varint(&at, end, &block) || !read_varint(&at, end, &reader->n_miniblocks) ||
        !read_varint(&at, end, &reader->n_left) || !read_signed_varint(&at, end, &first))
        return false;
    if (block > MOST_BLOCK_VALUES || reader->n_miniblocks == 0 || reader->n_miniblocks > block ||
        block % reader->n_miniblocks != 0)
        return false;
    reader->miniblock_values = block / reader->n_miniblocks;
    reader->value = (uint64_t)first;
    reader->at = at;
    reader->end = end;
    return reader->miniblock_values % 8 == 0;
}

/* Opens the next miniblock, and the next block if need be. */
static bool open_miniblock(struct parquet_delta_reader *reader)
{
    if (reader->n_widths == 0) {
        int64_t least;
        if (!read_signed_varint(&reader->at, reader->end, &least) ||
            (uint64_t)(reader->end - reader->at) < reader->n_miniblocks)
            return false;
        reader->least = (uint64_t)least;
        reader->widths = reader->at;
        reader->n_widths = reader->n_miniblocks;
        reader->at += reader->n_miniblocks;
    }
    reader->width = *reader->widths++;
    reader->n_widths--;
    uint64_t n_bytes = reader->miniblock_values / 8 * reader->width;
    if (reader->width > 64 || n_bytes > (uint64_t)(reader->end - reader->at)) return false;
    reader->packed = reader->at;
    reader->at += n_bytes;
    reader->n_packed = reader->miniblock_values;
    reader->bit = 0;
    return true;
}

/* A value of n_bits bits, with its sign. */
static inline uint64_t extend(uint64_t value, unsigned n_bits)
{
    return n_bits == 32 ? (uint64_t)(int64_t)(int32_t)(uint32_t)value : value;
}

static inline uint64_t next_difference(struct parquet_delta_reader *reader)
{
    uint64_t bit = reader->bit, above;
    unsigned width = reader->width, low = width < 32 ? width : 32;
    reader->bit += width;
    above = bits_at(reader->packed, reader->end, bit, low);
    if (width > 32)
        above |= (uint64_t)bits_at(reader->packed, reader->end, bit + 32, width - 32) << 32;
    return reader->least + above;
}

bool parquet_read_deltas(struct parquet_delta_reader *reader, int64_t *to, size_t n)
{
    if (n > reader->n_left) return false;
    reader->n_left -= n;
    if (n > 0 && reader->has_first) {
        reader->has_first = false;
        reader->value = extend(reader->value, reader->n_bits);
        *to++ = (int64_t)reader->value;
        n--;
    }
    while (n > 0) {
        if (reader->n_packed == 0 && !open_miniblock(reader)) return false;
        size_t n_here = reader->n_packed < n ? (size_t)reader->n_packed : n;
        uint64_t value = reader->value;
        for (size_t i = 0; i < n_here; i++) {
            value = extend(value + next_difference(reader), reader->n_bits);
            to[i] = (int64_t)value;
        }
        reader->value = value;
        reader->n_packed -= n_here;
        to += n_here;
        n -= n_here;
    }
    return true;
}

const uint8_t *parquet_deltas_end(const struct parquet_delta_reader *reader)
{
    struct parquet_delta_reader copy = *reader;
    uint64_t n = copy.n_left - (copy.has_first && copy.n_left > 0);
    while (n > copy.n_packed) {
        n -= copy.n_packed;
        if (!open_miniblock(&copy)) return NULL;
    }
    return copy.at;
}
