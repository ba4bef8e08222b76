/*
 * bam_key_tag.h -- encodes the value of a tag as bytes in memcmp order: the first part of the keys
 * of -t TAG.
 *
 * Records without the tag come first, then characters (A), arrays (B, all equal), text (Z and H
 * together, by strcmp), numbers. Numbers of all types compare by value, also integers with floats;
 * -0.0 equals 0.0. A NaN comes after all other numbers, and all NaNs are equal (in samtools their
 * order is undefined).
 *
 * The first tag with these letters counts. A tag that is damaged, or comes after a damaged one,
 * counts as missing. A CG tag counts even if it holds a long CIGAR; samtools has moved that CIGAR
 * to the CIGAR field before it sorts.
 *
 * Encodings are prefix-free, so a second key can be appended. Pure; any thread. Nothing can fail.
 */
#ifndef ROCKSORT_ORDER_BAM_KEY_TAG_H
#define ROCKSORT_ORDER_BAM_KEY_TAG_H

#include "bam/bam_fields.h"

/*
 * Encodes the value of the tag in a checked record and returns the size of the encoding. Writes its
 * first `room` bytes to out, unless that is NULL.
 */
size_t bam_key_tag_encode(const char tag[2], const uint8_t *rec, uint8_t *out, size_t room);

/* Returns the text of an encoded value: the character or text, the number in decimal digits, or
   "array"; NULL if the tag is missing. The caller frees it. */
char *bam_key_tag_text(const uint8_t *value, size_t n_bytes);

/* Compares the tags of two checked records like their encodings: below 0, 0, above 0. */
int bam_key_tag_compare(const char tag[2], const uint8_t *a, const uint8_t *b);

#endif
