/*
 * test_run_store.c -- runs in several directories: the scans together show all blocks, wherever the
 * runs are, whether they were compacted or not, and even if a directory is full.
 *
 * The number of databases in a directory and other decisions depend on the disk. What is checked
 * here must be true on every disk.
 */
#include "small_disk.h"
#include "spill/quiet.h"
#include "spill/stored_keys.h"
#include "test_place.h"
#include "unit_test.h"

#include "os/temp_dir.h"
#include "spill/run_store.h"

#include <pthread.h>
#include <stdatomic.h>

enum { MIB = 1 << 20 };

static unsigned n_run_files = 1;        /* of runs with so many blocks */

/* What the spiller does after a code of the store. */
static int after_code(struct stored_run *run, int r)
{
    return r == RUN_STORE_FULL ? run_store_make_room(run) : r;
}

static int put_run(struct run_store *store, struct stored_run **run, const struct key *keys,
                   size_t n)
{
    uint8_t value[VALUE_BYTES];
    unsigned n_files = n < n_run_files ? (unsigned)n : n_run_files;
    int r = run_store_begin_run(store, n_files, run);
    for (size_t i = 0; r == 0 && i < n; i++) {
        make_value(keys[i].bytes, value);
        unsigned file = (unsigned)(i * n_files / n);
        r = after_code(*run, run_store_put(*run, file, keys[i].bytes, KEY_BYTES, value,
                                           sizeof value));
    }
    return r;
}

static int label_run(struct stored_run *run, unsigned number)
{
    return after_code(run, run_store_label_run(run, number, (const uint8_t *)"label", 5));
}

/* Writes a run as the spiller does. Returns how often it had to begin again, or -1 on failure. */
static int store_run(struct run_store *store, unsigned number, const struct key *keys, size_t n)
{
    struct stored_run *run;
    int n_again = 0, r;
    while ((r = put_run(store, &run, keys, n)) == RUN_STORE_AGAIN ||
           (r == 0 && (r = label_run(run, number)) == RUN_STORE_AGAIN)) {
        run_store_abandon_run(run);
        n_again++;
    }
    if (r == 0) return run_store_end_run(run) == 0 ? n_again : -1;
    run_store_abandon_run(run);
    return -1;
}

static void add_run(struct rng *rng, struct run_store *store, unsigned number, size_t n,
                    struct keys *all)
{
    OWNED struct key *keys = make_run(rng, number, n);
    CHECK(rng, store_run(store, number, keys, n) >= 0);
    keep_keys(all, keys, n);
}

/* All scans together must show all keys. Frees the keys; returns the number of scans. */
static int check_scans(struct rng *rng, struct run_store *store, struct keys *all)
{
    OWNED struct run_scan **scans = NULL;
    RELEASED(release_keys) struct keys found = {0};
    CHECK(rng, run_store_flush(store) == 0);
    size_t n = run_store_scan(store, &scans);
    for (size_t i = 0; i < n; i++) {
        CHECK(rng, strlen(run_scan_dir(scans[i])) > 0);
        CHECK(rng, read_scan(rng, scans[i], &found) == 0);
        run_scan_close(scans[i]);
    }
    CHECK(rng, found.n == all->n && are_first_of(&found, all));
    free(all->keys);
    *all = (struct keys){0};
    return (int)n;
}

static struct run_store_settings settings_of(const char *const *dirs, size_t n_dirs,
                                             enum compaction_mode mode, uint64_t n_runs)
{
    static const struct memory_budget budget = {
        .total_bytes = 8 * MIB / 5 * 8, .long_runs = true, /* 8 MiB to read ahead on any disk */
        .n_buffers = 1, .run_buffers = 1, .sort_buffer_bytes = 4 * MIB,
    };
    return (struct run_store_settings){
        .dirs = dirs, .n_dirs = n_dirs, .compaction = mode, .budget = &budget,
        .input_bytes = n_runs * (budget.sort_buffer_bytes / 2),
    };
}

/* Creates a store in n_dirs new directories, of a, b and c. */
static struct run_store *create_in(size_t n_dirs, enum compaction_mode mode, uint64_t n_runs)
{
    static const char *const dirs[] = {"a", "b", "c"};
    struct run_store_settings settings = settings_of(dirs, n_dirs, mode, n_runs);
    for (size_t i = 0; i < n_dirs; i++) assert_int_equal(mkdir(dirs[i], 0700), 0);
    struct run_store *store = run_store_create(&settings);
    assert_non_null(store);
    return store;
}

