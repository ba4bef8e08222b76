/*
 * deflate.h -- deflates payloads of BGZF blocks that hold BAM records.
 *
 * The encoder knows the fields of a record, tries only the nearest place with the same bytes, and
 * repairs its choices when it takes the next match (matches.h). It writes standard deflate (RFC
 * 1951). The output depends only on payload and level, not on the processor. The encoder also
 * accepts other data.
 *
 * Ownership and threads: one thread at a time uses a deflater, which takes 600 KiB; the caller owns
 * the buffers.
 */
#ifndef ROCKSORT_DEFLATE_DEFLATE_H
#define ROCKSORT_DEFLATE_DEFLATE_H

#include <stddef.h>
#include <stdint.h>

struct deflater;

enum { DEFLATE_FASTEST = 1, DEFLATE_USUAL = 2, DEFLATE_SMALLEST = 4 };      /* levels */

/* The caller frees it. */
struct deflater *deflater_create(int level);

/* Deflates n_bytes, at most 65,535, into `out`. Returns the size, or 0 if `room` is too small. */
size_t deflater_run(struct deflater *deflater, const uint8_t *payload, size_t n_bytes,
                    uint8_t *out, size_t room);

#endif
