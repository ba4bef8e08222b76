/*
 * oversized_template.h -- fixes the mates of a template that does not fit in memory, in two walks
 * over its records. The result is that of fixmate.h.
 *
 * The first walk keeps the records that others need: the first primary record, the last one of each
 * segment (read 1, read 2), and those whose values the first one gets as tags. A later primary
 * record also needs the first one as it was at that point, so the second walk pairs it again.
 *
 * Order of calls: create; look for each record, in their order; end; fix for each record, in their
 * order; destroy.
 *
 * Ownership: the object owns copies of the records that it keeps. Threads: one at a time.
 */
#ifndef ROCKSORT_FIXMATE_OVERSIZED_TEMPLATE_H
#define ROCKSORT_FIXMATE_OVERSIZED_TEMPLATE_H

#include "fixmate/fixmate.h"

struct oversized_template;

/* The rules must outlive it. */
struct oversized_template *oversized_template_create(const struct fixmate_rules *rules);

/* NULL is accepted. */
void oversized_template_destroy(struct oversized_template *lt);

/* The first walk: takes a whole record, whose fields need not be checked. Ignores a record that
   cannot be used; the second walk reports it. */
void oversized_template_look(struct oversized_template *lt, const uint8_t *rec);

/* Ends the first walk. */
void oversized_template_end(struct oversized_template *lt);

/* The second walk: appends the next record, fixed, to space->out. It was checked (bam_check.h).
   Returns NULL, or why the record cannot be used (record_problem.h). */
const char *oversized_template_fix(struct oversized_template *lt, struct fixmate_space *space,
                                   const uint8_t *rec);

#endif
