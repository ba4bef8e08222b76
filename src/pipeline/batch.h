/*
 * batch.h -- a batch: an arena full of raw records that are sorted together.
 *
 *     mem                                                                       mem + mem_bytes
 *     | gap | raw records, in input order ...  ->        <- ... entries and keys |
 *           raw_begin                    raw_end        top
 *
 * Raw bytes are appended at raw_end by one thread, the filler, possibly before they are there (a
 * worker inflates them later). Once the bytes of some whole records are there, the filler adds them
 * as a part; batch_index_part, run by a worker, checks these records and writes their entries
 * or keys below `top`. batch_room sees to it that both ends never meet. When all parts are
 * indexed the batch is sorted, after which it is read-only.
 *
 * The gap takes the beginning of a record whose end is in this batch but whose beginning was in the
 * previous one: the straddler. How long that is shows only when the walk gets there, after bytes
 * were appended behind the gap, so that there must be room for the index of a gap full of record.
 *
 * Ownership: the batch owns its parts, and its memory if it was allocated by batch_create.
 */
#ifndef ROCKSORT_PIPELINE_BATCH_H
#define ROCKSORT_PIPELINE_BATCH_H

#include "bam/content_sum.h"
#include "bam/input_position.h"
#include "bam/record_problem.h"
#include "order/merge.h"

#include <stdatomic.h>

struct batch;

struct batch_part {
    struct batch *batch;
    struct batch_part *next;
    uint8_t *from, *to;                 /* whole records */
    size_t n_records;
    uint64_t first_record;              /* number of the first in the input, from 0 */
    const uint8_t *source;              /* where the bytes are to be copied from; NULL: in place */
    void *source_owner;                 /* for whoever added the part, */
    const char *input;                  /* likewise: name of the input */
    bool any_placed;                    /* some record has a reference */
    void *index;                        /* sort_entry or keyed_record sequence, below `top` */
};

struct batch {
    /* fixed after creation */
    uint8_t *mem;
    size_t mem_bytes;
    bool owns_mem;
    const struct sort_rules *rules;
    /* filler only, until the batch is sorted */
    size_t gap_bytes;
    bool gap_is_open;                   /* batch_prepend is still to come */
    size_t raw_begin, raw_end;
    size_t walk_at;                     /* end of the last part */
    size_t n_records;
    struct batch_part *parts, **last_part;
    /* filler and workers */
    _Atomic size_t top;
    _Atomic size_t unindexed_bytes;     /* raw bytes whose entries are still to come */
    _Atomic size_t result_bytes;        /* room that sorting needs between the ends */
    const void *owner;                  /* what its jobs work with; set before the first part */
    atomic_uint n_pending;              /* for the owner: jobs that are not done yet */
    /* for the owner, under its lock */
    bool sorted;                        /* sorting is done */
    struct content_sum sum;             /* of the parts that are indexed */
    bool any_placed;                    /* some record has a reference */
    struct input_position end;          /* behind its last record */
    /* after sorting */
    struct sort_entry *entries;
};

/* Makes a batch with mem_bytes (8 KiB at least) of its own, or on given memory. The rules outlive
   it. NULL without memory. */
struct batch *batch_create(const struct sort_rules *rules, uint8_t *mem,
                                   size_t mem_bytes);
void batch_destroy(struct batch *batch);

/* Empties the batch; its first raw byte will be at gap_bytes. */
void batch_reset(struct batch *batch, size_t gap_bytes);

/* Raw bytes that can still be appended, whatever records they turn out to be. */
size_t batch_room(const struct batch *batch);

/* Memory that a batch needs in which raw_bytes can be appended behind a gap. */
size_t batch_bytes_for(enum sort_order order, size_t gap_bytes, size_t raw_bytes);

/* Memory that a raw byte is counted with as long as it is not indexed. */
double batch_memory_at_worst(enum sort_order order);

/* Claims the next raw_bytes. */
void batch_append(struct batch *batch, size_t raw_bytes);

/*
 * Moves bytes to just below raw_begin, which must be untouched: at most gap_bytes of them. Once for
 * each batch, before its first part, with no bytes if no record lies across its beginning.
 */
void batch_prepend(struct batch *batch, const uint8_t *bytes, size_t n_bytes);

/* Adds n_records whole records that end at `to`, an offset into mem; NULL without memory. */
struct batch_part *batch_add_part(struct batch *batch, size_t to, size_t n_records,
                                          uint64_t first_record);

/*
 * Copies the records of a part from its source, if it has one, checks them against a header of
 * n_refs references, adds them to *sum and indexes them. Returns 0, or -1 with the reason in
 * *problem.
 */
int batch_index_part(struct batch_part *part, int32_t n_refs, struct content_sum *sum,
                     struct record_problem *problem);

/* Sorts a batch all of whose parts are indexed. Returns 0, or -1 without memory. */
int batch_sort(struct batch *batch, struct merge_space *space);

/* Raw bytes and all bytes in use. */
size_t batch_raw_bytes(const struct batch *batch);
size_t batch_used_bytes(const struct batch *batch);

#endif
