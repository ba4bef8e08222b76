/* progress.c -- see progress.h. */
#include "pipeline/progress.h"

#include "machine/memory.h"
#include "pipeline/progress_line.h"
#include "pipeline/thread.h"
#include "util/diag.h"
#include "util/monotonic.h"
#include "util/xalloc.h"

#include <errno.h>
#include <fcntl.h>
#include <htslib/hts_log.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Often enough to look alive, seldom enough to be read. */
static const double draw_seconds = 0.25;

enum { USUAL_WIDTH = 80, PRINTED_WIDTH = 200 };

struct progress {
    const struct sort_settings *settings;
    void (*look)(void *arg, struct progress_counts *counts);
    void *arg;
    struct sort_report *report;
    double start_seconds;       /* of the monotonic clock */
    struct process_usage before;        /* when the sort began */
    struct process_usage phase_began;
    bool draws;                 /* on a terminal */
    bool prints;                /* a line now and then */
    bool thread_runs;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    /* under the lock */
    bool stopping;
    enum sort_phase phase;
    double phase_seconds;       /* when it began */
    /* the thread; once it has ended, its owner */
    struct progress_rate rate;
    enum sort_phase rate_phase;
};

/* What the thread sees at one moment. */
struct look {
    struct progress_facts facts;
    struct sample sample;
};

/* ---- phases ---- */

static void account_phase(struct progress *progress)
{
    struct process_usage now;
    process_usage_now(&now);
    /* Only this thread changes the phase and its beginning. */
    process_usage_add(&progress->report->phases[progress->phase], &progress->phase_began, &now);
    progress->phase_began = now;
}

void progress_enter(struct progress *progress, enum sort_phase phase)
{
    account_phase(progress);
    if (progress->thread_runs) (void)pthread_mutex_lock(&progress->lock);
    progress->phase = phase;
    progress->phase_seconds = progress->phase_began.wall_seconds;
    if (progress->thread_runs) (void)pthread_mutex_unlock(&progress->lock);
}

void progress_finish(struct progress *progress)
{
    account_phase(progress);
    free(progress);
}

/* ---- looking ---- */

/* Copies the counters. */
static void look_at(struct progress *progress, struct look *look)
{
    struct sample *sample = &look->sample;
    struct progress_facts *facts = &look->facts;
    struct progress_counts counts;
    *look = (struct look){0};
    (void)pthread_mutex_lock(&progress->lock);
    sample->phase = facts->phase = progress->phase;
    double phase_began = progress->phase_seconds;
    (void)pthread_mutex_unlock(&progress->lock);
    progress->look(progress->arg, &counts);
    sample->records_in = facts->n_records = counts.records_in;
    sample->raw_bytes_in = counts.raw_bytes_in;
    sample->records_out = facts->n_records_written = counts.records_out;
    sample->output_bytes = counts.output_bytes;
    sample->n_runs = facts->n_runs = counts.n_runs;
    sample->spilled_bytes = counts.spilled_bytes;
    facts->input_bytes = counts.file_bytes;
    facts->input_bytes_read = counts.file_bytes_read;
    facts->input_bytes_before = counts.file_bytes_before;
    double now = monotonic_seconds();
    sample->seconds = facts->seconds = now - progress->start_seconds;
    facts->phase_seconds = now - phase_began;
    facts->writes_index = progress->settings->index_path != NULL;
    facts->merges_inputs = progress->settings->merge;
    if (progress->rate_phase != facts->phase)
        progress->rate = (struct progress_rate){.seconds = phase_began};
    progress->rate_phase = facts->phase;
    if (facts->phase == SORT_PHASE_LOAD || facts->phase == SORT_PHASE_MERGE) {
        uint64_t raw_bytes = facts->phase == SORT_PHASE_LOAD
                                 ? counts.raw_bytes_in - counts.raw_bytes_before
                                 : counts.raw_bytes_out;
        progress_rate_update(&progress->rate, now, raw_bytes);
        facts->bytes_per_second = progress->rate.bytes_per_second;
    }
}

