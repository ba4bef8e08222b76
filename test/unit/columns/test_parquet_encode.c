/*
 * test_parquet_encode.c -- what is encoded is decoded here, as the specification of Parquet says,
 * and compared: runs and packed bits of all widths, differences of 32 and 64 bits, fields of
 * Thrift.
 */
#include "unit_test.h"

#include "columns/parquet_encode.h"
#include "columns/parquet_group.h"
#include "columns/thrift_compact.h"
#include "util/varint.h"

struct input {
    const uint8_t *at, *end;
};

static struct input input_of(const struct byte_buffer *bytes)
{
    /* A copy of just these bytes, so that AddressSanitizer sees an access to the next one. */
    uint8_t *copy = test_alloc(bytes->n_bytes);
    if (bytes->n_bytes > 0) memcpy(copy, bytes->bytes, bytes->n_bytes);
    return (struct input){copy, copy + bytes->n_bytes};
}

/* The value of n_bits bits, the lowest first, that begin at bit `from`. */
static uint64_t bits_at(struct input in, uint64_t from, unsigned n_bits)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < n_bits; i++) {
        assert_true(in.at + (from + i) / 8 < in.end);
        value |= (uint64_t)(in.at[(from + i) / 8] >> (from + i) % 8 & 1) << i;
    }
    return value;
}

/* Decodes n values of RLE. All bytes must be used. */
static void decode_runs(struct input in, unsigned width, uint32_t *values, size_t n)
{
    size_t done = 0;
    while (in.at < in.end) {
        uint64_t head = get_varint(&in.at);
        assert_true(done < n && head >> 1 > 0);
        if (head & 1) {
            for (uint64_t i = 0; i < (head >> 1) * 8; i++) {
                uint64_t value = bits_at(in, i * width, width);
                if (done < n) values[done++] = (uint32_t)value;
                else assert_true(in.at + (head >> 1) * width == in.end && value == 0);
            }
            in.at += (head >> 1) * width;
            continue;
        }
        uint32_t value = (uint32_t)bits_at(in, 0, (width + 7) / 8 * 8);
        in.at += (width + 7) / 8;
        assert_true(head >> 1 <= n - done);
        for (uint64_t i = 0; i < head >> 1; i++) values[done++] = value;
    }
    assert_true(in.at == in.end && done == n);
}

/* Decodes DELTA_BINARY_PACKED. Returns what follows. */
static const uint8_t *decode_deltas(struct input in, unsigned n_bits, int64_t *values, size_t n)
{
    uint64_t block = get_varint(&in.at), n_miniblocks = get_varint(&in.at), total;
    total = get_varint(&in.at);
    assert_true(block % 128 == 0 && block / n_miniblocks % 32 == 0 && total == n);
    uint64_t last = (uint64_t)get_signed_varint(&in.at), per = block / n_miniblocks;
    size_t done = 0;
    if (n > 0) values[done++] = (int64_t)last;
    while (done < n) {
        uint64_t least = (uint64_t)get_signed_varint(&in.at);
        const uint8_t *widths = in.at;
        in.at += n_miniblocks;
        for (uint64_t k = 0; k < n_miniblocks && done < n; k++) {
            assert_true(widths[k] <= n_bits);
            for (uint64_t i = 0; i < per && done < n; i++) {
                last += least + bits_at(in, i * widths[k], widths[k]);
                if (n_bits == 32) last = (uint64_t)(int64_t)(int32_t)(uint32_t)last;
                values[done++] = (int64_t)last;
            }
            in.at += per * widths[k] / 8;
        }
    }
    assert_true(in.at <= in.end);
    return in.at;
}

