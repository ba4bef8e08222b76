/* monotonic.h -- clocks that are never set back, in seconds, to measure durations. Any thread. */
#ifndef ROCKSORT_UTIL_MONOTONIC_H
#define ROCKSORT_UTIL_MONOTONIC_H

#include <time.h>

static inline double monotonic_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* CPU time that the calling thread has used. */
static inline double thread_cpu_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
