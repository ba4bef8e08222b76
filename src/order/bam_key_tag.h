/*
 * bam_key_tag.h -- the first part of the keys of -t TAG: the value of a tag as ordered bytes.
 *
 * The order is: records without the tag; then characters (A), arrays (B, all of them equal), text
 * (Z and H together, by strcmp), numbers. Numbers of any width compare by value, integers with
 * floats, too; -0.0 equals 0.0. A NaN comes behind all other numbers, and all NaNs are equal;
 * samtools leaves them wherever its merge sort happens to put them.
 *
 * Of several tags with the same letters the first counts. A tag that lies in or behind damaged
 * bytes counts as missing. A CG tag that holds a long CIGAR is there, while samtools, which has
 * moved the CIGAR to its place when it sorts, misses it.
 *
 * Equal values have equal bytes, and none are the beginning of others: the caller appends the
 * secondary key. The function is pure and may be called from any thread; it cannot fail.
 */
#ifndef ROCKSORT_ORDER_BAM_KEY_TAG_H
#define ROCKSORT_ORDER_BAM_KEY_TAG_H

#include "bam/bam_fields.h"

enum { KEY_TAG_EXTRA_BYTES = 10 };      /* the encoding has at most so many more than the value */

/*
 * Writes the encoding of the tag's value in a checked record to out and returns its size. out may
 * be NULL to learn the size alone.
 */
size_t bam_key_tag_encode(const char tag[2], const uint8_t *rec, uint8_t *out);

#endif
