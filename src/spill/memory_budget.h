/*
 * memory_budget.h -- divides the user's memory limit among the consumers of memory.
 *
 * Peak resident memory stays within the budget (-m times the threads, or --max-memory) plus
 * MEM_ALLOWANCE_BYTES, for code, libraries, stacks, RocksDB's tables and the allocator.
 *
 * While loading, the budget is divided into
 *   - sort buffers, the bulk: raw records, their sort entries and, in name order, their keys;
 *   - pieces of input that workers inflate or parse, each compressed and as records;
 *   - spill chunks that are being compressed, and for each worker a block and space to sort;
 *   - if seeks are slow: compactions, for which sort buffers are retired.
 * While merging, it is divided into
 *   - sort buffers that were never spilled;
 *   - open blocks: one of each run, compressed and raw, and those in queues;
 *   - output chunks that are being merged, deflated and written;
 *   - if seeks are slow: the read-ahead of the scan of the runs.
 * Merging more runs takes more memory: sort buffers are spilled until memory_budget_merge_bytes are
 * free.
 *
 * Order of calls: memory_budget_plan, then any. The functions change only the budget.
 */
#ifndef ROCKSORT_SPILL_MEMORY_BUDGET_H
#define ROCKSORT_SPILL_MEMORY_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEM_ALLOWANCE_BYTES ((size_t)64 << 20)

struct memory_budget {
    size_t total_bytes;
    unsigned n_threads;

    size_t span_bytes;          /* uncompressed size of a piece of input */
    unsigned n_spans;
    size_t input_bytes;         /* of all pieces, compressed and uncompressed */
    size_t sort_buffer_bytes;
    unsigned n_buffers;
    bool long_runs;             /* see memory_budget_lengthen_runs */
    unsigned run_buffers;       /* sort buffers of a run */
    unsigned full_buffers;      /* number of full sort buffers that starts a run */
    unsigned first_full_buffers;        /* the same for the first run, if the input may fit */
    size_t spill_chunk_bytes;   /* uncompressed size of a spill chunk */
    unsigned n_spill_chunks;    /* number of spill chunks */
    uint64_t file_bytes;        /* least uncompressed size of a file of a run */
    size_t chunk_bytes;         /* uncompressed size of an output chunk */
    unsigned n_chunks;
    unsigned chunk_factor;      /* memory of an output chunk with its blocks, in chunk_bytes */
};

/* What a worker needs: two pieces, a spill chunk, two blocks and entries to sort, each of the least
   size. */
enum { MEMORY_THREAD_BYTES = 1 << 20 };

/* Returns for how many workers total_bytes suffice. */
unsigned memory_budget_most_threads(size_t total_bytes);

/* Divides total_bytes among n_threads workers; raises totals that are too small. */
void memory_budget_plan(struct memory_budget *budget, size_t total_bytes, unsigned n_threads);

/* Plans again for --fixmate, which needs twice as many pieces: it copies templates into further
   pieces. */
void memory_budget_fix_templates(struct memory_budget *budget);

/* Then plans output chunks for n_outputs, n_columns of them Arrow or Parquet. Their output chunks
   are as large as column batches, up to about 100,000 short reads, and take a quarter of the
   memory. */
void memory_budget_plan_outputs(struct memory_budget *budget, unsigned n_outputs,
                                unsigned n_columns);

/* Returns the uncompressed size of the blocks of file number `file` of all runs, from 0.
   n_files_expected: of all runs; 0: unknown. Later files get smaller blocks, so that all open
   blocks grow with the logarithm of the number of files, and stop growing at a few hundred
   files. */
size_t memory_budget_block_bytes(const struct memory_budget *budget, unsigned file,
                                 unsigned n_files_expected);

/* Returns how many files a run of run_bytes, uncompressed, should become; a thread writes each.
   n_runs: estimated number of all runs; most_files: limit for their files
   (compaction_most_run_files). Returns 1 for many runs, because each file takes memory in the
   merge. */
unsigned memory_budget_run_files(const struct memory_budget *budget, uint64_t run_bytes,
                                 uint64_t n_runs, unsigned most_files);

/* Returns the read-ahead memory for the scan of all runs. */
size_t memory_budget_scan_bytes(const struct memory_budget *budget);

/* Return the memory for compactions, and the number of sort buffers that are retired for it. */
size_t memory_budget_compaction_bytes(const struct memory_budget *budget);
unsigned memory_budget_compaction_buffers(const struct memory_budget *budget);

/* Estimates how many runs input_bytes of records become, from the n_runs made of spilled_bytes, or
   from the budget before the first run. 0: unknown (input_bytes and result). */
uint64_t memory_budget_expect_runs(const struct memory_budget *budget, uint64_t input_bytes,
                                   uint64_t n_runs, uint64_t spilled_bytes);

/* Sets the number of usable sort buffers. */
void memory_budget_set_buffers(struct memory_budget *budget, unsigned n_buffers);

/* Makes runs twice as long, for disks that are slow to seek, and if fewer files may be open than
   there are runs. Makes blocks smaller and reads more ahead. Sorting 12.8 GB in 128 MiB, four
   rotating drives were busy for 84 s instead of 141. While a run is written, a fifth of the memory
   can be filled instead of a third. */
void memory_budget_lengthen_runs(struct memory_budget *budget);

/* The memory of a merge of sorted inputs (--merge). */
struct memory_budget_inputs {
    size_t span_bytes;          /* uncompressed size of a piece of an input, and so of a block */
    size_t ahead_bytes;         /* read-ahead of one input */
    size_t block_bytes;         /* for all blocks that are being merged */
    size_t needed_bytes;        /* the least total that suffices */
};

/* Divides the budget among n inputs. Returns false if it is too small. */
bool memory_budget_share_inputs(const struct memory_budget *budget, size_t n,
                                struct memory_budget_inputs *share);

/* Returns the memory that merging needs besides sort buffers, if the open blocks of all runs have
   open_bytes. */
size_t memory_budget_merge_bytes(const struct memory_budget *budget, size_t open_bytes);

/* ---- when to spill a run, and how many sort buffers ---- */

/* Runs are spilled late, because sort buffers that are in memory at the end of the input need not
   be spilled. */

/* Returns how many waiting sort buffers, full ones that are in no run, start a run: more before the
   first run if the input may fit in memory. expected_bytes: of all records, uncompressed; 0:
   unknown. */
size_t spill_policy_threshold(const struct memory_budget *budget, bool any_spilled,
                              uint64_t expected_bytes);

/* Returns how many of the waiting sort buffers the next run takes, the oldest first. */
size_t spill_policy_run_buffers(const struct memory_budget *budget, size_t n_waiting);

/* Returns the bytes of sort buffers that may stay in memory while the runs are merged. open_bytes:
   sum of the largest block of each run; scan_bytes: memory for read-ahead. */
size_t spill_policy_kept_bytes(const struct memory_budget *budget, size_t open_bytes,
                               size_t scan_bytes);

#endif
