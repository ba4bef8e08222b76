/*
 * bam_long.h -- what is too long for the fields of a raw record, and where it stands instead.
 *
 * Long CIGARs. The CIGAR field counts its operations with 16 bits. The SAM specification (section
 * 4.2.2) stores a CIGAR of more than 65,535 operations in a tag CG:B,I. The CIGAR field then holds
 * "<n_bases>S<length on the reference>N" as a placeholder.
 *
 * Long coordinates. BAM cannot hold coordinates beyond 2^31 - 1, but SAM can. Records with such
 * coordinates go from SAM to SAM. In raw form the field of such a coordinate holds INT32_MAX, and a
 * tag of our own at the end of the record, the long tag, has the true values. Its name is of bytes
 * that no sound file has in the name of a tag.
 *
 * Records are checked ones (bam_check.h), but for bam_check.c itself, which calls these functions
 * once it knows that the fields agree with the size of the record.
 *
 * All functions are pure and may be called from any thread.
 */
#ifndef ROCKSORT_BAM_BAM_LONG_H
#define ROCKSORT_BAM_BAM_LONG_H

#include "bam/bam_aux.h"

/* ---- long CIGARs ---- */

struct bam_cigar {
    const uint8_t *ops;         /* 4 bytes each */
    size_t n_ops;
};

enum { BAM_CG_TAG_BYTES = 8 };  /* what stands before the operations: C G B I and a 32-bit count */

/*
 * True if the CIGAR field is a placeholder for a CIGAR in a CG tag, should the record have one. As
 * in htslib, only a record with a place on the reference can have one, whatever its flags say.
 */
static inline bool bam_record_has_placeholder(const uint8_t *rec)
{
    if (bam_record_n_ops(rec) == 0) return false;
    uint32_t first = bam_record_u32(bam_record_ops(rec));
    return bam_cigar_op(first) == BAM_CSOFT_CLIP &&
           bam_cigar_oplen(first) == (uint32_t)bam_record_n_bases(rec) &&
           bam_record_tid(rec) >= 0 && bam_record_pos(rec) >= 0;
}

/* The CIGAR of a record whose first CG tag is *cg (NULL or of type 0: it has none): the CIGAR
   field, or the tag's value where the field is a placeholder and the tag can hold a CIGAR. */
struct bam_cigar bam_record_cigar(const uint8_t *rec, const struct bam_aux *cg);

/* ---- long coordinates ---- */

enum { BAM_LONG_TAG_BYTES = 8 + 3 * 8 };    /* name, type and count; three values */

/* Writes the long tag to out and returns its end. */
uint8_t *bam_long_tag_put(uint8_t *out, int64_t pos, int64_t mate_pos, int64_t template_length);

/* True if the record ends in the long tag. A record of a file that does was made to deceive. */
bool bam_record_is_long(const uint8_t *rec);

/* False if the record ends in a long tag with positions that SAM cannot have. */
bool bam_record_long_is_sound(const uint8_t *rec);

/* The coordinates, 0-based, from the long tag where a field refers to it. */
int64_t bam_record_true_pos(const uint8_t *rec);
int64_t bam_record_true_mate_pos(const uint8_t *rec);
int64_t bam_record_true_template_length(const uint8_t *rec);

/* Index of the first reference that is longer than BAM can say, 2^31 - 1; -1 if there is none. */
int32_t bam_header_long_reference(const sam_hdr_t *header);

#endif
