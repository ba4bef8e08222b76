/*
 * progress.c -- how far the sort is, while it runs: phases, and a thread that looks at the
 * counters now and then.
 *
 * The counters are there anyway. The thread takes the lock for some nanoseconds a few times a
 * second; what it prints or samples it does without it. There is none if nobody wants to know. It
 * waits for a condition of its own, so that it ends at once, and the jobs' announcements do not
 * wake it.
 *
 * The line on a terminal is drawn while this process is in its foreground: one in the background
 * that writes may be stopped for it. Of two sorts in one pipe the first that draws goes on until it
 * ends, then the other: a lock of the terminal says whose the line is.
 */
#include "pipeline/pipeline_internal.h"

#include "machine/memory.h"
#include "pipeline/progress_line.h"
#include "util/diag.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Often enough to look alive, seldom enough to be read. */
static const double draw_seconds = 0.25;

enum { USUAL_WIDTH = 80, PRINTED_WIDTH = 200 };

struct progress {
    struct pipeline *p;
    double start_seconds;       /* of the monotonic clock */
    bool draws;                 /* on a terminal */
    bool prints;                /* a line now and then */
    struct progress_rate rate;
    enum sort_phase rate_phase;
    double cpu_before;          /* of the process, when the sort began */
    uint64_t disk_read_before, disk_written_before;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stopping;              /* under it */
};

/* What the thread sees at one moment. */
struct look {
    struct progress_facts facts;
    struct sample sample;
};

/* ---- phases ---- */

static void account_phase(struct pipeline *p)
{
    struct process_usage now;
    process_usage_now(&now);
    process_usage_add(&p->report->phases[p->phase], &p->phase_began, &now);
    p->phase_began = now;
}

void progress_enter(struct pipeline *p, enum sort_phase phase)
{
    account_phase(p);           /* nobody else changes the phase or its beginning */
    pipeline_lock(p);
    p->phase = phase;
    p->phase_seconds = p->phase_began.wall_seconds;
    pipeline_unlock(p);
}

void progress_finish(struct pipeline *p)
{
    account_phase(p);
}

void pipeline_wait_for(struct pipeline *p, enum sort_wait what)
{
    double start = monotonic_seconds();
    pipeline_wait(p);
    p->report->waits[what] += monotonic_seconds() - start;
}

void pipeline_add_wait(struct pipeline *p, enum sort_wait what, double seconds)
{
    pipeline_lock(p);
    p->report->waits[what] += seconds;
    pipeline_unlock(p);
}

/* ---- looking ---- */

/* Copies the counters. */
static void look_at(struct progress *progress, struct look *look)
{
    struct pipeline *p = progress->p;
    struct sample *sample = &look->sample;
    struct progress_facts *facts = &look->facts;
    *look = (struct look){0};
    pipeline_lock(p);
    sample->phase = facts->phase = p->phase;
    sample->records_in = facts->n_records = p->sum_in.n_records;
    sample->raw_bytes_in = p->sum_in.n_bytes;
    sample->records_out = facts->n_records_written = p->records_written;
    sample->output_bytes = p->output_bytes;
    sample->n_runs = facts->n_runs = p->n_runs;
    sample->spilled_bytes = p->spilled_bytes;
    facts->input_bytes = p->input_bytes;
    facts->input_bytes_read = p->input_bytes_read;
    facts->input_bytes_before = p->input_bytes_before;
    uint64_t raw_bytes = facts->phase == SORT_PHASE_LOAD
                             ? p->sum_in.n_bytes - p->raw_bytes_before : p->raw_bytes_written;
    double phase_began = p->phase_seconds;
    pipeline_unlock(p);
    double now = monotonic_seconds();
    sample->seconds = facts->seconds = now - progress->start_seconds;
    facts->phase_seconds = now - phase_began;
    facts->writes_index = p->settings->index_path != NULL;
    if (progress->rate_phase != facts->phase)
        progress->rate = (struct progress_rate){.seconds = phase_began};
    progress->rate_phase = facts->phase;
    if (facts->phase == SORT_PHASE_LOAD || facts->phase == SORT_PHASE_MERGE) {
        progress_rate_update(&progress->rate, now, raw_bytes);
        facts->bytes_per_second = progress->rate.bytes_per_second;
    }
}

/* Adds what the kernel counts, and keeps the sample. */
static void keep_sample(struct progress *progress, struct sample *sample)
{
    struct process_usage usage;
    process_usage_now(&usage);
    sample->cpu_seconds = usage.user_seconds + usage.system_seconds - progress->cpu_before;
    sample->disk_read_bytes = usage.disk_read_bytes - progress->disk_read_before;
    sample->disk_written_bytes = usage.disk_written_bytes - progress->disk_written_before;
    sample->resident_bytes = memory_resident();
    sample_series_add(&progress->p->report->series, sample);
}

static size_t terminal_width(void)
{
    struct winsize size;
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? (size_t)size.ws_col : USUAL_WIDTH;
}

/* Whether another sort of this pipe draws already. One of another job does not count: if it is
   stopped it keeps its lock. */
static bool other_draws(void)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(STDERR_FILENO, F_SETLK, &lock) == 0 || (errno != EACCES && errno != EAGAIN))
        return false;
    return fcntl(STDERR_FILENO, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK &&
           lock.l_pid > 0 && getpgid(lock.l_pid) == getpgrp();
}

