/*
 * test_memory_budget.c -- the split of the memory: its parts add up to no more than there is, for
 * every total from 1 MB to 1 TB and 1 to 128 threads, and are never too small to work.
 */
#include "unit_test.h"

#include "bam/bgzf_block.h"
#include "spill/memory_budget.h"

static const size_t kib = 1024, mib = 1024 * 1024;

/* From here on nothing has to be raised: 5 MiB, nearly all of it sort buffers, and 1 MiB a thread.
 */
static size_t enough(unsigned n_threads)
{
    return 5 * mib + n_threads * mib;
}

/* What is in memory while loading, all of it at once: sort buffers, pieces, spill chunks, a raw
   block and its compressed form a worker, and the spare entries of a sort buffer being sorted in
   each worker. */
static size_t loading_bytes(const struct memory_budget *b)
{
    const size_t max_block_bytes = 256 * kib;
    return b->n_buffers * b->sort_buffer_bytes + b->input_bytes +
           b->n_spill_chunks * b->spill_chunk_bytes +
           b->n_threads * (2 * max_block_bytes + b->sort_buffer_bytes / 4);
}

static void check_plan(size_t total_bytes, unsigned n_threads)
{
    struct memory_budget b;
    memory_budget_plan(&b, total_bytes, n_threads);
    const char *wrong = NULL;
    size_t most = total_bytes > enough(n_threads) ? total_bytes : enough(n_threads);
    if (b.n_threads != n_threads || b.total_bytes != total_bytes) wrong = "echo";
    if (loading_bytes(&b) > most) wrong = "sum while loading";
    if (memory_budget_merge_bytes(&b, 0) > most) wrong = "sum while merging";
    if (b.span_bytes < BGZF_MAX_BYTES) wrong = "a piece cannot hold a BGZF block";
    if (b.n_spans < 2 * n_threads) wrong = "pieces";
    if (b.spill_chunk_bytes < 256 * kib || b.spill_chunk_bytes > mib) wrong = "pack size";
    if (b.n_spill_chunks <= n_threads) wrong = "spill chunks";
    if (b.chunk_bytes < 256 * kib || b.chunk_bytes > 2 * mib) wrong = "segment size";
    if (b.n_chunks <= n_threads) wrong = "segments";
    if (b.sort_buffer_bytes < 256 * kib || b.sort_buffer_bytes % 4096 != 0) wrong = "batch size";
    if (b.sort_buffer_bytes < 2 * BGZF_MAX_BYTES) wrong = "a batch cannot hold a piece";
    if (b.n_buffers < 4) wrong = "batches";
    if (b.run_buffers < 1) wrong = "a run without batches";
    if (b.full_buffers < b.run_buffers) wrong = "a run is wanted before its batches are there";
    /* One sort buffer is being filled; with one less the reader would wait for each spill. */
    if (b.full_buffers + b.run_buffers >= b.n_buffers) wrong = "no batch left to fill";
    if (wrong)
        fail_msg("%zu bytes, %u threads: %s; loading %zu, %u batches of %zu, run %u, full %u",
                 total_bytes, n_threads, wrong, loading_bytes(&b), b.n_buffers, b.sort_buffer_bytes,
                 b.run_buffers, b.full_buffers);
}

TEST(test_parts_fit_the_total)
{
    struct rng rng = rng_start(21);
    for (unsigned n_threads = 1; n_threads <= 128; n_threads++) {
        for (size_t total = mib; total <= (size_t)1 << 40; total *= 2) {
            check_plan(total - 1, n_threads);
            check_plan(total, n_threads);
            check_plan(total + rng_below(&rng, total), n_threads);
        }
    }
}

/* With no more workers than the memory is enough for, what must be raised is a small part of what a
   sort may take beyond its budget. */
