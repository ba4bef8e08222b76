/*
 * picard_counts.h -- holds what --picard counts: sums and histograms of each cell, and bases and
 * qualities by cycle.
 *
 * A cell is a read group (read_groups.h; 0: none), or everything if no level needs read groups.
 * Metrics of a level are sums over cells. Cells and histograms only take memory for what occurs, so
 * that 100,000 read groups are possible.
 *
 * Order of calls: init; count; merge; release. One thread at a time for each struct. Nothing fails.
 */
#ifndef ROCKSORT_PICARD_PICARD_COUNTS_H
#define ROCKSORT_PICARD_PICARD_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- sums and histograms of a cell ---- */

enum picard_category { PICARD_FIRST, PICARD_SECOND, PICARD_UNPAIRED, PICARD_N_CATEGORIES };

enum picard_sum {
    SUM_TOTAL_READS,
    SUM_PF_READS,               /* PF: passed the vendor's filter (no QC fail) */
    SUM_PF_BASES,
    SUM_NOISE_READS,
    SUM_ADAPTER_READS,
    SUM_ALIGNED_READS,
    SUM_ALIGNED_BASES,
    SUM_HQ_READS,               /* HQ: mapping quality of at least 20 */
    SUM_HQ_BASES,
    SUM_HQ_Q20_BASES,
    SUM_MISMATCHES,
    SUM_HQ_MISMATCHES,
    SUM_INDELS,
    SUM_IN_PAIRS,
    SUM_IMPROPER,
    SUM_FORWARD,
    SUM_CHIMERAS,
    SUM_CHIMERA_CANDIDATES,
    SUM_SOFT_CLIPPED,
    SUM_HARD_CLIPPED,
    SUM_3PRIME_CLIPPED,
    SUM_3PRIME_READS,
    SUM_N_SUMS
};

enum picard_histogram {
    HISTOGRAM_LENGTH,
    HISTOGRAM_ALIGNED_LENGTH,
    HISTOGRAM_HQ_MISMATCHES,
    HISTOGRAM_BAD_CYCLES,
    HISTOGRAM_FR,
    HISTOGRAM_RF,
    HISTOGRAM_TANDEM,
    HISTOGRAM_GC_READS,         /* reads by GC of the window where they start */
    HISTOGRAM_GC_BASES,
    HISTOGRAM_GC_ERRORS,
    HISTOGRAM_GC_QUALITIES,
    HISTOGRAM_GC_TOTALS,        /* bin 0: clusters, bin 1: aligned reads */
};

/* A histogram in a cell; bins are added below. */
static inline uint64_t picard_key(uint32_t cell, enum picard_category category,
                                  enum picard_histogram histogram)
{
    return (uint64_t)cell << 38 | (uint64_t)category << 36 | (uint64_t)histogram << 32;
}

static inline uint32_t picard_key_cell(uint64_t key)
{
    return (uint32_t)(key >> 38);
}

struct picard_entry {
    uint64_t key, n;            /* n 0: empty */
};

struct picard_table {           /* a hash table; starts as {0} */
    struct picard_entry *at;
    size_t n, room;             /* room: a power of two, or 0 */
};

/* Adds n > 0 to a bin. */
void picard_table_add(struct picard_table *table, uint64_t key, uint64_t n);

/* ---- by cycle ---- */

enum { CYCLE_BLOCK = 32 };      /* cycles in a block; arrays are padded to whole blocks */
enum picard_base { BASE_A, BASE_C, BASE_G, BASE_T, N_BASES };

struct picard_cycles {          /* of first or of second reads; starts as {0} */
    size_t room;                /* cycles */
    uint64_t *bases[N_BASES];
    uint64_t *quals;            /* sums */
    uint64_t *n_reads;          /* [i]: of length i + 1 */
    uint64_t *n_with_quals;     /* of these, with qualities */
    uint64_t *original_quals, *n_original;      /* of OQ tags, likewise; NULL: there are none */
    /* Of the last n_few reads, not yet added to the sums above. */
    uint8_t *few[N_BASES];
    uint16_t *few_quals;
    unsigned n_few;
};

void picard_cycles_reserve(struct picard_cycles *cycles, size_t n_cycles);
void picard_cycles_reserve_original(struct picard_cycles *cycles);
void picard_cycles_flush(struct picard_cycles *cycles);

/* ---- all counts ---- */

enum {
    N_QUALITIES = 256,
    N_LANES = 4,                /* tables of qualities: equal neighbours need not wait */
};

struct picard_counts {
    uint64_t **sums;            /* [cell * PICARD_N_CATEGORIES + category]; NULL: no reads */
    size_t n_sums;              /* length of that array */
    uint32_t *used;             /* indexes of those that are not NULL */
    size_t n_used, used_room;
    struct picard_table table;
    struct picard_cycles cycles[2];
    uint64_t n_reads[2], n_bases[2];    /* for the yield: [1]: PF */
    uint64_t quals[2][N_LANES][N_QUALITIES];    /* of these bases; the sum over lanes counts */
    uint64_t yield_quals[2][N_QUALITIES];       /* what OQ tags change, modulo 2^64 */
    uint64_t no_call_quals[N_QUALITIES], original_quals[N_QUALITIES];
};

void picard_counts_init(struct picard_counts *counts, size_t n_cells);
void picard_counts_release(struct picard_counts *counts);

/* The sums of a category of a cell: SUM_N_SUMS numbers. */
uint64_t *picard_counts_sums(struct picard_counts *counts, uint32_t cell,
                             enum picard_category category);

/* Adds other counts, whose sums may move. */
void picard_counts_merge(struct picard_counts *counts, struct picard_counts *other);

#endif
