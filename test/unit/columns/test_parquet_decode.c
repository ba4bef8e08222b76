/*
 * test_parquet_decode.c -- what parquet_encode.c and thrift_compact.c write is read again, in
 * pieces of all sizes; what other programs may write is, too; what is cut off or made up is refused, or
 * gives values, and no byte after the last is looked at.
 */
#include "random_records.h"

#include "columns/parquet_codec.h"
#include "columns/parquet_encode.h"
#include "columns/parquet_values.h"
#include "columns/thrift_reader.h"
#include "util/varint.h"

/* A copy of just these bytes, so that AddressSanitizer sees an access to the next one. */
static uint8_t *exactly(const void *bytes, size_t n)
{
    uint8_t *copy = test_alloc(n);
    if (n > 0) memcpy(copy, bytes, n);
    return copy;
}

/* ---- runs ---- */

/* Reads n values in pieces. Returns whether that succeeded. */
static bool read_runs(struct rng *rng, const uint8_t *at, size_t n_bytes, unsigned width,
                      uint32_t *to, size_t n)
{
    struct parquet_run_reader reader;
    parquet_run_reader_begin(&reader, at, at + n_bytes, width);
    for (size_t done = 0, piece; done < n; done += piece) {
        piece = 1 + rng_below(rng, n - done);
        if (!parquet_read_runs(&reader, to + done, piece)) return false;
    }
    return true;
}

static void check_runs(struct rng *rng, const uint32_t *values, size_t n, unsigned width)
{
    struct column_bytes out = {0};
    struct parquet_runs *runs = test_alloc(sizeof *runs);
    parquet_runs_begin(runs, width, &out);
    for (size_t i = 0; i < n; i++) parquet_runs_add(runs, values[i], 1);
    parquet_runs_end(runs);
    uint32_t *got = test_alloc((n + 9) * sizeof *got);
    uint8_t *bytes = exactly(out.bytes, out.n_bytes);
    CHECK(rng, read_runs(rng, bytes, out.n_bytes, width, got, n));
    CHECK(rng, n == 0 || memcmp(got, values, n * sizeof *got) == 0);
    CHECK(rng, !read_runs(rng, bytes, out.n_bytes, width, got, n + 8));
    free(bytes);
    for (size_t cut = 0; cut < out.n_bytes; cut += 1 + out.n_bytes / 20) {
        /* Only bits that nobody needs may be cut off. */
        bytes = exactly(out.bytes, cut);
        CHECK(rng, !read_runs(rng, bytes, cut, width, got, n) ||
                       memcmp(got, values, n * sizeof *got) == 0);
        free(bytes);
    }
    free(got);
    free(runs);
    free(out.bytes);
}

static void test_runs(void **state)
{
    (void)state;
    struct rng rng = rng_start(1);
    static const size_t sizes[] = {0, 1, 7, 8, 9, 16, 17, 503, 504, 505, 1008, 2000};
    for (unsigned width = 0; width <= 32; width++) {
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            size_t n = sizes[s];
            uint32_t *values = test_alloc(n * sizeof *values);
            for (unsigned repeats = 0; repeats < 3; repeats++) {
                for (size_t i = 0; i < n; i++) {
                    bool again = i > 0 && repeats > 0 && !rng_one_in(&rng, repeats == 1 ? 3 : 30);
                    uint32_t value = width ? (uint32_t)rng_next(&rng) >> (32 - width) : 0;
                    values[i] = again ? values[i - 1] : value;
                }
                check_runs(&rng, values, n, width);
            }
            free(values);
        }
    }
}

/* Runs that no encoder writes. */
static void test_odd_runs(void **state)
{
    (void)state;
    struct rng rng = rng_start(2);
    static const struct {
        const char *bytes;
        unsigned n_bytes, width, n;
        bool is_sound;
    } cases[] = {
        {"\0\1", 2, 1, 1, false},               /* a run of none */
        {"\1\1", 2, 1, 1, false},               /* no group */
        {"\4\1\3\1", 4, 1, 10, true},           /* two ones; a group */
        {"\4\2", 2, 1, 1, false},               /* a value of more bits */
        {"\x05\xff", 2, 1, 8, true},            /* of two groups one is there */
        {"\x05\xff", 2, 1, 9, false},
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\xff", 11, 1, 1, false},    /* too many groups */
        {"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\1\1", 11, 1, 1000, true},
        {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\1", 11, 1, 1, false},
    };
    uint32_t values[1008];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t *bytes = exactly(cases[i].bytes, cases[i].n_bytes);
        CHECK(&rng, read_runs(&rng, bytes, cases[i].n_bytes, cases[i].width, values,
                              cases[i].n) == cases[i].is_sound);
        free(bytes);
    }
}

