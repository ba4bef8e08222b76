/*
 * bam_record.c -- see bam_record.h.
 *
 * The subtle point is the CIGAR of more than 65,535 operations, whose count does not fit its
 * 16-bit field. The SAM specification (section 4.2.2) stores "<l_seq>S<reference length>N" in its
 * place and the real operations in a tag CG:B,I. bam1_t in memory always has the real CIGAR.
 */
#include "bam/bam_record.h"

#include "bam/bam_aux.h"
#include "util/byte_order.h"

#include <stdlib.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "rocksort moves BAM integers as they are in memory: it needs a little-endian machine"
#endif

enum {
    CG_TAG_BYTES = 8,                   /* C G B I and a 32-bit count */
    LONG_TAG_BYTES = 8 + 3 * 8,         /* the same, and position, mate's position, length */
    MAX_CIGAR_LENGTH = 1 << 28,         /* what follows the operation code has 28 bits */
};

/* ---- coordinates beyond 2^31 - 1 ---- */

/* No file has a tag of this name: letters are printable there. Six 32-bit numbers follow. */
static const uint8_t long_tag[8] = {1, 1, 'B', 'I', 6, 0, 0, 0};

enum { LONG_POS, LONG_MATE_POS, LONG_LENGTH };  /* what the tag holds */

/* The values at the end of a record whose fields agree with its size, or NULL. */
static const uint8_t *find_long_values(const uint8_t *rec)
{
    size_t n = bam_record_bytes(rec);
    if (n < BAM_RECORD_MIN_BYTES + LONG_TAG_BYTES) return NULL;
    const uint8_t *tag = rec + n - LONG_TAG_BYTES, *at = bam_record_tags(rec);
    if (memcmp(tag, long_tag, sizeof long_tag) != 0) return NULL;
    /* The same bytes may be qualities or stand in a tag of the file's. */
    struct bam_aux aux;
    while (at < tag)
        if (bam_aux_next(rec, &at, &aux) <= 0) return NULL;
    return at == tag ? tag + sizeof long_tag : NULL;
}

bool bam_record_is_long(const uint8_t *rec)
{
    return find_long_values(rec) != NULL;
}

/* SAM has positions of 62 bits: sums with lengths of CIGARs do not overflow. */
static bool long_values_are_sound(const uint8_t *values)
{
    int64_t pos, mate_pos;
    memcpy(&pos, values + 8 * LONG_POS, sizeof pos);
    memcpy(&mate_pos, values + 8 * LONG_MATE_POS, sizeof mate_pos);
    return pos >= -1 && pos < INT64_C(1) << 62 && mate_pos >= -1 && mate_pos < INT64_C(1) << 62;
}

/* The value of a 32-bit field, which the tag has if the field says so. */
static int64_t true_value(const uint8_t *rec, size_t field, int which)
{
    int32_t value = (int32_t)bam_record_u32(rec + field);
    const uint8_t *values = value == INT32_MAX ? find_long_values(rec) : NULL;
    if (!values) return value;
    int64_t long_value;
    memcpy(&long_value, values + 8 * which, sizeof long_value);
    return long_value;
}

int64_t bam_record_true_pos(const uint8_t *rec)
{
    return true_value(rec, 8, LONG_POS);
}

int64_t bam_record_true_mate_pos(const uint8_t *rec)
{
    return true_value(rec, 28, LONG_MATE_POS);
}

/* ---- checking ---- */

/* Read bases that the operations of a CIGAR cover. */
static uint64_t cigar_query_length(const uint8_t *cigar, size_t n_bytes)
{
    uint64_t length = 0;
    for (const uint8_t *at = cigar; at < cigar + n_bytes; at += 4) {
        uint32_t op = bam_record_u32(at);
        if (bam_cigar_type(bam_cigar_op(op)) & 1) length += bam_cigar_oplen(op);
    }
    return length;
}

/*
 * Compares the CIGAR with the sequence of a mapped read, in a record that has a CIGAR and whose
 * fields agree with its size. As htslib does, where the CIGAR only holds the place of a long one,
 * that one is looked for, whatever the flags and the sequence.
 */
