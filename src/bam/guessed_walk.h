/*
 * guessed_walk.h -- walks the records in a stretch of BAM of which nobody knows yet where its first
 * record begins.
 *
 * The first place at which a plausible record lies is taken for a beginning. A walk from there
 * meets the same records as one that began before and comes by. So who knows where the records
 * begin walks up to the guess. If the walk comes by, the guess was right, and the rest need not be
 * walked: it is out of the cache by then. If the walk does not come by, only time was lost.
 *
 * Pure functions; any thread.
 */
#ifndef ROCKSORT_BAM_GUESSED_WALK_H
#define ROCKSORT_BAM_GUESSED_WALK_H

#include "bam/bam_fields.h"

struct guessed_walk {
    size_t from;                /* offset in the stretch of the first record */
    size_t to;                  /* of the end of the last whole record; equal to `from`: no guess */
    size_t n_records;
    size_t max_bytes;           /* of a record */
};

/* Walks the n_bytes of a stretch. */
void guessed_walk_make(struct guessed_walk *guess, const uint8_t *stretch, size_t n_bytes);

/* True if the walk, which goes through the stretch, has come to where the guess begins. */
static inline bool guessed_walk_is_met(const struct guessed_walk *guess, const uint8_t *stretch,
                                       const struct bam_walk *walk)
{
    return walk->at == stretch + guess->from && guess->n_records > 0;
}

#endif
