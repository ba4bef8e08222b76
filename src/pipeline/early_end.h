/*
 * early_end.h -- what a sort leaves when a signal, an exception or lack of memory ends it.
 *
 * A sort has temporary files and directories of its own. When it ends early the files are removed,
 * and the directories, too, unless they are a checkpoint that is worth keeping.
 *
 * Order of calls: watch; hold; after_failure; is_over; restore. By one thread.
 */
#ifndef ROCKSORT_PIPELINE_EARLY_END_H
#define ROCKSORT_PIPELINE_EARLY_END_H

#include "pipeline/signals.h"
#include "pipeline/temp_store.h"

struct early_end {              /* starts with what there may be to clean up, all borrowed */
    struct crew *crew;
    struct batch_pool *pool;
    struct load_totals *totals;
    struct checkpoint_writer *checkpoint;
    struct temp_store *store;
    const struct output_path *output, *index;   /* they change with the lock held */
    struct signal_watch signals;
};

/* From here on signals and exceptions clean up and end the process. With -k, if the input cannot be
   read again, the first signal only ends reading, and what came is saved. Returns 0, or -1 after a
   message. */
int early_end_watch(struct early_end *end);

/* From here on signals wait until all is gone. */
void early_end_hold(struct early_end *end);

/* When the sort has failed by itself: tells what becomes of the temporary directories, and returns
   whether they stay. lost_reader: it failed because nobody reads standard output any more. */
bool early_end_after_failure(struct early_end *end, bool lost_reader);

/* All is closed and removed, and nothing is freed yet: exceptions take their former course. */
void early_end_is_over(void);

/* All is freed: signals take their former course; those that have waited, too. */
void early_end_restore(const struct early_end *end);

#endif
