/*
 * count_files.h -- the files of --flagstat, --idxstats and --coverage: what a sort counts in its
 * output (record_counts.h) is written there once the output is complete.
 *
 * Order of calls: the caller of the sort chooses the paths (output_path.h) and releases them after
 * the sort. In between: guard; create_counts; write, once all records were counted and the output
 * has its name. unlink, when a signal ends the sort at any time after guard.
 * Threads: one at a time, but for unlink. Errors: -1 after a message.
 */
#ifndef ROCKSORT_PIPELINE_COUNT_FILES_H
#define ROCKSORT_PIPELINE_COUNT_FILES_H

#include "counts/record_counts.h"
#include "output/output_path.h"

struct count_file {
    bool is_wanted;
    struct output_path path;    /* its name is NULL: standard output */
};

/* `files` is an array of one for each enum count_kind, or NULL in all functions. */

/* Sets what the paths need to know of the sort, with the lock held. */
void count_files_guard(struct count_file *files, pthread_mutex_t *lock, bool durable);

/* Makes the counts that the files need; NULL: nothing is to be counted. The caller destroys them
   with record_counts_destroy. */
struct record_counts *count_files_create_counts(const struct count_file *files, sam_hdr_t *header);

/* Writes all wanted files. After a failure some may be there, each of them complete. */
int count_files_write(struct count_file *files, struct record_counts *counts);

/* Removes files that are being written; with the lock held. */
void count_files_unlink(const struct count_file *files);

#endif
