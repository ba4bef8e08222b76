/*
 * sort_buffer_pool.h -- owns the memory of sort buffers, one arena cut into slots of one size, and
 * the list of frozen (full) sort buffers.
 *
 * The reader takes a sort buffer, fills it and freezes it. The spiller writes the oldest frozen
 * ones to the store, which frees them. The merge takes those that were never spilled. The pool also
 * owns the memory budget, which changes during the sort: sort buffers are *retired* when
 * compactions need their memory, and runs become longer if seeks are slow.
 *
 * Order of calls: create; open before loading, if there is input; destroy when all jobs are done.
 * Threads: the headings below and each function name the caller. The thread pool's lock guards all.
 */
#ifndef ROCKSORT_SPILL_SORT_BUFFER_POOL_H
#define ROCKSORT_SPILL_SORT_BUFFER_POOL_H

#include "os/thread_pool.h"
#include "spill/memory_budget.h"
#include "spill/sort_buffer.h"

struct sort_buffer_pool;

struct sort_buffer_pool *sort_buffer_pool_create(struct threads *threads,
                                                 const struct memory_budget *budget);

/* Accepts NULL. */
void sort_buffer_pool_destroy(struct sort_buffer_pool *pool);

/* Before loading: reserves the arena, which takes address space but no memory yet. The rules
   outlive the pool. grows: the reader never waits, as sort buffers beyond the budget get their own
   memory. Returns 0, or -1 after a message. */
int sort_buffer_pool_open(struct sort_buffer_pool *pool, const struct sort_rules *rules,
                          bool grows);

/* ---- the budget ---- */

/* Before sort_buffer_pool_open: replaces the budget. */
void sort_buffer_pool_set_budget(struct sort_buffer_pool *pool, const struct memory_budget *budget);

/* Copies the current budget. */
void sort_buffer_pool_budget(struct sort_buffer_pool *pool, struct memory_budget *budget);

/* See memory_budget_lengthen_runs. */
void sort_buffer_pool_lengthen_runs(struct sort_buffer_pool *pool);

/* With the lock held: removes n sort buffers and their memory permanently, each as soon as it is
   free. True if no sort buffer that must be retired is still in use. */
bool sort_buffer_pool_retire(struct sort_buffer_pool *pool, unsigned n);

/* ---- the reader ---- */

/* Waits for a sort buffer to fill. NULL if the thread pool has failed. */
struct sort_buffer *sort_buffer_pool_take(struct sort_buffer_pool *pool);

/* Makes a sort buffer with n_bytes outside the arena, for records too large for the others. */
struct sort_buffer *sort_buffer_pool_make_large(struct sort_buffer_pool *pool, size_t n_bytes);

/* Adds a sort buffer to the list of frozen ones. Its jobs may still run; `end` is the input
   position after its last record. */
void sort_buffer_pool_freeze(struct sort_buffer_pool *pool, struct sort_buffer *buffer,
                             const struct input_position *end);

/* With the lock held: true while the reader waits for a sort buffer. */
bool sort_buffer_pool_reader_waits(const struct sort_buffer_pool *pool);

/* ---- any thread ---- */

/* Frees a sort buffer for its next use. */
void sort_buffer_pool_free(struct sort_buffer_pool *pool, struct sort_buffer *buffer);

/* --checksum-only: removes a sort buffer from the list of frozen ones and frees it. */
void sort_buffer_pool_forget(struct sort_buffer_pool *pool, struct sort_buffer *buffer);

/* Gives the memory of free sort buffers back to the kernel. */
void sort_buffer_pool_drop_free(struct sort_buffer_pool *pool);

/* ---- the spiller ---- */

/* With the lock held, or after loading: returns the number of frozen sort buffers that are not in
   the store. */
size_t sort_buffer_pool_n_kept(const struct sort_buffer_pool *pool);

/* With the lock held: returns the number of sort buffers to spill now (memory_budget.h), which may
   be 0. expected_bytes is the size of all records; 0: unknown. */
size_t sort_buffer_pool_n_due(const struct sort_buffer_pool *pool, uint64_t expected_bytes);

/* Waits until the n oldest sort buffers are sorted, and copies their addresses. Returns 0, or -1 if
   the thread pool has failed. */
int sort_buffer_pool_oldest(struct sort_buffer_pool *pool, size_t n, struct sort_buffer **oldest);

/* Frees the n oldest sort buffers, which are in the store now. */
void sort_buffer_pool_spilled(struct sort_buffer_pool *pool, size_t n);

/* ---- the merge, when loading has ended ---- */

/* Return the sort buffers that are not in the store, in input order, and their bytes. */
struct sort_buffer *const *sort_buffer_pool_kept(const struct sort_buffer_pool *pool, size_t *n);
size_t sort_buffer_pool_kept_bytes(const struct sort_buffer_pool *pool);

#endif
