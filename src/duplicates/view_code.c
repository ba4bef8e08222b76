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

/*
 * Names are digits and colons for the most part: they are stored by half bytes, ten for the digits,
 * four for other characters that are frequent. What a name shares with the one before is counted.
 */
enum { HALF_LITERAL = 14, HALF_END = 15 };

static const char half_chars[HALF_LITERAL] = "0123456789:._/";

static int half_of(uint8_t c)
{
    if (c >= '0' && c <= ':') return c - '0';
    return c == '.' ? 11 : c == '_' ? 12 : c == '/' ? 13 : HALF_LITERAL;
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

static uint8_t *put_name(struct view_coder *coder, const uint8_t *name, size_t n_bytes,
                         uint8_t *out)
{
    size_t shared = 0;
    while (shared < n_bytes && shared < coder->name_bytes && name[shared] == coder->name[shared])
        shared++;
    *out++ = (uint8_t)shared;
    struct half_bytes halves = {out, false};
    for (size_t i = shared; i < n_bytes; i++) {
        int half = half_of(name[i]);
        put_half(&halves, (unsigned)half);
        if (half != HALF_LITERAL) continue;
        put_half(&halves, name[i] & 15);
        put_half(&halves, name[i] >> 4);
    }
    put_half(&halves, HALF_END);
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

static void get_name(struct view_coder *coder, const uint8_t **at)
{
    size_t n = *(*at)++;
    bool is_half = false;
    unsigned half;
    while ((half = get_half(at, &is_half)) != HALF_END && n < sizeof coder->name) {
        if (half == HALF_LITERAL) {
            unsigned low = get_half(at, &is_half);
            coder->name[n++] = (uint8_t)(low | get_half(at, &is_half) << 4);
        } else {
            coder->name[n++] = (uint8_t)half_chars[half];
        }
    }
    coder->name_bytes = n;
    if (is_half) (*at)++;
}

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
    out = put_varint(out, view->index - coder->index);
    if (view->ref != coder->ref) out = put_signed_varint(out, view->ref);
    if (view->kind != VIEW_OTHER) {
        out = put_signed_varint(out, view->pos - coder->pos);
        out = put_signed_varint(out, view->here - view->pos);
        out = put_signed_varint(out, view->score);
    }
    if (is_pair) {
        out = put_signed_varint(out, view->there - view->here);
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
    *view = (struct duplicate_view){
        .kind = first & 3,
        .orientation = first >> 2 & 3,
        .is_left = first & IS_LEFT,
        .is_reverse = first & IS_REVERSE,
        .failed_qc = first & FAILED_QC,
        .has_others = first & HAS_OTHERS,
        .lacks_score = second & LACKS_SCORE,
        .was_marked = second & WAS_MARKED,
        .index = coder->index + (uint32_t)get_varint(at),
        .ref = coder->ref,
        .pos = coder->pos,
    };
    if (second & NEW_REF) view->ref = (int32_t)get_signed_varint(at);
    if (view->kind != VIEW_OTHER) {
        view->pos += get_signed_varint(at);
        view->here = view->pos + get_signed_varint(at);
        view->other_place = view->here;
        view->score = get_signed_varint(at);
    }
    if (view->kind == VIEW_PAIR || view->kind == VIEW_END) {
        view->there = view->here + get_signed_varint(at);
        if (has_other_place(view)) view->other_place = view->here + get_signed_varint(at);
        view->mate_ref = view->ref;
        if (second & OTHER_MATE_REF) view->mate_ref = (int32_t)get_signed_varint(at);
    }
    if (second & HAS_GROUP) view->group = (uint32_t)get_varint(at);
    if (second & HAS_BARCODE) {
        view->barcode = get_u32(*at) | (uint64_t)get_u32(*at + 4) << 32;
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
