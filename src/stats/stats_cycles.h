/*
 * stats_cycles.h -- counts the bases and the qualities of reads by cycle, for --stats: the number
 * of the base in the order of sequencing, which for a read on the reverse strand is the opposite
 * order of the record.
 *
 * A struct stats_cycles starts as {0}. One thread at a time adds to it; the functions that read it
 * are for the end.
 *
 * Memory: at most 1 KiB for each of the first 8,192 cycles of the longest read and each fragment;
 * for each other one 112 bytes, and 256 more where some quality has come 256 times. With qualities
 * of 64 or more it is twice as much.
 */
#ifndef ROCKSORT_STATS_STATS_CYCLES_H
#define ROCKSORT_STATS_STATS_CYCLES_H

#include "bam/bam_fields.h"

/* Reads without a mate count as first. */
enum stats_fragment { STATS_FIRST, STATS_LAST, STATS_N_FRAGMENTS };

enum stats_base { STATS_A, STATS_C, STATS_G, STATS_T, STATS_N, STATS_OTHER, STATS_N_BASES };

enum { STATS_N_QUALS = 256 };   /* 255: the read has no qualities */

enum cycle_pairing { PAIRS_FORWARD, PAIRS_REVERSE_EVEN, PAIRS_REVERSE_ODD, N_PAIRINGS };
enum { N_BASE_PAIRS = STATS_N_BASES * STATS_N_BASES };

struct fragment_cycles {
    size_t n_cycles;            /* for which there is room */
    /* Two bases are one byte of the record, and are counted together in reads that are not long.
       [i]: the pair number i of forward reads; of reverse reads of even or odd length, counted from
       the end. */
    size_t n_paired;            /* cycles for which there is room */
    uint32_t (*pairs[N_PAIRINGS])[N_BASE_PAIRS];
    uint32_t (*single[2])[STATS_N_BASES];       /* other bases; by strand */
    /* [cycle * n_columns + quality]: a count is small + 256 * wraps. Most of the time only small
       ones change, which take a line of the cache for each cycle. */
    uint8_t *quals;
    uint32_t *qual_wraps;
    size_t n_columns;           /* a power of two */
    uint32_t *without_quals;    /* reads, by number of bases */
};

struct stats_cycles {
    struct fragment_cycles fragments[STATS_N_FRAGMENTS];
};

/* Adds a record with bases. Returns how many of them are G or C. */
uint32_t stats_cycles_add(struct stats_cycles *cycles, enum stats_fragment fragment,
                          const uint8_t *rec);

/* Adds the counts of a cycle, from 0: of forward (0) or reverse (1) reads, as they are in records;
   by quality, without those of reads that have none. */
void stats_cycles_bases(const struct fragment_cycles *cycles, int strand, size_t cycle,
                        uint64_t sums[STATS_N_BASES]);
void stats_cycles_quals(const struct fragment_cycles *cycles, size_t cycle,
                        uint64_t sums[STATS_N_QUALS]);

void stats_cycles_release(struct stats_cycles *cycles);

#endif
