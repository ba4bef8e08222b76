/* draft.c -- see draft.h. */
#include "fixmate/draft.h"

#include "bam/read_score.h"
#include "util/byte_order.h"
#include "util/decimal.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    OP_TEXT_BYTES = 10,         /* nine digits for 28 bits, and a letter */
    NUMBER_TEXT_BYTES = 21,
};

static const char names[DRAFT_N_TAGS][2] = {"MN", "MQ", "MC", "ct", "ms", ""};

/* Which of the tags this is, or -1. */
static int which_tag(const uint8_t *name)
{
    switch (name[0] << 8 | name[1]) {
    case 'M' << 8 | 'N': return DRAFT_MN;
    case 'M' << 8 | 'Q': return DRAFT_MQ;
    case 'M' << 8 | 'C': return DRAFT_MC;
    case 'c' << 8 | 't': return DRAFT_CT;
    case 'm' << 8 | 's': return DRAFT_MS;
    default: return -1;
    }
}

static bool is_alignment_tag(const uint8_t *name)
{
    static const char of_alignments[4][2] = {"NM", "MD", "CG", "SM"};
    for (int i = 0; i < 4; i++)
        if (memcmp(name, of_alignments[i], 2) == 0) return true;
    return false;
}

void draft_open(struct draft *draft, const uint8_t *rec)
{
    /* Field by field: clearing all of them first took a third of the time. */
    draft->rec = rec;
    draft->flag = bam_record_flag(rec);
    draft->mapq = rec[BAM_MAPQ_AT];
    draft->tid = bam_record_tid(rec);
    draft->mate_tid = bam_record_mate_tid(rec);
    draft->pos = bam_record_true_pos(rec);
    draft->mate_pos = bam_record_true_mate_pos(rec);
    draft->template_length = bam_record_true_template_length(rec);
    draft->without_alignment_tags = false;
    draft->tags = bam_record_tags(rec);
    memset(draft->n_removed, 0, sizeof draft->n_removed);
    draft->n_appended = 0;
    draft->own_ops = draft->own_tags = NULL;
    const uint8_t *end = bam_record_end(rec);
    if (bam_record_is_long(rec)) end -= BAM_LONG_TAG_BYTES;
    draft->tags_bytes = (size_t)(end - draft->tags);
    struct bam_aux cg;
    draft->cigar = bam_record_find_cigar(rec, &cg);
    draft->long_cigar = cg.type ? cg.start : NULL;
    draft->cigar_bases = bam_cigar_reference_bases(draft->cigar);
}

void draft_close(struct draft *draft)
{
    free(draft->own_ops);
    free(draft->own_tags);
}

void draft_take_ops(struct draft *draft, uint8_t *ops, size_t n_ops)
{
    free(draft->own_ops);
    draft->own_ops = ops;
    draft->cigar = (struct bam_cigar){ops, n_ops};
    draft->cigar_bases = bam_cigar_reference_bases(draft->cigar);
}

void draft_take_tags(struct draft *draft, uint8_t *tags, size_t tags_bytes)
{
    free(draft->own_tags);
    draft->tags = draft->own_tags = tags;
    draft->tags_bytes = tags_bytes;
    if (!draft->long_cigar) return;
    const uint8_t *at = tags, *end = tags + tags_bytes;
    struct bam_aux aux = {0};
    while (bam_aux_next_before(end, &at, &aux) > 0 && memcmp(aux.start, "CG", 2) != 0) continue;
    draft->long_cigar = aux.start;
}

/* ---- tags of the mate ---- */

void draft_remove_tag(struct draft *draft, enum draft_tag tag)
{
    unsigned n = 0;
    draft->n_removed[tag]++;
    for (unsigned i = 0; i < draft->n_appended; i++)
        if (draft->appended[i] != tag) draft->appended[n++] = draft->appended[i];
    draft->n_appended = n;
}

void draft_set_tag(struct draft *draft, enum draft_tag tag, const struct draft *mate)
{
    draft_remove_tag(draft, tag);
    draft->appended[draft->n_appended++] = tag;
    draft->from[tag] = mate;
}

void draft_copy_tag(struct draft *draft, const struct bam_aux *tag, const struct draft *mate)
{
    if (which_tag(tag->start) >= 0) return;
    draft->copied = tag->start;
    draft->copied_bytes = (size_t)(tag->value - tag->start) + tag->value_bytes;
    draft_remove_tag(draft, DRAFT_COPY);
    memmove(&draft->appended[1], &draft->appended[0], draft->n_appended * sizeof(enum draft_tag));
    draft->appended[0] = DRAFT_COPY;
    draft->n_appended++;
    draft->from[DRAFT_COPY] = mate;
}

