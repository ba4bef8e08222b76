/*
 * test_bgzf_block.c -- BGZF blocks: what each engine deflates inflates here, and damage is noticed.
 * test_deflate.py has each engine's blocks inflated by others.
 */
#include "unit_test.h"

#include "bam/bgzf_block.h"

#include <htslib/bgzf.h>
#include <htslib/hts.h>
#include <zlib.h>

/* The empty block that ends a BGZF file, written here from the SAM specification. */
static const uint8_t end_of_file[28] = {0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff, 6, 0, 'B', 'C',
                                        2,    0,    27, 0, 3, 0, 0, 0, 0, 0,    0, 0, 0,   0};

enum raw_kind { RAW_RANDOM, RAW_COMPRESSIBLE, RAW_ZEROS, RAW_KIND_COUNT };

static const size_t sizes[] = {0, 1, 2, 37, 1000, 32768, 65279, BGZF_PAYLOAD_BYTES};

static void fill(struct rng *rng, enum raw_kind kind, uint8_t *out, size_t n)
{
    if (kind == RAW_RANDOM)
        rng_fill(rng, out, n);
    else if (kind == RAW_COMPRESSIBLE)
        rng_fill_compressible(rng, out, n);
    else
        memset(out, 0, n);
}

/* Deflates into memory of exactly the size that suffices, as bgzf_block.h says. */
static uint8_t *deflate_block(struct rng *rng, struct bgzf_coder *coder, struct bgzf_method method,
                              const uint8_t *raw, size_t raw_bytes, size_t *size)
{
    uint8_t *block = test_alloc(BGZF_MAX_BYTES);
    ssize_t n = bgzf_block_deflate(coder, method, raw, raw_bytes, block);
    CHECK(rng, n >= BGZF_HEADER_BYTES + BGZF_FOOTER_BYTES && n <= BGZF_MAX_BYTES);
    *size = (size_t)n;
    return block;
}

static void check_inflates(struct rng *rng, struct bgzf_coder *coder, const uint8_t *block,
                           size_t size, const uint8_t *raw, size_t raw_bytes)
{
    OWNED uint8_t *exact = test_alloc(size), *back = test_alloc(raw_bytes);
    memcpy(exact, block, size);
    CHECK(rng, bgzf_block_bytes(exact) == size);
    CHECK(rng, bgzf_block_raw_bytes(exact, size) == raw_bytes);
    CHECK(rng, bgzf_block_inflate(coder, exact, size, back) == 0);
    CHECK(rng, raw_bytes == 0 || memcmp(back, raw, raw_bytes) == 0);
}

/* Calls a test with each engine that is built in and each of its levels. */
static void for_each_method(void (*check)(struct rng *, struct bgzf_method), struct rng *rng)
{
    for (int engine = 0; engine < BGZF_ENGINE_COUNT; engine++)
        for (int level = -1; level <= 9; level++)
            if (bgzf_engine_is_built_in((enum bgzf_engine)engine) &&
                bgzf_engine_has_level((enum bgzf_engine)engine, level))
                check(rng, (struct bgzf_method){level, (enum bgzf_engine)engine, false});
}

/*
 * Blocks of all sizes, one after the other with one coder, between bytes that must stay. Each block
 * inflates. No block depends on those before it or on where the coder is in memory, but igzip's.
 * Nothing is larger than if it were stored, and zeros become few bytes.
 */
static void check_sizes(struct rng *rng, struct bgzf_method method)
{
    enum { MARGIN = 64 };
    RELEASED(bgzf_coder_release) struct bgzf_coder coder = {0};
    uint8_t *around = test_alloc(MARGIN + BGZF_MAX_BYTES + MARGIN), *block = around + MARGIN;
    size_t step = method.level > 6 || method.level < 0 ? 9973 : 1999, n = 0;
    for (int i = 0; n <= BGZF_PAYLOAD_BYTES; i++) {
        OWNED uint8_t *raw = test_alloc(n);
        size_t again_bytes;
        fill(rng, (enum raw_kind)(i % RAW_KIND_COUNT), raw, n);
        /* A start that compresses, and a rest that does not. */
        if (i % 4 == 3) rng_fill_compressible(rng, raw, n / 2);
        memset(around, 0xa5, MARGIN + BGZF_MAX_BYTES + MARGIN);
        ssize_t size = bgzf_block_deflate(&coder, method, raw, n, block);
        size_t stored = BGZF_STORED_OFFSET + n + BGZF_FOOTER_BYTES;
        CHECK(rng, size > 0 && (size_t)size <= stored);
        if (method.level == 0 && n > 0) CHECK(rng, (size_t)size == stored);
        if (method.level != 0 && i % RAW_KIND_COUNT == RAW_ZEROS && i % 4 != 3 && n >= 1000)
            CHECK(rng, (size_t)size < n / 8);
        for (size_t at = 0; at < MARGIN; at++)
            CHECK(rng, around[at] == 0xa5 && block[BGZF_MAX_BYTES + at] == 0xa5);
        check_inflates(rng, &coder, block, (size_t)size, raw, n);
        struct bgzf_coder fresh = {0};
        OWNED uint8_t *again = deflate_block(rng, &fresh, method, raw, n, &again_bytes);
        if (bgzf_engine_choose(method) != BGZF_ENGINE_IGZIP)
            CHECK(rng, again_bytes == (size_t)size && memcmp(again, block, again_bytes) == 0);
        bgzf_coder_release(&fresh);
        if (n == BGZF_PAYLOAD_BYTES) break;
        n += n < 300 ? 1 + rng_below(rng, 9) : 1 + rng_below(rng, 2 * step);
        if (n > BGZF_PAYLOAD_BYTES) n = BGZF_PAYLOAD_BYTES;
    }
    free(around);
}

