/*
 * bam_key_template.h -- makes the keys of --template-coordinate.
 *
 * The order puts the reads of a template together, and templates with equal ends next to each
 * other, for tools that collapse duplicates or unique molecular identifiers. An end is a reference,
 * a position (that of the read's 5' end with its soft-clipped bases) and a strand. The mate's end
 * is computed from its position and the tag MC. Records are ordered by both ends, the lower one
 * first, then by library, cell barcode (CB), molecular identifier (MI) and read name; then the read
 * at the lower end comes first. bam_key_template.c has the exact rules.
 *
 * The object owns copies of the read groups of the header. It never changes, and threads share it.
 * No messages.
 */
#ifndef ROCKSORT_ORDER_BAM_KEY_TEMPLATE_H
#define ROCKSORT_ORDER_BAM_KEY_TEMPLATE_H

#include "bam/bam_fields.h"

struct bam_key_template;

/* Reads the @RG lines. Returns NULL if htslib cannot parse the header. */
struct bam_key_template *bam_key_template_create(sam_hdr_t *header);

/* t may be NULL. */
void bam_key_template_destroy(struct bam_key_template *t);

/*
 * Makes the key of a checked record and returns its size, which is less than twice the size of the
 * record minus 40. Writes it to out unless that is NULL. Keys are prefix-free. Returns 0 if the
 * record cannot be ordered, and sets *problem to the reason (record_problem.h).
 */
size_t bam_key_template_encode(const struct bam_key_template *t, const uint8_t *rec, uint8_t *out,
                               const char **problem);

#endif
