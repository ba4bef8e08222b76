/*
 * sort_buffer_pool.c -- see sort_buffer_pool.h.
 *
 * When the reader needs a sort buffer and none is free, one is made in a fresh slot of the arena.
 * Sort buffers for records larger than a slot have their own memory, which also counts against the
 * budget.
 */
#include "spill/sort_buffer_pool.h"

#include "spill/memory_budget.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const size_t huge_page_bytes = (size_t)2 << 20;

struct sort_buffer_pool {
    /* fixed after sort_buffer_pool_open */
    struct threads *threads;
    const struct sort_rules *rules;
    uint8_t *arena;
    size_t arena_bytes;
    bool grows;

    /* under the lock of the thread pool */
    struct memory_budget budget;
    struct sort_buffer **free_buffers;
    size_t n_free;
    size_t n_made;              /* slots of the arena that are sort buffers, free or not */
    unsigned n_to_retire;
    size_t large_bytes;         /* of sort buffers with their own memory */
    bool reader_waits;
    struct sort_buffer **frozen; /* [0, n_spilled) are in the store */
    size_t n_frozen, frozen_room, n_spilled;
};

struct sort_buffer_pool *sort_buffer_pool_create(struct threads *threads,
                                                 const struct memory_budget *budget)
{
    struct sort_buffer_pool *pool = xcalloc(1, sizeof *pool);
    pool->threads = threads;
    pool->budget = *budget;
    return pool;
}

int sort_buffer_pool_open(struct sort_buffer_pool *pool, const struct sort_rules *rules,
                          bool grows)
{
    const struct memory_budget *budget = &pool->budget;
    pool->rules = rules;
    pool->grows = grows;
    pool->free_buffers = xcalloc(budget->n_buffers, sizeof *pool->free_buffers);
    /* The kernel allocates pages as sort buffers fill, so a budget larger than the machine's memory
       is harmless for a small input. */
    pool->arena_bytes = budget->sort_buffer_bytes * budget->n_buffers + huge_page_bytes;
    void *mem = mmap(NULL, pool->arena_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mem == MAP_FAILED) {
        diag_error("cannot get %zu MiB of memory: %s; give less with -m", pool->arena_bytes >> 20,
                   strerror(errno));
        return -1;
    }
    pool->arena = mem;
    /* The merge gathers records from the whole arena: huge pages avoid most TLB misses and nearly
       all page faults. A kernel without huge pages ignores this. */
    (void)madvise(mem, pool->arena_bytes, MADV_HUGEPAGE);
    return 0;
}

void sort_buffer_pool_destroy(struct sort_buffer_pool *pool)
{
    if (!pool) return;
    for (size_t i = pool->n_spilled; i < pool->n_frozen; i++) sort_buffer_destroy(pool->frozen[i]);
    for (size_t i = 0; i < pool->n_free; i++) sort_buffer_destroy(pool->free_buffers[i]);
    free(pool->frozen);
    free(pool->free_buffers);
    if (pool->arena) (void)munmap(pool->arena, pool->arena_bytes);
    free(pool);
}

/* ---- the budget ---- */

void sort_buffer_pool_set_budget(struct sort_buffer_pool *pool, const struct memory_budget *budget)
{
    thread_pool_lock(pool->threads);
    bool long_runs = pool->budget.long_runs;
    pool->budget = *budget;
    if (long_runs) memory_budget_lengthen_runs(&pool->budget);
    thread_pool_unlock(pool->threads);
}

void sort_buffer_pool_budget(struct sort_buffer_pool *pool, struct memory_budget *budget)
{
    thread_pool_lock(pool->threads);
    *budget = pool->budget;
    thread_pool_unlock(pool->threads);
}

void sort_buffer_pool_lengthen_runs(struct sort_buffer_pool *pool)
{
    thread_pool_lock(pool->threads);
    memory_budget_lengthen_runs(&pool->budget);
    thread_pool_unlock(pool->threads);
}

/* Retires one sort buffer: removes it from the budget. */
static void shrink_budget(struct sort_buffer_pool *pool)
{
    pool->n_to_retire--;
    memory_budget_set_buffers(&pool->budget, pool->budget.n_buffers - 1);
}

