/* bam_long.c -- see bam_long.h. */
#include "bam/bam_long.h"

#include "util/byte_order.h"
#include "util/xalloc.h"

#include <stdlib.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "rocksort moves BAM integers as they are in memory: it needs a little-endian machine"
#endif

/* ---- long CIGARs ---- */

struct bam_cigar bam_record_cigar(const uint8_t *rec, const struct bam_aux *cg)
{
    struct bam_cigar field = {bam_record_ops(rec), bam_record_n_ops(rec)};
    if (!cg || cg->type != 'B' || (cg->value[0] != 'I' && cg->value[0] != 'i')) return field;
    /* As in htslib: a CIGAR in a tag has no fewer operations than its placeholder, and fewer than
       2^29. */
    uint32_t n_ops = get_u32(cg->value + 1);
    if (n_ops < field.n_ops || n_ops >= 1u << 29 || !bam_record_has_placeholder(rec)) return field;
    return (struct bam_cigar){cg->value + 5, n_ops};
}

struct bam_cigar bam_record_find_cigar(const uint8_t *rec, struct bam_aux *cg)
{
    bool is_found = bam_record_has_placeholder(rec) && bam_aux_find(rec, "CG", cg) > 0;
    struct bam_cigar cigar = bam_record_cigar(rec, is_found ? cg : NULL);
    if (cigar.ops == bam_record_ops(rec)) cg->type = 0;
    return cigar;
}

struct bam_extent bam_cigar_extent(struct bam_cigar cigar)
{
    struct bam_extent extent = {.reference = bam_cigar_reference_bases(cigar)};
    for (int at_end = 0; at_end < 2; at_end++)
        for (size_t i = 0; i < cigar.n_ops; i++) {
            uint32_t op = get_u32(cigar.ops + 4 * (at_end ? cigar.n_ops - 1 - i : i));
            if (bam_cigar_op(op) == BAM_CSOFT_CLIP)
                extent.soft[at_end] += bam_cigar_oplen(op);
            else if (bam_cigar_op(op) == BAM_CHARD_CLIP)
                extent.hard[at_end] += bam_cigar_oplen(op);
            else
                break;
        }
    return extent;
}

/* Reads the length before an operation, and moves *at to the operation. Limits lengths to more than
   any reference has, so that even a text of 2 GiB cannot overflow. */
static int64_t take_length(const char **at)
{
    const int64_t most = INT64_C(1) << 33;
    int64_t length = 0;
    if (**at < '0' || **at > '9') return 1;
    for (; **at >= '0' && **at <= '9'; ++*at)
        if (length < most) length = 10 * length + (**at - '0');
    return length < most ? length : most;
}

struct bam_extent bam_cigar_text_extent(const char *text)
{
    struct bam_extent extent = {0};
    bool is_leading = true, has_bases = false;
    for (; *text && *text != '*'; text++) {
        int64_t length = take_length(&text);
        switch (*text) {
        case 'M': case 'D': case 'N': case '=': case 'X':
            extent.reference += length;
            has_bases = true;
            is_leading = false;
            break;
        case 'S':
            if (is_leading || has_bases) extent.soft[has_bases] += length;
            break;
        case 'H':
            if (is_leading || has_bases) extent.hard[has_bases] += length;
            break;
        case '\0': return extent;
        default: is_leading = false;
        }
    }
    return extent;
}

/* Implements bam_record_restore_cigar for a record with a CG tag: removes the placeholder and the
   tag, and moves the tag's operations before M, the bytes from the sequence to the CG tag. */
static size_t move_cigar(uint8_t *rec, const struct bam_aux *cg, struct bam_cigar cigar)
{
    uint8_t *end = rec + bam_record_bytes(rec), *field = rec + (bam_record_ops(rec) - rec);
    uint8_t *middle = rec + (bam_record_seq(rec) - rec), *tag = rec + (cg->start - rec);
    size_t ops_bytes = 4 * cigar.n_ops, middle_bytes = (size_t)(tag - middle);
    uint8_t *ops = xmemdup(cigar.ops, ops_bytes);
    uint8_t *after = tag + BAM_CG_TAG_BYTES + ops_bytes;
    memmove(field + ops_bytes, middle, middle_bytes);
    memcpy(field, ops, ops_bytes);
    memmove(field + ops_bytes + middle_bytes, after, (size_t)(end - after));
    free(ops);
    size_t n_bytes = (size_t)(field - rec) + ops_bytes + middle_bytes + (size_t)(end - after);
    (void)put_u32(rec, n_bytes - 4);
    rec[BAM_N_OPS_AT] = (uint8_t)cigar.n_ops;
    rec[BAM_N_OPS_AT + 1] = (uint8_t)(cigar.n_ops >> 8);
    return n_bytes;
}

