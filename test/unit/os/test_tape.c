/* test_tape.c -- streams of any length in little memory: what is read is what was written.
   */
#include "test_place.h"
#include "unit_test.h"

#include "os/tape.h"

#include <malloc.h>

enum { MOST_STREAMS = 5 };

static struct tape_set *create(unsigned n_streams, size_t memory_bytes)
{
    static const char *const prefixes[] = {"."};
    const struct temp_places places = {prefixes, 1, NULL};
    return tape_set_create(n_streams, memory_bytes, &places);
}

/* What a stream must have: a byte follows from its place. */
struct written {
    uint64_t n_bytes;
};

static uint8_t byte_at(unsigned stream, uint64_t at)
{
    return (uint8_t)(((at + 1) * UINT64_C(0x9e3779b97f4a7c15) + stream * 77) >> 40);
}

static void append(struct tape_set *streams, struct written *w, unsigned stream, size_t n)
{
    OWNED uint8_t *bytes = test_alloc(n + 1);
    for (size_t i = 0; i < n; i++) bytes[i] = byte_at(stream, w->n_bytes + i);
    assert_int_equal(tape_set_append(streams, stream, bytes, n), 0);
    w->n_bytes += n;
}

static void check(struct tape_set *streams, const struct written *w, unsigned stream,
                  struct rng *rng)
{
    RELEASED(tape_reader_release) struct tape_reader reader = {0};
    assert_int_equal(tape_set_bytes(streams, stream), w->n_bytes);
    tape_set_advise(streams, stream);
    tape_reader_begin(&reader, streams, stream);
    uint64_t at = 0;
    while (at < w->n_bytes) {
        if (rng_one_in(rng, 5)) reader.at = at = rng_below(rng, (size_t)w->n_bytes);
        size_t n = rng_below(rng, rng_one_in(rng, 9) ? 5000 : 90);
        if (n > w->n_bytes - at) n = (size_t)(w->n_bytes - at);
        const uint8_t *bytes = tape_read(&reader, n);
        assert_non_null(bytes);
        for (size_t i = 0; i < n; i++) assert_int_equal(bytes[i], byte_at(stream, at + i));
        at += n;
        if (rng_one_in(rng, 3000)) reader.at = at = w->n_bytes;
    }
    assert_int_equal(tape_left(&reader), 0);
}

/* Streams that are written at random. The first one gets most. */
TEST_IN_OWN_DIR(test_streams_come_back)
{
    for (size_t k = 0; k < 12; k++) {
        struct rng rng = rng_start(k);
        struct written w[MOST_STREAMS] = {0};
        unsigned n_streams = 1 + (unsigned)rng_below(&rng, MOST_STREAMS);
        struct tape_set *streams = create(n_streams, (size_t)4096 << rng_below(&rng, 5));
        for (unsigned number = 0; number < 50; number++) {
            size_t most = rng_one_in(&rng, 4) ? 200000 : 9000;
            for (size_t i = rng_below(&rng, 8); i-- > 0;) {
                unsigned stream = (unsigned)rng_below(&rng, n_streams);
                append(streams, &w[stream], stream, rng_below(&rng, stream == 0 ? most : 900));
            }
        }
        uint64_t all = 0;
        for (unsigned i = 0; i < n_streams; i++) all += w[i].n_bytes;
        assert_int_equal(tape_set_all_bytes(streams), all);
        for (unsigned i = 0; i < n_streams; i++) check(streams, &w[i], i, &rng);
        tape_set_destroy(streams);
    }
}

/* The memory that malloc has given out, also in mappings of their own. */
static size_t allocated(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* Tables of pages once took 8 bytes for each page of 1 KiB: a megabyte here. */
TEST_IN_OWN_DIR(test_streams_keep_to_their_memory)
{
    enum { N_STREAMS = 64, MEMORY_BYTES = 256 << 10, CHUNK_BYTES = 4000 };
    static const uint8_t chunk[CHUNK_BYTES];
    size_t before = allocated();
    struct tape_set *streams = create(N_STREAMS, MEMORY_BYTES);
    for (size_t i = 0; i < (128 << 20) / CHUNK_BYTES; i++)
        assert_int_equal(tape_set_append(streams, i % N_STREAMS, chunk, CHUNK_BYTES), 0);
    assert_true(tape_set_file_bytes(streams) > 120 << 20);
    assert_true(allocated() - before < 2 * MEMORY_BYTES);
    tape_set_destroy(streams);
}