static void retire_buffer(struct sort_buffer_pool *pool, struct sort_buffer *buffer)
{
    (void)madvise(buffer->mem, buffer->mem_bytes, MADV_DONTNEED);
    sort_buffer_destroy(buffer);
    pool->n_made--;
    shrink_budget(pool);
}

bool sort_buffer_pool_retire(struct sort_buffer_pool *pool, unsigned n)
{
    thread_pool_assert_locked(pool->threads);
    pool->n_to_retire += n;
    /* Slots without a sort buffer can be retired at once. */
    while (pool->n_to_retire > 0 && pool->n_made < pool->budget.n_buffers) shrink_budget(pool);
    while (pool->n_to_retire > 0 && pool->n_free > 0)
        retire_buffer(pool, pool->free_buffers[--pool->n_free]);
    return pool->n_to_retire == 0;
}

/* ---- the reader ---- */

/* Makes a sort buffer in a fresh slot of the arena. */
static struct sort_buffer *make_buffer(struct sort_buffer_pool *pool)
{
    uintptr_t first = ((uintptr_t)pool->arena + huge_page_bytes - 1) & ~(huge_page_bytes - 1);
    uint8_t *mem = (uint8_t *)first + pool->n_made++ * pool->budget.sort_buffer_bytes;
    return sort_buffer_create(pool->rules, mem, pool->budget.sort_buffer_bytes);
}

/* True if the reader may have another sort buffer: the budget has room, or no sort buffer is left
   to spill, so waiting would not help. In that case records larger than the budget take more
   memory. */
static bool may_take(const struct sort_buffer_pool *pool)
{
    const struct memory_budget *budget = &pool->budget;
    size_t n_used = pool->n_made - pool->n_free;
    size_t used_bytes = (n_used + 1) * budget->sort_buffer_bytes + pool->large_bytes;
    return used_bytes <= budget->n_buffers * budget->sort_buffer_bytes ||
           (n_used < budget->n_buffers && sort_buffer_pool_n_kept(pool) == 0);
}

struct sort_buffer *sort_buffer_pool_take(struct sort_buffer_pool *pool)
{
    struct sort_buffer *buffer = NULL;
    thread_pool_lock(pool->threads);
    while (!pool->grows && !thread_pool_failed(pool->threads) && !may_take(pool)) {
        if (!pool->reader_waits) {
            pool->reader_waits = true;
            thread_pool_announce(pool->threads);
        }
        thread_pool_wait_for(pool->threads, WAIT_READER_MEMORY);
    }
    pool->reader_waits = false;
    bool is_full = !may_take(pool), has_failed = thread_pool_failed(pool->threads);
    if (!has_failed && !is_full)
        buffer = pool->n_free > 0 ? pool->free_buffers[--pool->n_free] : make_buffer(pool);
    thread_pool_unlock(pool->threads);
    return is_full && !has_failed
               ? sort_buffer_pool_make_large(pool, pool->budget.sort_buffer_bytes)
               : buffer;
}

struct sort_buffer *sort_buffer_pool_make_large(struct sort_buffer_pool *pool, size_t n_bytes)
{
    struct sort_buffer *buffer = sort_buffer_create(pool->rules, NULL, n_bytes);
    thread_pool_lock(pool->threads);
    pool->large_bytes += buffer->mem_bytes;
    thread_pool_unlock(pool->threads);
    return buffer;
}

void sort_buffer_pool_freeze(struct sort_buffer_pool *pool, struct sort_buffer *buffer,
                             const struct input_position *end)
{
    thread_pool_lock(pool->threads);
    xgrow(&pool->frozen, &pool->frozen_room, pool->n_frozen + 1, pool->n_frozen + 63,
          sizeof *pool->frozen);
    buffer->end = *end;
    pool->frozen[pool->n_frozen++] = buffer;
    thread_pool_announce(pool->threads);
    thread_pool_unlock(pool->threads);
}

bool sort_buffer_pool_reader_waits(const struct sort_buffer_pool *pool)
{
    thread_pool_assert_locked(pool->threads);
    return pool->reader_waits;
}

/* ---- any thread ---- */

