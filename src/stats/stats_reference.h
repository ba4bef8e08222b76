/*
 * stats_reference.h -- reads the reference of --stats='-r FASTA' (an indexed FASTA file, which may
 * be compressed by bgzip).
 *
 * One thread at a time for each struct; each holds a window of 256 KiB, or of what is asked
 * for if that is more. Errors: NULL or -1 after a message.
 */
#ifndef ROCKSORT_STATS_STATS_REFERENCE_H
#define ROCKSORT_STATS_STATS_REFERENCE_H

#include <htslib/sam.h>
#include <stdint.h>

struct stats_reference;

/* Opens the file, which must have all references of the header, and makes its index if there is
   none. Keeps the path and the header. */
struct stats_reference *stats_reference_open(const char *path, sam_hdr_t *header);

/* Returns the length of a reference in the file. */
int64_t stats_reference_bases(const struct stats_reference *reference, int32_t tid);

/* Returns the bases from `begin` on, at least up to `end`: 1, 2, 4 or 8 for A, C, G or T, and 0 for
   others and outside of the reference. Valid until the next call. NULL after a message. */
const uint8_t *stats_reference_read(struct stats_reference *reference, int32_t tid, int64_t begin,
                                    int64_t end);

void stats_reference_close(struct stats_reference *reference);

#endif
