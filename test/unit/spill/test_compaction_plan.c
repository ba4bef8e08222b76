/*
 * test_compaction_plan.c -- when runs are compacted, how many at a time, and why.
 */
#include "unit_test.h"

#include "spill/compaction_plan.h"

#include <math.h>

enum { MIB = 1 << 20, KIB = 1 << 10 };

/* A rotating disk, 128 MiB of memory, the usual limit of open files. */
static struct compaction_facts usual_facts(enum compaction_mode mode)
{
    return (struct compaction_facts){
        .mode = mode,
        .seek_seconds = 0.01,
        .bytes_per_second = 150e6,
        .parallel = 1,
        .n_scans = 1,
        .scan_bytes = 64 * MIB,
        .compaction_bytes = 32 * MIB,
        .most_files = 976,
    };
}

/* An NVMe disk. */
static struct compaction_facts fast_facts(enum compaction_mode mode)
{
    struct compaction_facts facts = usual_facts(mode);
    facts.seek_seconds = 0.0001;
    facts.bytes_per_second = 1e9;
    return facts;
}

/* The first plan that compacts while n_runs of n_expected runs (0: unknown) come; the last plan if
   none does. */
static struct compaction_plan first_plan(struct compaction_facts facts, uint64_t n_runs,
                                         uint64_t n_expected)
{
    struct compaction_plan plan = {0};
    facts.n_runs_expected = n_expected;
    unsigned width = compaction_width(&facts);
    for (facts.n_runs = 1; facts.n_runs <= n_runs; facts.n_runs++) {
        plan = compaction_decide(&facts, width);
        if (plan.compact) break;
    }
    return plan;
}

TEST(test_each_database_gets_its_share)
{
    const struct compaction_facts all = {
        .mode = COMPACTION_AUTO, .most_files = 300, .n_runs_expected = 1000,
        .scan_bytes = 64 * MIB, .compaction_bytes = 32 * MIB,
    };
    struct compaction_facts facts = all;
    compaction_share(&facts, 2, 1, false, true);
    assert_int_equal(facts.n_runs_expected, 500);
    assert_int_equal(facts.n_scans, 2);
    assert_int_equal(facts.scan_bytes, 32 * MIB);
    assert_int_equal(facts.compaction_bytes, 32 * MIB);
    assert_int_equal(facts.most_files, 300);
    assert_false(facts.direct || facts.reads_ahead);
    /* Two compactions at a time share the memory. */
    facts = all;
    compaction_share(&facts, 2, 4, true, true);
    assert_int_equal(facts.n_runs_expected, 125);
    assert_int_equal(facts.n_scans, 8);
    assert_int_equal(facts.compaction_bytes, 16 * MIB);
    assert_true(facts.direct && facts.reads_ahead);
    facts = all;
    facts.mode = COMPACTION_ON;
    compaction_share(&facts, 2, 4, false, false);
    assert_true(!facts.direct && facts.reads_ahead);
}

TEST(test_width_is_that_of_2014)
{
    static const unsigned expected[] = {36, 100, 101, 400, 1000, 5000, 20000};
    struct compaction_facts facts = usual_facts(COMPACTION_ON);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        facts.n_runs_expected = expected[i];
        assert_int_equal(compaction_width(&facts), (unsigned)floor(sqrt(expected[i])) + 1);
    }
    facts.n_runs_expected = 0;
    unsigned if_unknown = compaction_width(&facts);
    assert_in_range(if_unknown, 15, 30);
    /* There are more runs than were expected. */
    facts.n_runs_expected = 10;
    facts.n_runs = 900;
    assert_int_equal(compaction_width(&facts), 31);
}

TEST(test_width_has_limits)
{
    struct compaction_facts facts = usual_facts(COMPACTION_ON);
    /* Compacted files must be much larger than runs. */
    for (uint64_t n = 0; n < 30; n++) {
        facts.n_runs_expected = n;
        if (n > 0) assert_true(compaction_width(&facts) >= 6);
    }
    /* No more files than memory has room for, 64 KiB each. */
    facts.n_runs_expected = 10000;
    facts.compaction_bytes = 2 * MIB;
    assert_int_equal(compaction_width(&facts), 32);
    facts.compaction_bytes = 0;
    assert_int_equal(compaction_width(&facts), 6);
    /* No more than a third of the open files. */
    facts.compaction_bytes = 64 * MIB;
    facts.most_files = 100;
    assert_int_equal(compaction_width(&facts), 33);
    facts.most_files = 0;
    assert_int_equal(compaction_width(&facts), 6);
}

