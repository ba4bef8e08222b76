/*
 * test_record_sample.c -- a sample is gathered in order and of whole records, and the ratios
 * that are measured on it are those of its bytes.
 */
#include "random_records.h"

#include "pipeline/record_sample.h"

enum { N_RECORDS = 2000, RECORD_BYTES = 132 };

/* Records with nothing in them but their size and a number. */
static uint8_t *make_records(struct sort_entry *entries)
{
    uint8_t *records = test_malloc((size_t)N_RECORDS * RECORD_BYTES);
    memset(records, 7, (size_t)N_RECORDS * RECORD_BYTES);
    for (uint32_t i = 0; i < N_RECORDS; i++) {
        uint8_t *rec = records + i * RECORD_BYTES;
        uint32_t size = RECORD_BYTES - 4;
        memcpy(rec, &size, sizeof size);
        memcpy(rec + 4, &i, sizeof i);
        entries[N_RECORDS - 1 - i] = (struct sort_entry){.ref = rec};  /* last comes first */
    }
    return records;
}

static void test_gather(void **state)
{
    (void)state;
    static struct sort_entry entries[N_RECORDS];
    uint8_t *records = make_records(entries), *out = test_malloc((size_t)N_RECORDS * RECORD_BYTES);
    size_t all = (size_t)N_RECORDS * RECORD_BYTES;
    assert_int_equal(record_sample_gather(SORT_COORDINATE, entries, N_RECORDS, out, all), all);
    assert_memory_equal(out, entries[0].ref, RECORD_BYTES);
    assert_memory_equal(out + all - RECORD_BYTES, records, RECORD_BYTES);
    size_t room = 10 * RECORD_BYTES + RECORD_BYTES - 1;
    assert_int_equal(record_sample_gather(SORT_COORDINATE, entries, N_RECORDS, out, room),
                     10 * RECORD_BYTES);
    assert_int_equal(record_sample_gather(SORT_COORDINATE, entries, 3, out, room),
                     3 * RECORD_BYTES);
    assert_int_equal(record_sample_gather(SORT_COORDINATE, entries, N_RECORDS, out,
                                          RECORD_BYTES - 1), 0);
    test_free(out);
    test_free(records);
}

static void test_measure(void **state)
{
    (void)state;
    struct rng rng = rng_start(5);
    struct record_traits traits = {.memory_ratio = 3};
    struct record_sample_settings settings = {
        .method = {.level = 1}, .block_bytes = 4096, .most_deflate_seconds = 1,
    };
    size_t n = 100001;
    uint8_t *bytes = test_malloc(n);
    memset(bytes, 7, n);
    assert_int_equal(record_sample_measure(&settings, bytes, n, &traits), 0);
    assert_true(traits.pack_ratio[TEMP_CODEC_NONE] == 1 && traits.memory_ratio == 3);
    for (int i = 1; i < TEMP_CODEC_COUNT; i++) assert_true(traits.pack_ratio[i] < 0.1);
    assert_true(traits.deflate_ratio > 0 && traits.deflate_ratio < 0.1);
    assert_true(traits.usual_ratio == traits.deflate_ratio);
    settings.method.level = 0;
    settings.measures_usual = true;
    assert_int_equal(record_sample_measure(&settings, bytes, n, &traits), 0);
    assert_true(traits.deflate_ratio >= 1 && traits.usual_ratio < 0.1);
    settings.method.level = 1;
    for (size_t i = 0; i < n; i++) bytes[i] = (uint8_t)rng_below(&rng, 256);
    settings.block_bytes = 1 << 20;
    assert_int_equal(record_sample_measure(&settings, bytes, n, &traits), 0);
    for (int i = 0; i < TEMP_CODEC_COUNT; i++) assert_true(traits.pack_ratio[i] > 0.95);
    assert_true(traits.deflate_ratio > 0.95 && traits.deflate_ratio < 1.1);
    /* However little the time is, one block is deflated. */
    settings.most_deflate_seconds = 0;
    assert_int_equal(record_sample_measure(&settings, bytes, n, &traits), 0);
    assert_true(traits.deflate_ratio > 0.95);
    test_free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gather),
        cmocka_unit_test(test_measure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
