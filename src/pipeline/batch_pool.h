/*
 * batch_pool.h -- the memory of batches: one arena, cut into stretches of one size, and the list of
 * the batches that are full.
 *
 * The reader takes a batch, fills it and seals it. The spiller writes the oldest sealed ones to the
 * store, which frees them. The merge takes those that were never spilled. The pool also owns the
 * budget that changes while the sort runs: batches are *retired* when compactions need their memory,
 * and runs become longer where seeks are slow.
 *
 * Order of calls: create; open before loading, if there is input; destroy when all jobs are done.
 * Threads: the headings below and each function say who calls it. The crew's lock guards all.
 */
#ifndef ROCKSORT_PIPELINE_BATCH_POOL_H
#define ROCKSORT_PIPELINE_BATCH_POOL_H

#include "pipeline/batch.h"
#include "pipeline/crew.h"
#include "pipeline/mem_budget.h"

struct batch_pool;

struct batch_pool *batch_pool_create(struct crew *crew, const struct mem_budget *budget);

/* NULL is accepted. */
void batch_pool_destroy(struct batch_pool *pool);

/* Before loading: reserves the arena, which takes address space but no memory yet. The rules
   outlive the pool. Returns 0, or -1 after a message. */
int batch_pool_open(struct batch_pool *pool, const struct sort_rules *rules);

/* Before loading: the reader never waits. Batches that the budget has no room for get memory of
   their own. */
void batch_pool_let_grow(struct batch_pool *pool);

/* ---- the budget ---- */

/* Before batch_pool_open: replaces the budget. */
void batch_pool_set_budget(struct batch_pool *pool, const struct mem_budget *budget);

/* Copies the budget as it is now. */
void batch_pool_budget(struct batch_pool *pool, struct mem_budget *budget);

/* See mem_budget_lengthen_runs. */
void batch_pool_lengthen_runs(struct batch_pool *pool);

/* With the lock held: removes n batches and their memory for good, each as soon as it is free. True
   if none that is to be retired is still in use. */
bool batch_pool_retire(struct batch_pool *pool, unsigned n);

/* ---- the reader ---- */

/* Waits for a batch to fill. NULL if the crew has failed. */
struct batch *batch_pool_take(struct batch_pool *pool);

/* Makes a batch with n_bytes outside the arena, for records too large for the other batches. */
struct batch *batch_pool_make_large(struct batch_pool *pool, size_t n_bytes);

/* Adds a batch to the list of full ones. Its jobs may still be under way; `end` is the input
   position after its last record. */
void batch_pool_seal(struct batch_pool *pool, struct batch *batch,
                     const struct input_position *end);

/* With the lock held: true while the reader waits for a batch. */
bool batch_pool_reader_waits(const struct batch_pool *pool);

/* ---- all ---- */

/* Takes back a batch that is not used any more. */
void batch_pool_free(struct batch_pool *pool, struct batch *batch);

/* Checksum only: removes a batch from the list of sealed ones and takes it back. */
void batch_pool_forget(struct batch_pool *pool, struct batch *batch);

/* Gives the memory of free batches back to the kernel. */
void batch_pool_drop_free(struct batch_pool *pool);

/* ---- the spiller ---- */

/* With the lock held, or after loading: the number of sealed batches that are not in the store. */
size_t batch_pool_n_kept(const struct batch_pool *pool);

/* With the lock held: the number of batches that should be spilled now (mem_budget.h); may be 0.
   expected_bytes is the size of all records; 0: unknown. */
size_t batch_pool_n_due(const struct batch_pool *pool, uint64_t expected_bytes);

/* Waits until the n oldest batches are sorted, and copies their addresses. Returns 0, or -1 if the
   crew has failed. */
int batch_pool_oldest(struct batch_pool *pool, size_t n, struct batch **oldest);

/* Frees the n oldest batches: they are in the store now. */
void batch_pool_spilled(struct batch_pool *pool, size_t n);

/* ---- the merge, when loading has ended ---- */

/* Batches that are not in the store, in the order of the input, and the bytes that they take. */
struct batch *const *batch_pool_kept(const struct batch_pool *pool, size_t *n);
size_t batch_pool_kept_bytes(const struct batch_pool *pool);

#endif
