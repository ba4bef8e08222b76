/* memory_budget.c -- see memory_budget.h. */
#include "spill/memory_budget.h"

#include <limits.h>

enum {
    KIB = 1024,
    MIN_PIECE_BYTES = 64 * KIB,  /* a BGZF block is never split */
    MAX_PIECE_BYTES = 512 * KIB, /* fits the L2 cache with its compressed form */
    MIN_BUFFER_BYTES = 256 * KIB,
    MAX_BUFFER_BYTES = 128 * KIB * KIB, /* one job sorts a sort buffer: 128 MiB take about 30 ms */
    MIN_BUFFERS = 4,
    FEW_THREADS = 4,           /* fit into the allowance beyond the budget */
    MANY_BUFFERS = 16,         /* enough to spill 6 while 6 others fill */
    MIN_BLOCK_BYTES = KIB,     /* a few short reads; with thousands of runs only */
    MANY_FILES = 256,
    MOST_RUN_FILES = 4,       /* the thread of each file then takes 0.05 s of CPU per million
                                 records, like each of 40 cores that deflate at level 1 */
    MOST_DIVIDED_FILES = 512, /* of all runs, unless each is one file */
    MIN_FILE_BYTES = 32 * KIB * KIB,
    MAX_BLOCK_BYTES = 256 * KIB, /* raw block and compressed form stay in the L2 cache */
    MIN_SPILL_CHUNK_BYTES = 256 * KIB,
    MAX_SPILL_CHUNK_BYTES = 1024 * KIB,
    MIN_CHUNK_BYTES = 256 * KIB,
    MAX_CHUNK_BYTES = 2048 * KIB, /* a last, short BGZF block in 32 costs no compression */
    MIN_COLUMN_CHUNK_BYTES = 64 * KIB,
    MAX_COLUMN_CHUNK_BYTES = 32768 * KIB,
    CHUNK_FACTOR = 2,        /* its blocks and its output */
    COLUMNS_FACTOR = 1,      /* only every second output chunk holds columns (1.5 times its records)
                                and their encoding; the others wait for a worker or the writer */
    INPUT_BYTES = 384 * KIB, /* buffers of htslib for an open file of BAM */
};

static size_t clamp(size_t value, size_t low, size_t high)
{
    return value < low ? low : value > high ? high : value;
}

unsigned memory_budget_most_threads(size_t total_bytes)
{
    return (unsigned)clamp(total_bytes / MEMORY_THREAD_BYTES, FEW_THREADS, UINT_MAX);
}

void memory_budget_plan(struct memory_budget *budget, size_t total_bytes, unsigned n_threads)
{
    if (n_threads < 1) n_threads = 1;
    /* At least two pieces and one spill chunk are queued for each thread; with many threads and
       little memory these get small. */
    size_t share = total_bytes / (32 + 8 * (size_t)n_threads);
    *budget = (struct memory_budget){
        .total_bytes = total_bytes,
        .n_threads = n_threads,
        .span_bytes = clamp(share / 8, MIN_PIECE_BYTES, MAX_PIECE_BYTES),
        .n_spans = 2 * n_threads + 2,
        .spill_chunk_bytes = clamp(share, MIN_SPILL_CHUNK_BYTES, MAX_SPILL_CHUNK_BYTES),
        .n_spill_chunks = n_threads + 2,
        .file_bytes = MIN_FILE_BYTES,
        .chunk_bytes = clamp(share, MIN_CHUNK_BYTES, MAX_CHUNK_BYTES),
        .n_chunks = 2 * n_threads + 2,
        .chunk_factor = CHUNK_FACTOR,
    };
    /* Each piece is also in memory compressed. With little memory fewer are read ahead. */
    size_t pieces_bytes = budget->n_spans * budget->span_bytes;
    budget->input_bytes = clamp(total_bytes / 8, pieces_bytes, 2 * pieces_bytes);
    size_t reserve = budget->input_bytes + budget->n_spill_chunks * budget->spill_chunk_bytes +
                     2 * (size_t)n_threads * MAX_BLOCK_BYTES;
    size_t left = total_bytes > reserve ? total_bytes - reserve : 0;
    /* Each worker may sort a sort buffer, which needs spare entries: an eighth of the sort buffer
       suffices for reads of 150 bp and longer. */
    size_t n = clamp(left / MIN_BUFFER_BYTES, MIN_BUFFERS, MANY_BUFFERS);
    size_t parts = 8 * n + 2 * (size_t)n_threads;
    size_t sort_buffer_bytes = left / parts * 8;
    if (sort_buffer_bytes > MAX_BUFFER_BYTES) {
        sort_buffer_bytes = MAX_BUFFER_BYTES;
        n = (left - n_threads * (sort_buffer_bytes / 4)) / sort_buffer_bytes;
    }
    budget->sort_buffer_bytes =
        clamp(sort_buffer_bytes, MIN_BUFFER_BYTES, MAX_BUFFER_BYTES) & ~(size_t)4095;
    memory_budget_set_buffers(budget, (unsigned)n);
}

