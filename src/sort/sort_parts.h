/*
 * sort_parts.h -- makes the objects of a sort before it begins, and releases them when it has
 * ended.
 *
 * Order of calls: init; close_store, publish, close and release when all threads but the thread
 * pool's have ended. Threads: one.
 */
#ifndef ROCKSORT_SORT_SORT_PARTS_H
#define ROCKSORT_SORT_SORT_PARTS_H

#include "sort/sort_context.h"

/* Makes the objects. Returns 0, or -1 after a message. */
int sort_init(struct sort_context *sort, const struct sort_settings *settings, struct sort_report *report);

/* Splits total_bytes of memory for a sort with these settings; before sort buffers are made. */
void sort_plan_memory(const struct sort_settings *settings, size_t total_bytes,
                      struct memory_budget *budget);

/* When all groups of the output are written: the report takes over what they are. */
void sort_report_groups(struct sort_context *sort);

/* Closes the store, and fills the report. directories_stay: the temporary directories are a
   checkpoint that is kept. */
void sort_close_store(struct sort_context *sort, bool directories_stay);

/* Gives the files of a complete output their names, together with the reports of the settings, if
   *result is 0. Sets *result to -1 after a failure. Does nothing if the output is not complete. */
void sort_publish(struct sort_context *sort, int *result);

/* Removes the files that have no names, and the temporary directories, unless they stay. */
void sort_close(struct sort_context *sort, bool directories_stay);

/* When it is closed: ends the thread pool and frees everything. */
void sort_release(struct sort_context *sort);

#endif
