/* batch_filler.c -- see batch_filler.h. */
#include "pipeline/batch_filler.h"
#include "pipeline/record_entries.h"

#include <assert.h>

/* ---- jobs ---- */

static void sort_job(struct worker *worker, void *arg)
{
    struct batch *batch = arg;
    const struct sort_context *sort = batch->owner;
    if (crew_failed(sort->crew)) return;
    if (sort->settings->sum_only) {
        batch_pool_forget(sort->pool, batch);
        return;
    }
    batch_sort(batch, worker_merge_space(worker));
    crew_lock(sort->crew);
    batch->sorted = true;                       /* the crew announces the end of each job */
    crew_unlock(sort->crew);
}

/* One job of the batch is done, or no more parts come. The last of these calls submits the job that
   sorts the batch. */
static void step_done(struct batch *batch)
{
    const struct sort_context *sort = batch->owner;
    if (atomic_fetch_sub(&batch->n_pending, 1) == 1)
        (void)crew_submit(sort->crew, sort_job, batch);
}

/* Copies the records of a part into the batch, checks them and makes their entries. */
static void index_job(struct worker *worker, void *arg)
{
    struct batch_part *part = arg;
    struct batch *batch = part->batch;          /* sorting frees the part */
    const struct sort_context *sort = batch->owner;
    struct content_sum sum = {0};
    struct record_problem problem;
    (void)worker;
    if (crew_failed(sort->crew)) return;
    int r = record_entries_index_part(part, sam_hdr_nref(sort->header), &sum, &problem);
    if (r < 0) record_problem_print(&problem, part->input);
    const struct observed_records records = {.all = {part->from, part->to},
                                             .first_record = part->first_record};
    if (r == 0) r = record_observers_look(&sort->observers_in, &records);
    if (r < 0) {
        load_totals_set_bad(sort->totals);
        crew_fail(sort->crew);
        return;
    }
    crew_lock(sort->crew);
    load_totals_add(sort->totals, &sum, part->any_placed);
    content_sum_join(&batch->sum, &sum);
    batch->any_placed |= part->any_placed;
    part->drop_source(part->source_owner);
    crew_unlock(sort->crew);
    step_done(batch);
}

/* ---- filling ---- */

/* Makes a batch for records of n_bytes that no usual batch has room for. After one large record
   expect more: makes room for a few, but not in a large part of the memory. */
static struct batch *make_large(const struct sort_context *sort, size_t n_bytes)
{
    struct mem_budget budget;
    batch_pool_budget(sort->pool, &budget);
    size_t fair = budget.batch_bytes * budget.n_batches / 8;
    if (fair > 4 * n_bytes) fair = 4 * n_bytes;
    if (n_bytes < fair) n_bytes = fair;
    return batch_pool_make_large(sort->pool, batch_bytes_for(sort->rules.order, n_bytes));
}

/* Appends the batch at hand to the list of those that may be spilled, and lets it be sorted. */
static void seal(struct batch_filler *filler)
{
    batch_pool_seal(filler->sort->pool, filler->batch, &filler->at);
    step_done(filler->batch);
}

/* Estimates the whole input from how well what was read of it is compressed. */
static void estimate_input(const struct batch_filler *filler)
{
    const struct bam_inputs *inputs = filler->sort->inputs;
    uint64_t n_read = bam_inputs_bytes_read(inputs), n_bytes = inputs->n_bytes;
    if (n_read == 0 || n_bytes == 0) return;
    double expected = (double)filler->n_bytes * ((double)n_bytes / (double)n_read);
    crew_lock(filler->sort->crew);
    if (!filler->sort->totals->size_is_given)
        load_totals_locked(filler->sort->totals)->expected_bytes = (uint64_t)expected;
    crew_unlock(filler->sort->crew);
}

/* Takes a batch with room for n_bytes at least. */
static int take_batch(struct batch_filler *filler, size_t n_bytes)
{
    const struct sort_context *sort = filler->sort;
    estimate_input(filler);
    struct batch *batch = batch_pool_take(sort->pool);
    if (!batch) return -1;
    batch_reset(batch);
    if (batch_room(batch) < n_bytes) {
        struct batch *larger = make_large(sort, n_bytes);
        batch_pool_free(sort->pool, batch);
        batch_pool_drop_free(sort->pool);
        batch = larger;
    }
    batch->owner = sort;
    filler->batch = batch;
    assert(batch_room(batch) >= n_bytes);
    return 0;
}

int batch_filler_begin(struct batch_filler *filler, const struct sort_context *sort)
{
    struct load_counts before;
    load_totals_look(sort->totals, &before);
    *filler = (struct batch_filler){.sort = sort, .at = sort->resume.start,
                                    .n_bytes = before.sum.n_bytes};
    return take_batch(filler, 0);
}

size_t batch_filler_room(const struct batch_filler *filler)
{
    return batch_room(filler->batch);
}

int batch_filler_make_room(struct batch_filler *filler, size_t n_bytes)
{
    if (filler->batch->n_records > 0)
        seal(filler);
    else                        /* not one record fitted */
        batch_pool_free(filler->sort->pool, filler->batch);
    filler->batch = NULL;
    return take_batch(filler, n_bytes);
}

int batch_filler_place(struct batch_filler *filler, const struct placed_records *records)
{
    struct crew *crew = filler->sort->crew;
    struct batch_part *part = batch_add_part(filler->batch, records->at, records->n_bytes,
                                             records->n_records, records->first);
    part->input = records->input;
    part->source_owner = records->owner;
    part->drop_source = records->drop;
    filler->at = records->end;
    crew_lock(crew);
    (*records->n_users)++;
    crew_unlock(crew);
    return crew_submit(crew, index_job, part);
}

void batch_filler_end(struct batch_filler *filler)
{
    if (filler->batch->n_records > 0)
        seal(filler);
    else
        batch_pool_free(filler->sort->pool, filler->batch);
    filler->batch = NULL;
}

void batch_filler_release(struct batch_filler *filler)
{
    batch_destroy(filler->batch);
    filler->batch = NULL;
}