/* Adds what the kernel counts, and keeps the sample. */
static void keep_sample(struct progress *progress, struct sample *sample)
{
    const struct process_usage *before = &progress->before;
    struct process_usage usage;
    process_usage_now(&usage);
    sample->cpu_seconds = usage.user_seconds + usage.system_seconds - before->user_seconds -
                          before->system_seconds;
    sample->disk_read_bytes = usage.disk_read_bytes - before->disk_read_bytes;
    sample->disk_written_bytes = usage.disk_written_bytes - before->disk_written_bytes;
    sample->resident_bytes = memory_resident();
    sample_series_add(&progress->report->series, sample);
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
    double print_seconds = progress->settings->progress_seconds;
    struct sample_series *series = &progress->report->series;
    const double never = 1e18;
    double next_draw = progress->draws ? draw_seconds : never;
    double next_print = progress->prints ? print_seconds : never;
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
            next_print += print_seconds;
            if (next_print < now) next_print = now;     /* the process had been stopped */
        }
    }
}

/* True if a line that is drawn again and again would be seen and disturb no other output. */
static bool should_draw(const struct sort_settings *s)
{
    const char *terminal = getenv("TERM");
    if (!isatty(STDERR_FILENO) || diag_is_quiet() || hts_verbose < 2) return false;
    if (!terminal || !*terminal || strcmp(terminal, "dumb") == 0) return false;
    return s->output || s->sum_only || !isatty(STDOUT_FILENO);
}

/* Returns 0, or -1 if no thread can be created. */
static int start_thread(struct progress *progress)
{
    if (pthread_mutex_init(&progress->lock, NULL) != 0) return -1;
    if (monotonic_cond_init(&progress->wake) != 0) {
        (void)pthread_mutex_destroy(&progress->lock);
        return -1;
    }
    progress->thread_runs = true;
    if (thread_start(&progress->thread, "progress", show_progress, progress) == 0) return 0;
    progress->thread_runs = false;
    (void)pthread_cond_destroy(&progress->wake);
    (void)pthread_mutex_destroy(&progress->lock);
    return -1;
}

struct progress *progress_start(const struct sort_settings *settings,
                                void (*look)(void *arg, struct progress_counts *counts),
                                void *arg, struct sort_report *report)
{
    struct progress *progress = xcalloc(1, sizeof *progress);
    progress->settings = settings;
    progress->look = look;
    progress->arg = arg;
    progress->report = report;
    process_usage_now(&progress->before);
    progress->phase_began = progress->before;
    progress->start_seconds = progress->phase_seconds = progress->before.wall_seconds;
    progress->rate.seconds = progress->start_seconds;
    progress->draws = should_draw(settings);
    progress->prints = settings->progress && !progress->draws && !diag_is_quiet();
    if (!progress->draws && !progress->prints && !settings->sample) return progress;
    if (settings->sample) sample_series_start(&report->series);
    if (start_thread(progress) == 0) return progress;
    sample_series_release(&report->series);
    /* The sort works without this thread. */
    diag_warning("cannot show progress: there is no thread for it");
    return progress;
}

void progress_stop(struct progress *progress)
{
    if (!progress->thread_runs) return;
    (void)pthread_mutex_lock(&progress->lock);
    progress->stopping = true;
    (void)pthread_cond_signal(&progress->wake);
    (void)pthread_mutex_unlock(&progress->lock);
    (void)pthread_join(progress->thread, NULL);
    diag_end_status();
    struct look look;
    look_at(progress, &look);
    if (progress->report->series.samples) keep_sample(progress, &look.sample);
    (void)pthread_cond_destroy(&progress->wake);
    (void)pthread_mutex_destroy(&progress->lock);
    progress->thread_runs = false;
}
