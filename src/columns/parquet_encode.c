/*
 * parquet_encode.c -- see parquet_encode.h.
 *
 * RLE: eight or more equal values become a run, once the values before them fill groups of eight,
 * because only the last group of a page may be padded.
 *
 * Deltas: blocks of 128 in four miniblocks of 32. A block stores its minimum delta, the bit width
 * of each miniblock, and the deltas minus the minimum. Deltas wrap around.
 */
#include "columns/parquet_encode.h"

#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

unsigned parquet_bit_width(uint64_t value)
{
    return value ? 64 - (unsigned)__builtin_clzll(value) : 0;
}

/* ---- packed bits ---- */

/* Writes bits, the lowest first. */
struct packer {
    uint8_t *at;
    uint64_t bits;
    unsigned n_bits;            /* fewer than 8 between calls */
};

/* At most 32 bits. */
static inline void pack(struct packer *packer, uint64_t value, unsigned width)
{
    packer->bits |= value << packer->n_bits;
    packer->n_bits += width;
    while (packer->n_bits >= 8) {
        *packer->at++ = (uint8_t)packer->bits;
        packer->bits >>= 8;
        packer->n_bits -= 8;
    }
}

/* ---- runs ---- */

void parquet_runs_begin(struct parquet_runs *runs, unsigned width, struct byte_buffer *out)
{
    runs->out = out;
    runs->width = width;
    runs->value = 0;
    runs->n_equal = 0;
    runs->n_pending = 0;
}

/* Writes the pending values as groups of 8. */
static void put_pending(struct parquet_runs *runs)
{
    if (runs->n_pending == 0) return;
    unsigned n_groups = (runs->n_pending + 7) / 8;
    while (runs->n_pending < n_groups * 8) runs->pending[runs->n_pending++] = 0;
    byte_buffer_varint(runs->out, (uint64_t)n_groups << 1 | 1);
    struct packer packer = {.at = byte_buffer_append(runs->out, (size_t)n_groups * runs->width)};
    for (unsigned i = 0; i < runs->n_pending; i++) pack(&packer, runs->pending[i], runs->width);
    runs->n_pending = 0;
}

static void put_run(struct parquet_runs *runs)
{
    byte_buffer_varint(runs->out, runs->n_equal << 1);
    for (unsigned bit = 0; bit < runs->width; bit += 8)
        *byte_buffer_append(runs->out, 1) = (uint8_t)(runs->value >> bit);
    runs->n_equal = 0;
}

void parquet_runs_flush(struct parquet_runs *runs)
{
    enum { SHORTEST_RUN = 8 };
    unsigned n_missing = (0 - runs->n_pending) & 7;     /* in the last group */
    if (runs->n_equal >= n_missing + SHORTEST_RUN) {
        for (unsigned i = 0; i < n_missing; i++) runs->pending[runs->n_pending++] = runs->value;
        runs->n_equal -= n_missing;
        put_pending(runs);
        put_run(runs);
        return;
    }
    for (; runs->n_equal > 0; runs->n_equal--) {
        if (runs->n_pending == PARQUET_PENDING) put_pending(runs);
        runs->pending[runs->n_pending++] = runs->value;
    }
}

void parquet_runs_end(struct parquet_runs *runs)
{
    parquet_runs_flush(runs);
    put_pending(runs);
}

/* ---- differences ---- */

enum { BLOCK = 128, MINIBLOCKS = 4, MINIBLOCK = BLOCK / MINIBLOCKS };

/* The difference modulo 2^n_bits, as a signed number. */
static inline int64_t difference(int64_t value, int64_t before, unsigned n_bits)
{
    uint64_t d = (uint64_t)value - (uint64_t)before;
    return n_bits == 32 ? (int64_t)(int32_t)(uint32_t)d : (int64_t)d;
}

static void put_miniblock(const uint64_t *above, unsigned width, struct byte_buffer *out)
{
    struct packer packer = {.at = byte_buffer_append(out, (size_t)width * MINIBLOCK / 8)};
    for (unsigned i = 0; i < MINIBLOCK; i++) {
        if (width <= 32) {
            pack(&packer, above[i], width);
        } else {
            pack(&packer, above[i] & UINT32_MAX, 32);
            pack(&packer, above[i] >> 32, width - 32);
        }
    }
}

