/*
 * test_run_db.c -- runs in RocksDB: a scan shows all blocks in key order, compacted or not; damage
 * on the disk is an error, and not a shorter result.
 */
#include "unit_test.h"

#include "os/temp_dir.h"
#include "spill/quiet.h"
#include "spill/stored_keys.h"
#include "util/diag.h"

#include <dirent.h>
#include <pthread.h>
#include <rocksdb/c.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

OWNER(struct run_db, run_db_destroy)

static int make_dir(void **state)
{
    *state = temp_dir_create("/tmp/rocksort-test", NULL);
    return *state == NULL;
}

static int remove_dir(void **state)
{
    int r = temp_dir_remove(*state);
    free(*state);
    return r;
}

static struct run_db *make_db_how(const char *dir, bool direct)
{
    const struct run_db_settings settings = {
        .n_admitted = 1, .n_compactions = 1, .direct = direct, .compaction_read_bytes = 1 << 16,
    };
    struct run_db *db = run_db_create(dir, &settings, NULL);
    assert_non_null(db);
    return db;
}

static struct run_db *make_db(const char *dir)
{
    return make_db_how(dir, false);
}

static void check_no_db(const char *dir)
{
    const struct run_db_settings settings = {.n_admitted = 1, .n_compactions = 1};
    assert_null(run_db_create(dir, &settings, NULL));
}

static int put_key(struct begun_run *writer, unsigned file, const struct key *key)
{
    uint8_t value[VALUE_BYTES];
    make_value(key->bytes, value);
    return run_db_put(writer, file, key->bytes, KEY_BYTES, value, sizeof value);
}

static unsigned n_run_files = 1;        /* of runs with so many blocks */

static void store_run(struct rng *rng, struct run_db *db, const struct key *keys, size_t n)
{
    struct begun_run *writer;
    unsigned n_files = n < n_run_files ? (unsigned)n : n_run_files;
    CHECK(rng, run_db_begin_run(db, n_files, &writer) == 0);
    for (size_t i = 0; i < n; i++)
        CHECK(rng, put_key(writer, (unsigned)(i * n_files / n), &keys[i]) == 0);
    CHECK(rng, run_db_end_run(writer) == 0);
}

/* Makes a run, stores it and adds its keys to `all`. */
static void add_run(struct rng *rng, struct run_db *db, unsigned run, size_t n, struct keys *all)
{
    OWNED struct key *keys = make_run(rng, run, n);
    store_run(rng, db, keys, n);
    keep_keys(all, keys, n);
}

/* Scans and compares with all keys. Returns what the last run_scan_key returned, 0 or -1. */
static int scan_how(struct rng *rng, struct run_db *db, struct keys *all, size_t read_bytes)
{
    struct run_scan *scan = run_scan_open(db, read_bytes);
    RELEASED(release_keys) struct keys found = {0};
    assert_non_null(scan);
    int r = read_scan(rng, scan, &found);
    run_scan_close(scan);
    CHECK(rng, are_first_of(&found, all) && (r == -1 || found.n == all->n));
    return r;
}

static int scan_all(struct rng *rng, struct run_db *db, struct keys *all)
{
    return scan_how(rng, db, all, 0);
}

#define TEST_IN_DIR(test) TEST_WITH(test, make_dir, remove_dir)

/* Compactions are planned by this size before a run of this process ends. */
TEST_IN_DIR(test_longest_key_is_known_to_a_process_that_opens_the_database)
{
    static const uint8_t short_key[] = "a", long_key[] = "bcdefghijklmnopqrstuvwxyz";
    const struct run_db_settings existing = {.existing = true, .n_admitted = 1,
                                             .n_compactions = 1};
    struct run_db *db = make_db(*state);
    assert_int_equal(run_db_totals(db)->key_bytes, 0);
    for (uint32_t run = 0; run < 2; run++) {
        struct begun_run *writer;
        size_t n = run == 0 ? sizeof long_key : sizeof short_key;
        assert_int_equal(run_db_begin_run(db, 1, &writer), 0);
        const uint8_t *key = run == 0 ? long_key : short_key;
        assert_int_equal(run_db_put(writer, 0, key, n, short_key, 1), 0);
        assert_int_equal(run_db_label_run(writer, run, short_key, 1), 0);
        assert_int_equal(run_db_end_run(writer), 0);
    }
    size_t longest = run_db_totals(db)->key_bytes;
    assert_in_range(longest, sizeof long_key, sizeof long_key + 1);
    run_db_destroy(db);
    db = run_db_create(*state, &existing, NULL);
    assert_int_equal(run_db_totals(db)->n_runs, 2);
    assert_int_equal(run_db_totals(db)->key_bytes, longest);
    run_db_destroy(db);
}

