/*
 * sync_policy.h -- which syncs of temporary data reach the disk.
 *
 * RocksDB syncs half a dozen times for each run, and nothing but another file system layer, which
 * its C interface does not have, can tell it not to. So fsync and fdatasync are defined here, which
 * come before those of the C library when librocksdb is bound to the program; they leave out what
 * they are told to and pass on all other; directories that cannot be synced count as synced. On
 * other systems than Linux all are passed on.
 *
 * For one sort at a time in a process. Any thread may call any function.
 */
#ifndef ROCKSORT_MACHINE_SYNC_POLICY_H
#define ROCKSORT_MACHINE_SYNC_POLICY_H

#include <stdbool.h>

/* From now on the syncs of these directories and of what is below them are left out. The paths are
   real ones, the array ends with NULL; both must stay until no other thread syncs anything. */
void sync_policy_leave_out(char *const *paths);

/* From now on every sync is made. Returns whether some were left out before. */
bool sync_policy_make_all(void);

#endif
