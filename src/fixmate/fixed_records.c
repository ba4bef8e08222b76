/* fixed_records.c -- see fixed_records.h. */
#include "fixmate/fixed_records.h"

#include "bam/bam_check.h"
#include "fixmate/template_cut.h"
#include "util/xalloc.h"

#include <stdlib.h>

/* ---- a template that does not fit in memory ---- */

enum { N_KEPT = 3 + DRAFT_N_TAGS + 1 };         /* the first, the last two, one for each tag of the
                                                   first, and the current one */

struct kept_record {
    uint8_t *rec;
    size_t room;
    struct draft draft;
    bool is_open;               /* the draft is */
};

struct oversized_template {
    const struct fixmate_rules *rules;
    struct kept_record kept[N_KEPT];
    struct draft *first;        /* NULL: no primary record yet */
    struct draft again;         /* a copy of the first before pairing, for the second pass; owns
                                   nothing */
    bool has_written;           /* the second pass has written the first */
    const struct draft *last_of[2];     /* last primary record of each segment */
    bool has_mate;              /* there are at least two primary records */
};

struct oversized_template *oversized_template_create(const struct fixmate_rules *rules)
{
    struct oversized_template *lt = xcalloc(1, sizeof *lt);
    lt->rules = rules;
    return lt;
}

static void close_kept(struct kept_record *kept)
{
    if (kept->is_open) draft_close(&kept->draft);
    kept->is_open = false;
}

void oversized_template_destroy(struct oversized_template *lt)
{
    if (!lt) return;
    for (int i = 0; i < N_KEPT; i++) {
        close_kept(&lt->kept[i]);
        free(lt->kept[i].rec);
    }
    free(lt);
}

/* True if another record needs this draft. */
static bool is_needed(const struct oversized_template *lt, const struct draft *draft)
{
    if (draft == lt->first || draft == lt->last_of[0] || draft == lt->last_of[1]) return true;
    for (unsigned i = 0; lt->first && i < lt->first->n_appended; i++)
        if (lt->first->from[lt->first->appended[i]] == draft) return true;
    return false;
}

static struct kept_record *free_slot(struct oversized_template *lt)
{
    struct kept_record *kept = lt->kept;
    while (kept->is_open && is_needed(lt, &kept->draft)) kept++;
    close_kept(kept);
    return kept;
}

void oversized_template_look(struct oversized_template *lt, const uint8_t *rec)
{
    if (bam_record_flag(rec) & (BAM_FSECONDARY | BAM_FSUPPLEMENTARY)) return;
    struct kept_record *kept = free_slot(lt);
    const struct fixmate_rules *rules = lt->rules;
    size_t n_bytes = bam_record_bytes(rec);
    xgrow(&kept->rec, &kept->room, n_bytes, 0, 1);
    memcpy(kept->rec, rec, n_bytes);
    if (bam_record_check_input(kept->rec, rules->n_refs, rules->long_positions)) return;
    cut_names_cut(NULL, kept->rec, 0);
    (void)bam_record_restore_cigar(kept->rec);
    struct draft *draft = &kept->draft;
    kept->is_open = true;
    if (mates_open(rules, draft, kept->rec)) return;
    lt->last_of[mates_segment(draft)] = draft;
    if (lt->first) {
        mates_pair(rules, lt->first, draft);
        lt->has_mate = true;
    } else {
        lt->first = draft;
        lt->again = *draft;
        lt->again.own_ops = lt->again.own_tags = NULL;
    }
}

void oversized_template_end(struct oversized_template *lt)
{
    if (lt->first && !lt->has_mate) mates_leave_alone(lt->first);
}

/* Fills in the mate fields of a record. Returns the draft to be written, which for the first
   primary record is lt->first. */
static const struct draft *learn(struct oversized_template *lt, struct draft *draft)
{
    if (!mates_is_primary(draft)) {
        mates_tell_other(lt->rules, draft, lt->last_of);
    } else if (lt->has_written) {
        mates_pair(lt->rules, &lt->again, draft);
    } else {
        lt->has_written = true;
        return lt->first;
    }
    return draft;
}

const char *oversized_template_fix(struct oversized_template *lt, struct fixmate_space *space,
                                   const uint8_t *rec)
{
    struct draft draft;
    const char *problem = mates_open(lt->rules, &draft, rec);
    if (!problem) fixmate_write(lt->rules, space, learn(lt, &draft));
    draft_close(&draft);
    return problem;
}

/* ---- whole templates ---- */

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
    struct fixmate_space *space = &fixed->space;
    space->out_bytes = space->n_out = space->n_paired = space->n_alone = 0;
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
