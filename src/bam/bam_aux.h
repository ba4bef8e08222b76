/*
 * bam_aux.h -- reads the tags (auxiliary fields) of raw records in place.
 *
 * A raw record (bam_fields.h) ends in tags: two letters, a type, a value (SAM specification,
 * section 4.2.4). bam_record_check does not check them, so no function here reads beyond the
 * record. A tag whose value does not fit into the record is damaged; tags after it cannot be read.
 *
 * Pure; any thread. Pointers point into the record.
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

/* Size of a value of each type; 0 for types of variable size and for unknown types. */
extern const uint8_t bam_aux_fixed_bytes[256];

/* Returns the size of a value of type Z, H or B; 0 if it does not end before `end`, or the type is
   unknown. */
size_t bam_aux_varying_bytes(char type, const uint8_t *value, const uint8_t *end);

/*
 * Reads the tag at *at and moves *at to the next one. The tags end at `end`. Returns 1, 0 at the
 * end, or -1 if the tag is damaged. It is inline because --fixmate and --markdup each read all tags
 * of each record.
 */
static inline int bam_aux_next_before(const uint8_t *end, const uint8_t **at, struct bam_aux *aux)
{
    const uint8_t *tag = *at;
    if (tag == end) return 0;
    if (end - tag < 4) return -1;
    aux->start = tag;
    aux->type = (char)tag[2];
    aux->value = tag + 3;
    size_t n_bytes = bam_aux_fixed_bytes[tag[2]];
    if (n_bytes == 0) n_bytes = bam_aux_varying_bytes(aux->type, aux->value, end);
    if (n_bytes == 0 || n_bytes > (size_t)(end - aux->value)) return -1;
    aux->value_bytes = n_bytes;
    *at = aux->value + n_bytes;
    return 1;
}

/* The same for all tags of a record. *at starts as bam_record_tags(rec). */
static inline int bam_aux_read(const uint8_t *rec, const uint8_t **at, struct bam_aux *aux)
{
    return bam_aux_next_before(bam_record_end(rec), at, aux);
}

/* Finds the first tag with these two letters. Returns 1, 0 if there is none, or -1 if a damaged tag
   comes first. */
int bam_aux_find(const uint8_t *rec, const char tag[2], struct bam_aux *aux);

/* Finds the first tag of each of n names, up to the first damaged tag. The type of one that is
   missing is 0. Inline, so that it is compiled for the names. */
static inline void bam_aux_find_each(const uint8_t *rec, const char (*names)[2], size_t n,
                                     struct bam_aux *found)
{
    const uint8_t *at = bam_record_tags(rec);
    struct bam_aux aux;
    for (size_t i = 0; i < n; i++) found[i] = (struct bam_aux){.type = 0};
    while (bam_aux_read(rec, &at, &aux) > 0)
        for (size_t i = 0; i < n; i++)
            if (memcmp(aux.start, names[i], 2) == 0 && !found[i].type) found[i] = aux;
}

/* True if the tag has the type Z or H. */
static inline bool bam_aux_is_text(const struct bam_aux *aux)
{
    return aux->type == 'Z' || aux->type == 'H';
}

enum { BAM_AUX_ARRAY_HEAD_BYTES = 5 };  /* of the value of type B: subtype and count */

/* Stores the value of a tag of an integer type. Returns false if it has another type. */
bool bam_aux_integer(const struct bam_aux *aux, int64_t *value);

/* Writes type and value of a number, with the type that htslib chooses but at least at_least_bytes
   (0 to 4), and returns the end. Needs room for 5 bytes. */
uint8_t *bam_aux_put_count(uint8_t *out, uint32_t value, size_t at_least_bytes);

#endif
