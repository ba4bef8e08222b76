/* progress.c -- see progress.h. */
#define _GNU_SOURCE             /* pthread_cond_clockwait */
#include "sort/progress.h"

#include "os/memory.h"
#include "os/thread_pool.h"
#include "util/diag.h"
#include "util/monotonic.h"
#include "util/xalloc.h"

#include <errno.h>
#include <fcntl.h>
#include <htslib/hts_log.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { PART_BYTES = 64 };

/* Time constant of the moving average. A plain mean would hide a disk that becomes slow. */
static const double rate_memory_seconds = 5;

/* Until both are reached, no time left is shown: the first data are still in the pipeline. */
static const double first_seconds = 2, first_share = 0.003;

/* Seconds between two updates of the line. */
static const double draw_seconds = 0.25;

enum { USUAL_WIDTH = 80, PRINTED_WIDTH = 200 };

struct progress {
    const struct sort_context *sort;
    double start_seconds;       /* of the monotonic clock */
    struct process_usage before;        /* when the sort began */
    struct process_usage phase_began;
    bool draws;                 /* on a terminal */
    bool prints;                /* a line every progress_seconds */
    bool thread_runs;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    /* under the lock */
    bool stopping;
    enum sort_phase phase;
    double phase_seconds;       /* start of the phase */
    /* used by the thread, and by its owner after that has ended */
    struct progress_rate rate;
    enum sort_phase rate_phase;
};

/* ---- the line ---- */

void progress_rate_update(struct progress_rate *rate, double seconds, uint64_t n_bytes)
{
    double elapsed = seconds - rate->seconds;
    if (rate->seconds > 0 && elapsed > 0 && n_bytes >= rate->n_bytes) {
        double now = (double)(n_bytes - rate->n_bytes) / elapsed;
        double share = 1 - exp(-elapsed / rate_memory_seconds);
        /* Divide by the weight, so that the time before the first update does not count as a rate
           of 0. */
        double sum = (1 - share) * rate->bytes_per_second * rate->weight + share * now;
        rate->weight = (1 - share) * rate->weight + share;
        rate->bytes_per_second = sum / rate->weight;
    }
    rate->seconds = seconds;
    rate->n_bytes = n_bytes;
}

/* done / all, from 0 to 1; negative if `all` is 0, which means unknown. */
static double share_of(uint64_t done, uint64_t all)
{
    if (all == 0) return -1;
    return done < all ? (double)done / (double)all : 1;     /* a file may grow while it is read */
}

double progress_share(const struct progress_facts *facts)
{
    bool reads = facts->now.phase == SORT_PHASE_LOAD ||
                 (facts->now.phase == SORT_PHASE_MERGE && facts->merges_inputs);
    if (reads && facts->now.file_bytes_read > 0)
        return share_of(facts->now.file_bytes_read, facts->now.file_bytes);
    if (facts->now.phase == SORT_PHASE_MERGE && !facts->merges_inputs)
        return share_of(facts->now.records_out, facts->now.records_in);
    return -1;
}

double progress_seconds_left(const struct progress_facts *facts)
{
    /* Bytes read by an earlier process do not count for the rate. */
    uint64_t before = facts->now.phase == SORT_PHASE_LOAD ? facts->now.file_bytes_before : 0;
    struct progress_facts own = *facts;
    own.now.file_bytes -= before < own.now.file_bytes ? before : own.now.file_bytes;
    own.now.file_bytes_read -= before < own.now.file_bytes_read ? before : own.now.file_bytes_read;
    double share = progress_share(&own);
    if (share < first_share || facts->phase_seconds < first_seconds) return -1;
    return facts->phase_seconds * (1 - share) / share;
}

/* "999", "1.23 K", "45.6 M", "789 M": three digits. */
static void format_count(char *text, uint64_t n)
{
    static const char units[] = {'K', 'M', 'G', 'T'};
    if (n < 1000) {
        (void)snprintf(text, PART_BYTES, "%u", (unsigned)n);
        return;
    }
    double value = (double)n / 1000;
    size_t unit = 0;
    /* 999.5 would be printed as 1000, so it gets the next unit. */
    for (; value >= 999.5 && unit + 1 < sizeof units; unit++) value /= 1000;
    int n_decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    (void)snprintf(text, PART_BYTES, "%.*f %c", n_decimals, value, units[unit]);
}

/* "0:05", "12:34", "3:04:05". */
static void format_time(char *text, double seconds)
{
    const double most = 1e7;                    /* four months are enough */
    unsigned long s = (unsigned long)((seconds < most ? seconds : most) + 0.5);
    unsigned long hours = s / 3600, minutes = s / 60 % 60;
    if (hours > 0)
        (void)snprintf(text, PART_BYTES, "%lu:%02lu:%02lu", hours, minutes, s % 60);
    else
        (void)snprintf(text, PART_BYTES, "%lu:%02lu", minutes, s % 60);
}

