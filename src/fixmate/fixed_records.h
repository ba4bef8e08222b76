/*
 * fixed_records.h -- fixes the mates in all templates of a span (template_cut.h), or in a part of
 * one oversized template (oversized_template.h), and hands out whole templates.
 *
 * Order of calls, for each span: fixed_records_make; fixed_records_take until it returns false. If
 * fixed->too_large is not 0, an oversized template comes next, which the caller fixes with
 * oversized_template.h. Then, or if fixed->has_rest, repeat for the rest of the span. For each part
 * of an oversized template: fixed_records_make_part; fixed_records_take until it returns false;
 * repeat until the part is used up. fixed_records_release at the end.
 *
 * Ownership: fixed_records starts as {0} and owns its records; they are valid until the next span.
 * Threads: one at a time.
 */
#ifndef ROCKSORT_FIXMATE_FIXED_RECORDS_H
#define ROCKSORT_FIXMATE_FIXED_RECORDS_H

#include "bam/record_problem.h"
#include "fixmate/oversized_template.h"
#include "fixmate/template_cut.h"

struct fixed_end {              /* where a template ends */
    size_t out_bytes, n_out;    /* fixed records of the span up to here */
    size_t n_records;           /* records of the span up to here, as they were read */
    size_t piece_at;            /* where the next template begins in the piece; or unknown */
};

#define FIXED_END_UNKNOWN SIZE_MAX

struct fixed_records {
    struct fixmate_space space; /* the records are space.out */
    struct fixed_end *ends;     /* of the templates that end in the piece, or one of the span if
                                   none does; of a part: of all records */
    size_t n_ends, ends_room;
    size_t n_taken;             /* of the ends, by fixed_records_take */
    size_t too_large;           /* records of a template that would become too large; 0: none */
    bool has_rest;              /* fixed records are large: the rest comes in the next call */
    size_t n_done;              /* records of the span up to here */
};

struct fixed_part {             /* records of an oversized template, one after another */
    const struct oversized_template *template;
    struct oversized_place place; /* before the record at `at` */
    uint8_t *records;
    size_t n_bytes;
    size_t at;                  /* the next record to be fixed */
    size_t max_bytes;           /* limit for fixed records of one call */
};

struct fixed_group {            /* whole templates, one after another */
    const uint8_t *at;
    size_t n_bytes, n_records;
    size_t n_before;            /* records of the span before the group, as they were read */
    struct fixed_end end;
};

/*
 * Checks and fixes the records of a span, in place; it was cut from `piece`, and problem->record is
 * the number of its first record. Stops before a template that would become too large, and when the
 * fixed records have rules->usual_bytes plus four times the bytes of `left`. The span then contains
 * the rest, but its n_records do not change. Returns 0, or -1 with *problem.
 */
int fixed_records_make(struct fixed_records *fixed, const struct fixmate_rules *rules,
                       uint8_t *piece, struct template_span *templates,
                       struct record_problem *problem);

/* Checks and fixes records of a part, in the same way. */
int fixed_records_make_part(struct fixed_records *fixed, const struct fixmate_rules *rules,
                            struct fixed_part *part, struct record_problem *problem);

/* Stores the next templates in *group: as many as fit into `room`, but at least one. A group is
   empty if all its records are left out. Returns false if all were taken. */
bool fixed_records_take(struct fixed_records *fixed, size_t room, struct fixed_group *group);

/* Frees buffers of more than keep_bytes. */
void fixed_records_shrink(struct fixed_records *fixed, size_t keep_bytes);

void fixed_records_release(struct fixed_records *fixed);

#endif
