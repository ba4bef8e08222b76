/*
 * mates.c -- see mates.h.
 *
 * Primary records pair up: the first with each later one. Two are usual; with more, the first and
 * each later one know of each other, and the first keeps what the last has told it, as in samtools.
 */
#include "template/mates.h"

#include "template/base_mods.h"

bool mates_is_primary(const struct draft *draft)
{
    return !(draft->flag & (BAM_FSECONDARY | BAM_FSUPPLEMENTARY));
}

int mates_segment(const struct draft *draft)
{
    return draft->flag & BAM_FREAD2 ? 1 : 0;
}

/* ---- what one record learns of another ---- */

/* An unmapped read lies where its mapped mate lies. */
static void take_place(struct draft *draft, const struct draft *mate)
{
    if (draft_is_mapped(draft) || !draft_is_mapped(mate)) return;
    draft->tid = mate->tid;
    draft->pos = mate->pos;
}

static void take_mate_fields(struct draft *draft, const struct draft *mate)
{
    draft->mate_tid = mate->tid;
    draft->mate_pos = mate->pos;
    draft->flag &= ~(uint32_t)BAM_FMREVERSE;
    if (mate->flag & BAM_FREVERSE) draft->flag |= BAM_FMREVERSE;
    if (!draft_is_mapped(mate)) draft->flag |= BAM_FMUNMAP;
}

static void take_mate_tags(struct draft *draft, const struct draft *mate)
{
    if (draft_is_mapped(mate)) draft_set_tag(draft, DRAFT_MQ, mate);
    if (draft_is_mapped(mate) || draft_is_mapped(draft)) draft_set_tag(draft, DRAFT_MC, mate);
}

/* A barcode that is no text, or empty, is not copied, and not replaced either. */
static void take_barcode(struct draft *draft, const struct draft *mate, const char tag[2])
{
    struct bam_aux own, other;
    if (bam_aux_find(draft->rec, tag, &own) > 0 || bam_aux_find(mate->rec, tag, &other) <= 0 ||
        (other.type != 'Z' && other.type != 'H') || other.value_bytes <= 1)
        return;
    draft_copy_tag(draft, &other, mate);
}

/* ---- what both ends of a template have in common ---- */

/* Where the sequenced fragment ends on this side: the 5' end of the read, clips left out. */
static int64_t outer_end(const struct draft *draft)
{
    return draft->flag & BAM_FREVERSE ? draft_end(draft) : draft->pos;
}

static void set_template_length(struct draft *a, struct draft *b)
{
    bool is_known = a->tid == b->tid && !((a->flag | b->flag) & (BAM_FUNMAP | BAM_FMUNMAP));
    a->template_length = is_known ? outer_end(b) - outer_end(a) : 0;
    b->template_length = -a->template_length;
}

/* True if the reads face each other on one reference. How far apart they are does not matter. */
static bool may_be_proper(const struct draft *a, const struct draft *b)
{
    if (!draft_is_mapped(a) || !draft_is_mapped(b) || a->tid != b->tid) return false;
    const struct draft *left = a, *right = b;
    if (outer_end(a) > outer_end(b)) {
        left = b;
        right = a;
    }
    return !(left->flag & BAM_FREVERSE) && right->flag & BAM_FREVERSE;
}

static bool is_placed(const struct draft *draft)
{
    return draft_is_mapped(draft) && draft->tid >= 0 && draft->pos >= 0;
}

static void set_template_cigar(struct draft *a, struct draft *b)
{
    if (!is_placed(a) || !is_placed(b) || a->tid != b->tid) return;
    struct draft *left = a->pos > b->pos ? b : a, *right = left == a ? b : a;
    draft_remove_tag(right, DRAFT_CT);
    draft_set_tag(left, DRAFT_CT, right);
}

void mates_pair(const struct fixmate_rules *rules, struct draft *a, struct draft *b)
{
    a->flag |= BAM_FPAIRED;
    b->flag |= BAM_FPAIRED;
    take_place(b, a);
    take_place(a, b);
    take_mate_fields(b, a);
    take_mate_fields(a, b);
    if (rules->barcode_tag[0] != '\0') {
        take_barcode(b, a, rules->barcode_tag);
        take_barcode(a, b, rules->barcode_tag);
    }
    take_mate_tags(b, a);
    take_mate_tags(a, b);
    set_template_length(a, b);
    if (rules->template_cigar) set_template_cigar(a, b);
    if (!rules->any_orientation && !may_be_proper(a, b)) {
        a->flag &= ~(uint32_t)BAM_FPROPER_PAIR;
        b->flag &= ~(uint32_t)BAM_FPROPER_PAIR;
    }
    draft_set_tag(b, DRAFT_MS, a);
    draft_set_tag(a, DRAFT_MS, b);
    /* The mate of a read that will be left out. */
    const uint32_t of_pairs = BAM_FMREVERSE | BAM_FPROPER_PAIR;
    if (rules->removes && !draft_is_mapped(a)) b->flag &= ~of_pairs;
    if (rules->removes && !draft_is_mapped(b)) a->flag &= ~of_pairs;
}

void mates_leave_alone(struct draft *draft)
{
    draft->mate_tid = -1;
    draft->mate_pos = -1;
    draft->template_length = 0;
    draft->flag &= ~(uint32_t)(BAM_FMREVERSE | BAM_FPROPER_PAIR);
}

void mates_tell_other(const struct fixmate_rules *rules, struct draft *draft,
                      const struct draft *const last_of[2])
{
    const struct draft *mate = last_of[!mates_segment(draft)];
    if (draft->flag & BAM_FSUPPLEMENTARY && draft->flag & BAM_FPAIRED && mate) {
        take_mate_fields(draft, mate);
        take_mate_tags(draft, mate);
    }
    if (rules->base_mods) base_mods_fix_other(draft, last_of[mates_segment(draft)]);
}

const char *mates_open(const struct fixmate_rules *rules, struct draft *draft, const uint8_t *rec)
{
    draft_open(draft, rec);
    int64_t bases = draft->tid >= 0 ? rules->reference_bases[draft->tid] : 0;
    if (rules->base_mods && draft->has_damaged_tags) return "its tags are damaged";
    const char *problem = sanitize_draft(draft, rules->sanitize, bases);
    if (!problem && rules->base_mods && mates_is_primary(draft)) base_mods_fix_primary(draft);
    return problem;
}

bool mates_keeps(const struct fixmate_rules *rules, const struct draft *draft)
{
    return !rules->removes || !(draft->flag & (BAM_FSECONDARY | BAM_FUNMAP));
}
