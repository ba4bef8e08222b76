/*
 * segment.h -- the workers' half of the merge: they open blocks, and merge and deflate segments.
 *
 * The dispatcher (merge.h) takes blocks in the order of their first keys and has each opened. It
 * cuts segments. A segment can be merged only when the blocks that overlap it are open. Blocks and
 * segments are numbered as they come. A segment is handed to a worker when all blocks up to the
 * last one that it may need are open. A block is freed when the last segment that holds a part of
 * it is done.
 *
 * Threads: the dispatcher calls the functions, unless one says otherwise.
 */
#ifndef ROCKSORT_PIPELINE_SEGMENT_H
#define ROCKSORT_PIPELINE_SEGMENT_H

#include "pipeline/duplicates.h"
#include "pipeline/feed.h"
#include "pipeline/record_entries.h"
#include "pipeline/sorted_output.h"

struct segmenter;

/* What was written so far, for the progress display. The crew's lock guards it. */
struct merge_counts {
    uint64_t n_records;
    uint64_t raw_bytes;
    uint64_t output_bytes;      /* CRAM: 0 */
};

/* What the dispatcher and the workers of a merge get. */
struct merge_settings {
    struct crew *crew;
    struct batch_pool *pool;    /* the batches that it kept are merged, too */
    struct run_store *store;    /* NULL: all records are in memory */
    const uint32_t *dropped_runs;       /* runs to leave out (resume.h) */
    size_t n_dropped;
    uint32_t next_run;          /* the batches in memory count as runs from this number on */
    size_t open_bytes;          /* sum over runs of their largest block, uncompressed;
                                   blocks of one record are not counted */
    const struct sort_rules *rules;
    sam_hdr_t *header;
    struct sorted_output *output;
    const struct input_streams_settings *streams;       /* with --merge: the inputs are the runs;
                                                           NULL: those in the store are */
    struct load_totals *totals; /* with --merge: counts what is read */
    const struct duplicates *duplicates;        /* decided; NULL: none are marked */
    const struct content_sum *sum;      /* of the input: the output must have the same. With
                                           --merge it is not known before */
    const char *resumed_path;   /* where the runs are if another process wrote them, or NULL */
    const struct record_observers *observers;   /* of the output's records */
    struct merge_counts *counts;
};

struct open_block {
    struct segmenter *segmenter;
    struct open_block *next_unopened;
    unsigned n_users;           /* under the lock: owner and segments */
    bool opened;                /* under the lock */
    size_t n_bytes;             /* under the lock: memory that it takes, estimated until it is
                                   open */
    const char *dir;            /* directory that it was read from, for messages */
    uint8_t *value;             /* as it was stored; NULL once it is open */
    size_t value_bytes;
    size_t raw_bytes;           /* as it was stored */
    size_t grown_bytes;         /* with the tags that its records get, an estimate */
    struct merge_bound last;    /* of its last record */
    bool is_complete;           /* for the dispatcher's use: it ends below the frontier */
    uint8_t *memory;            /* owned; the records are there */
    uint8_t *raw, *keyed;       /* set by opening, as are the source's entries */
    size_t entry_bytes;         /* of records that were read: of their entries and keys */
    struct merge_source source; /* run and first_index are set from the start */
};

struct segment {
    struct segmenter *segmenter;
    struct segment *next;       /* in the list of segments that wait for blocks */
    uint64_t n_blocks_needed;   /* all blocks before this number must be open */
    struct merge_bound low, high;       /* bytes NULL: below, or above, all records */
    struct open_block **blocks; /* in the order of run and index */
    size_t n_blocks;
    struct segment_output outputs[MOST_OUTPUTS];
    struct observed_parts observed;     /* what observers found in it */
    uint64_t n_records, raw_bytes;      /* in the segment */
    size_t expected_bytes;      /* for the dispatcher's use: estimated bytes of its records */
    bool done;                  /* under the lock */
};

/* kept: the batches in memory, part of every segment. segment_bytes: of its records, as planned. */
struct segmenter *segmenter_create(const struct merge_settings *settings,
                                   const struct merge_source *kept, size_t n_kept,
                                   size_t segment_bytes);

/* When all jobs are done. NULL is accepted. */
void segmenter_destroy(struct segmenter *s);

/* Takes the value of a block from a feeder and has a worker open the block. The caller is its one
   user. NULL after a message that the block is damaged. */
struct open_block *segmenter_open_block(struct segmenter *s, struct fed_block *fed);

/* Checks the records and makes an open block of them, with the caller as its one user. Any thread.
   NULL if a record is bad: then records->problem says why. NULL after a message if there is no
   text in it. */
struct open_block *segmenter_adopt_records(struct segmenter *s, struct input_records *records);

/* With the lock held: begins to count the memory of such a block. */
void segmenter_count_adopted(struct open_block *block);

/* Makes a segment of all records from low (included) to high (not included) in n blocks and in the
   batches in memory. It becomes a user of each block. segmenter_merge has it merged. */
struct segment *segment_create(struct segmenter *s, const struct merge_limit *low,
                               const struct merge_limit *high, struct open_block *const *blocks,
                               size_t n);

/* Has a worker merge the segment when its blocks are open. Returns 0, or -1 after a message. */
int segmenter_merge(struct segmenter *s, struct segment *segment);

/* Memory that all blocks take. With the lock held; any thread. */
size_t segmenter_block_bytes(const struct segmenter *s);

/* Bytes that raw_bytes of records will take as lines and columns, by the segment that was done
   last. With the lock held. */
size_t segmenter_expect_large(const struct segmenter *s, size_t raw_bytes);

/* Removes one user of the block; without users it is freed. With the lock held, or all threads
   done. */
void segmenter_drop_block(struct open_block *block);

/* Frees a segment whose blocks were dropped: by its job, or by segment_drop_blocks. */
void segment_destroy(struct segment *segment);

/* Drops a segment's blocks. With the lock held, or all threads done. */
void segment_drop_blocks(struct segment *segment);

/* The sum of the records of all segments that are done. When all jobs are done. */
struct content_sum segmenter_sum(const struct segmenter *s);

#endif
