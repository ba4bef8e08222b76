/* test_huffman.c -- code lengths fill the code space, are as short as they can be, and keep to
   their limit; codes are those of RFC 1951. */
#include "random_records.h"

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

static void check(struct rng *rng, const uint32_t *counts, unsigned n)
{
    uint8_t lengths[288];
    uint16_t codes[288];
    unsigned n_used = 0, longest = 0;
    for (unsigned max_bits = 15; max_bits >= 9; max_bits--) {
        huffman_code(counts, n, max_bits, lengths, codes);
        n_used = longest = 0;
        for (unsigned i = 0; i < n; i++) {
            CHECK(rng, (counts[i] > 0) == (lengths[i] > 0) && lengths[i] <= max_bits);
            n_used += lengths[i] > 0;
            if (lengths[i] > longest) longest = lengths[i];
        }
        if (n_used > 1) CHECK(rng, kraft(lengths, n, max_bits) == UINT64_C(1) << max_bits);
        if (n_used == 1) CHECK(rng, longest == 1);
        if (longest < max_bits && n_used > 1)
            CHECK(rng, cost(counts, lengths, n) == best_cost(counts, n));
        CHECK(rng, cost(counts, lengths, n) >= (n_used > 1 ? best_cost(counts, n) : 0));
    }
}

static void test_lengths(void **state)
{
    (void)state;
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

/* The example of RFC 1951, section 3.2.2. */
static void test_codes(void **state)
{
    (void)state;
    static const uint32_t counts[8] = {2, 2, 2, 2, 2, 4, 1, 1};
    static const uint8_t lengths[8] = {3, 3, 3, 3, 3, 2, 4, 4};
    static const uint16_t reversed[8] = {2, 6, 1, 5, 3, 0, 7, 15};
    uint8_t made[8];
    uint16_t codes[8];
    huffman_code(counts, 8, 15, made, codes);
    assert_memory_equal(made, lengths, sizeof lengths);
    assert_memory_equal(codes, reversed, sizeof reversed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
