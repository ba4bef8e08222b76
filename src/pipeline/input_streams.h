/*
 * input_streams.h -- reads several inputs at the same time, each as a stream of whole records.
 *
 * Readers, which are threads of their own, read pieces of all inputs ahead, each input into a queue
 * of spans (span_queue.h). For each span a worker calls the function `make` of the caller.
 *
 * Order of calls: start; next and release, for each input in any turn, until next returns 0; stop;
 * destroy with all jobs done. Threads: one, but make and drop, which are called by workers.
 */
#ifndef ROCKSORT_PIPELINE_INPUT_STREAMS_H
#define ROCKSORT_PIPELINE_INPUT_STREAMS_H

#include "input/bam_inputs.h"
#include "pipeline/mem_budget.h"
#include "pipeline/span_queue.h"

struct input_streams;

struct input_streams_settings {
    struct crew *crew;
    struct bam_inputs *inputs;  /* open, and not read yet */
    const size_t *numbers;      /* of the inputs that are read, in ascending order */
    size_t n_inputs;            /* how many these are */
    int32_t n_refs;             /* of the output's header */
    bool keeps_ids;             /* records keep the IDs of read groups and programs of their file */
    struct load_totals *totals; /* gets how much of the files was read */
    struct mem_budget_inputs share;     /* the memory; of an input at least one piece is read ahead */
    /* Makes something of the records of a span. `input` is the input's name in messages. Returns
       0, or -1 after a message. */
    int (*make)(void *arg, struct worker *worker, struct queued_span *span, const char *input);
    /* Frees what make has made and nobody has taken. NULL: spans are dropped once they were made;
       next returns only 0 or -1. */
    void (*drop)(void *arg, void *made);
    void *arg;
};

/* Opens the inputs and starts the readers. NULL after a message and crew_fail. */
struct input_streams *input_streams_start(const struct input_streams_settings *settings);

/* In what follows i counts the inputs that are read. Waits until the next span of one is made.
   Returns 1, 0 after the last one, or -1 after a message or if the crew has failed. */
int input_streams_next(struct input_streams *all, size_t i, struct queued_span **span);

/* Frees a span that input_streams_next returned; drops what was made unless it is NULL. */
void input_streams_release(struct queued_span *span);

/* With the lock held: the memory that all inputs take beyond the ahead_bytes of each. Long records
   need it. */
size_t input_streams_excess_bytes(const struct input_streams *all);

/* The name of an input in messages. */
const char *input_streams_name(const struct input_streams *all, size_t i);

/* How many records it has. After its last span. */
uint64_t input_streams_n_records(const struct input_streams *all, size_t i);

/* Ends the readers. NULL is accepted. */
void input_streams_stop(struct input_streams *all);

/* NULL is accepted. */
void input_streams_destroy(struct input_streams *all);

#endif