TEST(test_most_threads_fit_the_budget)
{
    for (size_t total = mib; total <= 1024 * mib; total += mib / 2) {
        struct memory_budget b;
        unsigned n = memory_budget_most_threads(total);
        memory_budget_plan(&b, total, n);
        assert_true(loading_bytes(&b) <= total + 8 * mib);
        assert_true(memory_budget_merge_bytes(&b, 0) <= total + 8 * mib);
        assert_true(((size_t)(n) * MEMORY_THREAD_BYTES) <= total || n == 4);
        assert_true(memory_budget_most_threads(((size_t)(n) * MEMORY_THREAD_BYTES)) == n);
    }
}

/* Most of the memory is for sort buffers: what they get sets the size of runs and what stays in
   memory. With more than 32 threads the sort buffers that are being sorted take as much again. */
TEST(test_buffers_get_the_bulk)
{
    for (unsigned n_threads = 1; n_threads <= 32; n_threads *= 2) {
        for (size_t each = 16 * mib; each <= 1024 * mib; each *= 2) {
            struct memory_budget b;
            memory_budget_plan(&b, each * n_threads, n_threads);
            assert_true(b.n_buffers * b.sort_buffer_bytes >= b.total_bytes / 2);
            assert_true(b.n_buffers >= 16);
            assert_true(b.sort_buffer_bytes <= 128 * mib);
        }
    }
}

TEST(test_more_memory_is_never_worse)
{
    for (unsigned n_threads = 1; n_threads <= 64; n_threads *= 4) {
        struct memory_budget before, now;
        memory_budget_plan(&before, enough(n_threads), n_threads);
        for (size_t total = enough(n_threads) + mib; total < 64 * 1024 * mib; total += total / 7) {
            memory_budget_plan(&now, total, n_threads);
            assert_true(now.span_bytes >= before.span_bytes);
            assert_true(now.spill_chunk_bytes >= before.spill_chunk_bytes);
            assert_true(now.chunk_bytes >= before.chunk_bytes);
            /* Parts are rounded down: to pages, and to whole sort buffers of at most 128 MiB. */
            assert_true(loading_bytes(&now) + total / 8 >= loading_bytes(&before));
            before = now;
        }
    }
}

TEST(test_chunk_of_columns_fit_a_quarter)
{
    static const struct {
        unsigned n_outputs, n_columns, factor;
    } cases[] = {{1, 0, 2}, {2, 0, 3}, {1, 1, 3}, {2, 1, 4}, {2, 2, 5}};
    for (unsigned n_threads = 1; n_threads <= 128; n_threads *= 2)
        for (size_t total = enough(n_threads); total < 1024 * 1024 * mib; total *= 2)
            for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                struct memory_budget plain, b;
                memory_budget_plan(&plain, total, n_threads);
                b = plain;
                memory_budget_plan_outputs(&b, cases[i].n_outputs, cases[i].n_columns);
                assert_int_equal(b.chunk_factor, cases[i].factor);
                size_t all = b.n_chunks * b.chunk_factor * b.chunk_bytes;
                if (cases[i].n_columns == 0) {
                    assert_true(memory_budget_merge_bytes(&b, 0) <=
                                memory_budget_merge_bytes(&plain, 0));
                    assert_true(b.chunk_bytes >= plain.chunk_bytes / 3 * 2);
                } else {
                    assert_true(b.chunk_bytes >= 64 * kib && b.chunk_bytes <= 32 * mib);
                    assert_true(all <= total / 4 || b.chunk_bytes == 64 * kib);
                    assert_true(all + b.n_chunks * 1000 > total / 4 || b.chunk_bytes == 32 * mib);
                    assert_int_equal(b.n_chunks, 2 * n_threads + 2);
                }
                assert_true(memory_budget_merge_bytes(&b, 0) <= total);
                b.chunk_factor = plain.chunk_factor;
                b.chunk_bytes = plain.chunk_bytes;
                b.n_chunks = plain.n_chunks;
                assert_memory_equal(&b, &plain, sizeof b);
            }
}

