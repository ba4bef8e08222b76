/*
 * stats_inserts.h -- counts insert sizes by orientation, for --stats. Without a limit (-i 0) sizes
 * may have any value: large ones are collected in a list, which is sorted and summed when it is
 * full.
 *
 * A struct stats_inserts starts as {0}. Threads: one at a time.
 */
#ifndef ROCKSORT_STATS_STATS_INSERTS_H
#define ROCKSORT_STATS_STATS_INSERTS_H

#include <stddef.h>
#include <stdint.h>

enum stats_orientation { STATS_INWARD, STATS_OUTWARD, STATS_OTHER_WAY, STATS_N_ORIENTATIONS };

struct stats_insert {
    uint32_t size;
    uint64_t n[STATS_N_ORIENTATIONS];
};

struct stats_inserts {
    uint64_t (*small)[STATS_N_ORIENTATIONS];    /* by size */
    struct stats_insert *large;                 /* sorted up to n_sorted */
    size_t n_large, room, n_sorted;
};

void stats_inserts_add(struct stats_inserts *inserts, uint32_t size, enum stats_orientation way);

/* Sums the sizes of n_all counters. Returns them sorted, and their number; some have no reads. The
   caller frees them. */
struct stats_insert *stats_inserts_list(const struct stats_inserts *const *all, size_t n_all,
                                        size_t *n);

void stats_inserts_release(struct stats_inserts *inserts);

#endif
