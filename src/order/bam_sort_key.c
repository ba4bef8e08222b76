/*
 * bam_sort_key.c -- see bam_sort_key.h.
 *
 * A name key is the encoded name, a NUL, and the name-flag key as two bytes. Names hold no NUL, so
 * that the NUL ends a name before any longer one and makes the keys prefix-free.
 *
 * The natural order compares a maximal run of digits by value with leading zeros ignored. Such a
 * run is written as the byte '0', the number of its significant digits (0 for zero) as one byte,
 * and those digits: more digits are a greater value, and as many digits compare as text. Against
 * any other byte the '0' decides, which lies with the other digits between '/' and ':'. Where zeros
 * count, as in samtools 1.16, 255 less their number stands behind the digits: of two equal values
 * the one with more zeros comes first, whatever follows.
 *
 * Keys that combine two orders, as those of -t, are the keys of both, one behind the other.
 */
#include "bam_sort_key.h"

#include "bam/bam_long.h"
#include "order/bam_key_tag.h"
#include "util/byte_order.h"

#include <stdio.h>

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
static size_t encode_natural(const char *name, bool zeros_count, uint8_t *out)
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
        const uint8_t *zeros = at;
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
        if (!zeros_count) continue;
        if (out) out[n] = (uint8_t)(UINT8_MAX - (first - zeros));
        n++;
    }
    return n;
}

static size_t encode_name(const struct sort_rules *rules, enum sort_order order,
                          const uint8_t *rec, uint8_t *out)
{
    const char *name = (const char *)bam_record_name(rec);
    size_t n;
    if (order == SORT_NAME_NATURAL) {
        n = encode_natural(name, rules->zeros_count, out);
    } else {
        n = strlen(name);
        if (out) memcpy(out, name, n);
    }
    if (out) {
        uint32_t flags = name_flag_key(bam_record_flag(rec));
        out[n] = 0;
        out[n + 1] = (uint8_t)(flags >> 8);
        out[n + 2] = (uint8_t)flags;
    }
    return n + 3;
}

/* Reference, position + 1, strand: 4, 8 and 1 bytes. */
static size_t encode_long_coordinate(const uint8_t *rec, uint8_t *out)
{
    enum { TID_BYTES = 4, POS_BYTES = 8 };
    if (out) {
        out = put_big_endian(out, (uint32_t)bam_record_tid(rec) & 0x7fffffff, TID_BYTES);
        out = put_big_endian(out, (uint64_t)(bam_record_true_pos(rec) + 1), POS_BYTES);
        *out = bam_record_flag(rec) >> 4 & 1;
    }
    return TID_BYTES + POS_BYTES + 1;
}

static size_t encode_coordinate(const struct sort_rules *rules, const uint8_t *rec, uint8_t *out)
{
    if (rules->long_positions) return encode_long_coordinate(rec, out);
    if (out) sort_key_store_fixed(sort_key_coordinate(rec), out);
    return SORT_KEY_FIXED_BYTES;
}

static size_t encode_tag(const struct sort_rules *rules, const uint8_t *rec, uint8_t *out)
{
    size_t n = bam_key_tag_encode(rules->tag, rec, out);
    uint8_t *rest = out ? out + n : NULL;
    return n + (rules->below == SORT_COORDINATE ? encode_coordinate(rules, rec, rest)
                                                : encode_name(rules, rules->below, rec, rest));
}

static size_t encode_minhash(const struct sort_rules *rules, const uint8_t *rec, uint8_t *out)
{
    if (!minhash_is_tail(rec)) return encode_coordinate(rules, rec, out);
    if (!out) return MINHASH_KEY_BYTES;
    struct minhash_value value;
    minhash_recall(rec, &value);
    return minhash_key_encode(&value, rec, out);
}

/* out may be NULL to learn the size. */
static size_t encode(const struct sort_rules *rules, const uint8_t *rec, uint8_t *out,
                     const char **problem)
{
    switch (rules->order) {
    case SORT_NAME_NATURAL:
    case SORT_NAME_LEXICAL: return encode_name(rules, rules->order, rec, out);
    case SORT_TAG: return encode_tag(rules, rec, out);
    case SORT_TEMPLATE: return bam_key_template_encode(rules->template_ends, rec, out, problem);
    case SORT_MINHASH: return encode_minhash(rules, rec, out);
    default: return encode_coordinate(rules, rec, out);
    }
}

size_t sort_key_bytes(const struct sort_rules *rules, const uint8_t *rec, const char **problem)
{
    return encode(rules, rec, NULL, problem);
}

size_t sort_key_encode(const struct sort_rules *rules, const uint8_t *rec, uint8_t *out)
{
    const char *problem;        /* sort_key_bytes has reported it */
    return encode(rules, rec, out, &problem);
}

uint64_t sort_key_shuffle(const uint8_t *rec, uint64_t seed)
{
    return XXH3_64bits_withSeed(rec, bam_record_bytes(rec), seed);
}

void sort_rules_admit(const struct sort_rules *rules, uint8_t *rec, struct content_sum *sum)
{
    if (rules->order == SORT_MINHASH && minhash_is_tail(rec)) {
        struct minhash_value value;
        minhash_apply(&rules->minhash, rec, &value);
        content_sum_add(sum, rec, bam_record_bytes(rec));
        minhash_stash(rec, &value);
    } else {
        content_sum_add(sum, rec, bam_record_bytes(rec));
    }
}

/* Sets a tag of the @HD line, or removes it if the value is NULL. */
static int set_hd_tag(sam_hdr_t *header, const char *tag, const char *value)
{
    int r = value ? sam_hdr_update_hd(header, tag, value) : sam_hdr_remove_tag_hd(header, tag);
    return r < 0 ? -1 : 0;
}

int sort_rules_update_header(const struct sort_rules *rules, bool any_placed, sam_hdr_t *header)
{
    const char *so = "unsorted", *ss = NULL, *go = NULL;
    char tag_order[64];
    switch (rules->order) {
    case SORT_COORDINATE:
    case SORT_COORDINATE_LONG: so = "coordinate"; break;
    case SORT_NAME_NATURAL:
        so = "queryname";
        ss = "queryname:natural";
        break;
    case SORT_NAME_LEXICAL:
        so = "queryname";
        ss = "queryname:lexicographical";
        break;
    case SORT_TAG:
        (void)snprintf(tag_order, sizeof tag_order, "unsorted:%.2s:%s", rules->tag,
                       rules->below == SORT_NAME_NATURAL   ? "queryname:natural"
                       : rules->below == SORT_NAME_LEXICAL ? "queryname:lexicographical"
                                                           : "coordinate");
        ss = tag_order;
        break;
    case SORT_TEMPLATE:
        ss = "unsorted:template-coordinate";
        go = "query";
        break;
    case SORT_MINHASH:
        if (any_placed) so = "coordinate";
        ss = any_placed ? "coordinate:minhash" : "unsorted:minhash";
        break;
    case SORT_SHUFFLE: break;
    }
    /* sam_hdr_update_hd fails when there is no @HD line to update. */
    if (sam_hdr_update_hd(header, "SO", so) < 0 &&
        sam_hdr_add_line(header, "HD", "VN", "1.6", "SO", so, NULL) < 0)
        return -1;
    return set_hd_tag(header, "GO", go) < 0 || set_hd_tag(header, "SS", ss) < 0 ? -1 : 0;
}
