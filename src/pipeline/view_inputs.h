/*
 * view_inputs.h -- makes the views (duplicates.h) of all records of the inputs of --merge, and surveys
 * them (survey.h), before they are read a second time to be merged. An input is a run.
 *
 * Threads: one; it starts readers, and jobs make the views.
 */
#ifndef ROCKSORT_PIPELINE_VIEW_INPUTS_H
#define ROCKSORT_PIPELINE_VIEW_INPUTS_H

#include "input/bam_inputs.h"
#include "pipeline/duplicates.h"
#include "pipeline/survey.h"

struct view_inputs_settings {
    struct crew *crew;
    struct duplicates *duplicates;      /* NULL: no views are made */
    struct survey survey;       /* gets all records */
    struct bam_inputs *inputs;  /* open, and not read yet */
    const size_t *numbers;      /* of all inputs: 0, 1, 2 ... */
    size_t n_inputs;
    struct load_totals *totals; /* gets how much of the files was read */
    const struct sort_rules *rules;
    int32_t n_refs;
    size_t piece_bytes;         /* of a piece of input, uncompressed */
    size_t ahead_bytes;         /* for what is read ahead of one input */
    size_t all_bytes;           /* see input_streams.h */
};

/* Reads all inputs. Returns 0, or -1 after a message and crew_fail. */
int view_inputs(const struct view_inputs_settings *settings);

#endif
