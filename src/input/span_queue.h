/*
 * span_queue.h -- a queue of spans (span_reader.h) that workers inflate or parse; and
 * input_streams, which reads several inputs at the same time, each into its queue.
 *
 * One thread fetches pieces. Workers inflate or parse them in any order, and cut them in input
 * order. If the caller gives a function `make`, the worker that has cut a span calls it at once,
 * while the records are in its cache. Spans are handed out in input order.
 *
 * Order of calls: init; for each input begin, then fetch until it returns no piece, and take;
 * release when all jobs are done. A span that was taken belongs to the caller, who drops it when it
 * has no more users.
 *
 * Threads: one fetches, one takes; the lock of the thread pool guards what both use. Functions
 * named *_locked are called with it. Errors: a message and thread_pool_fail. With `make`, the queue
 * also calls record_span_check for each span, unless taker_checks is set; without, the caller must.
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
    void *made;                 /* result of make */
    size_t made_bytes;          /* its memory, in addition to that of the records */
    struct span_queue *queue;   /* that it comes from */
    /* for span_queue.c, under the lock */
    struct queued_span *next;
    struct queued_span *older;  /* fixed: the span that was allocated before */
    size_t ahead_bytes;         /* memory that is counted for it */
    bool is_filled, is_done;
    unsigned n_users;
};

struct input_streams;

struct input_streams_settings {
    struct threads *threads;
    struct load_totals *totals; /* is told that the input is bad; with streams: how much was read */
    struct memory_budget_inputs share;  /* span_bytes, and ahead_bytes: limit for the spans of an
                                           input; one is always allowed */
    size_t most_template_bytes; /* if not 0, spans end where templates end (span_reader.h) */
    int32_t n_refs;             /* of the output's header */
    bool keeps_ids;             /* records keep their IDs of read groups and programs */
    bool taker_checks;          /* the caller calls record_span_check, also with `make` */
    /* Processes the records of a span and may set span->made. `input` is the input's name in
       messages. Returns 0, or -1 after a message. NULL: spans are handed out when cut. */
    int (*make)(void *arg, struct worker *worker, struct queued_span *span, const char *input);
    /* Frees the result of a span, with the lock held. NULL: spans are dropped after `make`, not
       handed out. Not used without `make`. */
    void (*drop)(void *arg, void *made);
    void *arg;
    /* for input_streams_start */
    struct bam_inputs *inputs;  /* open, and not read yet */
    const size_t *numbers;      /* of the inputs to be read, in ascending order */
    size_t n_inputs;            /* how many inputs to read */
};

struct span_queue {
    const struct input_streams_settings *settings;
    struct input_streams *streams;      /* NULL: the only queue */
    uint32_t input;
    const struct id_renames *renames;   /* NULL: records stay as they are */
    struct bam_reader *reader;
    struct queued_span *newest; /* the span allocated last; by the thread that fetches */
    /* under the lock */
    struct queued_span *first;  /* the next one to be taken; NULL: all were taken */
    struct queued_span **end, *to_cut, *spare;
    size_t ahead_bytes;         /* of all spans that were not dropped, and the tail */
    size_t tail_bytes;          /* the tail's part of ahead_bytes */
    size_t made_bytes;          /* of the last span: expected of the next ones */
    bool is_cutting;            /* a thread cuts a span now */
    bool is_read;               /* the input was read to its end */
};

/* The settings must outlive the queue. */
void span_queue_init(struct span_queue *queue, const struct input_streams_settings *settings);

/* Begins an input, when the queue has no spans of the previous one. `input` is its number, and its
   first n_records were read before. renames: IDs that change in its records, or NULL. */
void span_queue_begin(struct span_queue *queue, struct bam_reader *reader, uint32_t input,
                      uint64_t n_records, const struct id_renames *renames);

/* Reads a piece. Returns a code of the reader; *n_bytes is the size of the piece. */
int span_queue_fetch(struct span_queue *queue, size_t *n_bytes);

/* When all spans were taken, and no piece follows: adds one with the last template. */
int span_queue_flush(struct span_queue *queue);

/* True if a piece may be read. */
bool span_queue_has_room_locked(const struct span_queue *queue);

/* True if a span can be taken. */
bool span_queue_is_ready_locked(const struct span_queue *queue);

/* Takes the next span, which must be ready and may have no records. It has one user, the caller. */
struct queued_span *span_queue_take_locked(struct span_queue *queue);

/* Removes a user of a span that was taken; the last one drops the span, and its `made` unless that
   is NULL. */
void span_queue_drop_locked(struct queued_span *span);
void span_queue_drop(struct queued_span *span);

void span_queue_release(struct span_queue *queue);

/*
 * ---- several inputs ----
 *
 * Reader threads read pieces of all inputs ahead. `make` is required.
 *
 * Order of calls: start; next and span_queue_drop, for the inputs in any order, until next returns
 * 0; stop; destroy when all jobs are done. Threads: one; workers call make and drop.
 */

/* Opens the inputs and starts the readers. NULL after a message and thread_pool_fail. */
struct input_streams *input_streams_start(const struct input_streams_settings *settings);

/* Waits until the next span of an input is ready. `i` is an index in settings->numbers, here and
   below. Returns 1, 0 after the last span, or -1 after a message or if the thread pool has
   failed. */
int input_streams_next(struct input_streams *all, size_t i, struct queued_span **span);

/* With the lock held: by how much memory the inputs exceed their ahead_bytes, because of long
   records. */
size_t input_streams_excess_bytes(const struct input_streams *all);

/* Ends the readers. Accepts NULL. */
void input_streams_stop(struct input_streams *all);

/* Accepts NULL. */
void input_streams_destroy(struct input_streams *all);

#endif
