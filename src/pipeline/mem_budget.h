/*
 * mem_budget.h -- splits the memory that the user gave among everything that takes memory.
 *
 * The budget is -m times the threads, or --max-memory. Peak resident memory stays within the budget
 * plus MEM_ALLOWANCE_BYTES, which covers code, libraries, stacks, RocksDB's tables and the
 * allocator.
 *
 * While loading the budget is divided into
 *   - batches: n_batches arenas of batch_bytes; each holds raw records, their sort entries and, in
 *     name order, their keys (the bulk of the budget);
 *   - pieces: n_pieces compressed pieces of input on their way through the inflating workers, or
 *     twice as many chunks of SAM of a quarter of their size, each as text and as records;
 *   - packs: n_packs stretches of a run being compressed, and a raw block and sort space a worker.
 * While merging into
 *   - the batches that were never spilled;
 *   - open blocks: one of each run, twice (compressed and raw), and those waiting;
 *   - segments: n_segments stretches of output being merged, deflated and written.
 * What merging needs grows with the number of runs; mem_budget_merge_bytes says how much, and
 * batches are spilled until it is there. Where the temporary disk is slow to seek
 *   - the scan of the runs reads ahead, in at most mem_budget_scan_bytes;
 *   - compactions, while loading, take mem_budget_compaction_bytes, for which batches are retired.
 *
 * Pure functions.
 */
#ifndef ROCKSORT_PIPELINE_MEM_BUDGET_H
#define ROCKSORT_PIPELINE_MEM_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEM_ALLOWANCE_BYTES ((size_t)64 << 20)

struct mem_budget {
    size_t total_bytes;
    unsigned n_threads;

    size_t piece_bytes;         /* uncompressed size of a piece of input */
    unsigned n_pieces;
    size_t text_bytes;          /* size of a chunk of SAM */
    size_t max_text_bytes;      /* of such chunks, when lines are so long that few fit */
    size_t batch_bytes;
    unsigned n_batches;
    bool long_runs;             /* see mem_budget_lengthen_runs */
    unsigned run_batches;       /* batches that make a run */
    unsigned full_batches;      /* a run is spilled when so many batches wait */
    unsigned first_full_batches;        /* ... the first time: the input may still fit */
    size_t pack_bytes;          /* uncompressed size of a pack */
    unsigned n_packs;
    size_t segment_bytes;       /* uncompressed size of a segment */
    unsigned n_segments;
};

/* Splits total_bytes among n_threads workers; totals that are too small to work are raised. */
void mem_budget_plan(struct mem_budget *budget, size_t total_bytes, unsigned n_threads);

/*
 * Uncompressed size of the blocks of run number `run` (from 0), if n_runs_expected runs are
 * expected (0: unknown). Later runs get smaller blocks, so that the open blocks of all runs
 * together grow with the logarithm of their number only, and beyond some hundred not at all.
 */
size_t mem_budget_block_bytes(const struct mem_budget *budget, unsigned run,
                              unsigned n_runs_expected);

/* For reading ahead in the scan of all runs. */
size_t mem_budget_scan_bytes(const struct mem_budget *budget);

/* For compactions, and the batches that are retired for them. */
size_t mem_budget_compaction_bytes(const struct mem_budget *budget);
unsigned mem_budget_compaction_batches(const struct mem_budget *budget);

/* Expected number of runs, from the uncompressed size of the whole input (0: unknown, as is the
   answer) and the n_runs runs of spilled_bytes uncompressed that were written so far. */
uint64_t mem_budget_expect_runs(const struct mem_budget *budget, uint64_t input_bytes,
                                uint64_t n_runs, uint64_t spilled_bytes);

/* Sets the number of usable batches. */
void mem_budget_set_batches(struct mem_budget *budget, unsigned n_batches);

/*
 * For disks that are slow to seek: runs of three quarters of the batches, where three eighths are
 * usual, so that half as many files are merged. While one is written a fifth of the memory is left
 * to be filled, not a third. Blocks are smaller, and more is read ahead. Measured (12.8 GB in 128
 * MiB, four rotating drives): 173 runs, not 345; 424 KiB a read, not 140; 20,200 seeks, not 38,200;
 * the drives busy for 84 s, not 141.
 */
void mem_budget_lengthen_runs(struct mem_budget *budget);

/* What merging needs besides unspilled batches, if the open blocks of all runs have open_bytes. */
size_t mem_budget_merge_bytes(const struct mem_budget *budget, size_t open_bytes);

#endif
