/*
 * path_sync.h -- waits until a file, or the names in a directory, are on the disk.
 *
 * Both functions return 0, or -1 with errno set. Any thread may call them.
 */
#ifndef ROCKSORT_MACHINE_PATH_SYNC_H
#define ROCKSORT_MACHINE_PATH_SYNC_H

int path_sync_file(const char *path);

/* Succeeds also on a file system that cannot sync directories: there is nothing to wait for. */
int path_sync_directory(const char *path);

#endif
