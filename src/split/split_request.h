/*
 * split_request.h -- what the argument of --split-by asks for.
 *
 * Any thread.
 */
#ifndef ROCKSORT_SPLIT_SPLIT_REQUEST_H
#define ROCKSORT_SPLIT_SPLIT_REQUEST_H

#include <stdbool.h>

enum split_kind {
    SPLIT_NONE,
    SPLIT_CONTIG,               /* a piece for each reference */
    SPLIT_BED,                  /* a piece for each name in a BED file */
    SPLIT_RANGES,               /* so many pieces of about the same size, by position */
    SPLIT_READ_GROUP,           /* a piece for each read group */
    SPLIT_TAG,                  /* a piece for each value of a tag */
};

enum { SPLIT_MOST_PIECES = 100000 };

struct split_request {
    enum split_kind kind;
    const char *bed;            /* SPLIT_BED: the file; borrowed from the argument */
    unsigned n_ranges;          /* SPLIT_RANGES */
    char tag[2];                /* SPLIT_TAG, SPLIT_READ_GROUP */
};

/* Takes the argument apart. Returns 0, or -1 after a message. */
int split_request_parse(const char *text, struct split_request *request);

/* True if pieces are parts of the genome, false if they are values of a tag. */
static inline bool split_is_by_place(enum split_kind kind)
{
    return kind == SPLIT_CONTIG || kind == SPLIT_BED || kind == SPLIT_RANGES;
}

static inline bool split_is_by_tag(enum split_kind kind)
{
    return kind == SPLIT_READ_GROUP || kind == SPLIT_TAG;
}

#endif
