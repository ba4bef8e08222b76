/*
 * bam_key_tag.c -- see bam_key_tag.h.
 *
 * The first byte is the class of the value, on which the next bytes depend: none, one byte, text
 * with its NUL, or eight bytes.
 *
 * All numbers become doubles, which hold every integer of 32 bits and every float exactly. Read as
 * integers, the bits of positive doubles are in order, and those of negative doubles are in reverse
 * order. Setting the sign bit of positive numbers and inverting all bits of negative ones puts all
 * of them in order.
 */
#include "order/bam_key_tag.h"

#include "bam/bam_aux.h"
#include "util/byte_order.h"
#include "util/xalloc.h"

#include <math.h>
#include <stdlib.h>

/* Classes of values, in their order. */
enum tag_class {
    CLASS_MISSING,
    CLASS_CHARACTER,
    CLASS_ARRAY,
    CLASS_TEXT,
    CLASS_NUMBER,
};

enum { NUMBER_BYTES = 8 };

static enum tag_class class_of_type(char type)
{
    switch (type) {
    case 'A': return CLASS_CHARACTER;
    case 'B': return CLASS_ARRAY;
    case 'H':
    case 'Z': return CLASS_TEXT;
    default: return CLASS_NUMBER;
    }
}

/* Converts a number to an integer. The integers have the order of the numbers. */
static uint64_t ordered_bits(double number)
{
    const uint64_t sign = UINT64_C(1) << 63;
    uint64_t bits;
    if (isnan(number)) return UINT64_MAX;
    if (number == 0) return sign;
    memcpy(&bits, &number, sizeof bits);
    return bits & sign ? ~bits : bits | sign;
}

/* Undoes ordered_bits. */
static double number_of_bits(uint64_t ordered)
{
    const uint64_t sign = UINT64_C(1) << 63;
    double number;
    if (ordered == UINT64_MAX) return NAN;
    uint64_t bits = ordered & sign ? ordered ^ sign : ~ordered;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* A value before it is encoded. */
struct value {
    enum tag_class kind;
    const uint8_t *bytes;       /* the bytes that follow the class */
    size_t n_bytes;
    uint8_t number[NUMBER_BYTES];
};

static void find_value(const char tag[2], const uint8_t *rec, struct value *value)
{
    struct bam_aux aux;
    value->kind = CLASS_MISSING;
    value->n_bytes = 0;
    value->bytes = value->number;
    if (bam_aux_find(rec, tag, &aux) > 0) value->kind = class_of_type(aux.type);
    if (value->kind == CLASS_CHARACTER || value->kind == CLASS_TEXT) {
        value->bytes = aux.value;
        value->n_bytes = aux.value_bytes;
    } else if (value->kind == CLASS_NUMBER) {
        uint64_t bits = __builtin_bswap64(ordered_bits(bam_aux2f(aux.start + 2)));
        memcpy(value->number, &bits, sizeof bits);
        value->n_bytes = NUMBER_BYTES;
    }
}

size_t bam_key_tag_encode(const char tag[2], const uint8_t *rec, uint8_t *out, size_t room)
{
    struct value value;
    find_value(tag, rec, &value);
    if (out && room > 0) {
        size_t n = value.n_bytes < room - 1 ? value.n_bytes : room - 1;
        out[0] = (uint8_t)value.kind;
        memcpy(out + 1, value.bytes, n);
    }
    return 1 + value.n_bytes;
}

int bam_key_tag_compare(const char tag[2], const uint8_t *a, const uint8_t *b)
{
    struct value x, y;
    find_value(tag, a, &x);
    find_value(tag, b, &y);
    if (x.kind != y.kind) return x.kind < y.kind ? -1 : 1;
    /* Encodings are prefix-free: if these bytes are equal, all are. */
    return memcmp(x.bytes, y.bytes, x.n_bytes < y.n_bytes ? x.n_bytes : y.n_bytes);
}

char *bam_key_tag_text(const uint8_t *value, size_t n_bytes)
{
    enum tag_class kind = (enum tag_class)value[0];
    uint64_t bits;
    switch (kind) {
    case CLASS_CHARACTER:
    case CLASS_TEXT: return xasprintf("%.*s", (int)(n_bytes - 1), (const char *)value + 1);
    case CLASS_ARRAY: return xstrdup("array");
    case CLASS_NUMBER:
        memcpy(&bits, value + 1, sizeof bits);
        return xasprintf("%.10g", number_of_bits(__builtin_bswap64(bits)));
    default: return NULL;
    }
}
