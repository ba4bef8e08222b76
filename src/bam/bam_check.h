/*
 * bam_check.h -- is a raw record sound?
 *
 * Every record is checked when it is read from the input, and again when it comes back from
 * temporary data, whose checksum does not prove that rocksort wrote them. All other code relies on
 * these checks and on nothing else. Tags are not checked; bam_aux.h reads them safely.
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

/* The same for a record of an input. Without long_positions it has no long tag (bam_long.h):
   whoever made a file with such a tag meant to deceive. */
const char *bam_record_check_input(const uint8_t *rec, int32_t n_refs, bool long_positions);

/*
 * Walks the records in a part of BAM before it is known where its first record begins. The guess is
 * the first place where a plausible record lies; the part is walked from there. Later another walk
 * begins where the first record really begins. If it reaches the place of the guess, both walks go
 * on alike, and the rest need not be walked again, for which it would have to come back into the
 * cache. If it does not, the guess was wrong and is not used.
 */
struct speculative_scan {
    size_t from;                /* offset in the span of the first record */
    size_t to;                  /* of the end of the last whole record; equal to `from`: no guess */
    size_t n_records;
};

/* Walks the n_bytes of a span. */
void speculative_scan_make(struct speculative_scan *guess, const uint8_t *span, size_t n_bytes);

/* True if the walk, which goes through the span, has come to where the guess begins. */
static inline bool speculative_scan_is_met(const struct speculative_scan *guess,
                                           const uint8_t *span, const struct bam_walk *walk)
{
    return walk->at == span + guess->from && guess->n_records > 0;
}

/* Walks on to the end, by the guess where the walk meets it. Returns the number of whole records.
   */
size_t speculative_scan_go(const struct speculative_scan *guess, const uint8_t *span,
                           struct bam_walk *walk);

#endif
