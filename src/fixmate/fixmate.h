/*
 * fixmate.h -- fills in the mate fields of the records of a template, as `samtools fixmate -m` of
 * 1.24 does: reference, position and strand of the mate, template length, the proper pair flag, and
 * the tags MQ, MC and ms. With -M it also adapts base modifications (base_mods.h). The manual page
 * has the rules.
 *
 * A template is one sequenced molecule: consecutive records of the input with the same read name.
 *
 * Order of calls: for each record of a template fixmate_add; then fixmate_finish, which appends the
 * fixed records to space->out, in their order; then the next template. fixmate_release at the end.
 *
 * Ownership: records belong to the caller and must stay valid until fixmate_finish. A space owns
 * its buffers and starts as {0}. Threads: any, each with a space of its own.
 */
#ifndef ROCKSORT_FIXMATE_FIXMATE_H
#define ROCKSORT_FIXMATE_FIXMATE_H

#include "bam/cut_names.h"
#include "fixmate/draft.h"
#include "fixmate/sanitize.h"

struct fixmate_rules {
    bool removes;               /* -r: unmapped and secondary records are left out */
    bool any_orientation;       /* -p: keeps the proper pair flag for any orientation */
    bool template_cigar;        /* -c: the leftmost record gets ct */
    char barcode_tag[2];        /* copied from the mate to a primary record; 0: none */
    bool base_mods;             /* -M: MM, ML and MN are checked, and cut for clipped reads */
    unsigned sanitize;          /* -z */
    int32_t n_refs;             /* references in the header */
    const int64_t *reference_bases;     /* of each of them */
    bool long_positions;        /* some reference is longer than 2^31 - 1 */
    struct cut_names *cut_names;        /* counts names that were cut, or NULL */
    size_t max_template_bytes;  /* maximum size of a fixed template; 0: unlimited */
    size_t usual_bytes;         /* tags of mates may make a template this large, or four times its
                                   size if that is more; 0: max_template_bytes */
};

struct fixmate_space {
    struct draft *drafts;       /* of the current template */
    size_t n_drafts, drafts_room;
    uint8_t *out;               /* fixed records */
    size_t out_bytes, out_room;
    size_t n_out;
    size_t n_paired;            /* primary records of pairs, as they were read */
    size_t n_alone;             /* of these: without a mate in the template */
};

/* Adds a record to the template. Its fields were checked (bam_check.h). Returns NULL, or why it
   cannot be used (record_problem.h). */
const char *fixmate_add(const struct fixmate_rules *rules, struct fixmate_space *space,
                        const uint8_t *rec);

/* Ends the template. Returns false, and appends nothing, if MC tags of long CIGARs would make it
   larger than the rules allow (fixed_records.h). */
bool fixmate_finish(const struct fixmate_rules *rules, struct fixmate_space *space);

/* Appends a record to the fixed ones, unless the rules leave it out. */
void fixmate_write(const struct fixmate_rules *rules, struct fixmate_space *space,
                   const struct draft *draft);

void fixmate_release(struct fixmate_space *space);

/* ---- how records get fields of each other, for fixed_records.h ---- */

/*
 * Order of calls, for each template: mates_open for each record; mates_pair for the first primary
 * record and each later one, in their order, or mates_leave_alone for a single one; then
 * mates_tell_other for each record that is not primary; fixmate_write.
 */

bool mates_is_primary(const struct draft *draft);

/* 0: first or only segment of the template (read 1), 1: second (read 2). */
int mates_segment(const struct draft *draft);

/* Begins the draft of a record whose fields were checked (bam_check.h): sanitizes it (-z), and
   fixes its base modifications if it is primary. The caller closes the draft. Returns NULL, or why
   the record cannot be used (record_problem.h). */
const char *mates_open(const struct fixmate_rules *rules, struct draft *draft, const uint8_t *rec);

/* Fills in the mate fields of two primary records; `a` is the first of the template. Of the fields
   of `a` that earlier calls have changed, `b` uses only flags and place. */
void mates_pair(const struct fixmate_rules *rules, struct draft *a, struct draft *b);

/* Clears the mate fields of a primary record without a mate. */
void mates_leave_alone(struct draft *draft);

/* Fills in the mate fields of a record that is not primary, from the last primary record of each
   segment; NULL: none. */
void mates_tell_other(const struct fixmate_rules *rules, struct draft *draft,
                      const struct draft *const last_of[2]);

#endif
