/*
 * read_ends_code.h -- compresses read ends (read_ends.h): usual pairs take some 20 bytes.
 *
 * Each item is stored as the difference from the item before it, so read ends are decoded in the
 * order in which they were encoded, from the first one on. The caller verifies the bytes.
 *
 * Threads: one at a time for each coder.
 */
#ifndef ROCKSORT_MARKDUP_READ_ENDS_CODE_H
#define ROCKSORT_MARKDUP_READ_ENDS_CODE_H

#include "markdup/read_ends.h"

/* How many bytes read_ends_encode may touch; and how many must be readable after the last item. */
enum { READ_ENDS_CODE_MAX_BYTES = 1024, READ_ENDS_CODE_SLACK_BYTES = 8 };

enum { READ_ENDS_NAME_MAX_BYTES = 255 };

struct read_ends_coder {
    /* of the previous item */
    uint32_t index;
    int32_t ref;
    int64_t pos;
    size_t name_bytes;
    uint8_t name[READ_ENDS_NAME_MAX_BYTES + READ_ENDS_CODE_SLACK_BYTES];
};

/* Begins a new sequence. The name need not be cleared. */
static inline void read_ends_coder_begin(struct read_ends_coder *coder)
{
    coder->index = 0;
    coder->ref = 0;
    coder->pos = 0;
    coder->name_bytes = 0;
}

/* Writes an item and returns its end. The code is shortest if indexes do not decrease. */
uint8_t *read_ends_encode(struct read_ends_coder *coder, const struct read_ends *ends,
                          uint8_t *out);

/* Reads an item and moves *at to its end. The name points into the coder and is valid until the
   next call; the text of the barcode points into the bytes. */
void read_ends_decode(struct read_ends_coder *coder, const uint8_t **at, struct read_ends *ends);

#endif