size_t bam_record_restore_cigar(uint8_t *rec)
{
    struct bam_aux cg;
    size_t n_bytes = bam_record_bytes(rec);
    struct bam_cigar cigar = bam_record_find_cigar(rec, &cg);
    if (!cg.type || cigar.n_ops > UINT16_MAX) return n_bytes;
    return move_cigar(rec, &cg, cigar);
}

/* ---- long coordinates ---- */

/* The name is two bytes of value 1; valid names are letters and digits. The tag is an array of six
   32-bit numbers, which hold three 64-bit values. */
static const uint8_t tag_start[8] = {1, 1, 'B', 'I', 6, 0, 0, 0};

enum { LONG_POS, LONG_MATE_POS, LONG_TEMPLATE_LENGTH };     /* the values in the tag */

uint8_t *bam_long_tag_put(uint8_t *out, int64_t pos, int64_t mate_pos, int64_t template_length)
{
    const int64_t values[3] = {pos, mate_pos, template_length};
    memcpy(out, tag_start, sizeof tag_start);
    memcpy(out + sizeof tag_start, values, sizeof values);
    return out + BAM_LONG_TAG_BYTES;
}

/* Returns the values in the long tag, or NULL if the record has none. */
static const uint8_t *find_values(const uint8_t *rec)
{
    size_t n = bam_record_bytes(rec);
    if (n < BAM_RECORD_MIN_BYTES + BAM_LONG_TAG_BYTES) return NULL;
    const uint8_t *tag = rec + n - BAM_LONG_TAG_BYTES;
    if (memcmp(tag, tag_start, sizeof tag_start) != 0) return NULL;
    /* The same bytes may be qualities or the value of another tag, so all tags before are read. */
    const uint8_t *at = bam_record_tags(rec);
    struct bam_aux aux;
    while (at < tag)
        if (bam_aux_read(rec, &at, &aux) <= 0) return NULL;
    return at == tag ? tag + sizeof tag_start : NULL;
}

static int64_t value_at(const uint8_t *values, int which)
{
    int64_t value;
    memcpy(&value, values + 8 * which, sizeof value);
    return value;
}

bool bam_record_is_long(const uint8_t *rec)
{
    return find_values(rec) != NULL;
}

const uint8_t *bam_record_tags_end(const uint8_t *rec)
{
    const uint8_t *values = find_values(rec);
    return values ? values - sizeof tag_start : bam_record_end(rec);
}

/* SAM limits positions to 62 bits, so adding the length of a CIGAR cannot overflow. */
static bool is_sound_pos(int64_t pos)
{
    return pos >= -1 && pos < INT64_C(1) << 62;
}

bool bam_record_long_is_sound(const uint8_t *rec)
{
    const uint8_t *values = find_values(rec);
    return !values || (is_sound_pos(value_at(values, LONG_POS)) &&
                       is_sound_pos(value_at(values, LONG_MATE_POS)));
}

/* Returns the value of a 32-bit field, or that in the long tag if the field refers to it. */
static int64_t true_value(const uint8_t *rec, int32_t field, int which)
{
    const uint8_t *values = field == INT32_MAX ? find_values(rec) : NULL;
    return values ? value_at(values, which) : field;
}

int64_t bam_record_true_pos(const uint8_t *rec)
{
    return true_value(rec, bam_record_pos(rec), LONG_POS);
}

int64_t bam_record_true_mate_pos(const uint8_t *rec)
{
    return true_value(rec, bam_record_mate_pos(rec), LONG_MATE_POS);
}

int64_t bam_record_true_template_length(const uint8_t *rec)
{
    return true_value(rec, bam_record_template_length(rec), LONG_TEMPLATE_LENGTH);
}

int32_t bam_header_long_reference(const sam_hdr_t *header)
{
    int n_refs = sam_hdr_nref(header);
    for (int i = 0; i < n_refs; i++)
        if (sam_hdr_tid2len(header, i) > INT32_MAX) return i;
    return -1;
}