TEST(test_payloads_of_all_sizes_come_back)
{
    struct rng rng = rng_start(67);
    for_each_method(check_sizes, &rng);
}

/* One coder for one method after the other. */
TEST(test_methods_in_turn)
{
    struct rng rng = rng_start(68);
    RELEASED(bgzf_coder_release) struct bgzf_coder coder = {0};
    uint8_t raw[5000];
    rng_fill_compressible(&rng, raw, sizeof raw);
    for (int i = 0; i < 200; i++) {
        struct bgzf_method method = {(int)rng_below(&rng, 10),
                                     (enum bgzf_engine)rng_below(&rng, BGZF_ENGINE_COUNT), false};
        if (!bgzf_engine_is_built_in(method.engine) ||
            !bgzf_engine_has_level(method.engine, method.level))
            continue;
        size_t size;
        OWNED uint8_t *block = deflate_block(&rng, &coder, method, raw, sizeof raw, &size);
        check_inflates(&rng, &coder, block, size, raw, sizeof raw);
    }
}

/* With room for n bytes and less: each engine says that the block does not fit, writes no further,
   and goes on with the next block. */
static void check_room(struct rng *rng, struct bgzf_method method)
{
    enum { N = 3000, MARGIN = 64 };
    RELEASED(bgzf_coder_release) struct bgzf_coder coder = {0};
    uint8_t raw[N];
    if (method.level == 0) return;
    for (size_t room = 0; room < 2 * N; room += room < 40 ? 1 : 131) {
        uint8_t *out = test_alloc(room + MARGIN), back[N];
        memset(out, 0x5a, room + MARGIN);
        fill(rng, room % 2 ? RAW_RANDOM : RAW_COMPRESSIBLE, raw, N);
        ssize_t n = bgzf_engine_deflate(&coder, method, raw, N, out, room);
        CHECK(rng, n >= 0 && (size_t)n <= room && (n > 0 || room < N + 200));
        for (size_t at = 0; at < MARGIN; at++) CHECK(rng, out[room + at] == 0x5a);
        if (n > 0) {
            CHECK(rng, bgzf_engine_inflate(&coder, out, (size_t)n, back, N) == 0);
            CHECK(rng, memcmp(back, raw, N) == 0);
        }
        free(out);
    }
}

TEST(test_block_needs_no_more_room_than_promised)
{
    struct rng rng = rng_start(69);
    for_each_method(check_room, &rng);
}

TEST(test_engines_have_these_names)
{
    static const char *const names[] = {"auto", "libdeflate", "igzip", "rocksort", "zlib"};
    enum bgzf_engine engine;
    const char *version;
    for (int i = 0; i < BGZF_ENGINE_COUNT; i++) {
        assert_string_equal(bgzf_engine_name((enum bgzf_engine)i), names[i]);
        assert_int_equal(bgzf_engine_parse(names[i], &engine), 0);
        assert_int_equal((int)engine, i);
        const char *library = bgzf_engine_library(engine, &version);
        bool has_library = engine != BGZF_ENGINE_AUTO && bgzf_engine_is_built_in(engine);
        assert_true(has_library == (library != NULL) && has_library == (version != NULL));
        if (version) assert_true(*version >= '0' && *version <= '9');
    }
    assert_int_equal(bgzf_engine_parse("", &engine), -1);
    assert_int_equal(bgzf_engine_parse("igzip ", &engine), -1);
    assert_true(bgzf_engine_is_built_in(BGZF_ENGINE_ZLIB));
}

/* Auto: igzip at level 1, our own up to 5 but not for text, libdeflate at others; zlib where there
   is nothing else. */
