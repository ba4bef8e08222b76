/*
 * oversized_template.h -- fixes the mates of a template that does not fit in memory, in two walks
 * over its records. The result is that of fixmate.h.
 *
 * The first walk keeps the records that others need: the first primary record, the last one of each
 * segment (read 1, read 2), and those whose values the first one gets as tags. A later primary
 * record also needs the state of the first one at that point. oversized_template_place returns this
 * state as a *place* during the first walk; the second walk can start at each place, in several
 * threads at the same time.
 *
 * Order of calls: create; look for each record, in their order, and place between them; end; then
 * for each span oversized_walk_begin, and oversized_walk_fix for each of its records; destroy.
 *
 * Ownership: the object owns copies of the records that it keeps. Threads: one at a time until end;
 * then any thread may walk, each with its own oversized_walk.
 */
#ifndef ROCKSORT_FIXMATE_OVERSIZED_TEMPLATE_H
#define ROCKSORT_FIXMATE_OVERSIZED_TEMPLATE_H

#include "fixmate/fixmate.h"

struct oversized_template;

struct oversized_place {        /* state of the first primary record before a record is fixed */
    bool has_first;             /* the first primary record is before this place */
    uint32_t flag;
    int32_t tid;
    int64_t pos;
};

struct oversized_walk {
    const struct oversized_template *template;
    bool has_first;
    struct draft first;         /* the first primary record, as it is at this place */
};

/* The rules must outlive it. */
struct oversized_template *oversized_template_create(const struct fixmate_rules *rules);

/* NULL is accepted. */
void oversized_template_destroy(struct oversized_template *lt);

/* The first walk: takes a whole record, whose fields need not be checked. Ignores a record that
   cannot be used; the second walk reports it. */
void oversized_template_look(struct oversized_template *lt, const uint8_t *rec);

/* The place before the next record. */
struct oversized_place oversized_template_place(const struct oversized_template *lt);

/* Ends the first walk. */
void oversized_template_end(struct oversized_template *lt);

/* Begins the second walk at a place. The struct must not move in memory. */
void oversized_walk_begin(struct oversized_walk *walk, const struct oversized_template *lt,
                          const struct oversized_place *place);

/* Appends the next record, fixed, to space->out. It was checked (bam_check.h). Returns NULL, or why
   the record cannot be used (record_problem.h). */
const char *oversized_walk_fix(struct oversized_walk *walk, struct fixmate_space *space,
                               const uint8_t *rec);

/* The place of the walk. */
struct oversized_place oversized_walk_place(const struct oversized_walk *walk);

#endif
