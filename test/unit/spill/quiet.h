/*
 * quiet.h -- waits for compactions in tests.
 */
#ifndef ROCKSORT_TEST_STORE_QUIET_H
#define ROCKSORT_TEST_STORE_QUIET_H

#include <stdbool.h>
#include <unistd.h>

/* On a busy machine a compaction begins late: only after so many looks, 10 ms apart, that saw none
   running or due is none to come. */
enum { QUIET_LOOKS = 30 };

/* Counts looks that saw nothing. Starts as 0. Returns true if all of them are done; else waits until
   the next one. is_busy: what the next one sees. */
static inline bool quiet_wait(int *n_looks, bool is_busy)
{
    *n_looks = is_busy ? 0 : *n_looks + 1;
    if (*n_looks < QUIET_LOOKS) (void)usleep(10000);
    return *n_looks == QUIET_LOOKS;
}

#endif