TEST(test_reads_fit_the_memory)
{
    struct rng rng = rng_start(111);
    for (int i = 0; i < 10000; i++) {
        struct compaction_facts facts = usual_facts(COMPACTION_ON);
        facts.n_runs_expected = rng_below(&rng, 20000);
        facts.compaction_bytes = rng_below(&rng, (size_t)1 << (10 + rng_below(&rng, 25)));
        facts.most_files = (unsigned)rng_below(&rng, 1 << 12);
        size_t read_bytes = compaction_read_bytes(&facts);
        unsigned width = compaction_width(&facts);
        CHECK(&rng, read_bytes % 4096 == 0);
        CHECK(&rng, read_bytes >= 64 * KIB && read_bytes <= 8 * MIB);
        /* It fits into the memory, if that is possible. */
        CHECK(&rng, read_bytes * width <= facts.compaction_bytes || width == 6 ||
                        read_bytes == 64 * KIB);
    }
}

TEST(test_scan_reads_what_fits_the_memory)
{
    struct rng rng = rng_start(112);
    for (int i = 0; i < 10000; i++) {
        uint64_t n_files = rng_below(&rng, 3000);
        size_t memory = rng_below(&rng, (size_t)1 << (16 + rng_below(&rng, 18)));
        for (int direct = 0; direct < 2; direct++) {
            size_t read_bytes = scan_read_bytes(n_files, memory, direct);
            CHECK(&rng, read_bytes % 4096 == 0 && read_bytes <= 8 * MIB);
            if (direct)
                CHECK(&rng, read_bytes >= 4 * KIB);
            else
                CHECK(&rng, read_bytes == 0 || read_bytes >= 256 * KIB);
            CHECK(&rng, (read_bytes + SCAN_FILE_BYTES) * n_files <= memory ||
                            2 * read_bytes * n_files <= memory || read_bytes == 4 * KIB);
            /* It is rounded down to whole requests of a megabyte. */
            uint64_t n_more = n_files + n_files / 9 + 1;
            CHECK(&rng, n_files == 0 ||
                            scan_read_bytes(n_more, memory, direct) <= read_bytes + 64 * KIB);
        }
    }
    assert_int_equal(scan_read_bytes(20, 10 * MIB, true), 464 * KIB);
    assert_int_equal(scan_read_bytes(20, 10 * MIB, false), 464 * KIB);
    assert_int_equal(scan_read_bytes(40, 10 * MIB, true), 208 * KIB);
    assert_int_equal(scan_read_bytes(40, 10 * MIB, false), 0);
    assert_int_equal(scan_read_bytes(200, 10 * MIB, true), 24 * KIB);
    assert_int_equal(scan_read_bytes(6000, 10 * MIB, true), 4 * KIB);
}

TEST(test_off_never_compacts)
{
    struct compaction_plan plan = first_plan(usual_facts(COMPACTION_OFF), 600, 600);
    assert_false(plan.compact);
    assert_int_equal(plan.reason, COMPACTION_SWITCHED_OFF);
}

/* With -s SIZE it begins when there are as many files as there would be at the end anyway. */
TEST(test_with_a_size_it_begins_at_the_final_number_of_files)
{
    for (uint64_t n = 100; n <= 900; n += 50) {
        struct compaction_facts facts = fast_facts(COMPACTION_ON);
        unsigned k = (unsigned)floor(sqrt((double)n)) + 1;
        struct compaction_plan plan = first_plan(facts, n, n);
        assert_true(plan.compact);
        assert_int_equal(plan.reason, COMPACTION_ASKED_FOR);
        assert_int_equal(plan.width, k);
        assert_int_equal(plan.least_width, k);
        assert_true(plan.max_files >= n / k + k);
        assert_true(plan.max_files <= 2.5 * k);
        facts.n_runs_expected = n;
        facts.n_runs = plan.max_files / 2;
        assert_false(compaction_decide(&facts, plan.width).compact);
    }
    /* A few runs are not compacted. */
    for (uint64_t n = 1; n <= 5; n++) {
        struct compaction_plan plan = first_plan(usual_facts(COMPACTION_ON), n, n);
        assert_false(plan.compact);
        assert_int_equal(plan.reason, COMPACTION_NO_NEED);
    }
}

