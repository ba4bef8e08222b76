/* spill_policy.c -- see spill_policy.h. */
#include "pipeline/spill_policy.h"

size_t spill_policy_threshold(const struct mem_budget *budget, bool any_spilled,
                              uint64_t expected_bytes)
{
    bool may_fit = !any_spilled && expected_bytes < budget->total_bytes;
    return may_fit ? budget->first_full_batches : budget->full_batches;
}

size_t spill_policy_run_batches(const struct mem_budget *budget, size_t n_waiting)
{
    return n_waiting < budget->run_batches ? n_waiting : budget->run_batches;
}

size_t spill_policy_due(const struct mem_budget *budget, const struct spill_state *state)
{
    size_t threshold = spill_policy_threshold(budget, state->any_spilled, state->expected_bytes);
    /* Large records fill the memory with fewer batches. */
    bool is_due = state->n_waiting >= threshold || state->reader_is_stuck;
    return is_due ? spill_policy_run_batches(budget, state->n_waiting) : 0;
}

size_t spill_policy_kept_bytes(const struct mem_budget *budget, size_t open_bytes,
                               size_t scan_bytes)
{
    size_t merge_bytes = mem_budget_merge_bytes(budget, open_bytes) + scan_bytes;
    return budget->total_bytes > merge_bytes ? budget->total_bytes - merge_bytes : 0;
}
