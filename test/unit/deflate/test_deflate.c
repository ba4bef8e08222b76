/* test_deflate.c -- what the encoder writes inflates to the payload, by zlib and by the library that
   inflates BGZF, whatever the payload. */
#include "unit_test.h"

#include "bam/bgzf_engine.h"
#include "deflate/deflate.h"

#include <zlib.h>

enum { MOST_BYTES = 65535, ROOM_BYTES = 2 * MOST_BYTES };

static void check_zlib(struct rng *rng, const uint8_t *in, size_t in_bytes, const uint8_t *raw,
                       size_t n_bytes)
{
    OWNED uint8_t *back = test_alloc(n_bytes + 1);
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)in, .avail_in = (uInt)in_bytes,
                       .next_out = back, .avail_out = (uInt)n_bytes + 1};
    assert_int_equal(inflateInit2(&stream, -15), Z_OK);
    CHECK(rng, inflate(&stream, Z_FINISH) == Z_STREAM_END);
    CHECK(rng, stream.total_out == n_bytes && stream.avail_in == 0);
    CHECK(rng, memcmp(back, raw, n_bytes) == 0);
    assert_int_equal(inflateEnd(&stream), Z_OK);
}

/* Deflates a payload in memory of exactly its size at all levels, and inflates it. */
static void check_payload(struct rng *rng, const uint8_t *payload, size_t n_bytes)
{
    RELEASED(bgzf_coder_release) struct bgzf_coder coder = {0};
    uint8_t *raw = test_alloc(n_bytes), *out = test_alloc(ROOM_BYTES), *back = test_alloc(n_bytes);
    memcpy(raw, payload, n_bytes);
    for (int level = DEFLATE_FASTEST; level <= DEFLATE_SMALLEST; level++) {
        OWNED struct deflater *deflater = deflater_create(level);
        size_t size = deflater_run(deflater, raw, n_bytes, out, ROOM_BYTES);
        CHECK(rng, size > 0);
        check_zlib(rng, out, size, raw, n_bytes);
        CHECK(rng, bgzf_engine_inflate(&coder, out, size, back, n_bytes) == 0);
        CHECK(rng, memcmp(back, raw, n_bytes) == 0);
        /* The same once more, into exactly as much room, and not into less. */
        OWNED uint8_t *exact = test_alloc(size);
        CHECK(rng, deflater_run(deflater, raw, n_bytes, exact, size - 1) == 0);
        CHECK(rng, deflater_run(deflater, raw, n_bytes, exact, size) == size);
        CHECK(rng, memcmp(exact, out, size) == 0);
    }
    free(back);
    free(out);
    free(raw);
}

TEST(test_small_and_uniform_payloads)
{
    struct rng rng = rng_start(901);
    static const size_t sizes[] = {0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 35, 36, 37, 258, 259, 260,
                                   32768, 32769, 65279, 65280, MOST_BYTES};
    OWNED uint8_t *payload = test_alloc(MOST_BYTES);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (unsigned value = 0; value < 256; value += 85) {
            memset(payload, (int)value, sizes[i]);
            check_payload(&rng, payload, sizes[i]);
        }
        rng_fill(&rng, payload, sizes[i]);
        check_payload(&rng, payload, sizes[i]);
        rng_fill_compressible(&rng, payload, sizes[i]);
        check_payload(&rng, payload, sizes[i]);
    }
}

/* Copies of n bytes from `distance` before, for all classes of both. */
TEST(test_all_lengths_and_distances)
{
    struct rng rng = rng_start(902);
    OWNED uint8_t *payload = test_alloc(MOST_BYTES);
    for (size_t distance = 1; distance <= 32770; distance += distance < 20 ? 1 : distance / 3) {
        size_t n = distance + 400;
        rng_fill(&rng, payload, n);
        for (size_t length = 3; length < 262 && n + length + 2 < MOST_BYTES;
             length += length < 20 ? 1 : 9) {
            for (size_t i = 0; i < length; i++, n++) payload[n] = payload[n - distance];
            payload[n++] = (uint8_t)rng_next(&rng);
        }
        check_payload(&rng, payload, n);
    }
}

/* Counts that fall as 2^-n need codes longer than deflate has. */
TEST(test_codes_that_are_too_long)
{
    struct rng rng = rng_start(903);
    OWNED uint8_t *payload = test_alloc(MOST_BYTES);
    for (size_t i = 0; i < MOST_BYTES; i++)
        payload[i] = (uint8_t)(i + 1 < MOST_BYTES ? __builtin_ctzl(i + 1) * 11 : 255);
    check_payload(&rng, payload, MOST_BYTES);
    for (size_t i = MOST_BYTES; i-- > 1;) {
        size_t other = rng_below(&rng, i + 1);
        uint8_t value = payload[i];
        payload[i] = payload[other];
        payload[other] = value;
    }
    check_payload(&rng, payload, MOST_BYTES);
}

/* Records by position, with bases and qualities that are partly those of the read before. */
static size_t make_records(struct rng *rng, uint8_t *payload, size_t room)
{
    bool is_long = rng_one_in(rng, 4);
    size_t n = 0, before = 0, before_bytes = 0;
    int32_t pos = 1000;
    while (n < room) {
        char name[TEST_MAX_NAME + 1];
        tricky_name(rng, name);
        struct record_fields fields = {
            .name = name, .tid = rng_one_in(rng, 9) ? -1 : 3, .pos = pos, .flag = 99,
            .n_cigar = (uint32_t)rng_below(rng, 4),
            .l_seq = (int32_t)rng_below(rng, is_long ? 9000 : 300),
            .tag_bytes = rng_below(rng, 60)};
        size_t size = record_size(&fields);
        OWNED uint8_t *rec = test_alloc(size);
        (void)put_record(rec, &fields, (uint8_t)rng_next(rng));
        size_t from = 36 + strlen(name) + 1 + 4 * fields.n_cigar;
        for (size_t i = from; i < size; i++)
            rec[i] = before_bytes > i - from && !rng_one_in(rng, 30)
                         ? payload[before + i - from] : (uint8_t)rng_below(rng, 40);
        size_t kept = size < room - n ? size : room - n;
        memcpy(payload + n, rec, kept);
        before = n + (from < kept ? from : 0);
        before_bytes = kept > from ? kept - from : 0;
        n += kept;
        pos += (int32_t)rng_below(rng, 40);
    }
    return n;
}

/* Whole records, damaged ones, and payloads that begin and end within one. */
TEST(test_payloads_of_records_come_back)
{
    struct rng rng = rng_start(904);
    OWNED uint8_t *payload = test_alloc(MOST_BYTES);
    for (int i = 0; i < 60; i++) {
        size_t n = make_records(&rng, payload, 1 + rng_below(&rng, MOST_BYTES));
        if (i % 3 == 1)
            for (size_t k = rng_below(&rng, 60); k > 0; k--)
                payload[rng_below(&rng, n)] = (uint8_t)rng_next(&rng);
        size_t from = i % 3 == 2 ? rng_below(&rng, n) : 0;
        check_payload(&rng, payload + from, n - from);
    }
}
