/*
 * test_store_layout.c -- how many databases a directory gets, when reading them goes past the page
 * cache, and which codec temporary data get.
 */
#include "unit_test.h"

#include "spill/store_layout.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Lanes with a handful of files each would be compacted all the time, or not work at all. */
TEST(test_lanes_have_enough_files)
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
TEST(test_input_beyond_the_memory_is_known)
{
    const uint64_t huge = UINT64_C(1) << 60;
    assert_true(store_layout_exceeds_memory(huge, 1));
    assert_true(store_layout_exceeds_memory(0, (size_t)1 << 58));
    assert_false(store_layout_exceeds_memory(0, 4096));
    assert_false(store_layout_exceeds_memory(4096, 4096));
}

enum { N_THREADS = 2 };

static const uint64_t raw_bytes = 1000000000;

/* An SSD of 1 GB/s with space for everything. */
static const struct run_store_disks ssd = {.bytes_per_second = 1e9, .free_bytes = 1000000000000};

static void check(const struct run_store_disks *disks, unsigned n_threads, enum temp_codec codec,
                  enum codec_reason why)
{
    enum codec_reason reason;
    assert_int_equal(codec_choose(disks, n_threads, raw_bytes, &reason), codec);
    assert_int_equal(reason, why);
}

TEST(test_memory_is_not_compressed)
{
    struct run_store_disks disks = {.in_memory = true, .free_bytes = 3 * raw_bytes};
    check(&disks, N_THREADS, TEMP_CODEC_NONE, CODEC_MEMORY);
    disks.free_bytes = 2 * raw_bytes;
    check(&disks, N_THREADS, TEMP_CODEC_LZ4, CODEC_USUAL);
}

TEST(test_fast_disk_is_not_compressed)
{
    struct run_store_disks disks = ssd;
    check(&disks, N_THREADS, TEMP_CODEC_NONE, CODEC_FAST_DISK);
    /* The disk reads more slowly than so many workers merge. */
    check(&disks, 16, TEMP_CODEC_LZ4, CODEC_USUAL);
    disks.free_bytes = 2 * raw_bytes;
    check(&disks, N_THREADS, TEMP_CODEC_LZ4, CODEC_USUAL);
    disks = ssd;
    disks.bytes_per_second = 0;                 /* unknown */
    check(&disks, N_THREADS, TEMP_CODEC_LZ4, CODEC_USUAL);
}

TEST(test_slow_disk_gets_zstd)
{
    struct run_store_disks disks = ssd;
    disks.slow_to_seek = true;
    check(&disks, N_THREADS, TEMP_CODEC_ZSTD, CODEC_SLOW_DISK);
}

TEST(test_reasons_have_texts)
{
    for (int i = CODEC_ASKED_FOR; i <= CODEC_USUAL; i++)
        assert_true(strlen(codec_reason_text((enum codec_reason)i)) > 4);
}
