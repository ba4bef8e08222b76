/*
 * copy_input.h -- copies the BGZF blocks of an input into the output, as they are.
 *
 * Each block must begin where the one before it ends, and the file must end with the EOF block;
 * nothing is inflated. The places in the index must be beginnings of blocks: this shows most
 * indexes that are not that of the file.
 *
 * Threads: one.
 */
#ifndef ROCKSORT_PIPELINE_COPY_INPUT_H
#define ROCKSORT_PIPELINE_COPY_INPUT_H

#include "pipeline/merge.h"
#include "pipeline/merge_steps.h"

struct copy_input_settings {
    struct crew *crew;
    struct bam_inputs *inputs;
    size_t number;              /* of the input */
    const char *path;           /* of the input: a BAM file with an EOF block */
    const struct merge_copy *what;      /* of the input */
    struct output_file *output;       /* open */
    struct load_totals *totals; /* these get what was copied */
    struct merge_counts *counts;
};

/* Returns 0, or -1 after a message. */
int copy_input(const struct copy_input_settings *settings);

#endif
