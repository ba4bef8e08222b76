/*
 * count_files.h -- the files of --flagstat, --idxstats and --coverage: what a sort counts in its
 * output (count_kinds.h) is written there once the output is complete.
 *
 * Order of calls: the caller of the sort chooses the paths (output_path.h) and releases them after
 * the sort. In between: guard; observe; write, once all records were counted: the files that
 * have temporary names, which the set names together with the output, and later those that are
 * written in place.
 * Threads: one at a time. Errors: -1 after a message.
 */
#ifndef ROCKSORT_OUTPUT_COUNT_FILES_H
#define ROCKSORT_OUTPUT_COUNT_FILES_H

#include "output/output_set.h"
#include "spill/record_observers.h"
#include "stats/count_kinds.h"

struct count_file {
    bool is_wanted;
    struct output_path path;    /* its name is NULL: standard output */
    struct record_observer *counts;     /* borrowed from the list */
};

/* `files` is an array of one for each enum count_kind, or NULL in all functions. */

/* Sets what the paths need to know of the sort, and adds them to its files, with the lock held. */
void count_files_guard(struct count_file *files, pthread_mutex_t *lock, bool durable,
                       struct output_set *set);

/* Adds observers of the output to the list, which make the counts that are wanted. */
void count_files_observe(struct count_file *files, sam_hdr_t *header,
                         struct record_observers *observers);

/* Writes the wanted files with temporary names, or, second, those that are written in place:
   standard output, pipes and the like. */
int count_files_write(struct count_file *files, bool in_place);

#endif
