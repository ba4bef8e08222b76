/*
 * batch_pool.c -- see batch_pool.h.
 *
 * When the reader needs a batch and none is free, one is made on a fresh stretch of the arena.
 * Batches for records larger than a stretch have memory of their own. It counts against the budget,
 * too.
 */
#include "pipeline/batch_pool.h"

#include "pipeline/mem_budget.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const size_t huge_page_bytes = (size_t)2 << 20;

struct batch_pool {
    /* fixed after batch_pool_open */
    struct crew *crew;
    const struct sort_rules *rules;
    uint8_t *arena;
    size_t arena_bytes;
    bool grows;

    /* under the crew's lock */
    struct mem_budget budget;
    struct batch **free_batches;
    size_t n_free;
    size_t n_made;              /* stretches of the arena that are batches, free or not */
    unsigned n_to_retire;
    size_t large_bytes;         /* of batches with memory of their own */
    bool reader_waits;
    struct batch **sealed;      /* [0, n_spilled) are in the store */
    size_t n_sealed, sealed_room, n_spilled;
};

struct batch_pool *batch_pool_create(struct crew *crew, const struct mem_budget *budget)
{
    struct batch_pool *pool = xcalloc(1, sizeof *pool);
    pool->crew = crew;
    pool->budget = *budget;
    return pool;
}

int batch_pool_open(struct batch_pool *pool, const struct sort_rules *rules)
{
    const struct mem_budget *budget = &pool->budget;
    pool->rules = rules;
    pool->free_batches = xcalloc(budget->n_batches, sizeof *pool->free_batches);
    /* The kernel gives memory as batches fill. So a budget larger than the machine's memory does
       no harm to a small input. */
    pool->arena_bytes = budget->batch_bytes * budget->n_batches + huge_page_bytes;
    void *mem = mmap(NULL, pool->arena_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mem == MAP_FAILED) {
        diag_error("cannot get %zu MiB of memory: %s; give less with -m", pool->arena_bytes >> 20,
                   strerror(errno));
        return -1;
    }
    pool->arena = mem;
    /* The merge gathers records from all over the arena: huge pages save most of the TLB misses and
       nearly all page faults. On a kernel without huge pages nothing is lost. */
    (void)madvise(mem, pool->arena_bytes, MADV_HUGEPAGE);
    return 0;
}

void batch_pool_let_grow(struct batch_pool *pool)
{
    pool->grows = true;
}

void batch_pool_destroy(struct batch_pool *pool)
{
    if (!pool) return;
    for (size_t i = pool->n_spilled; i < pool->n_sealed; i++) batch_destroy(pool->sealed[i]);
    for (size_t i = 0; i < pool->n_free; i++) batch_destroy(pool->free_batches[i]);
    free(pool->sealed);
    free(pool->free_batches);
    if (pool->arena) (void)munmap(pool->arena, pool->arena_bytes);
    free(pool);
}

/* ---- the budget ---- */

void batch_pool_set_budget(struct batch_pool *pool, const struct mem_budget *budget)
{
    crew_lock(pool->crew);
    bool long_runs = pool->budget.long_runs;
    pool->budget = *budget;
    if (long_runs) mem_budget_lengthen_runs(&pool->budget);
    crew_unlock(pool->crew);
}

void batch_pool_budget(struct batch_pool *pool, struct mem_budget *budget)
{
    crew_lock(pool->crew);
    *budget = pool->budget;
    crew_unlock(pool->crew);
}

void batch_pool_lengthen_runs(struct batch_pool *pool)
{
    crew_lock(pool->crew);
    mem_budget_lengthen_runs(&pool->budget);
    crew_unlock(pool->crew);
}

/* Retires one batch: the budget has one batch less. */
static void shrink_budget(struct batch_pool *pool)
{
    pool->n_to_retire--;
    mem_budget_set_batches(&pool->budget, pool->budget.n_batches - 1);
}

static void retire_batch(struct batch_pool *pool, struct batch *batch)
{
    (void)madvise(batch->mem, batch->mem_bytes, MADV_DONTNEED);
    batch_destroy(batch);
    pool->n_made--;
    shrink_budget(pool);
}

bool batch_pool_retire(struct batch_pool *pool, unsigned n)
{
    crew_assert_locked(pool->crew);
    pool->n_to_retire += n;
    /* Stretches on which no batch was made can be retired at once. */
    while (pool->n_to_retire > 0 && pool->n_made < pool->budget.n_batches) shrink_budget(pool);
    while (pool->n_to_retire > 0 && pool->n_free > 0)
        retire_batch(pool, pool->free_batches[--pool->n_free]);
    return pool->n_to_retire == 0;
}

/* ---- the reader ---- */

/* Makes a batch on a fresh stretch of the arena. */
static struct batch *make_batch(struct batch_pool *pool)
{
    uintptr_t first = ((uintptr_t)pool->arena + huge_page_bytes - 1) & ~(huge_page_bytes - 1);
    uint8_t *mem = (uint8_t *)first + pool->n_made++ * pool->budget.batch_bytes;
    return batch_create(pool->rules, mem, pool->budget.batch_bytes);
}

/* True if the reader may have another batch: the budget has room, or no batch is left to spill, so
   that waiting would not help. Then records larger than the budget are sorted in more memory. */
static bool may_take(const struct batch_pool *pool)
{
    const struct mem_budget *budget = &pool->budget;
    size_t n_used = pool->n_made - pool->n_free;
    size_t used_bytes = (n_used + 1) * budget->batch_bytes + pool->large_bytes;
    return used_bytes <= budget->n_batches * budget->batch_bytes ||
           (n_used < budget->n_batches && batch_pool_n_kept(pool) == 0);
}

