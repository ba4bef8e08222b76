/*
 * cram_check.h -- checks whether htslib's CRAM encoder can take a record.
 *
 * The encoder relies on sound tags: it reads past the end of a record whose last tag has no end
 * (1.16), and drops tags after a NUL. It also refuses some records that BAM can hold; it does so
 * later, in another thread, without saying which record. So records are checked before they are
 * given to the encoder.
 *
 * The function is pure and may be called from any thread.
 */
#ifndef ROCKSORT_OUTPUT_CRAM_CHECK_H
#define ROCKSORT_OUTPUT_CRAM_CHECK_H

#include <stdint.h>

/* Checks a record that bam_record_check has accepted. Returns NULL, or what CRAM cannot hold, for a
   message: "its tags are damaged". */
const char *cram_record_check(const uint8_t *rec);

#endif
