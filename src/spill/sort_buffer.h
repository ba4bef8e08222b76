/*
 * sort_buffer.h -- collects raw records in a sort buffer, one piece of memory, and sorts them.
 *
 *     mem                                                                       mem + mem_bytes
 *     | raw records, in input order ...  ->              <- ... entries and keys |
 *                                 raw_bytes              top
 *
 * Both ends grow, because the number of records and the size of their keys are unknown in advance.
 *
 * Order of calls: sort_buffer_create; sort_buffer_reset before each use. One thread, the filler,
 * claims a place for each part: sort_buffer_room, sort_buffer_add_part. A worker copies the part to
 * it, moves `top` down and writes entries or keys: record_entries_index_part (record_entries.h).
 * When all parts are indexed, a worker calls sort_buffer_sort. Last: sort_buffer_destroy.
 *
 * Ownership: the sort buffer owns its parts, and its memory if sort_buffer_create allocated it. The
 * caller prints messages about records (record_problem.h).
 */
#ifndef ROCKSORT_SPILL_SORT_BUFFER_H
#define ROCKSORT_SPILL_SORT_BUFFER_H

#include "bam/content_sum.h"
#include "bam/input_position.h"
#include "bam/record_problem.h"
#include "order/slice_merge.h"
#include "os/thread_pool.h"

#include <stdatomic.h>

struct sort_buffer;

struct sort_buffer_part {
    struct sort_buffer *buffer;
    struct sort_buffer_part *next;
    uint8_t *from, *to;                 /* whole records */
    size_t n_records;
    uint64_t first_record;              /* number of the first in the input, from 0, or
                                           RECORD_NUMBER_UNKNOWN */
    const uint8_t *source;              /* of the copy */
    void *source_owner;                 /* for the caller, like the next two */
    void (*drop_source)(void *owner);
    const char *input;                  /* name of the input */
    bool any_placed;                    /* not in fixed orders: some record has a reference */
    void *index;                        /* its entries or keyed_records, above `top` */
};

struct sort_buffer {
    /* fixed after creation */
    uint8_t *mem;
    size_t mem_bytes;
    bool owns_mem;
    const struct sort_rules *rules;
    /* filler only, until the sort buffer is sorted */
    size_t raw_bytes;                   /* of the records of all parts */
    size_t n_records;
    struct sort_buffer_part *parts, **last_part;
    /* filler and workers */
    _Atomic size_t top;
    _Atomic size_t unindexed_bytes;     /* raw bytes without entries or keys yet */
    _Atomic size_t result_bytes;        /* room that sorting needs between the ends */
    const void *owner;                  /* for the caller; set before the first part */
    atomic_uint n_pending;              /* for the caller: unfinished jobs */
    /* for the caller, under its lock */
    bool sorted;
    struct content_sum sum;             /* of the indexed parts */
    bool any_placed;                    /* some record has a reference */
    struct input_position end;          /* after its last record */
    /* after sorting */
    struct sort_entry *entries;
};

/* Makes a sort buffer with mem_bytes, at least 8 KiB, at mem; if mem is NULL, allocates the
   memory. The rules must outlive the sort buffer. Never returns NULL. */
struct sort_buffer *sort_buffer_create(const struct sort_rules *rules, uint8_t *mem,
                                       size_t mem_bytes);
void sort_buffer_destroy(struct sort_buffer *buffer);

void sort_buffer_reset(struct sort_buffer *buffer);

/* Returns how many bytes of records can still be added in the worst case. */
size_t sort_buffer_room(const struct sort_buffer *buffer);

/* Returns the size of a sort buffer that has room for raw_bytes. */
size_t sort_buffer_bytes_for(enum sort_order order, size_t raw_bytes);

/* Adds a part of n_records whole records, n_bytes in all, which must stay at source until the part
   is indexed. */
struct sort_buffer_part *sort_buffer_add_part(struct sort_buffer *buffer, const uint8_t *source,
                                              size_t n_bytes, size_t n_records,
                                              uint64_t first_record);

/* Takes n_bytes at the upper end of the free room, for entries or keys of a part. */
void *buffer_take_from_top(struct sort_buffer *buffer, size_t n_bytes);

/* Returns the worker's memory for sorting and merging. */
struct merge_space *worker_merge_space(struct worker *worker);

/* Sorts a sort buffer whose parts are all indexed, and frees the parts. */
void sort_buffer_sort(struct sort_buffer *buffer, struct merge_space *space);

/* Returns the bytes of memory that the sort buffer uses, including those for sorting. */
size_t sort_buffer_used_bytes(const struct sort_buffer *buffer);

/*
 * ---- ordinals ----
 *
 * --markdup needs the input order of records at one position, which records lose if they are sorted
 * by a tag first (--split-by rg, tag:XX). So they get an *ordinal* (markdup/read_ends.h), computed
 * from their address: it increases in the order of the input, with gaps. Any thread may look up
 * ordinals.
 */

/* True if ordinals differ from the indexes of records in their run. */
static inline bool record_ordinals_are_needed(const struct sort_rules *rules)
{
    return rules->duplicates && rules->order == SORT_TAG;
}

/* Returns the ordinal of a record in one of the n sort buffers of a run, which are in input
   order. */
uint64_t record_ordinal(struct sort_buffer *const *buffers, size_t n, const uint8_t *rec);

#endif
