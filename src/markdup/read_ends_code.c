/* read_ends_code.c -- see read_ends_code.h. */
#include "markdup/read_ends_code.h"

#include "util/byte_order.h"
#include "util/varint.h"

#include <string.h>

/* The first byte: kind (2 bits), orientation (2 bits) and these flags. */
enum {
    IS_LEFT = 0x10, IS_REVERSE = 0x20, FAILED_QC = 0x40, HAS_OTHERS = 0x80,
};

/* The second byte. */
enum {
    NEW_REF = 0x01, OTHER_MATE_REF = 0x02, LACKS_SCORE = 0x04, HAS_GROUP = 0x08,
    HAS_BARCODE = 0x10, HAS_NAME = 0x20, WAS_MARKED = 0x40, HAS_BARCODE_TEXT = 0x80,
};

/* ---- names ---- */

/*
 * Names consist mostly of digits and colons. They are stored in half bytes: fifteen values for
 * frequent characters, and one that precedes any other character, which takes two more. The common
 * prefix with the previous name is stored as its length. Eight digits and colons are stored at
 * once; one by one, they took half of the time for read ends.
 */
enum { HALF_LITERAL = 15, N_AT_ONCE = 8, SHARED_AT_ONCE = 8 };

static const char half_chars[HALF_LITERAL + 1] = "0123456789:._/-";

#define EACH_BYTE UINT64_C(0x0101010101010101)

static int half_of(uint8_t c)
{
    if (c >= '0' && c <= ':') return c - '0';
    return c == '.' ? 11 : c == '_' ? 12 : c == '/' ? 13 : c == '-' ? 14 : HALF_LITERAL;
}

/* True if each byte has a value from 0 to 10. */
static bool all_are_digits(uint64_t values)
{
    return ((values | (values + 5 * EACH_BYTE)) & 0xf0 * EACH_BYTE) == 0;
}

/* Packs the lower halves of eight bytes, the first lowest. */
static uint32_t join_halves(uint64_t values)
{
    values = (values | values >> 4) & UINT64_C(0x00ff00ff00ff00ff);
    values = (values | values >> 8) & UINT64_C(0x0000ffff0000ffff);
    return (uint32_t)(values | values >> 16);
}

static uint64_t part_halves(uint32_t halves)
{
    uint64_t values = (halves | (uint64_t)halves << 16) & UINT64_C(0x0000ffff0000ffff);
    values = (values | values << 8) & UINT64_C(0x00ff00ff00ff00ff);
    return (values | values << 4) & 0x0f * EACH_BYTE;
}

struct half_bytes {
    uint8_t *at;
    bool is_half;               /* the lower half of *at is used */
};

static inline void put_half(struct half_bytes *halves, unsigned value)
{
    if (halves->is_half)
        *halves->at++ |= (uint8_t)(value << 4);
    else
        *halves->at = (uint8_t)value;
    halves->is_half = !halves->is_half;
}

static inline void put_char(struct half_bytes *halves, uint8_t c)
{
    int half = half_of(c);
    put_half(halves, (unsigned)half);
    if (half != HALF_LITERAL) return;
    put_half(halves, c & 15);
    put_half(halves, c >> 4);
}

/* The length of the common prefix of two texts. */
static size_t count_shared(const uint8_t *a, const uint8_t *b, size_t n_bytes)
{
    size_t n = 0;
    for (; n + SHARED_AT_ONCE <= n_bytes; n += SHARED_AT_ONCE) {
        uint64_t differs = get_u64(a + n) ^ get_u64(b + n);
        if (differs) return n + (size_t)__builtin_ctzll(differs) / 8;
    }
    while (n < n_bytes && a[n] == b[n]) n++;
    return n;
}

/* Clears all but the first n of eight bytes. */
static uint64_t first_bytes(uint64_t values, size_t n)
{
    return n < 8 ? values & ((UINT64_C(1) << 8 * n) - 1) : values;
}

/* The n <= 8 characters of a name from i on, minus '0'; then zeros. Reads only the name. */
static uint64_t digits_at(const uint8_t *name, size_t n_bytes, size_t i, size_t n)
{
    uint64_t values = 0;
    if (n_bytes >= N_AT_ONCE)
        values = get_u64(name + i + n - N_AT_ONCE) >> 8 * (N_AT_ONCE - n);
    else
        for (size_t k = 0; k < n; k++) values |= (uint64_t)name[i + k] << 8 * k;
    return first_bytes(values ^ '0' * EACH_BYTE, n);
}

