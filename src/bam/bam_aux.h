/*
 * bam_aux.h -- tags (auxiliary fields) of raw records, read in place.
 *
 * A raw record (bam_fields.h) ends in tags: two letters, a type, a value (SAM specification,
 * section 4.2.4). bam_record_check does not check the tags. So every function here stays within the
 * record whatever bytes it has. A tag whose value does not fit into the record is damaged, and no
 * tag after it can be read.
 *
 * All functions are pure and may be called from any thread. Pointers point into the record.
 */
#ifndef ROCKSORT_BAM_BAM_AUX_H
#define ROCKSORT_BAM_BAM_AUX_H

#include "bam/bam_fields.h"

struct bam_aux {
    const uint8_t *start;       /* first of the two letters */
    char type;                  /* A c C s S i I f d Z H B */
    const uint8_t *value;       /* after the type; for B: subtype, count and elements */
    size_t value_bytes;         /* for Z and H with the NUL */
};

/*
 * Reads the tag at *at and moves *at to the next one. *at starts as bam_record_tags(rec). Returns
 * 1, 0 at the end of the record, or -1 if the tag is damaged.
 */
int bam_aux_next(const uint8_t *rec, const uint8_t **at, struct bam_aux *aux);

/* The same for tags that end before `end`, wherever they are. */
int bam_aux_next_before(const uint8_t *end, const uint8_t **at, struct bam_aux *aux);

/* Finds the first tag with these two letters. Returns 1, 0 if there is none, or -1 if a damaged tag
   comes first. */
int bam_aux_find(const uint8_t *rec, const char tag[2], struct bam_aux *aux);

enum { BAM_AUX_ARRAY_HEAD_BYTES = 5 };  /* of the value of type B: subtype and count */

/* Stores the value of a tag of an integer type. Returns false if it has another type. */
bool bam_aux_integer(const struct bam_aux *aux, int64_t *value);

/* Writes type and value of a number, in the type that htslib takes and in at_least_bytes (0 to 4),
   and returns the end. It needs room for 5 bytes. */
uint8_t *bam_aux_put_count(uint8_t *out, uint32_t value, size_t at_least_bytes);

#endif
