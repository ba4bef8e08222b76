/*
 * bam_key_tag.h -- the first part of the keys of -t TAG: the value of a tag as ordered bytes.
 *
 * Records without the tag come first, then characters (A), arrays (B, all equal), text (Z and H
 * together, by strcmp), numbers. Numbers of all types compare by value, also integers with floats;
 * -0.0 equals 0.0. A NaN comes after all other numbers, and all NaNs are equal (samtools leaves
 * them wherever its merge sort puts them).
 *
 * If several tags have the same letters the first one counts. A tag that is damaged, or comes after
 * a damaged one, counts as missing. A CG tag counts as there even if it holds a long CIGAR, which
 * samtools has moved to its place when it sorts.
 *
 * The bytes of no value are the beginning of those of another, so a second key can be appended.
 * Pure; any thread. Nothing can fail.
 */
#ifndef ROCKSORT_ORDER_BAM_KEY_TAG_H
#define ROCKSORT_ORDER_BAM_KEY_TAG_H

#include "bam/bam_fields.h"

/*
 * Encodes the value of the tag in a checked record and returns the size of the encoding. Writes its
 * first `room` bytes to out, unless that is NULL.
 */
size_t bam_key_tag_encode(const char tag[2], const uint8_t *rec, uint8_t *out, size_t room);

/* The text of an encoded value: that of a character or a text, a number in decimal digits, "array";
   NULL for none. The caller frees it. */
char *bam_key_tag_text(const uint8_t *value, size_t n_bytes);

/* Compares the encodings of two checked records without making them: below 0, 0, above 0. */
int bam_key_tag_compare(const char tag[2], const uint8_t *a, const uint8_t *b);

#endif