static void format_phase(char *text, const struct progress_facts *facts)
{
    const char *some = facts->now.n_runs > 0 ? " runs" : "";
    char what[PART_BYTES];
    switch (facts->now.phase) {
    case SORT_PHASE_LOAD: (void)snprintf(what, sizeof what, "reading"); break;
    case SORT_PHASE_SETTLE: (void)snprintf(what, sizeof what, "finishing%s", some); break;
    case SORT_PHASE_MARK: (void)snprintf(what, sizeof what, "marking duplicates"); break;
    case SORT_PHASE_MERGE: (void)snprintf(what, sizeof what, "merging"); break;
    default: (void)snprintf(what, sizeof what, facts->writes_index ? "indexing" : "closing");
    }
    double share = progress_share(facts);
    /* Rounded down, so that 100 % means all is done. */
    if (share >= 0)
        (void)snprintf(text, PART_BYTES, "%.32s %d %%", what, (int)(100 * share));
    else
        (void)snprintf(text, PART_BYTES, "%.32s", what);
}

/* Appends ", part". Returns false if it does not fit; then no more parts should follow. */
static bool append(char *line, size_t room, size_t width, const char *part)
{
    size_t n = strlen(line), n_part = strlen(part), n_comma = n > 0 ? 2 : 0;
    if (n + n_comma + n_part > width || n + n_comma + n_part >= room) return false;
    (void)snprintf(line + n, room - n, "%s%s", n_comma ? ", " : "", part);
    return true;
}

/* Makes the parts of the line, the most important first; returns their number. */
static size_t make_parts(char parts[][PART_BYTES], const struct progress_facts *facts)
{
    char text[PART_BYTES];
    size_t n = 0;
    format_phase(parts[n++], facts);
    double left = progress_seconds_left(facts);
    if (left >= 0) {
        format_time(text, left);
        (void)snprintf(parts[n++], PART_BYTES, "%.32s left", text);
    }
    if (facts->bytes_per_second > 0)
        (void)snprintf(parts[n++], PART_BYTES, "%.*f MB/s", facts->bytes_per_second < 9.95e6,
                       1e-6 * facts->bytes_per_second);
    format_count(text, facts->now.records_in);
    (void)snprintf(parts[n++], PART_BYTES, "%.32s records", text);
    if (facts->now.n_runs > 0)
        (void)snprintf(parts[n++], PART_BYTES, "%u run%s", (unsigned)facts->now.n_runs,
                       facts->now.n_runs == 1 ? "" : "s");
    format_time(text, facts->now.seconds);
    (void)snprintf(parts[n++], PART_BYTES, "%.32s so far", text);
    return n;
}

size_t progress_line(char *line, size_t room, size_t width, const struct progress_facts *facts)
{
    char parts[6][PART_BYTES];
    size_t n = make_parts(parts, facts);
    if (room == 0) return 0;
    line[0] = '\0';
    if (!append(line, room, width, parts[0])) {
        /* Not even the phase fits: print its beginning. */
        size_t most = width < room - 1 ? width : room - 1;
        (void)snprintf(line, most + 1, "%s", parts[0]);
    } else {
        for (size_t i = 1; i < n && append(line, room, width, parts[i]); i++) continue;
    }
    return strlen(line);
}

/* ---- phases ---- */

/* Only the thread of the sort changes the phase and its beginning. */
static void account_phase(struct progress *progress)
{
    struct process_usage now;
    process_usage_now(&now);
    process_usage_add(&progress->sort->report->phases[progress->phase], &progress->phase_began,
                      &now);
    progress->phase_began = now;
}

void progress_enter(struct progress *progress, enum sort_phase phase)
{
    account_phase(progress);
    (void)pthread_mutex_lock(&progress->lock);
    progress->phase = phase;
    progress->phase_seconds = progress->phase_began.wall_seconds;
    (void)pthread_mutex_unlock(&progress->lock);
}

void progress_finish(struct progress *progress)
{
    account_phase(progress);
    (void)pthread_mutex_destroy(&progress->lock);
    free(progress);
}

/* ---- counters and samples ---- */

/* Copies the counters of the stages. */
static void copy_counters(const struct sort_context *sort, struct sample *sample)
{
    thread_pool_lock(sort->threads);
    const struct load_counts *read = load_totals_locked(sort->totals);
    const struct spill_totals *spilled = &sort->spiller.totals;
    *sample = (struct sample){
        .records_in = read->sum.n_records, .raw_bytes_in = read->sum.n_bytes,
        .raw_bytes_before = read->raw_bytes_before, .file_bytes = read->file_bytes,
        .file_bytes_read = read->file_bytes_read, .file_bytes_before = read->file_bytes_before,
        .n_runs = spilled->n_runs, .spilled_bytes = spilled->raw_bytes,
        .records_out = sort->merged.n_records, .raw_bytes_out = sort->merged.raw_bytes,
        .output_bytes = sort->merged.output_bytes,
    };
    thread_pool_unlock(sort->threads);
}

