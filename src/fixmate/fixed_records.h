/*
 * fixed_records.h -- fixes the mates of records, and hands out whole templates.
 *
 * Order of calls, for some whole templates: fixed_records_make; fixed_records_take until it returns
 * false. If fixed->too_large is not 0, an oversized template comes next, which the caller fixes in
 * two passes. Then repeat until all templates are fixed. For an oversized template:
 * fixed_records_empty; fixed_records_add for some of its records; fixed_records_take until it
 * returns false; repeat. fixed_records_release at the end.
 *
 * Ownership: fixed_records starts as {0} and owns its records; they are valid until the next call
 * of make or empty. Threads: one at a time.
 */
#ifndef ROCKSORT_FIXMATE_FIXED_RECORDS_H
#define ROCKSORT_FIXMATE_FIXED_RECORDS_H

#include "bam/record_problem.h"
#include "fixmate/fixmate.h"

/* ---- a template that does not fit in memory ---- */

/*
 * Fixes the mates of such a template in two passes over its records; the result is that of
 * fixmate.h. The first pass keeps the records that others need: the first primary record, the last
 * one of each segment (read 1, read 2), and those whose values the first one gets as tags. A later
 * primary record also needs the first one as it was at that point, so the second pass pairs it
 * again. Order of calls: create; look for each record, in their order; end; fix for each record, in
 * their order; destroy. The object owns copies of the records that it keeps.
 */
struct oversized_template;

/* The rules must outlive it. */
struct oversized_template *oversized_template_create(const struct fixmate_rules *rules);

/* Accepts NULL. */
void oversized_template_destroy(struct oversized_template *lt);

/* The first pass: takes a whole record, whose fields need not be checked. Ignores a record that
   cannot be used; the second pass reports it. */
void oversized_template_look(struct oversized_template *lt, const uint8_t *rec);

/* Ends the first pass. */
void oversized_template_end(struct oversized_template *lt);

/* The second pass: appends the next record, fixed, to space->out. It was checked (bam_check.h).
   Returns NULL, or why the record cannot be used (record_problem.h). */
const char *oversized_template_fix(struct oversized_template *lt, struct fixmate_space *space,
                                   const uint8_t *rec);

/* ---- whole templates ---- */

struct fixed_end {              /* where a template ends */
    size_t out_bytes, n_out;    /* fixed records up to here */
    size_t n_records;           /* records up to here, as they were read */
    size_t at;                  /* where the next template begins; 0 in an oversized one */
};

struct fixed_records {
    struct fixmate_space space; /* the records are space.out */
    struct fixed_end *ends;     /* of all templates; of an oversized one: of all records */
    size_t n_ends, ends_room;
    size_t n_taken;             /* ends that fixed_records_take has passed */
    size_t too_large;           /* number of records of an oversized template; 0: none */
    size_t n_done;              /* number of records so far, with those of the oversized one */
};

struct fixed_group {            /* whole templates, one after another */
    const uint8_t *at;
    size_t n_bytes, n_records;
    size_t n_before;            /* records before the group, as they were read */
    struct fixed_end end;
};

/*
 * Checks and fixes records in place, from *at up to n_bytes; problem->record is the number of the
 * first one. Stops after an oversized template, whose records are those of space.drafts. Also stops
 * when the fixed records exceed rules->usual_bytes, plus four times the bytes that all records have
 * above half of that. Moves *at to where it stops. Returns 0, or -1 with *problem.
 */
int fixed_records_make(struct fixed_records *fixed, const struct fixmate_rules *rules,
                       uint8_t *records, size_t *at, size_t n_bytes,
                       struct record_problem *problem);

/* Forgets all fixed records. */
void fixed_records_empty(struct fixed_records *fixed);

/* Checks and fixes a record of an oversized template, in the same way. */
int fixed_records_add(struct fixed_records *fixed, const struct fixmate_rules *rules,
                      struct oversized_template *template, uint8_t *rec,
                      struct record_problem *problem);

/* Stores the next templates in *group: as many as fit into `room`, but at least one. A group is
   empty if all its records are left out. Returns false if all were taken. */
bool fixed_records_take(struct fixed_records *fixed, size_t room, struct fixed_group *group);

/* The memory of its buffers. */
size_t fixed_records_memory_bytes(const struct fixed_records *fixed);

/* Frees buffers of more than keep_bytes. */
void fixed_records_shrink(struct fixed_records *fixed, size_t keep_bytes);

void fixed_records_release(struct fixed_records *fixed);

#endif
