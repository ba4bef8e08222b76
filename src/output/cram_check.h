/*
 * cram_check.h -- checks whether htslib's CRAM encoder can take a record.
 *
 * The encoder relies on sound tags: it reads past the end of a record whose last tag has no end
 * (1.16), and drops tags after a NUL. It also refuses some records that BAM can hold; it does so
 * later, in another thread, without saying which record. So records are checked before they are
 * given to the encoder.
 *
 * A record with an NM tag that is no number is written if its bases differ from the reference, and
 * else htslib refuses it. So it is not refused, but one such read is remembered for the message.
 *
 * Any thread may call the functions.
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

/* Checks a record that bam_record_check has accepted. Returns NULL, or what CRAM cannot hold, for a
   message: "its tags are damaged". */
const char *cram_record_check(const uint8_t *rec, struct cram_doubt *doubt);

/* Returns the name of the read that htslib may refuse, and in *type the type of its NM tag, or
   NULL. */
const char *cram_doubt_read(const struct cram_doubt *doubt, char *type);

#endif
