/*
 * bam_long.h -- stores CIGARs and coordinates that are too long for the fields of a raw record.
 *
 * Long CIGARs. The CIGAR field counts its operations with 16 bits. The SAM specification (section
 * 4.2.2) stores a CIGAR of more than 65,535 operations in a tag CG:B,I. The CIGAR field then holds
 * "<n_bases>S<length on the reference>N" as a placeholder.
 *
 * Long coordinates. BAM cannot hold coordinates beyond 2^31 - 1, but SAM can; records with such
 * coordinates can only be sorted from SAM to SAM. In raw form the field of such a coordinate holds
 * INT32_MAX, and a tag of our own at the end of the record, the long tag, has the true values. Its
 * name is not valid in a file.
 *
 * Records must be checked (bam_check.h; bam_check.c itself calls these functions once the fields
 * agree with the record's size). Any thread; pure, except bam_record_restore_cigar.
 */
#ifndef ROCKSORT_BAM_BAM_LONG_H
#define ROCKSORT_BAM_BAM_LONG_H

#include "bam/bam_aux.h"
#include "util/byte_order.h"

/* ---- long CIGARs ---- */

struct bam_cigar {
    const uint8_t *ops;         /* 4 bytes each */
    size_t n_ops;
};

/* Returns the number of bases of the reference that a CIGAR covers. Does not branch on the
   operation, which would be mispredicted in long reads. */
static inline int64_t bam_cigar_reference_bases(struct bam_cigar cigar)
{
    int64_t n_bases = 0;
    for (const uint8_t *at = cigar.ops; at < cigar.ops + 4 * cigar.n_ops; at += 4) {
        uint32_t op = get_u32(at);
        n_bases += (int64_t)bam_cigar_oplen(op) * (bam_cigar_type(bam_cigar_op(op)) >> 1);
    }
    return n_bases;
}

/* A walk through the operations of a CIGAR: for (walk = bam_cigar_walk(...);
   bam_cigar_next(&walk);). */
struct bam_cigar_walk {
    const uint8_t *next, *end;
    int op, type;               /* of the current operation: BAM_CMATCH ..., bam_cigar_type */
    int64_t n;                  /* its length */
    int64_t at, pos;            /* where it begins, in the read and on the reference */
};

static inline struct bam_cigar_walk bam_cigar_walk(struct bam_cigar cigar, int64_t pos)
{
    return (struct bam_cigar_walk){.next = cigar.ops, .end = cigar.ops + 4 * cigar.n_ops,
                                   .pos = pos};
}

/* Goes to the next operation, at first to the first one. Returns false after the last one. */
static inline bool bam_cigar_next(struct bam_cigar_walk *walk)
{
    enum { CONSUMES_READ = 1, CONSUMES_REFERENCE = 2 };         /* see bam_cigar_type */
    if (walk->type & CONSUMES_READ) walk->at += walk->n;
    if (walk->type & CONSUMES_REFERENCE) walk->pos += walk->n;
    if (walk->next == walk->end) return false;
    uint32_t op = get_u32(walk->next);
    walk->next += 4;
    walk->op = (int)bam_cigar_op(op);
    walk->type = bam_cigar_type(walk->op);
    walk->n = bam_cigar_oplen(op);
    return true;
}

/* The extent of an alignment, in bases, and the clips at the ends of the read. */
struct bam_extent {
    int64_t reference;          /* covered */
    int64_t soft[2], hard[2];   /* clipped at the beginning and at the end */
};

struct bam_extent bam_cigar_extent(struct bam_cigar cigar);

/* The same for a CIGAR as text, which may be any text and ends at a '*'. As in samtools, an
   operation without a length counts 1, and each clip after the first base on the reference is at
   the end. */
struct bam_extent bam_cigar_text_extent(const char *text);

enum { BAM_CG_TAG_BYTES = 8 };  /* before the operations: C G B I and a 32-bit count */

/* True if the CIGAR field looks like a placeholder, which it is if the record also has a CG tag. As
   in htslib, the record must have a reference and a position, whatever its flags are. */
static inline bool bam_record_has_placeholder(const uint8_t *rec)
{
    if (bam_record_n_ops(rec) == 0) return false;
    uint32_t first = get_u32(bam_record_ops(rec));
    return bam_cigar_op(first) == BAM_CSOFT_CLIP &&
           bam_cigar_oplen(first) == (uint32_t)bam_record_n_bases(rec) &&
           bam_record_tid(rec) >= 0 && bam_record_pos(rec) >= 0;
}

/* Returns the CIGAR of a record: the value of *cg, its first CG tag, if the CIGAR field is a
   placeholder and the tag can hold a CIGAR; else the CIGAR field. Without a CG tag, cg is NULL or
   its type is 0. */
struct bam_cigar bam_record_cigar(const uint8_t *rec, const struct bam_aux *cg);

/* The same; looks for the CG tag. The type of *cg is 0 unless it holds the CIGAR. */
struct bam_cigar bam_record_find_cigar(const uint8_t *rec, struct bam_aux *cg);

/* Moves a CIGAR of at most 65,535 operations from the CG tag to the CIGAR field, in place, as
   samtools does when it reads. Returns the new size of the record. */
size_t bam_record_restore_cigar(uint8_t *rec);

/* ---- long coordinates ---- */

enum { BAM_LONG_TAG_BYTES = 8 + 3 * 8 };    /* name, type and count; three values */

/* Writes the long tag to out and returns its end. */
uint8_t *bam_long_tag_put(uint8_t *out, int64_t pos, int64_t mate_pos, int64_t template_length);

/* True if the record ends in the long tag, which only records in memory and in temporary data may
   have. */
bool bam_record_is_long(const uint8_t *rec);

/* Returns the end of the tags without the long tag: new tags go there. */
const uint8_t *bam_record_tags_end(const uint8_t *rec);

/* False if the record ends in a long tag with positions that SAM cannot have. */
bool bam_record_long_is_sound(const uint8_t *rec);

/* The true coordinates; positions are 0-based. If a field holds INT32_MAX and the record ends in
   the long tag, the value is that of the tag. */
int64_t bam_record_true_pos(const uint8_t *rec);
int64_t bam_record_true_mate_pos(const uint8_t *rec);
int64_t bam_record_true_template_length(const uint8_t *rec);

/* Returns the index of the first reference longer than 2^31 - 1, BAM's limit; -1 if there is none.
   */
int32_t bam_header_long_reference(const sam_hdr_t *header);

#endif
