/*
 * template_splitter.h -- --fixmate while the input is loaded: finds the whole templates that each
 * span completes, has workers tell their records of each other, and places these in sort buffers.
 *
 * A template that does not fit in memory goes to temporary files (tape.h). When the span in
 * which it ends is the oldest one, its records are fixed in parts, and the loader waits for each
 * part.
 *
 * Order of calls: create; for each input begin, then add and place in turns, and finish when no
 * other span follows or the rest cannot be used; destroy with all jobs done.
 *
 * Threads: the loader's; functions named *_locked are called with the lock of the thread pool.
 * Errors: -1 after a message.
 */
#ifndef ROCKSORT_SORT_TEMPLATE_SPLITTER_H
#define ROCKSORT_SORT_TEMPLATE_SPLITTER_H

#include "input/span_queue.h"
#include "sort/sort_buffer_filler.h"

struct template_splitter;

/* The most memory that the records of one template may take, as they are read. With more it is a
   large one. */
size_t template_splitter_max_template(const struct memory_budget *budget);

/* The filler outlives the splitter. */
struct template_splitter *template_splitter_create(const struct sort_context *sort,
                                                   struct sort_buffer_filler *filler);

/* NULL is accepted. */
void template_splitter_destroy(struct template_splitter *ts);

/* n_records: records of the input before the first span; `input` is its name. */
void template_splitter_begin(struct template_splitter *ts, const char *input, uint64_t n_records);

/* True if a span can be added. */
bool template_splitter_has_room_locked(const struct template_splitter *ts);

/* Cuts a span into templates, has them fixed, and drops the span when they are placed. */
int template_splitter_add(struct template_splitter *ts, struct queued_span *span);

/* The same for the last template of the input, which ends at this offset. */
int template_splitter_finish(struct template_splitter *ts, uint64_t end_offset);

/* True if templates can be placed; and if none are left. */
bool template_splitter_is_ready_locked(const struct template_splitter *ts);
bool template_splitter_is_empty(const struct template_splitter *ts);

/* Places the templates of the oldest span, and says what is wrong with what comes after them. */
int template_splitter_place(struct template_splitter *ts);

#endif
