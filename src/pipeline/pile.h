/*
 * pile.h -- blocks that the store cannot put in order.
 *
 * The store orders blocks by the stored key, the run and the index of their first records. If many
 * records share a stored key that is cut off (bam_sort_key.h), the store has the blocks of one run
 * after those of another, although their records belong between each other. The blocks whose first
 * records share such a key are a *pile*. A pile that fits into memory needs no care: the merge
 * takes all of it before it cuts. A larger pile is read through this module, which returns its
 * blocks in the full order of their first records and uses a bounded amount of memory.
 *
 * Order of calls: open, while no other thread uses the scans; next until it returns 0 or -1; close.
 * When next has returned 0, the scans are after the pile.
 * Ownership: the caller owns the blocks that next returns, and the scans.
 * Threads: only the dispatcher calls these functions. They open blocks in the calling thread and
 * not in the workers, so a pile is slower than other parts of the merge.
 */
#ifndef ROCKSORT_PIPELINE_PILE_H
#define ROCKSORT_PIPELINE_PILE_H

#include "pipeline/pile_walk.h"

struct pile;

/* Opens the pile of a stored key, whose size is SORT_KEY_STORED_BYTES. */
struct pile *pile_open(const struct pile_settings *settings, const uint8_t *key);

/* Sets *block to the next block. It is open, and the caller is its one user. Returns 1, 0 after the
   last block, or -1 after a message. */
int pile_next(struct pile *pile, struct open_block **block);

/* NULL is accepted. */
void pile_close(struct pile *pile);

#endif
