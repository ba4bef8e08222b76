/*
 * record_entries.h -- checks records of an input, and makes entries for the sort and the merge.
 *
 * Whole records are consecutive in [from, to) (bam_walk). Order of calls: check; then make in
 * orders with fixed-size keys, else measure and make_keyed.
 *
 * Threads: any, on different records. Errors: no messages but a record_problem, whose texts point
 * to the records.
 */
#ifndef ROCKSORT_INPUT_RECORD_ENTRIES_H
#define ROCKSORT_INPUT_RECORD_ENTRIES_H

#include "bam/content_sum.h"
#include "bam/record_problem.h"
#include "order/slice_merge.h"
#include "spill/sort_buffer.h"

#include <sys/types.h>

/*
 * Checks the records against a header of n_refs references, and cuts their names at the first NUL.
 * Closes gaps after records that become shorter. first_record is the number of the first one in its
 * input, from 0, or RECORD_NUMBER_UNKNOWN. Returns the end of the records, or NULL with *problem.
 */
uint8_t *record_entries_check(const struct sort_rules *rules, int32_t n_refs, uint8_t *from,
                              const uint8_t *to, uint64_t first_record,
                              struct record_problem *problem);

/* Writes an entry for each record, in the order of the records, and adds the records to the sum.
   Duplicates are not marked yet; sum NULL: they are marked, and the records were summed before. */
void record_entries_make(const struct sort_rules *rules, uint8_t *from, const uint8_t *to,
                         struct sort_entry *entries, struct content_sum *sum);

/* Returns the bytes of the keyed_records of all records, or -1 with *problem for a bad key. */
ssize_t record_entries_measure(const struct sort_rules *rules, const uint8_t *from,
                               const uint8_t *to, uint64_t first_record,
                               struct record_problem *problem);

/* Writes the keyed_records one after another; `sum` as above, NULL only with --markdup. *any_placed
   becomes true if a record has a reference. The minimiser order (-M) changes records. */
void record_entries_make_keyed(const struct sort_rules *rules, uint8_t *from, const uint8_t *to,
                               uint8_t *keyed, struct content_sum *sum, bool *any_placed);

/* Copies the records of a part of a sort buffer from its source, checks them against a header of
   n_refs references, adds them to *sum and writes their entries or keys. Returns 0, or -1 with
   *problem. */
int record_entries_index_part(struct sort_buffer_part *part, int32_t n_refs,
                              struct content_sum *sum, struct record_problem *problem);

#endif
