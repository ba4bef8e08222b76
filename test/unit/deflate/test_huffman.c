/* test_huffman.c -- code lengths fill the code space, are as short as they can be, and keep to
   their limit; codes are those of RFC 1951. */
#include "unit_test.h"

#include "deflate/huffman.h"

/* Kraft's sum in units of 2^-max_bits. */
static uint64_t kraft(const uint8_t *lengths, unsigned n, unsigned max_bits)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < n; i++)
        if (lengths[i] > 0) sum += UINT64_C(1) << (max_bits - lengths[i]);
    return sum;
}

static uint64_t cost(const uint32_t *counts, const uint8_t *lengths, unsigned n)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < n; i++) sum += (uint64_t)counts[i] * lengths[i];
    return sum;
}

/* The cost of the best code: the sum of all inner nodes when the two lightest are joined. */
static uint64_t best_cost(const uint32_t *counts, unsigned n)
{
    uint64_t weights[288], sum = 0;
    unsigned left = 0;
    for (unsigned i = 0; i < n; i++)
        if (counts[i] > 0) weights[left++] = counts[i];
    for (; left > 1; left--) {
        for (unsigned k = 0; k < 2; k++)
            for (unsigned i = k + 1; i < left; i++)
                if (weights[i] < weights[k]) {
                    uint64_t swap = weights[k];
                    weights[k] = weights[i];
                    weights[i] = swap;
                }
        weights[0] += weights[1];
        sum += weights[0];
        weights[1] = weights[left - 1];
    }
    return sum;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The cost of the best code of at most max_bits, by Larmore and Hirschberg's package-merge. */
static uint64_t best_limited_cost(const uint32_t *counts, unsigned n, unsigned max_bits)
{
    uint64_t leaves[288], items[3 * 288], sum = 0;
    unsigned n_leaves = 0, n_items = 0;
    for (unsigned i = 0; i < n; i++)
        if (counts[i] > 0) leaves[n_leaves++] = counts[i];
    for (unsigned level = 0; level < max_bits; level++) {
        n_items /= 2;
        for (unsigned i = 0; i < n_items; i++) items[i] = items[2 * i] + items[2 * i + 1];
        memcpy(items + n_items, leaves, n_leaves * sizeof *leaves);
        n_items += n_leaves;
        qsort(items, n_items, sizeof *items, compare);
    }
    for (unsigned i = 0; i < 2 * n_leaves - 2; i++) sum += items[i];
    return sum;
}

static void check(struct rng *rng, const uint32_t *counts, unsigned n)
{
    uint8_t lengths[288];
    uint16_t codes[288];
    unsigned n_used = 0, longest = 0;
    for (unsigned max_bits = 15; max_bits >= 9; max_bits--) {
        huffman_code(counts, n, max_bits, max_bits, lengths, codes);
        n_used = longest = 0;
        for (unsigned i = 0; i < n; i++) {
            CHECK(rng, (counts[i] > 0) == (lengths[i] > 0) && lengths[i] <= max_bits);
            n_used += lengths[i] > 0;
            if (lengths[i] > longest) longest = lengths[i];
        }
        if (n_used > 1) CHECK(rng, kraft(lengths, n, max_bits) == UINT64_C(1) << max_bits);
        if (n_used == 1) CHECK(rng, longest == 1);
        uint64_t best = n_used > 1 ? best_limited_cost(counts, n, max_bits) : 0;
        CHECK(rng, cost(counts, lengths, n) <= best + best / 25 || n_used < 2);
        if (longest < max_bits && n_used > 1)
            CHECK(rng, cost(counts, lengths, n) == best_cost(counts, n));
        CHECK(rng, cost(counts, lengths, n) >= (n_used > 1 ? best_cost(counts, n) : 0));
    }
}

TEST(test_lengths)
{
    struct rng rng = rng_start(911);
    uint32_t counts[288];
    for (int round = 0; round < 300; round++) {
        unsigned n = 1 + (unsigned)rng_below(&rng, 288), kind = (unsigned)rng_below(&rng, 4);
        for (unsigned i = 0; i < n; i++)
            counts[i] = kind == 0   ? 1
                        : kind == 1 ? (uint32_t)rng_below(&rng, 3)
                        : kind == 2 ? (uint32_t)rng_below(&rng, 60000)
                                    : (uint32_t)1 << rng_below(&rng, 17);
        check(&rng, counts, n);
    }
    /* Numbers of Fibonacci make the longest codes. */
    for (unsigned i = 0; i < 30; i++) counts[i] = i < 2 ? 1 : counts[i - 1] + counts[i - 2];
    for (unsigned n = 1; n <= 30; n++) check(&rng, counts, n);
}

/* Literals of BAM: many symbols are rare, so that most limits matter. */
TEST(test_limited_lengths_are_near_the_best)
{
    uint32_t counts[280];
    uint8_t lengths[280];
    uint16_t codes[280];
    for (unsigned i = 0; i < 280; i++) counts[i] = i < 112 ? 20000u >> (i / 8) : 1;
    for (unsigned max_bits = 9; max_bits <= 12; max_bits++) {
        uint64_t best = best_limited_cost(counts, 280, max_bits);
        huffman_code(counts, 280, max_bits, max_bits, lengths, codes);
        assert_true(cost(counts, lengths, 280) <= best + best / 100);
    }
}

/* Codes are no longer than is usual, but where that would make files much larger. */
TEST(test_longer_codes_only_where_they_matter)
{
    uint32_t counts[280];
    uint8_t lengths[280];
    uint16_t codes[280];
    for (unsigned n_rare = 40; n_rare <= 240; n_rare += 200) {
        unsigned longest = 0;
        for (unsigned i = 0; i < 280; i++) counts[i] = i < n_rare ? 1 : 4000;
        huffman_code(counts, 280, 11, 12, lengths, codes);
        for (unsigned i = 0; i < 280; i++)
            if (lengths[i] > longest) longest = lengths[i];
        assert_int_equal(longest, n_rare == 40 ? 11 : 12);
    }
}

/* The example of RFC 1951, section 3.2.2. */
TEST(test_codes)
{
    static const uint32_t counts[8] = {2, 2, 2, 2, 2, 4, 1, 1};
    static const uint8_t lengths[8] = {3, 3, 3, 3, 3, 2, 4, 4};
    static const uint16_t reversed[8] = {2, 6, 1, 5, 3, 0, 7, 15};
    uint8_t made[8];
    uint16_t codes[8];
    huffman_code(counts, 8, 15, 15, made, codes);
    assert_memory_equal(made, lengths, sizeof lengths);
    assert_memory_equal(codes, reversed, sizeof reversed);
}
