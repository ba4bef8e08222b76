/*
 * fixmate.c -- see fixmate.h.
 *
 * The first primary record is paired with each later one. Two are usual; with more, the first one
 * keeps the mate fields of the last pairing, as in samtools.
 */
#include "fixmate/fixmate.h"

#include "fixmate/base_mods.h"
#include "util/xalloc.h"

#include <stdlib.h>

bool mates_is_primary(const struct draft *draft)
{
    return !(draft->flag & (BAM_FSECONDARY | BAM_FSUPPLEMENTARY));
}

int mates_segment(const struct draft *draft)
{
    return draft->flag & BAM_FREAD2 ? 1 : 0;
}

/* ---- fields that one record gets of another ---- */

/* An unmapped read gets the place of its mapped mate. */
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

/* A barcode that is empty or not text is neither copied nor replaced. */
static void take_barcode(struct draft *draft, const struct draft *mate, const char tag[2])
{
    struct bam_aux own, other;
    if (bam_aux_find(draft->rec, tag, &own) > 0 || bam_aux_find(mate->rec, tag, &other) <= 0 ||
        !bam_aux_is_text(&other) || other.value_bytes <= 1)
        return;
    draft_copy_tag(draft, &other, mate);
}

/* ---- what both reads of a template share ---- */

/* The end of the fragment on this side: the 5' end of the read, without clips. */
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

/* True if the reads face each other on the same reference, at any distance. */
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
    /* The read of an unmapped mate that will be left out. */
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
    if (rules->base_mods && draft_has_damaged_tags(draft)) return "its tags are damaged";
    const char *problem = sanitize_draft(draft, rules->sanitize, bases);
    if (!problem && rules->base_mods && mates_is_primary(draft)) base_mods_fix_primary(draft);
    return problem;
}

/* ---- templates in memory ---- */

/* Pairs the primary records, and stores the last one of each segment. */
static void fix_primaries(const struct fixmate_rules *rules, struct fixmate_space *space,
                          const struct draft *last_of[2])
{
    struct draft *first = NULL;
    bool has_mate = false;
    for (size_t i = 0; i < space->n_drafts; i++) {
        struct draft *draft = &space->drafts[i];
        if (!mates_is_primary(draft)) continue;
        if (draft->flag & BAM_FPAIRED) space->n_paired++;
        last_of[mates_segment(draft)] = draft;
        if (first) {
            mates_pair(rules, first, draft);
            has_mate = true;
        } else {
            first = draft;
        }
    }
    if (!first || has_mate) return;
    if (first->flag & BAM_FPAIRED) space->n_alone++;
    mates_leave_alone(first);
}

static void fix_others(const struct fixmate_rules *rules, struct fixmate_space *space,
                       const struct draft *const last_of[2])
{
    for (size_t i = 0; i < space->n_drafts; i++)
        if (!mates_is_primary(&space->drafts[i]))
            mates_tell_other(rules, &space->drafts[i], last_of);
}

/* Writes a draft for which there is room. */
static void write_draft(const struct fixmate_rules *rules, struct fixmate_space *space,
                        const struct draft *draft)
{
    if (rules->removes && draft->flag & (BAM_FSECONDARY | BAM_FUNMAP)) return;
    space->out_bytes = (size_t)(draft_write(draft, space->out + space->out_bytes) - space->out);
    space->n_out++;
}

/* Makes room for n_bytes more. */
static void reserve(struct fixmate_space *space, size_t n_bytes)
{
    size_t most = space->out_bytes + n_bytes;
    xgrow(&space->out, &space->out_room, most, most / 4, 1);
}

void fixmate_write(const struct fixmate_rules *rules, struct fixmate_space *space,
                   const struct draft *draft)
{
    reserve(space, draft_bytes_at_most(draft));
    write_draft(rules, space, draft);
}

const char *fixmate_add(const struct fixmate_rules *rules, struct fixmate_space *space,
                        const uint8_t *rec)
{
    xgrow(&space->drafts, &space->drafts_room, space->n_drafts + 1, space->n_drafts + 8,
          sizeof *space->drafts);
    return mates_open(rules, &space->drafts[space->n_drafts++], rec);
}

static void close_drafts(struct fixmate_space *space)
{
    for (size_t i = 0; i < space->n_drafts; i++) draft_close(&space->drafts[i]);
    space->n_drafts = 0;
}

/* Tags of mates can make a template a hundred times larger: each of many short records gets a long
   CIGAR. All pieces that are being processed may contain such templates, so their limit is far
   below that for templates that are large by themselves. */
static bool fits(const struct fixmate_rules *rules, const struct fixmate_space *space, size_t most)
{
    size_t read_bytes = 0;
    if (rules->max_template_bytes == 0) return true;
    if (rules->usual_bytes == 0 || most <= rules->usual_bytes)
        return most <= rules->max_template_bytes;
    for (size_t i = 0; i < space->n_drafts; i++)
        read_bytes += bam_record_bytes(space->drafts[i].rec);
    return most <= rules->max_template_bytes && most / 4 <= read_bytes;
}

bool fixmate_finish(const struct fixmate_rules *rules, struct fixmate_space *space)
{
    const struct draft *last_of[2] = {NULL, NULL};
    fix_primaries(rules, space, last_of);
    fix_others(rules, space, last_of);
    size_t most = 0;
    for (size_t i = 0; i < space->n_drafts; i++) most += draft_bytes_at_most(&space->drafts[i]);
    bool has_room = fits(rules, space, most);
    if (has_room) {
        reserve(space, most);
        for (size_t i = 0; i < space->n_drafts; i++) write_draft(rules, space, &space->drafts[i]);
    }
    close_drafts(space);
    return has_room;
}

void fixmate_release(struct fixmate_space *space)
{
    close_drafts(space);
    free(space->drafts);
    free(space->out);
    *space = (struct fixmate_space){0};
}