TEST_IN_DIR(test_runs_come_back_in_order)
{
    enum { N_RUNS = 20, N_BLOCKS = 60 };
    struct rng rng = rng_start(91);
    RELEASED(own_run_db_destroy) struct run_db *db = make_db(*state);
    RELEASED(release_keys) struct keys all = {0};
    unsigned n_files = 0;
    assert_int_equal(run_db_totals(db)->n_bytes, 0);
    assert_int_equal(scan_all(&rng, db, &all), 0);
    for (unsigned run = 0; run < N_RUNS; run++) {
        size_t n_blocks = run == 3 ? 1 : 1 + rng_below(&rng, N_BLOCKS);
        n_run_files = 1 + run % 4;
        n_files += n_blocks < n_run_files ? (unsigned)n_blocks : n_run_files;
        assert_int_equal(run_db_totals(db)->n_runs, run);
        add_run(&rng, db, run, n_blocks, &all);
        assert_int_equal(run_db_totals(db)->n_runs, run + 1);
    }
    n_run_files = 1;
    assert_int_equal(run_db_n_files(db), n_files);
    assert_int_equal(run_db_totals(db)->n_files, n_files);
    assert_int_equal(scan_all(&rng, db, &all), 0);
    /* Files hold the values, uncompressed, and little else. */
    assert_true(run_db_totals(db)->n_bytes > all.n * VALUE_BYTES);
    assert_true(run_db_totals(db)->n_bytes < all.n * (VALUE_BYTES + 60) + 4096 * n_files);
    /* A second scan shows the same. */
    assert_int_equal(scan_all(&rng, db, &all), 0);
}

/* Long keys that have a beginning in common stand in the index once, not for each block: while a
   file is written, RocksDB has its index in memory. */
TEST_IN_DIR(test_index_of_long_keys)
{
    enum { N = 2000, LONG_KEY_BYTES = 500, LARGE_BYTES = 4200 };
    RELEASED(own_run_db_destroy) struct run_db *db = make_db(*state);
    struct begun_run *writer;
    uint8_t key[LONG_KEY_BYTES], *value = test_alloc(LARGE_BYTES);
    memset(key, 'x', sizeof key);
    memset(value, 'v', LARGE_BYTES);
    assert_int_equal(run_db_begin_run(db, 1, &writer), 0);
    for (uint32_t i = 0; i < N; i++) {
        key[sizeof key - 2] = (uint8_t)(i >> 8);
        key[sizeof key - 1] = (uint8_t)i;
        assert_int_equal(run_db_put(writer, 0, key, sizeof key, value, LARGE_BYTES), 0);
    }
    assert_int_equal(run_db_end_run(writer), 0);
    assert_true(run_db_totals(db)->n_bytes < (uint64_t)N * (LONG_KEY_BYTES + LARGE_BYTES + 120));
    free(value);
}

/* Where few files may be open, a compacted file may have all data. What of it is in memory, index
   and filter, must not grow with each block. */
TEST_IN_DIR(test_large_files_have_a_small_index)
{
    enum { N = 4000, LONG_KEY_BYTES = 100, LARGE_BYTES = 1000 };
    const struct run_db_settings settings = {.n_admitted = 1, .n_compactions = 1,
                                             .few_files = true};
    RELEASED(own_run_db_destroy) struct run_db *db = run_db_create(*state, &settings, NULL);
    struct begun_run *writer;
    uint8_t key[LONG_KEY_BYTES], value[LARGE_BYTES] = {0};
    memset(key, 'x', sizeof key);
    assert_non_null(db);
    assert_int_equal(run_db_begin_run(db, 1, &writer), 0);
    for (uint32_t i = 0; i < N; i++) {
        key[sizeof key - 2] = (uint8_t)(i >> 8);
        key[sizeof key - 1] = (uint8_t)i;
        assert_int_equal(run_db_put(writer, 0, key, sizeof key, value, sizeof value), 0);
    }
    assert_int_equal(run_db_end_run(writer), 0);
    /* RocksDB writes a whole key for one value of 16, and of the others what differs. */
    uint64_t data_bytes = (uint64_t)N * (LARGE_BYTES + 12 + LONG_KEY_BYTES / 16 + 4);
    assert_true(run_db_totals(db)->n_bytes < data_bytes);
}

