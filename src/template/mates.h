/*
 * mates.h -- what the records of a template learn of each other, one record at a time. fixmate.h
 * does it for a template in memory, large_template.h for any other.
 *
 * Order of calls, for each template: mates_open for each record; mates_pair for the first primary
 * record and each later one, in their order, or mates_leave_alone if there is one alone; then
 * mates_tell_other for each record that is not primary. What is written is up to mates_keeps.
 *
 * Ownership: that of drafts (draft.h). Threads: any, on different drafts.
 */
#ifndef ROCKSORT_TEMPLATE_MATES_H
#define ROCKSORT_TEMPLATE_MATES_H

#include "bam/cut_names.h"
#include "template/draft.h"
#include "template/sanitize.h"

struct fixmate_rules {
    bool removes;               /* -r: unmapped and secondary records are left out */
    bool any_orientation;       /* -p: the flag of proper pairs stays whatever the orientation */
    bool template_cigar;        /* -c: the leftmost record gets ct */
    char barcode_tag[2];        /* a primary record without it gets that of its mate; 0: none */
    bool base_mods;             /* -M: MM, ML and MN are checked, and cut where reads are */
    unsigned sanitize;          /* -z */
    int32_t n_refs;             /* references in the header */
    const int64_t *reference_bases;     /* of each of them */
    bool long_positions;        /* some reference is longer than 2^31 - 1 */
    struct cut_names *cut_names;        /* counts names that were cut; NULL: nobody asks */
    size_t max_template_bytes;  /* of a template whose mates are fixed; 0: any */
    size_t usual_bytes;         /* tags of mates may make a template so large, and a larger one four
                                   times as large as it was; 0: as large as any may be */
};

bool mates_is_primary(const struct draft *draft);

/* 0: first or only segment, 1: second. */
int mates_segment(const struct draft *draft);

/* Begins the draft of a record whose fields were checked (bam_check.h): corrects it, and its base
   modifications if it is primary. The caller closes the draft. Returns NULL, or why the record
   cannot be used (record_problem.h). */
const char *mates_open(const struct fixmate_rules *rules, struct draft *draft, const uint8_t *rec);

/* Tells two primary records of each other; `a` is the first of the template. Of `a`, `b` learns
   nothing that an earlier call has changed but flags and place. */
void mates_pair(const struct fixmate_rules *rules, struct draft *a, struct draft *b);

/* For a primary record that has no mate. */
void mates_leave_alone(struct draft *draft);

/* Tells a record that is not primary of the last primary record of each segment; NULL: there is
   none. */
void mates_tell_other(const struct fixmate_rules *rules, struct draft *draft,
                      const struct draft *const last_of[2]);

/* True if the record is not to be left out, once it has learned all. */
bool mates_keeps(const struct fixmate_rules *rules, const struct draft *draft);

#endif