void memory_budget_fix_templates(struct memory_budget *budget)
{
    size_t total_bytes = budget->total_bytes, fixed_bytes = budget->input_bytes;
    memory_budget_plan(
        budget, total_bytes > 4 * fixed_bytes ? total_bytes - fixed_bytes : total_bytes / 4 * 3,
        budget->n_threads);
    budget->total_bytes = total_bytes;
}

void memory_budget_plan_outputs(struct memory_budget *budget, unsigned n_outputs,
                                unsigned n_columns)
{
    budget->chunk_factor = CHUNK_FACTOR + n_outputs - 1 + n_columns * COLUMNS_FACTOR;
    if (n_columns == 0) {
        /* All output chunks together take as much as with one output. */
        budget->chunk_bytes = budget->chunk_bytes * CHUNK_FACTOR / budget->chunk_factor;
        return;
    }
    /* Uses large chunks, because readers handle each row group: with 118,000 rows a group instead
       of 19,000 a histogram takes DuckDB 0.8 of the time. But not fewer than for BAM: with only two
       more than workers, 16 workers waited for the writer, and the merge took 1.5 times as long. */
    size_t n = (size_t)budget->chunk_factor * budget->n_chunks;
    budget->chunk_bytes =
        clamp(budget->total_bytes / 4 / n, MIN_COLUMN_CHUNK_BYTES, MAX_COLUMN_CHUNK_BYTES);
}

static size_t all_chunk_bytes(const struct memory_budget *budget)
{
    return (size_t)budget->chunk_factor * budget->n_chunks * budget->chunk_bytes;
}

void memory_budget_set_buffers(struct memory_budget *budget, unsigned n)
{
    budget->n_buffers = n;
    budget->run_buffers = (unsigned)clamp(budget->long_runs ? n * 3 / 4 : n * 3 / 8, 1, n);
    budget->full_buffers = n > 1 + budget->run_buffers ? n - 1 - budget->run_buffers : 1;
    if (budget->full_buffers < budget->run_buffers) budget->full_buffers = budget->run_buffers;
    /* One sort buffer is being filled, and two more can be filled while the run is written. */
    budget->first_full_buffers = n > 3 + budget->full_buffers ? n - 3 : budget->full_buffers;
}

uint64_t memory_budget_expect_runs(const struct memory_budget *budget, uint64_t input_bytes,
                                   uint64_t n_runs, uint64_t spilled_bytes)
{
    /* A quarter is entries and gaps. The compaction that is being planned will take a quarter of
       the sort buffers. */
    uint64_t run_bytes = (uint64_t)budget->sort_buffer_bytes * budget->run_buffers / 2;
    if (n_runs > 0) run_bytes = spilled_bytes / n_runs + 1;
    return input_bytes / run_bytes;
}

void memory_budget_lengthen_runs(struct memory_budget *budget)
{
    budget->long_runs = true;
    memory_budget_set_buffers(budget, budget->n_buffers);
}

size_t memory_budget_scan_bytes(const struct memory_budget *budget)
{
    return budget->long_runs ? budget->total_bytes / 8 * 5 : budget->total_bytes / 2;
}

