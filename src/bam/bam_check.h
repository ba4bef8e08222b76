/*
 * bam_check.h -- validates raw records.
 *
 * Every record is checked when it is read from the input, and again when it comes back from
 * temporary data, whose checksum does not prove that rocksort wrote them. All other code relies on
 * these checks only. They leave out tags; bam_aux.h reads these safely.
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

#endif