/* Writes n deltas, at most a block. Empty miniblocks have a width of 0. */
static void put_block(const int64_t *differences, size_t n, struct byte_buffer *out)
{
    uint64_t above[BLOCK] = {0};
    int64_t least = differences[0];
    for (size_t i = 1; i < n; i++) least = differences[i] < least ? differences[i] : least;
    for (size_t i = 0; i < n; i++) above[i] = (uint64_t)differences[i] - (uint64_t)least;
    byte_buffer_signed_varint(out, least);
    unsigned widths[MINIBLOCKS];
    uint8_t *at = byte_buffer_append(out, MINIBLOCKS);
    for (unsigned k = 0; k < MINIBLOCKS; k++) {
        uint64_t bits = 0;
        for (unsigned i = 0; i < MINIBLOCK; i++) bits |= above[k * MINIBLOCK + i];
        widths[k] = parquet_bit_width(bits);
        at[k] = (uint8_t)widths[k];
    }
    for (unsigned k = 0; k < MINIBLOCKS && k * MINIBLOCK < n; k++)
        put_miniblock(above + k * MINIBLOCK, widths[k], out);
}

void parquet_put_deltas(const int64_t *values, size_t n, unsigned n_bits, struct byte_buffer *out)
{
    byte_buffer_varint(out, BLOCK);
    byte_buffer_varint(out, MINIBLOCKS);
    byte_buffer_varint(out, n);
    byte_buffer_signed_varint(out, n > 0 ? values[0] : 0);
    for (size_t begin = 1; begin < n; begin += BLOCK) {
        size_t n_here = n - begin < BLOCK ? n - begin : BLOCK;
        int64_t differences[BLOCK];
        for (size_t i = 0; i < n_here; i++)
            differences[i] = difference(values[begin + i], values[begin + i - 1], n_bits);
        put_block(differences, n_here, out);
    }
}

/* ---- dictionaries ---- */

enum { NO_ENTRY = UINT32_MAX, LEAST_SLOTS = 1024 };

void parquet_dictionary_clear(struct parquet_dictionary *dictionary)
{
    dictionary->n_entries = 0;
    dictionary->text_bytes = 0;
    /* Clearing a large table would take longer than growing it again. */
    if (dictionary->n_slots > LEAST_SLOTS) dictionary->n_slots = LEAST_SLOTS;
    if (dictionary->n_slots > 0)
        memset(dictionary->slots, 0xff, dictionary->n_slots * sizeof *dictionary->slots);
}

void parquet_dictionary_release(struct parquet_dictionary *dictionary)
{
    free(dictionary->entries);
    free(dictionary->slots);
    *dictionary = (struct parquet_dictionary){0};
}

/* Multiplicative hash: the high bits of the product depend on all bits of the number. */
static inline uint64_t hash_entry(const struct parquet_entry *entry)
{
    uint64_t hash = entry->number * UINT64_C(0x9e3779b97f4a7c15);
    return entry->text ? XXH3_64bits(entry->text, (size_t)entry->number) : hash ^ hash >> 32;
}

/* Grows the table until it is at most half full. */
static void grow_table(struct parquet_dictionary *dictionary)
{
    size_t n = dictionary->n_slots ? 4 * dictionary->n_slots : LEAST_SLOTS;
    dictionary->slots = xrealloc(dictionary->slots, n * sizeof *dictionary->slots);
    dictionary->n_slots = n;
    memset(dictionary->slots, 0xff, n * sizeof *dictionary->slots);
    for (uint32_t i = 0; i < dictionary->n_entries; i++) {
        size_t slot = (size_t)hash_entry(&dictionary->entries[i]) & (n - 1);
        while (dictionary->slots[slot] != NO_ENTRY) slot = (slot + 1) & (n - 1);
        dictionary->slots[slot] = i;
    }
}

/* Inlined for numbers and for texts. */
static inline uint32_t add_entry(struct parquet_dictionary *dictionary,
                                 const struct parquet_entry *entry)
{
    if (2 * (size_t)dictionary->n_entries >= dictionary->n_slots) grow_table(dictionary);
    size_t mask = dictionary->n_slots - 1, slot = (size_t)hash_entry(entry) & mask;
    for (uint32_t at; (at = dictionary->slots[slot]) != NO_ENTRY; slot = (slot + 1) & mask) {
        const struct parquet_entry *other = &dictionary->entries[at];
        if (other->number == entry->number &&
            (!entry->text || memcmp(other->text, entry->text, (size_t)entry->number) == 0))
            return at;
    }
    uint32_t number = dictionary->n_entries++;
    xgrow(&dictionary->entries, &dictionary->entries_room, dictionary->n_entries,
          dictionary->n_entries, sizeof *entry);
    dictionary->entries[number] = *entry;
    dictionary->slots[slot] = number;
    if (entry->text) dictionary->text_bytes += entry->number;
    return number;
}

uint32_t parquet_dictionary_add_number(struct parquet_dictionary *dictionary, uint64_t number)
{
    return add_entry(dictionary, &(struct parquet_entry){.number = number});
}

uint32_t parquet_dictionary_add_text(struct parquet_dictionary *dictionary, const uint8_t *text,
                                     size_t n_bytes)
{
    return add_entry(dictionary, &(struct parquet_entry){.number = n_bytes, .text = text});
}
