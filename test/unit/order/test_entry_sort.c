/*
 * test_entry_sort.c -- sorting in memory: every result is in order, keeps equal keys in input order
 * and has each entry once, for sizes on both sides of every threshold and keys of many kinds.
 */
#include "test_rules.h"
#include "unit_test.h"

#include "order/slice_merge.h"

/* 24 is where insertion sort ends; 2 x 24 lets a range split into two small ones. */
static const size_t sizes[] = {0, 1, 2, 3, 22, 23, 24, 25, 26, 48, 255, 256, 257, 1000, 5000};

enum fixed_kind {
    FIXED_RANDOM,
    FIXED_FEW_VALUES,
    FIXED_ONE_DIGIT,            /* keys differ in one of their 8 bytes */
    FIXED_TWO_DIGITS,           /* keys differ in their first and their last byte */
    FIXED_ASCENDING,
    FIXED_DESCENDING,
    FIXED_ALL_EQUAL,
    FIXED_LAST_IS_FIRST,        /* all in order, but the last is the smallest */
    FIXED_KIND_COUNT
};

static uint64_t fixed_key(struct rng *rng, enum fixed_kind kind, size_t i, size_t n, int shift)
{
    switch (kind) {
    case FIXED_RANDOM: return rng_next(rng);
    case FIXED_FEW_VALUES: return (uint64_t)rng_below(rng, 5) * UINT64_C(0x0123456789abcdef);
    case FIXED_ONE_DIGIT: return (uint64_t)rng_below(rng, 256) << shift;
    case FIXED_TWO_DIGITS: return (uint64_t)rng_below(rng, 3) << 56 | rng_below(rng, 3);
    case FIXED_ASCENDING: return i / 3;
    case FIXED_DESCENDING: return (n - i) / 3;
    case FIXED_LAST_IS_FIRST: return i + 1 < n ? i + 1 : 0;
    default: return UINT64_C(0x8000000000000001);
    }
}

/* ref points to a byte of `places`. Its address is the place of the entry in the input. */
static void check_fixed(struct rng *rng, const struct sort_entry *sorted, size_t n,
                        const uint64_t *keys, const uint8_t *places)
{
    OWNED bool *seen = calloc(n + 1, sizeof *seen);
    assert_non_null(seen);
    for (size_t i = 0; i < n; i++) {
        size_t place = (size_t)((const uint8_t *)sorted[i].ref - places);
        CHECK(rng, place < n && !seen[place]);
        seen[place] = true;
        CHECK(rng, sorted[i].prefix == keys[place]);
        if (i == 0) continue;
        CHECK(rng, sorted[i - 1].prefix <= sorted[i].prefix);
        if (sorted[i - 1].prefix == sorted[i].prefix)
            CHECK(rng, (uintptr_t)sorted[i - 1].ref < (uintptr_t)sorted[i].ref);
    }
}

static void sort_fixed(struct rng *rng, enum fixed_kind kind, size_t n, int shift)
{
    OWNED struct sort_entry *entries = test_alloc(n * sizeof *entries);
    OWNED struct sort_entry *spare = test_alloc(n * sizeof *spare);
    OWNED uint64_t *keys = test_alloc(n * sizeof *keys);
    OWNED uint8_t *places = test_alloc(n);
    for (size_t i = 0; i < n; i++) {
        keys[i] = fixed_key(rng, kind, i, n, shift);
        entries[i] = (struct sort_entry){keys[i], places + i};
    }
    sort_entries(test_rules(SORT_COORDINATE), entries, n, spare);
    check_fixed(rng, entries, n, keys, places);
}

TEST(test_entries_of_fixed_keys_are_sorted_stably)
{
    struct rng rng = rng_start(11);
    for (int kind = 0; kind < FIXED_KIND_COUNT; kind++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int shift = 0; shift < 64; shift += 8)
                sort_fixed(&rng, (enum fixed_kind)kind, sizes[s], shift);
    for (int kind = 0; kind < FIXED_KIND_COUNT; kind++)
        sort_fixed(&rng, (enum fixed_kind)kind, 100000, 40);
}

