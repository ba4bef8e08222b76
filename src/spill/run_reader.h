/*
 * run_reader.h -- reads the runs in the store ahead of the dispatcher, one thread a database.
 *
 * So several disks are read at the same time, and the dispatcher can cut output chunks while run
 * readers wait for a disk. Each run reader puts blocks, in the order of their keys, into a queue of
 * bounded size.
 *
 * Order of calls: start; first and take for each run reader, in any order, until first returns 0;
 * stop at any time. Threads: one; stored_block_unpack and stored_block_free: any.
 */
#ifndef ROCKSORT_SPILL_RUN_READER_H
#define ROCKSORT_SPILL_RUN_READER_H

#include "os/thread_pool.h"
#include "spill/bam_block.h"
#include "spill/run_store.h"

struct run_readers;

struct stored_block {           /* a block on its way from the store to the merge */
    struct stored_block *next;
    const char *dir;            /* its directory, for messages */
    uint32_t run;
    uint64_t first_index;       /* of its first record in the run */
    uint8_t *value;             /* owned */
    size_t value_bytes;
    struct bam_block parsed;    /* of the value */
    size_t key_bytes;
    uint8_t key[];              /* the bound of its first record */
};

/* Starts to read all runs but n_dropped of them (resume.h), with queue_bytes for all queues. NULL
   after a message. */
struct run_readers *run_readers_start(struct threads *threads, struct run_store *store,
                                      const uint32_t *dropped_runs, size_t n_dropped,
                                      size_t queue_bytes);

size_t run_readers_count(const struct run_readers *run_readers);

/* Waits for the first block in the queue of run reader i, of database i. Further calls return the
   same block until it is taken. Returns 1, 0 after the last block, or -1 if the thread pool has
   failed. */
int run_readers_first(struct run_readers *run_readers, size_t i, struct stored_block **block);

/* Removes the block that run_readers_first returned from the queue of run reader i. The caller
   frees it. */
struct stored_block *run_readers_take(struct run_readers *run_readers, size_t i);

/* Ends the threads and frees blocks that were not taken. Accepts NULL. */
void run_readers_stop(struct run_readers *run_readers);

/* Verifies and decompresses a block (bam_block_unpack). Returns its records, which the caller
   frees; or NULL after a message that the run is damaged. */
uint8_t *stored_block_unpack(const struct stored_block *block, const struct sort_rules *rules,
                             int32_t n_refs, struct temp_coder *coder, size_t *keyed_bytes);

/* Accepts NULL. */
void stored_block_free(struct stored_block *block);

#endif