/* ---- queries ---- */

bool draft_has_damaged_tags(const struct draft *draft)
{
    const uint8_t *at = draft->tags, *end = at + draft->tags_bytes;
    struct bam_aux aux;
    int r;
    while ((r = bam_aux_next_before(end, &at, &aux)) > 0) continue;
    return r < 0;
}

int64_t draft_end(const struct draft *draft)
{
    int64_t length = draft_is_mapped(draft) ? draft->cigar_bases : 0;
    return draft->pos + (length > 0 ? length : 1);
}

/* ---- writing ---- */

/* Writes the operations as SAM does. */
static uint8_t *put_ops(uint8_t *out, struct bam_cigar cigar)
{
    for (size_t i = 0; i < cigar.n_ops; i++) {
        uint32_t op = get_u32(cigar.ops + 4 * i), n = bam_cigar_oplen(op);
        out = put_decimal(out, n);
        *out++ = (uint8_t)bam_cigar_opchr(op);
    }
    return out;
}

/* Writes segment (read 1 or 2) and strand: 1F to 2R. */
static uint8_t *put_segment(uint8_t *out, const struct draft *draft)
{
    *out++ = draft->flag & BAM_FREAD1 ? '1' : '2';
    *out++ = draft->flag & BAM_FREVERSE ? 'R' : 'F';
    return put_ops(out, draft->cigar);
}

/* Writes both alignments, and between them the reference bases that neither covers. */
static uint8_t *put_template_cigar(uint8_t *out, const struct draft *left,
                                   const struct draft *right)
{
    out = put_segment(out, left);
    long long n_between = right->pos - draft_end(left);
    out += snprintf((char *)out, NUMBER_TEXT_BYTES + 2, "%lldT", n_between);
    return put_segment(out, right);
}

static uint8_t *put_tag(uint8_t *out, const struct draft *draft, enum draft_tag tag)
{
    const struct draft *mate = draft->from[tag];
    if (tag == DRAFT_COPY) return copy_bytes(out, draft->copied, draft->copied_bytes);
    *out++ = (uint8_t)names[tag][0];
    *out++ = (uint8_t)names[tag][1];
    if (tag == DRAFT_MN)
        return bam_aux_put_count(out, (uint32_t)bam_record_n_bases(draft->rec), 0);
    if (tag == DRAFT_MQ || tag == DRAFT_MS) {
        *out++ = 'i';
        return put_u32(out, tag == DRAFT_MQ ? mate->mapq : read_score(mate->rec));
    }
    *out++ = 'Z';
    if (tag == DRAFT_CT)
        out = put_template_cigar(out, draft, mate);
    else if (mate->cigar.n_ops > 0)
        out = put_ops(out, mate->cigar);
    else
        *out++ = '*';
    *out++ = 0;
    return out;
}

/* Copies what lies between the tags that are left out, and what follows a damaged tag. */
static uint8_t *put_kept_tags(uint8_t *out, const struct draft *draft)
{
    unsigned n_left[DRAFT_N_TAGS];
    memcpy(n_left, draft->n_removed, sizeof n_left);
    const uint8_t *from = draft->tags, *at = from, *end = at + draft->tags_bytes;
    struct bam_aux aux;
    while (bam_aux_next_before(end, &at, &aux) > 0) {
        int tag = which_tag(aux.start);
        bool is_replaced = tag >= 0 && n_left[tag] > 0;
        if (is_replaced) n_left[tag]--;
        if (!is_replaced && aux.start != draft->long_cigar &&
            !(draft->without_alignment_tags && is_alignment_tag(aux.start)))
            continue;
        out = copy_bytes(out, from, (size_t)(aux.start - from));
        from = at;
    }
    return copy_bytes(out, from, (size_t)(end - from));
}

size_t draft_bytes_at_most(const struct draft *draft)
{
    size_t n_bytes = bam_record_bytes(draft->rec) + draft->tags_bytes + 4 * draft->cigar.n_ops +
                     BAM_CG_TAG_BYTES + 8 + BAM_LONG_TAG_BYTES;
    for (unsigned i = 0; i < draft->n_appended; i++) {
        enum draft_tag tag = draft->appended[i];
        n_bytes += 8;
        if (tag == DRAFT_COPY) n_bytes += draft->copied_bytes;
        if (tag == DRAFT_MN || tag == DRAFT_COPY) continue;
        n_bytes += OP_TEXT_BYTES * draft->from[tag]->cigar.n_ops;
        if (tag == DRAFT_CT) n_bytes += OP_TEXT_BYTES * draft->cigar.n_ops + NUMBER_TEXT_BYTES + 8;
    }
    return n_bytes;
}