static bool is_compacting(const struct run_store *store)
{
    return run_store_compactions(store) & COMPACTION_IS_RUNNING;
}

static bool is_crowded(const struct run_store *store)
{
    return run_store_compactions(store) & COMPACTION_IS_CROWDED;
}

static unsigned count_runs(const struct run_store *store)
{
    struct run_store_stats stats;
    run_store_stats(store, &stats);
    return stats.n_runs;
}

static void remove_dirs(size_t n_dirs)
{
    static const char *const dirs[] = {"a", "b", "c"};
    for (size_t i = 0; i < n_dirs; i++) assert_int_equal(temp_dir_remove(dirs[i]), 0);
}

static void end_store(struct run_store *store, size_t n_dirs)
{
    run_store_destroy(store);
    remove_dirs(n_dirs);
}

static bool is_empty(const char *dir)
{
    return rmdir(dir) == 0 && mkdir(dir, 0700) == 0;
}

/* ---- directories ---- */

TEST_IN_OWN_DIR(test_runs_spread_over_all_directories)
{
    for (size_t n_dirs = 1; n_dirs <= 3; n_dirs++) {
        struct rng rng = rng_start(121 + n_dirs);
        struct run_store *store = create_in(n_dirs, COMPACTION_OFF, 0);
        struct run_store_stats stats;
        struct keys all = {0};
        n_run_files = (unsigned)n_dirs;
        for (unsigned run = 0; run < 24; run++) {
            assert_int_equal(count_runs(store), run);
            add_run(&rng, store, run, run == 7 ? 1 : 3 + rng_below(&rng, 100), &all);
        }
        assert_false(is_empty("a"));
        for (size_t i = 1; i < n_dirs; i++) assert_false(is_empty(i == 1 ? "b" : "c"));
        unsigned n_files = 23 * n_run_files + 1;
        uint64_t n_bytes = all.n * VALUE_BYTES;
        assert_true(check_scans(&rng, store, &all) >= (int)n_dirs);
        run_store_stats(store, &stats);
        assert_int_equal(stats.n_runs, 24);
        assert_int_equal(stats.n_files, n_files);
        assert_int_equal(stats.compacted_bytes, 0);
        assert_false(stats.compacted);
        assert_true(stats.run_bytes > n_bytes);
        assert_true(stats.run_bytes < n_bytes * 11 / 10 + n_files * 4096);
        n_run_files = 1;
        end_store(store, n_dirs);
    }
}

TEST_IN_OWN_DIR(test_empty_store_has_no_runs)
{
    struct rng rng = rng_start(125);
    struct run_store *store = create_in(2, COMPACTION_AUTO, 0);
    struct run_store_stats stats;
    struct run_store_disks disks;
    struct keys all = {0};
    assert_int_equal(count_runs(store), 0);
    assert_false(run_store_wants_compaction(store, 100));
    assert_int_equal(run_store_compact(store), 0);
    assert_int_equal(run_store_settle(store), 0);
    assert_false(is_compacting(store));
    assert_false(is_crowded(store));
    assert_int_equal(run_store_scan_bytes(store), 0);
    run_store_look(store, &disks);
    assert_true(disks.free_bytes > 0);
    run_store_stats(store, &stats);
    assert_int_equal(stats.n_runs + stats.n_files, 0);
    assert_int_equal(check_scans(&rng, store, &all), 0);
    run_store_destroy(store);
    run_store_destroy(NULL);
    run_store_abandon_run(NULL);
    assert_true(is_empty("a") && is_empty("b"));        /* the disk probe has left nothing either */
    remove_dirs(2);
}

/* Destroyed with a run that was abandoned, runs that are not part of a database yet, and a scan
   that was not read to its end. */
TEST_IN_OWN_DIR(test_destroyed_at_any_time)
{
    for (unsigned n_runs = 0; n_runs < 7; n_runs++) {
        struct rng rng = rng_start(126);
        struct run_store *store = create_in(2, COMPACTION_ON, 50);
        struct keys all = {0};
        struct stored_run *run;
        struct run_scan **scans = NULL;
        for (unsigned i = 0; i < n_runs; i++) add_run(&rng, store, i, 20, &all);
        struct key *keys = make_run(&rng, n_runs, 5);
        assert_int_equal(put_run(store, &run, keys, 5), 0);
        run_store_abandon_run(run);
        if (n_runs % 2) {
            assert_int_equal(run_store_flush(store), 0);
            size_t n = run_store_scan(store, &scans);
            const uint8_t *key;
            size_t key_bytes;
            assert_true(n > 0);
            assert_int_equal(run_scan_key(scans[0], &key, &key_bytes), 1);
            for (size_t i = 0; i < n; i++) run_scan_close(scans[i]);
            free(scans);
        }
        run_store_destroy(store);
        free(keys);
        free(all.keys);
        remove_dirs(2);
    }
}