TEST(test_auto_takes_the_best_engine_of_a_level)
{
    bool has_igzip = bgzf_engine_is_built_in(BGZF_ENGINE_IGZIP);
    bool has_libdeflate = bgzf_engine_is_built_in(BGZF_ENGINE_LIBDEFLATE);
    for (int level = -1; level <= 9; level++) {
        enum bgzf_engine want = has_libdeflate ? BGZF_ENGINE_LIBDEFLATE : BGZF_ENGINE_ZLIB;
        if (level == 1 && has_igzip) want = BGZF_ENGINE_IGZIP;
        const struct bgzf_method text = {.level = level, .is_text = true};
        if (level != 0) assert_int_equal(bgzf_engine_choose(text), want);
        if (level <= 5 && want != BGZF_ENGINE_IGZIP) want = BGZF_ENGINE_OWN;
        if (level != 0)
            assert_int_equal(bgzf_engine_choose((struct bgzf_method){.level = level}), want);
        for (int i = BGZF_ENGINE_LIBDEFLATE; i < BGZF_ENGINE_COUNT; i++) {
            struct bgzf_method named = {level, (enum bgzf_engine)i, false};
            assert_int_equal(bgzf_engine_choose(named), i);
            assert_true(bgzf_engine_has_level(named.engine, level) ==
                        (i == BGZF_ENGINE_IGZIP ? level == 0 || level == 1
                         : i == BGZF_ENGINE_OWN ? level <= 5 : true));
        }
    }
}

TEST(test_crc_is_that_of_zlib)
{
    struct rng rng = rng_start(70);
    OWNED uint8_t *bytes = test_alloc(BGZF_MAX_BYTES);
    rng_fill(&rng, bytes, BGZF_MAX_BYTES);
    for (size_t n = 0; n <= BGZF_MAX_BYTES - 32; n += n < 600 ? 1 : 1 + rng_below(&rng, 2000)) {
        const uint8_t *at = bytes + rng_below(&rng, 32);
        CHECK(&rng, bgzf_engine_crc(7, at, n) == (n ? crc32(7, at, (uInt)n) : 7));
    }
}

/* If both use libdeflate, a level gives the same size. */
TEST(test_levels_are_those_of_htslib)
{
    if (!bgzf_engine_is_built_in(BGZF_ENGINE_LIBDEFLATE) ||
        !hts_test_feature(HTS_FEATURE_LIBDEFLATE))
        skip();
    struct rng rng = rng_start(63);
    RELEASED(bgzf_coder_release) struct bgzf_coder coder = {0};
    enum { N = BGZF_PAYLOAD_BYTES };
    OWNED uint8_t *raw = test_alloc(N), *theirs = test_alloc(BGZF_MAX_BYTES);
    /* Text with repeats at all distances, so that levels give different sizes. */
    rng_fill_compressible(&rng, raw, N);
    for (size_t i = 1000; i + 80 < N; i += 40 + rng_below(&rng, 100))
        memcpy(raw + i, raw + rng_below(&rng, i - 80), 20 + rng_below(&rng, 60));
    for (int level = -1; level <= 9; level++) {
        size_t ours_bytes, theirs_bytes = BGZF_MAX_BYTES;
        const struct bgzf_method method = {level, BGZF_ENGINE_LIBDEFLATE, false};
        OWNED uint8_t *ours = deflate_block(&rng, &coder, method, raw, N, &ours_bytes);
        CHECK(&rng, bgzf_compress(theirs, &theirs_bytes, raw, N, level) == 0);
        if (ours_bytes != theirs_bytes)
            fail_msg("level %d: %zu bytes, htslib %zu", level, ours_bytes, theirs_bytes);
    }
}

TEST(test_store_in_place)
{
    struct rng rng = rng_start(64);
    RELEASED(bgzf_coder_release) struct bgzf_coder coder = {0};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        size_t n = sizes[s];
        OWNED uint8_t *raw = test_alloc(n);
        OWNED uint8_t *block = test_alloc(BGZF_STORED_OFFSET + n + BGZF_FOOTER_BYTES);
        rng_fill(&rng, raw, n);
        memcpy(block + BGZF_STORED_OFFSET, raw, n);
        size_t size = bgzf_block_store(block, n);
        CHECK(&rng, size == BGZF_STORED_OFFSET + n + BGZF_FOOTER_BYTES && size <= BGZF_MAX_BYTES);
        check_inflates(&rng, &coder, block, size, raw, n);
    }
}

enum outcome { DETECTED, READS_AS_BEFORE, READS_WRONG };

