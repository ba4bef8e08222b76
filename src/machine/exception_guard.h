/*
 * exception_guard.h -- a clean end where libraries know none: exceptions, no memory, aborts.
 *
 * RocksDB throws std::system_error when it cannot start a thread and std::bad_alloc without memory,
 * in our threads or in its own. No frame above it catches that, so that C++ would call abort. And
 * some of its allocations, and of htslib's (in its CRAM encoder), are used unchecked. Where asserts
 * are compiled into it, it aborts after some disk errors. The guard prints one message, lets its
 * owner clean up, and ends the process with status 1.
 *
 * Order of calls: begin; end. One guard at a time; neither is called while other threads run.
 */
#ifndef ROCKSORT_MACHINE_EXCEPTION_GUARD_H
#define ROCKSORT_MACHINE_EXCEPTION_GUARD_H

/*
 * clean_up(arg), unless it is NULL, is called in the thread that has failed, once, while all others
 * run on. That thread may hold any lock, so clean_up must call nothing of RocksDB, nor wait without
 * end for a lock of ours.
 */
void exception_guard_begin(void (*clean_up)(void *arg), void *arg);
void exception_guard_end(void);

/* An allocation has failed: between begin and end this does not return, except to clean_up. */
void exception_guard_no_memory(void);

#endif
