/*
 * output_chunk.h -- the jobs of the merge: opens blocks, and merges and encodes output chunks.
 *
 * The dispatcher (merge.h) takes blocks in the order of their first keys, and cuts output chunks. A
 * block comes from a run in the store, from an input (--merge), or from a sort buffer in memory. A
 * job opens it, unless it is made open. An output chunk is submitted when all of its blocks are
 * open. A block is freed when the last output chunk that uses it is done.
 *
 * Threads: the dispatcher, unless stated otherwise.
 */
#ifndef ROCKSORT_SORT_OUTPUT_CHUNK_H
#define ROCKSORT_SORT_OUTPUT_CHUNK_H

#include "input/span_queue.h"
#include "output/chunk_encoder.h"
#include "sort/sort_context.h"
#include "spill/run_reader.h"

struct output_chunker {         /* starts as {0} */
    struct sort_context *sort;
    size_t record_growth;       /* estimated bytes that duplicate tags add to a record */
    /* under the lock */
    size_t block_bytes;         /* memory of all blocks */
    struct output_chunk *waiting, **last_waiting;
    double expansion;           /* bytes of lines or columns for each byte of records, in the output
                                   chunk finished last */
};

struct open_block {
    struct output_chunker *output_chunker;
    unsigned n_users;           /* under the lock: the owner, and output chunks */
    bool opened;                /* under the lock */
    size_t n_bytes;             /* under the lock: its memory, estimated until it is open */
    struct stored_block *stored;        /* until it is open */
    size_t grown_bytes;         /* estimated size with the tags its records get */
    struct merge_bound last;    /* of its last record */
    bool is_complete;           /* dispatcher only: ends below the frontier */
    uint8_t *memory;            /* owned: the records, unless a sort buffer holds them */
    struct sort_entry *index;   /* owned: entries and keys, unless a sort buffer holds them */
    struct merge_source source; /* run and first_index are set from the start */
};

struct output_chunk {
    struct output_chunker *output_chunker;
    struct output_chunk *next;  /* in the list `waiting` */
    struct merge_bound low, high;       /* bytes NULL: below, or above, all records */
    struct open_block **blocks; /* in the order of run and index */
    size_t n_blocks;
    size_t n_opened;            /* under the lock: blocks before this one are open */
    struct chunk_encoder outputs[MOST_OUTPUTS];
    struct observed_parts observed;     /* results of the observers */
    struct content_sum sum;     /* of its records */
    size_t expected_bytes;      /* dispatcher only: estimated bytes of its records */
    bool done;                  /* under the lock */
};

/* chunk_bytes: planned bytes of records in an output chunk. */
void output_chunker_init(struct output_chunker *s, struct sort_context *sort, size_t chunk_bytes);

/* Return a block with one user, the caller, and submit a job that opens it: a stored block, which
   the block then owns; or a part of a sort buffer, which may be open already. */
struct open_block *output_chunker_open_block(struct output_chunker *s, struct stored_block *stored);
struct open_block *output_chunker_keep(struct output_chunker *s, const struct merge_source *source);

/* Makes span->made an open block, and checks the records and their order. For
   input_streams_settings, with an output_chunker as arg; its memory is counted only by
   output_chunker_count. Any worker. */
int output_chunker_make_block(void *arg, struct worker *worker, struct queued_span *span,
                              const char *input);
void output_chunker_drop_made(void *arg, void *made);

/* With the lock held: sets the counted memory of a block, with index_bytes for entries and keys. */
void output_chunker_count(struct open_block *block, size_t index_bytes);

/* Makes an output chunk of all records from low (included) to high (excluded) in n blocks. It
   becomes a user of each block. */
struct output_chunk *output_chunk_create(struct output_chunker *s, const struct merge_bound *low,
                                         const struct merge_bound *high,
                                         struct open_block *const *blocks, size_t n);

/* Submits the output chunk once its blocks are open. Returns 0, or -1 after a message. */
int output_chunker_merge(struct output_chunker *s, struct output_chunk *output_chunk);

/* Removes a user of the block; the last one frees it. With the lock held, or all threads done. */
void output_chunker_drop_block(struct open_block *block);

/* Frees an output chunk after its job, or when all threads are done. */
void output_chunk_destroy(struct output_chunk *output_chunk);

#endif