enum keyed_kind {
    KEYED_TRICKY,
    KEYED_LONG_PREFIX,          /* 200 common characters, then few different ends */
    KEYED_NESTED,               /* each name is the beginning of others */
    KEYED_FLAGS_ONLY,           /* one name: keys differ in their last two bytes */
    KEYED_ASCENDING,
    KEYED_DESCENDING,
    KEYED_ALL_EQUAL,
    KEYED_KIND_COUNT
};

static void keyed_name(struct rng *rng, enum keyed_kind kind, size_t i, size_t n, char *name)
{
    const size_t most = TEST_MAX_NAME + 1;
    switch (kind) {
    case KEYED_TRICKY:
        tricky_name(rng, name);
        break;
    case KEYED_LONG_PREFIX:
        memset(name, 'r', 200);
        name_of_letters(rng, name + 200, rng_below(rng, 20), "0ab");
        break;
    case KEYED_NESTED:
        memset(name, 'r', most);
        name[rng_below(rng, most)] = '\0';
        break;
    case KEYED_ASCENDING:
        (void)snprintf(name, most, "machine:%09zu", i / 3);
        break;
    case KEYED_DESCENDING:
        (void)snprintf(name, most, "machine:%09zu", (n - i) / 3);
        break;
    default:
        strcpy(name, "one name for all of them");
    }
}

/* A sequence of keyed records with random names as keys. The address of a record is its place in
   the input. */
struct keyed_input {
    size_t n;
    uint8_t *places;            /* "records": one byte each */
    struct keyed_record **keyed;
    struct sort_entry *entries, *spare;
};

static void make_keyed(struct rng *rng, enum sort_order order, enum keyed_kind kind, size_t n,
                       struct keyed_input *in)
{
    char name[TEST_MAX_NAME + 1];
    uint8_t record[512];
    *in = (struct keyed_input){.n = n,
                               .places = test_alloc(n),
                               .keyed = test_alloc(n * sizeof *in->keyed),
                               .entries = test_alloc(n * sizeof *in->entries),
                               .spare = test_alloc(n * sizeof *in->spare)};
    for (size_t i = 0; i < n; i++) {
        keyed_name(rng, kind, i, n, name);
        struct record_fields fields = {.name = name};
        if (kind != KEYED_ALL_EQUAL) fields.flag = random_flag(rng);
        if (kind == KEYED_ASCENDING || kind == KEYED_DESCENDING) fields.flag = 0;
        (void)put_record(record, &fields, 0);
        /* Nothing after the last byte of the key may be read. */
        size_t key_bytes = test_key_bytes(order, record);
        size_t bytes = offsetof(struct keyed_record, key) + key_bytes;
        if (bytes < sizeof(struct keyed_record)) bytes = sizeof(struct keyed_record);
        in->keyed[i] = test_alloc(bytes);
        in->keyed[i]->record = in->places + i;
        in->keyed[i]->key_bytes = (uint32_t)test_key_encode(order, record, in->keyed[i]->key);
        in->entries[i] = (struct sort_entry){rng_next(rng), in->keyed[i]};
    }
}

static void release_keyed(struct keyed_input *in)
{
    for (size_t i = 0; i < in->n; i++) free(in->keyed[i]);
    free(in->keyed);
    free(in->spare);
    free(in->entries);
    free(in->places);
}

static int compare_keys(const struct keyed_record *a, const struct keyed_record *b)
{
    size_t n = a->key_bytes < b->key_bytes ? a->key_bytes : b->key_bytes;
    int c = memcmp(a->key, b->key, n);
    return c ? c : (a->key_bytes > b->key_bytes) - (a->key_bytes < b->key_bytes);
}

static void check_keyed(struct rng *rng, enum sort_order order, const struct keyed_input *in)
{
    OWNED bool *seen = calloc(in->n + 1, sizeof *seen);
    assert_non_null(seen);
    for (size_t i = 0; i < in->n; i++) {
        const struct keyed_record *kr = in->entries[i].ref;
        CHECK(rng, sort_entry_record(order, &in->entries[i]) == kr->record);
        size_t place = (size_t)(kr->record - in->places);
        CHECK(rng, place < in->n && !seen[place] && kr == in->keyed[place]);
        seen[place] = true;
        if (i == 0) continue;
        const struct keyed_record *before = in->entries[i - 1].ref;
        int c = compare_keys(before, kr);
        CHECK(rng, c < 0 || (c == 0 && before->record < kr->record));
    }
}