static const char *check_cigar(const uint8_t *rec, uint32_t l_seq)
{
    const uint8_t *cigar = rec + BAM_RECORD_FIXED_BYTES + bam_record_name_bytes(rec);
    size_t n_ops = bam_record_u16(rec + 16);
    uint32_t first = bam_record_u32(cigar);
    if (bam_cigar_op(first) == BAM_CSOFT_CLIP && bam_cigar_oplen(first) == l_seq &&
        bam_record_tid(rec) >= 0 && bam_record_pos(rec) >= 0) {
        struct bam_aux cg;
        int r = bam_aux_find(rec, "CG", &cg);
        if (r < 0) return "its tags are damaged";
        bool holds_cigar = r > 0 && cg.type == 'B' && (cg.value[0] == 'I' || cg.value[0] == 'i');
        uint32_t n_long = holds_cigar ? bam_record_u32(cg.value + 1) : 0;
        if (n_long >= n_ops && n_long < 1u << 29) {
            cigar = cg.value + 5;
            n_ops = n_long;
        }
    }
    if (l_seq == 0 || bam_record_flag(rec) & BAM_FUNMAP) return NULL;
    return cigar_query_length(cigar, 4 * n_ops) == l_seq
               ? NULL : "its CIGAR and its sequence differ in length";
}

const char *bam_record_check(const uint8_t *rec, int32_t n_refs)
{
    uint64_t size = bam_record_bytes(rec);
    if (size < BAM_RECORD_FIXED_BYTES) return "its size is below 32 bytes";
    int32_t tid = bam_record_tid(rec), mate_tid = (int32_t)bam_record_u32(rec + 24);
    if (tid < -1 || tid >= n_refs) return "its reference is not in the header";
    if (mate_tid < -1 || mate_tid >= n_refs) return "its mate's reference is not in the header";
    if (bam_record_pos(rec) < -1) return "its position is negative";
    uint64_t name_bytes = bam_record_name_bytes(rec);
    uint64_t cigar_bytes = 4 * (uint64_t)bam_record_u16(rec + 16);
    int32_t l_seq = (int32_t)bam_record_u32(rec + 20);
    if (name_bytes < 1) return "it has no read name";
    if (l_seq < 0) return "its sequence length is negative";
    uint64_t seq_bytes = ((uint64_t)l_seq + 1) / 2 + (uint64_t)l_seq;
    if (BAM_RECORD_FIXED_BYTES + name_bytes + cigar_bytes + seq_bytes > size)
        return "its fields are longer than the record";
    if (rec[BAM_RECORD_FIXED_BYTES + name_bytes - 1] != 0) return "its read name has no end";
    if (cigar_bytes > 0) {
        const char *problem = check_cigar(rec, (uint32_t)l_seq);
        if (problem) return problem;
    }
    const uint8_t *long_values = find_long_values(rec);
    if (long_values && !long_values_are_sound(long_values)) return "its positions are impossible";
    return NULL;
}

/* ---- to raw form ---- */

/* The record's data without the padding that bam1_t has behind the read name. */
static size_t unpadded_data_bytes(const bam1_t *b)
{
    return (size_t)b->l_data - b->core.l_extranul;
}

size_t bam_record_packed_bytes(const bam1_t *b)
{
    const bam1_core_t *c = &b->core;
    if (c->pos > INT32_MAX || c->mpos > INT32_MAX || c->isize > INT32_MAX || c->isize < INT32_MIN)
        return 0;
    size_t size = BAM_RECORD_FIXED_BYTES + unpadded_data_bytes(b);
    if (c->n_cigar > 0xffff) {
        if (bam_cigar2rlen((int)c->n_cigar, bam_get_cigar(b)) >= MAX_CIGAR_LENGTH) return 0;
        size += 2 * sizeof(uint32_t) + CG_TAG_BYTES;
    }
    return size <= INT32_MAX ? size : 0;
}

