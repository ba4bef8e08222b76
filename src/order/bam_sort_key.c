/*
 * bam_sort_key.c -- see bam_sort_key.h.
 *
 * A name key is the encoded name, a NUL, and two bytes made of the flags. Names hold no NUL, so the
 * NUL sorts a name before any longer name that begins with it, and makes the keys prefix-free.
 *
 * The natural order compares a run of digits by its value and ignores leading zeros. Each such run
 * is written as the byte '0', the number of its significant digits (0 for zero) as one byte, and
 * those digits. A number with more digits is greater; numbers with equally many digits compare as
 * text. Compared with a byte that is not a digit, the byte '0' gives the same result as any other
 * digit: all digits lie between '/' and ':'. Where leading zeros count, as in samtools 1.16, a byte
 * of 255 less their number follows the digits: of two equal values the one with more zeros comes
 * first, whatever follows.
 *
 * The key of -t is the encoded value of the tag, then the key of the second order.
 */
#include "bam_sort_key.h"

#include "bam/bam_long.h"
#include "order/bam_key_tag.h"
#include "util/byte_order.h"

#include <stdio.h>

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

/* Indexed by enum sort_order. */
static const struct {
    const char *name, *text, *word;
} orders[] = {
    [SORT_COORDINATE] = {"coordinate", "coordinate", "coordinate"},
    [SORT_NAME_NATURAL] = {"queryname:natural", "read name, numbers by value", "natural"},
    [SORT_NAME_LEXICAL] = {"queryname:lexicographical", "read name, character by character",
                           "lexical"},
    [SORT_TAG] = {"tag", "tag", "tag"},
    [SORT_TEMPLATE] = {"template-coordinate", "template coordinate", "template"},
    [SORT_MINHASH] = {"minhash", "coordinate and minimiser", "minhash"},
    [SORT_COORDINATE_LONG] = {"coordinate", "coordinate", "long"},
    [SORT_SHUFFLE] = {"shuffle", "random", "shuffle"},
};

const char *sort_order_name(enum sort_order order)
{
    return orders[order].name;
}

const char *sort_order_text(enum sort_order order)
{
    return orders[order].text;
}

const char *sort_order_word(enum sort_order order)
{
    return orders[order].word;
}

int sort_order_of_word(const char *word)
{
    for (size_t i = 0; word && i < sizeof orders / sizeof *orders; i++)
        if (strcmp(orders[i].word, word) == 0) return (int)i;
    return -1;
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* Orders records of one name: neither READ1 nor READ2, READ1, READ2, both; within each of these:
   primary, supplementary, secondary, supplementary and secondary. */
static uint32_t name_flag_key(uint32_t flag)
{
    return (flag & (BAM_FREAD1 | BAM_FREAD2)) << 8 | (flag & BAM_FSECONDARY) << 3 |
           (flag & BAM_FSUPPLEMENTARY) >> 3;
}

/* In the functions that encode, `out` may be NULL; they then only return the size. */

/* Encodes a name in natural order. */
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
        size_t n_digits = (size_t)(at - first);     /* below 255, as names are shorter */
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

/* `order` is one of the two orders by name. */
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
    size_t n = bam_key_tag_encode(rules->tag, rec, out, SIZE_MAX);
    if (out) out += n;
    return n + (rules->below == SORT_COORDINATE ? encode_coordinate(rules, rec, out)
                                                : encode_name(rules, rules->below, rec, out));
}

static size_t encode_minhash(const struct sort_rules *rules, const uint8_t *rec, uint8_t *out)
{
    if (!minhash_is_tail(rec)) return encode_coordinate(rules, rec, out);
    if (!out) return MINHASH_KEY_BYTES;
    struct minhash_value value;
    minhash_recall(rec, &value);
    return minhash_key_encode(&value, rec, out);
}

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
    const char *problem;        /* not looked at: sort_key_bytes has accepted this record */
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
    const char *so = "unsorted", *go = NULL, *name = sort_order_name(rules->order);
    char sub_sort[64] = "";
    switch (rules->order) {
    case SORT_COORDINATE:
    case SORT_COORDINATE_LONG: so = "coordinate"; break;
    case SORT_NAME_NATURAL:
    case SORT_NAME_LEXICAL:
        so = "queryname";
        (void)snprintf(sub_sort, sizeof sub_sort, "%s", name);
        break;
    case SORT_TAG:
        (void)snprintf(sub_sort, sizeof sub_sort, "%s:%.2s:%s", so, rules->tag,
                       sort_order_name(rules->below));
        break;
    case SORT_TEMPLATE:
        (void)snprintf(sub_sort, sizeof sub_sort, "%s:%s", so, name);
        go = "query";
        break;
    case SORT_MINHASH:
        if (any_placed) so = "coordinate";
        (void)snprintf(sub_sort, sizeof sub_sort, "%s:%s", so, name);
        break;
    case SORT_SHUFFLE: break;
    }
    /* sam_hdr_update_hd fails when there is no @HD line to update. */
    if (sam_hdr_update_hd(header, "SO", so) < 0 &&
        sam_hdr_add_line(header, "HD", "VN", "1.6", "SO", so, NULL) < 0)
        return -1;
    const char *ss = *sub_sort ? sub_sort : NULL;
    return set_hd_tag(header, "GO", go) < 0 || set_hd_tag(header, "SS", ss) < 0 ? -1 : 0;
}
