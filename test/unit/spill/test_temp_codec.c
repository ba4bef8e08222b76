/*
 * test_temp_codec.c -- the codecs of temporary data: data come back as they were; damaged data, and
 * data of another size, are refused or at least write nothing past the given memory.
 */
#include "unit_test.h"

#include "spill/temp_codec.h"

static const size_t sizes[] = {1, 2, 36, 37, 300, 4096, 65536, 300000};

static void fill(struct rng *rng, bool compressible, uint8_t *out, size_t n)
{
    if (compressible)
        rng_fill_compressible(rng, out, n);
    else
        rng_fill(rng, out, n);
}

TEST(test_codecs_have_these_names)
{
    static const char *const names[TEMP_CODEC_COUNT] = {"none", "snappy", "lz4", "zstd"};
    static const char *const others[] = {"",     "LZ4",  "lz4 ", " lz4",  "lz",  "lz44",
                                         "zlib", "gzip", "zst",  "zstd1", "None", "3"};
    for (int i = 0; i < TEMP_CODEC_COUNT; i++) {
        enum temp_codec codec = TEMP_CODEC_COUNT;
        assert_string_equal(temp_codec_name((enum temp_codec)i), names[i]);
        assert_int_equal(temp_codec_parse(names[i], &codec), 0);
        assert_int_equal(codec, i);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        enum temp_codec codec = TEMP_CODEC_LZ4;
        assert_int_equal(temp_codec_parse(others[i], &codec), -1);
        assert_int_equal(codec, TEMP_CODEC_LZ4);
    }
}

/* Files hold these numbers. */
TEST(test_numbers_on_disk)
{
    assert_int_equal(TEMP_CODEC_NONE, 0);
    assert_int_equal(TEMP_CODEC_SNAPPY, 1);
    assert_int_equal(TEMP_CODEC_LZ4, 2);
    assert_int_equal(TEMP_CODEC_ZSTD, 3);
}

static void check_round_trip(struct rng *rng, struct temp_coder *coder, enum temp_codec codec,
                             bool compressible, size_t n)
{
    OWNED uint8_t *raw = test_alloc(n), *back = test_alloc(n + 1);
    size_t room = temp_codec_bound(codec, n);
    OWNED uint8_t *packed = test_alloc(room);
    fill(rng, compressible, raw, n);
    ssize_t size = temp_codec_compress(coder, codec, raw, n, packed, room);
    CHECK(rng, size > 0 && (size_t)size <= room);
    if (codec == TEMP_CODEC_ZSTD && compressible && n >= 4096) CHECK(rng, (size_t)size < n / 2);
    OWNED uint8_t *exact = test_alloc((size_t)size);
    memcpy(exact, packed, (size_t)size);
    CHECK(rng, temp_codec_decompress(coder, codec, exact, (size_t)size, back, n) == 0);
    CHECK(rng, memcmp(back, raw, n) == 0);
    /* Another size than expected is refused. */
    CHECK(rng, temp_codec_decompress(coder, codec, exact, (size_t)size, back, n + 1) == -1);
    OWNED uint8_t *shorter = test_alloc(n - 1);
    CHECK(rng, temp_codec_decompress(coder, codec, exact, (size_t)size, shorter, n - 1) == -1);
}

TEST(test_bytes_come_back_from_each_codec)
{
    struct rng rng = rng_start(41);
    struct temp_coder coder = {0};
    for (int codec = 0; codec < TEMP_CODEC_COUNT; codec++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int compressible = 0; compressible < 2; compressible++)
                check_round_trip(&rng, &coder, (enum temp_codec)codec, compressible, sizes[s]);
    temp_coder_release(&coder);
    assert_null(coder.zstd_compressor);
    assert_null(coder.zstd_decompressor);
    temp_coder_release(&coder);
}

/* Codecs have no checksum, so damaged data may become other bytes, but within the given memory. */
TEST(test_damage_stays_within_its_place)
{
    struct rng rng = rng_start(42);
    RELEASED(temp_coder_release) struct temp_coder coder = {0};
    enum { N = 600 };
    OWNED uint8_t *raw = test_alloc(N), *back = test_alloc(N);
    rng_fill_compressible(&rng, raw, N);
    for (int c = 0; c < TEMP_CODEC_COUNT; c++) {
        enum temp_codec codec = (enum temp_codec)c;
        size_t room = temp_codec_bound(codec, N), n_refused = 0;
        OWNED uint8_t *packed = test_alloc(room);
        ssize_t size = temp_codec_compress(&coder, codec, raw, N, packed, room);
        CHECK(&rng, size > 0);
        for (size_t n = 0; n < (size_t)size; n++) {
            OWNED uint8_t *exact = test_alloc(n);
            memcpy(exact, packed, n);
            CHECK(&rng, temp_codec_decompress(&coder, codec, exact, n, back, N) == -1);
        }
        OWNED uint8_t *exact = test_alloc((size_t)size);
        for (size_t i = 0; i < (size_t)size; i++) {
            for (int bit = 0; bit < 9; bit++) {
                memcpy(exact, packed, (size_t)size);
                exact[i] ^= (uint8_t)(bit < 8 ? 1 << bit : 0xff);
                n_refused += temp_codec_decompress(&coder, codec, exact, (size_t)size, back, N) < 0;
            }
        }
        CHECK(&rng, codec == TEMP_CODEC_NONE || n_refused > 0);
    }
}

TEST(test_unknown_codec_is_refused)
{
    struct temp_coder coder = {0};
    uint8_t in[8] = {0}, out[8];
    assert_int_equal(temp_codec_compress(&coder, TEMP_CODEC_COUNT, in, 8, out, 8), -1);
    assert_int_equal(temp_codec_decompress(&coder, TEMP_CODEC_COUNT, in, 8, out, 8), -1);
    /* The codec none needs room, too. */
    assert_int_equal(temp_codec_compress(&coder, TEMP_CODEC_NONE, in, 8, out, 7), -1);
}
