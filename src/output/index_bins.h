/*
 * index_bins.h -- what an index knows about one reference: its bins, chunks and windows. Makes the
 * reference's part of the index file from them (bam_index.h).
 *
 * Order of calls: create; then for each reference that has records begin, add_counts, add_chunk and
 * add_windows in file order, finish. Destroy at any time.
 *
 * Memory: 40 bytes for each chunk, 48 for each bin, 8 for each window. The next reference uses the
 * same memory again.
 * Threads: one at a time.
 */
#ifndef ROCKSORT_OUTPUT_INDEX_BINS_H
#define ROCKSORT_OUTPUT_INDEX_BINS_H

#include "output/bam_index_part.h"

#include <stdbool.h>

struct index_bins;

struct index_bytes {            /* starts as {0}; the owner frees `bytes` */
    uint8_t *bytes;
    size_t n, room;
};

/* Makes room for n_more bytes. Returns where they go. */
uint8_t *index_bytes_reserve(struct index_bytes *to, size_t n_more);

/* Makes the bins for an index file of this shape. is_csi: CSI, not BAI. */
struct index_bins *index_bins_create(const struct bam_index_shape *shape, bool is_csi);

/* Accepts NULL. */
void index_bins_destroy(struct index_bins *bins);

/* Begins a reference, whose first record is at `begin` in the file. */
void index_bins_begin(struct index_bins *bins, uint64_t begin);

void index_bins_add_counts(struct index_bins *bins, uint64_t n_mapped, uint64_t n_unmapped);

/* Add a chunk, or windows, of a segment at `base` in the file. */
void index_bins_add_chunk(struct index_bins *bins, const struct bam_index_chunk *chunk,
                          uint64_t base);
void index_bins_add_windows(struct index_bins *bins, const struct bam_index_windows *windows,
                            uint64_t base);

/* Ends the reference, whose last record ends at `end` in the file, and appends what the index file
   says about it. */
void index_bins_finish(struct index_bins *bins, uint64_t end, struct index_bytes *to);

#endif
