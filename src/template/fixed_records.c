/* fixed_records.c -- see fixed_records.h. */
#include "template/fixed_records.h"

#include "bam/bam_check.h"
#include "util/xalloc.h"

#include <stdlib.h>

/* What fixing a stretch works with. */
struct fixing {
    struct fixed_records *fixed;
    const struct fixmate_rules *rules;
    const uint8_t *piece;
    const uint8_t *before;      /* the record before; NULL: none */
    size_t n_records;           /* of the stretch, so far */
    struct record_problem *problem;
};

/* Remembers that a template has ended. */
static void add_end(const struct fixing *f, size_t piece_at)
{
    struct fixed_records *fixed = f->fixed;
    xgrow(&fixed->ends, &fixed->ends_room, fixed->n_ends + 1, fixed->n_ends, sizeof *fixed->ends);
    fixed->ends[fixed->n_ends++] = (struct fixed_end){
        .out_bytes = fixed->space.out_bytes, .n_out = fixed->space.n_out,
        .n_records = f->n_records, .piece_at = piece_at};
}

/* Ends the template of the record before. Returns 0, or -1 with a problem of that record. */
static int end_template(const struct fixing *f)
{
    const char *text = fixmate_finish(f->rules, &f->fixed->space);
    if (!text) return 0;
    *f->problem = (struct record_problem){.text = text, .record = f->problem->record - 1,
                                          .read_name = (const char *)bam_record_name(f->before)};
    return -1;
}

/* Checks a record, and moves its CIGAR to its field. Returns NULL, or what is wrong. */
static const char *check_record(const struct fixmate_rules *rules, uint8_t *rec)
{
    const char *problem = bam_record_check_input(rec, rules->n_refs, rules->long_positions);
    if (!problem) (void)bam_record_restore_cigar(rec);
    return problem;
}

/* Fixes the templates of n_bytes of records; the last one may go on after them. Ends are remembered
   if the records are in the piece. Returns 0, or -1 with a problem. */
static int fix_records(struct fixing *f, uint8_t *records, size_t n_bytes, bool is_in_piece)
{
    size_t rec_bytes;
    for (size_t at = 0; at < n_bytes; at += rec_bytes) {
        uint8_t *rec = records + at;
        rec_bytes = bam_record_bytes(rec);      /* restoring its CIGAR makes it shorter */
        f->problem->text = check_record(f->rules, rec);
        if (f->problem->text) return -1;
        if (f->before && !template_same_name(f->before, rec)) {
            if (end_template(f) < 0) return -1;
            if (is_in_piece) add_end(f, (size_t)(rec - f->piece));
        }
        f->problem->text = fixmate_add(f->rules, &f->fixed->space, rec);
        if (f->problem->text) return -1;
        f->before = rec;
        f->n_records++;
        f->problem->record++;
    }
    return 0;
}

int fixed_records_make(struct fixed_records *fixed, const struct fixmate_rules *rules,
                       uint8_t *piece, const struct template_stretch *stretch,
                       struct record_problem *problem)
{
    struct fixing f = {.fixed = fixed, .rules = rules, .piece = piece, .problem = problem};
    fixmate_empty(&fixed->space);
    fixed->n_ends = fixed->n_taken = 0;
    if (fix_records(&f, stretch->left.at, stretch->left.n_bytes, false) < 0) return -1;
    if (stretch->to > stretch->from &&
        fix_records(&f, piece + stretch->from, stretch->to - stretch->from, true) < 0)
        return -1;
    if (f.n_records == 0) return 0;
    if (end_template(&f) < 0) return -1;
    add_end(&f, stretch->to);
    return 0;
}

bool fixed_records_take(struct fixed_records *fixed, size_t room, struct fixed_group *group)
{
    struct fixed_end start = {.n_out = 0};
    size_t n = fixed->n_taken;
    if (n == fixed->n_ends) return false;
    if (n > 0) start = fixed->ends[n - 1];
    do n++;
    while (n < fixed->n_ends && fixed->ends[n].out_bytes - start.out_bytes <= room);
    fixed->n_taken = n;
    *group = (struct fixed_group){.n_before = start.n_records, .end = fixed->ends[n - 1]};
    group->n_bytes = group->end.out_bytes - start.out_bytes;
    group->n_records = group->end.n_out - start.n_out;
    if (group->n_bytes > 0) group->at = fixed->space.out + start.out_bytes;
    return true;
}

void fixed_records_shrink(struct fixed_records *fixed, size_t keep_bytes)
{
    if (fixed->space.out_room > keep_bytes ||
        fixed->space.drafts_room * sizeof *fixed->space.drafts > keep_bytes)
        fixmate_release(&fixed->space);
    if (fixed->ends_room * sizeof *fixed->ends <= keep_bytes) return;
    free(fixed->ends);
    fixed->ends = NULL;
    fixed->ends_room = fixed->n_ends = fixed->n_taken = 0;
}

void fixed_records_release(struct fixed_records *fixed)
{
    fixmate_release(&fixed->space);
    free(fixed->ends);
    *fixed = (struct fixed_records){0};
}
