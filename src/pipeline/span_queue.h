/*
 * span_queue.h -- the spans of an input (span_reader.h) on their way through the workers.
 *
 * A thread fetches pieces. Workers inflate or parse them and cut them in their order. If the caller
 * wants something made of each span, the worker that has cut it does so at once, while the records
 * are in its cache. Spans are handed out in the order of the input.
 *
 * Order of calls: init; for each input begin, then fetch until it returns no piece, and take;
 * release with all jobs done. A span that was taken belongs to the caller, who drops it when nobody
 * uses it any more.
 *
 * Threads: one fetches, one takes; the crew's lock guards what both use. Functions named *_locked
 * are called with it. Errors: a message and crew_fail; with a function `make` also if something is
 * wrong with what comes after the records of a span (record_span_check), else the caller checks.
 */
#ifndef ROCKSORT_PIPELINE_SPAN_QUEUE_H
#define ROCKSORT_PIPELINE_SPAN_QUEUE_H

#include "input/span_reader.h"
#include "pipeline/load_totals.h"

struct queued_span {
    struct record_span records;
    uint32_t input;             /* number of the input */
    void *made;                 /* what make has made of it */
    size_t made_bytes;          /* memory of that beyond the memory of the records */
    /* for span_queue.c, under the lock */
    struct queued_span *next;
    struct queued_span *older;  /* fixed: that was allocated before this one */
    struct span_queue *queue;
    size_t ahead_bytes;         /* memory that is counted for it */
    bool is_filled, is_done;
    unsigned n_users;
};

struct span_queue_settings {
    struct crew *crew;
    struct load_totals *totals; /* learns that the input is bad */
    size_t piece_bytes;         /* of a piece, uncompressed */
    size_t most_bytes;          /* memory for all spans that were not dropped; one there may be in
                                   any case */
    int32_t n_refs;             /* of the output's header */
    bool keeps_ids;             /* records keep the IDs of read groups and programs of their file */
    bool has_offsets;           /* offsets of records will be asked for (record_span_offset) */
    /* Makes something of a span that has records. Returns 0, or -1 after a message. NULL: nothing
       is made, and spans are handed out as they are cut. */
    int (*make)(void *arg, struct worker *worker, struct queued_span *span, const char *input);
    /* Frees what was made and nobody has taken. NULL: spans are not handed out but dropped when
       they were made. Not used without `make`. */
    void (*drop)(void *arg, void *made);
    void *arg;
    pthread_cond_t *room;       /* signalled when memory was freed; NULL: nobody waits for it */
    size_t *all_bytes;          /* gets the memory of several queues; or NULL */
};

struct span_queue {             /* starts as {0} */
    struct span_queue_settings settings;
    uint32_t input;
    const struct id_renames *renames;   /* NULL: records stay as they are */
    struct span_reader reader;  /* its records: by the thread that cuts */
    struct queued_span *newest; /* of all that were allocated; by the thread that fetches */
    /* under the lock */
    struct queued_span *first, **end, *to_cut, *spare;
    size_t ahead_bytes;         /* of all spans that were not dropped, and of the tail */
    size_t tail_bytes;          /* the tail's part of ahead_bytes */
    size_t made_bytes;          /* of the span that was made last: expected of the next ones */
    bool is_cutting;            /* a thread cuts a span now */
    bool is_read;               /* to its end */
};

void span_queue_init(struct span_queue *queue, const struct span_queue_settings *settings);

/* Begins an input, when nothing of the one before is left in the queue. `input` is its number, and
   n_records of it were read before. renames: IDs that change in its records, or NULL. */
void span_queue_begin(struct span_queue *queue, struct bam_reader *reader, uint32_t input,
                      uint64_t n_records, const struct id_renames *renames);

/* Reads a piece. Returns a code of the reader; *n_bytes is the size of the piece. */
int span_queue_fetch(struct span_queue *queue, size_t *n_bytes);

/* True if a piece may be read. */
bool span_queue_has_room_locked(const struct span_queue *queue);

/* True if a span can be taken, and if none is left that was fetched. */
bool span_queue_is_ready_locked(const struct span_queue *queue);
bool span_queue_is_empty_locked(const struct span_queue *queue);

/* Takes the next span, which is ready and may have no records. It has one user, the caller. */
struct queued_span *span_queue_take_locked(struct span_queue *queue);

/* Removes a user of a span that was taken; the last one drops it. */
void span_queue_drop_locked(struct queued_span *span);

void span_queue_release(struct span_queue *queue);

#endif
