/* load_jobs.c -- see load_jobs.h. */
#include "pipeline/load_jobs.h"

#include "input/input_error.h"
#include "util/xalloc.h"

#include <stdlib.h>

/* ---- sorting ---- */

static void sort_job(struct worker *worker, void *arg)
{
    struct batch *batch = arg;
    const struct load_settings *load = batch->owner;
    if (crew_failed(load->crew)) return;
    if (load->sum_only) {
        batch_pool_forget(load->pool, batch);
        return;
    }
    batch_sort(batch, &worker->space);
    crew_lock(load->crew);
    batch->sorted = true;                       /* the crew announces the end of each job */
    crew_unlock(load->crew);
}

void load_jobs_step_done(struct batch *batch)
{
    const struct load_settings *load = batch->owner;
    if (atomic_fetch_sub(&batch->n_pending, 1) == 1)
        (void)crew_submit(load->crew, sort_job, batch);
}

/* ---- indexing ---- */

void load_jobs_drop_records(struct load_piece *piece)
{
    const struct load_settings *load = piece->load;
    crew_assert_locked(load->crew);
    if (--piece->n_users > 0) return;
    /* One line of a million bases, or one template of many records, should not make every buffer
       in the ring stay large. */
    size_t keep_bytes = 4 * load->budget->text_bytes;
    sam_chunk_shrink_raw(&piece->input.lines, keep_bytes);
    fixed_records_shrink(&piece->templates.fixed, keep_bytes);
    if (piece->templates.stretch.left.room > keep_bytes)
        template_stretch_release(&piece->templates.stretch);
}

uint8_t *load_jobs_raw(const struct load_piece *piece)
{
    if (piece->batch) return piece->batch->mem + piece->raw_at;
    return bam_reader_is_text(piece->reader) ? piece->input.lines.raw : piece->templates.raw.at;
}

void load_jobs_release(struct load_piece *piece)
{
    struct template_work *work = &piece->templates;
    bam_piece_release(&piece->input);
    free(work->raw.at);
    load_large_destroy(work->large);
    template_stretch_release(&work->stretch);
    fixed_records_release(&work->fixed);
}

/* Marks the input as bad and fails the crew. The caller has printed a message. */
static void fail_of_input(const struct load_settings *load)
{
    load_totals_set_bad(load->totals);
    crew_fail(load->crew);
}

/* Copies the records of a part into the batch, if they were made elsewhere, checks them and makes
   their entries. */
static void index_job(struct worker *worker, void *arg)
{
    (void)worker;
    struct batch_part *part = arg;
    struct batch *batch = part->batch;          /* sorting frees the part */
    const struct load_settings *load = batch->owner;
    struct load_piece *source = part->source_owner;
    struct content_sum sum = {0};
    struct record_problem problem;
    if (crew_failed(load->crew)) return;
    if (batch_index_part(part, load->n_refs, &sum, &problem) < 0) {
        record_problem_print(&problem, part->input);
        fail_of_input(load);
        return;
    }
    if (load->verification) verification_check(load->verification, part);
    if (survey_add(&load->survey, part->from, part->to) < 0) {
        fail_of_input(load);
        return;
    }
    crew_lock(load->crew);
    load_totals_add(load->totals, &sum, part->any_placed);
    content_sum_join(&batch->sum, &sum);
    batch->any_placed |= part->any_placed;
    if (source) load_jobs_drop_records(source);
    crew_unlock(load->crew);
    load_jobs_step_done(batch);
}

int load_jobs_index(struct batch_part *part)
{
    const struct load_settings *load = part->batch->owner;
    return crew_submit(load->crew, index_job, part);
}

/* ---- pieces ---- */

static void piece_done(struct load_piece *piece)
{
    crew_lock(piece->load->crew);
    piece->done = true;
    crew_unlock(piece->load->crew);
}

static void inflate_job(struct worker *worker, void *arg)
{
    struct load_piece *piece = arg;
    uint8_t *raw = load_jobs_raw(piece);
    if (!crew_failed(piece->load->crew)) {
        if (bam_piece_inflate(&piece->input, &worker->bgzf, raw) < 0) {
            input_error_piece(bam_reader_name(piece->reader), &piece->input);
            fail_of_input(piece->load);
        } else if (piece->batch) {
            guessed_walk_make(&piece->guess, raw, piece->input.raw_bytes);
        }
    }
    piece_done(piece);
}

int load_jobs_inflate(struct load_piece *piece)
{
    return crew_submit(piece->load->crew, inflate_job, piece);
}

static void parse_job(struct worker *worker, void *arg)
{
    struct load_piece *piece = arg;
    struct sam_chunk *lines = &piece->input.lines;
    if (!crew_failed(piece->load->crew))
        sam_chunk_parse(lines, bam_reader_header(piece->reader), worker_record(worker));
    sam_chunk_shrink_text(lines, 4 * piece->load->budget->text_bytes);
    piece_done(piece);
}

int load_jobs_parse(struct load_piece *piece)
{
    return crew_submit(piece->load->crew, parse_job, piece);
}

/* ---- templates ---- */

static int fix_records(struct load_piece *piece, struct record_problem *problem)
{
    struct template_work *work = &piece->templates;
    const struct fixmate_rules *rules = piece->load->fixmate;
    if (work->part.template)
        return fixed_records_make_part(&work->fixed, rules, &work->part, problem);
    return fixed_records_make(&work->fixed, rules, load_jobs_raw(piece), &work->stretch, problem);
}

static void fix_job(struct worker *worker, void *arg)
{
    (void)worker;
    struct load_piece *piece = arg;
    const struct load_settings *load = piece->load;
    struct record_problem problem = {.record = piece->templates.first_record, .is_damaged = true};
    const struct fixmate_space *space = &piece->templates.fixed.space;
    if (!crew_failed(load->crew) && fix_records(piece, &problem) < 0) {
        record_problem_print(&problem, bam_reader_name(piece->reader));
        fail_of_input(load);
    }
    crew_lock(load->crew);
    load_totals_add_pairs(load->totals, space->n_paired, space->n_alone);
    piece->done = true;
    crew_unlock(load->crew);
}

int load_jobs_fix(struct load_piece *piece)
{
    struct crew *crew = piece->load->crew;
    crew_lock(crew);
    piece->done = false;
    crew_unlock(crew);
    return crew_submit(crew, fix_job, piece);
}