/* Twice as many sort buffers a run, and one to fill while they are spilled, also of those that
   compaction leaves. */
TEST(test_long_runs_have_twice_the_buffers)
{
    for (size_t total = mib; total <= 1024 * 1024 * mib; total *= 4) {
        struct memory_budget usual, b;
        memory_budget_plan(&usual, total, 2);
        b = usual;
        memory_budget_lengthen_runs(&b);
        assert_int_equal(b.n_buffers, usual.n_buffers);
        assert_true(b.run_buffers >= 2 * usual.run_buffers);
        assert_true(memory_budget_scan_bytes(&b) > memory_budget_scan_bytes(&usual));
        assert_true(memory_budget_block_bytes(&b, 0, 100) <=
                    memory_budget_block_bytes(&usual, 0, 100));
        for (unsigned n = usual.n_buffers; n >= usual.n_buffers - usual.n_buffers / 4; n--) {
            memory_budget_set_buffers(&b, n);
            assert_true(b.run_buffers >= 1 && b.full_buffers >= b.run_buffers);
            assert_true(b.full_buffers < n);
            assert_true(b.first_full_buffers >= b.full_buffers && b.first_full_buffers < n);
        }
    }
}

TEST(test_no_threads_is_one)
{
    struct memory_budget none, one;
    memset(&none, 0, sizeof none);
    memset(&one, 0, sizeof one);
    memory_budget_plan(&none, 64 * mib, 0);
    memory_budget_plan(&one, 64 * mib, 1);
    assert_int_equal(none.n_threads, 1);
    assert_true(none.sort_buffer_bytes == one.sort_buffer_bytes && none.n_buffers == one.n_buffers);
    assert_true(none.n_spans == one.n_spans && none.n_spill_chunks == one.n_spill_chunks);
}

/* One block of each run is open while merging: together they may take an eighth of the memory times
   the logarithm of the number of runs, and 1 KiB each. */
TEST(test_blocks_of_later_runs_are_smaller)
{
    for (size_t total = mib; total <= 1024 * 1024 * mib; total *= 4) {
        struct memory_budget b;
        memory_budget_plan(&b, total, 2);
        size_t sum = 0, before = 256 * kib, allowed = total / 8;
        for (unsigned run = 0; run < 10000; run++) {
            size_t block = memory_budget_block_bytes(&b, run, 0);
            assert_true(block >= kib && block <= before);
            before = block;
            sum += block;
            if ((run & (run + 1)) == 0 && run > 0) allowed += total / 8;    /* runs doubled */
            assert_true(sum <= allowed + (run + 1) * kib);
        }
        if (total <= 1024 * mib)
            assert_true(memory_budget_block_bytes(&b, 9999, 0) <
                        memory_budget_block_bytes(&b, 0, 0));
    }
}

TEST(test_expected_runs_share_an_eighth)
{
    for (size_t total = mib; total <= 1024 * 1024 * mib; total *= 4) {
        struct memory_budget b;
        memory_budget_plan(&b, total, 4);
        for (unsigned expected = 1; expected <= 4096; expected *= 2) {
            size_t sum = 0, first = memory_budget_block_bytes(&b, 0, expected);
            for (unsigned run = 0; run < expected; run++) {
                assert_true(memory_budget_block_bytes(&b, run, expected) == first);
                sum += first;
            }
            assert_true(sum <= total / 8 + expected * kib);
            /* More runs than were expected: as if that had been expected. */
            assert_true(memory_budget_block_bytes(&b, 2 * expected, expected) ==
                        memory_budget_block_bytes(&b, 2 * expected, 2 * expected + 1));
        }
    }
}

TEST(test_merging_needs_more_with_more_open_blocks)
{
    struct memory_budget b;
    memory_budget_plan(&b, 64 * mib, 2);
    size_t none = memory_budget_merge_bytes(&b, 0);
    assert_true(none >= b.n_chunks * b.chunk_bytes);
    /* A block is there raw and compressed. */
    assert_true(memory_budget_merge_bytes(&b, 10 * mib) >= none + 2 * 10 * mib);
}

