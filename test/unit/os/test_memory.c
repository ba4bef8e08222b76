/* test_memory.c -- memory that is available, and memory that this process uses, are plausible. */
#include "unit_test.h"

#include "os/memory.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t physical_bytes(void)
{
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

TEST(test_available_memory_is_sane)
{
    uint64_t n_bytes = memory_available();
    if (access("/proc/meminfo", R_OK) != 0) {
        assert_true(n_bytes == UINT64_MAX);
        return;
    }
    assert_true(n_bytes <= physical_bytes());
    assert_true(n_bytes > (uint64_t)8 << 20);   /* building and testing needs so much */
    /* Other programs take and free memory between two questions. */
    bool fits = false;
    for (int i = 0; i < 1000 && !fits; i++) {
        uint64_t before = memory_of_kernel();
        n_bytes = memory_available();
        fits = n_bytes <= before || n_bytes <= memory_of_kernel();
    }
    assert_true(fits);
    assert_true(memory_of_machine() <= memory_installed());
}

TEST(test_memory_of_a_process_is_known)
{
    size_t n_bytes = (size_t)32 << 20;
    char *memory = test_alloc(n_bytes);
    for (size_t i = 0; i < n_bytes; i += 1024) memory[i] = (char)i;
    uint64_t resident = memory_resident();
    assert_true(resident == 0 || resident >= n_bytes);
    assert_true(memory_peak() >= resident);
    free(memory);
    assert_true(memory_peak() >= n_bytes);
}

/* The answers are of the same size again and again, and no file stays open. */
TEST(test_again_and_again)
{
    uint64_t first = memory_available();
    for (int i = 0; i < 2000; i++) {
        uint64_t n_bytes = memory_available();
        assert_true(n_bytes > first / 4 && n_bytes / 4 < first);
    }
}

/* In a memory cgroup its limit counts. Needs v2, root and a hierarchy that can be written. */
TEST(test_limit_of_a_cgroup_counts)
{
    static const char group[] = "/sys/fs/cgroup/rocksort-test-memory";
    const uint64_t limit = (uint64_t)256 << 20;
    char path[128];
    if (access("/sys/fs/cgroup/cgroup.controllers", R_OK) != 0 || mkdir(group, 0700) != 0) skip();
    (void)snprintf(path, sizeof path, "%s/memory.max", group);
    FILE *file = fopen(path, "w");
    bool limited = file && fprintf(file, "%" PRIu64 "\n", limit) > 0;
    if (file && fclose(file) != 0) limited = false;
    pid_t child = limited ? fork() : -1;
    if (child == 0) {
        (void)snprintf(path, sizeof path, "%s/cgroup.procs", group);
        file = fopen(path, "w");
        if (!file || fprintf(file, "%d\n", (int)getpid()) < 0 || fclose(file) != 0) _exit(2);
        _exit(memory_available() <= limit ? 0 : 1);
    }
    int status = 0;
    if (child > 0) (void)waitpid(child, &status, 0);
    (void)rmdir(group);
    if (child < 0 || status == 2 << 8) skip();
    assert_int_equal(status, 0);
}
