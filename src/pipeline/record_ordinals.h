/*
 * record_ordinals.h -- which record of a run came first in the input, where its index does not say.
 *
 * Records that are sorted by a tag first (--split-by rg, tag:XX) do not keep the order of the input
 * among those at one place. But --markdup must decide as if they did. So records get an *ordinal*
 * (duplicates/duplicate_view.h), which is made of the place that they have in memory: a batch has
 * its records in the order of the input. Ordinals increase, and some numbers are left out.
 *
 * Ownership: the batches must stay where they are. Threads: any may look up ordinals.
 */
#ifndef ROCKSORT_PIPELINE_RECORD_ORDINALS_H
#define ROCKSORT_PIPELINE_RECORD_ORDINALS_H

#include "pipeline/batch.h"

struct record_ordinals;

/* True if ordinals are not simply the indexes of records in their run. */
static inline bool record_ordinals_are_needed(const struct sort_rules *rules)
{
    return rules->duplicates && rules->order == SORT_TAG;
}

/* Of the records of n batches that become one run, in their order. */
struct record_ordinals *record_ordinals_create(struct batch *const *batches, size_t n);

/* NULL is accepted. */
void record_ordinals_destroy(struct record_ordinals *ordinals);

/* The ordinal of a record in one of the batches. */
uint64_t record_ordinals_find(const struct record_ordinals *ordinals, const uint8_t *rec);

/* The same of a record in a batch that is a run by itself. */
uint64_t record_ordinal_in_batch(const struct batch *batch, const uint8_t *rec);

#endif
