/* monotonic.h -- reads the monotonic clock and CPU clocks in seconds. Any thread. */
#ifndef ROCKSORT_UTIL_MONOTONIC_H
#define ROCKSORT_UTIL_MONOTONIC_H

#include <time.h>

static inline double clock_seconds(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline double monotonic_seconds(void)
{
    return clock_seconds(CLOCK_MONOTONIC);
}

/* CPU time that the calling thread has used. */
static inline double thread_cpu_seconds(void)
{
    return clock_seconds(CLOCK_THREAD_CPUTIME_ID);
}

#endif
