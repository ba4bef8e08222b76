/* bam_aux.c -- see bam_aux.h. */
#include "bam/bam_aux.h"

#include "util/byte_order.h"

/* Size of the values of a type, or 0 if they differ in size. */
static size_t fixed_bytes(char type)
{
    switch (type) {
    case 'A':
    case 'c':
    case 'C': return 1;
    case 's':
    case 'S': return 2;
    case 'i':
    case 'I':
    case 'f': return 4;
    case 'd': return 8;
    default: return 0;
    }
}

/* Size of the value that begins at `value`, or 0 if it does not fit before `end`. */
static size_t value_bytes(char type, const uint8_t *value, const uint8_t *end)
{
    size_t room = (size_t)(end - value), size = fixed_bytes(type);
    if (type == 'Z' || type == 'H') {
        const uint8_t *nul = memchr(value, 0, room);
        size = nul ? (size_t)(nul - value) + 1 : 0;
    } else if (type == 'B') {
        size_t element = room >= 5 ? fixed_bytes((char)value[0]) : 0;
        if (element) size = 5 + element * (size_t)get_u32(value + 1);
    }
    return size <= room ? size : 0;
}

int bam_aux_next_before(const uint8_t *end, const uint8_t **at, struct bam_aux *aux)
{
    if (*at == end) return 0;
    if (end - *at < 4) return -1;
    aux->start = *at;
    aux->type = (char)(*at)[2];
    aux->value = *at + 3;
    aux->value_bytes = value_bytes(aux->type, aux->value, end);
    if (aux->value_bytes == 0) return -1;
    *at = aux->value + aux->value_bytes;
    return 1;
}

int bam_aux_next(const uint8_t *rec, const uint8_t **at, struct bam_aux *aux)
{
    return bam_aux_next_before(bam_record_end(rec), at, aux);
}

int bam_aux_find(const uint8_t *rec, const char tag[2], struct bam_aux *aux)
{
    const uint8_t *at = bam_record_tags(rec);
    int r;
    while ((r = bam_aux_next(rec, &at, aux)) > 0)
        if (aux->start[0] == (uint8_t)tag[0] && aux->start[1] == (uint8_t)tag[1]) break;
    return r;
}

bool bam_aux_integer(const struct bam_aux *aux, int64_t *value)
{
    const uint8_t *at = aux->value;
    switch (aux->type) {
    case 'c': *value = (int8_t)at[0]; return true;
    case 'C': *value = at[0]; return true;
    case 's': *value = (int16_t)get_u16(at); return true;
    case 'S': *value = get_u16(at); return true;
    case 'i': *value = (int32_t)get_u32(at); return true;
    case 'I': *value = get_u32(at); return true;
    default: return false;
    }
}

/* The largest value of 8 and of 16 bits goes into the next type, as in bam_aux_update_int. */
uint8_t *bam_aux_put_count(uint8_t *out, uint32_t value, size_t at_least_bytes)
{
    if (value >= UINT16_MAX || at_least_bytes > 2) {
        *out++ = 'I';
        return put_u32(out, value);
    }
    if (value >= UINT8_MAX || at_least_bytes == 2) {
        *out++ = 'S';
        return put_u16(out, value);
    }
    *out++ = 'C';
    *out++ = (uint8_t)value;
    return out;
}
