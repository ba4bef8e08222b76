/*
 * deflate.h -- deflates payloads of BGZF blocks that hold BAM records.
 *
 * The encoder knows the fields of a record, looks at the nearest place with the same bytes only,
 * and repairs its choices when it takes the next match (matches.h). It writes deflate as of RFC
 * 1951, which depends on payload and level only, on every processor. It deflates other bytes, too.
 *
 * Ownership and threads: a deflater, of 600 KiB, is used by one thread at a time; the caller owns
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
