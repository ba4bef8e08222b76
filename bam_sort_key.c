/*
 * bam_sort_key.c -- see bam_sort_key.h.
 *
 * A name key is the encoded name, a NUL, and the name-flag key as two bytes. Names hold no NUL, so
 * that the NUL ends a name before any longer one and makes the keys prefix-free.
 *
 * The natural order compares a maximal run of digits by value with leading zeros ignored. Such a
 * run is written as the byte '0', the number of its significant digits (0 for zero) as one byte,
 * and those digits: more digits are a greater value, and as many digits compare as text. Against
 * any other byte the '0' decides, which lies with the other digits between '/' and ':'.
 */
#include "bam_sort_key.h"

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* Neither, READ1, READ2, both; within each primary, supplementary, secondary, secondary and
 * supplementary. */
static uint32_t name_flag_key(uint32_t flag)
{
    return (flag & (BAM_FREAD1 | BAM_FREAD2)) << 8 | (flag & BAM_FSECONDARY) << 3 |
           (flag & BAM_FSUPPLEMENTARY) >> 3;
}

/* Encodes a name in natural order; out may be NULL to learn the size. */
static size_t encode_natural(const char *name, uint8_t *out)
{
    size_t n = 0;
    const uint8_t *at = (const uint8_t *)name;
    while (*at) {
        if (!is_digit(*at)) {
            if (out) out[n] = *at;
            n++;
            at++;
            continue;
        }
        while (*at == '0') at++;
        const uint8_t *first = at;
        while (is_digit(*at)) at++;
        size_t n_digits = (size_t)(at - first);     /* below 255, as read names are */
        if (out) {
            out[n] = '0';
            out[n + 1] = (uint8_t)n_digits;
            memcpy(out + n + 2, first, n_digits);
        }
        n += 2 + n_digits;
    }
    return n;
}

size_t sort_key_bytes(enum sort_order order, const uint8_t *rec)
{
    const char *name = (const char *)bam_record_name(rec);
    size_t n = order == SORT_NAME_NATURAL ? encode_natural(name, NULL) : strlen(name);
    return n + 3;
}

size_t sort_key_encode(enum sort_order order, const uint8_t *rec, uint8_t *out)
{
    const char *name = (const char *)bam_record_name(rec);
    size_t n;
    if (order == SORT_NAME_NATURAL) {
        n = encode_natural(name, out);
    } else {
        n = strlen(name);
        memcpy(out, name, n);
    }
    uint32_t flags = name_flag_key(bam_record_flag(rec));
    out[n] = 0;
    out[n + 1] = (uint8_t)(flags >> 8);
    out[n + 2] = (uint8_t)flags;
    return n + 3;
}

int sort_order_update_header(enum sort_order order, sam_hdr_t *header)
{
    const char *so = order == SORT_COORDINATE ? "coordinate" : "queryname";
    const char *ss = order == SORT_NAME_NATURAL   ? "queryname:natural"
                     : order == SORT_NAME_LEXICAL ? "queryname:lexicographical"
                                                  : NULL;
    /* sam_hdr_update_hd fails when there is no @HD line to update. */
    if (sam_hdr_update_hd(header, "SO", so) < 0 &&
        sam_hdr_add_line(header, "HD", "VN", "1.6", "SO", so, NULL) < 0)
        return -1;
    if (sam_hdr_remove_tag_hd(header, "GO") < 0) return -1;
    if (ss) return sam_hdr_update_hd(header, "SS", ss) < 0 ? -1 : 0;
    return sam_hdr_remove_tag_hd(header, "SS") < 0 ? -1 : 0;
}
