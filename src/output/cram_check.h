/*
 * cram_check.h -- checks whether htslib's CRAM encoder can take a record.
 *
 * The encoder does not validate tags: it reads past the end of a record whose last tag is not
 * terminated (1.16), and drops tags after a NUL. It refuses some valid BAM records, but later, in
 * another thread, without naming the record. So records are checked before they are encoded.
 *
 * htslib refuses a record whose NM tag is not a number only if its bases equal the reference. Such
 * a record is accepted here; the name of one is kept for the message if htslib fails.
 *
 * Threads: any.
 */
#ifndef ROCKSORT_OUTPUT_CRAM_CHECK_H
#define ROCKSORT_OUTPUT_CRAM_CHECK_H

#include <stdatomic.h>
#include <stdint.h>

/* A read that htslib may refuse; starts as {0}. */
struct cram_doubt {
    atomic_int state;           /* see cram_check.c */
    char read[256];
    char type;                  /* of its NM tag */
};

/* Checks a record that bam_record_check has accepted. Returns NULL, or the problem for a message:
   "its tags are damaged". */
const char *cram_record_check(const uint8_t *rec, struct cram_doubt *doubt);

/* Returns the name of the read that htslib may refuse, and in *type the type of its NM tag, or
   NULL. */
const char *cram_doubt_read(const struct cram_doubt *doubt, char *type);

#endif
