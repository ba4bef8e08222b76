/*
 * test_estimate.c -- what a sort will do: when runs are needed, how many, how much space, and that
 * the figures make sense for every budget.
 */
#include "random_records.h"

#include "pipeline/estimate.h"

#include <math.h>

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

static struct estimate_facts usual_facts(uint64_t memory_bytes, unsigned n_threads,
                                          uint64_t expected_bytes)
{
    struct estimate_facts facts = {
        .expected_bytes = expected_bytes,
        .size_is_known = true,
        .n_cpus = n_threads,
        .codec_auto = true,
        .n_dirs = 1,
        .n_lanes = 1,
        .disks = {
            .seek_seconds = 0.0001,
            .bytes_per_second = 300e6,
            .parallel = 1,
            .free_bytes = 100 * GIB,
        },
        .most_files = 976,
        .outputs = {{OUTPUT_BAM, -1}, {OUTPUT_BAM, -1}},
        .n_outputs = 1,
    };
    mem_budget_plan(&facts.budget, memory_bytes, n_threads);
    estimate_usual_traits(&facts.traits);
    return facts;
}

static struct estimate plan_of(const struct estimate_facts *facts)
{
    struct estimate plan;
    estimate_make(facts, &plan);
    return plan;
}

/* 2.08 GB of 6.0 M reads, as bench.py sorts them: in 3 GB no run; in 64 MB it was 100 or so. */
static void test_bench(void **state)
{
    (void)state;
    struct estimate_facts facts = usual_facts(3 * GIB, 2, 2080000000);
    struct estimate plan = plan_of(&facts);
    assert_true(plan.in_memory);
    assert_int_equal(plan.n_runs, 0);
    facts = usual_facts(512 * MIB, 2, 2080000000);
    plan = plan_of(&facts);
    assert_false(plan.in_memory);
    assert_in_range(plan.n_runs, 6, 14);
    assert_int_equal(plan.codec, TEMP_CODEC_LZ4);
    assert_false(plan.compaction.compact);
    facts = usual_facts(64 * MIB, 2, 2080000000);
    plan = plan_of(&facts);
    assert_in_range(plan.n_runs, 70, 130);
}

/* What bench.py measured of that input on the machine of the usual sample (README), to 30 %. */
static void test_times(void **state)
{
    (void)state;
    static const struct {
        uint64_t memory_bytes;
        double deflate_seconds, deflate_ratio;  /* 0: the default level */
        double seconds;
    } points[] = {
        {512 * MIB, 4.4e-9, 0.33, 10.4}, {64 * MIB, 4.4e-9, 0.33, 11.9},
        {512 * MIB, 0.18e-9, 1, 8.5},    {512 * MIB, 0, 0, 32.9},
        {3 * GIB, 4.4e-9, 0.33, 8.1},
    };
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        struct estimate_facts facts = usual_facts(points[i].memory_bytes, 2, 2080000000);
        facts.disks.bytes_per_second = 700e6;
        if (points[i].deflate_seconds > 0) {
            facts.traits.deflate_seconds = points[i].deflate_seconds;
            facts.traits.deflate_ratio = points[i].deflate_ratio;
        }
        struct estimate plan = plan_of(&facts);
        double ratio = (plan.load_seconds + plan.merge_seconds) / points[i].seconds;
        if (ratio < 0.77 || ratio > 1.3) fail_msg("point %zu: %.2f times what it took", i, ratio);
    }
}

static void test_compaction(void **state)
{
    (void)state;
    struct estimate_facts facts = usual_facts(256 * MIB, 2, 128 * GIB);
    assert_int_equal(plan_of(&facts).compaction.reason, COMPACTION_OPEN_FILES);
    facts.most_files = 20000;
    assert_false(plan_of(&facts).compaction.compact);
    facts.compaction = COMPACTION_ON;
    struct estimate plan = plan_of(&facts);
    assert_true(plan.compaction.compact);
    assert_true(plan.n_files < plan.n_runs / 4);
    assert_true(plan.needed_bytes > 1.9 * plan.temp_bytes);
    /* One rotating disk. */
    facts.compaction = COMPACTION_AUTO;
    facts.disks.slow_to_seek = true;
    facts.n_lanes = 4;
    facts.disks.seek_seconds = 0.012;
    facts.disks.bytes_per_second = 150e6;
    plan = plan_of(&facts);
    assert_int_equal(plan.n_databases, 4);
    assert_int_equal(plan.codec, TEMP_CODEC_ZSTD);
    assert_true(plan.n_seeks > 0);
    facts.compaction = COMPACTION_OFF;
    struct estimate off = plan_of(&facts);
    assert_true(!plan.compaction.compact || plan.n_seeks < off.n_seeks);
}

