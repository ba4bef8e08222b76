/*
 * count_files.h -- the files of --flagstat, --idxstats and --coverage: what a sort counts in its
 * output (record_counts.h) is written there once the output is complete.
 *
 * Order of calls: the caller of the sort chooses the paths (output_path.h) and releases them after
 * the sort. In between: guard; create_counts; write, once all records were counted: the files that
 * have temporary names, which the set names together with the output, and later those that are
 * written in place.
 * Threads: one at a time. Errors: -1 after a message.
 */
#ifndef ROCKSORT_PIPELINE_COUNT_FILES_H
#define ROCKSORT_PIPELINE_COUNT_FILES_H

#include "counts/record_counts.h"
#include "output/output_set.h"

struct count_file {
    bool is_wanted;
    struct output_path path;    /* its name is NULL: standard output */
};

/* `files` is an array of one for each enum count_kind, or NULL in all functions. */

/* Sets what the paths need to know of the sort, and adds them to its files, with the lock held. */
void count_files_guard(struct count_file *files, pthread_mutex_t *lock, bool durable,
                       struct output_set *set);

/* Makes the counts that the files need; NULL: nothing is to be counted. The caller destroys them
   with record_counts_destroy. */
struct record_counts *count_files_create_counts(const struct count_file *files, sam_hdr_t *header);

/* Writes the wanted files with temporary names, or, second, those that are written in place: standard
   output, pipes and the like. */
int count_files_write(struct count_file *files, struct record_counts *counts, bool in_place);

#endif
