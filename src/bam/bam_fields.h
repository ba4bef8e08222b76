/*
 * bam_fields.h -- reads the fields of alignment records in their raw, uncompressed BAM form.
 *
 * Throughout rocksort a record is a pointer to its bytes as a BAM file holds them (SAM
 * specification, section 4.2): a little-endian 32-bit block_size, then block_size bytes: 32 bytes
 * of fixed fields, the NUL-terminated read name, CIGAR, sequence, qualities, tags. htslib's bam1_t
 * is used only where htslib parses or prints SAM and CRAM.
 *
 * Order of calls: first bam_walk_next, or the reader of a file, makes sure that a record is whole;
 * then bam_record_check (bam_check.h) that its fields agree with its size. Only then the functions
 * under "fields of variable length" may be called.
 *
 * Pure; any thread. Pointers need no alignment.
 */
#ifndef ROCKSORT_BAM_BAM_FIELDS_H
#define ROCKSORT_BAM_BAM_FIELDS_H

#include "util/byte_order.h"

#include <htslib/sam.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    BAM_RECORD_FIXED_BYTES = 36,   /* block_size itself and the fixed fields */
    BAM_RECORD_MIN_BYTES = 37,     /* with the NUL of an empty read name */
};

/* Offsets of the fields that are overwritten in place. */
enum {
    BAM_TID_AT = 4,
    BAM_POS_AT = 8,
    BAM_NAME_BYTES_AT = 12,
    BAM_MAPQ_AT = 13,
    BAM_BIN_AT = 14,
    BAM_N_OPS_AT = 16,
    BAM_FLAG_AT = 18,
    BAM_MATE_TID_AT = 24,
    BAM_MATE_POS_AT = 28,
    BAM_TEMPLATE_LENGTH_AT = 32,
};

/* ---- fixed fields ---- */

/* Size of the whole record in bytes, block_size field included. */
static inline size_t bam_record_bytes(const uint8_t *rec)
{
    return (size_t)get_u32(rec) + 4;
}

/* Iterates over whole records that follow each other in memory. The caller may shorten a record
   before it asks for the next one. */
struct bam_records {
    const uint8_t *at, *to;
};

static inline const uint8_t *bam_records_next(struct bam_records *records)
{
    const uint8_t *rec = records->at;
    if (rec >= records->to) return NULL;
    records->at += bam_record_bytes(rec);
    return rec;
}

static inline int32_t bam_record_tid(const uint8_t *rec)
{
    return (int32_t)get_u32(rec + 4);
}

static inline int32_t bam_record_pos(const uint8_t *rec)
{
    return (int32_t)get_u32(rec + BAM_POS_AT);
}

/* Length of the read name, including its NUL. */
static inline size_t bam_record_name_bytes(const uint8_t *rec)
{
    return rec[BAM_NAME_BYTES_AT];
}

/* Number of operations in the CIGAR field. */
static inline size_t bam_record_n_ops(const uint8_t *rec)
{
    return get_u16(rec + BAM_N_OPS_AT);
}

static inline uint32_t bam_record_flag(const uint8_t *rec)
{
    return get_u16(rec + BAM_FLAG_AT);
}

/* Number of bases in the sequence. Negative only before bam_record_check. */
static inline int32_t bam_record_n_bases(const uint8_t *rec)
{
    return (int32_t)get_u32(rec + 20);
}

static inline int32_t bam_record_mate_tid(const uint8_t *rec)
{
    return (int32_t)get_u32(rec + 24);
}

static inline int32_t bam_record_mate_pos(const uint8_t *rec)
{
    return (int32_t)get_u32(rec + BAM_MATE_POS_AT);
}

static inline int32_t bam_record_template_length(const uint8_t *rec)
{
    return (int32_t)get_u32(rec + BAM_TEMPLATE_LENGTH_AT);
}

/* ---- fields of variable length ---- */

static inline const uint8_t *bam_record_name(const uint8_t *rec)
{
    return rec + BAM_RECORD_FIXED_BYTES;
}

