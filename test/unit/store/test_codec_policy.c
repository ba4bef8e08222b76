/*
 * test_codec_policy.c -- which codec the next run gets.
 */
#include "random_records.h"

#include "store/codec_policy.h"

/* An SSD of 1 GB/s, which is written to a tenth of the time. Two workers are busy, no thread waits,
   and there is space for everything. */
static struct codec_facts usual_facts(void)
{
    return (struct codec_facts){
        .bytes_per_second = 1e9,
        .n_threads = 2,
        .free_bytes = 1e12,
        .raw_bytes_left = 1e9,
        .codec = TEMP_CODEC_LZ4,
        .seconds = 2,
        .write_seconds = 0.2,
        .worker_seconds = 3.8,
        .stored_ratio = 0.4,
    };
}

static void check(const struct codec_facts *facts, enum temp_codec codec, enum codec_reason why)
{
    enum codec_reason reason;
    assert_int_equal(codec_choose(facts, &reason), codec);
    assert_int_equal(reason, why);
}

static void test_memory(void **state)
{
    (void)state;
    struct codec_facts facts = usual_facts();
    facts.in_memory = true;
    check(&facts, TEMP_CODEC_NONE, CODEC_MEMORY);
    facts.seconds = facts.write_seconds = 0;            /* the first run */
    check(&facts, TEMP_CODEC_NONE, CODEC_MEMORY);
    /* It would not fit, or nearly not. */
    facts = usual_facts();
    facts.in_memory = true;
    facts.bytes_per_second = 0;
    facts.free_bytes = 1.2 * facts.raw_bytes_left;
    check(&facts, TEMP_CODEC_LZ4, CODEC_USUAL);
}

static void test_first_run(void **state)
{
    (void)state;
    struct codec_facts facts = usual_facts();
    facts.seconds = facts.write_seconds = facts.stored_ratio = 0;
    facts.codec = TEMP_CODEC_NONE;
    check(&facts, TEMP_CODEC_LZ4, CODEC_USUAL);
    facts.bytes_per_second = 0;
    check(&facts, TEMP_CODEC_LZ4, CODEC_USUAL);
    facts.slow_to_seek = true;
    check(&facts, TEMP_CODEC_ZSTD, CODEC_SLOW_DISK);
}

static void test_fast_disk(void **state)
{
    (void)state;
    struct codec_facts facts = usual_facts();
    check(&facts, TEMP_CODEC_NONE, CODEC_FAST_DISK);
    /* Uncompressed data would be written all the time. */
    facts.write_seconds = 0.8;
    check(&facts, TEMP_CODEC_LZ4, CODEC_USUAL);
    /* The disk reads more slowly than so many workers merge. */
    facts = usual_facts();
    facts.n_threads = 16;
    check(&facts, TEMP_CODEC_LZ4, CODEC_USUAL);
    facts = usual_facts();
    facts.bytes_per_second = 0;
    check(&facts, TEMP_CODEC_LZ4, CODEC_USUAL);
    /* Workers have time to compress while they wait for the input, which may be on the same disk.
       */
    facts = usual_facts();
    facts.worker_seconds = 2.4;
    check(&facts, TEMP_CODEC_LZ4, CODEC_USUAL);
    facts = usual_facts();
    facts.free_bytes = facts.raw_bytes_left;
    check(&facts, TEMP_CODEC_LZ4, CODEC_USUAL);
    facts.free_bytes = facts.raw_bytes_left = 0;        /* the space is unknown */
    check(&facts, TEMP_CODEC_LZ4, CODEC_USUAL);
}

/* A codec that was chosen stays at a load at which it would not be chosen. */
static void test_does_not_swing(void **state)
{
    (void)state;
    struct codec_facts facts = usual_facts();
    facts.codec = TEMP_CODEC_NONE;
    facts.stored_ratio = 1;
    facts.write_seconds = 0.45 * facts.seconds;
    facts.worker_seconds = 2.4;
    check(&facts, TEMP_CODEC_NONE, CODEC_FAST_DISK);
    facts.write_seconds = 0.6 * facts.seconds;
    check(&facts, TEMP_CODEC_LZ4, CODEC_USUAL);
    facts.write_seconds = 0.45 * facts.seconds;
    facts.worker_seconds = 1.8;
    check(&facts, TEMP_CODEC_LZ4, CODEC_USUAL);
    /* None was chosen before and given up. */
    facts = usual_facts();
    facts.left_none = true;
    check(&facts, TEMP_CODEC_LZ4, CODEC_USUAL);
    facts = usual_facts();
    facts.wait_seconds = 0.2 * facts.seconds;
    facts.bytes_per_second = 1e8;
    check(&facts, TEMP_CODEC_LZ4, CODEC_USUAL);
    facts.codec = TEMP_CODEC_ZSTD;
    check(&facts, TEMP_CODEC_ZSTD, CODEC_WAITING);
    facts.wait_seconds = 0;
    check(&facts, TEMP_CODEC_LZ4, CODEC_USUAL);
}

static void test_waiting(void **state)
{
    (void)state;
    struct codec_facts facts = usual_facts();
    facts.wait_seconds = 1;
    check(&facts, TEMP_CODEC_ZSTD, CODEC_WAITING);
    facts.codec = TEMP_CODEC_NONE;
    check(&facts, TEMP_CODEC_ZSTD, CODEC_WAITING);
    facts.codec = TEMP_CODEC_ZSTD;
    check(&facts, TEMP_CODEC_ZSTD, CODEC_WAITING);
    facts.slow_to_seek = true;
    check(&facts, TEMP_CODEC_ZSTD, CODEC_SLOW_DISK);
}

/* For all facts the codec exists and the reason has a text. */
static void test_any_facts(void **state)
{
    (void)state;
    struct rng rng = rng_start(112);
    for (int i = 0; i < 20000; i++) {
        struct codec_facts facts = {
            .in_memory = rng_one_in(&rng, 4),
            .slow_to_seek = rng_one_in(&rng, 4),
            .bytes_per_second = (double)rng_below(&rng, 4) * 4e8,
            .n_threads = (unsigned)rng_below(&rng, 64),
            .free_bytes = (double)rng_below(&rng, 3) * 1e10,
            .raw_bytes_left = (double)rng_below(&rng, 3) * 1e10,
            .codec = (enum temp_codec)rng_below(&rng, TEMP_CODEC_COUNT),
            .seconds = (double)rng_below(&rng, 3),
            .write_seconds = (double)rng_below(&rng, 3),
            .wait_seconds = (double)rng_below(&rng, 3),
            .worker_seconds = (double)rng_below(&rng, 3),
            .stored_ratio = (double)rng_below(&rng, 3) / 2,
            .left_none = rng_one_in(&rng, 4),
        };
        enum codec_reason reason = CODEC_ASKED_FOR;
        enum temp_codec codec = codec_choose(&facts, &reason);
        CHECK(&rng, (unsigned)codec < TEMP_CODEC_COUNT);
        CHECK(&rng, reason != CODEC_ASKED_FOR && strlen(codec_reason_text(reason)) > 4);
        /* The codec none is never chosen if the data do not fit. */
        CHECK(&rng, codec != TEMP_CODEC_NONE || facts.free_bytes > facts.raw_bytes_left);
    }
    assert_true(strlen(codec_reason_text(CODEC_ASKED_FOR)) > 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_first_run),
        cmocka_unit_test(test_fast_disk),
        cmocka_unit_test(test_does_not_swing),
        cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_any_facts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
