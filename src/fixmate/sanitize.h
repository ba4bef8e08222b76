/*
 * sanitize.h -- corrects contradictory fields of a record, as `samtools fixmate -z` and `samtools
 * view -z` of 1.24 do.
 *
 * Threads: any, on different drafts.
 */
#ifndef ROCKSORT_FIXMATE_SANITIZE_H
#define ROCKSORT_FIXMATE_SANITIZE_H

#include "fixmate/draft.h"

/* What is corrected, with the keywords of -z. */
enum {
    SANITIZE_POS = 1,           /* pos: without a reference there is no position */
    SANITIZE_MQUAL = 2,         /* mqual: an unmapped read has mapping quality 0 */
    SANITIZE_UNMAP = 4,         /* unmap: without a place on a reference a read is unmapped */
    SANITIZE_CIGAR = 8,         /* cigar: unmapped reads have none; it ends with the reference */
    SANITIZE_AUX = 16,          /* aux: unmapped reads have no NM, MD, CG and SM */
    SANITIZE_CIGDUP = 32,       /* cigdup: adjacent equal operations become one */
    SANITIZE_CIGARX = 64,       /* cigarx: = and X become M; with cigdup */
    SANITIZE_ON = SANITIZE_MQUAL | SANITIZE_UNMAP | SANITIZE_CIGAR | SANITIZE_AUX,
    SANITIZE_ALL = SANITIZE_ON | SANITIZE_POS | SANITIZE_CIGDUP,
};

/* Parses a comma-separated list of these keywords and of all, on, off, none and *. Returns the
   flags, or -1 if `text` has another word. */
int sanitize_parse(const char *text);

/* Corrects a draft. reference_bases is the length of the draft's reference, 0 if it has none.
   Returns NULL, or why that is impossible (record_problem.h). */
const char *sanitize_draft(struct draft *draft, unsigned flags, int64_t reference_bases);

#endif
