/*
 * segment.h -- the workers' half of the merge: blocks are opened, segments merged and deflated.
 *
 * The dispatcher (merge.h) takes blocks in the order of their first keys and has each opened. It
 * cuts segments, and a segment needs the blocks that overlap it to be open. Both are numbered as
 * they come. A segment is handed to a worker when all blocks up to the last one that it may need
 * are open. A block is freed when the last segment that holds a part of it is done.
 *
 * Threads: functions by the dispatcher, unless said otherwise.
 */
#ifndef ROCKSORT_PIPELINE_SEGMENT_H
#define ROCKSORT_PIPELINE_SEGMENT_H

#include "bam/content_sum.h"
#include "output/bam_index.h"
#include "pipeline/crew.h"
#include "pipeline/fed_block.h"

struct segmenter;

struct segment_settings {
    struct crew *crew;
    const struct sort_rules *rules;
    sam_hdr_t *header;          /* of the output */
    const htsFormat *format;    /* likewise */
    int level;                  /* likewise; -1: default */
    struct bam_index *index;    /* likewise; NULL: no part of it is made here */
    const struct merge_source *kept;    /* batches in memory: part of every segment */
    size_t n_kept;
};

struct open_block;

/* A bound (slice_merge.h) in memory of its own. Key NULL stands before all records as a low end,
   after all as a high one. */
struct bound {
    uint8_t *key;
    size_t n_bytes;
    const uint8_t *record;
    struct open_block *holder;  /* has the record, with one user more; NULL: the record outlives
                                   the merge, or there is none */
};

/* Makes a copy of a bound. Takes the lock if there is a holder. */
struct bound bound_copy(const struct merge_limit *limit, struct open_block *holder);

/* With the lock held, or all threads done. */
void bound_release(struct bound *bound);

static inline struct merge_limit bound_limit(const struct bound *bound)
{
    return (struct merge_limit){bound->key, bound->n_bytes, bound->record};
}

struct open_block {
    struct segmenter *segmenter;
    struct open_block *next_unopened;
    unsigned n_users;           /* under the lock: the dispatcher's list and segments */
    bool opened;                /* under the lock */
    size_t n_bytes;             /* of memory */
    const char *dir;            /* where it comes from, for messages */
    uint8_t *value;             /* as it was stored; NULL once it is open */
    size_t value_bytes;
    size_t raw_bytes;
    uint64_t number;            /* for the dispatcher's use */
    struct bound last;          /* of its last record; the record only by segmenter_load_block */
    uint8_t *raw, *keyed;       /* set by opening, as are the source's entries */
    struct merge_source source; /* run and first_index are set from the start */
};

struct segment {
    struct segmenter *segmenter;
    struct segment *next;       /* in the list of those that wait for blocks */
    uint64_t n_blocks_needed;   /* all blocks before this number must be open */
    struct bound low, high;
    struct open_block **blocks; /* in the order of run and index */
    size_t n_blocks;
    uint8_t *out;
    size_t out_bytes, out_room;
    struct bam_index_part part; /* of the index, if one is written */
    uint64_t n_records, raw_bytes;      /* in it */
    size_t expected_bytes;      /* for the dispatcher's use: about as many as its records have */
    bool done;                  /* under the lock */
};

struct segmenter *segmenter_create(const struct segment_settings *settings);

/* With all jobs done. NULL is accepted. */
void segmenter_destroy(struct segmenter *s);

/* Takes a block from a feeder and has it opened. Returns it with one user, the caller; NULL after a
   message that it is damaged. */
struct open_block *segmenter_open_block(struct segmenter *s, struct fed_block *fed);

/* The same, but opens it in the calling thread. */
struct open_block *segmenter_load_block(struct segmenter *s, struct fed_block *fed,
                                        struct temp_coder *coder);

/* Makes a segment of all records from low (included) to high (not included): parts of n blocks, of
   which each gets one user more, and of the batches in memory. It is not merged before
   segmenter_merge. */
struct segment *segment_create(struct segmenter *s, const struct bound *low,
                               const struct bound *high, struct open_block *const *blocks,
                               size_t n);

/* Has the segment merged when its blocks are open. Returns 0, or -1 after a message. */
int segmenter_merge(struct segmenter *s, struct segment *segment);

/* Memory of all blocks. With the lock held, by any thread. */
size_t segmenter_block_bytes(const struct segmenter *s);

/* With the lock held, or all threads done: one user of the block less; the last one frees it. */
void segmenter_drop_block(struct open_block *block);

/* By the thread that has the segment; its blocks are dropped before, or by segment_drop_blocks. */
void segment_destroy(struct segment *segment);

/* After a failure, with all threads done. */
void segment_drop_blocks(struct segment *segment);

/* Records of all segments that are done. With all jobs done. */
struct content_sum segmenter_sum(const struct segmenter *s);

#endif
