/*
 * bam_convert.h -- converts raw records to and from htslib's bam1_t.
 *
 * In a bam1_t a long CIGAR is in the CIGAR field, as htslib's reader and writer of BAM expect, and
 * coordinates have 64 bits. bam_long.h says how raw records hold long CIGARs and long coordinates.
 *
 * The caller owns all memory; the data of a bam1_t are allocated as in htslib. Any thread, on
 * different records.
 */
#ifndef ROCKSORT_BAM_BAM_CONVERT_H
#define ROCKSORT_BAM_BAM_CONVERT_H

#include <htslib/sam.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Writes the record in raw form at offset `at` of a growing buffer of *room bytes. Returns NULL, or
 * the reason if the record has no raw form: a coordinate beyond 2^31 - 1 without long_positions;
 * more than 65,535 CIGAR operations that cover 2^28 bases or more; a size of 2^31 bytes or more.
 */
const char *bam_record_put(const bam1_t *b, bool long_positions, uint8_t **buffer, size_t *room,
                           size_t at);

/*
 * Unpacks a checked record of at most 2^31 - 1 bytes into b, whose data grow as needed. Like
 * htslib's reader, it moves a CIGAR from a CG tag to the CIGAR field and computes the bin.
 */
void bam_record_unpack(const uint8_t *rec, bam1_t *b);

#endif
