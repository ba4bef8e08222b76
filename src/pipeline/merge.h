/*
 * merge.h -- what dispatcher, writer and the workers of the merge phase share.
 *
 * merge.c      dispatcher and writer: takes blocks, cuts segments, writes them in order
 * segment.c    jobs: opens blocks, merges and deflates segments
 *
 * A segment needs the blocks that overlap it to be open. Blocks and segments are numbered as they
 * are taken and cut, and a segment is handed to a worker when all blocks up to the last one that it
 * may need are open. A block is freed when the last segment that holds a part of it is done.
 */
#ifndef ROCKSORT_PIPELINE_MERGE_H
#define ROCKSORT_PIPELINE_MERGE_H

#include "output/bam_index.h"
#include "pipeline/feed.h"
#include "pipeline/pipeline_internal.h"
#include "store/bam_block.h"

struct open_block {
    struct merger *merger;
    struct open_block *next_unopened;
    unsigned n_users;           /* under the lock: the live list and segments */
    bool opened;                /* under the lock */
    size_t n_bytes;             /* counted in merger->block_bytes */
    /* until opened */
    const char *dir;            /* where it comes from, for messages */
    uint8_t *value;
    size_t value_bytes;
    struct bam_block block;
    uint64_t raw_bytes;
    /* fixed */
    uint8_t *last_bound;
    size_t last_bound_bytes;
    /* set by opening */
    uint8_t *raw;
    uint8_t *keyed;
    struct merge_source source; /* run and first_index are set from the start */
};

struct bound {                  /* a key is NULL before all records as low, behind all as high */
    uint8_t *key;
    size_t n_bytes;
};

struct segment {
    struct merger *merger;
    struct segment *next;       /* in the list of those that wait for blocks */
    uint64_t n_blocks_needed;   /* all blocks before this number must be open */
    struct bound low, high;
    struct open_block **blocks; /* in the order of run and index */
    size_t n_blocks;
    uint8_t *out;
    size_t out_bytes, out_room;
    struct bam_index_part part; /* of the index, if one is written */
    uint64_t n_records, raw_bytes;      /* in it */
    bool done;                  /* under the lock */
};

struct merger {
    struct pipeline *p;
    enum sort_order order;
    const htsFormat *format;    /* of the output */
    struct bam_writer *writer;
    pthread_t pump_thread;      /* CRAM only */
    bool pump_runs;
    struct feeders *feeders;    /* NULL: all is in memory */
    /* batches in memory */
    struct merge_source *kept;
    size_t n_kept;
    struct cut_place *places;
    size_t n_places, next_place;
    struct merge_bound place;   /* of the next one */
    /* dispatcher only */
    struct open_block **live;   /* open blocks not wholly below the last cut, by run and index */
    size_t n_live, live_room;
    uint64_t n_taken;           /* blocks */
    size_t gathered_bytes;      /* taken since the last cut */
    size_t place_bytes;         /* ... of which from batches */
    struct bound last_cut;
    size_t limit_bytes;         /* of block_bytes */
    _Atomic size_t out_bytes_hint;      /* what a segment's output may take, from those before */
    /* under the lock */
    size_t block_bytes;         /* memory of blocks */
    struct open_block *unopened, **last_unopened;
    uint64_t n_opened;          /* all blocks before this number are open */
    struct segment *waiting, **last_waiting;
    struct segment **ring;      /* segments that are cut and not written, by number */
    uint64_t n_cut, n_written;
    bool all_cut;
};

/* segment.c */

/* Job: opens a block (struct open_block) and hands out the segments that become ready by it. */
void open_block_job(struct pipeline *p, struct worker *worker, void *block);

/* Hands all segments whose blocks are open to workers. Returns 0, or -1 after a message. */
int submit_ready_segments(struct merger *m);

/* With the lock held, or all threads done: one user of the block less; the last one frees it. */
void drop_block(struct merger *m, struct open_block *block);

/* Frees a block that nobody has seen yet. */
void free_block(struct open_block *block);
void free_segment(struct segment *segment);

#endif
