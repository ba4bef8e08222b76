/*
 * violation.h -- says which two records of an input are the wrong way round.
 *
 * One thread at a time for one header. The functions print a message and return nothing.
 */
#ifndef ROCKSORT_PIPELINE_VIOLATION_H
#define ROCKSORT_PIPELINE_VIOLATION_H

#include "order/order_check.h"

/* Prints what order_check.h found in the input: an error, or a note if the input is in order. The
   verdict has a pair. */
void violation_print_verdict(const char *input, sam_hdr_t *header,
                             const struct order_verdict *verdict);

/* Prints an error: two records of the input that follow each other, in the form in which they are
   sorted, are not in the order of the rules. `number` is that of the second one, from 0. */
void violation_print(const struct sort_rules *rules, sam_hdr_t *header, const char *input,
                     const uint8_t *before, const uint8_t *after, uint64_t number);

#endif
