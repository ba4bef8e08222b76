/*
 * exception_guard.h -- ends the process cleanly where a library would crash it: after a C++
 * exception, when memory runs out, or when a library calls abort().
 *
 * RocksDB throws std::system_error when it cannot start a thread and std::bad_alloc when there is
 * no memory, in our threads and in its own; our functions are C and catch nothing. RocksDB and
 * htslib's CRAM encoder do not check some allocations. If RocksDB is built with asserts, it aborts
 * after some disk errors. htslib aborts with some references and options of CRAM; when its CRAM
 * encoder fails, it frees memory that its threads still use (cram_writer.c).
 * In all these cases the guard prints one message, calls clean_up, and ends the process with status
 * 1.
 *
 * Order of calls: begin; end. One guard at a time. No other thread may run during either call.
 */
#ifndef ROCKSORT_OS_EXCEPTION_GUARD_H
#define ROCKSORT_OS_EXCEPTION_GUARD_H

#include <stdbool.h>

/* clean_up (or NULL) is called with arg, once, in the thread that failed, while all other threads
   keep running. That thread may hold any lock: clean_up must not call RocksDB, and must not wait
   for a lock of ours without a time limit. If clean_up fails in the same way, the process ends at
   once. */
void exception_guard_begin(void (*clean_up)(void *arg), void *arg);
void exception_guard_end(void);

/* Call it after a message, when a library is about to crash the process. Ends the process under the
   same conditions as exception_guard_no_memory. */
void exception_guard_give_up(void);

/* From now on print() prints with diag_error why htslib has aborted, or returns false. It runs in
   the thread that failed, while other threads keep running. */
void exception_guard_explain(bool (*print)(void));

/* Call it when an allocation has failed. Between begin and end it ends the process; before begin,
   after end, and within clean_up it returns. */
void exception_guard_no_memory(void);

#endif
