/*
 * deflate.h -- deflates payloads of BGZF blocks that hold BAM records.
 *
 * A library that knows nothing of what it deflates follows long chains of places with the same hash.
 * This encoder knows where the fields of a record are, looks at the nearest place only, and repairs
 * its choices when it takes the next match (matches.h). What it writes is deflate as of RFC 1951,
 * which depends on payload and level only, on every processor. It deflates other bytes, too.
 *
 * Ownership and threads: a deflater, of 1.2 MB, is used by one thread at a time; the caller owns the
 * buffers.
 */
#ifndef ROCKSORT_DEFLATE_DEFLATE_H
#define ROCKSORT_DEFLATE_DEFLATE_H

#include <stddef.h>
#include <stdint.h>

struct deflater;

/* Levels, from the fastest to the one that makes the smallest files. */
enum { DEFLATE_FASTEST = 1, DEFLATE_USUAL = 2, DEFLATE_SMALLEST = 4 };

struct deflater *deflater_create(int level);

/* Accepts NULL. */
void deflater_destroy(struct deflater *deflater);

/* Deflates n_bytes, at most 65,535, into `out`. Returns the size, or 0 if `room` is too small. */
size_t deflater_run(struct deflater *deflater, const uint8_t *payload, size_t n_bytes,
                    uint8_t *out, size_t room);

#endif