/* The CIGAR field, 4 bytes an operation. For a CIGAR that is too long for it see bam_long.h. */
static inline const uint8_t *bam_record_ops(const uint8_t *rec)
{
    return bam_record_name(rec) + bam_record_name_bytes(rec);
}

/* The sequence, two bases a byte. */
static inline const uint8_t *bam_record_seq(const uint8_t *rec)
{
    return bam_record_ops(rec) + 4 * bam_record_n_ops(rec);
}

/* The qualities, one byte a base. */
static inline const uint8_t *bam_record_quals(const uint8_t *rec)
{
    return bam_record_seq(rec) + ((size_t)bam_record_n_bases(rec) + 1) / 2;
}

/* The tags (bam_aux.h), which take the rest of the record. */
static inline const uint8_t *bam_record_tags(const uint8_t *rec)
{
    return bam_record_quals(rec) + (size_t)bam_record_n_bases(rec);
}

/* The first byte after the record. */
static inline const uint8_t *bam_record_end(const uint8_t *rec)
{
    return rec + bam_record_bytes(rec);
}

/* ---- records one after another in memory ---- */

/* Iterates over unchecked records in memory that may end within a record. Starts as {from, end};
   bam_walk_next returns each whole record, then NULL. */
struct bam_walk {
    const uint8_t *at, *end;    /* at: the end of the last whole record */
    size_t claimed_bytes;       /* of the record at `at`; 0 if not even its size field is whole */
    bool is_damaged;            /* the record at `at` claims an impossible size, or is a BAM file
                                   that was appended with cat */
};

/* The first bytes of a BAM file and of a BGZF block, read as the size of a record with its size
   field. */
enum { BAM_MAGIC_AS_SIZE = 0x014d4142 + 4, BGZF_MAGIC_AS_SIZE = 0x04088b1f + 4 };

static inline bool bam_size_is_magic(size_t claimed_bytes)
{
    return claimed_bytes == BAM_MAGIC_AS_SIZE || claimed_bytes == BGZF_MAGIC_AS_SIZE;
}

/* True if a BAM file, compressed or not, begins here instead of a record. A record may have the
   same size, but is very unlikely to have the same other fields. */
static inline bool bam_begins_file(const uint8_t *at, size_t n_left)
{
    enum { MOST_NAME_BYTES = 1024 };
    if (n_left < 12 || !bam_size_is_magic(bam_record_bytes(at))) return false;
    if (bam_record_bytes(at) == BGZF_MAGIC_AS_SIZE)
        return n_left >= 14 && memcmp(at + 12, "BC", 2) == 0;
    uint32_t text_bytes = get_u32(at + 4), n_refs = get_u32(at + 8);
    if (text_bytes > 0) return at[8] == '@' && at[11] == '\t';
    return n_refs == 0 || (n_left >= 16 && get_u32(at + 12) <= MOST_NAME_BYTES);
}

/* The rare part of bam_walk_next. */
static inline bool bam_large_is_damaged(const uint8_t *rec, size_t n_left)
{
    return bam_record_bytes(rec) > INT32_MAX || bam_begins_file(rec, n_left);
}

static inline const uint8_t *bam_walk_next(struct bam_walk *walk)
{
    enum { LARGE_BYTES = 16 << 20 };
    const uint8_t *rec = walk->at;
    size_t n_left = (size_t)(walk->end - rec);
    walk->claimed_bytes = n_left >= 4 ? bam_record_bytes(rec) : 0;
    if (n_left < 4) return NULL;
    walk->is_damaged = walk->claimed_bytes < BAM_RECORD_FIXED_BYTES ||
                       (walk->claimed_bytes > LARGE_BYTES && bam_large_is_damaged(rec, n_left));
    if (walk->is_damaged || walk->claimed_bytes > n_left) return NULL;
    walk->at += walk->claimed_bytes;
    return rec;
}

#endif
