/*
 * test_key_print.c -- prints of keys against the keys themselves, over many changes of the base.
 *
 * Keys are texts of two letters that end with a NUL, so they are prefix-free, and many of them share
 * long beginnings. They are often longer than a print, which therefore shrinks with each base that
 * is nearer.
 */
#include "random_records.h"

#include "order/key_print.h"

enum { N_KEYS = 60, MOST_BYTES = 3 * KEY_PRINT_BYTES };

struct key {
    uint8_t bytes[MOST_BYTES + 1];
    size_t n_bytes;
};

static int compare_keys(const void *x, const void *y)
{
    const struct key *a = x, *b = y;
    size_t n = a->n_bytes < b->n_bytes ? a->n_bytes : b->n_bytes;
    int c = memcmp(a->bytes, b->bytes, n);
    return (c > 0) - (c < 0);
}

/* Makes a key that begins like another one; NULL: like none. */
static void make_key(struct rng *rng, const struct key *like, struct key *key)
{
    size_t n = like ? rng_below(rng, like->n_bytes) : 0;
    if (n > 0) memcpy(key->bytes, like->bytes, n);
    for (; n < MOST_BYTES && !rng_one_in(rng, 40); n++)
        key->bytes[n] = rng_one_in(rng, 8) ? 'b' : 'a';
    key->bytes[n++] = '\0';
    key->n_bytes = n;
}

static struct key_print take(const struct key *base, const struct key *key)
{
    struct key_print print;
    key_print_take(base->bytes, base->n_bytes, key->bytes, key->n_bytes, &print);
    return print;
}

/* Keeps the print of a key over many bases, each nearer than the one before, and compares it with
   new prints. Returns how many comparisons the prints have decided. */
static unsigned follow(struct rng *rng, const struct key *keys, size_t kept)
{
    unsigned n_decided = 0;
    struct key_print old = take(&keys[0], &keys[kept]);
    for (size_t base = 0;;) {
        for (int i = 0; i < 8; i++) {
            int c;
            size_t other = base + rng_below(rng, N_KEYS - base);
            struct key_print new = take(&keys[base], &keys[other]);
            if (!key_print_compare(&new, &old, &c)) continue;
            CHECK(rng, (c > 0) - (c < 0) == compare_keys(&keys[other], &keys[kept]));
            n_decided++;
        }
        if (base == kept) return n_decided;
        size_t next = base + 1 + rng_below(rng, kept - base);
        struct key_print low = take(&keys[base], &keys[next]);
        int c;
        if (key_print_compare(&low, &old, &c))
            key_print_rebase(&low, &old);
        else
            old = take(&keys[next], &keys[kept]);
        base = next;
    }
}

static void test_prints_that_shrink(void **state)
{
    (void)state;
    struct rng rng = rng_start(41);
    static struct key keys[N_KEYS];
    unsigned n_decided = 0;
    for (int round = 0; round < 200; round++) {
        make_key(&rng, NULL, &keys[0]);
        for (size_t i = 1; i < N_KEYS; i++) make_key(&rng, &keys[rng_below(&rng, i)], &keys[i]);
        qsort(keys, N_KEYS, sizeof *keys, compare_keys);
        for (size_t kept = 1; kept < N_KEYS; kept++) n_decided += follow(&rng, keys, kept);
    }
    assert_true(n_decided > 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prints_that_shrink),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
