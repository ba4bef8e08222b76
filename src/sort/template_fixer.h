/*
 * template_fixer.h -- runs --fixmate during the load: the worker that has cut a span also fills in
 * the mate fields of its records; the loader places them in sort buffers.
 *
 * A template that does not fit in memory goes to a tape (tape.h). The loader fixes its records one
 * after another when it has ended.
 *
 * Order of calls: create; the span queue calls make and drop; for each input, place for all of its
 * spans, then end_large; destroy with all jobs done. Threads: the loader's, unless stated
 * otherwise. Errors: -1 after a message.
 */
#ifndef ROCKSORT_SORT_TEMPLATE_FIXER_H
#define ROCKSORT_SORT_TEMPLATE_FIXER_H

#include "input/span_queue.h"
#include "sort/sort_buffer_filler.h"

struct template_fixer;

/* The filler outlives the fixer. */
struct template_fixer *template_fixer_create(const struct sort_context *sort,
                                             struct sort_buffer_filler *filler);

/* Accepts NULL. */
void template_fixer_destroy(struct template_fixer *tf);

/* `make` and `drop` of span_queue.h; arg: the fixer. Any thread. */
int template_fixer_make(void *arg, struct worker *worker, struct queued_span *span,
                        const char *input);
void template_fixer_drop(void *arg, void *made);

/* Places the templates of a span. `input`: its name in messages. */
int template_fixer_place(struct template_fixer *tf, struct queued_span *span, const char *input);

/* Places a large template that the input might have continued, if there is one. */
int template_fixer_end_large(struct template_fixer *tf, const char *input);

#endif