TEST_IN_OWN_DIR(test_run_is_written_while_others_end)
{
    struct rng rng = rng_start(127);
    struct run_store *store = create_in(2, COMPACTION_OFF, 0);
    struct stored_run *runs[12];
    struct keys all = {.keys = test_alloc(12 * 30 * sizeof(struct key))};
    n_run_files = 2;
    for (unsigned i = 0; i < 12; i++) {
        OWNED struct key *keys = make_run(&rng, i, 30);
        assert_int_equal(put_run(store, &runs[i], keys, 30), 0);
        memcpy(all.keys + all.n, keys, 30 * sizeof *keys);
        all.n += 30;
        if (i >= 2) assert_int_equal(run_store_end_run(runs[i - 2]), 0);
    }
    n_run_files = 1;
    assert_int_equal(run_store_end_run(runs[10]), 0);
    assert_int_equal(run_store_end_run(runs[11]), 0);
    assert_int_equal(count_runs(store), 12);
    (void)check_scans(&rng, store, &all);
    end_store(store, 2);
}

/* Names of all files below a directory, with their sizes; the caller frees the text. */
static char *describe_files(const char *dir)
{
    char command[256], *text = test_alloc(1 << 16);
    (void)snprintf(command, sizeof command, "cd %s && find . -type f -printf '%%P %%s\\n' | sort",
                   dir);
    FILE *from = popen(command, "r");
    assert_non_null(from);
    text[fread(text, 1, (1 << 16) - 1, from)] = '\0';
    assert_int_equal(pclose(from), 0);
    return text;
}

/* A store that another process made gets a further directory: nothing is written into the closed
   ones, not even where there is no space at all, and the scans show all runs. */
TEST_IN_OWN_DIR(test_closed_directories_are_only_read)
{
    static const char *const dirs[] = {"a", "b", "c"};
    struct rng rng = rng_start(130);
    struct keys all = {0};
    struct run_store *store = create_in(2, COMPACTION_OFF, 0);
    unsigned n_lanes = run_store_n_lanes(store);
    for (unsigned run = 0; run < 12; run++) add_run(&rng, store, run, 50, &all);
    assert_int_equal(run_store_flush(store), 0);
    run_store_destroy(store);
    assert_int_equal(mkdir("c", 0700), 0);
    char *before[2] = {describe_files("a"), describe_files("b")};
    struct run_store_settings settings = settings_of(dirs, 3, COMPACTION_ON, 100);
    settings.existing = true;
    settings.n_lanes = n_lanes;
    settings.n_closed_dirs = 2;
    store = run_store_create(&settings);
    assert_non_null(store);
    assert_int_equal(count_runs(store), 12);
    for (unsigned run = 12; run < 40; run++) {
        add_run(&rng, store, run, 50, &all);
        if (run_store_wants_compaction(store, 40))
            assert_int_equal(run_store_compact(store), 0);
    }
    assert_int_equal(run_store_flush(store), 0);
    assert_int_equal(run_store_settle(store), 0);
    while (is_compacting(store)) (void)usleep(1000);
    assert_int_equal(count_runs(store), 40);
    assert_int_equal(run_store_n_durable(store), 40);
    (void)check_scans(&rng, store, &all);
    run_store_destroy(store);
    for (int i = 0; i < 2; i++) {
        OWNED char *after = describe_files(dirs[i]);
        assert_string_equal(after, before[i]);
        free(before[i]);
    }
    remove_dirs(3);
}

TEST_IN_OWN_DIR(test_run_in_an_impossible_directory_fails)
{
    static const char *const dirs[] = {"missing"};
    struct run_store_settings settings = settings_of(dirs, 1, COMPACTION_AUTO, 0);
    struct run_store *store = run_store_create(&settings);
    struct stored_run *run;
    assert_non_null(store);
    assert_int_equal(run_store_begin_run(store, 1, &run), RUN_STORE_ERROR);
    run_store_abandon_run(run);
    run_store_destroy(store);
}