struct batch *batch_pool_take(struct batch_pool *pool)
{
    struct batch *batch = NULL;
    crew_lock(pool->crew);
    while (!pool->grows && !crew_failed(pool->crew) && !may_take(pool)) {
        if (!pool->reader_waits) {
            pool->reader_waits = true;
            crew_announce(pool->crew);
        }
        crew_wait_for(pool->crew, WAIT_READER_MEMORY);
    }
    pool->reader_waits = false;
    bool is_full = !may_take(pool), has_failed = crew_failed(pool->crew);
    if (!has_failed && !is_full)
        batch = pool->n_free > 0 ? pool->free_batches[--pool->n_free] : make_batch(pool);
    crew_unlock(pool->crew);
    return is_full && !has_failed ? batch_pool_make_large(pool, pool->budget.batch_bytes) : batch;
}

struct batch *batch_pool_make_large(struct batch_pool *pool, size_t n_bytes)
{
    struct batch *batch = batch_create(pool->rules, NULL, n_bytes);
    crew_lock(pool->crew);
    pool->large_bytes += batch->mem_bytes;
    crew_unlock(pool->crew);
    return batch;
}

void batch_pool_seal(struct batch_pool *pool, struct batch *batch,
                     const struct input_position *end)
{
    crew_lock(pool->crew);
    xgrow(&pool->sealed, &pool->sealed_room, pool->n_sealed + 1, pool->n_sealed + 63,
          sizeof *pool->sealed);
    batch->end = *end;
    pool->sealed[pool->n_sealed++] = batch;
    crew_announce(pool->crew);
    crew_unlock(pool->crew);
}

bool batch_pool_reader_waits(const struct batch_pool *pool)
{
    crew_assert_locked(pool->crew);
    return pool->reader_waits;
}

/* ---- all ---- */

static void free_locked(struct batch_pool *pool, struct batch *batch)
{
    if (batch->owns_mem) {
        pool->large_bytes -= batch->mem_bytes;
        batch_destroy(batch);
    } else if (pool->n_to_retire > 0) {
        retire_batch(pool, batch);
    } else {
        pool->free_batches[pool->n_free++] = batch;
    }
    crew_announce(pool->crew);
}

void batch_pool_free(struct batch_pool *pool, struct batch *batch)
{
    crew_lock(pool->crew);
    free_locked(pool, batch);
    crew_unlock(pool->crew);
}

void batch_pool_forget(struct batch_pool *pool, struct batch *batch)
{
    crew_lock(pool->crew);
    for (size_t i = 0; i < pool->n_sealed; i++) {
        if (pool->sealed[i] != batch) continue;
        pool->sealed[i] = pool->sealed[--pool->n_sealed];
        break;
    }
    free_locked(pool, batch);
    crew_unlock(pool->crew);
}

void batch_pool_drop_free(struct batch_pool *pool)
{
    crew_lock(pool->crew);
    for (size_t i = 0; i < pool->n_free; i++)
        (void)madvise(pool->free_batches[i]->mem, pool->free_batches[i]->mem_bytes,
                      MADV_DONTNEED);
    crew_unlock(pool->crew);
}

/* ---- the spiller ---- */

size_t batch_pool_n_kept(const struct batch_pool *pool)
{
    return pool->n_sealed - pool->n_spilled;
}

size_t batch_pool_n_due(const struct batch_pool *pool, uint64_t expected_bytes)
{
    crew_assert_locked(pool->crew);
    const struct spill_state state = {
        .n_waiting = batch_pool_n_kept(pool),
        .any_spilled = pool->n_spilled > 0,
        .expected_bytes = expected_bytes,
        .reader_is_stuck = pool->reader_waits && !may_take(pool),
    };
    return spill_policy_due(&pool->budget, &state);
}

/* True if the n oldest batches are sorted. */
static bool are_sorted(struct batch *const *batches, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!batches[i]->sorted) return false;
    return true;
}

int batch_pool_oldest(struct batch_pool *pool, size_t n, struct batch **oldest)
{
    crew_lock(pool->crew);
    /* The array may be moved while this thread waits, so its address is read anew each time. */
    while (!are_sorted(pool->sealed + pool->n_spilled, n) && !crew_failed(pool->crew))
        crew_wait_for(pool->crew, WAIT_SPILLER_BATCHES);
    memcpy(oldest, pool->sealed + pool->n_spilled, n * sizeof *oldest);
    crew_unlock(pool->crew);
    return crew_failed(pool->crew) ? -1 : 0;
}

void batch_pool_spilled(struct batch_pool *pool, size_t n)
{
    crew_lock(pool->crew);
    for (size_t i = 0; i < n; i++) free_locked(pool, pool->sealed[pool->n_spilled++]);
    crew_unlock(pool->crew);
}

/* ---- the merge ---- */

struct batch *const *batch_pool_kept(const struct batch_pool *pool, size_t *n)
{
    *n = batch_pool_n_kept(pool);
    /* An empty input has no list, and C forbids to add even 0 to NULL. */
    return pool->sealed ? pool->sealed + pool->n_spilled : NULL;
}

size_t batch_pool_kept_bytes(const struct batch_pool *pool)
{
    size_t n_bytes = 0;
    for (size_t i = pool->n_spilled; i < pool->n_sealed; i++)
        n_bytes += batch_used_bytes(pool->sealed[i]);
    return n_bytes;
}
