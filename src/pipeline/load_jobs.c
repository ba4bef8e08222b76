/* load_jobs.c -- what workers do while the input is loaded. See load.h. */
#include "pipeline/load.h"

#include "pipeline/input_damage.h"

/* Its records are in the sum, and that was all. */
static void drop_summed_batch(struct pipeline *p, struct batch *batch)
{
    struct batch_list *list = &p->sealed;
    pipeline_lock(p);
    for (size_t i = 0; i < list->n; i++) {
        if (list->batches[i] != batch) continue;
        list->batches[i] = list->batches[--list->n];
        break;
    }
    free_batch(p, batch);
    pipeline_unlock(p);
}

static void sort_job(struct pipeline *p, struct worker *worker, void *arg)
{
    struct batch *batch = arg;
    if (pipeline_failed(p)) return;
    if (p->settings->sum_only) {
        drop_summed_batch(p, batch);
        return;
    }
    if (batch_sort(batch, &worker->space) < 0) {
        (void)pipeline_no_memory(p);
        return;
    }
    pipeline_lock(p);
    batch->sorted = true;                       /* run_job announces it */
    pipeline_unlock(p);
}

void batch_step_done(struct pipeline *p, struct batch *batch)
{
    if (atomic_fetch_sub(&batch->n_pending, 1) == 1) (void)pipeline_submit(p, sort_job, batch);
}

/* A line of a million bases should not hold memory in all the ring. */
void drop_lines(const struct pipeline *p, struct load_piece *piece)
{
    if (--piece->n_users == 0)
        sam_chunk_shrink_raw(&piece->input.lines, 4 * p->budget.text_bytes);
}

void note_bad_input(struct pipeline *p)
{
    pipeline_lock(p);
    p->input_is_bad = true;
    pipeline_unlock(p);
}

/* After a message. */
static void fail_of_input(struct pipeline *p)
{
    note_bad_input(p);
    pipeline_fail(p);
}

void index_job(struct pipeline *p, struct worker *worker, void *arg)
{
    (void)worker;
    struct batch_part *part = arg;
    struct batch *batch = part->batch;      /* the part is gone after sorting */
    struct load_piece *source = part->source_owner;
    struct content_sum sum = {0};
    struct batch_problem problem;
    if (pipeline_failed(p)) return;
    if (batch_index_part(part, p->n_refs, &sum, &problem) < 0) {
        input_damage_refused(part->input, &problem);
        fail_of_input(p);
        return;
    }
    verify_part(p, part);
    pipeline_lock(p);
    content_sum_join(&p->sum_in, &sum);
    content_sum_join(&batch->sum, &sum);
    p->any_placed |= part->any_placed;
    batch->any_placed |= part->any_placed;
    if (source) drop_lines(p, source);          /* run_job announces it */
    pipeline_unlock(p);
    batch_step_done(p, batch);
}

void inflate_job(struct pipeline *p, struct worker *worker, void *arg)
{
    struct load_piece *piece = arg;
    if (!pipeline_failed(p) &&
        bam_piece_inflate(&piece->input, &worker->bgzf, piece->batch->mem + piece->raw_at) < 0) {
        input_damage_piece(bam_reader_name(piece->reader), &piece->input);
        fail_of_input(p);
    }
    pipeline_lock(p);
    piece->done = true;                         /* run_job announces it */
    pipeline_unlock(p);
}

void parse_job(struct pipeline *p, struct worker *worker, void *arg)
{
    struct load_piece *piece = arg;
    if (!worker->record) worker->record = bam_init1();
    if (!worker->record)
        (void)pipeline_no_memory(p);
    else if (!pipeline_failed(p))
        sam_chunk_parse(&piece->input.lines, bam_reader_header(piece->reader), worker->record);
    sam_chunk_shrink_text(&piece->input.lines, 4 * p->budget.text_bytes);
    pipeline_lock(p);
    piece->done = true;                         /* run_job announces it */
    pipeline_unlock(p);
}