/* Stores the length of the common prefix, the number of other characters, and these. */
static uint8_t *put_name(struct read_ends_coder *coder, const uint8_t *name, size_t n_bytes,
                         uint8_t *out)
{
    size_t least = n_bytes < coder->name_bytes ? n_bytes : coder->name_bytes;
    size_t shared = count_shared(name, coder->name, least), i = shared;
    *out++ = (uint8_t)shared;
    *out++ = (uint8_t)(n_bytes - shared);
    struct half_bytes halves = {out, false};
    while (i < n_bytes) {
        size_t n = n_bytes - i < N_AT_ONCE ? n_bytes - i : N_AT_ONCE;
        uint64_t values = digits_at(name, n_bytes, i, n);
        if (!halves.is_half && all_are_digits(values)) {
            (void)put_u32(halves.at, join_halves(values));
            halves.at += (n + 1) / 2;
            i += n;
        } else {
            put_char(&halves, name[i++]);
        }
    }
    memcpy(coder->name + shared, name + shared, n_bytes - shared);
    coder->name_bytes = n_bytes;
    return halves.at + halves.is_half;
}

static inline unsigned get_half(const uint8_t **at, bool *is_half)
{
    unsigned value = *is_half ? *(*at)++ >> 4 : **at & 15;
    *is_half = !*is_half;
    return value;
}

static inline uint8_t get_char(const uint8_t **at, bool *is_half)
{
    unsigned half = get_half(at, is_half);
    if (half != HALF_LITERAL) return (uint8_t)half_chars[half];
    unsigned low = get_half(at, is_half);
    return (uint8_t)(low | get_half(at, is_half) << 4);
}

static void get_name(struct read_ends_coder *coder, const uint8_t **at)
{
    size_t n = *(*at)++, n_bytes = n + *(*at)++;
    bool is_half = false;
    if (n_bytes > READ_ENDS_NAME_MAX_BYTES) n_bytes = READ_ENDS_NAME_MAX_BYTES;
    while (n < n_bytes) {
        size_t left = n_bytes - n < N_AT_ONCE ? n_bytes - n : N_AT_ONCE;
        uint64_t values = first_bytes(part_halves(get_u32(*at)), left);
        if (!is_half && all_are_digits(values)) {
            (void)put_u64(coder->name + n, values | '0' * EACH_BYTE);
            *at += (left + 1) / 2;
            n += left;
        } else {
            coder->name[n++] = get_char(at, &is_half);
        }
    }
    coder->name_bytes = n_bytes;
    if (is_half) (*at)++;
}

/* ---- numbers ---- */

/*
 * Most read ends have five numbers of one to four bytes. Their sizes come first, three bits each,
 * which avoids the unpredictable branches of varints.
 */
enum { N_NUMBERS = 5, SIZE_BITS = 3, SIZES_BYTES = 2 };