TEST_IN_DIR(test_abandoned_within_a_run)
{
    struct rng rng = rng_start(93);
    RELEASED(own_run_db_destroy) struct run_db *db = make_db(*state);
    OWNED struct key *keys = make_run(&rng, 0, 2);
    struct keys none = {0};
    struct begun_run *writer;
    assert_int_equal(run_db_begin_run(db, 3, &writer), 0);
    assert_int_equal(put_key(writer, 0, &keys[1]), 0);
    assert_int_equal(put_key(writer, 0, &keys[0]), RUN_DB_ERROR);       /* out of order */
    assert_int_equal(run_db_totals(db)->n_runs, 0);
    run_db_abandon_run(writer);
    assert_int_equal(run_db_totals(db)->n_runs, 0);
    assert_int_equal(scan_all(&rng, db, &none), 0);
    run_db_destroy(NULL);
    run_scan_close(NULL);
}

TEST_IN_DIR(test_directories_without_room_for_a_database_are_refused)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/missing/deeper", (const char *)*state);
    check_no_db(path);
    /* A directory that has a database already. */
    struct run_db *db = make_db(*state);
    check_no_db(*state);
    run_db_destroy(db);
    check_no_db(*state);
    /* A file. */
    (void)snprintf(path, sizeof path, "%s/db-0/CURRENT", (const char *)*state);
    check_no_db(path);
}

/* A signal removes the directory while another thread is about to open the database in it. */
TEST_IN_DIR(test_removed_directory_does_not_come_back)
{
    assert_int_equal(temp_dir_remove(*state), 0);
    check_no_db(*state);
    assert_int_equal(access(*state, F_OK), -1);
    assert_int_equal(mkdir(*state, 0700), 0);           /* for the teardown */
}

/* Finds the SST file of the only run. RocksDB chose its number. */
static void find_sst(const char *store_dir, char *path, size_t room)
{
    char dir[256];
    (void)snprintf(dir, sizeof dir, "%s/db-0", store_dir);
    DIR *d = opendir(dir);
    assert_non_null(d);
    path[0] = '\0';
    for (struct dirent *entry; (entry = readdir(d)) != NULL;) {
        const char *dot = strrchr(entry->d_name, '.');
        if (dot && strcmp(dot, ".sst") == 0)
            (void)snprintf(path, room, "%s/%s", dir, entry->d_name);
    }
    assert_int_equal(closedir(d), 0);
    assert_true(path[0] != '\0');
}

static void flip_byte(const char *path, long at, int flip)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    int byte = fgetc(file);
    assert_true(byte != EOF);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_true(fputc(byte ^ flip, file) != EOF);
    assert_int_equal(fclose(file), 0);
}

/* Returns where the value of a key is in a file. */
static long find_value(const char *path, const struct key *key)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    size_t n = (size_t)st.st_size, at = 0;
    uint8_t value[VALUE_BYTES];
    OWNED uint8_t *bytes = test_alloc(n);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_true(n >= VALUE_BYTES && fread(bytes, 1, n, file) == n);
    assert_int_equal(fclose(file), 0);
    make_value(key->bytes, value);
    while (at <= n - VALUE_BYTES && memcmp(bytes + at, value, VALUE_BYTES) != 0) at++;
    assert_true(at <= n - VALUE_BYTES);
    return (long)at;
}

/* If one byte of any value or key is changed on the disk the scan ends with an error, and what it
   showed before was right. So it does if the file is cut off. */
TEST_IN_DIR(test_damaged_files_are_errors)
{
    enum { N_BLOCKS = 12 };
    struct rng rng = rng_start(95);
    RELEASED(own_run_db_destroy) struct run_db *db = make_db(*state);
    RELEASED(release_keys) struct keys all = {0};
    char path[512];
    add_run(&rng, db, 0, N_BLOCKS, &all);
    assert_int_equal(scan_all(&rng, db, &all), 0);
    find_sst(*state, path, sizeof path);
    for (size_t i = 0; i < N_BLOCKS; i++) {
        long at = find_value(path, &all.keys[i]);
        const long places[] = {at - 1, at, at + (long)rng_below(&rng, VALUE_BYTES),
                               at + VALUE_BYTES - 1};
        for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
            int flip = 1 + (int)rng_below(&rng, 255);
            flip_byte(path, places[k], flip);
            CHECK(&rng, scan_all(&rng, db, &all) == -1);
            flip_byte(path, places[k], flip);
        }
    }
    /* Without the damage all is well again. */
    assert_int_equal(scan_all(&rng, db, &all), 0);
    assert_int_equal(truncate(path, find_value(path, &all.keys[N_BLOCKS / 2])), 0);
    assert_int_equal(scan_all(&rng, db, &all), -1);
}

