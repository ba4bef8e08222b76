/*
 * test_planner.c -- what a sort will need: when there are runs, how many, how much space, that the
 * figures make sense for every budget, what is said when space is short, and what a sample tells.
 */
#include "test_rules.h"
#include "unit_test.h"

#include "input/record_entries.h"
#include "sort/planner.h"

#include <math.h>

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

static struct plan usual_plan(struct sort_settings *settings, uint64_t memory_bytes,
                              unsigned n_threads, uint64_t expected_bytes)
{
    static const struct run_store_disks disks = {
        .seek_seconds = 0.0001, .bytes_per_second = 300e6, .parallel = 1, .free_bytes = 100 * GIB,
    };
    struct memory_budget budget;
    struct plan plan;
    *settings = (struct sort_settings){
        .output_format.kind = OUTPUT_BAM, .level = -1, .also_format.kind = OUTPUT_BAM,
        .codec_auto = true, .memory_bytes = memory_bytes,
    };
    memory_budget_plan(&budget, memory_bytes, n_threads);
    planner_begin(&plan, settings, &budget);
    plan.expected_bytes = expected_bytes;
    plan.size_is_known = true;
    plan.n_cpus = n_threads;
    plan.disks = disks;
    plan.most_files = 976;
    return plan;
}

/* 2.08 GB of 6.0 M reads, as bench.py sorts them: in 3 GB no run; in 64 MB it was 100 or so. */
TEST(test_runs_of_benchmarks)
{
    struct sort_settings settings;
    struct plan plan = usual_plan(&settings, 3 * GIB, 2, 2080000000);
    planner_estimate(&plan);
    assert_true(plan.in_memory);
    assert_int_equal(plan.n_runs, 0);
    plan = usual_plan(&settings, 512 * MIB, 2, 2080000000);
    planner_estimate(&plan);
    assert_false(plan.in_memory);
    assert_in_range(plan.n_runs, 6, 14);
    assert_int_equal(plan.codec, TEMP_CODEC_LZ4);
    assert_false(plan.compaction.compact);
    plan = usual_plan(&settings, 64 * MIB, 2, 2080000000);
    planner_estimate(&plan);
    assert_in_range(plan.n_runs, 70, 130);
}

/* What bench.py measured of that input on the machine of the usual sample (README), to 30 %. */
TEST(test_times_of_benchmarks)
{
    static const struct {
        uint64_t memory_bytes;
        struct plan_cost deflate;       /* 0: the default level */
        double seconds;
    } points[] = {
        {512 * MIB, {0.33, 4.4e-9}, 10.4}, {64 * MIB, {0.33, 4.4e-9}, 11.9},
        {512 * MIB, {1, 0.18e-9}, 8.5},    {512 * MIB, {0, 0}, 32.9},
        {3 * GIB, {0.33, 4.4e-9}, 8.1},
    };
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        struct sort_settings settings;
        struct plan plan = usual_plan(&settings, points[i].memory_bytes, 2, 2080000000);
        plan.disks.bytes_per_second = 700e6;
        if (points[i].deflate.seconds > 0) plan.traits.deflate = points[i].deflate;
        planner_estimate(&plan);
        double ratio = (plan.load_seconds + plan.merge_seconds) / points[i].seconds;
        if (ratio < 0.77 || ratio > 1.3) fail_msg("point %zu: %.2f times what it took", i, ratio);
    }
}

TEST(test_compaction_follows_files_and_disk)
{
    struct sort_settings settings;
    struct plan plan = usual_plan(&settings, 256 * MIB, 2, 128 * GIB);
    planner_estimate(&plan);
    assert_int_equal(plan.compaction.reason, COMPACTION_OPEN_FILES);
    plan.most_files = 20000;
    planner_estimate(&plan);
    assert_false(plan.compaction.compact);
    settings.compaction = COMPACTION_ON;
    planner_estimate(&plan);
    assert_true(plan.compaction.compact);
    assert_true(plan.n_files < plan.n_runs / 4);
    assert_true(plan.needed_bytes > 1.9 * plan.spilled_bytes);
    /* One rotating disk. */
    settings.compaction = COMPACTION_AUTO;
    plan.disks.slow_to_seek = true;
    plan.n_lanes = 4;
    plan.disks.seek_seconds = 0.012;
    plan.disks.bytes_per_second = 150e6;
    planner_estimate(&plan);
    assert_int_equal(plan.codec, TEMP_CODEC_ZSTD);
    assert_true(plan.n_seeks > 0);
    settings.compaction = COMPACTION_OFF;
    struct plan off = plan;
    planner_estimate(&off);
    assert_true(!plan.compaction.compact || plan.n_seeks < off.n_seeks);
}

