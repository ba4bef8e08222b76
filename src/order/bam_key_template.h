/*
 * bam_key_template.h -- keys of the order --template-coordinate.
 *
 * The order puts the reads of a template together, and templates with equal ends next to each
 * other, as tools that collapse duplicates or unique molecular identifiers want them. An end is a
 * reference, a position (the read's 5' end with its soft-clipped bases) and a strand; the mate's
 * comes from its position and the tag MC. Records are ordered by both ends, the lower one first,
 * then by library, cell barcode (CB), molecular identifier (MI) and read name, then the read at the
 * lower end first.
 * bam_key_template.c has the rules.
 *
 *     t = bam_key_template_create(header);
 *     n = bam_key_template_encode(t, rec, NULL, &problem);      each record, in any thread
 *     n = bam_key_template_encode(t, rec, key, &problem);
 *     bam_key_template_destroy(t);
 *
 * The object holds what the header says about read groups, in copies; it does not change after it
 * was made and is shared by threads. Nothing here prints a message.
 */
#ifndef ROCKSORT_ORDER_BAM_KEY_TEMPLATE_H
#define ROCKSORT_ORDER_BAM_KEY_TEMPLATE_H

#include "bam/bam_fields.h"

struct bam_key_template;

/*
 * Reads the @RG lines. htslib may parse the header for this, which therefore is not const. Returns
 * NULL without memory or if the header cannot be parsed.
 */
struct bam_key_template *bam_key_template_create(sam_hdr_t *header);

/* t may be NULL. */
void bam_key_template_destroy(struct bam_key_template *t);

/*
 * Writes the key of a checked record to out and returns its size, which is below twice that of the
 * record less 40. out may be NULL to learn the size alone. Keys are prefix-free. Returns 0 if the
 * record cannot be ordered; *problem then says why, to be put behind the name of the read.
 */
size_t bam_key_template_encode(const struct bam_key_template *t, const uint8_t *rec, uint8_t *out,
                               const char **problem);

#endif
