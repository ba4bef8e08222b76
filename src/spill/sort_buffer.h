/*
 * sort_buffer.h -- a sort buffer: an arena full of raw records that are sorted together.
 *
 *     mem                                                                       mem + mem_bytes
 *     | raw records, in input order ...  ->              <- ... entries and keys |
 *                                 raw_bytes              top
 *
 * Both ends grow, because nobody knows before how many records come, or how long their keys are.
 *
 *     sort_buffer_create; sort_buffer_reset before each use;
 *     sort_buffer_room, sort_buffer_add_part                one thread, the filler, claims a place
 * for a part record_entries_index_part (record_entries.h): a worker copies the part there, moves
 * `top` down and writes its entries or keys; each part once sort_buffer_sort a worker, when all
 * parts are indexed sort_buffer_destroy
 *
 * Ownership: the sort buffer owns its parts, and its memory if sort_buffer_create allocated it.
 * Messages about records are left to the caller (record_problem.h).
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
    const uint8_t *source;              /* to copy the bytes from */
    void *source_owner;                 /* for the caller's use, as the next two */
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
    _Atomic size_t unindexed_bytes;     /* raw bytes that have no entries or keys yet */
    _Atomic size_t result_bytes;        /* room that sorting needs between the ends */
    const void *owner;                  /* for the caller's use; set before the first part */
    atomic_uint n_pending;              /* for the caller's use: jobs that are not done yet */
    /* for the caller's use, under its lock */
    bool sorted;                        /* sorting is done */
    struct content_sum sum;             /* of the parts that are indexed */
    bool any_placed;                    /* some record has a reference */
    struct input_position end;          /* after its last record */
    /* after sorting */
    struct sort_entry *entries;
};

/* Makes a sort buffer with mem_bytes, at least 8 KiB, at mem. If mem is NULL, mmap gives the sort
   buffer memory of its own. The rules must outlive the sort buffer. Never returns NULL. */
struct sort_buffer *sort_buffer_create(const struct sort_rules *rules, uint8_t *mem,
                                       size_t mem_bytes);
void sort_buffer_destroy(struct sort_buffer *buffer);

void sort_buffer_reset(struct sort_buffer *buffer);

/* Returns how many bytes of records can still be added, whatever records they are. */
size_t sort_buffer_room(const struct sort_buffer *buffer);

/* Returns the size of a sort buffer that has room for raw_bytes. */
size_t sort_buffer_bytes_for(enum sort_order order, size_t raw_bytes);

/* Adds as a part n_records whole records, n_bytes in all, which stay at source until the part is
   indexed. */
struct sort_buffer_part *sort_buffer_add_part(struct sort_buffer *buffer, const uint8_t *source,
                                              size_t n_bytes, size_t n_records,
                                              uint64_t first_record);

/* Takes n_bytes at the upper end of the free room, for entries or keys of a part. */
void *buffer_take_from_top(struct sort_buffer *buffer, size_t n_bytes);

/* The worker's memory to sort sort buffers and to merge slices. */
struct merge_space *worker_merge_space(struct worker *worker);

/* Sorts a sort buffer whose parts are all indexed, and frees the parts. */
void sort_buffer_sort(struct sort_buffer *buffer, struct merge_space *space);

/* Returns the bytes of memory that the sort buffer uses, with what sorting it will need. */
size_t sort_buffer_used_bytes(const struct sort_buffer *buffer);

/*
 * ---- ordinals ----
 *
 * Records that are sorted by a tag first (--split-by rg, tag:XX) lose the order of the input among
 * those at one place, but --markdup needs it. So they get an *ordinal* (markdup/read_ends.h),
 * which comes from their place in memory: it increases in the order of the input, with gaps. Any
 * thread may look ordinals up.
 */

struct record_ordinals;

/* True if ordinals are not simply the indexes of records in their run. */
static inline bool record_ordinals_are_needed(const struct sort_rules *rules)
{
    return rules->duplicates && rules->order == SORT_TAG;
}

/* Of the records of n sort buffers that become one run, in their order. */
struct record_ordinals *record_ordinals_create(struct sort_buffer *const *buffers, size_t n);

/* NULL is accepted. */
void record_ordinals_destroy(struct record_ordinals *ordinals);

/* The ordinal of a record in one of the sort buffers. */
uint64_t record_ordinals_find(const struct record_ordinals *ordinals, const uint8_t *rec);

/* The same of a record in a sort buffer that is a run by itself. */
uint64_t record_ordinal_in_buffer(const struct sort_buffer *buffer, const uint8_t *rec);

#endif
