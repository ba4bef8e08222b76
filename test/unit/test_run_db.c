/*
 * test_run_db.c -- runs in RocksDB: what goes in comes back in key order through one scan, and
 * what went wrong on disk is an error, not a shorter result.
 */
#include "random_records.h"

#include "run_db.h"
#include "scratch_dir.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

struct block {
    uint8_t key[32];
    size_t key_bytes;
    uint8_t *value;
    size_t value_bytes;
};

static int make_dir(void **state)
{
    *state = scratch_dir_create("/tmp/rocksort-test", NULL);
    return *state == NULL;
}

static int remove_dir(void **state)
{
    int r = scratch_dir_remove(*state);
    free(*state);
    return r;
}

static int compare_blocks(const void *a, const void *b)
{
    const struct block *x = a, *y = b;
    size_t n = x->key_bytes < y->key_bytes ? x->key_bytes : y->key_bytes;
    int c = memcmp(x->key, y->key, n);
    return c ? c : (x->key_bytes > y->key_bytes) - (x->key_bytes < y->key_bytes);
}

/* Sorted blocks of one run. Keys of all runs overlap; the run's number makes them different. */
static struct block *make_run(struct rng *rng, uint8_t run, size_t n_blocks, size_t max_value)
{
    struct block *blocks = test_alloc(n_blocks * sizeof *blocks);
    for (size_t i = 0; i < n_blocks; i++) {
        struct block *b = &blocks[i];
        b->key_bytes = 8 + rng_below(rng, 12);
        rng_fill(rng, b->key, b->key_bytes);
        b->key[0] = (uint8_t)rng_below(rng, 3);
        b->key[b->key_bytes++] = run;
        b->key[b->key_bytes++] = (uint8_t)(i >> 8);
        b->key[b->key_bytes++] = (uint8_t)i;
        b->value_bytes = 1 + rng_below(rng, max_value);
        b->value = test_alloc(b->value_bytes);
        if (run % 2)
            memset(b->value, run, b->value_bytes);
        else
            rng_fill(rng, b->value, b->value_bytes);
    }
    qsort(blocks, n_blocks, sizeof *blocks, compare_blocks);
    return blocks;
}

static void release_blocks(struct block *blocks, size_t n)
{
    for (size_t i = 0; i < n; i++) free(blocks[i].value);
    free(blocks);
}

static void store_run(struct rng *rng, struct run_db *db, const struct block *blocks,
                      size_t n)
{
    CHECK(rng, run_db_begin_run(store) == 0);
    for (size_t i = 0; i < n; i++)
        CHECK(rng, run_db_put(store, blocks[i].key, blocks[i].key_bytes, blocks[i].value,
                                 blocks[i].value_bytes) == 0);
    CHECK(rng, run_db_end_run(store) == 0);
}

/* Scans and compares with sorted blocks. Returns the last code of run_scan_key: 0 or -1. */
static int scan_all(struct rng *rng, struct run_db *db, const struct block *blocks, size_t n)
{
    struct run_scan *scan = run_scan_open(store);
    assert_non_null(scan);
    const uint8_t *key, *value;
    size_t key_bytes, value_bytes, i = 0;
    int r;
    while ((r = run_scan_key(scan, &key, &key_bytes)) == 1) {
        CHECK(rng, i < n);
        run_scan_value(scan, &value, &value_bytes);
        CHECK(rng, key_bytes == blocks[i].key_bytes && value_bytes == blocks[i].value_bytes);
        CHECK(rng, memcmp(key, blocks[i].key, key_bytes) == 0);
        CHECK(rng, memcmp(value, blocks[i].value, value_bytes) == 0);
        run_scan_next(scan);
        i++;
    }
    CHECK(rng, r == -1 || i == n);
    run_scan_close(scan);
    return r;
}

