/* bam_convert.c -- see bam_convert.h. */
#include "bam/bam_convert.h"

#include "bam/bam_long.h"
#include "util/byte_order.h"
#include "util/xalloc.h"

enum {
    MAX_FIELD_OPS = 0xffff,             /* operations that the CIGAR field can count */
    PLACEHOLDER_OPS = 2,
    MAX_OP_LENGTH = (1 << 28) - 1,      /* 28 bits of an operation are its length */
};

/* ---- to raw form ---- */

/* Returns the size of b as a raw record, without a long tag; 0 if it is too large. */
static size_t packed_bytes(const bam1_t *b)
{
    const bam1_core_t *c = &b->core;
    /* bam1_t pads the read name with NULs. */
    size_t size = BAM_RECORD_FIXED_BYTES + (size_t)b->l_data - c->l_extranul;
    if (c->n_cigar > MAX_FIELD_OPS) {
        if (bam_cigar2rlen((int)c->n_cigar, bam_get_cigar(b)) > MAX_OP_LENGTH) return 0;
        size += PLACEHOLDER_OPS * sizeof(uint32_t) + BAM_CG_TAG_BYTES;
    }
    return size <= INT32_MAX ? size : 0;
}

/* Writes the fields after the read name: the placeholder; sequence, qualities and tags; the CIGAR
   in a CG tag. */
static void put_long_cigar(const bam1_t *b, uint8_t *to)
{
    const bam1_core_t *c = &b->core;
    hts_pos_t ref_bases = bam_cigar2rlen((int)c->n_cigar, bam_get_cigar(b));
    const uint8_t *rest = bam_get_seq(b);
    to = put_u32(to, (uint32_t)c->l_qseq << BAM_CIGAR_SHIFT | BAM_CSOFT_CLIP);
    to = put_u32(to, (uint32_t)ref_bases << BAM_CIGAR_SHIFT | BAM_CREF_SKIP);
    to = copy_bytes(to, rest, (size_t)(b->data + b->l_data - rest));
    to = copy_bytes(to, "CGBI", 4);
    to = put_u32(to, c->n_cigar);
    (void)copy_bytes(to, bam_get_cigar(b), (size_t)c->n_cigar * sizeof(uint32_t));
}

/* Writes b, whose coordinates have 32 bits, as a record of n_bytes. */
static void pack(const bam1_t *b, size_t n_bytes, uint8_t *out)
{
    const bam1_core_t *c = &b->core;
    size_t name_bytes = (size_t)(c->l_qname - c->l_extranul);
    bool is_long = c->n_cigar > MAX_FIELD_OPS;
    uint8_t *to = put_u32(out, n_bytes - 4);
    to = put_u32(to, (uint32_t)c->tid);
    to = put_u32(to, (uint32_t)c->pos);
    to = put_u32(to, (uint32_t)c->bin << 16 | (uint32_t)c->qual << 8 | (uint32_t)name_bytes);
    to = put_u32(to, (uint32_t)c->flag << 16 | (is_long ? PLACEHOLDER_OPS : c->n_cigar));
    to = put_u32(to, (uint32_t)c->l_qseq);
    to = put_u32(to, (uint32_t)c->mtid);
    to = put_u32(to, (uint32_t)c->mpos);
    to = put_u32(to, (uint32_t)c->isize);
    to = copy_bytes(to, b->data, name_bytes);
    if (is_long)
        put_long_cigar(b, to);
    else
        (void)copy_bytes(to, b->data + c->l_qname, (size_t)b->l_data - c->l_qname);
}

static int64_t clamp_to_32(int64_t value)
{
    return value > INT32_MAX || value < INT32_MIN ? INT32_MAX : value;
}

