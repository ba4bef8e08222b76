/*
 * interpose.h -- replaces functions of the C library, for this program and for its libraries.
 *
 * The dynamic linker prefers a definition in the program to one in the C library. So RocksDB and
 * htslib call these functions of interpose.c, which says why each of them is replaced:
 *   malloc, calloc, realloc, posix_memalign    end the sort when there is no memory
 *   posix_fadvise       never drops pages from the page cache
 *   sync_file_range     reports no error that would make RocksDB abort
 *   fsync, fdatasync    do nothing in the directories that interpose_skip_syncs names, nor in a
 *                       thread that has put them off
 * Each of them calls the function that it replaces: the C library's, or one that was preloaded.
 *
 * The functions below are for one sort at a time in a process. Any thread may call them.
 */
#ifndef ROCKSORT_OS_INTERPOSE_H
#define ROCKSORT_OS_INTERPOSE_H

#include <stdbool.h>

/*
 * From now on fsync and fdatasync of these directories, and of everything below them, do nothing
 * and report success. The array ends with NULL; its paths are absolute and contain no links. The
 * array and the paths must last until no other thread syncs anything.
 */
void interpose_skip_syncs(char *const *paths);

/* Turns fsync and fdatasync off in this thread, or on again; the caller syncs the files later.
   (hclose syncs each file, which takes milliseconds; thousands of files are synced faster after all
   of them have been written.) */
void interpose_put_off_syncs(bool put_off);

/* Ends interpose_skip_syncs. Returns true if it was in effect. */
bool interpose_make_all_syncs(void);

#endif