static void test_runs_come_back_in_order(void **state)
{
    enum { N_RUNS = 20, N_BLOCKS = 60 };
    struct rng rng = rng_start(91);
    struct run_db *db = run_db_create(*state, 0, false);
    struct block *all = test_alloc(N_RUNS * N_BLOCKS * sizeof *all);
    size_t n = 0;
    uint64_t value_bytes = 0;
    assert_non_null(store);
    for (uint8_t run = 0; run < N_RUNS; run++) {
        size_t n_blocks = run == 3 ? 1 : 1 + rng_below(&rng, N_BLOCKS);
        struct block *blocks = make_run(&rng, run, n_blocks, run % 4 < 2 ? 100 : 20000);
        assert_int_equal(run_db_n_runs(store), run);
        store_run(&rng, store, blocks, n_blocks);
        assert_int_equal(run_db_n_runs(store), run + 1);
        memcpy(all + n, blocks, n_blocks * sizeof *blocks);
        for (size_t i = 0; i < n_blocks; i++) value_bytes += blocks[i].value_bytes;
        n += n_blocks;
        free(blocks);
    }
    qsort(all, n, sizeof *all, compare_blocks);
    assert_int_equal(scan_all(&rng, store, all, n), 0);
    /* Files hold the values, uncompressed, and little else. */
    assert_true(run_db_bytes(store) > value_bytes);
    assert_true(run_db_bytes(store) < value_bytes + 60 * n + 4096 * N_RUNS);
    /* A second scan is as good. */
    assert_int_equal(scan_all(&rng, store, all, n), 0);
    run_db_destroy(store);
    release_blocks(all, n);
}

static void test_empty_store(void **state)
{
    struct rng rng = rng_start(92);
    struct run_db *db = run_db_create(*state, 0, false);
    assert_non_null(store);
    assert_int_equal(run_db_n_runs(store), 0);
    assert_int_equal(run_db_bytes(store), 0);
    assert_int_equal(scan_all(&rng, store, NULL, 0), 0);
    run_db_destroy(store);
    run_db_destroy(NULL);
    run_scan_close(NULL);
}

/* Destroyed between begin and end, as after an error: the run is not there, and nothing leaks. */
static void test_destroyed_within_a_run(void **state)
{
    struct rng rng = rng_start(93);
    struct run_db *db = run_db_create(*state, 0, false);
    struct block *blocks = make_run(&rng, 0, 10, 5000);
    assert_non_null(store);
    assert_int_equal(run_db_begin_run(store), 0);
    assert_int_equal(run_db_put(store, blocks[0].key, blocks[0].key_bytes, blocks[0].value,
                                   blocks[0].value_bytes), 0);
    assert_int_equal(run_db_n_runs(store), 0);
    run_db_destroy(store);
    release_blocks(blocks, 10);
}

static void test_keys_out_of_order_are_refused(void **state)
{
    struct rng rng = rng_start(94);
    struct run_db *db = run_db_create(*state, 0, false);
    struct block *blocks = make_run(&rng, 0, 2, 100);
    assert_non_null(store);
    assert_int_equal(run_db_begin_run(store), 0);
    assert_int_equal(run_db_put(store, blocks[1].key, blocks[1].key_bytes, blocks[1].value,
                                   blocks[1].value_bytes), 0);
    assert_int_equal(run_db_put(store, blocks[0].key, blocks[0].key_bytes, blocks[0].value,
                                   blocks[0].value_bytes), -1);
    run_db_destroy(store);
    release_blocks(blocks, 2);
}

static void test_impossible_directories(void **state)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/missing/deeper", (const char *)*state);
    assert_null(run_db_create(path, 0, false));
    /* A directory in which there is a store already. */
    struct run_db *db = run_db_create(*state, 0, false), *second = run_db_create(*state, 0, false);
    assert_non_null(store);
    assert_null(second);
    run_db_destroy(store);
    assert_null(run_db_create(*state, 0, false));
    /* A file. */
    (void)snprintf(path, sizeof path, "%s/db/CURRENT", (const char *)*state);
    assert_null(run_db_create(path, 0, false));
}