const char *bam_record_put(const bam1_t *b, bool long_positions, uint8_t **buffer, size_t *room,
                           size_t at)
{
    bam1_t shorter = *b;        /* borrows the data of b */
    const bam1_core_t *c = &b->core;
    shorter.core.pos = clamp_to_32(c->pos);
    shorter.core.mpos = clamp_to_32(c->mpos);
    shorter.core.isize = clamp_to_32(c->isize);
    bool is_long = c->pos != shorter.core.pos || c->mpos != shorter.core.mpos ||
                   c->isize != shorter.core.isize;
    if (is_long && !long_positions)
        return "its POS, PNEXT or TLEN is beyond 2^31 - 1, and no reference is that long";
    size_t n = packed_bytes(&shorter), n_bytes = n + (is_long ? BAM_LONG_TAG_BYTES : 0);
    if (n == 0 || n_bytes > INT32_MAX) return "it or its CIGAR is too long for BAM";
    xgrow(buffer, room, at + n_bytes, (at + n_bytes) / 4, 1);
    pack(&shorter, n_bytes, *buffer + at);
    if (is_long) (void)bam_long_tag_put(*buffer + at + n, c->pos, c->mpos, c->isize);
    return NULL;
}

/* ---- from raw form ---- */

static void reserve_data(bam1_t *b, size_t n_bytes)
{
    if (b->m_data >= n_bytes) return;
    size_t room = n_bytes + n_bytes / 4 + 64;
    b->data = xrealloc(b->data, room);
    b->m_data = (uint32_t)room;
}

/* Sets all fixed fields except the bin, the lengths of name and CIGAR, and the padding. */
static void unpack_fixed(const uint8_t *rec, bam1_core_t *c)
{
    c->tid = bam_record_tid(rec);
    c->pos = bam_record_true_pos(rec);
    c->qual = rec[13];
    c->flag = (uint16_t)bam_record_flag(rec);
    c->l_qseq = bam_record_n_bases(rec);
    c->mtid = bam_record_mate_tid(rec);
    c->mpos = bam_record_true_mate_pos(rec);
    c->isize = bam_record_true_template_length(rec);
}

void bam_record_unpack(const uint8_t *rec, bam1_t *b)
{
    bam1_core_t *c = &b->core;
    size_t name_bytes = bam_record_name_bytes(rec), padding = (4 - name_bytes % 4) % 4;
    const uint8_t *seq = bam_record_seq(rec), *end = bam_record_end(rec);
    if (bam_record_is_long(rec)) end -= BAM_LONG_TAG_BYTES;

    /* If a CG tag holds the CIGAR, it lies from tag_start to tag_end and is not copied. */
    const uint8_t *tag_start = end, *tag_end = end;
    struct bam_aux cg;
    struct bam_cigar cigar = bam_record_find_cigar(rec, &cg);
    if (cg.type) {
        tag_start = cg.start;
        tag_end = cg.value + cg.value_bytes;
    }

    size_t cigar_bytes = 4 * cigar.n_ops;
    size_t before_bytes = (size_t)(tag_start - seq), after_bytes = (size_t)(end - tag_end);
    size_t data_bytes = name_bytes + padding + cigar_bytes + before_bytes + after_bytes;
    reserve_data(b, data_bytes);
    uint8_t *to = copy_bytes(b->data, bam_record_name(rec), name_bytes);
    memset(to, 0, padding);
    to = copy_bytes(to + padding, cigar.ops, cigar_bytes);
    to = copy_bytes(to, seq, before_bytes);
    (void)copy_bytes(to, tag_end, after_bytes);
    b->l_data = (int)data_bytes;
    unpack_fixed(rec, c);
    c->l_qname = (uint16_t)(name_bytes + padding);
    c->l_extranul = (uint8_t)padding;
    c->n_cigar = (uint32_t)cigar.n_ops;
    c->bin = (uint16_t)get_u16(rec + BAM_BIN_AT);
    if (c->n_cigar > 0) {       /* htslib does not trust a file's bin either */
        hts_pos_t ref_bases = bam_cigar2rlen((int)c->n_cigar, bam_get_cigar(b));
        if (c->flag & BAM_FUNMAP || ref_bases == 0) ref_bases = 1;
        c->bin = (uint16_t)hts_reg2bin(c->pos, c->pos + ref_bases, 14, 5);
    }
}
