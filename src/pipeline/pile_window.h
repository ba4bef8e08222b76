/*
 * pile_window.h -- reads a pile (pile.h) of few blocks for each run, in several passes.
 *
 * Each pass walks over all blocks of the pile and keeps those with the smallest first records, as
 * many as memory allows: the *window*. They are returned in order; the next pass makes the window
 * after them. With many runs this is much faster than to find each block by its key, because for
 * that RocksDB asks every file. If the pile is many times as large as the window, it is slower.
 *
 * Order of calls: open; next until it returns something else than 1; close.
 * Ownership: the walk belongs to the caller, and so do blocks that next has returned.
 * Threads: only the dispatcher calls these functions.
 */
#ifndef ROCKSORT_PIPELINE_PILE_WINDOW_H
#define ROCKSORT_PIPELINE_PILE_WINDOW_H

#include "pipeline/pile_walk.h"

enum { PILE_TOO_LARGE = -2 };

struct pile_window;

struct pile_window *pile_window_open(struct pile_walk *walk);

/* Sets *block to the next block. Returns 1, 0 after the last block, or -1 after a message. The
   first call may return PILE_TOO_LARGE: too many passes would be needed. */
int pile_window_next(struct pile_window *window, struct open_block **block);

/* NULL is accepted. */
void pile_window_close(struct pile_window *window);

#endif
