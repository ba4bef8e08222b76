/*
 * pile.h -- blocks that the store cannot put in order.
 *
 * The store orders blocks by the stored key, the run and the index of their first records. If many
 * records share a stored key that is cut off (bam_sort_key.h), the store has the blocks of one run
 * after those of another, although their records belong between each other. The blocks whose first
 * records share such a key are a *pile*. A pile that fits into memory needs no care: the merge
 * takes all of it before it cuts. A larger one is read through this module, which shows its blocks
 * in the full order of their first records, from a bounded memory.
 *
 * Order of calls: open, with no other scan of the store; next until it returns 0 or -1; close.
 * Ownership: a block that next returned is the caller's.
 * Threads: the dispatcher. Blocks are opened in the calling thread, so that the pile is slower than
 * other parts of the merge.
 */
#ifndef ROCKSORT_PIPELINE_PILE_H
#define ROCKSORT_PIPELINE_PILE_H

#include "pipeline/segment.h"

struct pile;

struct pile_settings {
    struct crew *crew;
    struct segmenter *segmenter;
    struct run_store *store;
    const uint32_t *dropped_runs;       /* that do not count (resume.h) */
    size_t n_dropped;
    const struct sort_rules *rules;
    size_t most_bytes;          /* of blocks that are kept open; a few more are now and then */
};

/* The pile of a stored key, which has SORT_KEY_STORED_BYTES. */
struct pile *pile_open(const struct pile_settings *settings, const uint8_t *key);

/* Gives the next block, which is open, with one user, the caller. Returns 1, 0 after the last, or
   -1 after a message. */
int pile_next(struct pile *pile, struct open_block **block);

/* NULL is accepted. */
void pile_close(struct pile *pile);

#endif
