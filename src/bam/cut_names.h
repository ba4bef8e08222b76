/*
 * cut_names.h -- cuts the read names of raw records at their first NUL, and counts them.
 *
 * Some programs pad read names in BAM with NULs. htslib treats the padding as part of the name: it
 * writes NULs to SAM, and shifts the names of later reads in CRAM. So such a record is repaired
 * when it is checked, before its key and its checksum are made.
 *
 * Threads: any may call cut_names_cut, on different records; cut_names_warn after they have ended.
 */
#ifndef ROCKSORT_BAM_CUT_NAMES_H
#define ROCKSORT_BAM_CUT_NAMES_H

#include "bam/bam_fields.h"

#include <pthread.h>
#include <stdatomic.h>

struct cut_names {              /* starts as CUT_NAMES_START */
    _Atomic uint64_t n;
    _Atomic uint64_t first_record;      /* number in its input; written under the mutex */
    pthread_mutex_t mutex;
    char first_name[256];               /* under the mutex */
};

#define CUT_NAMES_START {.first_record = UINT64_MAX, .mutex = PTHREAD_MUTEX_INITIALIZER}

/* Cuts the name of a record at its first NUL, which makes the record shorter. The record has passed
   bam_record_check. `record` is its number in its input. cut NULL: does not count. */
void cut_names_cut(struct cut_names *cut, uint8_t *rec, uint64_t record);

/* If names were cut, prints a warning with their number and the first name. */
void cut_names_warn(const struct cut_names *cut);

#endif