/* Little memory, many runs: groups of fewer runs than a width are enough for a compaction. Else
   they would remain between compacted files, which would be compacted again. */
TEST(test_far_more_runs_than_a_width_squared)
{
    struct compaction_facts facts = usual_facts(COMPACTION_ON);
    facts.compaction_bytes = 12 * 64 * KIB;
    struct compaction_plan plan = first_plan(facts, 1000, 1000);
    assert_true(plan.compact);
    assert_int_equal(plan.width, 12);
    assert_int_equal(plan.least_width, 6);
    plan = first_plan(facts, 400, 400);
    assert_int_equal(plan.width, 12);
    assert_int_equal(plan.least_width, 12);
}

/* Few files may be open: when rows of half a width would be too rare, two files are enough. */
TEST(test_far_more_runs_than_open_files)
{
    struct compaction_facts facts = usual_facts(COMPACTION_OFF);
    facts.most_files = 80;
    struct compaction_plan plan = first_plan(facts, 800, 800);
    assert_int_equal(plan.reason, COMPACTION_OPEN_FILES);
    assert_int_equal(plan.least_width, plan.width / 2);
    plan = first_plan(facts, 8000, 8000);
    assert_int_equal(plan.least_width, 2);
    /* The size of the input is unknown, and half as many runs have come. */
    facts.n_runs = 4000;
    assert_int_equal(compaction_decide(&facts, plan.width).least_width, 2);
}

/* Compacts as RocksDB's picker does, which knows the sizes of n files from the newest to the
   oldest. Returns the size of the new file; 0: nothing is compacted. */
static uint64_t pick_and_compact(uint64_t *sizes, size_t *n, const struct compaction_plan *plan)
{
    if (*n <= plan->max_files) return 0;
    size_t first = 0, end = 0;
    for (; first < *n; first++) {
        for (end = first + 1; end < *n && end - first < plan->width; end++)
            if (sizes[end] * 5 > sizes[end - 1] * 9 || sizes[end - 1] * 5 > sizes[end] * 9) break;
        if (end - first >= plan->least_width) break;
    }
    if (first == *n) {                          /* no row is long enough: the newest */
        if (*n < plan->max_files + plan->least_width) return 0;
        first = 0;
        end = *n - plan->max_files;
    }
    uint64_t sum = 0;
    for (size_t i = first; i < end; i++) sum += sizes[i];
    memmove(sizes + first + 1, sizes + end, (*n - end) * sizeof *sizes);
    sizes[first] = sum;
    *n -= end - first - 1;
    return sum;
}

/* With few open files each run is rewritten log2(runs) times, whatever the number of files. With
   rows of a quarter of 32 files it was 45 times. */
TEST(test_thousands_of_runs_are_rewritten_few_times)
{
    enum { N_RUNS = 8650, MOST = 256 };
    for (unsigned most_files = 16; most_files <= 64; most_files += 4) {
        struct compaction_facts facts = fast_facts(COMPACTION_OFF);
        facts.most_files = most_files;
        facts.n_runs = facts.n_runs_expected = N_RUNS;
        struct compaction_plan plan = compaction_decide(&facts, compaction_width(&facts));
        uint64_t sizes[MOST], rewritten = 0, n_bytes;
        size_t n = 0;
        for (int run = 0; run < N_RUNS; run++) {
            memmove(sizes + 1, sizes, n * sizeof *sizes);
            sizes[0] = 1;
            n++;
            while ((n_bytes = pick_and_compact(sizes, &n, &plan)) > 0) rewritten += n_bytes;
            assert_true(n < most_files);
        }
        assert_true(rewritten <= 16 * N_RUNS);
    }
}

