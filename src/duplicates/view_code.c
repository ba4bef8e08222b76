/* view_code.c -- see view_code.h. */
#include "duplicates/view_code.h"

#include "util/byte_order.h"
#include "util/varint.h"

#include <string.h>

/* The first byte has the kind (2 bits), the orientation (2) and these. */
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
 * Names are digits and colons for the most part: they are stored by half bytes, fifteen for the
 * characters that are frequent, and one before any other, which takes two more. What a name shares
 * with the one before is counted. Eight digits and colons are stored at once: one by one, they took
 * half of the time of a view.
 */
enum { HALF_LITERAL = 15, N_AT_ONCE = 8, SHARED_AT_ONCE = 8 };

static const char half_chars[HALF_LITERAL + 1] = "0123456789:._/-";

#define EACH_BYTE UINT64_C(0x0101010101010101)

static int half_of(uint8_t c)
{
    if (c >= '0' && c <= ':') return c - '0';
    return c == '.' ? 11 : c == '_' ? 12 : c == '/' ? 13 : c == '-' ? 14 : HALF_LITERAL;
}

/* True if each byte has one of the values 0 to 10. */
static bool all_are_digits(uint64_t values)
{
    return ((values | (values + 5 * EACH_BYTE)) & 0xf0 * EACH_BYTE) == 0;
}

/* Joins the lower halves of eight bytes, the first lowest. */
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
    bool is_half;               /* the lower half of *at is taken */
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

/* How many bytes two texts have in common at their beginnings. */
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

/* The n characters of a name from i on, n at most eight, less '0'; then zeros. Nothing is read
   before or after the name. */
static uint64_t digits_at(const uint8_t *name, size_t n_bytes, size_t i, size_t n)
{
    uint64_t values = 0;
    if (n_bytes >= N_AT_ONCE)
        values = get_u64(name + i + n - N_AT_ONCE) >> 8 * (N_AT_ONCE - n);
    else
        for (size_t k = 0; k < n; k++) values |= (uint64_t)name[i + k] << 8 * k;
    return first_bytes(values ^ '0' * EACH_BYTE, n);
}

