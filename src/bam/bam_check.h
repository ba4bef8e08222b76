/*
 * bam_check.h -- is a raw record sound?
 *
 * Every record is checked once, when it is read, and again when it comes back from temporary data:
 * a checksum says that these are what was written, not who wrote them. All other code relies on
 * what bam_record_check has found, and on nothing else. Tags are not checked; bam_aux.h reads them
 * safely whatever they say.
 *
 * The function is pure and may be called from any thread.
 */
#ifndef ROCKSORT_BAM_BAM_CHECK_H
#define ROCKSORT_BAM_BAM_CHECK_H

#include <stdint.h>

/*
 * Checks that the fields of a whole record agree with its size, with each other and with a header
 * of n_refs references. Returns NULL if so, else a few words on what is wrong (record_problem.h).
 */
const char *bam_record_check(const uint8_t *rec, int32_t n_refs);

#endif