static void sort_keyed_input(struct rng *rng, enum keyed_kind kind, size_t n)
{
    static const enum sort_order orders[] = {SORT_NAME_NATURAL, SORT_NAME_LEXICAL};
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
        struct keyed_input in;
        make_keyed(rng, orders[o], kind, n, &in);
        sort_entries(test_rules(orders[o]), in.entries, n, in.spare);
        check_keyed(rng, orders[o], &in);
        release_keyed(&in);
    }
}

TEST(test_entries_of_variable_keys_are_sorted_stably)
{
    struct rng rng = rng_start(13);
    for (int kind = 0; kind < KEYED_KIND_COUNT; kind++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            sort_keyed_input(&rng, (enum keyed_kind)kind, sizes[s]);
    for (int kind = 0; kind < KEYED_KIND_COUNT; kind++)
        sort_keyed_input(&rng, (enum keyed_kind)kind, 100000);
}

/* Each key shares 60 bytes more with the next one than with all others, up to the longest key. A
   step of the sort for each of them would take more than the stack. */
TEST(test_long_keys_that_share_their_beginnings_are_sorted_stably)
{
    enum { STEP = 60, N_LENGTHS = SORT_KEY_MOST_BYTES / STEP, N = 2 * N_LENGTHS };
    struct rng rng = rng_start(16);
    RELEASED(release_keyed) struct keyed_input in = {.n = N,
                                                     .places = test_alloc(N),
                                                     .keyed = test_alloc(N * sizeof *in.keyed),
                                                     .entries = test_alloc(N * sizeof *in.entries),
                                                     .spare = test_alloc(N * sizeof *in.spare)};
    for (size_t i = 0; i < N; i++) {
        size_t key_bytes = 1 + STEP * rng_below(&rng, N_LENGTHS);
        in.keyed[i] = test_alloc(sizeof *in.keyed[i] + key_bytes);
        in.keyed[i]->record = in.places + i;
        in.keyed[i]->key_bytes = (uint32_t)key_bytes;
        memset(in.keyed[i]->key, 'a', key_bytes - 1);
        in.keyed[i]->key[key_bytes - 1] = 'b';
        in.entries[i] = (struct sort_entry){0, in.keyed[i]};
    }
    sort_entries(test_rules(SORT_NAME_LEXICAL), in.entries, N, in.spare);
    check_keyed(&rng, SORT_NAME_LEXICAL, &in);
}

/* Prefixes from any depth compare as the bytes of the keys from there, with zeros after the end. */
TEST(test_prefix_of_a_key)
{
    struct rng rng = rng_start(15);
    for (size_t key_bytes = 0; key_bytes <= 40; key_bytes++) {
        size_t bytes = offsetof(struct keyed_record, key) + key_bytes;
        if (bytes < sizeof(struct keyed_record)) bytes = sizeof(struct keyed_record);
        OWNED struct keyed_record *kr = test_alloc(bytes);
        kr->key_bytes = (uint32_t)key_bytes;
        rng_fill(&rng, kr->key, key_bytes);
        for (size_t depth = 0; depth <= key_bytes + 9; depth++) {
            uint64_t expected = 0;
            for (size_t i = depth; i < depth + 8; i++)
                expected = expected << 8 | (i < key_bytes ? kr->key[i] : 0);
            CHECK(&rng, keyed_record_prefix(kr, depth) == expected);
        }
        size_t needed = offsetof(struct keyed_record, key) + key_bytes;
        CHECK(&rng, keyed_record_bytes(key_bytes) % 8 == 0);
        CHECK(&rng, keyed_record_bytes(key_bytes) >= needed);
        CHECK(&rng, keyed_record_bytes(key_bytes) < needed + 8);
    }
}