/* Stores how many characters are shared and how many follow, and these. */
static uint8_t *put_name(struct view_coder *coder, const uint8_t *name, size_t n_bytes,
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

static void get_name(struct view_coder *coder, const uint8_t **at)
{
    size_t n = *(*at)++, n_bytes = n + *(*at)++;
    bool is_half = false;
    if (n_bytes > VIEW_NAME_MAX_BYTES) n_bytes = VIEW_NAME_MAX_BYTES;
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
 * Most views have five numbers of one to four bytes each. Their sizes come first, three bits each:
 * so there are no branches on them, as there are in varints, which no processor can foresee.
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

/* Sizes of 0 to 6 bytes, and 8, have the numbers 0 to 7. */
static unsigned size_number(uint64_t value)
{
    unsigned n = value == 0 ? 0 : (71 - (unsigned)__builtin_clzll(value)) / 8;
    return n < 7 ? n : 7;
}

static unsigned bytes_of_size(unsigned number)
{
    return number + number / 7;
}

/* The last bit of the sizes: the ordinal is not the index, and follows the numbers. */
enum { HAS_ORDINAL = 1 << N_NUMBERS * SIZE_BITS };

/* flags: those above the sizes. Writes up to 8 bytes more than it says. */
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

/* Returns the flags. Reads up to VIEW_CODE_SLACK_BYTES more. */
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

/* ---- views ---- */

/* Of a pair: only if both reads have one strand. */
static bool has_other_place(const struct duplicate_view *view)
{
    return view->orientation == PAIR_FF || view->orientation == PAIR_RR;
}

uint8_t *view_encode(struct view_coder *coder, const struct duplicate_view *view, uint8_t *out)
{
    bool is_pair = view->kind == VIEW_PAIR || view->kind == VIEW_END;
    *out++ = (uint8_t)(view->kind | view->orientation << 2 | (view->is_left ? IS_LEFT : 0) |
                       (view->is_reverse ? IS_REVERSE : 0) | (view->failed_qc ? FAILED_QC : 0) |
                       (view->has_others ? HAS_OTHERS : 0));
    *out++ = (uint8_t)((view->ref != coder->ref ? NEW_REF : 0) |
                       (is_pair && view->mate_ref != view->ref ? OTHER_MATE_REF : 0) |
                       (view->lacks_score ? LACKS_SCORE : 0) | (view->group ? HAS_GROUP : 0) |
                       (view->barcode ? HAS_BARCODE : 0) | (view->name ? HAS_NAME : 0) |
                       (view->was_marked ? WAS_MARKED : 0) |
                       (view->barcode_text ? HAS_BARCODE_TEXT : 0));
    bool has_place = view->kind != VIEW_OTHER;
    const uint64_t numbers[N_NUMBERS] = {
        view->index - coder->index,
        has_place ? fold(view->pos - coder->pos) : 0,
        has_place ? fold(view->here - view->pos) : 0,
        has_place ? fold(view->score) : 0,
        is_pair                     ? fold(view->there - view->here)
        : view->kind == VIEW_SINGLE ? fold(view->other_place - view->here)
                                    : 0,
    };
    bool has_ordinal = view->ordinal != view->index;
    out = put_numbers(out, numbers, has_ordinal ? HAS_ORDINAL : 0);
    if (has_ordinal) out = put_varint(out, view->ordinal);
    if (view->ref != coder->ref) out = put_signed_varint(out, view->ref);
    if (is_pair) {
        if (has_other_place(view)) out = put_signed_varint(out, view->other_place - view->here);
        if (view->mate_ref != view->ref) out = put_signed_varint(out, view->mate_ref);
    }
    if (view->group) out = put_varint(out, view->group);
    if (view->barcode) out = put_u64(out, view->barcode);
    if (view->barcode_text) {
        *out++ = view->barcode_bytes;
        memcpy(out, view->barcode_text, view->barcode_bytes);
        out += view->barcode_bytes;
    }
    if (view->name) out = put_name(coder, view->name, view->name_bytes, out);
    coder->index = view->index;
    coder->ref = view->ref;
    if (view->kind != VIEW_OTHER) coder->pos = view->pos;
    return out;
}

void view_decode(struct view_coder *coder, const uint8_t **at, struct duplicate_view *view)
{
    unsigned first = *(*at)++, second = *(*at)++;
    uint64_t numbers[N_NUMBERS];
    unsigned flags = get_numbers(at, numbers);
    *view = (struct duplicate_view){
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
    view->ordinal = view->index;
    if (flags & HAS_ORDINAL) view->ordinal = get_varint(at) & DUPLICATE_ORDINAL_MASK;
    if (second & NEW_REF) view->ref = (int32_t)get_signed_varint(at);
    if (view->kind != VIEW_OTHER) {
        view->pos += unfold(numbers[1]);
        view->here = view->pos + unfold(numbers[2]);
        view->other_place = view->here;
        if (view->kind == VIEW_SINGLE) view->other_place += unfold(numbers[4]);
        view->score = unfold(numbers[3]);
    }
    if (view->kind == VIEW_PAIR || view->kind == VIEW_END) {
        view->there = view->here + unfold(numbers[4]);
        if (has_other_place(view)) view->other_place = view->here + get_signed_varint(at);
        view->mate_ref = view->ref;
        if (second & OTHER_MATE_REF) view->mate_ref = (int32_t)get_signed_varint(at);
    }
    if (second & HAS_GROUP) view->group = (uint32_t)get_varint(at);
    if (second & HAS_BARCODE) {
        view->barcode = get_u64(*at);
        *at += 8;
    }
    if (second & HAS_BARCODE_TEXT) {
        view->barcode_bytes = *(*at)++;
        view->barcode_text = *at;
        *at += view->barcode_bytes;
    }
    if (second & HAS_NAME) {
        get_name(coder, at);
        view->name = coder->name;
        view->name_bytes = (uint8_t)coder->name_bytes;
    }
    coder->index = view->index;
    coder->ref = view->ref;
    coder->pos = view->pos;
}
