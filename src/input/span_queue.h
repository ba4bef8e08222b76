/*
 * span_queue.h -- the spans of an input (span_reader.h) on their way through the workers; and
 * input_streams, which reads several inputs at the same time, each into a queue.
 *
 * A thread fetches pieces. Workers inflate or parse them and cut them in their order. If the caller
 * wants something made of each span, the worker that has cut it does so at once, while the records
 * are in its cache. Spans are handed out in the order of the input.
 *
 * Order of calls: init; for each input begin, then fetch until it returns no piece, and take;
 * release with all jobs done. A span that was taken belongs to the caller, who drops it when nobody
 * uses it any more.
 *
 * Threads: one fetches, one takes; the lock of the thread pool guards what both use. Functions
 * named *_locked are called with it. Errors: a message and thread_pool_fail; with a function `make`
 * also if something is wrong with what comes after the records of a span (record_span_check), else
 * the caller checks.
 */
#ifndef ROCKSORT_INPUT_SPAN_QUEUE_H
#define ROCKSORT_INPUT_SPAN_QUEUE_H

#include "input/bam_inputs.h"
#include "input/span_reader.h"
#include "spill/load_totals.h"
#include "spill/memory_budget.h"

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

struct input_streams;

struct input_streams_settings {
    struct threads *threads;
    struct load_totals *totals; /* learns that the input is bad; of streams: how much was read */
    struct memory_budget_inputs share;  /* span_bytes, and ahead_bytes: memory for all spans of an
                                           input that were not dropped; one there may be in any
                                           case */
    int32_t n_refs;             /* of the output's header */
    bool keeps_ids;             /* records keep the IDs of read groups and programs of their file */
    bool has_offsets;           /* offsets of records will be asked for (record_span_offset) */
    /* Makes something of the records of a span. `input` is the input's name in messages. Returns 0,
       or -1 after a message. NULL: nothing is made, and spans are handed out as they are cut. */
    int (*make)(void *arg, struct worker *worker, struct queued_span *span, const char *input);
    /* Frees what was made and nobody has taken. NULL: spans are not handed out but dropped when
       they were made. Not used without `make`. */
    void (*drop)(void *arg, void *made);
    void *arg;
    /* for input_streams_start */
    struct bam_inputs *inputs;  /* open, and not read yet */
    const size_t *numbers;      /* of the inputs that are read, in ascending order */
    size_t n_inputs;            /* how many these are */
};

struct span_queue {             /* starts as {0} */
    const struct input_streams_settings *settings;
    struct input_streams *streams;      /* NULL: it is the only queue */
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

/* The settings stay. */
void span_queue_init(struct span_queue *queue, const struct input_streams_settings *settings);

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

/* Removes a user of a span that was taken; the last one drops it, and what was made unless `made`
   is NULL. */
void span_queue_drop_locked(struct queued_span *span);
void span_queue_drop(struct queued_span *span);

void span_queue_release(struct span_queue *queue);

/*
 * ---- several inputs ----
 *
 * Readers, which are threads of their own, read pieces of all inputs ahead. There is a function
 * `make`.
 *
 * Order of calls: start; next and span_queue_drop, for each input in any turn, until next returns
 * 0; stop; destroy with all jobs done. Threads: one, but make and drop, which workers call.
 */

/* Opens the inputs and starts the readers. NULL after a message and thread_pool_fail. */
struct input_streams *input_streams_start(const struct input_streams_settings *settings);

/* In what follows i counts the inputs that are read. Waits until the next span of one is made.
   Returns 1, 0 after the last one, or -1 after a message or if the thread pool has failed. */
int input_streams_next(struct input_streams *all, size_t i, struct queued_span **span);

/* With the lock held: the memory that all inputs take beyond the ahead_bytes of each. Long records
   need it. */
size_t input_streams_excess_bytes(const struct input_streams *all);

/* The name of an input in messages. */
const char *input_streams_name(const struct input_streams *all, size_t i);

/* Ends the readers. NULL is accepted. */
void input_streams_stop(struct input_streams *all);

/* NULL is accepted. */
void input_streams_destroy(struct input_streams *all);

#endif