/* ---- full directories ---- */

/* One of two directories is full, or becomes full. The other one gets all further runs. */
static void check_with_small_disk(size_t disk_bytes, bool is_full, size_t n_blocks,
                                  bool small_first)
{
    struct rng rng = rng_start(128);
    const char *const dirs[] = {small_first ? "small" : "a", small_first ? "a" : "small"};
    struct run_store_settings settings = settings_of(dirs, 2, COMPACTION_OFF, 0);
    struct keys all = {0};
    if (!mount_small_disk("small", disk_bytes)) skip();
    if (is_full) fill_small_disk("small");
    assert_int_equal(mkdir("a", 0700), 0);
    struct run_store *store = run_store_create(&settings);
    assert_non_null(store);
    for (unsigned run = 0; run < 20; run++) {
        n_run_files = 1 + run % 3;
        add_run(&rng, store, run, n_blocks, &all);
    }
    n_run_files = 1;
    struct run_store_stats stats;
    run_store_stats(store, &stats);
    assert_true(stats.run_bytes > 20 * n_blocks * VALUE_BYTES);
    (void)check_scans(&rng, store, &all);
    end_store(store, 1);
    unmount_small_disk("small");
}

TEST_IN_OWN_DIR(test_other_directory_gets_the_runs_of_a_full_one)
{
    check_with_small_disk(65536, true, 200, true);
    check_with_small_disk(65536, true, 200, false);
    /* Runs that are larger, and smaller, than what a file writer gathers before it writes. */
    check_with_small_disk(3 * MIB, false, 800, true);
    check_with_small_disk(3 * MIB, false, 100, true);
    check_with_small_disk(12 * MIB, false, 800, false);
    check_with_small_disk(12 * MIB, false, 2500, true);
}

TEST_IN_OWN_DIR(test_full_directories_are_an_error)
{
    static const char *const dirs[] = {"small", "smaller"};
    for (int n_blocks = 50; n_blocks < 5000; n_blocks *= 9) {
        struct rng rng = rng_start(129);
        struct run_store_settings settings = settings_of(dirs, 2, COMPACTION_OFF, 0);
        if (!mount_small_disk("small", 3 * MIB)) skip();
        assert_true(mount_small_disk("smaller", 2 * MIB));
        struct run_store *store = run_store_create(&settings);
        int r = 0;
        for (unsigned run = 0; r >= 0 && run < 200; run++) {
            OWNED struct key *keys = make_run(&rng, run, (size_t)n_blocks);
            r = store_run(store, 0, keys, (size_t)n_blocks);
        }
        assert_int_equal(r, -1);
        run_store_destroy(store);
        unmount_small_disk("small");
        unmount_small_disk("smaller");
    }
}

struct ending {
    struct stored_run *runs[2];
    atomic_int step;            /* without any order of memory: the store alone must give it */
    int result;
};

static void wait_for_step(struct ending *ending, int step)
{
    while (atomic_load_explicit(&ending->step, memory_order_relaxed) < step) (void)usleep(100);
}

static void go_to_step(struct ending *ending, int step)
{
    atomic_store_explicit(&ending->step, step, memory_order_relaxed);
}

static void *end_two_runs(void *arg)
{
    struct ending *ending = arg;
    ending->result = run_store_end_run(ending->runs[0]);
    go_to_step(ending, 1);
    wait_for_step(ending, 2);
    if (run_store_end_run(ending->runs[1]) < 0) ending->result = -1;
    return NULL;
}

/* Who ends a run on a disk that is nearly full looks at all databases of the directory, one of
   which another thread has just made. Without the lock that was a race, which ThreadSanitizer
   sees. */
TEST_IN_OWN_DIR(test_nearly_full_while_a_database_is_made)
{
    static const char *const dirs[] = {"small"};
    struct rng rng = rng_start(131);
    struct run_store_settings settings = settings_of(dirs, 1, COMPACTION_OFF, 0);
    struct keys all = {0};
    struct key *keys[3];
    struct ending ending = {.result = -1};
    pthread_t thread;
    settings.n_lanes = 2;
    if (!mount_small_disk("small", 4 * MIB - 65536)) skip();    /* less than what is kept free */
    struct run_store *store = run_store_create(&settings);
    assert_non_null(store);
    for (unsigned i = 0; i < 3; i++) {
        keys[i] = make_run(&rng, i, 20);
        keep_keys(&all, keys[i], 20);
    }
    for (int i = 0; i < 2; i++)         /* both into the first database: none has a run yet */
        assert_int_equal(put_run(store, &ending.runs[i], keys[i], 20), 0);
    assert_int_equal(pthread_create(&thread, NULL, end_two_runs, &ending), 0);
    wait_for_step(&ending, 1);
    struct stored_run *run;
    assert_int_equal(run_store_begin_run(store, 1, &run), 0);      /* makes the second database */
    assert_true(run_db_exists("small", 1));
    go_to_step(&ending, 2);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(ending.result, 0);
    run_store_abandon_run(run);
    assert_true(store_run(store, 2, keys[2], 20) >= 0);
    for (int i = 0; i < 3; i++) free(keys[i]);
    (void)check_scans(&rng, store, &all);
    run_store_destroy(store);
    unmount_small_disk("small");
}

