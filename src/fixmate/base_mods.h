/*
 * base_mods.h -- checks and adapts the base modification tags (MM, ML and MN) of a template, as
 * `samtools fixmate -M` of 1.24 does.
 *
 * MM lists the modified bases of a read as it was sequenced, ML has their probabilities, and MN is
 * the length of the sequence that they describe. Aligners hard-clip supplementary records but copy
 * the tags of the whole read: these functions cut the tags, too. If the tags contradict the record,
 * all three are removed. The draft names Mm and Ml become MM and ML.
 *
 * Order of calls, as in samtools: base_mods_fix_primary for each primary record, before it gets
 * tags of its mate; then base_mods_fix_other for each other record, after it has got them. The tags
 * of a draft must not be damaged (draft.h). Threads: any, on drafts of different templates.
 */
#ifndef ROCKSORT_FIXMATE_BASE_MODS_H
#define ROCKSORT_FIXMATE_BASE_MODS_H

#include "fixmate/draft.h"

void base_mods_fix_primary(struct draft *draft);

/* primary: the primary record of the same read; NULL: none. */
void base_mods_fix_other(struct draft *draft, const struct draft *primary);

/* ---- the value of MM ---- */

/*
 * A list such as "C+mh?,5,12,0;" (SAM specification, optional fields, 1.7) has a base and a strand,
 * codes of modifications (letters, or one ChEBI number), an optional flag, and steps. Each step
 * stands for one modified base: the number of bases of this kind between it and the previous
 * modified base, along the read as it was sequenced. Pure; any thread.
 */
struct mod_list {
    const char *text;           /* where it begins */
    const char *steps;          /* the comma before the first step, or the semicolon */
    uint32_t base;              /* as in BAM: 1 A, 2 C, 4 G, 8 T, 15 any */
    size_t n_codes;             /* bytes in ML for each step */
    size_t n_steps;
    uint64_t n_bases;           /* how many bases of this kind the read must have */
};

/* Reads the list at *at and moves *at to the next one. The text ends in a NUL. Returns 1, 0 at the
   end, or -1 if the text is malformed. */
int mod_lists_next(const char **at, struct mod_list *list);

/* Reads the next step of a list. *at starts as list->steps; call this list->n_steps times. */
uint32_t mod_lists_step(const char **at);

#endif
