/*
 * fixmate.h -- gives each record of a template what it has to say of its mate, as `samtools fixmate
 * -m` of 1.24 does: reference, position and strand of the mate, template length, the flag of proper
 * pairs, and the tags MQ, MC and ms. With -M it also keeps base modifications true (base_mods.h).
 * The manual page has the rules.
 *
 * A template is what was sequenced as one piece. Its records have one read name and stand one after
 * another in the input.
 *
 * Order of calls: for each record of a template fixmate_add; then fixmate_finish, which appends the
 * records, changed, to space->out, in their order; then the next template. fixmate_release at the
 * end.
 *
 * Ownership: records belong to the caller and must stay until fixmate_finish. A space owns its
 * buffers and starts as {0}. Threads: any, each with a space of its own.
 */
#ifndef ROCKSORT_TEMPLATE_FIXMATE_H
#define ROCKSORT_TEMPLATE_FIXMATE_H

#include "template/mates.h"

struct fixmate_space {
    struct draft *drafts;       /* of the template at hand */
    size_t n_drafts, drafts_room;
    uint8_t *out;               /* records that are finished */
    size_t out_bytes, out_room;
    size_t n_out;
    size_t n_paired;            /* primary records of pairs, as they were read */
    size_t n_alone;             /* of these: in a template without a mate */
};

/* Forgets the finished records, and what was counted. */
static inline void fixmate_empty(struct fixmate_space *space)
{
    space->out_bytes = space->n_out = space->n_paired = space->n_alone = 0;
}

/* Adds a record to the template. Its fields were checked (bam_check.h). Returns NULL, or why it
   cannot be used (record_problem.h). */
const char *fixmate_add(const struct fixmate_rules *rules, struct fixmate_space *space,
                        const uint8_t *rec);

/* Ends the template. Returns false if MC tags of long CIGARs would make it larger than the rules
   allow (large_template.h); then nothing of it is appended. */
bool fixmate_finish(const struct fixmate_rules *rules, struct fixmate_space *space);

/* Appends one record to the finished ones, unless it is to be left out. */
void fixmate_write(const struct fixmate_rules *rules, struct fixmate_space *space,
                   const struct draft *draft);

void fixmate_release(struct fixmate_space *space);

#endif
