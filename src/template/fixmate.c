/* fixmate.c -- see fixmate.h. */
#include "template/fixmate.h"

#include "util/xalloc.h"

#include <stdlib.h>

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
    if (!mates_keeps(rules, draft)) return;
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

/* Tags of mates can make a template a hundred times as large: a long CIGAR is in each of many short
   records then. As there may be such templates in all pieces that are on their way, they count as
   large ones long before a template does that is large by itself. */
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
