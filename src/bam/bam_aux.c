/* bam_aux.c -- see bam_aux.h. */
#include "bam/bam_aux.h"

#include "util/byte_order.h"

const uint8_t bam_aux_fixed_bytes[256] = {
    ['A'] = 1, ['c'] = 1, ['C'] = 1, ['s'] = 2, ['S'] = 2, ['i'] = 4, ['I'] = 4, ['f'] = 4,
    ['d'] = 8,
};

size_t bam_aux_varying_bytes(char type, const uint8_t *value, const uint8_t *end)
{
    size_t room = (size_t)(end - value), size = 0;
    if (type == 'Z' || type == 'H') {
        const uint8_t *nul = memchr(value, 0, room);
        if (nul) size = (size_t)(nul - value) + 1;
    } else if (type == 'B') {
        size_t element = room >= BAM_AUX_ARRAY_HEAD_BYTES ? bam_aux_fixed_bytes[value[0]] : 0;
        if (element) size = BAM_AUX_ARRAY_HEAD_BYTES + element * (size_t)get_u32(value + 1);
    }
    return size <= room ? size : 0;
}

int bam_aux_find(const uint8_t *rec, const char tag[2], struct bam_aux *aux)
{
    const uint8_t *at = bam_record_tags(rec);
    int r;
    while ((r = bam_aux_read(rec, &at, aux)) > 0)
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

/* Like bam_aux_update_int, stores 255 in 16 bits and 65,535 in 32. */
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