/* ---- differences ---- */

/* Reads n values in pieces. Returns whether that succeeded; then *end is where the bytes end. */
static bool read_deltas(struct rng *rng, const uint8_t *at, size_t n_bytes, unsigned n_bits,
                        int64_t *to, size_t n, const uint8_t **end)
{
    struct parquet_delta_reader reader;
    if (!parquet_delta_reader_begin(&reader, at, at + n_bytes, n_bits) || reader.n_left != n)
        return false;
    *end = parquet_deltas_end(&reader);
    if (!*end) return false;
    for (size_t done = 0, piece; done < n; done += piece) {
        piece = 1 + rng_below(rng, n - done);
        if (!parquet_read_deltas(&reader, to + done, piece)) return false;
    }
    return !parquet_read_deltas(&reader, to, 1);
}

static void check_deltas(struct rng *rng, const int64_t *values, size_t n, unsigned n_bits)
{
    struct column_bytes out = {0};
    const uint8_t *end;
    parquet_put_deltas(values, n, n_bits, &out);
    int64_t *got = test_alloc((n + 1) * sizeof *got);
    uint8_t *bytes = exactly(out.bytes, out.n_bytes);
    CHECK(rng, read_deltas(rng, bytes, out.n_bytes, n_bits, got, n, &end));
    CHECK(rng, end == bytes + out.n_bytes);
    CHECK(rng, n == 0 || memcmp(got, values, n * sizeof *got) == 0);
    free(bytes);
    for (size_t cut = 0; cut < out.n_bytes; cut += 1 + out.n_bytes / 20) {
        bytes = exactly(out.bytes, cut);
        CHECK(rng, !read_deltas(rng, bytes, cut, n_bits, got, n, &end));
        free(bytes);
    }
    free(got);
    free(out.bytes);
}

static void test_deltas(void **state)
{
    (void)state;
    struct rng rng = rng_start(3);
    static const size_t sizes[] = {0, 1, 2, 32, 33, 34, 128, 129, 130, 161, 257, 1000};
    for (unsigned n_bits = 32; n_bits <= 64; n_bits += 32) {
        for (unsigned most = 0; most <= n_bits; most++) {
            for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
                size_t n = sizes[s];
                int64_t *values = test_alloc(n * sizeof *values);
                for (size_t i = 0; i < n; i++) {
                    uint64_t value = most ? rng_next(&rng) >> (64 - most) : 0;
                    if (rng_one_in(&rng, 2)) value = 0 - value;
                    values[i] = n_bits == 32 ? (int32_t)(uint32_t)value : (int64_t)value;
                }
                check_deltas(&rng, values, n, n_bits);
                free(values);
            }
        }
    }
    const int64_t extremes[] = {INT64_MIN, INT64_MAX, INT64_MIN, -1, INT64_MAX, 0, INT64_MIN};
    check_deltas(&rng, extremes, 7, 64);
}

/* Blocks of other shapes than ours, and heads that cannot be. */
static void test_odd_deltas(void **state)
{
    (void)state;
    struct rng rng = rng_start(4);
    int64_t values[3];
    const uint8_t *end;
    /* A block of 64 in 2 miniblocks, 3 values from 5 on; least difference 1; above it 0 and 1. */
    const uint8_t small[] = {64, 2, 3, 10, 2, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0};
    uint8_t *bytes = exactly(small, sizeof small);
    assert_true(read_deltas(&rng, bytes, sizeof small, 32, values, 3, &end));
    assert_true(values[0] == 5 && values[1] == 6 && values[2] == 8 && end == bytes + sizeof small);
    free(bytes);
    static const uint8_t heads[][4] = {
        {0, 0, 3, 10}, {64, 0, 3, 10}, {64, 128, 3, 10}, {64, 3, 3, 10}, {12, 3, 3, 10},
    };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        struct parquet_delta_reader reader;
        assert_false(parquet_delta_reader_begin(&reader, heads[i], heads[i] + 4, 32));
    }
    const uint8_t wide[] = {64, 2, 3, 10, 2, 65, 0, 4, 0, 0, 0, 0, 0, 0, 0};
    assert_false(read_deltas(&rng, wide, sizeof wide, 64, values, 3, &end));
}

