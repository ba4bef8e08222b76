/*
 * base_mods.h -- keeps the tags of base modifications (MM, ML and MN) of a template true, as
 * `samtools fixmate -M` of 1.24 does.
 *
 * MM lists the modified bases of a read as it was sequenced, ML has their probabilities, and MN is
 * the length of the sequence to which both belong. An aligner that cuts off the ends of a
 * supplementary record (hard clips) copies the tags of the whole read: these functions cut them,
 * too. A record whose tags contradict it loses all three. Mm and Ml, the draft names, become MM and
 * ML.
 *
 * Order of calls: base_mods_fix_primary for each primary record, before it gets tags of its mate;
 * then base_mods_fix_other for each other record, after it got them. So the tags are in the order
 * of samtools.
 *
 * The tags of a draft must not be damaged (draft.h). Threads: any, on drafts of different
 * templates. Nothing can fail.
 */
#ifndef ROCKSORT_TEMPLATE_BASE_MODS_H
#define ROCKSORT_TEMPLATE_BASE_MODS_H

#include "template/draft.h"

void base_mods_fix_primary(struct draft *draft);

/* primary: the primary record of the same read, or NULL if it is not there. */
void base_mods_fix_other(struct draft *draft, const struct draft *primary);

#endif
