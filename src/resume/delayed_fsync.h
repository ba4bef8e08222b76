/*
 * delayed_fsync.h -- decides from when on temporary data survive a power failure, and syncs them.
 *
 * They survive the end of the process in any case. To survive a power failure, RocksDB syncs half a
 * dozen times a run: a tenth of the wall time of a sort of 2 GB (bench/options.py), to save work
 * that is done again in half a minute. So the syncs of the first half minute after the first run
 * are left out. Then a thread syncs everything, and from then on data are durable when RocksDB says
 * so. With --no-resume nothing is synced.
 *
 * After a power failure within that time the temporary data may be damaged; --resume then says so.
 * A sort that goes on with a checkpoint syncs at once: the process that made it may have ended
 * before it caught up.
 *
 * Order of calls: begin, when the store was made; tell, when all phases have ended; end. By one
 * thread.
 */
#ifndef ROCKSORT_RESUME_DELAYED_FSYNC_H
#define ROCKSORT_RESUME_DELAYED_FSYNC_H

#include "os/thread_pool.h"
#include "resume/sort_settings.h"

struct durable;

/* Frees a NULL-terminated list of paths. NULL is accepted. */
void free_paths(char **paths);

/* Takes over the directories: absolute, NULL-terminated, as free_paths wants them. The thread pool
   fails if a sync does. at_once: everything is synced from the beginning, whatever the settings
   say. NULL after a message. */
struct durable *delayed_fsync_begin(const struct sort_settings *settings, struct threads *threads,
                                    char **directories, bool at_once);

/* If a sync failed, that is the error of a sort that failed with it (result below 0). A sort that
   had all it needed before has its result. NULL is accepted. */
void delayed_fsync_tell(struct durable *durable, int result);

/* When the store is closed: makes the directories durable if they stay. NULL is accepted. */
void delayed_fsync_end(struct durable *durable, bool directories_stay);

#endif
