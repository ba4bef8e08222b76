/* pool.c -- jobs and the workers' state. See pipeline_internal.h. */
#include "pipeline/pipeline_internal.h"

#include "util/diag.h"
#include "util/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct job {
    struct pipeline *pipeline;
    void (*run)(struct pipeline *, struct worker *, void *);
    void *arg;
};

static struct worker *take_worker(struct pipeline *p)
{
    pipeline_lock(p);
    struct worker *worker = p->idle_workers;
    if (worker) p->idle_workers = worker->next;
    pipeline_unlock(p);
    return worker;
}

static void *run_job(void *arg)
{
    struct job *job = arg;
    struct pipeline *p = job->pipeline;
    struct worker *worker = take_worker(p);
    double start = monotonic_seconds();
    job->run(p, worker, job->arg);
    pipeline_lock(p);
    p->job_seconds += monotonic_seconds() - start;
    worker->next = p->idle_workers;
    p->idle_workers = worker;
    p->n_jobs--;
    pipeline_announce(p);
    pipeline_unlock(p);
    free(job);
    return NULL;
}

int pipeline_submit(struct pipeline *p, void (*run)(struct pipeline *, struct worker *, void *),
                    void *arg)
{
    struct job *job = malloc(sizeof *job);
    if (!job) return pipeline_no_memory(p);
    *job = (struct job){p, run, arg};
    pipeline_lock(p);
    p->n_jobs++;
    pipeline_unlock(p);
    /* Never blocks: whoever submits bounds what is in flight. */
    if (hts_tpool_dispatch2(p->pool.pool, p->jobs, run_job, job, -1) < 0) {
        diag_error("cannot hand work to a thread: %s; give less with -m", strerror(errno));
        free(job);
        pipeline_lock(p);
        p->n_jobs--;
        pipeline_unlock(p);
        pipeline_fail(p);
        return -1;
    }
    return 0;
}

int worker_reserve_raw(struct worker *worker, size_t n_bytes)
{
    return grow_array(&worker->raw, &worker->raw_room, n_bytes, n_bytes / 4, 1);
}

int worker_reserve_slices(struct worker *worker, size_t n_slices)
{
    return grow_array(&worker->slices, &worker->n_slices, n_slices, n_slices,
                      sizeof *worker->slices);
}

void free_workers(struct pipeline *p)
{
    while (p->idle_workers) {
        struct worker *worker = p->idle_workers;
        p->idle_workers = worker->next;
        merge_space_release(&worker->space);
        bgzf_coder_release(&worker->bgzf);
        temp_coder_release(&worker->temp);
        merge_bound_release(&worker->bound);
        bam_destroy1(worker->record);
        ks_free(&worker->line);
        free(worker->slices);
        free(worker->raw);
        free(worker);
    }
}

int start_pool(struct pipeline *p)
{
    int n = (int)p->budget.n_threads;
    for (int i = 0; i < n; i++) {
        struct worker *worker = calloc(1, sizeof *worker);
        if (!worker) return pipeline_no_memory(p);
        worker->next = p->idle_workers;
        p->idle_workers = worker;
    }
    p->pool.pool = hts_tpool_init(n);
    /* htslib keeps up to 1,000 parsed records, or a CRAM slice, for each place in its queue. */
    p->pool.qsize = n;
    if (p->pool.pool) p->jobs = hts_tpool_process_init(p->pool.pool, 4 * n + 16, 1);
    if (!p->jobs) {
        diag_error("cannot start %d threads: %s; give fewer with -@, or raise the limit "
                   "(ulimit -u, -v)", n, strerror(errno));
        return -1;
    }
    return 0;
}
