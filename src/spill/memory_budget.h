/*
 * memory_budget.h -- splits the memory that the user gave among everything that takes memory.
 *
 * Peak resident memory stays within the budget (-m times the threads, or --max-memory) plus
 * MEM_ALLOWANCE_BYTES, for code, libraries, stacks, RocksDB's tables and the allocator.
 *
 * While loading, the budget is divided into
 *   - sort buffers, the bulk: raw records, their sort entries and, in name order, their keys;
 *   - pieces of input that workers inflate or parse, each as it is stored and as records;
 *   - packs of a run that are being compressed, and for each worker a block and space to sort;
 *   - where seeks are slow: compactions, for which sort buffers are retired.
 * While merging, it is divided into
 *   - sort buffers that were never spilled;
 *   - open blocks: one of each run, compressed and raw, and those that wait;
 *   - output chunks of the output that are being merged, deflated and written;
 *   - where seeks are slow: what the scan of the runs reads ahead.
 * Merging more runs takes more memory: sort buffers are spilled until memory_budget_merge_bytes is
 * there.
 *
 * Order of calls: memory_budget_plan, then any. The functions change nothing but the budget.
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
    size_t input_bytes;         /* of all pieces, in both forms */
    size_t sort_buffer_bytes;
    unsigned n_buffers;
    bool long_runs;             /* see memory_budget_lengthen_runs */
    unsigned run_buffers;       /* that make a run */
    unsigned full_buffers;      /* when so many wait a run is spilled */
    unsigned first_full_buffers;        /* the same before the first run, if the input may fit */
    size_t pack_bytes;          /* uncompressed size of a pack */
    unsigned n_packs;
    uint64_t file_bytes;        /* a file of a run has at least so many, uncompressed */
    size_t chunk_bytes;         /* uncompressed size of an output chunk */
    unsigned n_chunks;
    unsigned chunk_factor; /* an output chunk takes so many times its size, its blocks included */
};

/* For how many workers total_bytes suffice: each needs pieces, packs and output chunks. */
unsigned memory_budget_most_threads(size_t total_bytes);

/* The least total that is enough for n_threads workers. */
size_t memory_budget_for_threads(unsigned n_threads);

/* Splits total_bytes among n_threads workers; totals that are too small to work are raised. */
void memory_budget_plan(struct memory_budget *budget, size_t total_bytes, unsigned n_threads);

/* Plans again for a sort that has as many pieces once more, as templates whose records know their
   mates. */
void memory_budget_fix_templates(struct memory_budget *budget);

/* Then plans output chunks for n_outputs, n_columns of them Arrow or Parquet. Output chunks of
   columns are as large as their sort buffers should be, up to some 100,000 short reads, and take a
   quarter of the memory. */
void memory_budget_plan_outputs(struct memory_budget *budget, unsigned n_outputs,
                                unsigned n_columns);

/* The uncompressed size of the blocks of file number `file` of runs, from 0. n_files_expected: of
   all runs; 0: unknown. Later files get smaller blocks, so that the open blocks of all files grow
   with the logarithm of their number, and beyond some hundred files not at all. */
size_t memory_budget_block_bytes(const struct memory_budget *budget, unsigned file,
                                 unsigned n_files_expected);

/* How many files a run of run_bytes, uncompressed, should become; each is written by a thread.
   n_runs: estimate of all runs; most_files: of all of them (compaction_most_run_files). With many
   runs it is one, because each file takes memory in the merge. */
unsigned memory_budget_run_files(const struct memory_budget *budget, uint64_t run_bytes,
                                 uint64_t n_runs, unsigned most_files);

/* Memory for reading ahead in the scan of all runs. */
size_t memory_budget_scan_bytes(const struct memory_budget *budget);

/* Memory for compactions, and the number of sort buffers that are retired for it. */
size_t memory_budget_compaction_bytes(const struct memory_budget *budget);
unsigned mem_budget_compaction_buffers(const struct memory_budget *budget);

/* Estimates how many runs input_bytes of records become (0: unknown, both), by the n_runs that were
   made of spilled_bytes, and before the first run by the budget. */
uint64_t memory_budget_expect_runs(const struct memory_budget *budget, uint64_t input_bytes,
                                   uint64_t n_runs, uint64_t spilled_bytes);

/* Sets the number of usable sort buffers. */
void mem_budget_set_buffers(struct memory_budget *budget, unsigned n_buffers);

/* Makes runs twice as long, for disks that are slow to seek, and where fewer files may be open than
   there are runs. Blocks are smaller, and more is read ahead. With 12.8 GB in 128 MiB four rotating
   drives were busy for 84 s instead of 141. While a run is written, a fifth of the memory is left to
   be filled instead of a third. */
void memory_budget_lengthen_runs(struct memory_budget *budget);

/* The memory of a merge of inputs that are in order (--merge). */
struct memory_budget_inputs {
    size_t span_bytes;          /* of a piece of an input, uncompressed, and so of a block */
    size_t ahead_bytes;         /* for what is read ahead of one input */
    size_t block_bytes;         /* for all blocks that are being merged */
    size_t needed_bytes;        /* the least total that suffices */
};

/* Divides the budget among n inputs. Returns false if it is too small. */
bool memory_budget_share_inputs(const struct memory_budget *budget, size_t n,
                                struct memory_budget_inputs *share);

/* Memory that merging needs besides sort buffers, if the open blocks of all runs have open_bytes.
 */
size_t memory_budget_merge_bytes(const struct memory_budget *budget, size_t open_bytes);

/* ---- when a run is spilled, of how many sort buffers, and what may stay in memory ---- */

/* A run is spilled late, because sort buffers in memory at the end of the input need not be
 * spilled. */

/* What the spiller knows when it decides. */
struct spill_state {
    size_t n_waiting;           /* full sort buffers that are in no run */
    bool any_spilled;           /* a run was spilled before */
    uint64_t expected_bytes;    /* of all records, uncompressed; 0: unknown */
    bool reader_is_stuck;       /* the reader waits for a sort buffer, and the budget has none */
};

/* How many waiting sort buffers start a run: more before the first run if the input may fit in
 * memory. */
size_t spill_policy_threshold(const struct memory_budget *budget, bool any_spilled,
                              uint64_t expected_bytes);

/* How many of the waiting sort buffers the next run takes, the oldest first. */
size_t spill_policy_run_buffers(const struct memory_budget *budget, size_t n_waiting);

/* The number of sort buffers that should be spilled now; 0: wait for more. */
size_t spill_policy_due(const struct memory_budget *budget, const struct spill_state *state);

/* Bytes of sort buffers that may stay in memory while the runs are merged. open_bytes: sum of the
   largest block of each run; scan_bytes: memory for reading ahead. */
size_t spill_policy_kept_bytes(const struct memory_budget *budget, size_t open_bytes,
                               size_t scan_bytes);

#endif