/* ---- Thrift ---- */

static void put_sample(struct column_bytes *out)
{
    struct thrift_writer writer = thrift_begin(out);
    thrift_bool(&writer, 1, true);
    thrift_i8(&writer, 3, -1);
    thrift_i16(&writer, 20, -2);
    thrift_i32(&writer, 21, INT32_MIN);
    thrift_i64(&writer, 36, INT64_MAX);
    thrift_text(&writer, 37, "ab");
    thrift_struct(&writer, 38);
    thrift_i32(&writer, 1, 1);
    thrift_empty_struct(&writer, 2);
    thrift_end(&writer);
    thrift_list(&writer, 39, THRIFT_BOOL, 2);
    thrift_item_bool(&writer, true);
    thrift_item_bool(&writer, false);
    thrift_list(&writer, 40, THRIFT_I64, 20);
    for (int i = 0; i < 20; i++) thrift_item_integer(&writer, -i);
    thrift_list(&writer, 41, THRIFT_STRUCT, 2);
    for (int i = 0; i < 2; i++) {
        thrift_item_struct(&writer);
        thrift_i32(&writer, 1, 5 + i);
        thrift_end(&writer);
    }
    thrift_end(&writer);
}

/* Reads all that put_sample writes, or passes over it. Returns the sum of the integers. */
static int64_t read_sample(struct thrift_reader *reader, bool skips)
{
    struct thrift_field field, inner;
    int64_t sum = 0;
    size_t n_bytes;
    while (thrift_next(reader, &field)) {
        if (skips || field.number == 39 || field.number == 40) {
            thrift_skip(reader, &field);
        } else if (field.number == 1) {
            sum += thrift_read_bool(reader, &field);
        } else if (field.number == 37) {
            const uint8_t *text = thrift_read_bytes(reader, &field, &n_bytes);
            assert_true(!text || (n_bytes == 2 && memcmp(text, "ab", 2) == 0));
        } else if (field.number == 38) {
            if (!thrift_enter(reader, &field)) break;
            while (thrift_next(reader, &inner)) thrift_skip(reader, &inner);
        } else if (field.number == 41) {
            for (size_t n = thrift_enter_list(reader, &field, THRIFT_STRUCT); n > 0; n--) {
                if (!thrift_enter_item(reader)) break;
                while (thrift_next(reader, &inner)) sum += thrift_read_integer(reader, &inner);
            }
        } else {
            int64_t value = thrift_read_integer(reader, &field);
            sum += value == INT64_MAX ? 1000 : value;
        }
    }
    return sum;
}

static void test_thrift(void **state)
{
    (void)state;
    struct rng rng = rng_start(5);
    struct column_bytes out = {0};
    put_sample(&out);
    for (unsigned skips = 0; skips < 2; skips++) {
        struct thrift_reader reader = thrift_read(out.bytes, out.n_bytes);
        int64_t sum = read_sample(&reader, skips);
        assert_true(sum == (skips ? 0 : INT64_C(1000) + 1 - 1 - 2 + INT32_MIN + 5 + 6));
        assert_true(!reader.damaged && reader.at == out.bytes + out.n_bytes && reader.depth == 0);
        for (size_t cut = 0; cut < out.n_bytes; cut++) {
            uint8_t *bytes = exactly(out.bytes, cut);
            reader = thrift_read(bytes, cut);
            (void)read_sample(&reader, skips);
            assert_true(reader.damaged);
            free(bytes);
        }
        for (int i = 0; i < 20000; i++) {
            uint8_t *bytes = exactly(out.bytes, out.n_bytes);
            for (size_t k = 1 + rng_below(&rng, 5); k > 0; k--)
                bytes[rng_below(&rng, out.n_bytes)] = (uint8_t)rng_next(&rng);
            bytes[18] = 'a', bytes[19] = 'b';   /* of 37 */
            reader = thrift_read(bytes, out.n_bytes);
            struct thrift_field field;
            while (thrift_next(&reader, &field)) thrift_skip(&reader, &field);
            free(bytes);
        }
    }
    free(out.bytes);
}