static void draw(const struct progress_facts *facts)
{
    pid_t foreground = tcgetpgrp(STDERR_FILENO);
    if ((foreground >= 0 && foreground != getpgrp()) || other_draws()) return;
    char line[512];
    /* In the last column some terminals go on to the next line. */
    (void)progress_line(line, sizeof line, terminal_width() - 1, facts);
    diag_status(line);
}

/* ---- the thread ---- */

/* Sleeps until that time of the monotonic clock; returns false if it is to end. */
static bool sleep_until(struct progress *progress, double seconds)
{
    struct timespec until = {.tv_sec = (time_t)seconds};
    until.tv_nsec = (long)(1e9 * (seconds - (double)until.tv_sec));
    int r = 0;
    (void)pthread_mutex_lock(&progress->lock);
    while (!progress->stopping && r == 0)
        r = pthread_cond_timedwait(&progress->wake, &progress->lock, &until);
    bool go_on = !progress->stopping;
    (void)pthread_mutex_unlock(&progress->lock);
    return go_on;
}

static double earlier(double a, double b)
{
    return a < b ? a : b;
}

static void *show_progress(void *arg)
{
    struct progress *progress = arg;
    const struct sort_settings *s = progress->p->settings;
    struct sample_series *series = &progress->p->report->series;
    const double never = 1e18;
    double next_draw = progress->draws ? draw_seconds : never;
    double next_print = progress->prints ? s->progress_seconds : never;
    for (;;) {
        double next_sample = series->samples ? sample_series_due(series) : never;
        double due = earlier(earlier(next_draw, next_print), next_sample);
        if (!sleep_until(progress, progress->start_seconds + due)) return NULL;
        struct look look;
        look_at(progress, &look);
        double now = look.sample.seconds;
        if (now >= next_sample) keep_sample(progress, &look.sample);
        if (now >= next_draw) {
            draw(&look.facts);
            next_draw = now + draw_seconds;
        }
        if (now >= next_print) {
            char line[PRINTED_WIDTH + 1];
            (void)progress_line(line, sizeof line, PRINTED_WIDTH, &look.facts);
            diag_note("%s", line);
            next_print += s->progress_seconds;
            if (next_print < now) next_print = now;     /* the process had been stopped */
        }
    }
}

/* Whether a line that is drawn anew would be seen, and disturb nobody. */
static bool should_draw(const struct sort_settings *s)
{
    const char *terminal = getenv("TERM");
    if (!isatty(STDERR_FILENO) || diag_is_quiet() || hts_verbose < 2) return false;
    if (!terminal || !*terminal || strcmp(terminal, "dumb") == 0) return false;
    return s->output || s->sum_only || !isatty(STDOUT_FILENO);
}

static int start_thread(struct progress *progress)
{
    pthread_condattr_t attributes;
    int error = pthread_mutex_init(&progress->lock, NULL);
    if (error) return -1;
    error = pthread_condattr_init(&attributes);
    if (!error) {
        error = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        if (!error) error = pthread_cond_init(&progress->wake, &attributes);
        (void)pthread_condattr_destroy(&attributes);
    }
    if (error) {
        (void)pthread_mutex_destroy(&progress->lock);
        return -1;
    }
    if (pthread_create(&progress->thread, NULL, show_progress, progress) == 0) return 0;
    (void)pthread_cond_destroy(&progress->wake);
    (void)pthread_mutex_destroy(&progress->lock);
    return -1;
}

void progress_start(struct pipeline *p)
{
    const struct sort_settings *s = p->settings;
    process_usage_now(&p->phase_began);
    p->phase_seconds = p->phase_began.wall_seconds;
    bool draws = should_draw(s), prints = s->progress && !draws && !diag_is_quiet();
    if (!draws && !prints && !s->sample) return;
    struct progress *progress = calloc(1, sizeof *progress);
    int r = progress ? 0 : -1;
    if (r == 0 && s->sample) sample_series_start(&p->report->series);
    if (r == 0) {
        *progress = (struct progress){
            .p = p,
            .start_seconds = p->phase_seconds,
            .draws = draws,
            .prints = prints,
            .rate = {.seconds = p->phase_seconds},
            .cpu_before = p->phase_began.user_seconds + p->phase_began.system_seconds,
            .disk_read_before = p->phase_began.disk_read_bytes,
            .disk_written_before = p->phase_began.disk_written_bytes,
        };
        r = start_thread(progress);
    }
    if (r == 0) {
        p->progress = progress;
        return;
    }
    free(progress);
    sample_series_release(&p->report->series);
    /* The sort itself can do without. */
    diag_warning("cannot show progress: there is no memory or no thread for it");
}

void progress_stop(struct pipeline *p)
{
    struct progress *progress = p->progress;
    if (!progress) return;
    (void)pthread_mutex_lock(&progress->lock);
    progress->stopping = true;
    (void)pthread_cond_signal(&progress->wake);
    (void)pthread_mutex_unlock(&progress->lock);
    (void)pthread_join(progress->thread, NULL);
    diag_end_status();
    struct look look;
    look_at(progress, &look);
    if (p->report->series.samples) keep_sample(progress, &look.sample);
    (void)pthread_cond_destroy(&progress->wake);
    (void)pthread_mutex_destroy(&progress->lock);
    free(progress);
    p->progress = NULL;
}
