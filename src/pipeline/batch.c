/* batch.c -- see batch.h. */
#include "pipeline/batch.h"

#include "util/xalloc.h"

#include <stdlib.h>
#include <sys/mman.h>

/* This is more than an entry of 16 bytes and what aligning the entries between the ends takes. */
enum { MARGIN_BYTES = 1024 };

static size_t align_up(size_t n, size_t alignment)
{
    return (n + alignment - 1) & ~(alignment - 1);
}

struct batch *batch_create(const struct sort_rules *rules, uint8_t *mem, size_t mem_bytes)
{
    struct batch *batch = xcalloc(1, sizeof *batch);
    batch->rules = rules;
    batch->mem = mem;
    batch->mem_bytes = mem_bytes;
    if (!mem) {
        batch->mem_bytes = align_up(mem_bytes, 4096);
        void *fresh = mmap(NULL, batch->mem_bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        xalloc_require(fresh != MAP_FAILED);
        batch->mem = fresh;
        batch->owns_mem = true;
    }
    batch_reset(batch);
    return batch;
}

static void free_parts(struct batch *batch)
{
    while (batch->parts) {
        struct batch_part *part = batch->parts;
        batch->parts = part->next;
        free(part);
    }
}

void batch_destroy(struct batch *batch)
{
    if (!batch) return;
    free_parts(batch);
    if (batch->owns_mem) (void)munmap(batch->mem, batch->mem_bytes);
    free(batch);
}

void batch_reset(struct batch *batch)
{
    free_parts(batch);
    batch->last_part = &batch->parts;
    batch->raw_bytes = 0;
    batch->n_records = 0;
    batch->entries = NULL;
    batch->sorted = false;
    batch->sum = (struct content_sum){0};
    batch->any_placed = false;
    atomic_store(&batch->top, batch->mem_bytes);
    atomic_store(&batch->unindexed_bytes, 0);
    atomic_store(&batch->result_bytes, 0);
    atomic_store(&batch->n_pending, 1);
}

/*
 * Returns the most memory that records take besides their raw bytes. In a fixed order a record of
 * 37 bytes takes an entry of 16 bytes. In other orders a record takes a keyed_record and an entry.
 * The longest natural key is twice as long as its name: a record of 291 bytes with a name of 254
 * takes 528 + 16 bytes.
 */
static size_t index_bytes_at_worst(enum sort_order order, size_t raw_bytes)
{
    return sort_order_is_fixed(order) ? raw_bytes / 2 : 2 * raw_bytes;
}

/* Returns how many raw bytes surely fit, with their entries or keys. */
static size_t raw_bytes_at_worst(enum sort_order order, size_t free_bytes)
{
    return sort_order_is_fixed(order) ? free_bytes / 3 * 2 : free_bytes / 3;
}

size_t batch_bytes_for(enum sort_order order, size_t raw_bytes)
{
    return raw_bytes + index_bytes_at_worst(order, raw_bytes) + 4096;
}

size_t batch_room(const struct batch *batch)
{
    /* Workers first lower `top` and then unindexed_bytes. Reading these in the opposite order can
       only count bytes twice, which gives too little room and never too much. */
    size_t unindexed = atomic_load(&batch->unindexed_bytes);
    size_t taken = batch->raw_bytes + atomic_load(&batch->result_bytes) + MARGIN_BYTES +
                   index_bytes_at_worst(batch->rules->order, unindexed);
    size_t top = atomic_load(&batch->top);
    return top > taken ? raw_bytes_at_worst(batch->rules->order, top - taken) : 0;
}

struct batch_part *batch_add_part(struct batch *batch, const uint8_t *source, size_t n_bytes,
                                  size_t n_records, uint64_t first_record)
{
    struct batch_part *part = xcalloc(1, sizeof *part);
    part->batch = batch;
    part->from = batch->mem + batch->raw_bytes;
    part->to = part->from + n_bytes;
    part->n_records = n_records;
    part->first_record = first_record;
    part->source = source;
    *batch->last_part = part;
    batch->last_part = &part->next;
    batch->raw_bytes += n_bytes;
    batch->n_records += n_records;
    atomic_fetch_add(&batch->unindexed_bytes, n_bytes);
    atomic_fetch_add(&batch->n_pending, 1);
    return part;
}

void *batch_take_from_top(struct batch *batch, size_t n_bytes)
{
    return batch->mem + (atomic_fetch_sub(&batch->top, n_bytes) - n_bytes);
}

/* Gathers the entries of all parts in input order. */
static void gather_entries(const struct batch *batch, struct sort_entry *out)
{
    for (const struct batch_part *part = batch->parts; part; part = part->next) {
        if (sort_order_is_fixed(batch->rules->order)) {
            memcpy(out, part->index, part->n_records * sizeof *out);
            out += part->n_records;
        } else {
            out = keyed_records_entries(part->index, part->n_records, out);
        }
    }
}

static void release_space(void *space)
{
    merge_space_release(space);
}

struct merge_space *worker_merge_space(struct worker *worker)
{
    static const struct scratch_kind kind = {sizeof(struct merge_space), release_space};
    return worker_scratch(worker, &kind);
}

void batch_sort(struct batch *batch, struct merge_space *space)
{
    size_t n = batch->n_records;
    if (n > 0) {
        merge_space_reserve(space, n, 1);
        gather_entries(batch, space->buffer[0]);
        sort_entries(batch->rules, space->buffer[0], n, space->buffer[1]);
        /* In a fixed order the entries fill the upper end without a hole. The sorted ones replace
           them. */
        size_t at = sort_order_is_fixed(batch->rules->order) ? atomic_load(&batch->top)
                                                             : align_up(batch->raw_bytes, 16);
        batch->entries = (struct sort_entry *)(batch->mem + at);
        memcpy(batch->entries, space->buffer[0], n * sizeof *batch->entries);
    }
    free_parts(batch);
    batch->last_part = &batch->parts;
}

size_t batch_used_bytes(const struct batch *batch)
{
    return batch->raw_bytes + atomic_load(&batch->result_bytes) + batch->mem_bytes -
           atomic_load(&batch->top);
}

/* ---- ordinals ---- */

/* Two records are further apart than this, so they never have one number. Small numbers are shorter
   when they are stored. */
enum { UNIT_BYTES = 32 };

_Static_assert((int)UNIT_BYTES <= (int)BAM_RECORD_MIN_BYTES, "each record has its own number");

struct numbered_batch {
    const struct batch *batch;
    uint64_t first;             /* no record of it has a smaller number */
};

struct record_ordinals {
    size_t n;
    struct numbered_batch batches[];    /* in the order of their memory */
};

static int compare_memory(const void *a, const void *b)
{
    const struct numbered_batch *x = a, *y = b;
    uintptr_t p = (uintptr_t)x->batch->mem, q = (uintptr_t)y->batch->mem;
    return p < q ? -1 : p > q;
}

struct record_ordinals *record_ordinals_create(struct batch *const *batches, size_t n)
{
    struct record_ordinals *ordinals =
        xmalloc(sizeof *ordinals + n * sizeof ordinals->batches[0]);
    uint64_t first = 0;
    ordinals->n = n;
    for (size_t i = 0; i < n; i++) {
        ordinals->batches[i] = (struct numbered_batch){batches[i], first};
        first += batches[i]->mem_bytes / UNIT_BYTES + 1;
    }
    qsort(ordinals->batches, n, sizeof ordinals->batches[0], compare_memory);
    return ordinals;
}

void record_ordinals_destroy(struct record_ordinals *ordinals)
{
    free(ordinals);
}

uint64_t record_ordinal_in_batch(const struct batch *batch, const uint8_t *rec)
{
    return (uint64_t)(rec - batch->mem) / UNIT_BYTES;
}

/* The last batch that does not begin after the record. */
uint64_t record_ordinals_find(const struct record_ordinals *ordinals, const uint8_t *rec)
{
    size_t low = 0, high = ordinals->n;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t)ordinals->batches[middle].batch->mem <= (uintptr_t)rec)
            low = middle;
        else
            high = middle;
    }
    const struct numbered_batch *found = &ordinals->batches[low];
    return found->first + record_ordinal_in_batch(found->batch, rec);
}