/* Reads a block as a reader would that has block_bytes of it. */
static enum outcome read_block(struct bgzf_coder *coder, const uint8_t *block, size_t block_bytes,
                               const uint8_t *raw, size_t raw_bytes, uint8_t *back)
{
    size_t size = bgzf_block_bytes(block);
    if (size == 0 || size > block_bytes) return DETECTED;
    size_t claimed = bgzf_block_raw_bytes(block, size);
    if (claimed > BGZF_MAX_BYTES) return DETECTED;
    if (bgzf_block_inflate(coder, block, size, back) < 0) return DETECTED;
    bool same = claimed == raw_bytes && memcmp(back, raw, raw_bytes) == 0;
    return same ? READS_AS_BEFORE : READS_WRONG;
}

static void flip_every_byte(struct rng *rng, int level, size_t n, bool every_bit)
{
    RELEASED(bgzf_coder_release) struct bgzf_coder coder = {0};
    OWNED uint8_t *raw = test_alloc(n), *back = test_alloc(BGZF_MAX_BYTES);
    size_t size, n_harmless = 0;
    rng_fill_compressible(rng, raw, n);
    OWNED uint8_t *block = deflate_block(rng, &coder, (struct bgzf_method){.level = level}, raw, n,
                                         &size);
    OWNED uint8_t *exact = test_alloc(size);
    for (size_t i = 0; i < size; i++) {
        for (int bit = 0; bit < (every_bit ? 8 : 1); bit++) {
            memcpy(exact, block, size);
            exact[i] ^= (uint8_t)(every_bit ? 1u << bit : 1 + rng_below(rng, 255));
            enum outcome outcome = read_block(&coder, exact, size, raw, n, back);
            CHECK(rng, outcome != READS_WRONG);
            /* BGZF ignores the time, flags and system of gzip. */
            if (i >= 4 && i < 10)
                CHECK(rng, outcome == READS_AS_BEFORE);
            else
                n_harmless += outcome == READS_AS_BEFORE;
        }
    }
    /* Other harmless bits fill the last byte, or that of the header of a stored block, or belong to
       the length of a code that is not used; igzip has more such codes. */
    bool is_igzip = bgzf_engine_choose((struct bgzf_method){.level = level}) == BGZF_ENGINE_IGZIP;
    CHECK(rng, n_harmless <= (is_igzip ? 16 : 12));
}

TEST(test_every_flipped_byte_is_detected)
{
    struct rng rng = rng_start(65);
    static const int levels[] = {0, 1, 3, 6, 9};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        int level = levels[i];
        flip_every_byte(&rng, level, 0, true);
        flip_every_byte(&rng, level, 1, true);
        flip_every_byte(&rng, level, 700, true);
        flip_every_byte(&rng, level, 10000, false);
    }
}

TEST(test_headers_of_other_programs_are_known)
{
    struct rng rng = rng_start(66);
    RELEASED(bgzf_coder_release) struct bgzf_coder coder = {0};
    assert_int_equal(sizeof bgzf_end_block, sizeof end_of_file);
    assert_memory_equal(bgzf_end_block, end_of_file, sizeof end_of_file);
    check_inflates(&rng, &coder, end_of_file, sizeof end_of_file, NULL, 0);
    enum { N = 1000, EXTRA = 10 };
    uint8_t raw[N], *longer = test_alloc(BGZF_MAX_BYTES);
    size_t size;
    rng_fill_compressible(&rng, raw, N);
    uint8_t *block = deflate_block(&rng, &coder, (struct bgzf_method){.level = 6}, raw, N, &size);
    /* A second extra field after BGZF's. */
    memcpy(longer, block, 18);
    memcpy(longer + 18, "XX\6\0abcdef", EXTRA);
    memcpy(longer + 18 + EXTRA, block + 18, size - 18);
    test_put_u16(longer + 10, 6 + EXTRA);
    test_put_u16(longer + 16, (uint32_t)(size + EXTRA - 1));
    check_inflates(&rng, &coder, longer, size + EXTRA, raw, N);
    /* Not gzip, no extra field, another extra field, impossible sizes. */
    static const struct {
        size_t at;
        uint8_t value;
    } others[] = {{0, 30},  {1, 0},  {2, 7},   {3, 0},   {3, 12},  {10, 5},
                  {10, 0},  {12, 'X'}, {13, 'X'}, {14, 3}, {15, 1}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        uint8_t header[BGZF_HEADER_BYTES];
        memcpy(header, block, sizeof header);
        header[others[i].at] = others[i].value;
        if (bgzf_block_bytes(header) != 0) fail_msg("byte %zu of the header", others[i].at);
    }
    /* A block cannot be smaller than header and footer, 18 + 8 bytes. */
    for (uint32_t claimed = 0; claimed < 40; claimed++) {
        test_put_u16(block + 16, claimed);
        size_t expected = claimed + 1 >= BGZF_HEADER_BYTES + BGZF_FOOTER_BYTES ? claimed + 1 : 0;
        assert_int_equal(bgzf_block_bytes(block), expected);
    }
    free(longer);
    free(block);
}
