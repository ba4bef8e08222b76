/* sanitize.c -- see sanitize.h. */
#include "fixmate/sanitize.h"

#include "util/byte_order.h"
#include "util/xalloc.h"

#include <string.h>

enum { MAX_OP_LENGTH = (1 << 28) - 1 };

int sanitize_parse(const char *text)
{
    static const struct {
        const char *word;
        bool replaces;          /* it overrides earlier words */
        int flags;
    } words[] = {
        {"all", true, SANITIZE_ALL},
        {"*", true, SANITIZE_ALL},
        {"on", true, SANITIZE_ON},
        {"off", true, 0},
        {"none", true, 0},
        {"pos", false, SANITIZE_POS},
        {"mqual", false, SANITIZE_MQUAL},
        {"unmap", false, SANITIZE_UNMAP},
        {"cigar", false, SANITIZE_CIGAR},
        {"cigdup", false, SANITIZE_CIGDUP},
        {"cigarx", false, SANITIZE_CIGARX | SANITIZE_CIGDUP},
        {"aux", false, SANITIZE_AUX},
    };
    enum { N_WORDS = sizeof words / sizeof *words };
    int flags = 0;
    for (size_t n; *text; text += n + (text[n] == ',')) {
        size_t i = 0;
        n = strcspn(text, ",");
        if (n == 0) continue;
        while (i < N_WORDS && (strncmp(words[i].word, text, n) != 0 || words[i].word[n])) i++;
        if (i == N_WORDS) return -1;
        flags = words[i].flags | (words[i].replaces ? 0 : flags);
    }
    return flags;
}

static uint32_t op_at(const struct draft *draft, size_t i)
{
    return get_u32(draft->cigar.ops + 4 * i);
}

/* Allocates a CIGAR that replaces the draft's and has at most one more operation. */
static uint8_t *new_ops(const struct draft *draft)
{
    return xmalloc(4 * (draft->cigar.n_ops + 1));
}

/* Bases of the read that an operation covers. */
static uint64_t query_bases(uint32_t op)
{
    return bam_cigar_type(bam_cigar_op(op)) & 1 ? bam_cigar_oplen(op) : 0;
}

/*
 * Trims the CIGAR of a mapped read at the end of its reference: later bases become a soft clip, and
 * hard clips stay. If the read begins after the reference, or an operation begins exactly at its
 * end, the read becomes unmapped, as in samtools 1.24. (1.24 also counts deletions as clipped
 * bases; then CIGAR and sequence differ in length, and no program can read the record.)
 */
static void trim(struct draft *draft, int64_t end)
{
    int64_t pos = draft->pos;
    size_t n_kept = 0;
    uint32_t op = 0;
    for (; n_kept < draft->cigar.n_ops; n_kept++) {
        op = op_at(draft, n_kept);
        if (!(bam_cigar_type(bam_cigar_op(op)) & 2)) continue;
        if (pos + bam_cigar_oplen(op) > end) break;
        pos += bam_cigar_oplen(op);
    }
    if (n_kept == draft->cigar.n_ops) return;
    if (pos >= end) {
        draft->flag |= BAM_FUNMAP;
        draft->flag &= ~(uint32_t)BAM_FPROPER_PAIR;
        return;
    }
    uint8_t *ops = new_ops(draft), *out = ops + 4 * n_kept;
    memcpy(ops, draft->cigar.ops, 4 * n_kept);
    uint32_t inside = (uint32_t)(end - pos);
    out = put_u32(out, bam_cigar_gen(inside, bam_cigar_op(op)));
    uint64_t n_clipped = query_bases(op) > 0 ? query_bases(op) - inside : 0;
    for (size_t i = n_kept + 1; i < draft->cigar.n_ops; i++)
        n_clipped += query_bases(op_at(draft, i));
    if (n_clipped > 0) out = put_u32(out, bam_cigar_gen(n_clipped, BAM_CSOFT_CLIP));
    for (size_t i = n_kept + 1; i < draft->cigar.n_ops; i++)
        if (bam_cigar_op(op_at(draft, i)) == BAM_CHARD_CLIP) out = put_u32(out, op_at(draft, i));
    draft_take_ops(draft, ops, (size_t)(out - ops) / 4);
}

/* Unmaps a mapped read that is not on its reference, or trims it. */
static void place_on_reference(struct draft *draft, unsigned flags, int64_t reference_bases)
{
    bool may_unmap = flags & SANITIZE_UNMAP;
    if (may_unmap && (draft->pos < 0 || draft->pos >= reference_bases)) {
        bool is_behind = draft->pos >= 0;
        draft->flag |= BAM_FUNMAP;
        if (is_behind && flags & SANITIZE_POS) {
            draft->tid = -1;
            draft->pos = -1;
        }
    } else if (draft_end(draft) > reference_bases) {
        trim(draft, reference_bases);
    }
}

/* True if two adjacent operations are equal, or one is empty or, with cigarx, = or X. */
static bool is_to_be_joined(const struct draft *draft, unsigned flags)
{
    uint32_t last = UINT32_MAX;
    for (size_t i = 0; i < draft->cigar.n_ops; i++) {
        uint32_t op = bam_cigar_op(op_at(draft, i));
        if (op == last || bam_cigar_oplen(op_at(draft, i)) == 0) return true;
        if (flags & SANITIZE_CIGARX && (op == BAM_CEQUAL || op == BAM_CDIFF)) return true;
        last = op;
    }
    return false;
}

/* Joins adjacent equal operations, up to the maximum length, and leaves out empty ones. */
static void join_operations(struct draft *draft, unsigned flags)
{
    if (!is_to_be_joined(draft, flags)) return;
    uint8_t *ops = new_ops(draft), *out = ops;
    uint32_t last_op = UINT32_MAX, last_length = 0;
    for (size_t i = 0; i < draft->cigar.n_ops; i++) {
        uint32_t op = bam_cigar_op(op_at(draft, i)), length = bam_cigar_oplen(op_at(draft, i));
        if (flags & SANITIZE_CIGARX && (op == BAM_CEQUAL || op == BAM_CDIFF)) op = BAM_CMATCH;
        if (length == 0) continue;
        if (op == last_op) {
            uint32_t joined = last_length + length;     /* each has 28 bits */
            length = joined > MAX_OP_LENGTH ? MAX_OP_LENGTH : joined;
            (void)put_u32(out - 4, bam_cigar_gen(length, op));
            last_length = length;
            if (joined == length) continue;
            length = joined - MAX_OP_LENGTH;
        }
        out = put_u32(out, bam_cigar_gen(length, op));
        last_op = op;
        last_length = length;
    }
    draft_take_ops(draft, ops, (size_t)(out - ops) / 4);
}

const char *sanitize_draft(struct draft *draft, unsigned flags, int64_t reference_bases)
{
    if (flags & SANITIZE_POS && draft->tid < 0) {
        draft->pos = -1;
        if (flags & SANITIZE_UNMAP) draft->flag |= BAM_FUNMAP;
    }
    if (flags & SANITIZE_CIGAR && draft_is_mapped(draft))
        place_on_reference(draft, flags, reference_bases);
    if (draft_is_mapped(draft)) {
        if (flags & (SANITIZE_CIGARX | SANITIZE_CIGDUP)) join_operations(draft, flags);
        return NULL;
    }
    if (flags & SANITIZE_CIGAR) draft->cigar.n_ops = 0;
    if (flags & SANITIZE_MQUAL) draft->mapq = 0;
    if (!(flags & SANITIZE_AUX)) return NULL;
    draft->without_alignment_tags = true;
    return draft_has_damaged_tags(draft) ? "its tags are damaged" : NULL;
}
