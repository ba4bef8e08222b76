/* oversized_template.c -- see oversized_template.h. */
#include "fixmate/oversized_template.h"

#include "bam/bam_check.h"
#include "util/xalloc.h"

#include <stdlib.h>

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
    struct draft again;         /* a copy of the first before pairing, for the second walk; owns
                                   nothing */
    bool has_written;           /* the second walk has written the first */
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
