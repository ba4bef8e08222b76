/*
 * fuzz_deflate.c -- deflates any payload at any level, and inflates it with all libraries.
 *
 * The first byte chooses the level, or all of them, and whether the rest comes many times, so that
 * small inputs make large payloads. What is written does not depend on what the deflater did
 * before, and fits into exactly as much room.
 */
#include "fuzz_input.h"

#include "bam/bgzf_engine.h"
#include "deflate/deflate.h"

#include <zlib.h>
#ifdef HAVE_ISAL
#include <isa-l.h>
#endif

enum { MOST_BYTES = 65535, ROOM_BYTES = 2 * MOST_BYTES, N_LEVELS = DEFLATE_SMALLEST };

static struct deflater *used[N_LEVELS];
static uint8_t payload[MOST_BYTES], out[ROOM_BYTES], back[MOST_BYTES];

void fuzz_begin(void)
{
    for (int i = 0; i < N_LEVELS; i++) used[i] = deflater_create(DEFLATE_FASTEST + i);
}

static void check_zlib(size_t size, size_t n_bytes)
{
    z_stream stream = {.next_in = out, .avail_in = (uInt)size, .next_out = back,
                       .avail_out = (uInt)n_bytes};
    FUZZ_CHECK(inflateInit2(&stream, -15) == Z_OK);
    FUZZ_CHECK(inflate(&stream, Z_FINISH) == Z_STREAM_END);
    FUZZ_CHECK(stream.total_out == n_bytes && stream.avail_in == 0);
    FUZZ_CHECK(inflateEnd(&stream) == Z_OK && memcmp(back, payload, n_bytes) == 0);
}

static void check_library(size_t size, size_t n_bytes)
{
    static struct bgzf_coder coder;
    memset(back, 0, n_bytes);
    FUZZ_CHECK(bgzf_engine_inflate(&coder, out, size, back, n_bytes) == 0);
    FUZZ_CHECK(memcmp(back, payload, n_bytes) == 0);
}

static void check_isal(size_t size, size_t n_bytes)
{
#ifdef HAVE_ISAL
    static struct inflate_state state;
    memset(back, 0, n_bytes);
    isal_inflate_init(&state);
    state.next_in = out;
    state.avail_in = (uint32_t)size;
    state.next_out = back;
    state.avail_out = (uint32_t)n_bytes;
    FUZZ_CHECK(isal_inflate_stateless(&state) == ISAL_DECOMP_OK && state.avail_out == 0);
    FUZZ_CHECK(memcmp(back, payload, n_bytes) == 0);
#else
    (void)size;
    (void)n_bytes;
#endif
}

static void check_again(struct deflater *deflater, const uint8_t *raw, size_t n, size_t size)
{
    OWNED uint8_t *exact = fuzz_alloc(size);
    FUZZ_CHECK(deflater_run(deflater, raw, n, exact, size - 1) == 0);
    FUZZ_CHECK(deflater_run(deflater, raw, n, exact, size) == size);
    FUZZ_CHECK(memcmp(exact, out, size) == 0);
}

static void check_level(int level, const uint8_t *raw, size_t n, bool with_fresh)
{
    size_t size = deflater_run(used[level], raw, n, out, sizeof out);
    FUZZ_CHECK(size > 0);
    check_zlib(size, n);
    check_library(size, n);
    check_isal(size, n);
    check_again(used[level], raw, n, size);
    if (!with_fresh) return;            /* a deflater that was not used before takes long to make */
    OWNED struct deflater *fresh = deflater_create(DEFLATE_FASTEST + level);
    check_again(fresh, raw, n, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct fuzz_input in = {data, data + n_bytes};
    unsigned choice = fuzz_u8(&in);
    size_t n = 0, times = choice & 128 ? 40 : 1, left = fuzz_left(&in);
    /* Each copy differs from the one before. */
    for (size_t i = 0; i < times; i++)
        for (size_t k = 0; k < left && n < MOST_BYTES; k++)
            payload[n++] = (uint8_t)(in.at[k] + (k == i % left ? i : 0));
    OWNED uint8_t *raw = fuzz_copy(payload, n);
    for (int level = 0; level < N_LEVELS; level++)
        if (choice & 64 || choice % N_LEVELS == (unsigned)level)
            check_level(level, raw, n, !(choice & 0x38));
    return 0;
}
