/*
 * read_ends_code.h -- read ends (read_ends.h) as few bytes. Those of ordinary pairs take some 20.
 *
 * A read ends is stored as its difference from the one before it, so read ends are decoded in the
 * order in which they were encoded, from the first one on. The caller verifies the bytes.
 *
 * Threads: one at a time for each coder.
 */
#ifndef ROCKSORT_MARKDUP_READ_ENDS_CODE_H
#define ROCKSORT_MARKDUP_READ_ENDS_CODE_H

#include "markdup/read_ends.h"

/* The most bytes that writing read ends may touch, and what must be readable after the last read
 * ends. */
enum { READ_ENDS_CODE_MAX_BYTES = 1024, READ_ENDS_CODE_SLACK_BYTES = 8 };

enum { READ_ENDS_NAME_MAX_BYTES = 255 };

struct read_ends_coder {
    /* of the read ends before */
    uint32_t index;
    int32_t ref;
    int64_t pos;
    size_t name_bytes;
    uint8_t name[READ_ENDS_NAME_MAX_BYTES + READ_ENDS_CODE_SLACK_BYTES];
};

/* Begins anew. The name need not be cleared. */
static inline void read_ends_coder_begin(struct read_ends_coder *coder)
{
    coder->index = 0;
    coder->ref = 0;
    coder->pos = 0;
    coder->name_bytes = 0;
}

/* Writes read ends and returns the end. It is shortest if its index is not below that of the read
   ends before. */
uint8_t *read_ends_encode(struct read_ends_coder *coder, const struct read_ends *ends,
                          uint8_t *out);

/* Reads read ends, and moves *at behind it. Its name points into the coder until the next call, the
   text of its barcode into the bytes. */
void read_ends_decode(struct read_ends_coder *coder, const uint8_t **at, struct read_ends *ends);

#endif
