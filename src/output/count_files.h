/*
 * count_files.h -- writes the files of --flagstat, --idxstats and --coverage (count_kinds.h) once
 * the output is complete.
 *
 * Order of calls: the caller of the sort chooses the paths (output_path.h) and releases them after
 * the sort. In between: guard; observe; write twice, once all records are counted: first the files
 * with temporary names, which the set renames together with the output, later the files written in
 * place. Threads: one at a time. Errors: -1 after a message.
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

/* In all functions `files` is an array with an item for each enum count_kind, or NULL. */

/* Sets `lock` and `durable` of the paths, and adds them to the set, with the lock held. */
void count_files_guard(struct count_file *files, pthread_mutex_t *lock, bool durable,
                       struct output_set *set);

/* Adds an observer of the output for each wanted count. */
void count_files_observe(struct count_file *files, sam_hdr_t *header,
                         struct record_observers *observers);

/* Writes the wanted files with temporary names; or, with in_place, those without: standard output,
   pipes and the like. */
int count_files_write(struct count_file *files, bool in_place);

#endif
