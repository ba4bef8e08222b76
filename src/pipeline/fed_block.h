/*
 * fed_block.h -- a block on its way from the store to the merge.
 *
 * Order of calls: find, with the scan at a block; then fetch or skip, which move the scan to the
 * next block; then free. The caller owns the block, and the block owns its value.
 * Threads: one at a time for each block and each scan.
 */
#ifndef ROCKSORT_PIPELINE_FED_BLOCK_H
#define ROCKSORT_PIPELINE_FED_BLOCK_H

#include "order/slice_merge.h"
#include "store/run_store.h"

struct fed_block {
    struct fed_block *next;
    const char *dir;            /* directory that it is read from, for messages */
    uint8_t *value;             /* from malloc; code that takes it over sets this to NULL */
    size_t value_bytes;         /* known from the start */
    size_t key_bytes;
    uint8_t key[];
};

/* Makes the block at the scan's position, without its value. key: from run_scan_key. */
struct fed_block *fed_block_find(struct run_scan *scan, const uint8_t *key, size_t key_bytes);

/* Reads the value with all its parts (bam_block.h). If a part is missing, the value is too short
   and will not parse. Returns 0, or -1 after a message. */
int fed_block_fetch(struct fed_block *block, struct run_scan *scan);

/* Moves the scan to the next block without reading the value. Returns 0, or -1 after a message. */
int fed_block_skip(const struct fed_block *block, struct run_scan *scan);

/* True if the block belongs to one of these n runs, which are to be left out. */
bool fed_block_is_dropped(const struct fed_block *block, const uint32_t *runs, size_t n);

/* The bound of its first record. */
static inline struct merge_limit fed_block_first(const struct fed_block *block)
{
    return (struct merge_limit){block->key, block->key_bytes};
}

/* Print that a run in this directory fails its checksum, or that an entry there is not a block.
   Return -1. */
int fed_block_report_run(const char *dir, uint32_t run);
int fed_block_report_entry(const char *dir);

/* NULL is accepted. */
void fed_block_free(struct fed_block *block);

#endif