static void test_codec(void **state)
{
    (void)state;
    struct estimate_facts facts = usual_facts(64 * MIB, 2, GIB);
    facts.disks.bytes_per_second = 2e9;
    struct estimate plan = plan_of(&facts);
    assert_int_equal(plan.codec, TEMP_CODEC_NONE);
    facts.disks.free_bytes = GIB;               /* none needs twice the data */
    assert_int_equal(plan_of(&facts).codec, TEMP_CODEC_LZ4);
    facts.codec_auto = false;
    facts.codec = TEMP_CODEC_ZSTD;
    plan = plan_of(&facts);
    assert_int_equal(plan.codec, TEMP_CODEC_ZSTD);
    assert_int_equal(plan.codec_reason, CODEC_ASKED_FOR);
}

/* --plan and the warnings about full disks compare needed_bytes with what is free. */
static void test_space(void **state)
{
    (void)state;
    struct estimate_facts facts = usual_facts(64 * MIB, 2, GIB);
    struct estimate plan = plan_of(&facts);
    assert_int_equal(plan.codec, TEMP_CODEC_LZ4);
    assert_true(plan.needed_bytes == plan.temp_bytes);
    assert_true(plan.temp_bytes > 0.4 * GIB && plan.temp_bytes < 0.51 * GIB);
    facts.compaction = COMPACTION_ON;
    plan = plan_of(&facts);
    assert_true(plan.compaction.compact);
    assert_true(plan.needed_bytes == 2 * plan.temp_bytes);
    facts.budget.total_bytes = 8 * GIB;
    mem_budget_plan(&facts.budget, 8 * GIB, 2);
    plan = plan_of(&facts);
    assert_true(plan.in_memory && plan.needed_bytes == 0);
}

/* Views of --markdup and a large template of --fixmate need space besides runs, and also without. */
static void test_other_files(void **state)
{
    (void)state;
    struct estimate_facts facts = usual_facts(64 * MIB, 2, GIB);
    struct estimate without = plan_of(&facts);
    facts.traits.view_ratio = 0.07;
    facts.view_memory_bytes = 4 * MIB;
    struct estimate plan = plan_of(&facts);
    assert_true(fabs(plan.view_bytes - 0.07 * GIB) < 1);
    assert_true(fabs(plan.needed_bytes - without.needed_bytes - 0.07 * GIB) < 1);
    assert_true(plan.temp_bytes == without.temp_bytes && plan.n_runs == without.n_runs);
    facts.view_memory_bytes = 80 * MIB;
    assert_true(plan_of(&facts).view_bytes == 0);
    assert_true(plan_of(&facts).needed_bytes == without.needed_bytes);
    facts.large_template_bytes = GIB / 2;
    plan = plan_of(&facts);
    assert_true(fabs(plan.needed_bytes - without.needed_bytes - 0.5 * GIB) < 1);
    mem_budget_plan(&facts.budget, 8 * GIB, 2);
    plan = plan_of(&facts);
    assert_true(plan.in_memory && plan.needed_bytes == 0.5 * GIB);
}

static void test_output(void **state)
{
    (void)state;
    struct estimate_facts facts = usual_facts(64 * MIB, 2, 1000000000);
    struct estimate_output *output = &facts.outputs[0];
    assert_true(fabs(plan_of(&facts).output_bytes - 310e6) < 1);
    output->kind = OUTPUT_CRAM;
    assert_in_range(plan_of(&facts).output_bytes, 80000000, 130000000);
    output->kind = OUTPUT_SAM_GZ;
    assert_true(fabs(plan_of(&facts).output_bytes - 310e6) < 1);
    output->kind = OUTPUT_SAM;
    assert_true(fabs(plan_of(&facts).output_bytes - 1000e6) < 1);
}

/* The sizes that 104.0 MB of simulated reads had; their BAM had 32.2 MB. */
static void test_columns(void **state)
{
    (void)state;
    static const struct {
        struct estimate_output output;
        double mb;
    } points[] = {
        {{OUTPUT_PARQUET, -1}, 26.9}, {{OUTPUT_PARQUET, 0}, 107.9},    {{OUTPUT_ARROW, -1}, 63.3},
        {{OUTPUT_ARROW, 2}, 36.6},    {{OUTPUT_ARROW_STREAM, 1}, 63.3}, {{OUTPUT_ARROW, 0}, 145.3},
    };
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        struct estimate_facts facts = usual_facts(64 * MIB, 2, 104000000);
        facts.outputs[0] = points[i].output;
        /* The level of BAM does not matter. */
        facts.traits.deflate_ratio = 1;
        double ratio = plan_of(&facts).output_bytes * 1e-6 / points[i].mb;
        if (ratio < 0.9 || ratio > 1.1) fail_msg("point %zu: %.2f times the size", i, ratio);
    }
}

