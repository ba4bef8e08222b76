/*
 * early_end.h -- what a sort leaves when a signal, an exception or lack of memory ends it.
 *
 * A sort has temporary files and directories of its own. When it ends early the files are removed,
 * and the directories, too, unless they are a checkpoint that is kept.
 *
 * Order of calls: watch; signals_hold; after_failure; exception_guard_end, before anything is freed;
 * tell_complete; signals_restore, when temporary data are removed. By one thread.
 */
#ifndef ROCKSORT_PIPELINE_EARLY_END_H
#define ROCKSORT_PIPELINE_EARLY_END_H

#include "output/output_set.h"
#include "pipeline/checkpoint_writer.h"
#include "pipeline/piece_dir.h"
#include "pipeline/signals.h"

struct early_end {              /* set by the caller except for signals; all is borrowed */
    struct crew *crew;
    struct batch_pool *pool;
    struct load_totals *totals;
    struct checkpoint_writer *checkpoint;
    struct temp_store *store;
    struct output_set *outputs;         /* changes with the lock held */
    const struct piece_dir *pieces;     /* likewise */
    struct signal_watch signals;
};

/* From here on signals and exceptions clean up and end the process. With -k, if the input cannot be
   read again, the first signal only ends reading, and what came is saved. Returns 0, or -1 after a
   message. */
int early_end_watch(struct early_end *end);

/* When the sort has failed without a signal: tells the user what becomes of the temporary
   directories, and returns true if they stay. lost_reader: it failed because the program that reads
   standard output has closed it. */
bool early_end_after_failure(struct early_end *end, bool lost_reader);

/* When files have got their names: says so if a signal waits, of which the process will die. */
void early_end_tell_complete(const struct early_end *end);

#endif
