/* test_long_hash.c -- the hash is XXH3-64, whatever the processor. */
#include "unit_test.h"

#include "util/long_hash.h"
#include "util/xalloc.h"

#include <xxhash.h>

enum { MOST_BYTES = 70000 };

static uint8_t *make_bytes(void)
{
    uint8_t *bytes = xmalloc(MOST_BYTES + 1);
    uint32_t x = 1;
    for (size_t i = 0; i <= MOST_BYTES; i++) {
        x = x * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)(x >> 24);
    }
    return bytes;
}

/* The ways of XXH3 change at 16, 128 and 240 bytes, at stripes of 64 and at blocks of 1,024. */
TEST(test_hash_is_that_of_xxh3)
{
    OWNED uint8_t *bytes = make_bytes();
    for (size_t n = 0; n <= MOST_BYTES; n += n < 2100 ? 1 : 997) {
        assert_int_equal(long_hash(bytes + 1, n), XXH3_64bits(bytes + 1, n));
#ifdef LONG_HASH_HAS_AVX2
        if (__builtin_cpu_supports("avx2"))
            assert_int_equal(long_hash_avx2(bytes + 1, n), XXH3_64bits(bytes + 1, n));
#endif
    }
}

/* The value of XXH3-64 of no bytes, by its specification. */
TEST(test_hash_has_a_known_value)
{
    assert_int_equal(long_hash("", 0), 0x2d06800538d394c2);
}
