/*
 * bam_record.h -- alignment records in their raw, uncompressed BAM form.
 *
 * Throughout rocksort a record is a pointer to its bytes as a BAM file holds them (SAM
 * specification, section 4.2): a little-endian 32-bit block_size, then block_size bytes: 32 bytes
 * of fixed fields, the NUL-terminated read name, CIGAR, sequence, qualities, tags. Records are
 * never unpacked on the BAM-to-BAM path; bam1_t appears only where htslib parses or prints (SAM and
 * CRAM).
 *
 * All functions are pure and may be called from any thread. Pointers need no alignment.
 */
#ifndef ROCKSORT_BAM_BAM_RECORD_H
#define ROCKSORT_BAM_BAM_RECORD_H

#include <htslib/sam.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    BAM_RECORD_FIXED_BYTES = 36,   /* block_size itself and the fixed fields */
    BAM_RECORD_MIN_BYTES = 37,     /* ... and an empty read name with its NUL */
};

static inline uint32_t bam_record_u32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline uint32_t bam_record_u16(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

/* Size of the whole record in bytes, block_size field included. */
static inline size_t bam_record_bytes(const uint8_t *rec)
{
    return (size_t)bam_record_u32(rec) + 4;
}

static inline int32_t bam_record_tid(const uint8_t *rec)
{
    return (int32_t)bam_record_u32(rec + 4);
}

static inline int32_t bam_record_pos(const uint8_t *rec)
{
    return (int32_t)bam_record_u32(rec + 8);
}

/* Length of the read name, its NUL included. */
static inline size_t bam_record_name_bytes(const uint8_t *rec)
{
    return rec[12];
}

static inline uint32_t bam_record_flag(const uint8_t *rec)
{
    return bam_record_u16(rec + 18);
}

static inline const uint8_t *bam_record_name(const uint8_t *rec)
{
    return rec + BAM_RECORD_FIXED_BYTES;
}

/*
 * Checks that the fields of a complete record agree with its size and with a header of n_refs
 * references. Returns NULL if so, else a few words on what is wrong.
 */
const char *bam_record_check(const uint8_t *rec, int32_t n_refs);

/*
 * The number of bytes that b takes in raw form, or 0 if BAM cannot hold it (a coordinate beyond
 * 2^31 - 1; a CIGAR of more than 65,535 operations that covers 2^28 bases or more). CIGARs of more
 * than 65,535 operations are counted as the CG tag that holds them.
 */
size_t bam_record_packed_bytes(const bam1_t *b);

/* Writes b to out, which has room for bam_record_packed_bytes(b) bytes. */
void bam_record_pack(const bam1_t *b, uint8_t *out);

/*
 * Records that BAM cannot hold because a coordinate lies beyond 2^31 - 1: they go from SAM to SAM.
 * In raw form such a coordinate's field holds INT32_MAX, and a tag of our own at the record's end
 * has the true values.
 *
 * The size of b in this form; 0 if b needs no such thing or cannot be held even so. pack_long
 * writes it.
 */
size_t bam_record_long_bytes(const bam1_t *b);
void bam_record_pack_long(const bam1_t *b, uint8_t *out);

/* True if the record ends in that tag: a file that has it was made to deceive. */
bool bam_record_is_long(const uint8_t *rec);

/* Index of the first reference that is longer than BAM can say, 2^31 - 1; -1 if there is none. */
int32_t bam_header_long_reference(const sam_hdr_t *header);

/* The true coordinates of a record in either form, 0-based. */
int64_t bam_record_true_pos(const uint8_t *rec);
int64_t bam_record_true_mate_pos(const uint8_t *rec);

/*
 * Unpacks a checked record, in either form, into b, whose data buffer is grown as needed, and moves
 * a CIGAR from a CG tag back to its place, as htslib does on reading. Returns 0, or -1 without
 * memory.
 */
int bam_record_unpack(const uint8_t *rec, bam1_t *b);

#endif
