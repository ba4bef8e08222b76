/*
 * exception_guard.h -- a clean end when C++ code throws what our C cannot catch.
 *
 * RocksDB throws std::bad_alloc without memory and std::system_error when it cannot start a thread,
 * in our threads or in its own. No frame above it catches that, so that C++ would call abort. The
 * guard prints one message instead, lets its owner clean up, and ends the process with status 1.
 *
 * Order of calls: begin; end. One guard at a time; neither is called while threads run that may
 * throw. Without the C++ library in the process both do nothing.
 */
#ifndef ROCKSORT_EXCEPTION_GUARD_H
#define ROCKSORT_EXCEPTION_GUARD_H

/*
 * clean_up(arg) is called in the thread that has thrown, once, while all others run on. That thread
 * may hold any lock of RocksDB's, so clean_up must call nothing of RocksDB, nor wait without end
 * for a lock of ours.
 */
void exception_guard_begin(void (*clean_up)(void *arg), void *arg);
void exception_guard_end(void);

#endif
