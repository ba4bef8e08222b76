/* fixed_records.c -- see fixed_records.h. */
#include "fixmate/fixed_records.h"

#include "bam/bam_check.h"
#include "fixmate/template_cut.h"
#include "util/xalloc.h"

#include <stdlib.h>

/* Remembers that a template has ended. */
static void add_end(struct fixed_records *fixed, size_t at)
{
    xgrow(&fixed->ends, &fixed->ends_room, fixed->n_ends + 1, fixed->n_ends, sizeof *fixed->ends);
    fixed->ends[fixed->n_ends++] = (struct fixed_end){
        .out_bytes = fixed->space.out_bytes, .n_out = fixed->space.n_out,
        .n_records = fixed->n_done, .at = at};
}

/* Ends the template before `at`, if there is one. Returns false if it is too large. */
static bool end_template(struct fixed_records *fixed, const struct fixmate_rules *rules, size_t at)
{
    size_t n_records = fixed->space.n_drafts;
    if (n_records == 0) return true;
    fixed->n_done += n_records;
    if (fixmate_finish(rules, &fixed->space))
        add_end(fixed, at);
    else
        fixed->too_large = n_records;
    return fixed->too_large == 0;
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

void fixed_records_empty(struct fixed_records *fixed)
{
    fixmate_empty(&fixed->space);
    fixed->n_ends = fixed->n_taken = fixed->too_large = fixed->n_done = 0;
}

/* The size of fixed records at which fixed_records_make stops. */
static size_t enough_bytes(const struct fixmate_rules *rules, size_t n_bytes)
{
    size_t usual = rules->usual_bytes / 2;
    if (usual == 0) return SIZE_MAX;
    return rules->usual_bytes + (n_bytes > usual ? 4 * (n_bytes - usual) : 0);
}

int fixed_records_make(struct fixed_records *fixed, const struct fixmate_rules *rules,
                       uint8_t *records, size_t *at, size_t n_bytes,
                       struct record_problem *problem)
{
    size_t rec_bytes, enough = enough_bytes(rules, n_bytes);
    const uint8_t *before = NULL;
    fixed_records_empty(fixed);
    for (; *at < n_bytes; *at += rec_bytes) {
        uint8_t *rec = records + *at;
        rec_bytes = bam_record_bytes(rec);      /* restoring the CIGAR makes it shorter */
        if (before && !template_same_name(before, rec) &&
            (!end_template(fixed, rules, *at) || fixed->space.out_bytes >= enough))
            return 0;
        if (check_record(rules, rec, problem))
            problem->text = fixmate_add(rules, &fixed->space, rec);
        if (problem->text) return -1;
        before = rec;
        problem->record++;
    }
    (void)end_template(fixed, rules, *at);
    return 0;
}

int fixed_records_add(struct fixed_records *fixed, const struct fixmate_rules *rules,
                      struct oversized_template *template, uint8_t *rec,
                      struct record_problem *problem)
{
    if (check_record(rules, rec, problem))
        problem->text = oversized_template_fix(template, &fixed->space, rec);
    if (problem->text) return -1;
    problem->record++;
    fixed->n_done++;
    add_end(fixed, 0);
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

size_t fixed_records_memory_bytes(const struct fixed_records *fixed)
{
    return fixed->space.out_room + fixed->space.drafts_room * sizeof *fixed->space.drafts +
           fixed->ends_room * sizeof *fixed->ends;
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
