/* load_jobs.c -- see load_jobs.h. */
#include "pipeline/load_jobs.h"

#include "bam/bam_check.h"
#include "input/input_error.h"
#include "util/xalloc.h"

#include <stdlib.h>

/* ---- sorting ---- */

static void sort_job(struct worker *worker, void *arg)
{
    struct batch *batch = arg;
    const struct load_jobs *jobs = batch->owner;
    if (crew_failed(jobs->crew)) return;
    if (jobs->sum_only) {
        batch_pool_forget(jobs->pool, batch);
        return;
    }
    batch_sort(batch, &worker->space);
    crew_lock(jobs->crew);
    batch->sorted = true;                       /* the crew announces the end of each job */
    crew_unlock(jobs->crew);
}

void load_jobs_step_done(struct batch *batch)
{
    const struct load_jobs *jobs = batch->owner;
    if (atomic_fetch_sub(&batch->n_pending, 1) == 1)
        (void)crew_submit(jobs->crew, sort_job, batch);
}

/* ---- indexing ---- */

void load_jobs_drop_records(struct load_piece *piece)
{
    const struct load_jobs *jobs = piece->jobs;
    crew_assert_locked(jobs->crew);
    if (--piece->n_users > 0) return;
    /* One line of a million bases should not make every buffer in the ring stay large. */
    size_t keep_bytes = 4 * jobs->text_bytes;
    sam_chunk_shrink_raw(&piece->input.lines, keep_bytes);
    if (piece->templates.fixed.out_room > keep_bytes) fixmate_release(&piece->templates.fixed);
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
    free(work->marks);
    template_stretch_release(&work->stretch);
    fixmate_release(&work->fixed);
}

/* Marks the input as bad and fails the crew. The caller has printed a message. */
static void fail_of_input(const struct load_jobs *jobs)
{
    load_totals_set_bad(jobs->totals);
    crew_fail(jobs->crew);
}

/* Copies the records of a part into the batch (SAM only), checks them and makes their entries. */
static void index_job(struct worker *worker, void *arg)
{
    (void)worker;
    struct batch_part *part = arg;
    struct batch *batch = part->batch;          /* sorting frees the part */
    const struct load_jobs *jobs = batch->owner;
    struct load_piece *source = part->source_owner;
    struct content_sum sum = {0};
    struct record_problem problem;
    if (crew_failed(jobs->crew)) return;
    if (batch_index_part(part, jobs->n_refs, &sum, &problem) < 0) {
        record_problem_print(&problem, part->input);
        fail_of_input(jobs);
        return;
    }
    if (jobs->verification) verification_check(jobs->verification, part);
    crew_lock(jobs->crew);
    load_totals_add(jobs->totals, &sum, part->any_placed);
    content_sum_join(&batch->sum, &sum);
    batch->any_placed |= part->any_placed;
    if (source) load_jobs_drop_records(source);
    crew_unlock(jobs->crew);
    load_jobs_step_done(batch);
}

int load_jobs_index(struct batch_part *part)
{
    const struct load_jobs *jobs = part->batch->owner;
    return crew_submit(jobs->crew, index_job, part);
}

/* ---- pieces ---- */

static void piece_done(struct load_piece *piece)
{
    crew_lock(piece->jobs->crew);
    piece->done = true;
    crew_unlock(piece->jobs->crew);
}

static void inflate_job(struct worker *worker, void *arg)
{
    struct load_piece *piece = arg;
    if (!crew_failed(piece->jobs->crew) &&
        bam_piece_inflate(&piece->input, &worker->bgzf, load_jobs_raw(piece)) < 0) {
        input_error_piece(bam_reader_name(piece->reader), &piece->input);
        fail_of_input(piece->jobs);
    }
    piece_done(piece);
}

int load_jobs_inflate(struct load_piece *piece)
{
    return crew_submit(piece->jobs->crew, inflate_job, piece);
}