static void free_locked(struct sort_buffer_pool *pool, struct sort_buffer *buffer)
{
    if (buffer->owns_mem) {
        pool->large_bytes -= buffer->mem_bytes;
        sort_buffer_destroy(buffer);
    } else if (pool->n_to_retire > 0) {
        retire_buffer(pool, buffer);
    } else {
        pool->free_buffers[pool->n_free++] = buffer;
    }
    thread_pool_announce(pool->threads);
}

void sort_buffer_pool_free(struct sort_buffer_pool *pool, struct sort_buffer *buffer)
{
    thread_pool_lock(pool->threads);
    free_locked(pool, buffer);
    thread_pool_unlock(pool->threads);
}

void sort_buffer_pool_forget(struct sort_buffer_pool *pool, struct sort_buffer *buffer)
{
    thread_pool_lock(pool->threads);
    for (size_t i = 0; i < pool->n_frozen; i++) {
        if (pool->frozen[i] != buffer) continue;
        pool->frozen[i] = pool->frozen[--pool->n_frozen];
        break;
    }
    free_locked(pool, buffer);
    thread_pool_unlock(pool->threads);
}

void sort_buffer_pool_drop_free(struct sort_buffer_pool *pool)
{
    thread_pool_lock(pool->threads);
    for (size_t i = 0; i < pool->n_free; i++)
        (void)madvise(pool->free_buffers[i]->mem, pool->free_buffers[i]->mem_bytes, MADV_DONTNEED);
    thread_pool_unlock(pool->threads);
}

/* ---- the spiller ---- */

size_t sort_buffer_pool_n_kept(const struct sort_buffer_pool *pool)
{
    return pool->n_frozen - pool->n_spilled;
}

size_t sort_buffer_pool_n_due(const struct sort_buffer_pool *pool, uint64_t expected_bytes)
{
    thread_pool_assert_locked(pool->threads);
    size_t n_kept = sort_buffer_pool_n_kept(pool);
    /* The reader is stuck if large records fill the memory with fewer sort buffers. */
    bool is_stuck = pool->reader_waits && !may_take(pool);
    bool any_spilled = pool->n_spilled > 0;
    return is_stuck || n_kept >= spill_policy_threshold(&pool->budget, any_spilled, expected_bytes)
               ? spill_policy_run_buffers(&pool->budget, n_kept) : 0;
}

/* True if the n oldest sort buffers are sorted. */
static bool are_sorted(struct sort_buffer *const *buffers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!buffers[i]->sorted) return false;
    return true;
}

int sort_buffer_pool_oldest(struct sort_buffer_pool *pool, size_t n, struct sort_buffer **oldest)
{
    thread_pool_lock(pool->threads);
    /* The array may move while this thread waits, so its address is read again each time. */
    while (!are_sorted(pool->frozen + pool->n_spilled, n) && !thread_pool_failed(pool->threads))
        thread_pool_wait_for(pool->threads, WAIT_SPILLER_BUFFERS);
    memcpy(oldest, pool->frozen + pool->n_spilled, n * sizeof *oldest);
    thread_pool_unlock(pool->threads);
    return thread_pool_failed(pool->threads) ? -1 : 0;
}

void sort_buffer_pool_spilled(struct sort_buffer_pool *pool, size_t n)
{
    thread_pool_lock(pool->threads);
    for (size_t i = 0; i < n; i++) free_locked(pool, pool->frozen[pool->n_spilled++]);
    thread_pool_unlock(pool->threads);
}

/* ---- the merge ---- */

struct sort_buffer *const *sort_buffer_pool_kept(const struct sort_buffer_pool *pool, size_t *n)
{
    *n = sort_buffer_pool_n_kept(pool);
    /* An empty input has no list, and C does not allow adding 0 to NULL. */
    return pool->frozen ? pool->frozen + pool->n_spilled : NULL;
}

size_t sort_buffer_pool_kept_bytes(const struct sort_buffer_pool *pool)
{
    size_t n_bytes = 0;
    for (size_t i = pool->n_spilled; i < pool->n_frozen; i++)
        n_bytes += sort_buffer_used_bytes(pool->frozen[i]);
    return n_bytes;
}
