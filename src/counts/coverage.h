/*
 * coverage.h -- how well each reference is covered, printed as `samtools coverage` 1.24 does
 * without options.
 *
 * What samtools counts: records with a reference that are neither unmapped, secondary, failed nor
 * duplicates. A base of them covers its position if its operation in the CIGAR is M, = or X, and
 * the position lies on the reference. All numbers but one are sums over records. The exception is
 * the number of positions that are covered at all: it is the length of the union of all these
 * stretches.
 *
 * A worker makes a part of each segment of the output. It knows the union of the segment's own
 * records, as a list of intervals. Records of earlier segments may reach into the segment, and its
 * own records into later ones, so coverage_join puts the edges together, in the order of the
 * segments: it looks at those intervals that begin before the reach of earlier records, and keeps
 * those that end after the last record begins. All others are only a number for it.
 *
 * Order of calls: create. For each segment, in any thread: part_create, part_add for each record in
 * coordinate order, part_end. In the order of the segments: join. finish, print, destroy.
 * Memory: 56 bytes for each reference that has records; 16 bytes for each interval. A segment has
 * at most as many intervals as its CIGARs have operations; between segments those stay that end
 * after the last record begins.
 * Threads: a part has one owner at a time, and so has the sum. No errors.
 */
#ifndef ROCKSORT_COUNTS_COVERAGE_H
#define ROCKSORT_COUNTS_COVERAGE_H

#include "bam/bam_fields.h"

#include <stdio.h>

struct coverage;
struct coverage_part;

/* The header must stay as it is as long as parts are made. */
struct coverage *coverage_create(const sam_hdr_t *header);

/* NULL is accepted. */
void coverage_destroy(struct coverage *sum);

struct coverage_part *coverage_part_create(const struct coverage *sum);

/* NULL is accepted. */
void coverage_part_destroy(struct coverage_part *part);

/* Adds a checked record, which does not come before the last one in coordinate order. */
void coverage_part_add(struct coverage_part *part, const uint8_t *rec);

/* After the last record. */
void coverage_part_end(struct coverage_part *part);

void coverage_join(struct coverage *sum, const struct coverage_part *part);

/* After the last join. */
void coverage_finish(struct coverage *sum);

void coverage_print(const struct coverage *sum, FILE *to);

#endif
