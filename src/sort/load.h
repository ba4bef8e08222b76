/*
 * load.h -- the load phase: reads the input into sorted sort buffers in memory.
 *
 * The calling thread reads; workers inflate, parse, check, index and sort (load.c).
 */
#ifndef ROCKSORT_SORT_LOAD_H
#define ROCKSORT_SORT_LOAD_H

#include "sort/sort_buffer_filler.h"

/*
 * Reads all inputs, or only about their first most_bytes of uncompressed data; 0: all. The caller
 * has set the totals to loading; sets them to not loading when the last sort buffer is frozen. On
 * return no job works on a sort buffer. Returns 0, or -1 after a message and thread_pool_fail. If
 * the input ended early and its records are kept, returns 0, and the totals say that the input is
 * cut.
 */
int load_input(const struct sort_context *sort, uint64_t most_bytes);

#endif