/* ---- compaction ---- */

static bool is_busy(struct run_store *store)
{
    return run_store_compactions(store) & (COMPACTION_IS_RUNNING | COMPACTION_IS_DUE);
}

static void wait_for_compactions(struct run_store *store)
{
    int n_looks = 0;
    while (!quiet_wait(&n_looks, is_busy(store))) {}
}

static void wait_if_crowded(struct run_store *store)
{
    int n_looks = 0;
    while (is_crowded(store) && !quiet_wait(&n_looks, is_busy(store))) {}
}

/* Adds runs and has them compacted as the run committer does. */
static void add_compacted_runs(struct rng *rng, struct run_store *store, unsigned n_runs,
                               unsigned n_expected, struct keys *all)
{
    for (unsigned run = 0; run < n_runs; run++) {
        add_run(rng, store, run, 20, all);
        if (run_store_wants_compaction(store, n_expected))
            assert_int_equal(run_store_compact(store), 0);
        wait_if_crowded(store);
    }
    assert_int_equal(run_store_flush(store), 0);
    wait_for_compactions(store);
    assert_int_equal(run_store_settle(store), 0);
    wait_for_compactions(store);
}

/* If the number of expected runs is right, there are at most 2.5 k files, and each byte is written
   at most 2.2 times; k is that of 2014, of all runs or of the runs of a directory. */
TEST_IN_OWN_DIR(test_bytes_are_rewritten_about_twice)
{
    for (size_t n_dirs = 1; n_dirs <= 2; n_dirs++) {
        const unsigned n_runs = 120;
        struct rng rng = rng_start(130 + n_dirs);
        struct run_store *store = create_in(n_dirs, COMPACTION_ON, n_runs);
        struct run_store_stats stats;
        struct keys all = {0};
        add_compacted_runs(&rng, store, n_runs, n_runs, &all);
        run_store_stats(store, &stats);
        assert_true(stats.compacted);
        assert_int_equal(stats.reason, COMPACTION_ASKED_FOR);
        assert_int_equal(stats.n_runs, n_runs);
        CHECK(&rng, stats.n_files <= (n_dirs == 1 ? 27u : 40u));
        CHECK(&rng, stats.compacted_bytes > stats.run_bytes / 3);
        CHECK(&rng, stats.compacted_bytes <= stats.run_bytes * 12 / 10);
        assert_true(run_store_scan_bytes(store) <= 8 * MIB);
        (void)check_scans(&rng, store, &all);
        end_store(store, n_dirs);
    }
}

/* There is memory to compact only 6 files at a time, and 16 would be right: more is rewritten, but
   not again and again. */
TEST_IN_OWN_DIR(test_compaction_in_little_memory)
{
    static const char *const dirs[] = {"a"};
    const unsigned n_runs = 250;
    struct rng rng = rng_start(160);
    struct run_store_settings settings = settings_of(dirs, 1, COMPACTION_ON, n_runs);
    struct memory_budget budget = *settings.budget;
    budget.sort_buffer_bytes = 6 << 16;
    settings.budget = &budget;
    settings.input_bytes = n_runs * (budget.sort_buffer_bytes / 2);
    assert_int_equal(mkdir(dirs[0], 0700), 0);
    struct run_store *store = run_store_create(&settings);
    struct run_store_stats stats;
    struct keys all = {0};
    add_compacted_runs(&rng, store, n_runs, n_runs, &all);
    run_store_stats(store, &stats);
    assert_int_equal(stats.width, 6);
    CHECK(&rng, stats.n_files <= 55);
    CHECK(&rng, stats.compacted_bytes <= stats.run_bytes * 3);
    (void)check_scans(&rng, store, &all);
    end_store(store, 1);
}