size_t memory_budget_compaction_bytes(const struct memory_budget *budget)
{
    return memory_budget_compaction_buffers(budget) * budget->sort_buffer_bytes;
}

unsigned memory_budget_compaction_buffers(const struct memory_budget *budget)
{
    /* At least four must exist: one is filled, one is sorted and one is spilled. */
    return budget->n_buffers < 8 ? 1 : budget->n_buffers / 4;
}

unsigned memory_budget_run_files(const struct memory_budget *budget, uint64_t run_bytes,
                                 uint64_t n_runs, unsigned most_files)
{
    uint64_t n = run_bytes / budget->file_bytes;
    if (most_files > MOST_DIVIDED_FILES) most_files = MOST_DIVIDED_FILES;
    if (n > MOST_RUN_FILES) n = MOST_RUN_FILES;
    if (n > budget->n_spill_chunks / 2)
        n = budget->n_spill_chunks / 2; /* each file needs two chunks */
    if (n_runs < 1) n_runs = 1;
    if (n > most_files / n_runs) n = most_files / n_runs;
    return n > 1 ? (unsigned)n : 1;
}

size_t memory_budget_block_bytes(const struct memory_budget *budget, unsigned file,
                                 unsigned n_files_expected)
{
    size_t n = file + 1 > n_files_expected ? file + 1 : n_files_expected;
    /* Smaller blocks leave more memory for read-ahead. Halving them adds 1 % to zstd's output. */
    size_t share = budget->total_bytes / (budget->long_runs ? 16 : 8) / n;
    if (n > MANY_FILES) share = share * MANY_FILES / n;
    return clamp(share, MIN_BLOCK_BYTES, MAX_BLOCK_BYTES);
}

size_t memory_budget_merge_bytes(const struct memory_budget *budget, size_t open_bytes)
{
    /* An open block is in memory raw with its entries, compressed, and compressed again inside
       RocksDB's iterator. An output chunk holds blocks of its own, and its output. */
    return 2 * open_bytes + all_chunk_bytes(budget);
}

bool memory_budget_share_inputs(const struct memory_budget *budget, size_t n,
                                struct memory_budget_inputs *share)
{
    /* Each input has a block that is being merged, the next block, and a piece that is being read,
       with its compressed form. Each takes half as much again for entries and gaps. */
    enum { PIECES_OF_INPUT = 6 };
    size_t fixed = all_chunk_bytes(budget) + n * INPUT_BYTES;
    *share = (struct memory_budget_inputs){
        .needed_bytes = fixed + n * PIECES_OF_INPUT * MIN_PIECE_BYTES};
    if (budget->total_bytes < share->needed_bytes) return false;
    size_t each = (budget->total_bytes - fixed) / n;
    share->span_bytes = clamp(each / PIECES_OF_INPUT, MIN_PIECE_BYTES, MAX_PIECE_BYTES);
    /* More than this does not keep more workers busy. */
    size_t enough = (4 * (size_t)budget->n_threads / n + 2) * 2 * share->span_bytes;
    share->ahead_bytes = each / 3 < enough ? each / 3 : enough;
    share->block_bytes = n * (each - share->ahead_bytes);
    return true;
}

size_t spill_policy_threshold(const struct memory_budget *budget, bool any_spilled,
                              uint64_t expected_bytes)
{
    bool may_fit = !any_spilled && expected_bytes < budget->total_bytes;
    return may_fit ? budget->first_full_buffers : budget->full_buffers;
}

size_t spill_policy_run_buffers(const struct memory_budget *budget, size_t n_waiting)
{
    return n_waiting < budget->run_buffers ? n_waiting : budget->run_buffers;
}

size_t spill_policy_kept_bytes(const struct memory_budget *budget, size_t open_bytes,
                               size_t scan_bytes)
{
    size_t merge_bytes = memory_budget_merge_bytes(budget, open_bytes) + scan_bytes;
    return budget->total_bytes > merge_bytes ? budget->total_bytes - merge_bytes : 0;
}