/* Structs within structs end somewhere. */
static void test_deep_thrift(void **state)
{
    (void)state;
    uint8_t deep[1000];
    memset(deep, 0x1c, sizeof deep);
    struct thrift_reader reader = thrift_read(deep, sizeof deep);
    struct thrift_field field;
    assert_true(thrift_next(&reader, &field));
    thrift_skip(&reader, &field);
    assert_true(reader.damaged);
    reader = thrift_read(deep, sizeof deep);
    while (thrift_next(&reader, &field) && thrift_enter(&reader, &field)) {}
    assert_true(reader.damaged && reader.depth == THRIFT_MOST_DEPTH);
    const uint8_t claims[] = {0x19, 0xfc, 0xff, 0xff, 0xff, 0x7f, 0};
    reader = thrift_read(claims, sizeof claims);
    assert_true(thrift_next(&reader, &field));
    assert_true(thrift_enter_list(&reader, &field, THRIFT_STRUCT) == 0 && reader.damaged);
}

/* ---- values ---- */

static void check_texts(struct parquet_values *values, const char *const *want, size_t n)
{
    struct parquet_text texts[8];
    for (size_t done = 0; done < n; done += 2) {
        size_t piece = n - done < 2 ? n - done : 2;
        assert_null(parquet_read_texts(values, texts, piece));
        for (size_t i = 0; i < piece; i++) {
            assert_int_equal(texts[i].n, strlen(want[done + i]));
            assert_memory_equal(texts[i].at, want[done + i], texts[i].n);
        }
    }
    assert_non_null(parquet_read_texts(values, texts, 1));
}

/* Each text shares its begin with the one before, also from piece to piece. */
static void test_shared_texts(void **state)
{
    (void)state;
    static const char *const want[] = {"read:1", "read:12", "read:2", "", "x"};
    static const int64_t shared[] = {0, 6, 5, 0, 0}, rest[] = {6, 1, 1, 0, 1};
    struct column_bytes out = {0};
    parquet_put_deltas(shared, 5, 32, &out);
    parquet_put_deltas(rest, 5, 32, &out);
    column_bytes_copy(&out, "read:122x", 9);
    struct parquet_values *values = calloc(1, sizeof *values);
    assert_null(parquet_values_begin(values, PARQUET_BYTE_ARRAY, PARQUET_DELTA_TEXT, NULL,
                                     out.bytes, out.bytes + out.n_bytes));
    check_texts(values, want, 5);
    out.n_bytes = 0;
    static const int64_t too_much[] = {0, 7};
    parquet_put_deltas(too_much, 2, 32, &out);
    parquet_put_deltas(rest, 2, 32, &out);
    column_bytes_copy(&out, "read:1x", 7);
    assert_null(parquet_values_begin(values, PARQUET_BYTE_ARRAY, PARQUET_DELTA_TEXT, NULL,
                                     out.bytes, out.bytes + out.n_bytes));
    struct parquet_text texts[2];
    assert_non_null(parquet_read_texts(values, texts, 2));
    parquet_values_release(values);
    free(values);
    free(out.bytes);
}

static void test_dictionary(void **state)
{
    (void)state;
    static const char entries[] = "\1\0\0\0a\0\0\0\0\2\0\0\0bc";
    static const char *const want[] = {"bc", "", "a", "bc"};
    struct parquet_entries of = {0};
    const uint8_t *at = (const uint8_t *)entries;
    assert_null(parquet_entries_read(&of, PARQUET_BYTE_ARRAY, 3, at, at + 15));
    assert_non_null(parquet_entries_read(&of, PARQUET_BYTE_ARRAY, 4, at, at + 15));
    assert_non_null(parquet_entries_read(&of, PARQUET_BYTE_ARRAY, 3, at, at + 14));
    assert_null(parquet_entries_read(&of, PARQUET_BYTE_ARRAY, 3, at, at + 15));
    /* 2 bits each: 2 1 0 2; then 3, which is no entry */
    const uint8_t indexes[] = {2, 3, 0x86, 0};
    const uint8_t wrong[] = {2, 2, 3};
    struct parquet_values *values = calloc(1, sizeof *values);
    struct parquet_text texts[1];
    for (int encoding = PARQUET_PLAIN_DICTIONARY; encoding <= PARQUET_DICTIONARY; encoding += 6) {
        assert_null(parquet_values_begin(values, PARQUET_BYTE_ARRAY, encoding, &of, indexes,
                                         indexes + 4));
        struct parquet_text some[4];
        assert_null(parquet_read_texts(values, some, 4));
        for (int i = 0; i < 4; i++)
            assert_true(some[i].n == strlen(want[i]) &&
                        memcmp(some[i].at, want[i], some[i].n) == 0);
    }
    assert_null(parquet_values_begin(values, PARQUET_BYTE_ARRAY, PARQUET_DICTIONARY, &of, wrong,
                                     wrong + 3));
    assert_non_null(parquet_read_texts(values, texts, 1));
    assert_non_null(parquet_values_begin(values, PARQUET_BYTE_ARRAY, PARQUET_DICTIONARY, NULL,
                                         indexes, indexes + 4));
    parquet_values_release(values);
    parquet_entries_release(&of);
    free(values);
}

