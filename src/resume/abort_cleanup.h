/*
 * abort_cleanup.h -- cleans up when a signal, an exception or lack of memory ends a sort.
 *
 * Removes the temporary files of the sort, and its temporary directories unless they are a
 * checkpoint that is kept. SIGPIPE and SIGXFSZ are ignored meanwhile: a broken pipe, or a file
 * beyond ulimit -f, is a write error.
 *
 * Order of calls: watch, before any other thread starts, because threads inherit the blocked
 * signals; hold_signals; after_failure; exception_guard_end, before anything is freed;
 * tell_complete; restore_signals, once temporary data are removed. Threads: one.
 */
#ifndef ROCKSORT_RESUME_ABORT_CLEANUP_H
#define ROCKSORT_RESUME_ABORT_CLEANUP_H

#include "output/output_set.h"
#include "resume/checkpoint_writer.h"
#include "resume/group_dir.h"
#include "resume/temp_store.h"

#include <signal.h>
#include <stdatomic.h>

struct abort_cleanup {          /* all borrowed */
    struct threads *threads;
    struct sort_buffer_pool *pool;
    struct load_totals *totals;
    struct checkpoint_writer *checkpoint;
    struct temp_store *store;
    struct output_set *outputs;         /* changed under the lock */
    const struct group_dir *groups;     /* changed under the lock */
    /* of the thread that waits for signals */
    pthread_t thread;
    atomic_bool is_over;
    sigset_t before;
    struct sigaction pipe_before;
};

/* Makes signals and exceptions clean up and end the process. With -k, if the input cannot be read
   again, the first signal only stops reading, and the records read so far are saved. Returns 0, or
   -1 after a message. */
int abort_cleanup_watch(struct abort_cleanup *cleanup);

/* Ends the thread that waits for signals: from now on they stay pending. */
void abort_cleanup_hold_signals(struct abort_cleanup *cleanup);

/* Call this when the sort has failed without a signal. Tells the user what happens to the temporary
   directories, and returns true if they stay. lost_reader: the reader of standard output has closed
   it, and so the sort failed. */
bool abort_cleanup_after_failure(struct abort_cleanup *cleanup, bool lost_reader);

/* After the files are renamed: tells the user so if a pending signal will end the process. */
void abort_cleanup_tell_complete(const struct abort_cleanup *cleanup);

/* Restores the former handling of signals; pending ones are delivered. */
void abort_cleanup_restore_signals(const struct abort_cleanup *cleanup);

#endif