void bam_record_pack(const bam1_t *b, uint8_t *out)
{
    const bam1_core_t *c = &b->core;
    size_t name_bytes = (size_t)(c->l_qname - c->l_extranul);
    size_t cigar_bytes = (size_t)c->n_cigar * sizeof(uint32_t);
    bool long_cigar = c->n_cigar > 0xffff;
    put_u32(out, (uint32_t)(bam_record_packed_bytes(b) - 4));
    put_u32(out + 4, (uint32_t)c->tid);
    put_u32(out + 8, (uint32_t)c->pos);
    put_u32(out + 12, (uint32_t)c->bin << 16 | (uint32_t)c->qual << 8 | (uint32_t)name_bytes);
    put_u32(out + 16, (uint32_t)c->flag << 16 | (long_cigar ? 2 : c->n_cigar));
    put_u32(out + 20, (uint32_t)c->l_qseq);
    put_u32(out + 24, (uint32_t)c->mtid);
    put_u32(out + 28, (uint32_t)c->mpos);
    put_u32(out + 32, (uint32_t)c->isize);
    uint8_t *to = out + BAM_RECORD_FIXED_BYTES;
    memcpy(to, b->data, name_bytes);
    to += name_bytes;
    const uint8_t *cigar = b->data + c->l_qname, *rest = cigar + cigar_bytes;
    size_t rest_bytes = (size_t)(b->data + b->l_data - rest);
    if (long_cigar) {
        hts_pos_t ref_bytes = bam_cigar2rlen((int)c->n_cigar, bam_get_cigar(b));
        put_u32(to, (uint32_t)c->l_qseq << BAM_CIGAR_SHIFT | BAM_CSOFT_CLIP);
        put_u32(to + 4, (uint32_t)ref_bytes << BAM_CIGAR_SHIFT | BAM_CREF_SKIP);
        to += 8;
        memcpy(to, rest, rest_bytes);
        to += rest_bytes;
        memcpy(to, "CGBI", 4);
        put_u32(to + 4, c->n_cigar);
        to += CG_TAG_BYTES;
        memcpy(to, cigar, cigar_bytes);
    } else {
        memcpy(to, cigar, cigar_bytes + rest_bytes);
    }
}

/* ---- to raw form, with coordinates beyond 2^31 - 1 ---- */

int32_t bam_header_long_reference(const sam_hdr_t *header)
{
    int n_refs = sam_hdr_nref(header);
    for (int i = 0; i < n_refs; i++)
        if (sam_hdr_tid2len(header, i) > INT32_MAX) return i;
    return -1;
}

static int64_t clamp_to_32(int64_t value)
{
    return value > INT32_MAX || value < INT32_MIN ? INT32_MAX : value;
}

/* b with what does not fit replaced by INT32_MAX; borrows b's data. */
static bam1_t shorten(const bam1_t *b)
{
    bam1_t shorter = *b;
    shorter.core.pos = clamp_to_32(b->core.pos);
    shorter.core.mpos = clamp_to_32(b->core.mpos);
    shorter.core.isize = clamp_to_32(b->core.isize);
    return shorter;
}

size_t bam_record_long_bytes(const bam1_t *b)
{
    const bam1_core_t *c = &b->core;
    bam1_t shorter = shorten(b);
    const bam1_core_t *s = &shorter.core;
    if (c->pos == s->pos && c->mpos == s->mpos && c->isize == s->isize) return 0;
    size_t n = bam_record_packed_bytes(&shorter);
    return n > 0 && n <= INT32_MAX - LONG_TAG_BYTES ? n + LONG_TAG_BYTES : 0;
}

void bam_record_pack_long(const bam1_t *b, uint8_t *out)
{
    bam1_t shorter = shorten(b);
    size_t n = bam_record_packed_bytes(&shorter);
    int64_t values[3] = {b->core.pos, b->core.mpos, b->core.isize};
    bam_record_pack(&shorter, out);
    put_u32(out, (uint32_t)(n + LONG_TAG_BYTES - 4));
    memcpy(out + n, long_tag, sizeof long_tag);
    memcpy(out + n + sizeof long_tag, values, sizeof values);
}

/* ---- from raw form ---- */

/* Grows b->data to hold size bytes. */
static int reserve_data(bam1_t *b, size_t size)
{
    if (size > INT32_MAX) return -1;
    if (b->m_data >= size) return 0;
    size_t want = size + size / 4 + 64;
    uint8_t *data = realloc(b->data, want);
    if (!data) return -1;
    b->data = data;
    b->m_data = (uint32_t)want;
    return 0;
}

/*
 * Returns the CG tag with the real CIGAR of a record whose CIGAR field is the placeholder, or NULL.
 * As htslib does, only a mapped read with a position is looked at.
 */
