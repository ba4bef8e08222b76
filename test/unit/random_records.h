/*
 * random_records.h -- shared by all unit tests: random numbers that can be repeated, checks that
 * print the seed, and raw BAM records made field by field.
 *
 * Each test starts its own generator with rng_start and a seed of its own, so that the result does
 * not depend on the order of the tests. ROCKSORT_TEST_SEED=N in the environment is added to every
 * seed, to test with other numbers. The seed that a failed check prints is the sum.
 *
 * Records are laid out by the SAM specification, without the program's own functions.
 */
#ifndef ROCKSORT_TEST_RANDOM_RECORDS_H
#define ROCKSORT_TEST_RANDOM_RECORDS_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include "owned.h"

#include <cmocka.h>

#include <htslib/sam.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rng {
    uint64_t seed;
    uint64_t state;
};

static inline struct rng rng_start(uint64_t seed)
{
    const char *extra = getenv("ROCKSORT_TEST_SEED");
    if (extra) seed += strtoull(extra, NULL, 10);
    return (struct rng){seed, seed};
}

/* splitmix64: every seed is a good seed. */
static inline uint64_t rng_next(struct rng *rng)
{
    uint64_t z = rng->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* A number from 0 to n - 1. The slight bias of the remainder does no harm here. */
static inline size_t rng_below(struct rng *rng, size_t n)
{
    return (size_t)(rng_next(rng) % n);
}

static inline bool rng_one_in(struct rng *rng, size_t n)
{
    return rng_below(rng, n) == 0;
}

static inline void rng_fill(struct rng *rng, uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++) out[i] = (uint8_t)rng_next(rng);
}

/* The numbers below n in random order. */
static inline void rng_permute(struct rng *rng, size_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t at = rng_below(rng, i + 1);
        if (at < i) out[i] = out[at];
        out[at] = i;
    }
}

/* Bytes that compress to about a quarter. */
static inline void rng_fill_compressible(struct rng *rng, uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++) out[i] = (uint8_t)"ACGT"[rng_below(rng, 4)];
}

/* Like assert_true, but prints the seed that repeats the failure. */
#define CHECK(rng, condition)                                                                  \
    do {                                                                                       \
        if (!(condition))                                                                      \
            fail_msg("%s:%d: %s does not hold; seed %" PRIu64, __FILE__, __LINE__, #condition, \
                     (rng)->seed);                                                             \
    } while (0)

/* Exactly n bytes (1 for 0), so that AddressSanitizer sees an access to the next byte. */
static inline void *test_alloc(size_t n)
{
    void *mem = malloc(n ? n : 1);
    if (!mem) fail_msg("out of memory");
    return mem;
}

static inline bam1_t *new_record(void)
{
    bam1_t *b = bam_init1();
    assert_non_null(b);
    return b;
}

static inline sam_hdr_t *parse_header(const char *text)
{
    sam_hdr_t *header = *text ? sam_hdr_parse(strlen(text), text) : sam_hdr_init();
    assert_non_null(header);
    return header;
}

/* Makes a header with the references r0, r1 and so on. The caller destroys it. */
static inline sam_hdr_t *make_header(const int64_t *lengths, size_t n)
{
    sam_hdr_t *header = parse_header("");
    for (size_t i = 0; i < n; i++) {
        char name[24], length[24];
        (void)snprintf(name, sizeof name, "r%zu", i);
        (void)snprintf(length, sizeof length, "%" PRId64, lengths[i]);
        assert_int_equal(sam_hdr_add_line(header, "SQ", "SN", name, "LN", length, NULL), 0);
    }
    return header;
}

static inline void put_file(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fwrite(bytes, 1, n, file) == n);
    assert_int_equal(fclose(file), 0);
}

static inline int sign(long long a, long long b)
{
    return (a > b) - (a < b);
}

static inline void test_put_u16(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
}

static inline void test_put_u32(uint8_t *at, uint32_t value)
{
    test_put_u16(at, value);
    test_put_u16(at + 2, value >> 16);
}

enum { TEST_MAX_NAME = 254 };

struct record_fields {
    const char *name;           /* at most TEST_MAX_NAME characters */
    int32_t tid, pos;
    uint32_t flag;
    uint32_t n_cigar;
    int32_t l_seq;
    size_t tag_bytes;           /* after the qualities */
};

static inline size_t record_size(const struct record_fields *f)
{
    size_t l_seq = (size_t)f->l_seq;
    return 36 + strlen(f->name) + 1 + 4 * (size_t)f->n_cigar + (l_seq + 1) / 2 + l_seq +
           f->tag_bytes;
}

/*
 * Writes a record whose fields agree with each other, and returns its size. The first CIGAR
 * operation, if there is one, matches the whole read; the others delete a base each. Sequence,
 * qualities and tags consist of fill bytes.
 */
