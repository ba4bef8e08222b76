/*
 * batch_pool.c -- the memory of batches: one arena, cut into stretches of one size.
 *
 * A batch is made of a stretch when the reader first needs so many, filled, and free again when its
 * records are in the store. Batches whose memory is wanted for something else are *retired* as they
 * become free. Batches for records larger than a stretch have memory of their own, and count, too.
 */
#include "pipeline/pipeline_internal.h"

#include "util/diag.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int prepare_batches(struct pipeline *p)
{
    /* One more: a batch may be freed that was not made from the arena's budget. */
    p->free_batches = calloc(p->budget.n_batches + 1, sizeof *p->free_batches);
    if (!p->free_batches) return pipeline_no_memory(p);
    /* Only address space so far: memory is taken as batches fill, so that a budget beyond what the
       machine has does no harm to a small input. */
    size_t huge = (size_t)2 << 20;
    p->arena_bytes = p->budget.batch_bytes * p->budget.n_batches + huge;
    void *mem = mmap(NULL, p->arena_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mem == MAP_FAILED) {
        diag_error("cannot get %zu MiB of memory: %s; give less with -m", p->arena_bytes >> 20,
                   strerror(errno));
        return -1;
    }
    p->arena = mem;
    /* Records are gathered from all over the arena: huge pages save most of the TLB misses and
       nearly all page faults. Where the kernel has none, nothing is lost. */
    (void)madvise(mem, p->arena_bytes, MADV_HUGEPAGE);
    return 0;
}

void release_batches(struct pipeline *p)
{
    for (size_t i = p->sealed.n_spilled; i < p->sealed.n; i++)
        batch_destroy(p->sealed.batches[i]);
    for (size_t i = 0; i < p->n_free_batches; i++) batch_destroy(p->free_batches[i]);
    free(p->sealed.batches);
    free(p->free_batches);
    if (p->arena) (void)munmap(p->arena, p->arena_bytes);
}

/* With the lock held: a batch on a fresh stretch of the arena; NULL without memory. */
static struct batch *make_batch(struct pipeline *p)
{
    size_t huge = (size_t)2 << 20;
    uint8_t *base = (uint8_t *)(((uintptr_t)p->arena + huge - 1) & ~(uintptr_t)(huge - 1));
    struct batch *batch =
        batch_create(&p->rules, base + p->n_made_batches * p->budget.batch_bytes,
                         p->budget.batch_bytes);
    if (batch) p->n_made_batches++;
    return batch;
}

/* If nothing is left that could be spilled, there is no point in waiting: records larger than the
   budget are sorted beyond it. */
bool may_take_batch(const struct pipeline *p)
{
    const struct mem_budget *budget = &p->budget;
    size_t n_used = p->n_made_batches - p->n_free_batches;
    size_t used_bytes = (n_used + 1) * budget->batch_bytes + p->large_bytes;
    return used_bytes <= budget->n_batches * budget->batch_bytes ||
           (n_used < budget->n_batches && p->sealed.n == p->sealed.n_spilled);
}

struct batch *take_batch(struct pipeline *p)
{
    struct batch *batch = NULL;
    pipeline_lock(p);
    while (!pipeline_failed(p) && !may_take_batch(p)) {
        if (!p->reader_waits) {
            p->reader_waits = true;
            pipeline_announce(p);
        }
        pipeline_wait_for(p, WAIT_READER_MEMORY);
    }
    bool failed = pipeline_failed(p);
    /* There is one that is free or a stretch for another. */
    if (!failed)
        batch = p->n_free_batches > 0 ? p->free_batches[--p->n_free_batches] : make_batch(p);
    p->reader_waits = false;
    pipeline_unlock(p);
    if (!failed && !batch) (void)pipeline_no_memory(p);
    return batch;
}

static void retire_batch(struct pipeline *p, struct batch *batch)
{
    (void)madvise(batch->mem, batch->mem_bytes, MADV_DONTNEED);
    batch_destroy(batch);
    p->n_made_batches--;
    p->n_to_retire--;
    mem_budget_set_batches(&p->budget, p->budget.n_batches - 1);
}

void retire_batches(struct pipeline *p, unsigned n)
{
    p->n_to_retire += n;
    /* Those that were never made need no waiting. */
    while (p->n_to_retire > 0 && p->n_made_batches < p->budget.n_batches) {
        p->n_to_retire--;
        mem_budget_set_batches(&p->budget, p->budget.n_batches - 1);
    }
    while (p->n_to_retire > 0 && p->n_free_batches > 0)
        retire_batch(p, p->free_batches[--p->n_free_batches]);
}

void free_batch(struct pipeline *p, struct batch *batch)
{
    if (batch->owns_mem) {
        p->large_bytes -= batch->mem_bytes;
        batch_destroy(batch);
    } else if (p->n_to_retire > 0) {
        retire_batch(p, batch);
    } else {
        p->free_batches[p->n_free_batches++] = batch;
    }
    pipeline_announce(p);
}

void drop_free_batches(struct pipeline *p)
{
    for (size_t i = 0; i < p->n_free_batches; i++)
        (void)madvise(p->free_batches[i]->mem, p->free_batches[i]->mem_bytes, MADV_DONTNEED);
}
