/* sort_buffer_filler.c -- see sort_buffer_filler.h. */
#include "input/record_entries.h"
#include "sort/sort_buffer_filler.h"

#include <assert.h>

/* ---- jobs ---- */

static void sort_job(struct worker *worker, void *arg)
{
    struct sort_buffer *buffer = arg;
    const struct sort_context *sort = buffer->owner;
    if (thread_pool_failed(sort->threads)) return;
    if (sort->settings->sum_only) {
        sort_buffer_pool_forget(sort->pool, buffer);
        return;
    }
    sort_buffer_sort(buffer, worker_merge_space(worker));
    thread_pool_lock(sort->threads);
    buffer->sorted = true;                      /* the thread pool signals the end of each job */
    thread_pool_unlock(sort->threads);
}

/* Call this when a job of the sort buffer is done, and when no more parts will come. The last call
   submits the job that sorts the sort buffer. */
static void step_done(struct sort_buffer *buffer)
{
    const struct sort_context *sort = buffer->owner;
    if (atomic_fetch_sub(&buffer->n_pending, 1) == 1)
        (void)thread_pool_submit(sort->threads, sort_job, buffer);
}

/* Copies the records of a part into the sort buffer, checks them and makes their entries. */
static void index_job(struct worker *worker, void *arg)
{
    struct sort_buffer_part *part = arg;
    struct sort_buffer *buffer = part->buffer;  /* sorting frees the part */
    const struct sort_context *sort = buffer->owner;
    struct content_sum sum = {0};
    struct record_problem problem;
    (void)worker;
    if (thread_pool_failed(sort->threads)) return;
    int r = record_entries_index_part(part, sam_hdr_nref(sort->header), &sum, &problem);
    if (r < 0) record_problem_print(&problem, part->input);
    const struct observed_records records = {.all = {part->from, part->to},
                                             .first_record = part->first_record};
    if (r == 0) r = record_observers_look(&sort->observers_in, &records);
    if (r < 0) {
        load_totals_set_bad(sort->totals);
        thread_pool_fail(sort->threads);
        return;
    }
    thread_pool_lock(sort->threads);
    load_totals_add(sort->totals, &sum, part->any_placed);
    content_sum_join(&buffer->sum, &sum);
    buffer->any_placed |= part->any_placed;
    part->drop_source(part->source_owner);
    thread_pool_unlock(sort->threads);
    step_done(buffer);
}

/* ---- filling ---- */

/* Makes a sort buffer for records of n_bytes that fit in no usual one. Expects more large records:
   makes room for a few, but does not use a large part of the memory. */
static struct sort_buffer *make_large(const struct sort_context *sort, size_t n_bytes)
{
    struct memory_budget budget;
    sort_buffer_pool_budget(sort->pool, &budget);
    size_t fair = budget.sort_buffer_bytes * budget.n_buffers / 8;
    if (fair > 4 * n_bytes) fair = 4 * n_bytes;
    if (n_bytes < fair) n_bytes = fair;
    return sort_buffer_pool_make_large(sort->pool,
                                       sort_buffer_bytes_for(sort->rules.order, n_bytes));
}

/* Appends the current sort buffer to the list of those that may be spilled, and allows it to be
   sorted. */
static void freeze(struct sort_buffer_filler *filler)
{
    sort_buffer_pool_freeze(filler->sort->pool, filler->buffer, &filler->at);
    step_done(filler->buffer);
}

/* Estimates the size of the whole input from the compression ratio so far. */
static void estimate_input(const struct sort_buffer_filler *filler)
{
    const struct bam_inputs *inputs = filler->sort->inputs;
    uint64_t n_read = bam_inputs_bytes_read(inputs), n_bytes = inputs->n_bytes;
    if (n_read == 0 || n_bytes == 0) return;
    double expected = (double)filler->n_bytes * ((double)n_bytes / (double)n_read);
    thread_pool_lock(filler->sort->threads);
    if (!filler->sort->totals->size_is_given)
        load_totals_locked(filler->sort->totals)->expected_bytes = (uint64_t)expected;
    thread_pool_unlock(filler->sort->threads);
}

/* Takes a sort buffer with room for at least n_bytes. */
static int take_buffer(struct sort_buffer_filler *filler, size_t n_bytes)
{
    const struct sort_context *sort = filler->sort;
    estimate_input(filler);
    struct sort_buffer *buffer = sort_buffer_pool_take(sort->pool);
    if (!buffer) return -1;
    sort_buffer_reset(buffer);
    if (sort_buffer_room(buffer) < n_bytes) {
        struct sort_buffer *larger = make_large(sort, n_bytes);
        sort_buffer_pool_free(sort->pool, buffer);
        sort_buffer_pool_drop_free(sort->pool);
        buffer = larger;
    }
    buffer->owner = sort;
    filler->buffer = buffer;
    assert(sort_buffer_room(buffer) >= n_bytes);
    return 0;
}

int sort_buffer_filler_begin(struct sort_buffer_filler *filler, const struct sort_context *sort)
{
    struct load_counts before;
    load_totals_look(sort->totals, &before);
    *filler = (struct sort_buffer_filler){.sort = sort, .at = sort->resume.start,
                                    .n_bytes = before.sum.n_bytes};
    return take_buffer(filler, 0);
}

size_t sort_buffer_filler_room(const struct sort_buffer_filler *filler)
{
    return sort_buffer_room(filler->buffer);
}

int sort_buffer_filler_make_room(struct sort_buffer_filler *filler, size_t n_bytes)
{
    if (filler->buffer->n_records > 0)
        freeze(filler);
    else                        /* no record fitted */
        sort_buffer_pool_free(filler->sort->pool, filler->buffer);
    filler->buffer = NULL;
    return take_buffer(filler, n_bytes);
}

int sort_buffer_filler_place(struct sort_buffer_filler *filler,
                             const struct placed_records *records)
{
    struct threads *threads = filler->sort->threads;
    struct sort_buffer_part *part = sort_buffer_add_part(
        filler->buffer, records->at, records->n_bytes, records->n_records, records->first);
    part->input = records->input;
    part->source_owner = records->owner;
    part->drop_source = records->drop;
    filler->at = records->end;
    thread_pool_lock(threads);
    (*records->n_users)++;
    thread_pool_unlock(threads);
    return thread_pool_submit(threads, index_job, part);
}

void sort_buffer_filler_end(struct sort_buffer_filler *filler)
{
    if (filler->buffer->n_records > 0)
        freeze(filler);
    else
        sort_buffer_pool_free(filler->sort->pool, filler->buffer);
    filler->buffer = NULL;
}

void sort_buffer_filler_release(struct sort_buffer_filler *filler)
{
    sort_buffer_destroy(filler->buffer);
    filler->buffer = NULL;
}
