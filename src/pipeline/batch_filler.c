/* batch_filler.c -- see batch_filler.h. */
#include "pipeline/batch_filler.h"

#include <assert.h>

/* ---- jobs ---- */

static void sort_job(struct worker *worker, void *arg)
{
    struct batch *batch = arg;
    const struct load_settings *load = batch->owner;
    if (crew_failed(load->crew)) return;
    if (load->sum_only) {
        batch_pool_forget(load->pool, batch);
        return;
    }
    batch_sort(batch, worker_merge_space(worker));
    crew_lock(load->crew);
    batch->sorted = true;                       /* the crew announces the end of each job */
    crew_unlock(load->crew);
}

/* One job of the batch is done, or no more parts come. The last of these calls submits the job that
   sorts the batch. */
static void step_done(struct batch *batch)
{
    const struct load_settings *load = batch->owner;
    if (atomic_fetch_sub(&batch->n_pending, 1) == 1)
        (void)crew_submit(load->crew, sort_job, batch);
}

/* Copies the records of a part into the batch, checks them and makes their entries. */
static void index_job(struct worker *worker, void *arg)
{
    struct batch_part *part = arg;
    struct batch *batch = part->batch;          /* sorting frees the part */
    const struct load_settings *load = batch->owner;
    struct content_sum sum = {0};
    struct record_problem problem;
    if (crew_failed(load->crew)) return;
    int r = batch_index_part(part, load->n_refs, &sum, &problem);
    if (r < 0) record_problem_print(&problem, part->input);
    const struct observed_records records = {.all = {part->from, part->to},
                                             .first_record = part->first_record,
                                             .worker = worker};
    if (r == 0) r = record_observers_look(load->observers, &records);
    if (r < 0) {
        load_totals_set_bad(load->totals);
        crew_fail(load->crew);
        return;
    }
    crew_lock(load->crew);
    load_totals_add(load->totals, &sum, part->any_placed);
    content_sum_join(&batch->sum, &sum);
    batch->any_placed |= part->any_placed;
    part->drop_source(part->source_owner);
    crew_unlock(load->crew);
    step_done(batch);
}

/* ---- filling ---- */

/* Makes a batch for records of n_bytes that no usual batch has room for. After one large record
   expect more: makes room for a few, but not in a large part of the memory. */
static struct batch *make_large(const struct load_settings *load, size_t n_bytes)
{
    struct mem_budget budget;
    batch_pool_budget(load->pool, &budget);
    size_t fair = budget.batch_bytes * budget.n_batches / 8;
    if (fair > 4 * n_bytes) fair = 4 * n_bytes;
    if (n_bytes < fair) n_bytes = fair;
    return batch_pool_make_large(load->pool, batch_bytes_for(load->rules->order, n_bytes));
}

/* Appends the batch at hand to the list of those that may be spilled, and lets it be sorted. */
static void seal(struct batch_filler *filler)
{
    batch_pool_seal(filler->settings->pool, filler->batch, &filler->at);
    step_done(filler->batch);
}

/* Estimates the whole input from how well what was read of it is compressed. */
static void estimate_input(const struct batch_filler *filler)
{
    const struct bam_inputs *inputs = filler->settings->inputs;
    uint64_t n_read = bam_inputs_bytes_read(inputs), n_bytes = inputs->n_bytes;
    if (n_read == 0 || n_bytes == 0) return;
    double expected = (double)filler->n_bytes * ((double)n_bytes / (double)n_read);
    load_totals_set_estimate(filler->settings->totals, (uint64_t)expected);
}

/* Takes a batch with room for n_bytes at least. */
static int take_batch(struct batch_filler *filler, size_t n_bytes)
{
    const struct load_settings *load = filler->settings;
    estimate_input(filler);
    struct batch *batch = batch_pool_take(load->pool);
    if (!batch) return -1;
    batch_reset(batch);
    if (batch_room(batch) < n_bytes) {
        struct batch *larger = make_large(load, n_bytes);
        batch_pool_free(load->pool, batch);
        batch_pool_drop_free(load->pool);
        batch = larger;
    }
    batch->owner = load;
    filler->batch = batch;
    assert(batch_room(batch) >= n_bytes);
    return 0;
}

int batch_filler_begin(struct batch_filler *filler, const struct load_settings *settings)
{
    struct load_counts before;
    load_totals_look(settings->totals, &before);
    *filler = (struct batch_filler){.settings = settings, .at = settings->start,
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
        batch_pool_free(filler->settings->pool, filler->batch);
    filler->batch = NULL;
    return take_batch(filler, n_bytes);
}

int batch_filler_place(struct batch_filler *filler, const struct placed_records *records)
{
    struct crew *crew = filler->settings->crew;
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
        batch_pool_free(filler->settings->pool, filler->batch);
    filler->batch = NULL;
}

void batch_filler_release(struct batch_filler *filler)
{
    batch_destroy(filler->batch);
    filler->batch = NULL;
}