TEST(test_codec_and_space_of_runs)
{
    struct sort_settings settings;
    struct plan plan = usual_plan(&settings, 64 * MIB, 2, GIB);
    plan.disks.bytes_per_second = 2e9;
    planner_estimate(&plan);
    assert_int_equal(plan.codec, TEMP_CODEC_NONE);
    plan.disks.free_bytes = GIB;                /* none needs twice the data */
    planner_estimate(&plan);
    assert_int_equal(plan.codec, TEMP_CODEC_LZ4);
    settings.codec_auto = false;
    settings.codec = TEMP_CODEC_LZ4;
    planner_estimate(&plan);
    assert_int_equal(plan.codec, TEMP_CODEC_LZ4);
    assert_int_equal(plan.codec_reason, CODEC_ASKED_FOR);
    assert_true(plan.needed_bytes == plan.spilled_bytes);
    assert_true(plan.spilled_bytes > 0.4 * GIB && plan.spilled_bytes < 0.51 * GIB);
    settings.compaction = COMPACTION_ON;
    planner_estimate(&plan);
    assert_true(plan.compaction.compact);
    assert_true(plan.needed_bytes == 2 * plan.spilled_bytes);
    memory_budget_plan(&plan.budget, 8 * GIB, 2);
    planner_estimate(&plan);
    assert_true(plan.in_memory && plan.needed_bytes == 0);
}

TEST(test_read_ends_need_space)
{
    struct sort_settings settings;
    struct plan plan = usual_plan(&settings, 64 * MIB, 2, GIB), without = plan;
    planner_estimate(&without);
    plan.traits.read_ends_ratio = 0.07;
    plan.read_ends_memory_bytes = 4 * MIB;
    planner_estimate(&plan);
    assert_true(fabs(plan.read_ends_bytes - 0.07 * GIB) < 1);
    assert_true(fabs(plan.needed_bytes - without.needed_bytes - 0.07 * GIB) < 1);
    assert_true(plan.spilled_bytes == without.spilled_bytes && plan.n_runs == without.n_runs);
    plan.read_ends_memory_bytes = 80 * MIB;
    planner_estimate(&plan);
    assert_true(plan.read_ends_bytes == 0 && plan.needed_bytes == without.needed_bytes);
    plan.read_ends_memory_bytes = 4 * MIB;
    memory_budget_plan(&plan.budget, 8 * GIB, 2);
    planner_estimate(&plan);
    assert_true(plan.in_memory && plan.needed_bytes == plan.read_ends_bytes &&
                plan.read_ends_bytes > 0);
}

TEST(test_sizes_of_outputs)
{
    struct sort_settings settings;
    struct plan plan = usual_plan(&settings, 64 * MIB, 2, 1000000000);
    static const struct {
        enum output_kind kind;
        double least, most;
    } points[] = {{OUTPUT_BAM, 310e6, 310e6}, {OUTPUT_CRAM, 80e6, 130e6},
                  {OUTPUT_SAM_GZ, 310e6, 310e6}, {OUTPUT_SAM, 1e9, 1e9}};
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        settings.output_format.kind = points[i].kind;
        planner_estimate(&plan);
        assert_true(plan.output_bytes > points[i].least - 1);
        assert_true(plan.output_bytes < points[i].most + 1);
    }
}

