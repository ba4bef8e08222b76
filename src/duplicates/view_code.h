/*
 * view_code.h -- views (duplicate_view.h) as few bytes. Those of ordinary pairs take some 20.
 *
 * A view is stored as its difference from the one before it, so views are decoded in the order in
 * which they were encoded, from the first one on. The caller verifies the bytes.
 *
 * Threads: one at a time for each coder.
 */
#ifndef ROCKSORT_DUPLICATES_VIEW_CODE_H
#define ROCKSORT_DUPLICATES_VIEW_CODE_H

#include "duplicates/duplicate_view.h"

/* The most bytes that writing a view may touch, and what must be readable after the last view. */
enum { VIEW_CODE_MAX_BYTES = 1024, VIEW_CODE_SLACK_BYTES = 8 };

enum { VIEW_NAME_MAX_BYTES = 255 };

struct view_coder {
    /* of the view before */
    uint32_t index;
    int32_t ref;
    int64_t pos;
    size_t name_bytes;
    uint8_t name[VIEW_NAME_MAX_BYTES + VIEW_CODE_SLACK_BYTES];
};

/* Begins anew. The name need not be cleared. */
static inline void view_coder_begin(struct view_coder *coder)
{
    coder->index = 0;
    coder->ref = 0;
    coder->pos = 0;
    coder->name_bytes = 0;
}

/* Writes a view and returns the end. It is shortest if its index is not below that of the view
   before. */
uint8_t *view_encode(struct view_coder *coder, const struct duplicate_view *view, uint8_t *out);

/* Reads a view, and moves *at behind it. Its name points into the coder until the next call, the
   text of its barcode into the bytes. */
void view_decode(struct view_coder *coder, const uint8_t **at, struct duplicate_view *view);

#endif
