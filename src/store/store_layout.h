/*
 * store_layout.h -- how a sort lays out its temporary data: how many databases each directory gets,
 * how many files they may have open, and whether reading them goes past the page cache. The store
 * and --plan both ask here.
 *
 * Any thread may call these functions.
 */
#ifndef ROCKSORT_STORE_STORE_LAYOUT_H
#define ROCKSORT_STORE_STORE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STORE_LAYOUT_MOST_LANES = 4 };   /* databases in a directory */

/* How many databases each of n_dirs directories gets: one, or several if a disk is slow to seek,
   as long as each of them may have enough files open. */
unsigned store_layout_lanes(size_t n_dirs, bool slow_to_seek);

/* Raises the limit of open files as far as it goes, and returns how many files each of n_databases
   may have open. */
unsigned store_layout_most_files(size_t n_databases);

/* True if the temporary data will not fit into the page cache. If the size of the input is unknown
   (0), the answer is true unless there is much more memory than this sort may take. */
bool store_layout_exceeds_memory(uint64_t input_bytes, size_t scan_bytes);

#endif
