/*
 * test_store_layout.c -- how many databases a directory gets, and when reading them goes past the
 * page cache.
 */
#include "unit_test.h"

#include "store/store_layout.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Lanes with a handful of files each would be compacted all the time, or not work at all. */
TEST(test_lanes)
{
    static const struct {
        unsigned n_files, n_dirs, n_lanes;
    } cases[] = {{4096, 1, 4}, {4096, 32, 3}, {256, 1, 4}, {256, 2, 2},
                 {256, 8, 1},  {128, 1, 2},   {128, 2, 1}, {128, 8, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pid_t child = fork();
        if (child == 0) {       /* a hard limit cannot be raised again */
            const struct rlimit limit = {cases[i].n_files, cases[i].n_files};
            _exit(setrlimit(RLIMIT_NOFILE, &limit) == 0 &&
                          store_layout_lanes(cases[i].n_dirs, true) == cases[i].n_lanes &&
                          store_layout_lanes(cases[i].n_dirs, false) == 1
                      ? 0
                      : 1);
        }
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (status != 0) fail_msg("case %zu", i);
    }
}

/* An input of unknown size counts as large, unless memory is much larger than the scan's. */
TEST(test_exceeds_memory)
{
    const uint64_t huge = UINT64_C(1) << 60;
    assert_true(store_layout_exceeds_memory(huge, 1));
    assert_true(store_layout_exceeds_memory(0, (size_t)1 << 58));
    assert_false(store_layout_exceeds_memory(0, 4096));
    assert_false(store_layout_exceeds_memory(4096, 4096));
}
