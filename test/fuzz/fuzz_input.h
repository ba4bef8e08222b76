/*
 * fuzz_input.h -- what all fuzz targets share: numbers and bytes taken from the input, a check that
 * ends the program, and memory of exactly a given size.
 *
 * A target is a file fuzz_NAME.c with LLVMFuzzerTestOneInput (libFuzzer's interface). It is linked
 * with libFuzzer (make fuzz), or with replay.c, which runs it on files (make check). It must
 * depend only on the input, and must leave no files and no memory.
 *
 * A target takes all its choices, such as the sizes of pieces, from the bytes of the input with the
 * functions below. After the end of the input all numbers are 0.
 *
 * A function that failed has printed an error (diag_failed), one that succeeded has printed none. A
 * target begins with diag_renew if it looks at that.
 */
#ifndef ROCKSORT_FUZZ_INPUT_H
#define ROCKSORT_FUZZ_INPUT_H

#include "../unit/owned.h"

#include "util/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);      /* fuzz_messages.c */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

/* A target may define it. It is called once, before the first input. */
void fuzz_begin(void) __attribute__((weak));

/* Ends the program unless the condition holds. The fuzzer then keeps the input. */
#define FUZZ_CHECK(condition)                                                              \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            (void)dprintf(STDERR_FILENO, "%s:%d: %s does not hold\n", __FILE__, __LINE__,  \
                          #condition);                                                     \
            abort();                                                                       \
        }                                                                                  \
    } while (0)

struct fuzz_input {
    const uint8_t *at, *end;
};

static inline size_t fuzz_left(const struct fuzz_input *in)
{
    return (size_t)(in->end - in->at);
}

static inline uint8_t fuzz_u8(struct fuzz_input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

static inline uint16_t fuzz_u16(struct fuzz_input *in)
{
    uint32_t low = fuzz_u8(in);
    return (uint16_t)(low | (uint32_t)fuzz_u8(in) << 8);
}

static inline uint32_t fuzz_u32(struct fuzz_input *in)
{
    uint32_t low = fuzz_u16(in);
    return low | (uint32_t)fuzz_u16(in) << 16;
}

/* A number from 0 to n - 1; n is at most 256. */
static inline unsigned fuzz_below(struct fuzz_input *in, unsigned n)
{
    return fuzz_u8(in) % n;
}

static inline bool fuzz_one_in(struct fuzz_input *in, unsigned n)
{
    return fuzz_below(in, n) == n - 1;
}

/* Copies bytes of the input; zeros after its end. */
static inline void fuzz_fill(struct fuzz_input *in, uint8_t *out, size_t n)
{
    size_t have = fuzz_left(in) < n ? fuzz_left(in) : n;
    if (have > 0) memcpy(out, in->at, have);
    if (n > have) memset(out + have, 0, n - have);
    in->at += have;
}

/* Exactly n bytes (1 for 0), so that AddressSanitizer notices one byte too many. */
static inline void *fuzz_alloc(size_t n)
{
    void *mem = malloc(n ? n : 1);
    FUZZ_CHECK(mem);
    return mem;
}

static inline void *fuzz_copy(const void *bytes, size_t n)
{
    void *mem = fuzz_alloc(n);
    if (n > 0) memcpy(mem, bytes, n);
    return mem;
}

#endif
