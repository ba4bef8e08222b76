/*
 * bam_convert.h -- raw records to and from htslib's bam1_t.
 *
 * In a bam1_t even a long CIGAR is in the CIGAR field, as htslib's own reader and writer of BAM
 * expect, and coordinates have 64 bits. bam_long.h says how raw records hold long CIGARs and long
 * coordinates. To make a raw record:
 *
 *     n = bam_record_packed_bytes(b)     if n > 0: bam_record_pack(b, out)
 *     n = bam_record_long_bytes(b)       else, from SAM to SAM, if n > 0: bam_record_pack_long(...)
 *
 * If both are 0 the record has no raw form. bam_record_put does all this.
 *
 * The caller owns all memory; the data of a bam1_t are allocated as htslib does. Functions may be
 * called from any thread, on different records.
 */
#ifndef ROCKSORT_BAM_BAM_CONVERT_H
#define ROCKSORT_BAM_BAM_CONVERT_H

#include <htslib/sam.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The number of bytes that b takes in the form of BAM, or 0 if BAM cannot hold it: a coordinate
 * lies beyond 2^31 - 1; it has more than 65,535 CIGAR operations that cover 2^28 bases or more; or
 * it takes 2^31 bytes or more.
 */
size_t bam_record_packed_bytes(const bam1_t *b);

/* Writes b to out, which has room for bam_record_packed_bytes(b) bytes. */
void bam_record_pack(const bam1_t *b, uint8_t *out);

/* The same for records that hold their long coordinates in the long tag. bam_record_long_bytes
   returns 0 if b needs no such tag, or is too long even with it. */
size_t bam_record_long_bytes(const bam1_t *b);
void bam_record_pack_long(const bam1_t *b, uint8_t *out);

/*
 * Writes the record in raw form to the place `at` of a growing buffer of *room bytes. With
 * long_positions the record may lie beyond 2^31 - 1. Returns NULL; or what is wrong with the record
 * if it has no raw form.
 */
const char *bam_record_put(const bam1_t *b, bool long_positions, uint8_t **buffer, size_t *room,
                           size_t at);

/*
 * Unpacks a checked record of at most 2^31 - 1 bytes into b, whose data grow as needed. Like
 * htslib's reader, it moves a CIGAR from a CG tag to the CIGAR field and computes the bin.
 */
void bam_record_unpack(const uint8_t *rec, bam1_t *b);

#endif
