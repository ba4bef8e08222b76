/*
 * bam_check.h -- validates raw records.
 *
 * Every record is checked when it is read from the input, and again when it comes back from
 * temporary data, whose checksum does not prove that rocksort wrote them. All other code relies on
 * these checks only. Tags are not checked; bam_aux.h reads them safely.
 *
 * Pure; any thread.
 */
#ifndef ROCKSORT_BAM_BAM_CHECK_H
#define ROCKSORT_BAM_BAM_CHECK_H

#include "bam/bam_fields.h"

/*
 * Checks that the fields of a whole record agree with its size, with each other and with a header
 * of n_refs references. Returns NULL if they do, else a few words on what is wrong
 * (record_problem.h).
 */
const char *bam_record_check(const uint8_t *rec, int32_t n_refs);

/* The same for a record of an input. Without long_positions also rejects a long tag (bam_long.h),
   which only a forged file can contain. */
const char *bam_record_check_input(const uint8_t *rec, int32_t n_refs, bool long_positions);

/*
 * Finds the records in a span of BAM data before it is known where its first record begins. Guesses
 * that it begins at the first plausible record, and walks the records from there. A second walk
 * starts later at the real beginning. If it reaches the guess, both walks agree from there on, and
 * it skips these records, so that they need not come back into the CPU cache. Otherwise the guess
 * was wrong and is ignored.
 */
struct speculative_scan {
    size_t from;                /* offset in the span of the first record */
    size_t to;                  /* end of the last whole record; equal to `from`: no guess */
    size_t n_records;
};

/* Walks the n_bytes of a span. */
void speculative_scan_make(struct speculative_scan *guess, const uint8_t *span, size_t n_bytes);

/* True if the walk through the span has reached the guess. */
static inline bool speculative_scan_is_met(const struct speculative_scan *guess,
                                           const uint8_t *span, const struct bam_walk *walk)
{
    return walk->at == span + guess->from && guess->n_records > 0;
}

/* Walks to the end of the span, with the guess if the walk reaches it. Returns the number of whole
   records. */
size_t speculative_scan_go(const struct speculative_scan *guess, const uint8_t *span,
                           struct bam_walk *walk);

#endif
