/*
 * abort_cleanup.h -- what a sort leaves when a signal, an exception or lack of memory ends it.
 *
 * A sort has temporary files and directories of its own. When it ends early the files are removed,
 * and the directories, too, unless they are a checkpoint that is kept.
 *
 * Order of calls: watch; signals_hold; after_failure; exception_guard_end, before anything is
 * freed; tell_complete; signals_restore, when temporary data are removed. By one thread.
 */
#ifndef ROCKSORT_RESUME_ABORT_CLEANUP_H
#define ROCKSORT_RESUME_ABORT_CLEANUP_H

#include "os/signals.h"
#include "output/output_set.h"
#include "resume/checkpoint_writer.h"
#include "resume/group_dir.h"

struct abort_cleanup {          /* set by the caller except for signals; all is borrowed */
    struct threads *threads;
    struct sort_buffer_pool *pool;
    struct load_totals *totals;
    struct checkpoint_writer *checkpoint;
    struct temp_store *store;
    struct output_set *outputs;         /* changes with the lock held */
    const struct group_dir *groups;     /* likewise */
    struct signal_watch signals;
};

/* From here on signals and exceptions clean up and end the process. With -k, if the input cannot be
   read again, the first signal only ends reading, and what came is saved. Returns 0, or -1 after a
   message. */
int abort_cleanup_watch(struct abort_cleanup *end);

/* When the sort has failed without a signal: tells the user what becomes of the temporary
   directories, and returns true if they stay. lost_reader: it failed because the program that reads
   standard output has closed it. */
bool abort_cleanup_after_failure(struct abort_cleanup *end, bool lost_reader);

/* When files have got their names: says so if a signal waits, of which the process will die. */
void abort_cleanup_tell_complete(const struct abort_cleanup *end);

#endif
