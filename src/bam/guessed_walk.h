/*
 * guessed_walk.h -- walks the records in a stretch of BAM before it is known where its first record
 * begins.
 *
 * The guess is the first place where a plausible record lies; the stretch is walked from there.
 * Later another walk begins where the first record really begins. If it reaches the place of the
 * guess, both walks go on alike, and the rest need not be walked again, for which it would have to
 * come back into the cache. If it does not, the guess was wrong and is not used.
 *
 * Pure; any thread.
 */
#ifndef ROCKSORT_BAM_GUESSED_WALK_H
#define ROCKSORT_BAM_GUESSED_WALK_H

#include "bam/bam_fields.h"

struct guessed_walk {
    size_t from;                /* offset in the stretch of the first record */
    size_t to;                  /* of the end of the last whole record; equal to `from`: no guess */
    size_t n_records;
};

/* Walks the n_bytes of a stretch. */
void guessed_walk_make(struct guessed_walk *guess, const uint8_t *stretch, size_t n_bytes);

/* True if the walk, which goes through the stretch, has come to where the guess begins. */
static inline bool guessed_walk_is_met(const struct guessed_walk *guess, const uint8_t *stretch,
                                       const struct bam_walk *walk)
{
    return walk->at == stretch + guess->from && guess->n_records > 0;
}

/* Walks on to the end, by the guess where the walk meets it. Returns the number of whole records.
   */
size_t guessed_walk_go(const struct guessed_walk *guess, const uint8_t *stretch,
                       struct bam_walk *walk);

#endif