/* ---- many runs ---- */

/* Adds n_runs runs of n blocks each. Calls `then`, unless it is NULL, after each run. */
static void add_runs(struct rng *rng, struct run_db *db, unsigned n_runs, size_t n,
                     struct keys *all, void (*then)(struct run_db *))
{
    for (unsigned run = 0; run < n_runs; run++) {
        add_run(rng, db, run, n, all);
        if (then) then(db);
    }
}

static bool is_busy(struct run_db *db)
{
    return run_db_is_compacting(db) || run_db_compaction_is_due(db);
}

static void wait_for_compactions(struct run_db *db)
{
    int n_looks = 0;
    while (!quiet_wait(&n_looks, is_busy(db))) {}
}

enum { MANY_RUNS = 120, EVEN_BLOCKS = 20, MANY_WIDTH = 11, MANY_MOST = 23 };

static unsigned n_waits_in_vain;

/* Waits as the thread that ends runs does, so that there are not many more files than wanted. */
static void wait_if_crowded(struct run_db *db)
{
    int n_looks = 0;
    while (run_db_n_files(db) >= MANY_MOST + MANY_WIDTH - 2) {
        if (!quiet_wait(&n_looks, is_busy(db))) continue;
        n_waits_in_vain++;
        return;
    }
}

/* Each byte is rewritten about once, and few files are left, as compaction_plan.h computes: for 120
   runs 11 files at a time, whenever there are more than 120 / 11 * 1.1 + 11. On a busy machine
   RocksDB may begin so late that runs come meanwhile; what it rewrites then is not the least, but
   nothing a third time. */
/* The database is opened again for the first compaction, while runs come. */
TEST_IN_DIR(test_direct_compaction_while_runs_come)
{
    struct rng rng = rng_start(97);
    RELEASED(own_run_db_destroy) struct run_db *db = make_db_how(*state, true);
    RELEASED(release_keys) struct keys all = {0};
    assert_int_equal(run_db_compact(db, MANY_WIDTH, MANY_WIDTH, MANY_MOST), 0);
    n_waits_in_vain = 0;
    add_runs(&rng, db, MANY_RUNS, EVEN_BLOCKS, &all, wait_if_crowded);
    wait_for_compactions(db);
    /* As run_store_settle does. */
    unsigned n_files = run_db_n_files(db);
    if (n_files > 2 * MANY_WIDTH)
        assert_int_equal(run_db_compact(db, 2, MANY_WIDTH, n_files - 1), 0);
    wait_for_compactions(db);
    assert_int_equal(run_db_totals(db)->n_runs, MANY_RUNS);
    double n_bytes = (double)run_db_totals(db)->n_bytes;
    double compacted = (double)run_db_compacted_bytes(db);
    CHECK(&rng, run_db_n_files(db) <= 2.5 * MANY_WIDTH);
    CHECK(&rng, compacted > 0.5 * n_bytes);
    CHECK(&rng, compacted <= (n_waits_in_vain == 0 ? 1.2 : 2.0) * n_bytes);
    assert_false(run_db_compact_failed(db));
    assert_int_equal(scan_all(&rng, db, &all), 0);
    assert_int_equal(scan_how(&rng, db, &all, 1 << 16), 0);
}

struct asker {
    const struct run_db *db;
    atomic_bool stop;
};

static void *ask(void *arg)
{
    struct asker *asker = arg;
    while (!atomic_load(&asker->stop)) (void)run_db_is_compacting(asker->db);
    return NULL;
}

/* The thread that writes runs, and has no space, asks whether something is compacted while the
   thread that ends runs begins the first compaction. */