TEST(test_number_of_runs_follows_the_input)
{
    struct memory_budget b;
    memory_budget_plan(&b, 64 * mib, 2);
    assert_int_equal(memory_budget_expect_runs(&b, 0, 0, 0), 0);
    assert_int_equal(memory_budget_expect_runs(&b, 0, 7, 70 * mib), 0);
    uint64_t run_bytes = b.sort_buffer_bytes * b.run_buffers / 2;
    assert_int_equal(memory_budget_expect_runs(&b, 10 * run_bytes, 0, 0), 10);
    /* Runs that were made tell more than the budget. */
    assert_int_equal(memory_budget_expect_runs(&b, 100 * mib, 2, 10 * mib - 2), 20);
}

/* Large runs become several files, each with two spill chunks and 32 MiB; many runs do not. */
TEST(test_large_runs_become_several_files)
{
    const unsigned many = 1000000;
    struct memory_budget budget;
    for (unsigned n_threads = 1; n_threads < 20; n_threads++)
        for (uint64_t run_bytes = mib; run_bytes < mib * mib; run_bytes *= 3)
            for (uint64_t n_runs = 0; n_runs < 3000; n_runs = 2 * n_runs + 1) {
                memory_budget_plan(&budget, 4096 * mib, n_threads);
                unsigned n = memory_budget_run_files(&budget, run_bytes, n_runs, many);
                assert_true(n >= 1 && n <= 4);
                if (n == 1) continue;
                assert_true(run_bytes / n >= 32 * mib && budget.n_spill_chunks / n >= 2);
                assert_true(n * n_runs <= 512);
                assert_true(n <= memory_budget_run_files(&budget, 2 * run_bytes, n_runs, many));
                assert_int_equal(memory_budget_run_files(&budget, run_bytes, n_runs, 0), 1);
            }
    memory_budget_plan(&budget, 4096 * mib, 1);
    assert_int_equal(memory_budget_run_files(&budget, 500 * mib, 10, many), 1);
    memory_budget_plan(&budget, 4096 * mib, 2);
    assert_int_equal(memory_budget_run_files(&budget, 500 * mib, 10, many), 2);
    memory_budget_plan(&budget, 4096 * mib, 8);
    assert_int_equal(memory_budget_run_files(&budget, 500 * mib, 10, many), 4);
    assert_int_equal(memory_budget_run_files(&budget, 500 * mib, 200, many), 2);
    assert_int_equal(memory_budget_run_files(&budget, 500 * mib, 10, 25), 2);
}

/* The memory of a merge of inputs: all parts fit into the total, or the total that is said to be
   needed suffices and one byte less does not. */
TEST(test_inputs_share_the_memory)
{
    struct memory_budget b;
    struct memory_budget_inputs share, needed;
    for (size_t total = mib; total <= 4096 * mib; total *= 2)
        for (unsigned n_threads = 1; n_threads <= 32; n_threads *= 2)
            for (size_t n = 1; n <= 1000; n = 3 * n + 1) {
                memory_budget_plan(&b, total, n_threads);
                bool fits = memory_budget_share_inputs(&b, n, &share);
                assert_int_equal(fits, total >= share.needed_bytes);
                if (fits) {
                    size_t out = 2 * b.n_chunks * b.chunk_bytes;
                    assert_true(share.span_bytes >= BGZF_MAX_BYTES);
                    assert_true(out + n * share.ahead_bytes + share.block_bytes <= total);
                    assert_true(share.block_bytes >= 2 * n * share.span_bytes);
                }
                b.total_bytes = share.needed_bytes;
                assert_true(memory_budget_share_inputs(&b, n, &needed));
                b.total_bytes--;
                assert_false(memory_budget_share_inputs(&b, n, &needed));
            }
}
