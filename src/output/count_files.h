/*
 * count_files.h -- writes the files of --flagstat and the other reports about the output
 * (counts/count_kinds.h).
 *
 * Most files are printed once the output is complete. Some are streamed: they grow while parts are
 * combined.
 *
 * Order of calls: choose, before the sort; guard; observe; write twice, once all records are
 * counted: first the files with temporary names, which the set renames together with the output,
 * later the files written in place; close, in any case, before the set drops its files; release.
 * Threads: one at a time. Errors: -1 after a message.
 */
#ifndef ROCKSORT_OUTPUT_COUNT_FILES_H
#define ROCKSORT_OUTPUT_COUNT_FILES_H

#include "counts/count_kinds.h"
#include "output/output_set.h"
#include "spill/record_observers.h"

enum { MOST_COUNT_FILES = 16 }; /* of one kind */

struct count_file {
    struct count_sink sink;     /* must be the first member; used if it is streamed */
    char *name;                 /* owned */
    bool is_streamed;
    struct output_path path;    /* its name is NULL: standard output */
    hFILE *stream;              /* open while it is written */
};

struct count_report {           /* what one kind writes; starts as {0} */
    struct count_request request;       /* name NULL: nothing */
    char *final;                /* FILE or PREFIX, absolute; NULL: the file is written in place */
    struct count_file *files;
    unsigned n_files;
    struct count_setup setup;
    struct count_sink **sinks;
    struct record_observer *counts;     /* borrowed from the list */
};

/* In all functions `reports` is an array with an item for each kind, or NULL. */

/* Parses the argument of the option of a kind, and chooses the files. */
int count_files_choose(int kind, const char *text, struct count_report *report);

/* Sets `lock` and `durable` of the paths, and adds them to the set, with the lock held. */
void count_files_guard(struct count_report *reports, pthread_mutex_t *lock, bool durable,
                       struct output_set *set);

/* Returns what the observers may hold of total_bytes, without those that need little. */
size_t count_files_memory(const struct count_report *reports, size_t total_bytes);

/* Adds an observer of the output for each report, and opens the streamed files. `setup` has what
   all kinds share, with the memory of the whole sort. */
int count_files_observe(struct count_report *reports, const struct count_setup *setup,
                        struct record_observers *observers);

/* Writes the files with temporary names; or, with in_place, those without: standard output, pipes
   and the like. */
int count_files_write(struct count_report *reports, bool in_place);

/* Closes the streamed files that are not complete. */
void count_files_close(struct count_report *reports);

void count_files_release(struct count_report *reports);

#endif