static uint8_t *find_long_cigar(const bam1_t *b)
{
    const bam1_core_t *c = &b->core;
    if (c->n_cigar == 0 || c->tid < 0 || c->pos < 0) return NULL;
    uint32_t first = bam_get_cigar(b)[0];
    if (bam_cigar_op(first) != BAM_CSOFT_CLIP || bam_cigar_oplen(first) != (uint32_t)c->l_qseq)
        return NULL;
    uint8_t *tag = bam_aux_get(b, "CG");
    if (!tag || tag[0] != 'B' || (tag[1] != 'I' && tag[1] != 'i')) return NULL;
    uint32_t n = bam_record_u32(tag + 2);
    if (n < c->n_cigar || n >= 1u << 29) return NULL;
    return tag;
}

/* Moves the operations of the CG tag into the CIGAR field and deletes the tag. */
static int restore_long_cigar(bam1_t *b, uint8_t *tag)
{
    bam1_core_t *c = &b->core;
    uint32_t n = bam_record_u32(tag + 2);
    size_t ops_bytes = (size_t)n * sizeof(uint32_t), old_bytes = (size_t)c->n_cigar * 4;
    size_t tag_at = (size_t)(tag - 2 - b->data), tag_end = tag_at + CG_TAG_BYTES + ops_bytes;
    if (tag_end > (size_t)b->l_data) return 0;
    size_t cigar_at = c->l_qname;
    /* The new data: name, operations, sequence to tag, behind the tag; built beside. */
    size_t new_bytes = (size_t)b->l_data - CG_TAG_BYTES - old_bytes;
    uint8_t *data = malloc(new_bytes + 4);
    if (!data) return -1;
    uint8_t *to = data;
    memcpy(to, b->data, cigar_at);
    to += cigar_at;
    memcpy(to, b->data + tag_at + CG_TAG_BYTES, ops_bytes);
    to += ops_bytes;
    memcpy(to, b->data + cigar_at + old_bytes, tag_at - cigar_at - old_bytes);
    to += tag_at - cigar_at - old_bytes;
    memcpy(to, b->data + tag_end, (size_t)b->l_data - tag_end);
    free(b->data);
    b->data = data;
    b->m_data = (uint32_t)new_bytes + 4;
    b->l_data = (int)new_bytes;
    c->n_cigar = n;
    return 0;
}

int bam_record_unpack(const uint8_t *rec, bam1_t *b)
{
    bam1_core_t *c = &b->core;
    size_t name_bytes = bam_record_name_bytes(rec);
    size_t padding = (4 - name_bytes % 4) % 4;
    size_t data_bytes = bam_record_bytes(rec) - BAM_RECORD_FIXED_BYTES;
    if (find_long_values(rec)) data_bytes -= LONG_TAG_BYTES;
    if (reserve_data(b, data_bytes + padding) < 0) return -1;
    c->tid = bam_record_tid(rec);
    c->pos = bam_record_true_pos(rec);
    c->qual = rec[13];
    c->bin = (uint16_t)bam_record_u16(rec + 14);
    c->n_cigar = bam_record_u16(rec + 16);
    c->flag = (uint16_t)bam_record_flag(rec);
    c->l_qseq = (int32_t)bam_record_u32(rec + 20);
    c->mtid = (int32_t)bam_record_u32(rec + 24);
    c->mpos = bam_record_true_mate_pos(rec);
    c->isize = true_value(rec, 32, LONG_LENGTH);
    c->l_qname = (uint16_t)(name_bytes + padding);
    c->l_extranul = (uint8_t)padding;
    memcpy(b->data, bam_record_name(rec), name_bytes);
    memset(b->data + name_bytes, 0, padding);
    memcpy(b->data + name_bytes + padding, bam_record_name(rec) + name_bytes,
           data_bytes - name_bytes);
    b->l_data = (int)(data_bytes + padding);
    uint8_t *long_cigar = find_long_cigar(b);
    if (long_cigar && restore_long_cigar(b, long_cigar) < 0) return -1;
    if (c->n_cigar > 0) {       /* htslib does not trust a file's bin either */
        hts_pos_t ref_bytes = bam_cigar2rlen((int)c->n_cigar, bam_get_cigar(b));
        if (c->flag & BAM_FUNMAP || ref_bytes == 0) ref_bytes = 1;
        c->bin = (uint16_t)hts_reg2bin(c->pos, c->pos + ref_bytes, 14, 5);
    }
    return 0;
}
