/* fixed_records.c -- see fixed_records.h. */
#include "fixmate/fixed_records.h"

#include "bam/bam_check.h"
#include "util/xalloc.h"

#include <stdlib.h>

/* State of fixing one span. */
struct fixing {
    struct fixed_records *fixed;
    const struct fixmate_rules *rules;
    const uint8_t *piece;
    size_t most_bytes;          /* stop at this size; the rest comes in the next call */
    const uint8_t *before;      /* the previous record; NULL: none */
    size_t n_records;           /* of the span, so far */
    struct record_problem *problem;
};

/* Remembers that a template has ended. */
static void add_end(struct fixed_records *fixed, size_t n_records, size_t piece_at)
{
    xgrow(&fixed->ends, &fixed->ends_room, fixed->n_ends + 1, fixed->n_ends, sizeof *fixed->ends);
    fixed->ends[fixed->n_ends++] = (struct fixed_end){
        .out_bytes = fixed->space.out_bytes, .n_out = fixed->space.n_out,
        .n_records = n_records, .piece_at = piece_at};
}

/* Adds an end after n_records unless it is there. */
static void add_end_if_missing(struct fixed_records *fixed, size_t n_records)
{
    size_t n_ended = fixed->n_ends > 0 ? fixed->ends[fixed->n_ends - 1].n_records : 0;
    if (n_records > n_ended) add_end(fixed, n_records, FIXED_END_UNKNOWN);
}

/* Ends the template of the previous record. Returns false if it is too large. */
static bool end_template(const struct fixing *f)
{
    struct fixed_records *fixed = f->fixed;
    size_t n_records = fixed->space.n_drafts;
    fixed->n_done = f->n_records;
    if (fixmate_finish(f->rules, &fixed->space)) return true;
    fixed->too_large = n_records;
    add_end_if_missing(fixed, f->n_records - n_records);
    return false;
}

/* Checks a record, cuts its name, and moves its CIGAR to its field. Returns false if problem->text
   says what is wrong. */
static bool check_record(const struct fixmate_rules *rules, uint8_t *rec,
                         struct record_problem *problem)
{
    problem->text = bam_record_check_input(rec, rules->n_refs, rules->long_positions);
    if (problem->text) return false;
    cut_names_cut(rules->cut_names, rec, problem->record);
    (void)bam_record_restore_cigar(rec);
    return true;
}

/* Fixes the templates of the records from *at up to n_bytes; the last one may continue after them.
   Stores ends if the records are in the piece. Moves *at to where it stops: before n_bytes if a
   template is too large or the limit is reached. Returns 0, or -1 with a problem. */
static int fix_records(struct fixing *f, uint8_t *records, size_t *at, size_t n_bytes,
                       bool is_in_piece)
{
    size_t rec_bytes;
    for (; *at < n_bytes; *at += rec_bytes) {
        uint8_t *rec = records + *at;
        rec_bytes = bam_record_bytes(rec);      /* restoring the CIGAR has made it shorter */
        if (f->before && !template_same_name(f->before, rec)) {
            if (!end_template(f)) return 0;
            if (is_in_piece) add_end(f->fixed, f->n_records, (size_t)(rec - f->piece));
            f->fixed->has_rest = f->fixed->space.out_bytes >= f->most_bytes;
            if (f->fixed->has_rest) {
                add_end_if_missing(f->fixed, f->n_records);
                return 0;
            }
        }
        if (!check_record(f->rules, rec, f->problem)) return -1;
        f->problem->text = fixmate_add(f->rules, &f->fixed->space, rec);
        if (f->problem->text) return -1;
        f->before = rec;
        f->n_records++;
        f->problem->record++;
    }
    return 0;
}

static void empty(struct fixed_records *fixed)
{
    fixmate_empty(&fixed->space);
    fixed->n_ends = fixed->n_taken = fixed->too_large = fixed->n_done = 0;
    fixed->has_rest = false;
}

int fixed_records_make(struct fixed_records *fixed, const struct fixmate_rules *rules,
                       uint8_t *piece, struct template_span *templates,
                       struct record_problem *problem)
{
    struct fixing f = {.fixed = fixed, .rules = rules, .piece = piece, .problem = problem,
                       .most_bytes = rules->usual_bytes > 0
                                         ? rules->usual_bytes + 4 * templates->left.n_bytes
                                         : SIZE_MAX};
    empty(fixed);
    if (fix_records(&f, templates->left.at, &templates->left_from, templates->left.n_bytes, false) <
        0)
        return -1;
    if (fixed->too_large > 0 || fixed->has_rest) return 0;
    if (fix_records(&f, piece, &templates->from, templates->to, true) < 0) return -1;
    if (fixed->too_large > 0 || fixed->has_rest || f.n_records == 0) return 0;
    if (end_template(&f)) add_end(fixed, f.n_records, templates->to);
    return 0;
}

int fixed_records_make_part(struct fixed_records *fixed, const struct fixmate_rules *rules,
                            struct fixed_part *part, struct record_problem *problem)
{
    struct oversized_walk walk;
    size_t rec_bytes;
    empty(fixed);
    oversized_walk_begin(&walk, part->template, &part->place);
    for (; part->at < part->n_bytes && fixed->space.out_bytes < part->max_bytes;
         part->at += rec_bytes) {
        uint8_t *rec = part->records + part->at;
        rec_bytes = bam_record_bytes(rec);
        if (check_record(rules, rec, problem))
            problem->text = oversized_walk_fix(&walk, &fixed->space, rec);
        if (problem->text) return -1;
        problem->record++;
        add_end(fixed, ++fixed->n_done, FIXED_END_UNKNOWN);
    }
    part->place = oversized_walk_place(&walk);
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
