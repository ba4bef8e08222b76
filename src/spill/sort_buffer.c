/* sort_buffer.c -- see sort_buffer.h. */
#include "spill/sort_buffer.h"

#include "util/xalloc.h"

#include <stdlib.h>

/* More than an entry of 16 bytes and the alignment of the entries between the ends. */
enum { MARGIN_BYTES = 1024 };

static size_t align_up(size_t n, size_t alignment)
{
    return (n + alignment - 1) & ~(alignment - 1);
}

struct sort_buffer *sort_buffer_create(const struct sort_rules *rules, uint8_t *mem,
                                       size_t mem_bytes)
{
    struct sort_buffer *buffer = xcalloc(1, sizeof *buffer);
    buffer->rules = rules;
    buffer->mem = mem;
    buffer->mem_bytes = mem_bytes;
    if (!mem) {
        buffer->mem_bytes = align_up(mem_bytes, 4096);
        buffer->mem = xmalloc(buffer->mem_bytes);
        buffer->owns_mem = true;
    }
    sort_buffer_reset(buffer);
    return buffer;
}

static void free_parts(struct sort_buffer *buffer)
{
    while (buffer->parts) {
        struct sort_buffer_part *part = buffer->parts;
        buffer->parts = part->next;
        free(part);
    }
}

void sort_buffer_destroy(struct sort_buffer *buffer)
{
    if (!buffer) return;
    free_parts(buffer);
    if (buffer->owns_mem) free(buffer->mem);
    free(buffer);
}

void sort_buffer_reset(struct sort_buffer *buffer)
{
    free_parts(buffer);
    buffer->last_part = &buffer->parts;
    buffer->raw_bytes = 0;
    buffer->n_records = 0;
    buffer->entries = NULL;
    buffer->sorted = false;
    buffer->sum = (struct content_sum){0};
    buffer->any_placed = false;
    atomic_store(&buffer->top, buffer->mem_bytes);
    atomic_store(&buffer->unindexed_bytes, 0);
    atomic_store(&buffer->result_bytes, 0);
    atomic_store(&buffer->n_pending, 1);
}

/*
 * Returns the maximum memory for records besides their raw bytes. In a fixed order a record of 37
 * bytes takes an entry of 16 bytes. In other orders a record takes a keyed_record and an entry.
 * The longest natural key is twice as long as its name: a record of 291 bytes with a name of 254
 * takes 528 + 16 bytes.
 */
static size_t index_bytes_at_worst(enum sort_order order, size_t raw_bytes)
{
    return sort_order_is_fixed(order) ? raw_bytes / 2 : 2 * raw_bytes;
}

/* Returns how many raw bytes always fit, with their entries or keys. */
static size_t raw_bytes_at_worst(enum sort_order order, size_t free_bytes)
{
    return sort_order_is_fixed(order) ? free_bytes / 3 * 2 : free_bytes / 3;
}

size_t sort_buffer_bytes_for(enum sort_order order, size_t raw_bytes)
{
    return raw_bytes + index_bytes_at_worst(order, raw_bytes) + 4096;
}

size_t sort_buffer_room(const struct sort_buffer *buffer)
{
    /* Workers first lower `top` and then unindexed_bytes. Reading these in the opposite order may
       count bytes twice, so the result is never too large. */
    size_t unindexed = atomic_load(&buffer->unindexed_bytes);
    size_t taken = buffer->raw_bytes + atomic_load(&buffer->result_bytes) + MARGIN_BYTES +
                   index_bytes_at_worst(buffer->rules->order, unindexed);
    size_t top = atomic_load(&buffer->top);
    return top > taken ? raw_bytes_at_worst(buffer->rules->order, top - taken) : 0;
}

struct sort_buffer_part *sort_buffer_add_part(struct sort_buffer *buffer, const uint8_t *source,
                                              size_t n_bytes, size_t n_records,
                                              uint64_t first_record)
{
    struct sort_buffer_part *part = xcalloc(1, sizeof *part);
    part->buffer = buffer;
    part->from = buffer->mem + buffer->raw_bytes;
    part->to = part->from + n_bytes;
    part->n_records = n_records;
    part->first_record = first_record;
    part->source = source;
    *buffer->last_part = part;
    buffer->last_part = &part->next;
    buffer->raw_bytes += n_bytes;
    buffer->n_records += n_records;
    atomic_fetch_add(&buffer->unindexed_bytes, n_bytes);
    atomic_fetch_add(&buffer->n_pending, 1);
    return part;
}

void *buffer_take_from_top(struct sort_buffer *buffer, size_t n_bytes)
{
    return buffer->mem + (atomic_fetch_sub(&buffer->top, n_bytes) - n_bytes);
}

/* Gathers the entries of all parts in input order. */
static void gather_entries(const struct sort_buffer *buffer, struct sort_entry *out)
{
    for (const struct sort_buffer_part *part = buffer->parts; part; part = part->next) {
        if (sort_order_is_fixed(buffer->rules->order)) {
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

void sort_buffer_sort(struct sort_buffer *buffer, struct merge_space *space)
{
    size_t n = buffer->n_records;
    if (n > 0) {
        merge_space_reserve(space, n, 1);
        gather_entries(buffer, space->buffer[0]);
        sort_entries(buffer->rules, space->buffer[0], n, space->buffer[1]);
        /* In a fixed order the entries fill the upper end without a gap; the sorted ones replace
           them. */
        size_t at = sort_order_is_fixed(buffer->rules->order) ? atomic_load(&buffer->top)
                                                             : align_up(buffer->raw_bytes, 16);
        buffer->entries = (struct sort_entry *)(buffer->mem + at);
        memcpy(buffer->entries, space->buffer[0], n * sizeof *buffer->entries);
    }
    free_parts(buffer);
    buffer->last_part = &buffer->parts;
}

size_t sort_buffer_used_bytes(const struct sort_buffer *buffer)
{
    return buffer->raw_bytes + atomic_load(&buffer->result_bytes) + buffer->mem_bytes -
           atomic_load(&buffer->top);
}

/* ---- ordinals ---- */

/* Records are further apart than this, so their ordinals differ. Small ones are stored in fewer
   bytes. */
enum { UNIT_BYTES = 32 };

_Static_assert((int)UNIT_BYTES <= (int)BAM_RECORD_MIN_BYTES, "each record has its own number");

uint64_t record_ordinal(struct sort_buffer *const *buffers, size_t n, const uint8_t *rec)
{
    uint64_t first = 0;         /* the smallest ordinal of a sort buffer */
    for (size_t i = 0; i < n; i++) {
        size_t at = (size_t)((uintptr_t)rec - (uintptr_t)buffers[i]->mem);
        if (at < buffers[i]->mem_bytes) return first + at / UNIT_BYTES;
        first += buffers[i]->mem_bytes / UNIT_BYTES + 1;
    }
    return first;
}