static void check_runs(struct rng *rng, const uint32_t *values, size_t n, unsigned width)
{
    struct byte_buffer out = {0};
    OWNED struct parquet_runs *runs = test_alloc(sizeof *runs);
    memset(runs, 0xa5, sizeof *runs);
    parquet_runs_begin(runs, width, &out);
    for (size_t i = 0; i < n;) {
        size_t n_equal = 1;
        while (i + n_equal < n && values[i + n_equal] == values[i] && !rng_one_in(rng, 20))
            n_equal++;
        parquet_runs_add(runs, values[i], n_equal);
        i += n_equal;
    }
    parquet_runs_end(runs);
    struct input in = input_of(&out);
    OWNED uint32_t *got = test_alloc(n * sizeof *got);
    decode_runs(in, width, got, n);
    CHECK(rng, n == 0 || memcmp(got, values, n * sizeof *got) == 0);
    /* At most a byte a group more than the bits, and two for the last one. */
    CHECK(rng, out.n_bytes <= n * width / 8 + n / 8 + width + 3);
    free((void *)(uintptr_t)in.at);
    free(out.bytes);
}

TEST(test_runs_and_bit_packs_are_read_back)
{
    struct rng rng = rng_start(1);
    static const size_t sizes[] = {0, 1, 7, 8, 9, 15, 16, 17, 503, 504, 505, 511, 512, 1008, 2000};
    for (unsigned width = 0; width <= 32; width++) {
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            size_t n = sizes[s];
            OWNED uint32_t *values = test_alloc(n * sizeof *values);
            for (unsigned repeats = 0; repeats < 3; repeats++) {        /* none, some, many */
                for (size_t i = 0; i < n; i++) {
                    bool again = i > 0 && repeats > 0 && !rng_one_in(&rng, repeats == 1 ? 3 : 30);
                    uint32_t value = (uint32_t)rng_next(&rng);
                    if (rng_one_in(&rng, 9)) value = UINT32_MAX;
                    value = width == 0 ? 0 : value >> (32 - width);
                    values[i] = again ? values[i - 1] : value;
                }
                check_runs(&rng, values, n, width);
            }
        }
    }
}

TEST(test_long_run_takes_a_few_bytes)
{
    struct byte_buffer out = {0};
    struct parquet_runs runs;
    parquet_runs_begin(&runs, 1, &out);
    parquet_runs_add(&runs, 1, 1000000);
    parquet_runs_end(&runs);
    assert_true(out.n_bytes == 4 && out.bytes[3] == 1);
    free(out.bytes);
}

static void check_deltas(struct rng *rng, const int64_t *values, size_t n, unsigned n_bits)
{
    struct byte_buffer out = {0};
    parquet_put_deltas(values, n, n_bits, &out);
    struct input in = input_of(&out);
    OWNED int64_t *got = test_alloc(n * sizeof *got);
    CHECK(rng, decode_deltas(in, n_bits, got, n) == in.end);
    CHECK(rng, n == 0 || memcmp(got, values, n * sizeof *got) == 0);
    free((void *)(uintptr_t)in.at);
    free(out.bytes);
}

/* A number of about so many bits, of either sign; or one of the edges. */
static int64_t random_number(struct rng *rng, unsigned most_bits, unsigned n_bits)
{
    static const int64_t edges[] = {0, -1, INT32_MIN, INT32_MAX, INT64_MIN, INT64_MAX};
    int64_t value = (int64_t)(most_bits ? rng_next(rng) >> (64 - most_bits) : 0);
    if (rng_one_in(rng, 2)) value = (int64_t)(0 - (uint64_t)value);
    if (most_bits == n_bits && rng_one_in(rng, 3)) value = edges[rng_below(rng, 6)];
    return n_bits == 32 ? (int32_t)(uint32_t)(uint64_t)value : value;
}

TEST(test_deltas_are_read_back)
{
    struct rng rng = rng_start(2);
    static const size_t sizes[] = {0, 1, 2, 32, 33, 34, 64, 128, 129, 130, 161, 257, 1000};
    for (unsigned n_bits = 32; n_bits <= 64; n_bits += 32) {
        for (unsigned most = 0; most <= n_bits; most++) {
            for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
                size_t n = sizes[s];
                OWNED int64_t *values = test_alloc(n * sizeof *values);
                for (size_t i = 0; i < n; i++) values[i] = random_number(&rng, most, n_bits);
                check_deltas(&rng, values, n, n_bits);
            }
        }
    }
    const int64_t extremes[] = {INT64_MIN, INT64_MAX, INT64_MIN, -1, INT64_MAX, 0, INT64_MIN};
    check_deltas(&rng, extremes, 7, 64);
    const int64_t short_extremes[] = {INT32_MAX, INT32_MIN, INT32_MAX, 0, INT32_MIN, -1};
    check_deltas(&rng, short_extremes, 6, 32);
}

