/*
 * run_label.h -- what each run in a database says of itself, beside its blocks: so that another
 * process can tell which runs there are, what they hold, and where reading is to go on.
 *
 * Runs are numbered in input order. A label names the run before its own, which makes a chain from
 * the first run on. What another process finds is good as far as the chain goes: runs are written
 * in order, but with several databases a later one may have become durable without an earlier one.
 * Such runs are dropped; their records are read again into runs with new numbers, the first of
 * which names the end of the chain. So there is one chain at any time.
 *
 * Pure; any thread.
 */
#ifndef ROCKSORT_STORE_RUN_LABEL_H
#define ROCKSORT_STORE_RUN_LABEL_H

#include "bam/content_sum.h"
#include "bam/input_position.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define RUN_LABEL_NONE UINT32_MAX       /* before the first run */

enum { RUN_LABEL_BYTES = 80 };

struct run_label {
    uint32_t run;
    uint32_t before;            /* the run before it, or RUN_LABEL_NONE */
    struct content_sum sum;
    bool any_placed;            /* some record has a reference */
    uint64_t max_block_bytes;   /* of its largest block, uncompressed */
    struct input_position end;  /* behind its last record */
};

/* Writes the label, with a checksum, to out. */
void run_label_encode(const struct run_label *label, uint8_t out[RUN_LABEL_BYTES]);

/* Returns 0, or -1 if the bytes are no label. */
int run_label_decode(const uint8_t *bytes, size_t n_bytes, struct run_label *label);

/*
 * Puts the labels in the order of the chain, and behind them those that are none of it. Returns the
 * length of the chain, or -1 if they contradict each other.
 */
ssize_t run_labels_chain(struct run_label *labels, size_t n);

#endif