/* Two small runs come after many larger files, which are like compacted ones, and in which no group
   of one size is wide enough. The last compaction takes the two runs, and then no other files,
   although there are still too many. */
TEST_IN_OWN_DIR(test_settling_compacts_once)
{
    enum { N_LARGE = 31, N_RUNS = N_LARGE + 2, LARGE = 100, SMALL = 20 };
    struct rng rng = rng_start(150);
    struct run_store *store = create_in(1, COMPACTION_ON, 120);     /* 11 at a time, beyond 23 */
    struct run_store_stats stats;
    struct keys all = {0};
    for (unsigned run = 0; run < N_LARGE; run++)
        add_run(&rng, store, run, run % 11 == 10 ? 5 : LARGE, &all);
    add_run(&rng, store, N_LARGE, SMALL, &all);
    add_run(&rng, store, N_LARGE + 1, SMALL, &all);
    assert_int_equal(run_store_flush(store), 0);
    assert_true(run_store_wants_compaction(store, 120));
    assert_int_equal(run_store_compact(store), 0);
    wait_for_compactions(store);
    run_store_stats(store, &stats);
    assert_int_equal(stats.compacted_bytes, 0);
    assert_int_equal(run_store_settle(store), 0);
    wait_for_compactions(store);
    run_store_stats(store, &stats);
    CHECK(&rng, stats.compacted_bytes < 3 * SMALL * VALUE_BYTES);
    if (run_store_scan_bytes(store) == 0) assert_int_equal(stats.n_files, N_RUNS - 1);
    (void)check_scans(&rng, store, &all);
    end_store(store, 1);
}

/* A wrong number of expected runs only costs time. */
TEST_IN_OWN_DIR(test_compaction_with_wrong_numbers)
{
    static const unsigned expected[] = {0, 3, 12, 1000, 4000000};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct rng rng = rng_start(133 + i);
        struct run_store *store = create_in(2, COMPACTION_ON, expected[i]);
        struct keys all = {0};
        add_compacted_runs(&rng, store, 50, expected[i], &all);
        (void)check_scans(&rng, store, &all);
        end_store(store, 2);
    }
}

TEST_IN_OWN_DIR(test_nothing_is_compacted_when_switched_off)
{
    struct rng rng = rng_start(140);
    struct run_store *store = create_in(1, COMPACTION_OFF, 100);
    struct run_store_stats stats;
    struct keys all = {0};
    for (unsigned run = 0; run < 40; run++) {
        add_run(&rng, store, run, 2, &all);
        assert_false(run_store_wants_compaction(store, 100));
    }
    run_store_stats(store, &stats);
    assert_int_equal(stats.n_files, 40);
    assert_false(stats.compacted);
    assert_int_equal(stats.reason, COMPACTION_SWITCHED_OFF);
    (void)check_scans(&rng, store, &all);
    end_store(store, 1);
}

/* Without space for a compaction nothing is lost, runs can still be added, and it is not tried for
   ever. */
TEST_IN_OWN_DIR(test_no_space_to_compact)
{
    static const char *const dirs[] = {"small"};
    struct rng rng = rng_start(141);
    struct run_store_settings settings = settings_of(dirs, 1, COMPACTION_ON, 200);
    struct keys all = {0};
    /* Space for 40 runs, for 4 MiB, and for little more. */
    if (!mount_small_disk("small", 40 * 110000 + (4 << 20) + 500000)) skip();
    struct run_store *store = run_store_create(&settings);
    for (unsigned run = 0; run < 40; run++) add_run(&rng, store, run, 100, &all);
    assert_true(run_store_wants_compaction(store, 60));
    assert_int_equal(run_store_compact(store), 0);
    for (int i = 0; i < 500 && !run_store_wants_compaction(store, 60); i++)
        (void)usleep(10000);
    assert_int_equal(run_store_compact(store), 0);
    assert_false(run_store_wants_compaction(store, 60));
    /* RocksDB may have begun another attempt, but there are no more after that. */
    for (int i = 0; i < 500 && is_compacting(store); i++) (void)usleep(10000);
    assert_false(is_compacting(store));
    assert_false(is_crowded(store));
    assert_int_equal(run_store_settle(store), 0);
    add_run(&rng, store, 40, 10, &all);
    assert_false(is_compacting(store));
    (void)check_scans(&rng, store, &all);
    run_store_destroy(store);
    unmount_small_disk("small");
}