static void parse_job(struct worker *worker, void *arg)
{
    struct load_piece *piece = arg;
    struct sam_chunk *lines = &piece->input.lines;
    if (!crew_failed(piece->jobs->crew))
        sam_chunk_parse(lines, bam_reader_header(piece->reader), worker_record(worker));
    sam_chunk_shrink_text(lines, 4 * piece->jobs->text_bytes);
    piece_done(piece);
}

int load_jobs_parse(struct load_piece *piece)
{
    return crew_submit(piece->jobs->crew, parse_job, piece);
}

/* ---- templates ---- */

/* Remembers that a template has ended. */
static void mark_template(struct template_work *work, size_t piece_at, size_t n_records)
{
    xgrow(&work->marks, &work->marks_room, work->n_marks + 1, work->n_marks, sizeof *work->marks);
    work->marks[work->n_marks++] = (struct template_mark){
        .out_bytes = work->fixed.out_bytes, .n_out = work->fixed.n_out, .piece_at = piece_at,
        .n_records = n_records};
}

/* Checks a record, and moves its CIGAR to its field. Returns NULL, or what is wrong. */
static const char *check_record(const struct load_jobs *jobs, uint8_t *rec)
{
    const char *problem = bam_record_check_input(rec, jobs->n_refs, jobs->long_positions);
    if (!problem) (void)bam_record_restore_cigar(rec);
    return problem;
}

/*
 * Fixes the templates of n_bytes of records. *before is the last record before them, or NULL.
 * Templates are marked if they end in the piece, which begins at `piece`. Returns 0, or -1 with
 * *problem.
 */
static int fix_records(struct load_piece *piece, uint8_t *records, size_t n_bytes,
                       const uint8_t **before, size_t *n_records, struct record_problem *problem)
{
    const struct load_jobs *jobs = piece->jobs;
    struct template_work *work = &piece->templates;
    bool is_in_piece = records != work->stretch.left.at;
    size_t rec_bytes;
    for (uint8_t *rec = records; rec < records + n_bytes; rec += rec_bytes) {
        rec_bytes = bam_record_bytes(rec);
        problem->text = check_record(jobs, rec);
        if (problem->text) return -1;
        if (*before && !template_same_name(*before, rec)) {
            fixmate_finish(jobs->fixmate, &work->fixed);
            if (is_in_piece) mark_template(work, (size_t)(rec - load_jobs_raw(piece)), *n_records);
        }
        problem->text = fixmate_add(jobs->fixmate, &work->fixed, rec);
        if (problem->text) return -1;
        *before = rec;
        ++*n_records;
        problem->record++;
    }
    return 0;
}

/* Fixes the templates of a stretch. Returns 0, or -1 with *problem. */
static int fix_stretch(struct load_piece *piece, struct record_problem *problem)
{
    struct template_work *work = &piece->templates;
    const struct template_stretch *stretch = &work->stretch;
    const uint8_t *before = NULL;
    size_t n_records = 0;
    fixmate_empty(&work->fixed);
    work->n_marks = 0;
    *problem = (struct record_problem){.record = work->first_record, .is_damaged = true};
    if (fix_records(piece, stretch->left.at, stretch->left.n_bytes, &before, &n_records,
                    problem) < 0 ||
        fix_records(piece, load_jobs_raw(piece) + stretch->from, stretch->to - stretch->from,
                    &before, &n_records, problem) < 0)
        return -1;
    if (n_records == 0) return 0;
    fixmate_finish(piece->jobs->fixmate, &work->fixed);
    mark_template(work, stretch->to, n_records);
    return 0;
}

static void fix_job(struct worker *worker, void *arg)
{
    (void)worker;
    struct load_piece *piece = arg;
    struct record_problem problem;
    if (!crew_failed(piece->jobs->crew) && fix_stretch(piece, &problem) < 0) {
        record_problem_print(&problem, bam_reader_name(piece->reader));
        fail_of_input(piece->jobs);
    }
    piece_done(piece);
}

int load_jobs_fix(struct load_piece *piece)
{
    return crew_submit(piece->jobs->crew, fix_job, piece);
}
