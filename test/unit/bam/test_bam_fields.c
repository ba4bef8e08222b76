/*
 * test_bam_fields.c -- the walk from record to record: it finds all whole records, says what the
 * next one claims, and never reads beyond the span of memory.
 *
 * Stretches lie in memory of exactly their size, so that AddressSanitizer notices one byte too
 * many.
 */
#include "unit_test.h"

#include "bam/bam_fields.h"

enum { N_RECORDS = 4, STREAM_BYTES = 512 };

/* Writes records one after another; starts has where each begins, and the end. */
static void put_stream(uint8_t *stream, size_t starts[N_RECORDS + 1])
{
    const struct record_fields records[N_RECORDS] = {
        {.name = ""}, {.name = "a", .l_seq = 3}, {.name = "bc", .tag_bytes = 9}, {.name = "def"}};
    starts[0] = 0;
    for (size_t i = 0; i < N_RECORDS; i++)
        starts[i + 1] = starts[i] + put_record(stream + starts[i], &records[i], 1);
    assert_true(starts[N_RECORDS] <= STREAM_BYTES);
}

TEST(test_walk_ends_where_the_memory_ends)
{
    uint8_t stream[STREAM_BYTES];
    size_t starts[N_RECORDS + 1];
    put_stream(stream, starts);
    for (size_t n_bytes = 0; n_bytes <= starts[N_RECORDS]; n_bytes++) {
        OWNED uint8_t *exact = test_alloc(n_bytes);
        memcpy(exact, stream, n_bytes);
        struct bam_walk walk = {.at = exact, .end = exact + n_bytes};
        size_t n = 0;
        for (const uint8_t *rec; (rec = bam_walk_next(&walk)) != NULL; n++) {
            assert_ptr_equal(rec, exact + starts[n]);
            assert_int_equal(walk.claimed_bytes, starts[n + 1] - starts[n]);
        }
        assert_true(starts[n] <= n_bytes && (n == N_RECORDS || starts[n + 1] > n_bytes));
        assert_ptr_equal(walk.at, exact + starts[n]);
        assert_false(walk.is_damaged);
        size_t claimed = n_bytes - starts[n] < 4 ? 0 : starts[n + 1] - starts[n];
        assert_int_equal(walk.claimed_bytes, claimed);
    }
}

TEST(test_walk_ends_at_an_impossible_size)
{
    static const struct {
        uint32_t block_size;
        bool is_damaged;
    } cases[] = {{0, true},                 {31, true},          {32, false},
                 {INT32_MAX - 4, false},    {INT32_MAX - 3, true}, {UINT32_MAX, true}};
    uint8_t stream[STREAM_BYTES];
    size_t starts[N_RECORDS + 1];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_stream(stream, starts);
        test_put_u32(stream + starts[N_RECORDS - 1], cases[i].block_size);
        struct bam_walk walk = {.at = stream, .end = stream + starts[N_RECORDS]};
        for (size_t n = 0; n < N_RECORDS - 1; n++)
            assert_ptr_equal(bam_walk_next(&walk), stream + starts[n]);
        const uint8_t *last = bam_walk_next(&walk);
        assert_true((last != NULL) == (cases[i].block_size == 32));
        assert_true(walk.is_damaged == cases[i].is_damaged);
        assert_true(walk.claimed_bytes == (size_t)cases[i].block_size + 4);
    }
}
