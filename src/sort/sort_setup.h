/*
 * sort_setup.h -- makes and releases the objects of a sort (sort_context.h).
 *
 * Order of calls: init; when only threads of the thread pool are left, close_store, publish, close,
 * release. Threads: one.
 */
#ifndef ROCKSORT_SORT_SORT_SETUP_H
#define ROCKSORT_SORT_SORT_SETUP_H

#include "sort/sort_context.h"

/* Makes the objects. */
void sort_init(struct sort_context *sort, const struct sort_settings *settings,
               struct sort_report *report);

/* Divides total_bytes of memory for a sort with these settings; before sort buffers are made. */
void sort_plan_memory(const struct sort_settings *settings, size_t total_bytes,
                      struct memory_budget *budget);

/* When all groups are written: moves the list of groups to the report. */
void sort_report_groups(struct sort_context *sort);

/* Closes the store, and fills the report. directories_stay: the temporary directories are kept as a
   checkpoint. */
void sort_close_store(struct sort_context *sort, bool directories_stay);

/* If the output is complete: writes the reports if *result is 0, and renames all files to their
   final names. Sets *result to -1 after a failure. */
void sort_publish(struct sort_context *sort, int *result);

/* Removes temporary files, and the temporary directories unless they stay. */
void sort_close(struct sort_context *sort, bool directories_stay);

/* After sort_close: ends the thread pool and frees everything. */
void sort_release(struct sort_context *sort);

#endif
