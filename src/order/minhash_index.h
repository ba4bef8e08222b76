/*
 * minhash_index.h -- loads the minimisers of a FASTA file and looks up their positions: option -I
 * of the minimiser order (minhash.h, which defines k-mers).
 *
 * The index has the smallest k-mer of each window of the reference. A k-mer that is the smallest of
 * several windows is repeated, and the index keeps its last position ("place"). Places count bases
 * from the first base of the first sequence. Sequences shorter than the window are skipped and not
 * counted.
 *
 * The caller of minhash_index_load owns the index. It never changes, so any thread may use it. Only
 * loading can fail, after a message.
 */
#ifndef ROCKSORT_ORDER_MINHASH_INDEX_H
#define ROCKSORT_ORDER_MINHASH_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MINHASH_K_MIN = 1,
    MINHASH_K_MAX = 31,
    MINHASH_WINDOW = 100,       /* default of -w */
};

/* ---- k-mers ---- */

/* "No k-mer". Greater than every k-mer, because these have 2k <= 62 bits. */
#define MINHASH_NO_KMER UINT64_MAX

/* Returns the code of a BAM base (0 to 15) on the strand of the read; minhash_complement_code on
   the other strand. A base other than A, C, G and T counts as A on both. */
static inline uint64_t minhash_code(uint32_t base)
{
    static const uint8_t codes[16] = {[1] = 0, [2] = 1, [4] = 2, [8] = 3};
    return codes[base];
}

static inline uint64_t minhash_complement_code(uint32_t base)
{
    static const uint8_t codes[16] = {[1] = 3, [2] = 2, [4] = 1, [8] = 0};
    return codes[base];
}

/* Returns base i of a sequence in BAM. The first of two bases is in the upper half of a byte. */
static inline uint32_t minhash_base(const uint8_t *seq, size_t i)
{
    return seq[i >> 1] >> (~i & 1) * 4 & 15;
}

static inline uint64_t minhash_mask(int k)
{
    return (UINT64_C(1) << 2 * k) - 1;
}

/* K-mers are XORed with this; otherwise k-mers that repeat one base would be the smallest. */
static inline uint64_t minhash_scramble(int k)
{
    return UINT64_C(0xdead7878beef7878) & minhash_mask(k);
}

/* ---- the index ---- */

enum minhash_found {
    MINHASH_ABSENT,
    MINHASH_REPEATED,
    MINHASH_UNIQUE,
};

enum { MINHASH_FILTER_BITS = 16 };

struct minhash_slot {
    uint64_t kmer;              /* the k-mer plus 1; 0 is a free slot */
    uint64_t place;             /* twice the place, plus 1 if the k-mer is repeated */
};

struct minhash_index {          /* for the functions of this module only */
    struct minhash_slot *slots;
    int slot_bits;              /* there are 2^slot_bits slots */
    size_t n_kmers;
    int filter_shift;
    uint64_t filter[(1 << MINHASH_FILTER_BITS) / 64];
    uint64_t no_kmer_place;     /* place of the last window without a k-mer; 0: none */
};

/* Reads a FASTA file, plain or compressed with gzip or bgzip. A window of fewer than k bases gives
   an index without k-mers, as in samtools. With squeeze a run of one base counts as one base.
   Returns NULL after a message. */
struct minhash_index *minhash_index_load(const char *fasta, int k, int window, bool squeeze);
void minhash_index_destroy(struct minhash_index *index);

/* Returns the memory that the index takes. */
size_t minhash_index_bytes(const struct minhash_index *index);

/* Returns the slot at which the search for a k-mer begins. */
static inline size_t minhash_index_hash(const struct minhash_index *index, uint64_t kmer)
{
    return (size_t)(kmer * UINT64_C(0x9e3779b97f4a7c15) >> (64 - index->slot_bits));
}

/* Returns the slot of a k-mer, or the free slot for it. */
static inline struct minhash_slot *minhash_index_slot(const struct minhash_index *index,
                                                      uint64_t kmer)
{
    size_t last = ((size_t)1 << index->slot_bits) - 1;
    size_t at = minhash_index_hash(index, kmer);
    while (index->slots[at].kmer != 0 && index->slots[at].kmer != kmer + 1) at = (at + 1) & last;
    return &index->slots[at];
}

/* False if the index does not have the k-mer; a quick filter. The smallest k-mers of windows are
   mostly small numbers: one bit for each value of the first 16 bits rejects most other k-mers, and
   all these bits stay in the first-level cache. */
static inline bool minhash_index_may_have(const struct minhash_index *index, uint64_t kmer)
{
    uint64_t prefix = kmer >> index->filter_shift;
    return index->filter[prefix / 64] >> prefix % 64 & 1;
}

/* Prefetches the memory that minhash_index_find will read. */
static inline void minhash_index_prefetch(const struct minhash_index *index, uint64_t kmer)
{
    __builtin_prefetch(&index->slots[minhash_index_hash(index, kmer)]);
}

/* Looks up a k-mer; sets *place if the index has it. */
static inline enum minhash_found minhash_index_find(const struct minhash_index *index,
                                                    uint64_t kmer, uint64_t *place)
{
    const struct minhash_slot *slot = minhash_index_slot(index, kmer);
    if (slot->kmer == 0) return MINHASH_ABSENT;
    *place = slot->place >> 1;
    return slot->place & 1 ? MINHASH_REPEATED : MINHASH_UNIQUE;
}

#endif
