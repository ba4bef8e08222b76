/*
 * template_splitter.h -- runs --fixmate during the load: divides spans into templates, has workers
 * fill in mate fields, and places the records in sort buffers.
 *
 * A template that does not fit in memory goes to tapes (tape.h). When the span in which it ends is
 * the oldest one, its records are fixed in parts, and the loader waits for each part.
 *
 * Order of calls: create; for each input begin, then add and place in turns, and finish after its
 * last usable span; destroy with all jobs done.
 *
 * Threads: the loader's; functions named *_locked are called with the lock of the thread pool.
 * Errors: -1 after a message.
 */
#ifndef ROCKSORT_SORT_TEMPLATE_SPLITTER_H
#define ROCKSORT_SORT_TEMPLATE_SPLITTER_H

#include "input/span_queue.h"
#include "sort/sort_buffer_filler.h"

struct template_splitter;

/* The maximum input bytes of one template. A larger one goes to tapes. */
size_t template_splitter_max_template(const struct memory_budget *budget);

/* The filler outlives the splitter. */
struct template_splitter *template_splitter_create(const struct sort_context *sort,
                                                   struct sort_buffer_filler *filler);

/* NULL is accepted. */
void template_splitter_destroy(struct template_splitter *ts);

/* Begins an input called `input`. n_records: number of its records before the first span. */
void template_splitter_begin(struct template_splitter *ts, const char *input, uint64_t n_records);

/* True if a span can be added. */
bool template_splitter_has_room_locked(const struct template_splitter *ts);

/* Divides a span into templates and submits them; drops the span when they are placed. */
int template_splitter_add(struct template_splitter *ts, struct queued_span *span);

/* The same for the last template of the input, which ends at this offset. */
int template_splitter_finish(struct template_splitter *ts, uint64_t end_offset);

/* True if templates can be placed; true if none are left. */
bool template_splitter_is_ready_locked(const struct template_splitter *ts);
bool template_splitter_is_empty(const struct template_splitter *ts);

/* Places the templates of the oldest span, and prints the error that follows them, if any. */
int template_splitter_place(struct template_splitter *ts);

#endif