/* Any bytes as values of any encoding, with and without a dictionary. A page without bytes has no
   values, whatever the page before had. */
static void test_made_up_values(void **state)
{
    (void)state;
    static const enum parquet_type types[] = {PARQUET_INT32, PARQUET_INT64, PARQUET_FLOAT,
                                              PARQUET_DOUBLE, PARQUET_BYTE_ARRAY};
    struct rng rng = rng_start(6);
    struct parquet_values *values = calloc(1, sizeof *values);
    int64_t *numbers = test_alloc(PARQUET_PIECE * sizeof *numbers);
    struct parquet_text *texts = test_alloc(PARQUET_PIECE * sizeof *texts);
    for (int i = 0; i < 60000; i++) {
        struct parquet_entries entries = {0};
        enum parquet_type type = types[rng_below(&rng, 5)];
        size_t n_bytes = rng_below(&rng, 60);
        uint8_t *bytes = test_alloc(n_bytes);
        rng_fill(&rng, bytes, n_bytes);
        for (size_t k = 0; k < n_bytes && i % 2; k++) bytes[k] &= 7;
        bool has_entries = rng_one_in(&rng, 2) &&
                           !parquet_entries_read(&entries, type, rng_below(&rng, 5), bytes,
                                                 bytes + n_bytes);
        bool is_open = !parquet_values_begin(values, type, (int64_t)rng_below(&rng, 11),
                                             has_entries ? &entries : NULL, bytes, bytes + n_bytes);
        for (int k = 0; k < 3 && is_open; k++) {
            size_t n = rng_below(&rng, rng_one_in(&rng, 9) ? PARQUET_PIECE + 1 : 9);
            if (type != PARQUET_BYTE_ARRAY) {
                is_open = !parquet_read_numbers(values, numbers, n);
                continue;
            }
            is_open = !parquet_read_texts(values, texts, n);
            for (size_t t = 0; t < n && is_open; t++)
                CHECK(&rng, texts[t].n == 0 || texts[t].at[texts[t].n - 1] <= 255);
        }
        CHECK(&rng, !parquet_values_begin(values, type, PARQUET_PLAIN, NULL, bytes, bytes));
        CHECK(&rng, type == PARQUET_BYTE_ARRAY ? parquet_read_texts(values, texts, 1) != NULL
                                               : parquet_read_numbers(values, numbers, 1) != NULL);
        parquet_entries_release(&entries);
        free(bytes);
    }
    parquet_values_release(values);
    free(values);
    free(numbers);
    free(texts);
}

/* ---- codecs ---- */

static void test_codecs(void **state)
{
    (void)state;
    struct rng rng = rng_start(7);
    struct parquet_decompressor decompressor = {0};
    uint8_t bytes[100], out[200];
    for (int codec = -1; codec <= 8; codec++) {
        bool is_read = !parquet_codec_problem(codec);
        assert_true(is_read == ((codec >= 0 && codec <= 2) || codec == 6 || codec == 7));
        if (!is_read) continue;
        assert_true(parquet_codec_can_make(codec, 100, 100));
        assert_false(parquet_codec_can_make(codec, 100, INT32_MAX));
        for (int i = 0; i < 1000; i++) {
            size_t n = rng_below(&rng, sizeof bytes);
            rng_fill(&rng, bytes, n);
            (void)parquet_decompress(&decompressor, codec, bytes, n, out, sizeof out);
        }
    }
    parquet_decompressor_release(&decompressor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs), cmocka_unit_test(test_odd_runs),
        cmocka_unit_test(test_deltas), cmocka_unit_test(test_odd_deltas),
        cmocka_unit_test(test_thrift), cmocka_unit_test(test_deep_thrift),
        cmocka_unit_test(test_shared_texts), cmocka_unit_test(test_dictionary),
        cmocka_unit_test(test_made_up_values), cmocka_unit_test(test_codecs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
