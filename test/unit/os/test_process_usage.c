/* test_process_usage.c -- what the kernel counts for this process, and sums of it. */
#include "unit_test.h"

#include "os/memory.h"

#include <math.h>

TEST(test_usage_is_summed)
{
    struct process_usage before, after, sum = {0};
    process_usage_now(&before);
    size_t n_bytes = (size_t)32 << 20;
    char *memory = test_alloc(n_bytes);
    for (size_t i = 0; i < n_bytes; i += 1024) memory[i] = (char)i;
    process_usage_now(&after);
    free(memory);
    process_usage_add(&sum, &before, &after);
    process_usage_add(&sum, &before, &after);
    assert_true(fabs(sum.wall_seconds - 2 * (after.wall_seconds - before.wall_seconds)) < 1e-6);
    assert_true(sum.wall_seconds > 0 && sum.user_seconds >= 0 && sum.system_seconds >= 0);
    assert_int_equal(sum.minor_faults, 2 * (after.minor_faults - before.minor_faults));
    assert_int_equal(sum.has_io, before.has_io && after.has_io);
    assert_int_equal(sum.read_bytes, 2 * (after.read_bytes - before.read_bytes));
    if (sum.has_io) assert_true(sum.read_bytes > 0);    /* process_usage_now read /proc */
}
