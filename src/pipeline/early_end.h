/*
 * early_end.h -- what a sort leaves when a signal, an exception or lack of memory ends it.
 *
 * A sort has temporary files and directories of its own. When it ends early the former are removed,
 * and the latter too, unless they are a checkpoint that is worth keeping.
 */
#ifndef ROCKSORT_PIPELINE_EARLY_END_H
#define ROCKSORT_PIPELINE_EARLY_END_H

#include "pipeline/signals.h"
#include "pipeline/temp_store.h"

struct early_end {              /* what there may be to clean up; all borrowed */
    struct crew *crew;
    struct batch_pool *pool;
    struct load_totals *totals;
    struct checkpoint_writer *checkpoint;
    struct temp_store *store;
    const struct output_path *output, *index;   /* they change with the lock held */
};

/*
 * For signals.h; arg: struct early_end. Cleans up and has the process die. Only with -k, and of an
 * input that cannot be read again, the first signal has reading end and what came be saved.
 */
enum signal_answer early_end_on_signal(void *arg, int signal_number);

/* For exception_guard.h; arg: struct early_end. Cleans up, in whatever thread, which may have the
   lock. */
void early_end_after_exception(void *arg);

#endif