static inline size_t put_record(uint8_t *out, const struct record_fields *f, uint8_t fill)
{
    size_t size = record_size(f), name_bytes = strlen(f->name) + 1;
    bool covers = f->n_cigar > 0 && f->n_cigar + (uint32_t)f->l_seq > 1 && !(f->flag & BAM_FUNMAP);
    int64_t end = f->pos + (covers ? (int64_t)f->l_seq + f->n_cigar - 1 : 1);
    test_put_u32(out, (uint32_t)(size - 4));
    test_put_u32(out + 4, (uint32_t)f->tid);
    test_put_u32(out + 8, (uint32_t)f->pos);
    out[12] = (uint8_t)name_bytes;
    out[13] = 60;
    test_put_u16(out + 14, (uint32_t)hts_reg2bin(f->pos, end, 14, 5));
    test_put_u16(out + 16, f->n_cigar);
    test_put_u16(out + 18, f->flag);
    test_put_u32(out + 20, (uint32_t)f->l_seq);
    test_put_u32(out + 24, (uint32_t)-1);
    test_put_u32(out + 28, (uint32_t)-1);
    test_put_u32(out + 32, 0);
    memcpy(out + 36, f->name, name_bytes);
    memset(out + 36 + name_bytes, fill, size - 36 - name_bytes);
    for (uint32_t i = 0; i < f->n_cigar; i++)
        test_put_u32(out + 36 + name_bytes + 4 * (size_t)i,
                     i == 0 ? (uint32_t)f->l_seq << 4 | BAM_CMATCH : 1 << 4 | BAM_CDEL);
    return size;
}

/* Makes a name of digits and letters in turn; such names have the longest natural keys. */
static inline void alternating_name(char *name, size_t length, bool digit_first)
{
    for (size_t i = 0; i < length; i++) {
        bool digit = (i % 2 == 0) == digit_first;
        name[i] = digit ? (char)('1' + i % 9) : (char)('a' + i % 26);
    }
    name[length] = '\0';
}

static inline void name_of_letters(struct rng *rng, char *name, size_t length, const char *letters)
{
    size_t n_letters = strlen(letters);
    for (size_t i = 0; i < length; i++) name[i] = letters[rng_below(rng, n_letters)];
    name[length] = '\0';
}

/*
 * Makes a read name of 0 to 254 characters that an order by name could get wrong. Most are short
 * and have few different letters, so that names are often equal or nearly equal.
 */
static inline void tricky_name(struct rng *rng, char name[TEST_MAX_NAME + 1])
{
    static const char *const known[] = {
        "",   "0",  "00", "000", "1",  "01",  "001", "10", "a",   "a0",   "a00",  "a01", "a1",
        "a001", "a1 ", "x1", "1x", "x", "x01y", "x1y", "x1y0", "x/", "x:", "x0", "~", "!", "/", ":",
        "a:1:01", "a:01:1", "a:1:1", "9", "99999999999999999999999", "100000000000000000000000",
        "\x80", "\xff", "a\x80", "a\3771", "a\x7f", "\x01", "a\x01", "a\x01\x01", "a0\x01",
    };
    switch (rng_below(rng, 8)) {
    case 0:
        strcpy(name, known[rng_below(rng, sizeof known / sizeof *known)]);
        break;
    case 1:
        alternating_name(name, TEST_MAX_NAME - rng_below(rng, 3), rng_one_in(rng, 2));
        name[rng_below(rng, strlen(name))] = "0a9\x80"[rng_below(rng, 4)];
        break;
    case 2:                     /* numbers with many leading zeros */
        name_of_letters(rng, name, rng_below(rng, TEST_MAX_NAME + 1), "0000000001");
        break;
    case 3:                     /* as sequencers name reads */
        (void)snprintf(name, TEST_MAX_NAME + 1, "A00123:45:HXXYZ:%zu:%zu:%zu",
                       1 + rng_below(rng, 4), 1101 + rng_below(rng, 3), rng_below(rng, 2000));
        break;
    case 4:                     /* any bytes but NUL */
        for (size_t i = 0, n = rng_below(rng, 4); i <= n; i++) {
            name[i] = (char)(1 + rng_below(rng, 255));
            name[i + 1] = '\0';
        }
        break;
    default:
        name_of_letters(rng, name, rng_below(rng, 8), "001129ax/:~\x80\xff");
    }
}

/* Flags: sometimes any bits, mostly those that matter for an order. */
static inline uint32_t random_flag(struct rng *rng)
{
    static const uint32_t bits[] = {0x4, 0x10, 0x40, 0x80, 0x100, 0x800};
    if (rng_one_in(rng, 8)) return (uint32_t)rng_below(rng, 0x1000);
    uint32_t flag = 0;
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++)
        if (rng_one_in(rng, 2)) flag |= bits[i];
    return flag;
}

/* References from -1 to n_refs - 1 and positions from -1 to 2^31 - 1, often at the ends of their
   ranges. */
static inline void random_place(struct rng *rng, int32_t n_refs, struct record_fields *f)
{
    f->tid = (int32_t)rng_below(rng, (size_t)n_refs + 1) - 1;
    if (rng_one_in(rng, 8)) f->tid = n_refs - 1;
    switch (rng_below(rng, 4)) {
    case 0: f->pos = -1 + (int32_t)rng_below(rng, 3); break;
    case 1: f->pos = INT32_MAX - (int32_t)rng_below(rng, 3); break;
    case 2: f->pos = (int32_t)rng_below(rng, 10); break;
    default: f->pos = (int32_t)rng_below(rng, INT32_MAX);
    }
}

#endif
