/*
 * merge_sorted.h -- --merge: makes one output of inputs that are sorted already.
 *
 * With --markdup all inputs are read first, for the views of their records, and so they are to be
 * divided into ranges of the same size. Then come the steps of merge_steps.h: inputs are merged with
 * each other, or the blocks of an input are copied.
 *
 * Threads: one. Errors: -1 after a message.
 */
#ifndef ROCKSORT_PIPELINE_MERGE_SORTED_H
#define ROCKSORT_PIPELINE_MERGE_SORTED_H

#include "pipeline/merge.h"
#include "pipeline/progress.h"
#include "pipeline/survey.h"

struct merge_sorted_settings {
    const struct merge_settings *merge; /* without streams */
    const struct sort_settings *sort;
    struct bam_inputs *inputs;  /* of the sort: open, and not read yet */
    struct duplicates *duplicates;      /* not decided yet; NULL: none are looked for */
    const struct record_observers *observers;   /* of the inputs, if they are read before */
    struct survey survey;       /* for `split` and `columns` */
    struct column_output *columns;      /* of each output (MOST_OUTPUTS) */
    struct split_plan *split;   /* gets its ranges; NULL: not needed */
    const struct mem_budget *budget;
    struct progress *progress;  /* in the phase that merges */
    struct sort_report *report; /* what was merged and copied */
};

/* Opens the output and writes all inputs into it; the caller closes it. *sum_out is set to the sum
   of the records that were merged; of those that were copied it has only the number. */
int merge_sorted(const struct merge_sorted_settings *settings, struct content_sum *sum_out);

#endif