/* Two outputs take more time than the first one, and each has its size. */
static void test_second_output(void **state)
{
    (void)state;
    struct estimate_facts facts = usual_facts(64 * MIB, 2, 1000000000);
    facts.traits.deflate_ratio = 1;
    facts.traits.deflate_seconds = 0.2e-9;
    struct estimate one = plan_of(&facts);
    assert_true(one.also_bytes == 0);
    assert_false(estimate_needs_usual(facts.outputs, 1));
    assert_true(estimate_needs_usual(facts.outputs, 2));
    facts.n_outputs = 2;
    struct estimate two = plan_of(&facts);
    assert_true(two.output_bytes == one.output_bytes);
    assert_true(fabs(two.also_bytes - 310e6) < 1);
    /* The second one is deflated at the default level: 25 ns a byte in two threads. */
    assert_in_range((two.merge_seconds - one.merge_seconds) * 1000, 11000, 15000);
}

/* The sort passes the raw bytes of its first batches; a plan computes them from the traits. */
static void test_batches_that_were_seen(void **state)
{
    (void)state;
    struct estimate_facts facts = usual_facts(64 * MIB, 2, GIB);
    facts.batch_raw_bytes = (double)facts.budget.batch_bytes / 4;
    struct estimate plan = plan_of(&facts);
    assert_int_equal(plan.run_bytes, facts.budget.batch_bytes / 4 * facts.budget.run_batches);
    assert_in_range(plan.n_runs * plan.run_bytes, GIB * 9 / 10, GIB + plan.run_bytes);
}

/* However small a batch is, it holds one record. (Of records of 900 kB in 4 MiB, 1,349 runs were once
   planned where there were 177.) */
static void test_large_records(void **state)
{
    (void)state;
    struct estimate_facts facts = usual_facts(4 * MIB, 2, 180000000);
    uint64_t n_usual = plan_of(&facts).n_runs;
    facts.traits.record_bytes = 150;
    assert_true(plan_of(&facts).n_runs == n_usual);
    facts.traits.record_bytes = 900000;
    facts.traits.by_blocks = true;
    facts.traits.memory_at_worst = 3;
    struct estimate plan = plan_of(&facts);
    assert_in_range(plan.n_runs, 150, 200);
    assert_true(plan.run_bytes >= 900000);
}

/* A sort that does not know the size of its input spills as late as one whose input may fit. */
static void test_unknown_size(void **state)
{
    (void)state;
    struct estimate_facts facts = usual_facts(64 * MIB, 2, 40 * MIB);
    assert_true(plan_of(&facts).in_memory);
    facts.size_is_known = false;
    assert_true(plan_of(&facts).in_memory);
}

/* More memory never means more runs, more data never fewer; times are positive and finite. */
static void test_random(void **state)
{
    (void)state;
    struct rng rng = rng_start(37);
    for (int i = 0; i < 3000; i++) {
        unsigned n_threads = 1 + (unsigned)rng_below(&rng, 128);
        uint64_t memory = MIB << rng_below(&rng, 18), bytes = MIB << rng_below(&rng, 22);
        struct estimate_facts facts = usual_facts(memory, n_threads, bytes);
        facts.disks.slow_to_seek = rng_one_in(&rng, 2);
        if (facts.disks.slow_to_seek) facts.disks.seek_seconds = 0.01;
        if (facts.disks.slow_to_seek) facts.n_lanes = 1 + (unsigned)rng_below(&rng, 4);
        facts.compaction = (enum compaction_mode)rng_below(&rng, 3);
        facts.n_dirs = 1 + (unsigned)rng_below(&rng, 4);
        if (rng_one_in(&rng, 8)) facts.disks.bytes_per_second = facts.disks.seek_seconds = 0;
        struct estimate plan = plan_of(&facts);
        CHECK(&rng, plan.in_memory == (plan.n_runs == 0));
        CHECK(&rng, plan.load_seconds > 0 && plan.load_seconds < 1e12);
        CHECK(&rng, plan.merge_seconds > 0 && plan.merge_seconds < 1e12);
        uint64_t most = facts.disks.slow_to_seek ? plan.n_runs : 4 * plan.n_runs;
        CHECK(&rng, plan.output_bytes > 0 && plan.n_files <= most);
        CHECK(&rng, plan.in_memory || plan.needed_bytes >= plan.temp_bytes);
        facts.expected_bytes *= 2;
        struct estimate larger = plan_of(&facts);
        CHECK(&rng, larger.n_runs >= plan.n_runs && larger.temp_bytes >= plan.temp_bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bench),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_compaction),
        cmocka_unit_test(test_codec),
        cmocka_unit_test(test_space),
        cmocka_unit_test(test_other_files),
        cmocka_unit_test(test_output),
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_second_output),
        cmocka_unit_test(test_batches_that_were_seen),
        cmocka_unit_test(test_large_records),
        cmocka_unit_test(test_unknown_size),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
