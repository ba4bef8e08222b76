/*
 * mem_budget.h -- splits the memory that the user gave among everything that takes memory.
 *
 * The budget is -m times the threads, or --max-memory. Peak resident memory stays within the budget
 * plus MEM_ALLOWANCE_BYTES, which is for code, libraries, stacks, RocksDB's tables and the
 * allocator.
 *
 * While loading the budget is divided into
 *   - batches: n_batches arenas of batch_bytes. Each holds raw records, their sort entries and, in
 *     name order, their keys. They are the bulk of the budget;
 *   - pieces: n_pieces pieces of input on their way through the workers that inflate or parse them,
 *     each both as it is stored and as records;
 *   - packs: n_packs stretches of a run that are being compressed, and for each worker a raw block
 *     and space to sort.
 * While merging it is divided into
 *   - batches that were never spilled;
 *   - open blocks: one of each run, compressed and raw, and those that wait;
 *   - segments: n_segments stretches of output that are being merged, deflated and written.
 * The more runs there are, the more memory merging needs: mem_budget_merge_bytes says how much, and
 * batches are spilled until it is there. Where the temporary disk is slow to seek, two more parts
 * take memory:
 *   - the scan of the runs reads ahead, in at most mem_budget_scan_bytes;
 *   - compactions, while loading, take mem_budget_compaction_bytes, for which batches are retired.
 *
 * Order of calls: mem_budget_plan, then any. The functions change nothing but the budget.
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
    size_t input_bytes;         /* of all pieces, in both forms */
    size_t batch_bytes;
    unsigned n_batches;
    bool long_runs;             /* see mem_budget_lengthen_runs */
    unsigned run_batches;       /* that make a run */
    unsigned full_batches;      /* when so many wait a run is spilled */
    unsigned first_full_batches;        /* the same before the first run, if the input may fit */
    size_t pack_bytes;          /* uncompressed size of a pack */
    unsigned n_packs;
    uint64_t file_bytes;        /* a file of a run has at least so many, uncompressed */
    size_t segment_bytes;       /* uncompressed size of a segment */
    unsigned n_segments;
    unsigned segment_factor;    /* a segment takes so many times its size, its blocks included */
};

/* Returns how many workers total_bytes are enough for: each needs pieces, packs and segments of
   sizes that work. */
unsigned mem_budget_most_threads(size_t total_bytes);

/* The least total that is enough for n_threads workers. */
size_t mem_budget_for_threads(unsigned n_threads);

/* Splits total_bytes among n_threads workers; totals that are too small to work are raised. */
void mem_budget_plan(struct mem_budget *budget, size_t total_bytes, unsigned n_threads);

/* Plans again for a sort that has as many pieces once more, as templates whose records know their
   mates. */
void mem_budget_fix_templates(struct mem_budget *budget);

/* Plans segments for n_outputs, n_columns of which are columns. Segments of columns are as large as
   their batches should be, up to some 100,000 short reads, and take a quarter of the memory.
   After mem_budget_plan and mem_budget_fix_templates. */
void mem_budget_plan_outputs(struct mem_budget *budget, unsigned n_outputs, unsigned n_columns);

/*
 * Returns the uncompressed size of the blocks of file number `file` of runs, counted from 0.
 * n_files_expected is the number of files in all, or 0 if it is unknown. Later files get smaller
 * blocks. So the open blocks of all files together grow only with the logarithm of their number,
 * and beyond some hundred files not at all.
 */
size_t mem_budget_block_bytes(const struct mem_budget *budget, unsigned file,
                              unsigned n_files_expected);

/*
 * Returns how many files a run of run_bytes, uncompressed, should become, so that as many threads
 * write it. n_runs is how many runs there will be, about, and most_files how many files all of them
 * may have (compaction_most_run_files). With many runs it is one: each file takes memory in the
 * merge.
 */
unsigned mem_budget_run_files(const struct mem_budget *budget, uint64_t run_bytes, uint64_t n_runs,
                              unsigned most_files);

/* Returns the memory for reading ahead in the scan of all runs. */
size_t mem_budget_scan_bytes(const struct mem_budget *budget);

/* Return the memory for compactions, and the number of batches that are retired to have it. */
size_t mem_budget_compaction_bytes(const struct mem_budget *budget);
unsigned mem_budget_compaction_batches(const struct mem_budget *budget);

/* Returns about how many runs input_bytes of records will become. If input_bytes is 0, which means
   unknown, returns 0. The number is computed from the n_runs that were made of spilled_bytes of
   records, and before the first run from the budget. */
uint64_t mem_budget_expect_runs(const struct mem_budget *budget, uint64_t input_bytes,
                                uint64_t n_runs, uint64_t spilled_bytes);

/* Sets the number of usable batches. */
void mem_budget_set_batches(struct mem_budget *budget, unsigned n_batches);

/*
 * Makes runs longer, for disks that are slow to seek, and where fewer files may be open than there
 * are runs. Each is made of three quarters of the batches
 * instead of three eighths, so that half as many files are merged. While a run is written only a
 * fifth of the memory is left to be filled, not a third. Blocks are smaller, and more is read
 * ahead. This was measured with 12.8 GB in 128 MiB on four rotating drives: 173 runs instead of
 * 345; 424 KiB a read instead of 140; 20,200 seeks instead of 38,200; the drives were busy for 84 s
 * instead of 141.
 */
void mem_budget_lengthen_runs(struct mem_budget *budget);

/* The memory of a merge of inputs that are in order (--merge). */
struct mem_budget_inputs {
    size_t piece_bytes;         /* of a piece of an input, uncompressed, and so of a block */
    size_t ahead_bytes;         /* for what is read ahead of one input */
    size_t block_bytes;         /* for all blocks that are being merged */
    size_t needed_bytes;        /* the least total that suffices */
};

/* Divides the budget among n inputs. Returns false if it is too small. */
bool mem_budget_share_inputs(const struct mem_budget *budget, size_t n,
                             struct mem_budget_inputs *share);

/* Returns the memory that merging needs besides batches, if the open blocks of all runs have
   open_bytes. */
size_t mem_budget_merge_bytes(const struct mem_budget *budget, size_t open_bytes);

/* ---- when a run is spilled, of how many batches, and what may stay in memory ---- */

/*
 * A run is spilled late: as long as there is memory the whole input may still fit, and batches that
 * are in memory when the input ends need not be spilled at all.
 */

/* What the spiller knows when it decides. */
struct spill_state {
    size_t n_waiting;           /* full batches that are in no run */
    bool any_spilled;           /* a run was spilled before */
    uint64_t expected_bytes;    /* of all records, uncompressed; 0: unknown */
    bool reader_is_stuck;       /* the reader waits for a batch, and the budget has none */
};

/* The number of waiting batches that start a run. It is larger before the first run if the input
   may fit into memory. */
size_t spill_policy_threshold(const struct mem_budget *budget, bool any_spilled,
                              uint64_t expected_bytes);

/* How many of the waiting batches the next run takes, the oldest first. */
size_t spill_policy_run_batches(const struct mem_budget *budget, size_t n_waiting);

/* The number of batches that should be spilled now; 0: wait for more. */
size_t spill_policy_due(const struct mem_budget *budget, const struct spill_state *state);

/*
 * The bytes of batches that may stay in memory while the runs are merged. open_bytes is the sum of
 * the largest block of each run; scan_bytes is the memory for reading ahead.
 */
size_t spill_policy_kept_bytes(const struct mem_budget *budget, size_t open_bytes,
                               size_t scan_bytes);

#endif
