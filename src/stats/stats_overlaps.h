/*
 * stats_overlaps.h -- removes the overlaps of mates from the depths, for --stats='-p FILE'.
 *
 * The spans of the first mate are kept by its name; those of the second are cut. Records come in
 * order. As in samtools, all names are forgotten at the end of a reference, and those whose spans
 * have ended when there are more than 10,000.
 *
 * Order of calls: create; begin, spans, end for each record; destroy. One thread.
 */
#ifndef ROCKSORT_STATS_STATS_OVERLAPS_H
#define ROCKSORT_STATS_STATS_OVERLAPS_H

#include <stdbool.h>
#include <stdint.h>

struct stats_mate {             /* of a record */
    uint64_t name;              /* its hash */
    int number;                 /* 1 or 2; 0: it cannot overlap its mate */
};

struct stats_overlaps;

struct stats_overlaps *stats_overlaps_create(void);

void stats_overlaps_begin(struct stats_overlaps *overlaps, int32_t tid, int64_t pos);

/* Calls add for each part of [begin, end) that the mate does not cover. */
void stats_overlaps_span(struct stats_overlaps *overlaps, const struct stats_mate *mate,
                         const int64_t span[2],
                         void (*add)(void *arg, int64_t begin, int64_t end), void *arg);

void stats_overlaps_end(struct stats_overlaps *overlaps, const struct stats_mate *mate);

/* How many positions of spans were not added. */
uint64_t stats_overlaps_removed(const struct stats_overlaps *overlaps);

/* Accepts NULL. */
void stats_overlaps_destroy(struct stats_overlaps *overlaps);

#endif
