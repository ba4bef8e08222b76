/* test_codec_policy.c -- which codec temporary data get. */
#include "unit_test.h"

#include "store/store_layout.h"

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
