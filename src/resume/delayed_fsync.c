/* delayed_fsync.c -- see delayed_fsync.h. */
#define _GNU_SOURCE             /* pthread_cond_clockwait */
#include "resume/delayed_fsync.h"

#include "os/interpose.h"
#include "os/temp_dir.h"
#include "os/thread_pool.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct delayed_fsync {
    struct threads *threads;
    char **directories;
    unsigned after_seconds;     /* 0: everything is synced from the beginning */
    bool is_resumed;            /* data of an earlier process: synced at once */
    pthread_t thread;
    bool thread_runs;
    pthread_mutex_t lock;
    pthread_cond_t is_over_changed;
    atomic_bool stop;           /* syncing */
    /* under the lock */
    bool is_over;
    const char *failed;         /* the directory that could not be synced, or NULL */
    int error;                  /* errno of that sync */
};

/* Syncs the content of the directories. Returns the one that failed, with errno, or NULL. */
static const char *sync_all(struct delayed_fsync *d)
{
    for (char **directory = d->directories; *directory; directory++)
        if (temp_dir_sync(*directory, &d->stop) < 0) return *directory;
    return NULL;
}

/* Syncs everything unless that was done. Returns like sync_all. */
static const char *catch_up(struct delayed_fsync *d)
{
    return interpose_make_all_syncs() ? sync_all(d) : NULL;
}

/* Waits until syncs begin. False: the sort ended before. */
static bool wait_for_time(struct delayed_fsync *d)
{
    struct timespec until;
    int error = 0;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)d->after_seconds;
    (void)pthread_mutex_lock(&d->lock);
    while (!d->is_over && !error)
        error = pthread_cond_clockwait(&d->is_over_changed, &d->lock, CLOCK_MONOTONIC,
                                       &until);
    bool is_time = !d->is_over;
    (void)pthread_mutex_unlock(&d->lock);
    return is_time;
}

static void *sync_later(void *arg)
{
    struct delayed_fsync *d = arg;
    const char *failed = NULL;
    if (d->is_resumed)
        failed = sync_all(d);
    else if (wait_for_time(d))
        failed = catch_up(d);
    if (!failed) return NULL;
    int error = errno;
    (void)pthread_mutex_lock(&d->lock);
    d->error = error;
    d->failed = failed;
    (void)pthread_mutex_unlock(&d->lock);
    thread_pool_fail(d->threads);
    return NULL;
}

void free_paths(char **paths)
{
    for (size_t i = 0; paths && paths[i]; i++) free(paths[i]);
    free(paths);
}

static void destroy(struct delayed_fsync *d)
{
    free_paths(d->directories);
    free(d);
}

struct delayed_fsync *delayed_fsync_begin(const struct sort_settings *settings,
                                          struct threads *threads, char **directories,
                                          bool at_once)
{
    struct delayed_fsync *d = xcalloc(1, sizeof *d);
    d->threads = threads;
    d->directories = directories;
    d->after_seconds = at_once ? 0 : settings->fsync_after_seconds;
    d->is_resumed = settings->resumed != NULL;
    d->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    d->is_over_changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    bool leaves_out = d->after_seconds > 0 && !d->is_resumed;
    if (leaves_out) interpose_skip_syncs(d->directories);
    if (!d->is_resumed && (!leaves_out || settings->no_resume)) return d;
    int error = thread_start(&d->thread, "syncer", sync_later, d);
    d->thread_runs = error == 0;
    if (!error) return d;
    diag_no_thread(error);
    (void)interpose_make_all_syncs();
    destroy(d);
    return NULL;
}

void delayed_fsync_tell(struct delayed_fsync *d, int result)
{
    if (!d) return;
    (void)pthread_mutex_lock(&d->lock);
    const char *failed = d->failed;
    int error = d->error;
    (void)pthread_mutex_unlock(&d->lock);
    if (failed && result < 0)
        diag_error("cannot write temporary data in '%s': %s", failed, strerror(error));
}

/* Ends the thread, at once unless the directories stay. */
static void end_thread(struct delayed_fsync *d, bool directories_stay)
{
    if (!d->thread_runs) return;
    atomic_store(&d->stop, !directories_stay);
    (void)pthread_mutex_lock(&d->lock);
    d->is_over = true;
    (void)pthread_cond_signal(&d->is_over_changed);
    (void)pthread_mutex_unlock(&d->lock);
    (void)pthread_join(d->thread, NULL);
}

void delayed_fsync_end(struct delayed_fsync *d, bool directories_stay)
{
    if (!d) return;
    end_thread(d, directories_stay);
    const char *failed = directories_stay ? catch_up(d) : NULL;
    int error = errno;
    if (d->failed && directories_stay) {
        failed = d->failed;
        error = d->error;
    }
    if (failed)
        diag_warning("'%s' may not survive a power failure: %s", failed, strerror(error));
    (void)interpose_make_all_syncs();
    destroy(d);
}
