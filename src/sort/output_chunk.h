/*
 * output_chunk.h -- the jobs of the merge: opens blocks, and merges and encodes output chunks.
 *
 * The dispatcher (merge.h) takes blocks in the order of their first keys, submits jobs that open
 * them, and cuts output chunks. An output chunk can be merged when all blocks that overlap it are
 * open. Blocks are numbered in order of arrival. An output chunk is submitted when all blocks up to
 * the last one that it may need are open. A block is freed when the last output chunk that uses it
 * is done.
 *
 * Threads: the dispatcher, unless stated otherwise.
 */
#ifndef ROCKSORT_SORT_OUTPUT_CHUNK_H
#define ROCKSORT_SORT_OUTPUT_CHUNK_H

#include "input/record_entries.h"
#include "sort/sort_context.h"
#include "spill/run_reader.h"

struct output_chunker {
    const struct sort_context *sort;
    struct output_form forms[MOST_OUTPUTS];     /* of each output, by its number */
    const struct merge_source *kept;
    size_t n_kept;
    int32_t n_refs;
    enum sort_order order;
    size_t record_growth;       /* estimated bytes that duplicate tags add to a record */
    /* under the lock */
    size_t block_bytes;         /* memory of all blocks */
    struct open_block *unopened, **last_unopened;
    uint64_t n_opened;          /* all blocks before this number are open */
    struct output_chunk *waiting, **last_waiting;
    struct content_sum sum;     /* of the records of finished output chunks */
    double expansion;           /* bytes of lines or columns for each byte of records, in the output
                                   chunk finished last */
};

struct open_block {
    struct output_chunker *output_chunker;
    struct open_block *next_unopened;
    unsigned n_users;           /* under the lock: the owner, and output chunks */
    bool opened;                /* under the lock */
    size_t n_bytes;             /* under the lock: its memory, estimated until it is open */
    const char *dir;            /* directory it was read from, for messages */
    uint8_t *value;             /* as it was stored; NULL once it is open */
    size_t value_bytes;
    size_t raw_bytes;           /* as it was stored */
    size_t grown_bytes;         /* estimated size with the tags its records get */
    struct merge_bound last;    /* bound of its last record */
    bool is_complete;           /* dispatcher only: ends below the frontier */
    uint8_t *memory;            /* owned; holds the records */
    uint8_t *raw, *keyed;       /* set by opening, like source.entries */
    size_t entry_bytes;         /* --merge: bytes of entries and keys */
    struct merge_source source; /* run and first_index are set from the start */
};

struct output_chunk {
    struct output_chunker *output_chunker;
    struct output_chunk *next;  /* in the list `waiting` */
    uint64_t n_blocks_needed;   /* all blocks before this number must be open */
    struct merge_bound low, high;       /* bytes NULL: below, or above, all records */
    struct open_block **blocks; /* in the order of run and index */
    size_t n_blocks;
    struct chunk_encoder outputs[MOST_OUTPUTS];
    struct observed_parts observed;     /* results of the observers */
    uint64_t n_records, raw_bytes;      /* of the output chunk */
    size_t expected_bytes;      /* dispatcher only: estimated bytes of its records */
    bool done;                  /* under the lock */
};

/* kept: the sort buffers in memory, part of every output chunk. chunk_bytes: planned bytes of
   records in an output chunk. The caller frees the output_chunker when all jobs are done. */
struct output_chunker *output_chunker_create(const struct sort_context *sort,
                                             const struct merge_source *kept, size_t n_kept,
                                             size_t chunk_bytes);

/* Takes a stored block from a run reader, and submits a job that opens it. The caller is its only
   user. NULL after a message that the block is damaged. */
struct open_block *output_chunker_open_block(struct output_chunker *s, struct stored_block *queued);

/* Checks records and makes an open block of them; the caller is its only user. Threads: any. NULL
   if a record is bad, with the reason in records->problem, or after a message if that is empty. */
struct open_block *output_chunker_adopt_records(struct output_chunker *s,
                                                struct input_records *records);

/* With the lock held: starts to count the memory of such a block. */
void output_chunker_count_adopted(struct open_block *block);

/* Makes an output chunk of all records from low (included) to high (excluded) in n blocks and in
   the sort buffers in memory. It becomes a user of each block. */
struct output_chunk *output_chunk_create(struct output_chunker *s, const struct merge_limit *low,
                                         const struct merge_limit *high,
                                         struct open_block *const *blocks, size_t n);

/* Submits the output chunk once its blocks are open. Returns 0, or -1 after a message. */
int output_chunker_merge(struct output_chunker *s, struct output_chunk *output_chunk);

/* Removes a user of the block; the last one frees it. With the lock held, or all threads done. */
void output_chunker_drop_block(struct open_block *block);

/* Frees an output chunk after its job or output_chunk_drop_blocks has dropped its blocks. */
void output_chunk_destroy(struct output_chunk *output_chunk);

/* Drops an output chunk's blocks. With the lock held, or all threads done. */
void output_chunk_drop_blocks(struct output_chunk *output_chunk);

#endif
