/*
 * duplicate_marks.h -- one bit for each record of each run: is it a duplicate?
 *
 * Order of calls: create; add_run for each run; set; get; destroy. Threads: add_run one at a time
 * and before any set; set and get in any thread, get after all calls of set.
 */
#ifndef ROCKSORT_DUPLICATES_DUPLICATE_MARKS_H
#define ROCKSORT_DUPLICATES_DUPLICATE_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct duplicate_marks;

struct duplicate_marks *duplicate_marks_create(void);

/* NULL is accepted. */
void duplicate_marks_destroy(struct duplicate_marks *marks);

/* Tells that a run has at least n_records. */
void duplicate_marks_add_run(struct duplicate_marks *marks, uint32_t run, uint32_t n_records);

/* Marks a record. Returns false if it was marked already. */
bool duplicate_marks_set(struct duplicate_marks *marks, uint32_t run, uint32_t index);

bool duplicate_marks_get(const struct duplicate_marks *marks, uint32_t run, uint64_t index);

#endif