TEST(test_plans_follow_the_runs)
{
    struct compaction_facts facts = usual_facts(COMPACTION_ON);
    unsigned width = compaction_width(&facts), before = 0;
    facts.n_runs_expected = 50;
    for (facts.n_runs = 1; facts.n_runs < 800; facts.n_runs++) {
        struct compaction_plan plan = compaction_decide(&facts, width);
        assert_true(facts.n_runs <= 50 || plan.max_files >= before);
        before = plan.max_files;
    }
    assert_true(before > 2 * width);
}

TEST(test_auto_compacts_only_if_time_is_saved)
{
    /* Seeks cost nearly nothing, so compaction never pays. */
    for (uint64_t n = 1; n <= 600; n += n / 3 + 1) {
        struct compaction_plan plan = first_plan(fast_facts(COMPACTION_AUTO), n, n);
        assert_false(plan.compact);
        assert_int_equal(plan.reason, COMPACTION_NO_GAIN);
    }
    /* The disk is unknown. */
    struct compaction_facts unknown = usual_facts(COMPACTION_AUTO);
    unknown.seek_seconds = 0;
    assert_int_equal(first_plan(unknown, 500, 500).reason, COMPACTION_NO_GAIN);
    unknown.seek_seconds = 0.01;
    unknown.bytes_per_second = 0;
    assert_int_equal(first_plan(unknown, 500, 500).reason, COMPACTION_NO_GAIN);
    /* A rotating disk: many runs are compacted, a few are not. */
    struct compaction_facts slow = usual_facts(COMPACTION_AUTO);
    assert_false(first_plan(slow, 10, 10).compact);
    struct compaction_plan plan = first_plan(slow, 600, 600);
    assert_true(plan.compact);
    assert_int_equal(plan.reason, COMPACTION_SAVES_SEEKS);
    /* Much memory: a scan of this many files reads megabytes at a time. */
    slow.scan_bytes = (size_t)4 << 30;
    slow.compaction_bytes = (size_t)2 << 30;
    assert_false(first_plan(slow, 200, 200).compact);
}

/* Compactions that are wide because memory or open files are scarce read ahead within the memory
   for compactions; or they have at most 64 files. */
TEST(test_wide_compactions_fit)
{
    for (size_t memory = 16 * MIB; memory <= (size_t)4 << 30; memory *= 2) {
        struct compaction_facts facts = usual_facts(COMPACTION_OFF);
        facts.n_scans = 4;
        facts.scan_bytes = memory / 8 * 5 / 4;
        facts.compaction_bytes = memory / 16;
        facts.reads_ahead = true;
        facts.most_files = 100000;
        size_t read_bytes = compaction_read_bytes(&facts);
        struct compaction_plan plan = first_plan(facts, 90000, 0);
        assert_true(plan.compact);
        assert_true(plan.width * read_bytes <= facts.compaction_bytes || plan.width <= 64);
        assert_true(plan.width + plan.max_files <= compaction_most_files(&facts));
    }
}

/* A file takes memory for its longest keys. */
TEST(test_files_with_long_keys)
{
    struct compaction_facts facts = fast_facts(COMPACTION_AUTO);
    facts.most_files = 100000;
    unsigned before = compaction_most_files(&facts);
    size_t memory = before * (16 * KIB);
    for (facts.key_bytes = 500; facts.key_bytes <= 64 * KIB; facts.key_bytes *= 2) {
        unsigned n = compaction_most_files(&facts);
        assert_true(n > 0 && n < before);
        assert_true(n * (16 * KIB + 8 * facts.key_bytes) <= memory + 16 * KIB);
        before = n;
        /* Parts of indexes are larger in an order by long keys. */
        facts.long_keys = true;
        assert_true(compaction_most_files(&facts) < n);
        facts.long_keys = false;
    }
}

/* Runs may be divided into files where neither seeks nor memory nor open files forbid it. */
TEST(test_runs_may_have_several_files)
{
    struct compaction_facts facts = usual_facts(COMPACTION_AUTO);
    facts.most_files = 1000;
    facts.scan_bytes = (size_t)1 << 30;
    facts.reads_ahead = false;
    assert_int_equal(compaction_most_run_files(&facts), 500);
    facts.scan_bytes = 0;
    assert_true(compaction_most_run_files(&facts) < 1000);
    facts.most_files = 127;
    assert_int_equal(compaction_most_run_files(&facts), 0);
    facts.most_files = 1000;
    facts.reads_ahead = true;
    assert_int_equal(compaction_most_run_files(&facts), 0);
}

