/*
 * test_spill_policy.c -- when runs are spilled: never too late for the reader to go on, never more
 * sort buffers than wait, and nothing is kept in memory that the merge needs.
 */
#include "unit_test.h"

#include "spill/memory_budget.h"

static const size_t mib = 1024 * 1024;

static struct memory_budget budget_of(size_t total_bytes)
{
    struct memory_budget budget;
    memory_budget_plan(&budget, total_bytes, 2);
    return budget;
}

TEST(test_first_run_is_late_if_input_may_fit)
{
    struct memory_budget b = budget_of(64 * mib);
    assert_int_equal(spill_policy_threshold(&b, false, 64 * mib - 1), b.first_full_buffers);
    assert_int_equal(spill_policy_threshold(&b, false, 64 * mib), b.full_buffers);
    assert_int_equal(spill_policy_threshold(&b, true, 1), b.full_buffers);
    /* An input of unknown size may fit, too. */
    assert_int_equal(spill_policy_threshold(&b, false, 0), b.first_full_buffers);
    assert_true(b.first_full_buffers > b.full_buffers);
}

TEST(test_kept_bytes_leave_room_to_merge)
{
    struct memory_budget b = budget_of(64 * mib);
    size_t all = spill_policy_kept_bytes(&b, 0, 0);
    assert_int_equal(all, b.total_bytes - memory_budget_merge_bytes(&b, 0));
    assert_int_equal(spill_policy_kept_bytes(&b, 0, 5 * mib), all - 5 * mib);
    /* An open block is in memory raw and compressed. */
    assert_int_equal(spill_policy_kept_bytes(&b, 3 * mib, 5 * mib), all - 11 * mib);
    assert_int_equal(spill_policy_kept_bytes(&b, 64 * mib, 0), 0);
    assert_int_equal(spill_policy_kept_bytes(&b, 0, 64 * mib), 0);
}

TEST(test_due_run_leaves_enough_memory)
{
    struct rng rng = rng_start(41);
    for (int i = 0; i < 5000; i++) {
        struct memory_budget b;
        memory_budget_plan(&b, mib + rng_below(&rng, mib << rng_below(&rng, 16)),
                           1 + (unsigned)rng_below(&rng, 64));
        if (rng_one_in(&rng, 2)) memory_budget_lengthen_runs(&b);
        size_t n_waiting = (size_t)rng_below(&rng, b.n_buffers + 1);
        size_t threshold = spill_policy_threshold(&b, rng_one_in(&rng, 2),
                                                  rng_below(&rng, 2 * b.total_bytes));
        CHECK(&rng, threshold >= 1 && threshold < b.n_buffers);
        size_t n = spill_policy_run_buffers(&b, n_waiting);
        CHECK(&rng, n <= n_waiting && n <= b.run_buffers && (n > 0) == (n_waiting > 0));
    }
}
