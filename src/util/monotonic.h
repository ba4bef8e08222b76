/* monotonic.h -- reads the monotonic clock and CPU clocks in seconds. Any thread. */
#ifndef ROCKSORT_UTIL_MONOTONIC_H
#define ROCKSORT_UTIL_MONOTONIC_H

#include <pthread.h>
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

/* Initialises a condition whose timed waits use this clock. Returns 0 or an error number. */
static inline int monotonic_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;
    int error = pthread_condattr_init(&monotonic);
    if (error) return error;
    error = pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    if (!error) error = pthread_cond_init(cond, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    return error;
}

#endif