/* The sizes that 104.0 MB of simulated reads had; their BAM had 32.2 MB. */
TEST(test_sizes_of_columns)
{
    static const struct {
        enum output_kind kind;
        int level;
        double mb;
    } points[] = {
        {OUTPUT_PARQUET, -1, 26.9}, {OUTPUT_PARQUET, 0, 107.9},     {OUTPUT_ARROW, -1, 63.3},
        {OUTPUT_ARROW, 2, 36.6},    {OUTPUT_ARROW_STREAM, 1, 63.3}, {OUTPUT_ARROW, 0, 145.3},
    };
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        struct sort_settings settings;
        struct plan plan = usual_plan(&settings, 64 * MIB, 2, 104000000);
        settings.output_format.kind = points[i].kind;
        settings.level = points[i].level;
        plan.traits.deflate.ratio = 1;          /* the level of BAM does not matter */
        planner_estimate(&plan);
        double ratio = plan.output_bytes * 1e-6 / points[i].mb;
        if (ratio < 0.9 || ratio > 1.1) fail_msg("point %zu: %.2f times the size", i, ratio);
    }
}

TEST(test_second_output_takes_time_and_space)
{
    struct sort_settings settings;
    struct plan one = usual_plan(&settings, 64 * MIB, 2, 1000000000), two;
    one.traits.deflate = (struct plan_cost){1, 0.2e-9};
    two = one;
    planner_estimate(&one);
    assert_true(one.also_bytes == 0);
    settings.also = "also.bam";
    planner_estimate(&two);
    assert_true(two.output_bytes == one.output_bytes);
    assert_true(fabs(two.also_bytes - 310e6) < 1);
    /* The second one is deflated at the default level: 25 ns a byte in two threads. */
    assert_in_range((two.merge_seconds - one.merge_seconds) * 1000, 11000, 15000);
}

TEST(test_buffers_that_were_seen)
{
    struct sort_settings settings;
    struct plan plan = usual_plan(&settings, 64 * MIB, 2, GIB);
    plan.buffer_raw_bytes = (double)plan.budget.sort_buffer_bytes / 4;
    planner_estimate(&plan);
    assert_int_equal(plan.run_bytes, plan.budget.sort_buffer_bytes / 4 * plan.budget.run_buffers);
    assert_in_range(plan.n_runs * plan.run_bytes, GIB * 9 / 10, GIB + plan.run_bytes);
}

/* Records of 900 kB in 4 MiB: each sort buffer has memory for one of them. There were 177 runs. */
TEST(test_large_buffers_make_short_runs)
{
    struct sort_settings settings;
    struct plan plan = usual_plan(&settings, 4 * MIB, 2, 180000000);
    plan.buffer_raw_bytes = 900000;
    plan.buffer_memory = 3100000;
    planner_estimate(&plan);
    assert_in_range(plan.n_runs, 150, 200);
    assert_true(plan.run_bytes >= 900000);
}

/* A sort that does not know the size of its input spills as late as one whose input may fit. */
TEST(test_input_of_unknown_size_may_fit)
{
    struct sort_settings settings;
    struct plan plan = usual_plan(&settings, 64 * MIB, 2, 40 * MIB);
    planner_estimate(&plan);
    assert_true(plan.in_memory);
    plan.size_is_known = false;
    planner_estimate(&plan);
    assert_true(plan.in_memory);
}

TEST(test_more_data_need_no_less)
{
    struct rng rng = rng_start(37);
    for (int i = 0; i < 3000; i++) {
        unsigned n_threads = 1 + (unsigned)rng_below(&rng, 128);
        uint64_t memory = MIB << rng_below(&rng, 18), bytes = MIB << rng_below(&rng, 22);
        struct sort_settings settings;
        struct plan plan = usual_plan(&settings, memory, n_threads, bytes);
        plan.disks.slow_to_seek = rng_one_in(&rng, 2);
        if (plan.disks.slow_to_seek) plan.disks.seek_seconds = 0.01;
        if (plan.disks.slow_to_seek) plan.n_lanes = 1 + (unsigned)rng_below(&rng, 4);
        settings.compaction = (enum compaction_mode)rng_below(&rng, 3);
        plan.n_dirs = 1 + (unsigned)rng_below(&rng, 4);
        if (rng_one_in(&rng, 8)) plan.disks.bytes_per_second = plan.disks.seek_seconds = 0;
        planner_estimate(&plan);
        CHECK(&rng, plan.in_memory == (plan.n_runs == 0));
        CHECK(&rng, plan.load_seconds > 0 && plan.load_seconds < 1e12);
        CHECK(&rng, plan.merge_seconds > 0 && plan.merge_seconds < 1e12);
        uint64_t most = plan.disks.slow_to_seek ? plan.n_runs : 4 * plan.n_runs;
        CHECK(&rng, plan.output_bytes > 0 && plan.n_files <= most);
        CHECK(&rng, plan.in_memory || plan.needed_bytes >= plan.spilled_bytes);
        struct plan larger = plan;
        larger.expected_bytes *= 2;
        planner_estimate(&larger);
        CHECK(&rng, larger.n_runs >= plan.n_runs && larger.spilled_bytes >= plan.spilled_bytes);
    }
}