static void look_at(struct progress *progress, struct progress_facts *facts)
{
    struct sample *now = &facts->now;
    *facts = (struct progress_facts){.writes_index = progress->sort->settings->index_path != NULL,
                                     .merges_inputs = progress->sort->settings->merge};
    copy_counters(progress->sort, now);
    (void)pthread_mutex_lock(&progress->lock);
    now->phase = progress->phase;
    double phase_began = progress->phase_seconds, time = monotonic_seconds();
    (void)pthread_mutex_unlock(&progress->lock);
    now->seconds = time - progress->start_seconds;
    facts->phase_seconds = time - phase_began;
    if (progress->rate_phase != now->phase)
        progress->rate = (struct progress_rate){.seconds = phase_began};
    progress->rate_phase = now->phase;
    if (now->phase == SORT_PHASE_LOAD || now->phase == SORT_PHASE_MERGE) {
        progress_rate_update(&progress->rate, time,
                             now->phase == SORT_PHASE_LOAD
                                 ? now->raw_bytes_in - now->raw_bytes_before
                                 : now->raw_bytes_out);
        facts->bytes_per_second = progress->rate.bytes_per_second;
    }
}

/* Adds the counters of the kernel, and keeps the sample. */
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
    sample_series_add(&progress->sort->report->series, sample);
}

static size_t terminal_width(void)
{
    struct winsize size;
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? (size_t)size.ws_col : USUAL_WIDTH;
}

/* True if another sort in the same pipe already draws. A sort of another job is ignored: it keeps
   its lock while it is stopped. */
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
    /* Some terminals wrap a line that uses the last column. */
    (void)progress_line(line, sizeof line, terminal_width() - 1, facts);
    diag_status(line);
}

/* ---- the thread ---- */

/* Sleeps until a time of the monotonic clock; returns false if the thread must end. */
static bool sleep_until(struct progress *progress, double seconds)
{
    struct timespec until = {.tv_sec = (time_t)seconds};
    until.tv_nsec = (long)(1e9 * (seconds - (double)until.tv_sec));
    int r = 0;
    (void)pthread_mutex_lock(&progress->lock);
    while (!progress->stopping && r == 0)
        r = pthread_cond_clockwait(&progress->wake, &progress->lock, CLOCK_MONOTONIC, &until);
    bool go_on = !progress->stopping;
    (void)pthread_mutex_unlock(&progress->lock);
    return go_on;
}

static void *show_progress(void *arg)
{
    struct progress *progress = arg;
    double print_seconds = progress->sort->settings->progress_seconds;
    struct sample_series *series = &progress->sort->report->series;
    const double never = 1e18;
    double next_draw = progress->draws ? draw_seconds : never;
    double next_print = progress->prints ? print_seconds : never;
    for (;;) {
        double next_sample = series->samples ? sample_series_due(series) : never;
        double due = fmin(fmin(next_draw, next_print), next_sample);
        if (!sleep_until(progress, progress->start_seconds + due)) return NULL;
        struct progress_facts facts;
        look_at(progress, &facts);
        double now = facts.now.seconds;
        if (now >= next_sample) keep_sample(progress, &facts.now);
        if (now >= next_draw) {
            draw(&facts);
            next_draw = now + draw_seconds;
        }
        if (now >= next_print) {
            char line[PRINTED_WIDTH + 1];
            (void)progress_line(line, sizeof line, PRINTED_WIDTH, &facts);
            diag_note("%s", line);
            next_print += print_seconds;
            if (next_print < now) next_print = now;     /* after a stop of the process */
        }
    }
}

/* True if the line can be redrawn on a terminal without disturbing other output. */
static bool should_draw(const struct sort_settings *s)
{
    const char *terminal = getenv("TERM");
    if (!isatty(STDERR_FILENO) || diag_is_quiet() || hts_verbose < 2) return false;
    if (!terminal || !*terminal || strcmp(terminal, "dumb") == 0) return false;
    return s->output || s->sum_only || !isatty(STDOUT_FILENO);
}

struct progress *progress_start(const struct sort_context *sort)
{
    const struct sort_settings *settings = sort->settings;
    struct progress *progress = xcalloc(1, sizeof *progress);
    *progress = (struct progress){.sort = sort, .lock = PTHREAD_MUTEX_INITIALIZER,
                                   .wake = PTHREAD_COND_INITIALIZER};
    process_usage_now(&progress->before);
    progress->phase_began = progress->before;
    progress->start_seconds = progress->phase_seconds = progress->before.wall_seconds;
    progress->rate.seconds = progress->start_seconds;
    progress->draws = should_draw(settings);
    progress->prints = settings->progress && !progress->draws && !diag_is_quiet();
    if (!progress->draws && !progress->prints && !settings->sample) return progress;
    if (settings->sample) sample_series_start(&sort->report->series);
    progress->thread_runs =
        thread_start(&progress->thread, "progress", show_progress, progress) == 0;
    if (progress->thread_runs) return progress;
    sample_series_release(&sort->report->series);
    /* Continue without progress. */
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
    struct progress_facts facts;
    look_at(progress, &facts);
    if (progress->sort->report->series.samples) keep_sample(progress, &facts.now);
    progress->thread_runs = false;
}
