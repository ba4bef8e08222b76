/*
 * run_label.h -- encodes and decodes the label of a run, which is stored with its blocks. From the
 * labels --resume learns which runs exist, what they hold, and where in the input to continue.
 *
 * Runs are numbered in input order. The label of a run names its predecessor, so the runs form a
 * chain. With several databases a later run may become durable while an earlier one does not. So
 * --resume uses the runs of the chain, from the first one, and drops the others. It reads their
 * records again, into runs with new numbers; the first of these names the last run of the chain.
 *
 * If a run ends within a template that is being fixed, its position in the input is unknown, and
 * --resume also drops such runs at the end of the chain. If two runs name the same predecessor, the
 * older one was dropped in this way; its successors are not part of the new chain.
 *
 * Pure functions; any thread.
 */
#ifndef ROCKSORT_SPILL_RUN_LABEL_H
#define ROCKSORT_SPILL_RUN_LABEL_H

#include "bam/content_sum.h"
#include "bam/input_position.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define RUN_LABEL_NONE UINT32_MAX       /* before the first run */

struct run_label {
    uint32_t run;
    uint32_t before;            /* its predecessor, or RUN_LABEL_NONE */
    struct content_sum sum;
    bool any_placed;            /* some record has a reference */
    uint64_t open_bytes;        /* of blocks that are open in the merge (spill/run_writer.h) */
    struct input_position end;  /* after its last record */
};

/* As it is stored: XXH3-64 of the rest, a magic number, and the label as it is in memory. */
enum { RUN_LABEL_BYTES = 16 + sizeof(struct run_label) };

/* Writes the label, with a checksum, to out. */
void run_label_encode(const struct run_label *label, uint8_t out[RUN_LABEL_BYTES]);

/* Returns 0, or -1 if the bytes are not a label. */
int run_label_decode(const uint8_t *bytes, size_t n_bytes, struct run_label *label);

/* Sorts the labels: first those of the chain, in its order, then the others. Returns the length of
   the chain, or -1 if the labels contradict each other. */
ssize_t run_labels_chain(struct run_label *labels, size_t n);

/* Returns how many labels of the chain --resume can use: up to the last one whose end is known. */
size_t run_labels_known(const struct run_label *labels, size_t n_chain);

#endif
