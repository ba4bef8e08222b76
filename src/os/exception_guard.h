/*
 * exception_guard.h -- ends the process cleanly where a library would crash it: after a C++
 * exception, when memory runs out, or when a library calls abort.
 *
 * RocksDB throws std::system_error when it cannot start a thread and std::bad_alloc when there is
 * no memory, in our threads and in its own; our functions are C and catch nothing. RocksDB and
 * htslib's CRAM encoder also use the result of some allocations without a check. If RocksDB is
 * built with asserts, it aborts after some disk errors; htslib aborts with some references and
 * options of CRAM, and frees what its threads are using when its CRAM encoder fails (cram_writer.c).
 * In all these cases the guard prints one message, calls clean_up, and ends the process with status
 * 1.
 *
 * Order of calls: begin; end. One guard at a time. No other thread may run during either call.
 */
#ifndef ROCKSORT_OS_EXCEPTION_GUARD_H
#define ROCKSORT_OS_EXCEPTION_GUARD_H

/* clean_up (or NULL) is called with arg, once, in the thread that failed, while all other threads
   keep running. That thread may hold any lock: clean_up must not call RocksDB, and must not wait
   for a lock of ours without a time limit. If it fails in the same way, the process ends at once.
   */
void exception_guard_begin(void (*clean_up)(void *arg), void *arg);
void exception_guard_end(void);

/* To be called, after a message, when a library is about to crash the process. The same holds as
   for the next one. */
void exception_guard_give_up(void);

/* From now on print(arg) says what it means that htslib has aborted, by diag_error; NULL: nothing
   special. It is called in the thread that failed, while other threads keep running. When this
   function returns, no thread is in an earlier `print` any more. */
void exception_guard_explain(void (*print)(void *arg), void *arg);

/* To be called when an allocation has failed. Between begin and end it ends the process; it returns
   before begin, after end, and within clean_up. */
void exception_guard_no_memory(void);

#endif