TEST_IN_DIR(test_asked_while_it_is_opened_again)
{
    struct rng rng = rng_start(107);
    RELEASED(own_run_db_destroy) struct run_db *db = make_db_how(*state, true);
    RELEASED(release_keys) struct keys all = {0};
    struct asker asker = {.db = db};
    pthread_t thread;
    add_run(&rng, db, 0, EVEN_BLOCKS, &all);
    assert_int_equal(pthread_create(&thread, NULL, ask, &asker), 0);
    assert_int_equal(run_db_compact(db, 6, 6, 20), 0);
    atomic_store(&asker.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(scan_all(&rng, db, &all), 0);
}

/* RocksDB has no thread to compact with, as if it got no CPU: the compaction stays due, and begins
   when there is a thread. */
TEST_IN_DIR(test_compaction_that_begins_late)
{
    struct rng rng = rng_start(108);
    RELEASED(own_run_db_destroy) struct run_db *db = make_db(*state);
    RELEASED(release_keys) struct keys all = {0};
    rocksdb_env_t *env = rocksdb_create_default_env();
    add_runs(&rng, db, 12, EVEN_BLOCKS, &all, NULL);
    assert_false(run_db_compaction_is_due(db));
    rocksdb_env_set_background_threads(env, 0);
    assert_int_equal(run_db_compact(db, 6, 6, 8), 0);
    assert_true(run_db_compaction_is_due(db));
    assert_false(run_db_is_compacting(db));
    rocksdb_env_set_background_threads(env, 1);
    wait_for_compactions(db);
    assert_int_equal(run_db_n_files(db), 7);
    rocksdb_env_destroy(env);
}

/* Neighbours differ so much in size that RocksDB compacts none of them: nothing is due. */
TEST_IN_DIR(test_no_neighbours_of_one_size)
{
    struct rng rng = rng_start(109);
    RELEASED(own_run_db_destroy) struct run_db *db = make_db(*state);
    RELEASED(release_keys) struct keys all = {0};
    for (unsigned run = 0; run < 12; run++)
        add_run(&rng, db, run, run % 2 ? EVEN_BLOCKS : EVEN_BLOCKS / 4, &all);
    assert_int_equal(run_db_compact(db, 6, 6, 8), 0);
    assert_false(run_db_compaction_is_due(db));
    wait_for_compactions(db);
    assert_int_equal(run_db_compacted_bytes(db), 0);
}

TEST_IN_DIR(test_compaction_during_a_scan)
{
    struct rng rng = rng_start(99);
    RELEASED(own_run_db_destroy) struct run_db *db = make_db(*state);
    RELEASED(release_keys) struct keys all = {0}, found = {0};
    const uint8_t *key;
    size_t key_bytes;
    add_runs(&rng, db, 40, EVEN_BLOCKS, &all, NULL);
    struct run_scan *scan = run_scan_open(db, 0);
    assert_non_null(scan);
    for (; found.n < 100; run_scan_next(scan)) {
        assert_int_equal(run_scan_key(scan, &key, &key_bytes), 1);
        keep_keys(&found, (const struct key *)key, 1);
    }
    assert_int_equal(run_db_compact(db, 2, 40, 4), 0);
    wait_for_compactions(db);
    CHECK(&rng, run_db_n_files(db) <= 4);
    assert_int_equal(read_scan(&rng, scan, &found), 0);
    CHECK(&rng, found.n == all.n && are_first_of(&found, &all));
    run_scan_close(scan);
}

/* Runs become part of the database three at a time, and the last ones by admit_runs. Two databases
   in one directory do not disturb each other. */
TEST_IN_DIR(test_admitted_in_groups)
{
    const struct run_db_settings settings = {
        .n_admitted = 3, .n_compactions = 2, .number = 5, .compaction_read_bytes = 1 << 20,
        .direct = true,
    };
    struct rng rng = rng_start(101);
    struct run_db *other = make_db(*state), *db = run_db_create(*state, &settings, NULL);
    struct keys none = {0};
    RELEASED(release_keys) struct keys all = {0};
    assert_non_null(db);
    assert_non_null(other);
    assert_int_equal(run_db_admit_runs(db), 0);
    n_run_files = 3;
    add_runs(&rng, db, 20, EVEN_BLOCKS, &all, NULL);
    n_run_files = 1;
    assert_int_equal(run_db_totals(db)->n_runs, 20);
    assert_int_equal(run_db_n_files(db), 3 * 20);
    assert_int_equal(run_db_n_durable(db), 18);
    assert_int_equal(run_db_admit_runs(db), 0);
    assert_int_equal(run_db_n_files(db), 3 * 20);
    assert_int_equal(run_db_n_durable(db), 20);
    assert_int_equal(scan_how(&rng, db, &all, 0), 0);
    assert_int_equal(scan_all(&rng, other, &none), 0);
    run_db_destroy(db);
    run_db_destroy(other);
}

/* Ends n more runs, the first of which has this number, and checks how many are durable then. */
static void check_durable(struct rng *rng, struct run_db *db, uint8_t first, uint8_t n,
                          unsigned n_durable)
{
    RELEASED(release_keys) struct keys all = {0};
    for (uint8_t i = 0; i < n; i++) add_run(rng, db, first + i, 1, &all);
    assert_int_equal(run_db_totals(db)->n_runs, first + n);
    assert_int_equal(run_db_n_files(db), first + n);
    assert_int_equal(run_db_n_durable(db), n_durable);
}

/* From 128 files on, runs wait for others: as many become part of the database together as are a
   64th of the files. They do not wait if two seconds have passed since the first one ended, nor if
   with them there are enough files for a compaction. */
TEST_IN_DIR(test_admitted_in_growing_groups)
{
    struct rng rng = rng_start(110);
    RELEASED(own_run_db_destroy) struct run_db *db = make_db(*state);
    check_durable(&rng, db, 0, 128, 128);
    check_durable(&rng, db, 128, 1, 128);
    check_durable(&rng, db, 129, 1, 130);
    assert_int_equal(run_db_admit_runs(db), 0);
    for (uint8_t n = 130; n < 192; n += 2) check_durable(&rng, db, n, 2, n + 2U);
    check_durable(&rng, db, 192, 1, 192);
    (void)sleep(2);
    check_durable(&rng, db, 193, 1, 194);
    assert_int_equal(run_db_compact(db, 20, 20, 194), 0);
    check_durable(&rng, db, 194, 1, 195);
}

TEST_IN_DIR(test_admitted_in_small_groups)
{
    struct rng rng = rng_start(111);
    RELEASED(own_run_db_destroy) struct run_db *db = make_db(*state);
    check_durable(&rng, db, 0, 128, 128);
    assert_int_equal(run_db_compact(db, 3, 6, 250), 0);
    check_durable(&rng, db, 128, 1, 129);
}

/* Runs that RocksDB cannot take in count neither as durable nor as runs: nobody would find them.
   They once counted as durable. */
TEST_IN_DIR(test_runs_that_are_not_admitted_do_not_count)
{
    const struct run_db_settings settings = {.n_admitted = 2, .n_compactions = 1};
    struct rng rng = rng_start(104);
    RELEASED(own_run_db_destroy) struct run_db *db = run_db_create(*state, &settings, NULL);
    RELEASED(release_keys) struct keys all = {0};
    char path[512];
    assert_non_null(db);
    n_run_files = 2;
    add_runs(&rng, db, 3, EVEN_BLOCKS, &all, NULL);
    n_run_files = 1;
    assert_int_equal(run_db_n_durable(db), 2);
    uint64_t n_bytes = run_db_totals(db)->n_bytes;
    (void)snprintf(path, sizeof path, "%s/run-0-000005.sst", (const char *)*state);
    assert_int_equal(unlink(path), 0);
    diag_silence();
    assert_int_equal(run_db_admit_runs(db), -1);
    diag_renew();
    assert_int_equal(run_db_n_durable(db), 2);
    assert_int_equal(run_db_totals(db)->n_runs, 2);
    assert_int_equal(run_db_totals(db)->n_files, 4);
    assert_int_equal(run_db_n_files(db), 4);     /* nothing of the third run */
    assert_true(run_db_totals(db)->n_bytes < n_bytes && run_db_totals(db)->n_bytes > n_bytes / 2);
}

TEST_IN_DIR(test_direct_scan_of_a_lost_database)
{
    struct rng rng = rng_start(103);
    RELEASED(own_run_db_destroy) struct run_db *db = make_db_how(*state, true);
    RELEASED(release_keys) struct keys all = {0};
    char path[512];
    add_runs(&rng, db, 4, EVEN_BLOCKS, &all, NULL);
    (void)snprintf(path, sizeof path, "%s/db-0/CURRENT", (const char *)*state);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(scan_how(&rng, db, &all, 0), -1);
    assert_int_equal(run_db_n_files(db), 0);
    assert_int_equal(run_db_totals(db)->n_runs, 4);
    assert_false(run_db_is_compacting(db));
}
