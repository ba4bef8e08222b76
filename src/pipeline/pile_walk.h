/*
 * pile_walk.h -- a walk over the blocks of a pile (pile.h) in one database, in the order of the
 * store: run by run, and within a run by index.
 *
 * Order of calls: init; for each database begin; then look, which returns 1 while there are blocks,
 * and after each look one of fetch, step and skip_run. release.
 * Ownership: the caller owns blocks and scans. Threads: only the dispatcher calls these functions.
 * Errors: -1 after a message.
 */
#ifndef ROCKSORT_PIPELINE_PILE_WALK_H
#define ROCKSORT_PIPELINE_PILE_WALK_H

#include "pipeline/segment.h"

/* What all piles of a sort took. */
struct pile_counts {
    uint64_t n_piles;           /* that were opened */
    uint64_t n_blocks;          /* that they returned */
    uint64_t n_reads;           /* of blocks: some are read more than once */
    uint64_t n_steps;           /* of scans to another entry of the store */
    uint64_t n_seeks;           /* of scans to another place */
    uint64_t n_gets;            /* of single entries by their keys */
};

struct pile_settings {
    struct crew *crew;
    struct segmenter *segmenter;
    struct run_scan *const *scans;      /* of all databases */
    size_t n_scans;
    const uint32_t *dropped_runs;       /* runs to leave out (resume.h) */
    size_t n_dropped;
    const struct sort_rules *rules;
    size_t most_bytes;          /* limit for open blocks; a few blocks may exceed it briefly */
    struct pile_counts *counts; /* what this pile takes is added */
};

struct pile_walk {
    struct pile_settings settings;
    uint8_t key[SORT_KEY_STORED_BYTES]; /* the stored key of the pile */
    struct temp_coder coder;
    struct run_scan *scan;
    /* the entry at which the scan is */
    const uint8_t *at;
    size_t at_bytes;
    uint32_t run;
    uint64_t index;             /* in the run, of the first record of the block */
};

/* key: the stored key of the pile, whose size is SORT_KEY_STORED_BYTES. */
void pile_walk_init(struct pile_walk *walk, const struct pile_settings *settings,
                    const uint8_t *key);
void pile_walk_release(struct pile_walk *walk);

/* Goes to the pile's first block in a database. Returns 0 or -1. */
int pile_walk_begin(struct pile_walk *walk, struct run_scan *scan);

/* Sets run and index to those of the block at the scan's position; at a later part of a block
   (bam_block.h) to those of that block. Returns 1, 0 after the pile, or -1. */
int pile_walk_look(struct pile_walk *walk);

/* Reads and opens the block at the scan's position, and moves past it. NULL on failure. */
struct open_block *pile_walk_fetch(struct pile_walk *walk);

/* Moves past one entry of the store. */
void pile_walk_step(struct pile_walk *walk);

/* Moves to the next run. Returns 0 or -1. */
int pile_walk_skip_run(struct pile_walk *walk);

/* Reads and opens the block of a run whose first record has this index, wherever the scan is.
   Returns 1, 0 if there is none, or -1. */
int pile_walk_get(struct pile_walk *walk, struct run_scan *scan, uint32_t run, uint64_t index,
                  struct open_block **block);

/* Drops a block. */
void pile_walk_drop(const struct pile_walk *walk, struct open_block *block);

#endif
