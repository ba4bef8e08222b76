/*
 * stored_keys.h -- runs of blocks, for tests of what stores them. Each key ends with the number of
 * its run; the value of a block follows from its key.
 */
#ifndef ROCKSORT_TEST_STORED_KEYS_H
#define ROCKSORT_TEST_STORED_KEYS_H

#include "random_records.h"

#include "spill/run_db.h"

enum { VALUE_BYTES = 1000, KEY_BYTES = 12 };

struct key {
    uint8_t bytes[KEY_BYTES];
};

struct keys {                   /* starts empty */
    struct key *keys;
    size_t n, room;
};

static inline void release_keys(struct keys *keys)
{
    free(keys->keys);
}

static inline int compare_keys(const void *a, const void *b)
{
    return memcmp(a, b, KEY_BYTES);
}

/* The values of every second key compress. */
static inline void make_value(const uint8_t *key, uint8_t *value)
{
    struct rng rng = {0, 0};
    memcpy(&rng.state, key, sizeof rng.state);
    rng_fill(&rng, value, key[0] % 2 ? VALUE_BYTES : 50);
    if (key[0] % 2 == 0) memset(value + 50, key[1], VALUE_BYTES - 50);
}

/* Makes the sorted keys of a run, which lie between those of all others. */
static inline struct key *make_run(struct rng *rng, unsigned run, size_t n)
{
    struct key *keys = test_alloc(n * sizeof *keys);
    for (size_t i = 0; i < n; i++) {
        rng_fill(rng, keys[i].bytes, KEY_BYTES - 4);
        for (int k = 0; k < 4; k++) keys[i].bytes[KEY_BYTES - 4 + k] = (uint8_t)(run >> 8 * k);
    }
    qsort(keys, n, sizeof *keys, compare_keys);
    return keys;
}

static inline void keep_keys(struct keys *all, const struct key *keys, size_t n)
{
    if (all->n + n > all->room) {
        all->room = 2 * (all->n + n);
        all->keys = realloc(all->keys, all->room * sizeof *all->keys);
        assert_non_null(all->keys);
    }
    memcpy(all->keys + all->n, keys, n * sizeof *keys);
    all->n += n;
}

/* Reads a scan, whose keys must ascend and have their values, and adds them to `found`. Returns
   what the last run_scan_key returned, 0 or -1. */
static inline int read_scan(struct rng *rng, struct run_scan *scan, struct keys *found)
{
    uint8_t before[KEY_BYTES] = {0}, expected[VALUE_BYTES];
    const uint8_t *key, *value;
    size_t key_bytes, value_bytes;
    int r;
    while ((r = run_scan_key(scan, &key, &key_bytes)) == 1) {
        run_scan_value(scan, &value, &value_bytes);
        CHECK(rng, key_bytes == KEY_BYTES && value_bytes == VALUE_BYTES);
        make_value(key, expected);
        CHECK(rng, memcmp(value, expected, VALUE_BYTES) == 0);
        CHECK(rng, memcmp(before, key, KEY_BYTES) < 0);
        memcpy(before, key, KEY_BYTES);
        keep_keys(found, (const struct key *)key, 1);
        run_scan_next(scan);
    }
    return r;
}

/* True if the keys that were found, which are sorted here, are the first of all. */
static inline bool are_first_of(struct keys *found, struct keys *all)
{
    if (found->n > all->n) return false;
    if (found->n == 0) return true;
    qsort(found->keys, found->n, sizeof *found->keys, compare_keys);
    qsort(all->keys, all->n, sizeof *all->keys, compare_keys);
    return memcmp(found->keys, all->keys, found->n * sizeof *found->keys) == 0;
}

#endif