/* 12.8 GB in 64 MiB on a drive of 7200 rpm, in four databases of 361 files: a scan would read 64
   KiB at a time, because the kernel does not read ahead past the page cache. When reads of 128 KiB
   were assumed nothing was compacted, and the sort took 892 s. */
TEST(test_auto_knows_small_reads)
{
    struct compaction_facts facts = usual_facts(COMPACTION_AUTO);
    facts.seek_seconds = 0.0139;
    facts.bytes_per_second = 156e6;
    facts.n_scans = 4;
    facts.scan_bytes = 10 * MIB;
    facts.direct = true;
    facts.compaction_bytes = 7 * MIB;
    facts.most_files = 240;
    assert_true(first_plan(facts, 90, 0).compact);      /* from a pipe */
    facts.parallel = 2;
    assert_true(first_plan(facts, 90, 90).compact);
    facts.direct = false;
    assert_false(first_plan(facts, 90, 90).compact);
}

TEST(test_auto_is_monotonic)
{
    bool before = false;
    for (double seek = 1e-5; seek < 0.1; seek *= 1.5) {
        struct compaction_facts facts = usual_facts(COMPACTION_AUTO);
        facts.seek_seconds = seek;
        bool now = first_plan(facts, 600, 600).compact;
        assert_true(now || !before);
        before = now;
    }
    assert_true(before);
    before = false;
    for (uint64_t n = 10; n <= 600; n += 10) {
        bool now = first_plan(usual_facts(COMPACTION_AUTO), n, n).compact;
        assert_true(now || !before);
        before = now;
    }
    assert_true(before);
}

TEST(test_open_files_suffice_in_every_mode)
{
    static const enum compaction_mode modes[] = {COMPACTION_AUTO, COMPACTION_OFF, COMPACTION_ON};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        for (unsigned most_files = 40; most_files < 1000; most_files += 24) {
            struct compaction_facts facts = fast_facts(modes[i]);
            facts.most_files = most_files;
            struct compaction_plan plan = first_plan(facts, 5000, 0);
            assert_true(plan.compact);
            if (modes[i] != COMPACTION_ON) assert_int_equal(plan.reason, COMPACTION_OPEN_FILES);
            assert_true(plan.width + plan.max_files <= most_files);
            /* It is decided early enough. */
            facts.n_runs = 5000;
            assert_true(compaction_decide(&facts, compaction_width(&facts)).compact);
        }
        /* Nothing fits into so few files: it does what it can. */
        struct compaction_facts few = fast_facts(modes[i]);
        few.most_files = 4;
        assert_true(first_plan(few, 50, 0).compact);
    }
}

/* Each file takes some memory, even if more may be open: 6,156 took more than 16 MiB allow. */
TEST(test_files_fit_the_memory)
{
    unsigned before = 0;
    for (size_t scan_bytes = 2 * MIB; scan_bytes <= 512 * MIB; scan_bytes *= 2) {
        struct compaction_facts facts = fast_facts(COMPACTION_OFF);
        facts.most_files = 100000;
        facts.scan_bytes = scan_bytes;
        facts.compaction_bytes = scan_bytes / 2;
        struct compaction_plan plan = first_plan(facts, 20000, 0);
        assert_true(plan.compact);
        assert_int_equal(plan.reason, COMPACTION_MEMORY);
        unsigned most = plan.max_files + plan.width;
        assert_true(most > before && plan.max_files > 1000);
        /* 12 KiB for each fit into what a sort may take besides its budget. */
        assert_true(most * 12 * KIB <= 32 * MIB + scan_bytes / 4);
        before = most;
        assert_false(first_plan(facts, most / 2, 0).compact);
        facts.mode = COMPACTION_ON;
        assert_true(first_plan(facts, 20000, 10000000).max_files <= most);
    }
}
