/* monotonic.h -- seconds of a clock that only goes forward, for measuring durations. */
#ifndef ROCKSORT_MONOTONIC_H
#define ROCKSORT_MONOTONIC_H

#include <time.h>

static inline double monotonic_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