/* True if the CIGAR is too long for its field, which then holds a placeholder; CG has the CIGAR. */
static bool has_long_cigar(const struct draft *draft)
{
    return draft->cigar.n_ops > UINT16_MAX;
}

static uint8_t *put_cigar(uint8_t *out, const struct draft *draft)
{
    if (!has_long_cigar(draft)) return copy_bytes(out, draft->cigar.ops, 4 * draft->cigar.n_ops);
    uint64_t n_bases = (uint64_t)bam_record_n_bases(draft->rec);
    out = put_u32(out, bam_cigar_gen(n_bases, BAM_CSOFT_CLIP));
    return put_u32(out, bam_cigar_gen((uint64_t)draft->cigar_bases, BAM_CREF_SKIP));
}

static bool is_long(int64_t value)
{
    return value > INT32_MAX || value < INT32_MIN;
}

/* Appends the tags of long CIGARs and positions (bam_long.h), which come last. */
static uint8_t *put_long_tags(uint8_t *out, const struct draft *draft)
{
    if (has_long_cigar(draft)) {
        memcpy(out, "CGBI", 4);
        out = put_u32(out + 4, draft->cigar.n_ops);
        out = copy_bytes(out, draft->cigar.ops, 4 * draft->cigar.n_ops);
    }
    if (is_long(draft->pos) || is_long(draft->mate_pos) || is_long(draft->template_length))
        out = bam_long_tag_put(out, draft->pos, draft->mate_pos, draft->template_length);
    return out;
}

static uint64_t field_of(int64_t value)
{
    return (uint32_t)(is_long(value) ? INT32_MAX : (int32_t)value);
}

/* Stores the bin. As in htslib, a record without a CIGAR keeps the bin that it has. */
static void put_bin(uint8_t *out, const struct draft *draft)
{
    if (draft->cigar.n_ops == 0) return;
    int bin = hts_reg2bin(draft->pos, draft_end(draft), 14, 5);
    out[BAM_BIN_AT] = (uint8_t)bin;
    out[BAM_BIN_AT + 1] = (uint8_t)(bin >> 8);
}

/* Overwrites the fields of fixed size, except the size of the record. */
static void put_fields(uint8_t *out, const struct draft *draft)
{
    size_t n_ops = has_long_cigar(draft) ? 2 : draft->cigar.n_ops;
    put_bin(out, draft);
    (void)put_u32(out + BAM_TID_AT, (uint32_t)draft->tid);
    (void)put_u32(out + BAM_POS_AT, field_of(draft->pos));
    out[BAM_MAPQ_AT] = draft->mapq;
    (void)put_u32(out + BAM_N_OPS_AT, n_ops | (uint64_t)draft->flag << 16);
    (void)put_u32(out + BAM_MATE_TID_AT, (uint32_t)draft->mate_tid);
    (void)put_u32(out + BAM_MATE_POS_AT, field_of(draft->mate_pos));
    (void)put_u32(out + BAM_TEMPLATE_LENGTH_AT, field_of(draft->template_length));
}

uint8_t *draft_write(const struct draft *draft, uint8_t *out)
{
    const uint8_t *rec = draft->rec, *ops = bam_record_ops(rec);
    size_t before_ops = (size_t)(ops - rec), all_before_tags = (size_t)(bam_record_tags(rec) - rec);
    uint8_t *start = out;
    if (draft->cigar.ops == ops && draft->cigar.n_ops == bam_record_n_ops(rec)) {
        out = copy_bytes(out, rec, all_before_tags);
    } else {
        out = put_cigar(copy_bytes(out, rec, before_ops), draft);
        size_t before_seq = (size_t)(bam_record_seq(rec) - rec);
        out = copy_bytes(out, rec + before_seq, all_before_tags - before_seq);
    }
    put_fields(start, draft);
    out = put_kept_tags(out, draft);
    for (unsigned i = 0; i < draft->n_appended; i++) out = put_tag(out, draft, draft->appended[i]);
    out = put_long_tags(out, draft);
    (void)put_u32(start, (uint64_t)(out - start) - 4);
    return out;
}
