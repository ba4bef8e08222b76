/*
 * delayed_fsync.h -- syncs temporary data, but not in the first half minute.
 *
 * Temporary data always survive the end of the process. To survive a power failure, RocksDB syncs
 * six times a run: a tenth of the wall time of a sort of 2 GB (bench/options.py). Repeating half a
 * minute of work costs less, so syncs are skipped for half a minute after the first run. Then a
 * thread syncs everything, and from then on data are durable when RocksDB says so. With --no-resume
 * nothing is synced.
 *
 * After a power failure within that time the temporary data may be damaged; --resume reports it. A
 * resumed sort syncs at once, because the earlier process may have ended before its first sync.
 *
 * Order of calls: begin, when the store is made; tell, when all phases have ended; end. Threads:
 * one.
 */
#ifndef ROCKSORT_RESUME_DELAYED_FSYNC_H
#define ROCKSORT_RESUME_DELAYED_FSYNC_H

#include "os/thread_pool.h"
#include "resume/sort_settings.h"

struct delayed_fsync;

/* Takes ownership of the directories: absolute paths, NULL-terminated, in one block. A failed
   sync fails the thread pool. at_once: sync from the beginning, whatever the settings say. NULL
   after a message. */
struct delayed_fsync *delayed_fsync_begin(const struct sort_settings *settings,
                                          struct threads *threads, char **directories,
                                          bool at_once);

/* Prints the error of a failed sync if it made the sort fail (result below 0). Accepts NULL. */
void delayed_fsync_tell(struct delayed_fsync *d, int result);

/* When the store is closed: syncs the directories if they stay. Accepts NULL. */
void delayed_fsync_end(struct delayed_fsync *d, bool directories_stay);

#endif