static uint64_t fold(int64_t value)
{
    return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

static int64_t unfold(uint64_t value)
{
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

/* Codes 0 to 7 are sizes of 0 to 6 bytes, and 8. */
static unsigned size_number(uint64_t value)
{
    unsigned n = value == 0 ? 0 : (71 - (unsigned)__builtin_clzll(value)) / 8;
    return n < 7 ? n : 7;
}

static unsigned bytes_of_size(unsigned number)
{
    return number + number / 7;
}

/* The bit above the sizes: the ordinal differs from the index, and follows the numbers. */
enum { HAS_ORDINAL = 1 << N_NUMBERS * SIZE_BITS };

/* flags: the bits above the sizes. May touch 8 bytes after the returned end. */
static uint8_t *put_numbers(uint8_t *out, const uint64_t values[N_NUMBERS], unsigned flags)
{
    uint8_t *sizes_at = out;
    unsigned sizes = flags;
    out += SIZES_BYTES;
    for (unsigned i = 0; i < N_NUMBERS; i++) {
        unsigned number = size_number(values[i]);
        (void)put_u64(out, values[i]);
        out += bytes_of_size(number);
        sizes |= number << SIZE_BITS * i;
    }
    (void)put_u16(sizes_at, sizes);
    return out;
}

/* Returns the flags. May read READ_ENDS_CODE_SLACK_BYTES after the end. */
static unsigned get_numbers(const uint8_t **at, uint64_t values[N_NUMBERS])
{
    static const uint64_t mask_of_size[] = {
        0, 0xff, 0xffff, 0xffffff, 0xffffffff, UINT64_C(0xffffffffff), UINT64_C(0xffffffffffff),
        UINT64_MAX};
    unsigned sizes = get_u16(*at);
    *at += SIZES_BYTES;
    for (unsigned i = 0; i < N_NUMBERS; i++) {
        unsigned number = sizes >> SIZE_BITS * i & 7;
        values[i] = get_u64(*at) & mask_of_size[number];
        *at += bytes_of_size(number);
    }
    return sizes & HAS_ORDINAL;
}

/* ---- read ends ---- */

/* For a pair, true only if both reads have the same strand. */
static bool has_other_place(const struct read_ends *ends)
{
    return ends->orientation == PAIR_FF || ends->orientation == PAIR_RR;
}

uint8_t *read_ends_encode(struct read_ends_coder *coder, const struct read_ends *ends, uint8_t *out)
{
    bool is_pair = ends->kind == READ_ENDS_PAIR || ends->kind == READ_ENDS_END;
    *out++ = (uint8_t)(ends->kind | ends->orientation << 2 | (ends->is_left ? IS_LEFT : 0) |
                       (ends->is_reverse ? IS_REVERSE : 0) | (ends->failed_qc ? FAILED_QC : 0) |
                       (ends->has_others ? HAS_OTHERS : 0));
    *out++ = (uint8_t)((ends->ref != coder->ref ? NEW_REF : 0) |
                       (is_pair && ends->mate_ref != ends->ref ? OTHER_MATE_REF : 0) |
                       (ends->lacks_score ? LACKS_SCORE : 0) | (ends->group ? HAS_GROUP : 0) |
                       (ends->barcode ? HAS_BARCODE : 0) | (ends->name ? HAS_NAME : 0) |
                       (ends->was_marked ? WAS_MARKED : 0) |
                       (ends->barcode_text ? HAS_BARCODE_TEXT : 0));
    bool has_place = ends->kind != READ_ENDS_OTHER;
    const uint64_t numbers[N_NUMBERS] = {
        ends->index - coder->index,
        has_place ? fold(ends->pos - coder->pos) : 0,
        has_place ? fold(ends->here - ends->pos) : 0,
        has_place ? fold(ends->score) : 0,
        is_pair                     ? fold(ends->there - ends->here)
        : ends->kind == READ_ENDS_SINGLE ? fold(ends->other_place - ends->here)
                                    : 0,
    };
    bool has_ordinal = ends->ordinal != ends->index;
    out = put_numbers(out, numbers, has_ordinal ? HAS_ORDINAL : 0);
    if (has_ordinal) out = put_varint(out, ends->ordinal);
    if (ends->ref != coder->ref) out = put_signed_varint(out, ends->ref);
    if (is_pair) {
        if (has_other_place(ends)) out = put_signed_varint(out, ends->other_place - ends->here);
        if (ends->mate_ref != ends->ref) out = put_signed_varint(out, ends->mate_ref);
    }
    if (ends->group) out = put_varint(out, ends->group);
    if (ends->barcode) out = put_u64(out, ends->barcode);
    if (ends->barcode_text) {
        *out++ = ends->barcode_bytes;
        memcpy(out, ends->barcode_text, ends->barcode_bytes);
        out += ends->barcode_bytes;
    }
    if (ends->name) out = put_name(coder, ends->name, ends->name_bytes, out);
    coder->index = ends->index;
    coder->ref = ends->ref;
    if (ends->kind != READ_ENDS_OTHER) coder->pos = ends->pos;
    return out;
}

void read_ends_decode(struct read_ends_coder *coder, const uint8_t **at, struct read_ends *ends)
{
    unsigned first = *(*at)++, second = *(*at)++;
    uint64_t numbers[N_NUMBERS];
    unsigned flags = get_numbers(at, numbers);
    *ends = (struct read_ends){
        .kind = first & 3,
        .orientation = first >> 2 & 3,
        .is_left = first & IS_LEFT,
        .is_reverse = first & IS_REVERSE,
        .failed_qc = first & FAILED_QC,
        .has_others = first & HAS_OTHERS,
        .lacks_score = second & LACKS_SCORE,
        .was_marked = second & WAS_MARKED,
        .index = coder->index + (uint32_t)numbers[0],
        .ref = coder->ref,
        .pos = coder->pos,
    };
    ends->ordinal = ends->index;
    if (flags & HAS_ORDINAL) ends->ordinal = get_varint(at) & DUPLICATE_ORDINAL_MASK;
    if (second & NEW_REF) ends->ref = (int32_t)get_signed_varint(at);
    if (ends->kind != READ_ENDS_OTHER) {
        ends->pos += unfold(numbers[1]);
        ends->here = ends->pos + unfold(numbers[2]);
        ends->other_place = ends->here;
        if (ends->kind == READ_ENDS_SINGLE) ends->other_place += unfold(numbers[4]);
        ends->score = unfold(numbers[3]);
    }
    if (ends->kind == READ_ENDS_PAIR || ends->kind == READ_ENDS_END) {
        ends->there = ends->here + unfold(numbers[4]);
        if (has_other_place(ends)) ends->other_place = ends->here + get_signed_varint(at);
        ends->mate_ref = ends->ref;
        if (second & OTHER_MATE_REF) ends->mate_ref = (int32_t)get_signed_varint(at);
    }
    if (second & HAS_GROUP) ends->group = (uint32_t)get_varint(at);
    if (second & HAS_BARCODE) {
        ends->barcode = get_u64(*at);
        *at += 8;
    }
    if (second & HAS_BARCODE_TEXT) {
        ends->barcode_bytes = *(*at)++;
        ends->barcode_text = *at;
        *at += ends->barcode_bytes;
    }
    if (second & HAS_NAME) {
        get_name(coder, at);
        ends->name = coder->name;
        ends->name_bytes = (uint8_t)coder->name_bytes;
    }
    coder->index = ends->index;
    coder->ref = ends->ref;
    coder->pos = ends->pos;
}
