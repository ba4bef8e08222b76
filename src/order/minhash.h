/*
 * minhash.h -- makes the keys of the minimiser order: option -M (with -K, -R, -H and -I) of
 * samtools sort 1.24.
 *
 * Placed records (reference 0 and up) come first, by coordinate. The other records, the tail, are
 * ordered by their sequence, so that similar records lie together and compress well. A k-mer is k
 * bases of 2 bits each, the first base highest, XORed with a constant. The smallest k-mer of a read
 * on either strand is its minimiser. If it is on the other strand, the record is
 * reverse-complemented. The order is by the minimiser, then by its position in the read. With an
 * index (minhash_index.h) the order is by the position in the reference at which the read would
 * begin; k-mers that are unique in the reference are preferred to repeated ones, and these to
 * k-mers that are not in the index.
 *
 * For each record of the tail, in this order: minhash_apply changes the record to its final form
 * and computes its value; minhash_key_encode makes the key; minhash_stash hides the value in the
 * record if the key is needed again, because a second minhash_apply would give another value;
 * minhash_recall reads the value, any number of times, and minhash_unstash restores the final form.
 * The final form has no position, mate's position or template length, as in samtools.
 *
 * Placed records stay unchanged and have the coordinate key. Keys of both kinds are in memcmp order
 * and prefix-free. Records must be checked (bam_check.h) and belong to the caller. Nothing can
 * fail. Any thread, on different records.
 */
#ifndef ROCKSORT_ORDER_MINHASH_H
#define ROCKSORT_ORDER_MINHASH_H

#include "bam/bam_fields.h"
#include "order/minhash_index.h"

enum {
    MINHASH_K = 20,             /* default of -K */
    MINHASH_KEY_BYTES = 14,     /* size of the key of a record of the tail */
};

struct minhash_settings {
    int k;                              /* MINHASH_K_MIN .. MINHASH_K_MAX */
    bool forward_only;                  /* -R: never reverse-complement */
    bool squeeze;                       /* -H: a run of one base counts as one base */
    const struct minhash_index *index;  /* -I, loaded with the same k and squeeze; or NULL */
};

struct minhash_value {          /* sorted by value, then by descending lead */
    uint64_t value;             /* below 2^62 */
    uint32_t lead;              /* below 2^17: how far to the left in the read the minimiser is */
};

static inline bool minhash_is_tail(const uint8_t *rec)
{
    return bam_record_tid(rec) < 0;
}

/*
 * Computes the value of a record of the tail. Reverse-complements the record if the minimiser is on
 * the other strand: this changes sequence, qualities and flag 0x10, but not CIGAR and tags. Sets
 * position and mate's position to -1 and the template length to 0.
 */
void minhash_apply(const struct minhash_settings *settings, uint8_t *rec,
                   struct minhash_value *value);

/* Writes the key of a record in its final form to out. Returns its size, MINHASH_KEY_BYTES. */
size_t minhash_key_encode(const struct minhash_value *value, const uint8_t *rec, uint8_t *out);

void minhash_stash(uint8_t *rec, const struct minhash_value *value);
void minhash_recall(const uint8_t *rec, struct minhash_value *value);
void minhash_unstash(uint8_t *rec);

#endif
