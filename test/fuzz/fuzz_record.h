/*
 * fuzz_record.h -- makes raw BAM records from the bytes of the fuzzer. Most are sound and have the
 * tags and texts that keys are made of, so that the fuzzer need not find out what a record is. Some
 * have a field with a wrong value.
 */
#ifndef ROCKSORT_FUZZ_RECORD_H
#define ROCKSORT_FUZZ_RECORD_H

#include "fuzz_input.h"

#include "order/bam_key_template.h"

#include <htslib/sam.h>

enum { FUZZ_N_REFS = 3, FUZZ_MAX_RECORD = 1 << 15 };

/* References a (1000), b (2^29), c (2^31 - 1 bases), two libraries, programs. */
extern const char fuzz_header_text[];

/* The read groups of that header. */
struct bam_key_template *fuzz_template_ends(void);

/* Makes a record of at most FUZZ_MAX_RECORD bytes at out; returns its size. */
size_t fuzz_make_record(struct fuzz_input *in, uint8_t *out);

#endif