/* ---- space ---- */

static const uint64_t mb = 1000000;

/* Temporary data of 88 MB and an output of 50 MB, on two file systems. */
static struct plan plan_with_space(uint64_t temporary_mb, uint64_t output_mb)
{
    return (struct plan){
        .size_is_known = true, .needed_bytes = 88e6, .output_bytes = 50e6,
        .temporary = {.known = true, .free_bytes = temporary_mb * mb, .mount = "/fast"},
        .output = {.known = true, .free_bytes = output_mb * mb, .mount = "/large", .device = 1},
    };
}

/* Checks that there are n texts, the first of which has the words. */
static void check_texts(const struct plan *plan, size_t n, const char *words)
{
    char texts[PLAN_MOST_TEXTS][PLAN_TEXT_BYTES];
    assert_int_equal(planner_compare_space(plan, texts), n);
    if (n > 0 && !strstr(texts[0], words)) fail_msg("'%s' lacks '%s'", texts[0], words);
}

/* Of 88 MB of temporary data, or none, and 50 MB of output. */
TEST(test_too_little_space_is_warned_about)
{
    static const struct {
        uint64_t temporary_mb, output_mb;
        bool has_none, is_pipe, shares, is_unknown;
        size_t n;
        const char *words;
    } cases[] = {
        {.temporary_mb = 88, .output_mb = 50},
        {60, 50, .n = 1, .words = "temporary data will need about 88.0 MB, but file system '/fast' "
                                  "has 60.0 MB free; choose other places with -T"},
        {88, 49, .n = 1, .words = "the output will need about 50.0 MB, but file system '/large' "
                                  "has 49.0 MB free; free space there"},
        {30, 30, .n = 2, .words = "temporary data will"},
        {30, 30, .is_pipe = true, .n = 1, .words = "temporary data will"},
        {138, 138, .shares = true},
        {137, 138, .shares = true, .n = 1,
         .words = "temporary data and output will need about 138.0 MB"},
        /* Several directories have space, but not the one that the output is in. */
        {500, 40, .shares = true, .n = 1, .words = "the output will need"},
        {1, 1, .is_unknown = true},
        {0, 50, .has_none = true},
        {0, 0, .has_none = true, .shares = true, .n = 1,
         .words = "the output will need about 50.0 MB"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plan plan = plan_with_space(cases[i].temporary_mb, cases[i].output_mb);
        if (cases[i].has_none) plan.needed_bytes = 0;
        plan.size_is_known = !cases[i].is_pipe;
        plan.output_shares = cases[i].shares;
        plan.temporary.known = plan.output.known = !cases[i].is_unknown;
        check_texts(&plan, cases[i].n, cases[i].words);
    }
}

/* The output of --also stands beside that of -o, elsewhere, or on a disk of temporary data. */
TEST(test_space_for_second_output)
{
    struct plan plan = plan_with_space(88, 69);
    plan.also_bytes = 20e6;
    plan.also = plan.output;
    check_texts(&plan, 1, "the output will need about 70.0 MB");
    plan.output.free_bytes = 70000000;
    check_texts(&plan, 0, NULL);
    plan.also.device = 77;
    plan.output.free_bytes = 50000000;
    check_texts(&plan, 0, NULL);
    plan.also.free_bytes = 19000000;
    check_texts(&plan, 1, "the output of --also will need about 20.0 MB");
    plan.also.free_bytes = 100000000;
    plan.also_shares = true;
    check_texts(&plan, 1, "the output of --also will need about 108.0 MB");
}

TEST(test_one_file_system_counts_once)
{
    struct plan plan = {.n_dirs = 1};
    const char *const dirs[] = {"/", "/", "/nowhere/at/all"};
    planner_look_at_space(&plan, dirs, 3, "/out.bam", "/out.parquet");
    assert_true(plan.temporary.known && plan.output.known && plan.output_shares);
    assert_true(plan.also.known && plan.also_shares);
    /* One file system counts once. */
    assert_true(plan.temporary.free_bytes < plan.output.free_bytes * 3 / 2 + 1);
    plan = (struct plan){.n_dirs = 1};
    planner_look_at_space(&plan, NULL, 0, NULL, NULL);
    assert_false(plan.temporary.known || plan.output.known || plan.output_shares);
}

/* ---- samples ---- */

enum { N_RECORDS = 2000, TAG_BYTES = 90 };

/* A sorted sort buffer of records with tags of one value, or of random ones. */
static struct sort_buffer *make_buffer(struct rng *rng, bool is_random)
{
    struct sort_buffer *buffer = sort_buffer_create(test_rules(SORT_COORDINATE), NULL, 1 << 20);
    RELEASED(merge_space_release) struct merge_space space = {0};
    struct content_sum sum = {0};
    struct record_problem problem;
    OWNED uint8_t *records = test_alloc(1 << 19);
    size_t n_bytes = 0;
    for (int i = 0; i < N_RECORDS; i++) {
        struct record_fields fields = {.name = "read", .flag = 4, .tid = -1, .pos = -1,
                                       .tag_bytes = TAG_BYTES};
        uint8_t *rec = records + n_bytes;
        size_t size = put_record(rec, &fields, 7);
        for (int k = 0; is_random && k < TAG_BYTES - 8; k++)
            rec[size - 1 - (size_t)k] = (uint8_t)rng_below(rng, 256);
        n_bytes += size;
    }
    struct sort_buffer_part *part = sort_buffer_add_part(buffer, records, n_bytes, N_RECORDS, 0);
    CHECK(rng, record_entries_index_part(part, 1, &sum, &problem) == 0);
    sort_buffer_sort(buffer, &space);
    return buffer;
}

TEST(test_sample_of_buffers)
{
    struct rng rng = rng_start(5);
    struct sort_settings settings;
    struct sort_buffer *buffers[] = {make_buffer(&rng, false), make_buffer(&rng, true)};
    double raw_bytes = (double)buffers[0]->raw_bytes;
    struct plan plan = usual_plan(&settings, 16 * MIB, 2, GIB);
    settings.level = 0;
    assert_true(planner_sample(&plan, buffers, 2));
    assert_true(plan.traits.pack_ratio[TEMP_CODEC_NONE] == 1);
    for (int i = 1; i < TEMP_CODEC_COUNT; i++) assert_true(plan.traits.pack_ratio[i] < 0.2);
    assert_true(plan.traits.deflate.ratio >= 1 && plan.traits.usual.ratio < 0.2);
    assert_true(plan.traits.deflate.seconds > 0 && plan.traits.usual.seconds > 0);
    assert_true(plan.traits.memory_ratio > 1 && plan.traits.memory_ratio < 1.5);
    /* The first sort buffer is full. Other sort buffers, of another size, hold as much for their
     * memory. */
    assert_true(plan.buffer_memory == fmax((double)plan.budget.sort_buffer_bytes, 1 << 20));
    assert_true(fabs(plan.buffer_raw_bytes - raw_bytes * plan.buffer_memory / (1 << 20)) < 1);
    plan = usual_plan(&settings, 16 * MIB, 2, GIB);
    assert_true(planner_sample(&plan, buffers + 1, 1));
    for (int i = 1; i < TEMP_CODEC_COUNT; i++) assert_true(plan.traits.pack_ratio[i] > 0.5);
    assert_true(plan.traits.deflate.ratio > 0.5 && plan.traits.deflate.ratio < 1.1);
    assert_true(plan.buffer_raw_bytes == 0);    /* the last sort buffer need not be full */
    sort_buffer_destroy(buffers[0]);
    sort_buffer_destroy(buffers[1]);
}
