/*
 * duplicate_sum.h -- the checksum of records (bam/content_sum.h) less what --markdup changes: so it
 * is the same before and after.
 *
 * Any thread, on different records.
 */
#ifndef ROCKSORT_DUPLICATES_DUPLICATE_SUM_H
#define ROCKSORT_DUPLICATES_DUPLICATE_SUM_H

#include "bam/content_sum.h"
#include "duplicates/duplicate_rules.h"

/* Adds a raw, checked record as it was read, or as it will be written. Its flag is changed for the
   moment. rules: NULL: the record stays as it is. */
void duplicate_sum_add_input(const struct duplicate_rules *rules, struct content_sum *sum,
                             uint8_t *rec);
void duplicate_sum_add_output(const struct duplicate_rules *rules, struct content_sum *sum,
                              uint8_t *rec);

#endif