/* Ascending numbers take few bits: a byte each would be 1000. */
TEST(test_ascending_numbers_take_few_bits)
{
    struct rng rng = rng_start(3);
    struct byte_buffer out = {0};
    int64_t values[1000];
    for (size_t i = 0; i < 1000; i++)
        values[i] = (i ? values[i - 1] : 100000) + (int)rng_below(&rng, 4);
    parquet_put_deltas(values, 1000, 32, &out);
    assert_true(out.n_bytes < 350);
    free(out.bytes);
}

TEST(test_bit_width_is_the_place_of_the_highest_bit)
{
    assert_int_equal(parquet_bit_width(0), 0);
    for (unsigned i = 0; i < 64; i++) {
        assert_int_equal(parquet_bit_width(UINT64_C(1) << i), i + 1);
        assert_int_equal(parquet_bit_width(UINT64_MAX >> i), 64 - i);
    }
}

TEST(test_dictionary_of_texts)
{
    struct rng rng = rng_start(5);
    RELEASED(parquet_dictionary_release) struct parquet_dictionary dictionary = {0};
    uint8_t bytes[300];
    for (int round = 0; round < 30; round++) {
        memset(bytes, 'a', sizeof bytes);
        for (int i = 0; i < 20; i++) bytes[rng_below(&rng, sizeof bytes)] = 'b';
        bool has_empty = false;
        parquet_dictionary_clear(&dictionary);
        for (int i = 0; i < 3000; i++) {
            size_t n = rng_below(&rng, 40), at = rng_below(&rng, sizeof bytes - n);
            uint32_t entry = parquet_dictionary_add_text(&dictionary, bytes + at, n);
            CHECK(&rng, entry < dictionary.n_entries);
            CHECK(&rng, dictionary.entries[entry].number == n);
            CHECK(&rng, memcmp(dictionary.entries[entry].text, bytes + at, n) == 0);
            has_empty = has_empty || n == 0;
        }
        uint64_t n_bytes = 0;
        for (uint32_t i = 0; i < dictionary.n_entries; i++) {
            const struct parquet_entry *entry = &dictionary.entries[i];
            n_bytes += entry->number;
            CHECK(&rng, parquet_dictionary_add_text(&dictionary, entry->text,
                                                    (size_t)entry->number) == i);
        }
        CHECK(&rng, n_bytes == dictionary.text_bytes && has_empty);
    }
}

static struct parquet_bound bound_of(const void *bytes, size_t n)
{
    struct parquet_bound bound = {.n_bytes = (uint8_t)n};
    memcpy(bound.bytes, bytes, n);
    return bound;
}

TEST(test_order_of_bounds)
{
    static const char *const texts[] = {"", "A", "AB", "B", "\xc3\xa9"};
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < 5; k++) {
            struct parquet_bound a = bound_of(texts[i], strlen(texts[i]));
            struct parquet_bound b = bound_of(texts[k], strlen(texts[k]));
            int r = parquet_bound_compare(PARQUET_BYTE_ARRAY, &a, &b);
            assert_int_equal((r > 0) - (r < 0), (i > k) - (i < k));
        }
    }
    static const int64_t numbers[] = {INT64_MIN, INT32_MIN, -1, 0, 1, INT32_MAX, INT64_MAX};
    for (int i = 0; i < 7; i++) {
        for (int k = 0; k < 7; k++) {
            struct parquet_bound a = bound_of(&numbers[i], 8), b = bound_of(&numbers[k], 8);
            int want = (i > k) - (i < k);
            assert_int_equal(parquet_bound_compare(PARQUET_INT64, &a, &b), want);
            if (i % 6 == 0 || k % 6 == 0) continue;
            assert_int_equal(parquet_bound_compare(PARQUET_INT32, &a, &b), want);
            float x = (float)numbers[i], y = (float)numbers[k];
            a = bound_of(&x, 4), b = bound_of(&y, 4);
            assert_int_equal(parquet_bound_compare(PARQUET_FLOAT, &a, &b), want);
        }
    }
}