/* A signal removes the directory while another thread is about to open the database in it. */
static void test_removed_directory_does_not_come_back(void **state)
{
    assert_int_equal(scratch_dir_remove(*state), 0);
    assert_null(run_db_create(*state, 0, false));
    assert_int_equal(access(*state, F_OK), -1);
    assert_int_equal(mkdir(*state, 0700), 0);           /* for the teardown */
}

/* Finds the SST file of the only run: a number that RocksDB chose, with the ending .sst. */
static void find_sst(const char *store_dir, char *path, size_t room)
{
    char dir[256];
    (void)snprintf(dir, sizeof dir, "%s/db", store_dir);
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

/* Where a value lies in a file. */
static long find_value(const char *path, const struct block *block)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    size_t n = (size_t)st.st_size;
    uint8_t *bytes = test_alloc(n);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_true(fread(bytes, 1, n, file) == n);
    assert_int_equal(fclose(file), 0);
    size_t at = 0, last = n - block->value_bytes;
    assert_true(n >= block->value_bytes);
    while (at <= last && memcmp(bytes + at, block->value, block->value_bytes) != 0) at++;
    assert_true(at <= last);
    free(bytes);
    return (long)at;
}

/* One byte of any value or key changed on disk behind RocksDB's back: the scan ends with an error,
   and what it showed before was right. */
static void test_flipped_bytes_are_errors(void **state)
{
    enum { N_BLOCKS = 12 };
    struct rng rng = rng_start(95);
    struct run_db *db = run_db_create(*state, 0, false);
    struct block *blocks = make_run(&rng, 0, N_BLOCKS, 9000);
    char path[512];
    assert_non_null(store);
    store_run(&rng, store, blocks, N_BLOCKS);
    assert_int_equal(scan_all(&rng, store, blocks, N_BLOCKS), 0);
    find_sst(*state, path, sizeof path);
    for (size_t i = 0; i < N_BLOCKS; i++) {
        long at = find_value(path, &blocks[i]);
        const long places[] = {at - 1, at, at + (long)rng_below(&rng, blocks[i].value_bytes),
                               at + (long)blocks[i].value_bytes - 1};
        for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
            int flip = 1 + (int)rng_below(&rng, 255);
            flip_byte(path, places[k], flip);
            CHECK(&rng, scan_all(&rng, store, blocks, N_BLOCKS) == -1);
            flip_byte(path, places[k], flip);
        }
    }
    /* Undamaged again: it was the bytes. */
    assert_int_equal(scan_all(&rng, store, blocks, N_BLOCKS), 0);
    run_db_destroy(store);
    release_blocks(blocks, N_BLOCKS);
}

static void test_truncated_file_is_an_error(void **state)
{
    enum { N_BLOCKS = 30 };
    struct rng rng = rng_start(96);
    struct run_db *db = run_db_create(*state, 0, false);
    struct block *blocks = make_run(&rng, 0, N_BLOCKS, 9000);
    char path[512];
    assert_non_null(store);
    store_run(&rng, store, blocks, N_BLOCKS);
    find_sst(*state, path, sizeof path);
    assert_int_equal(truncate(path, find_value(path, &blocks[N_BLOCKS / 2])), 0);
    assert_int_equal(scan_all(&rng, store, blocks, N_BLOCKS), -1);
    run_db_destroy(store);
    release_blocks(blocks, N_BLOCKS);
}

#define TEST_IN_DIR(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_IN_DIR(test_runs_come_back_in_order),
        TEST_IN_DIR(test_empty_store),
        TEST_IN_DIR(test_destroyed_within_a_run),
        TEST_IN_DIR(test_keys_out_of_order_are_refused),
        TEST_IN_DIR(test_impossible_directories),
        TEST_IN_DIR(test_removed_directory_does_not_come_back),
        TEST_IN_DIR(test_flipped_bytes_are_errors),
        TEST_IN_DIR(test_truncated_file_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
