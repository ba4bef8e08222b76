/*
 * test_speculative_scan.c -- the guess where records begin: right where a span begins with a
 * record, nearly always right where it begins within one, and never harmful where it is wrong.
 *
 * Stretches lie in memory of exactly their size, so that AddressSanitizer notices one byte too
 * many.
 */
#include "unit_test.h"

#include "bam/bam_check.h"

enum { N_RECORDS = 60, MOST_RECORD_BYTES = 1024 };

struct stream {
    uint8_t bytes[N_RECORDS * MOST_RECORD_BYTES];
    size_t starts[N_RECORDS + 1];
};

static void put_stream(struct rng *rng, struct stream *stream)
{
    char name[TEST_MAX_NAME + 1];
    stream->starts[0] = 0;
    for (size_t i = 0; i < N_RECORDS; i++) {
        tricky_name(rng, name);
        struct record_fields fields = {
            .name = name, .tid = (int32_t)rng_below(rng, 4) - 1,
            .pos = (int32_t)rng_below(rng, 1 << 28), .flag = (uint32_t)rng_below(rng, 4096),
            .n_cigar = (uint32_t)rng_below(rng, 3),
            .l_seq = (int32_t)rng_below(rng, 300), .tag_bytes = rng_below(rng, 200),
        };
        uint8_t *at = stream->bytes + stream->starts[i];
        stream->starts[i + 1] = stream->starts[i] + put_record(at, &fields, 30);
    }
}

/* Walks a span whose first record begins at `first`, as the reader does. Returns whether the
   walk came by the guess; what it finds must be what a plain walk finds. */
static bool check_walk(struct rng *rng, const uint8_t *span, size_t n_bytes, size_t first)
{
    struct bam_walk plain = {.at = span + first, .end = span + n_bytes}, walk = plain;
    struct speculative_scan guess;
    size_t n_plain = 0;
    speculative_scan_make(&guess, span, n_bytes);
    bool is_met = speculative_scan_is_met(&guess, span, &plain);
    for (; bam_walk_next(&plain); n_plain++)
        is_met = is_met || speculative_scan_is_met(&guess, span, &plain);
    size_t n = speculative_scan_go(&guess, span, &walk);
    CHECK(rng, n == n_plain && walk.at == plain.at);
    CHECK(rng, walk.claimed_bytes == plain.claimed_bytes && walk.is_damaged == plain.is_damaged);
    return is_met;
}

TEST(test_spans_of_records)
{
    enum { N_STRETCHES = 4000 };
    struct rng rng = rng_start(411);
    OWNED struct stream *stream = test_alloc(sizeof *stream);
    int n_met = 0, n_within = 0;
    for (int i = 0; i < N_STRETCHES; i++) {
        if (i % 100 == 0) put_stream(&rng, stream);
        size_t record = rng_below(&rng, N_RECORDS / 2), begin = stream->starts[record];
        bool is_within = rng_one_in(&rng, 2);
        if (is_within) begin += 1 + rng_below(&rng, stream->starts[record + 1] - begin - 1);
        size_t end = stream->starts[N_RECORDS - rng_below(&rng, N_RECORDS / 4)];
        size_t n_bytes = end - begin - rng_below(&rng, 100);
        OWNED uint8_t *exact = test_alloc(n_bytes);
        memcpy(exact, stream->bytes + begin, n_bytes);
        bool is_met = check_walk(&rng, exact, n_bytes,
                                 is_within ? stream->starts[record + 1] - begin : 0);
        CHECK(&rng, is_within || is_met);
        n_within += is_within;
        n_met += is_within && is_met;
    }
    CHECK(&rng, n_met > n_within * 9 / 10);
}

TEST(test_nonsense_is_walked_without_harm)
{
    struct rng rng = rng_start(412);
    OWNED struct stream *stream = test_alloc(sizeof *stream);
    for (int i = 0; i < 2000; i++) {
        if (i % 100 == 0) put_stream(&rng, stream);
        size_t n_bytes = rng_below(&rng, 2000);
        OWNED uint8_t *exact = test_alloc(n_bytes);
        if (i % 2) {
            rng_fill(&rng, exact, n_bytes);
        } else {
            memcpy(exact, stream->bytes, n_bytes);
            for (int k = 0; k < 3 && n_bytes > 0; k++)
                exact[rng_below(&rng, n_bytes)] = (uint8_t)rng_next(&rng);
        }
        (void)check_walk(&rng, exact, n_bytes, 0);
    }
}
