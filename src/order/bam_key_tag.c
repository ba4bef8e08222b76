/*
 * bam_key_tag.c -- see bam_key_tag.h.
 *
 * The first byte is the class of the value. The class says what follows: nothing, one byte, text
 * with its NUL, or eight bytes.
 *
 * All numbers become doubles, which hold every integer of 32 bits and every float exactly. Read as
 * integers, the bits of positive doubles are in order, and those of negative doubles are in reverse
 * order. Setting the sign bit of positive numbers and inverting all bits of negative ones puts all
 * of them in order.
 */
#include "order/bam_key_tag.h"

#include "bam/bam_aux.h"

#include <math.h>

/* Kinds of values, in their order. */
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

static double number_of(const struct bam_aux *aux)
{
    const uint8_t *value = aux->value;
    float f;
    double d;
    switch (aux->type) {
    case 'c': return (int8_t)value[0];
    case 'C': return value[0];
    case 's': return (int16_t)bam_record_u16(value);
    case 'S': return bam_record_u16(value);
    case 'i': return (int32_t)bam_record_u32(value);
    case 'I': return bam_record_u32(value);
    case 'f': memcpy(&f, value, sizeof f); return f;
    default: memcpy(&d, value, sizeof d); return d;
    }
}

/* An integer that compares as the number does. */
static uint64_t ordered_bits(double number)
{
    const uint64_t sign = UINT64_C(1) << 63;
    uint64_t bits;
    if (isnan(number)) return UINT64_MAX;
    if (number == 0) return sign;
    memcpy(&bits, &number, sizeof bits);
    return bits & sign ? ~bits : bits | sign;
}

size_t bam_key_tag_encode(const char tag[2], const uint8_t *rec, uint8_t *out)
{
    struct bam_aux aux;
    enum tag_class kind = CLASS_MISSING;
    size_t n = 0;
    uint64_t bits;
    if (bam_aux_find(rec, tag, &aux) > 0) kind = class_of_type(aux.type);
    if (kind == CLASS_CHARACTER || kind == CLASS_TEXT) n = aux.value_bytes;
    if (kind == CLASS_NUMBER) n = NUMBER_BYTES;
    if (!out) return 1 + n;
    out[0] = (uint8_t)kind;
    if (kind == CLASS_NUMBER) {
        bits = __builtin_bswap64(ordered_bits(number_of(&aux)));
        memcpy(out + 1, &bits, sizeof bits);
    } else if (n > 0) {
        memcpy(out + 1, aux.value, n);
    }
    return 1 + n;
}
