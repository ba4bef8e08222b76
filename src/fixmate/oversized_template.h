/*
 * oversized_template.h -- fixes a template whose records do not fit in memory together, in two
 * walks over them, with the result of fixmate.h.
 *
 * The first walk remembers the records that others need: the first primary record, the last one of
 * each output chunk, and those whose values the first one gets as tags. Primary records also learn
 * what the first one has become by then: a *place*, which the first walk gives wherever it is
 * asked. The second walk may begin at each of these places, in several threads at a time.
 *
 * Order of calls: create; look for each record, in their order, and place between them; end; then
 * for each span of records large_walk_begin, and large_walk_fix for each of its records;
 * destroy.
 *
 * Ownership: it has copies of the records that it remembers. Threads: after end any thread may
 * walk, each with a walk of its own; else one at a time.
 */
#ifndef ROCKSORT_FIXMATE_OVERSIZED_TEMPLATE_H
#define ROCKSORT_FIXMATE_OVERSIZED_TEMPLATE_H

#include "fixmate/fixmate.h"

struct oversized_template;

struct large_place {            /* what the first primary record is before a record is fixed */
    bool has_first;             /* it comes before this place */
    uint32_t flag;
    int32_t tid;
    int64_t pos;
};

struct large_walk {
    const struct oversized_template *template;
    bool has_first;
    struct draft first;         /* the first primary record, as it is at this place */
};

/* The rules must outlive it. */
struct oversized_template *oversized_template_create(const struct fixmate_rules *rules);

/* NULL is accepted. */
void oversized_template_destroy(struct oversized_template *lt);

/* The first walk: takes a whole record. Its fields need not be checked: what cannot be used is
   ignored, and the second walk finds it. */
void oversized_template_look(struct oversized_template *lt, const uint8_t *rec);

/* The place before the next record. */
struct large_place oversized_template_place(const struct oversized_template *lt);

/* Ends the first walk. */
void oversized_template_end(struct oversized_template *lt);

/* Begins to walk at a place. The walk must not move in memory. */
void large_walk_begin(struct large_walk *walk, const struct oversized_template *lt,
                      const struct large_place *place);

/* Appends the next record, changed, to space->out. It was checked (bam_check.h). Returns NULL, or
   why it cannot be used (record_problem.h). */
const char *large_walk_fix(struct large_walk *walk, struct fixmate_space *space,
                           const uint8_t *rec);

/* The place where the walk is. */
struct large_place large_walk_place(const struct large_walk *walk);

#endif
