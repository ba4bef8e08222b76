/*
 * output_chunk.h -- the workers' half of the merge: they open blocks, and merge and deflate output
 * chunks.
 *
 * The dispatcher (merge.h) takes blocks in the order of their first keys and has each opened. It
 * cuts output chunks. An output chunk can be merged only when the blocks that overlap it are open.
 * Blocks and output chunks are numbered as they come. An output chunk is handed to a worker when
 * all blocks up to the last one that it may need are open. A block is freed when the last output
 * chunk that holds a part of it is done.
 *
 * Threads: the dispatcher calls the functions, unless one says otherwise.
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
    size_t record_growth;       /* bytes that marks add to a record, an estimate */
    /* under the lock */
    size_t block_bytes;         /* memory that all blocks take */
    struct open_block *unopened, **last_unopened;
    uint64_t n_opened;          /* all blocks before this number are open */
    struct output_chunk *waiting, **last_waiting;
    struct content_sum sum;     /* of the records of output chunks that are done */
    double expansion;           /* what lines and columns take for each byte of the records, by the
                                   output chunk that was done last */
};

struct open_block {
    struct output_chunker *output_chunker;
    struct open_block *next_unopened;
    unsigned n_users;           /* under the lock: owner and output chunks */
    bool opened;                /* under the lock */
    size_t n_bytes;             /* under the lock: memory that it takes, estimated until it is
                                   open */
    const char *dir;            /* directory that it was read from, for messages */
    uint8_t *value;             /* as it was stored; NULL once it is open */
    size_t value_bytes;
    size_t raw_bytes;           /* as it was stored */
    size_t grown_bytes;         /* with the tags that its records get, an estimate */
    struct merge_bound last;    /* of its last record */
    bool is_complete;           /* for the dispatcher's use: it ends below the frontier */
    uint8_t *memory;            /* owned; the records are there */
    uint8_t *raw, *keyed;       /* set by opening, as are the source's entries */
    size_t entry_bytes;         /* of records that were read: of their entries and keys */
    struct merge_source source; /* run and first_index are set from the start */
};

struct output_chunk {
    struct output_chunker *output_chunker;
    struct output_chunk *next;  /* in the list of output chunks that wait for blocks */
    uint64_t n_blocks_needed;   /* all blocks before this number must be open */
    struct merge_bound low, high;       /* bytes NULL: below, or above, all records */
    struct open_block **blocks; /* in the order of run and index */
    size_t n_blocks;
    struct chunk_encoder outputs[MOST_OUTPUTS];
    struct observed_parts observed;     /* what observers found in it */
    uint64_t n_records, raw_bytes;      /* in the output chunk */
    size_t expected_bytes;      /* for the dispatcher's use: estimated bytes of its records */
    bool done;                  /* under the lock */
};

/* kept: the sort buffers in memory, part of every output chunk. chunk_bytes: of its records, as
   planned. The caller frees the segmenter when all jobs are done. */
struct output_chunker *output_chunker_create(const struct sort_context *sort,
                                             const struct merge_source *kept, size_t n_kept,
                                             size_t chunk_bytes);

/* Takes the value of a block from a run reader and has a worker open the block. The caller is its
   one user. NULL after a message that the block is damaged. */
struct open_block *output_chunker_open_block(struct output_chunker *s, struct stored_block *queued);

/* Checks the records and makes an open block of them, with the caller as its one user. Any thread.
   NULL if a record is bad: then records->problem says why. NULL after a message if there is no
   text in it. */
struct open_block *output_chunker_adopt_records(struct output_chunker *s,
                                                struct input_records *records);

/* With the lock held: begins to count the memory of such a block. */
void output_chunker_count_adopted(struct open_block *block);

/* Makes an output chunk of all records from low (included) to high (not included) in n blocks and
   in the sort buffers in memory. It becomes a user of each block. output_chunker_merge has it
   merged. */
struct output_chunk *output_chunk_create(struct output_chunker *s, const struct merge_limit *low,
                                         const struct merge_limit *high,
                                         struct open_block *const *blocks, size_t n);

/* Has a worker merge the output chunk when its blocks are open. Returns 0, or -1 after a message.
 */
int output_chunker_merge(struct output_chunker *s, struct output_chunk *output_chunk);

/* Removes one user of the block; without users it is freed. With the lock held, or all threads
   done. */
void output_chunker_drop_block(struct open_block *block);

/* Frees an output chunk whose blocks were dropped: by its job, or by output_chunk_drop_blocks. */
void output_chunk_destroy(struct output_chunk *output_chunk);

/* Drops an output chunk's blocks. With the lock held, or all threads done. */
void output_chunk_drop_blocks(struct output_chunk *output_chunk);

#endif
