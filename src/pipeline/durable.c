/*
 * durable.c -- from when on temporary data survive a power failure.
 *
 * The end of a process they survive in any case: what was written is the kernel's. For the rest
 * RocksDB syncs half a dozen times a run. Together that is a tenth of the wall time of a sort of
 * 2 GB (bench/options.py), for a result that is had again as quickly as a machine boots. So the
 * syncs of a sort's first half minute are left out; then all that is there is synced, in a thread
 * of its own, and from then on whatever RocksDB says is durable is. With --no-resume nothing is
 * synced at all.
 *
 * After a power failure within that time the store may be damaged; --resume then says so. A store
 * that is resumed is synced at once: the process that made it may have ended before it caught up.
 */
#include "pipeline/pipeline_internal.h"

#include "machine/interpose.h"
#include "store/temp_dir.h"
#include "util/diag.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* Syncs all that is in the directories. Returns the one where that failed, with errno, or NULL. */
static const char *sync_all(struct pipeline *p)
{
    for (size_t i = 0; i < p->n_scratch_paths; i++)
        if (temp_dir_sync(p->scratch_paths[i], &p->stop_syncing) < 0) return p->scratch_paths[i];
    return NULL;
}

/* Makes durable what was not. As sync_all. */
static const char *catch_up(struct pipeline *p)
{
    return interpose_make_all_syncs() ? sync_all(p) : NULL;
}

/* Waits until syncs are to be made; false: the sort was over before. */
static bool wait_for_time(struct pipeline *p)
{
    struct timespec until;
    int error = 0;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)p->settings->durable_after_seconds;
    pipeline_lock(p);
    while (!p->over && !error) error = pthread_cond_timedwait(&p->sort_is_over, &p->lock, &until);
    bool is_time = !p->over;
    pipeline_unlock(p);
    return is_time;
}

static void *sync_later(void *arg)
{
    struct pipeline *p = arg;
    const char *failed = NULL;
    if (p->settings->resumed)
        failed = sync_all(p);
    else if (wait_for_time(p))
        failed = catch_up(p);
    if (!failed) return NULL;
    pipeline_lock(p);
    p->sync_errno = errno;
    p->sync_failed = failed;
    pipeline_unlock(p);
    pipeline_fail(p);
    return NULL;
}

/* The clock on the wall may be set meanwhile. */
static int init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;
    int error = pthread_condattr_init(&monotonic);
    if (error) return error;
    error = pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    if (!error) error = pthread_cond_init(condition, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    return error;
}

static int start_syncing(struct pipeline *p)
{
    int error = init_condition(&p->sort_is_over);
    if (!error) {
        error = pthread_create(&p->sync_thread, NULL, sync_later, p);
        if (error) (void)pthread_cond_destroy(&p->sort_is_over);
    }
    p->sync_thread_runs = !error;
    if (error) diag_no_thread(error);
    return error ? -1 : 0;
}

void durable_tell(struct pipeline *p, int result)
{
    pipeline_lock(p);
    const char *failed = p->sync_failed;
    int error = p->sync_errno;
    pipeline_unlock(p);
    if (failed && result < 0)
        diag_error("cannot write temporary data in '%s': %s", failed, strerror(error));
}

int durable_begin(struct pipeline *p)
{
    const struct sort_settings *s = p->settings;
    if (s->resumed) return start_syncing(p);
    /* Of an input that is overwritten there will be nothing else. */
    if (s->durable_after_seconds == 0 || p->overwrites_input) return 0;
    p->real_scratch_paths = resume_absolute_paths(p);
    if (!p->real_scratch_paths) return pipeline_no_memory(p);
    interpose_skip_syncs(p->real_scratch_paths);
    return s->no_resume ? 0 : start_syncing(p);
}

void durable_end(struct pipeline *p)
{
    if (p->sync_thread_runs) {
        atomic_store(&p->stop_syncing, !p->keeps_store);
        pipeline_lock(p);
        (void)pthread_cond_signal(&p->sort_is_over);
        pipeline_unlock(p);
        (void)pthread_join(p->sync_thread, NULL);
        (void)pthread_cond_destroy(&p->sort_is_over);
    }
    const char *failed = p->keeps_store ? catch_up(p) : NULL;
    int error = errno;
    if (p->sync_failed && p->keeps_store) {
        failed = p->sync_failed;
        error = p->sync_errno;
    }
    if (failed)
        diag_warning("'%s' may not survive a power failure: %s", failed, strerror(error));
    (void)interpose_make_all_syncs();
    free_paths(p->real_scratch_paths);
}
