/* report_file.c -- see report_file.h. */
#include "cli/report_file.h"

#include "util/diag.h"
#include "util/path.h"
#include "util/xalloc.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static bool is_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && S_ISREG(x.st_mode) && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

/* True if standard output is the file or pipe of this name. */
static bool is_standard_output(const char *name)
{
    struct stat x, y;
    return stat(name, &x) == 0 && fstat(STDOUT_FILENO, &y) == 0 && !S_ISCHR(x.st_mode) &&
           x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Returns 1 if a path and `name` refer to the same regular file, which need not exist; 0 if not; -1
   after a message. */
static int stands_for(const struct output_path *path, const char *name)
{
    struct output_path other;
    if (!name) return 0;
    if (is_same_file(path->name, name)) return 1;
    if (output_path_choose(&other, name) < 0) return -1;
    bool same = output_path_same(path, &other);
    output_path_release(&other);
    return same;
}

/* True if replacing each % of the pattern by some name can give this path. */
static bool fits_pattern(const char *name, const char *pattern)
{
    if (*pattern != '%')
        return *name == *pattern && (!*name || fits_pattern(name + 1, pattern + 1));
    while (*name && *name != '/')
        if (fits_pattern(++name, pattern + 1)) return true;
    return false;
}

/* Returns 1 if a group or its index may get the path; 0 if not; -1 after a message. `pattern` may
   be NULL. */
static int may_be_group(const struct output_path *path, const char *pattern)
{
    struct output_path other;
    if (!path->final || !pattern) return 0;
    if (output_path_choose_pattern(&other, pattern) < 0) return -1;
    bool may = fits_pattern(path->final, other.final);
    output_path_release(&other);
    return may;
}

/* True if both paths refer to the same file, or both to standard output. */
static bool is_same_place(const struct output_path *a, const struct output_path *b)
{
    if (!a->name || !b->name) return a->name == b->name;
    return output_path_same(a, b) || is_same_file(a->name, b->name);
}

/* True if a file of counts goes to the same place. */
static bool has_count_file(const struct sort_settings *settings, const struct output_path *path)
{
    for (int i = 0; i < COUNT_N_KINDS; i++) {
        const struct count_file *file = &settings->count_files[i];
        if (file->is_wanted && &file->path != path && is_same_place(path, &file->path)) return true;
    }
    return false;
}

int report_file_choose(struct output_path *path, const char *option, const char *name,
                     const struct sort_settings *settings)
{
    *path = (struct output_path){0};
    if (strcmp(name, "-") == 0) {
        if (settings->output && !settings->sum_only && !has_count_file(settings, path)) return 0;
        diag_error("%s - would mix with other text on standard output: name a file", option);
        return -1;
    }
    if (path_is_url(name)) {
        diag_error("option %s takes the name of a file, not '%s'", option, name);
        return -1;
    }
    if (output_path_choose(path, name) < 0) return -1;
    bool prints = settings->sum_only || !settings->output;
    int (*is_output)(const struct output_path *path, const char *name) =
        settings->split_by ? may_be_group : stands_for;
    int same = prints ? is_standard_output(path->name) : is_output(path, settings->output);
    if (same == 0 && !settings->sum_only) same = is_output(path, settings->index_path);
    if (same == 0) same = stands_for(path, settings->also);
    for (size_t i = 0; same == 0 && i < settings->n_inputs; i++)
        same = is_same_file(path->name, settings->inputs[i]);
    if (same == 0) same = has_count_file(settings, path);
    if (same > 0)
        diag_error("%s '%s' is an input or output of the sort: name another file", option, name);
    if (same != 0) output_path_release(path);
    return same != 0 ? -1 : 0;
}

int report_file_choose_counts(struct sort_options *o)
{
    for (int i = 0; i < COUNT_N_KINDS; i++) {
        struct count_file *file = &o->count_files[i];
        char option[32];
        if (!o->counts[i]) continue;
        (void)snprintf(option, sizeof option, "--%s", count_kind_name((enum count_kind)i));
        if (report_file_choose(&file->path, option, o->counts[i], &o->settings) < 0) return -1;
        file->is_wanted = true;
        o->settings.asked_output.counts[i] = file->path.final;
    }
    return 0;
}

/* A report with its chosen path. */
struct chosen_report {
    const char *option;         /* for messages */
    const struct output_path *path;     /* NULL: not wanted */
};

/* Refuses two reports that would go to one place. Returns 0, or -1 after a message. */
static int keep_apart(const struct chosen_report *a, const struct chosen_report *b)
{
    if (!a->path || !b->path || !is_same_place(a->path, b->path)) return 0;
    if (a->path->name)
        diag_error("%s and %s name one file, '%s': name another for one of them", a->option,
                   b->option, a->path->name);
    else
        diag_error("%s and %s would mix on standard output: name a file for one of them",
                   a->option, b->option);
    return -1;
}

/* ---- writing ---- */

/* Writes to the file, or to standard output. */
static int write_file(struct output_path *path, const char *what,
                      void (*put)(FILE *to, const void *arg), const void *arg)
{
    int error = output_path_print(path, put, arg);
    if (error)
        diag_error("cannot write the %s to '%s': %s%s", what,
                   path->name ? path->name : "standard output", strerror(error),
                   diag_advice(error));
    if (!error && output_path_commit(path) == 0) return 0;
    output_path_drop(path);
    return -1;
}

int report_file_write(struct output_path *path, const char *what,
                      void (*put)(FILE *to, const void *arg), const void *arg)
{
    /* Block signals for some milliseconds, so that no temporary file is left. */
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = write_file(path, what, put, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r;
}

/* ---- the reports of --markdup ---- */

static const char statistics_option[] = "-f of --markdup";
static const char metrics_option[] = "--metrics of --markdup";

int markdup_report_choose(struct markdup_report *paths, struct sort_settings *settings,
                          const struct output_path *stats)
{
    const struct markdup_rules *rules = &settings->markdup_rules;
    *paths = (struct markdup_report){0};
    if (!settings->markdup) return 0;
    if (rules->statistics_path && report_file_choose(&paths->statistics, statistics_option,
                                                     rules->statistics_path, settings) < 0)
        return -1;
    if (rules->metrics_path && report_file_choose(&paths->metrics, metrics_option,
                                                  rules->metrics_path, settings) < 0)
        return -1;
    settings->asked_output.statistics = paths->statistics.final;
    settings->asked_output.metrics = paths->metrics.final;
    const struct chosen_report reports[] = {
        {"--stats", stats},
        {statistics_option, rules->statistics_path ? &paths->statistics : NULL},
        {metrics_option, rules->metrics_path ? &paths->metrics : NULL},
    };
    enum { N_REPORTS = sizeof reports / sizeof *reports };
    for (size_t i = 0; i < N_REPORTS; i++)
        if (keep_apart(&reports[i], &reports[(i + 1) % N_REPORTS]) < 0) return -1;
    return 0;
}

/* The data for the reports. */
struct report_sources {
    const struct sort_settings *settings;
    const struct sort_report *report;
};

static void put_statistics(FILE *to, const void *arg)
{
    const struct report_sources *from = arg;
    const struct duplicate_outcome *outcome = &from->report->duplicates;
    const struct duplicate_counts sum = duplicate_counts_sum(outcome->counts, outcome->n_counts);
    char *command = xasprintf("samtools markdup %s, by samtools rocksort", from->settings->markdup);
    bool by_group = outcome->by_read_group;
    markdup_stats_write(to, from->settings->markdup_rules.json, command,
                        by_group ? outcome->counts : &sum, by_group ? outcome->groups : NULL);
    free(command);
}

/* Counts of read groups as counts of their libraries. */
static struct duplicate_counts *count_libraries(const struct duplicate_outcome *outcome)
{
    size_t n = outcome->groups->libraries.n + 1;
    struct duplicate_counts *counts = xcalloc(n, sizeof *counts);
    for (size_t i = 0; i < outcome->n_counts; i++) {
        size_t library = outcome->by_read_group ? read_groups_library(outcome->groups, i) : i;
        duplicate_counts_join(&counts[library], &outcome->counts[i]);
    }
    return counts;
}

static void put_metrics(FILE *to, const void *arg)
{
    const struct report_sources *from = arg;
    const struct duplicate_outcome *outcome = &from->report->duplicates;
    char started[64] = "";
    struct tm utc;
    if (gmtime_r(&from->report->begun, &utc))
        (void)strftime(started, sizeof started, "%a %b %d %H:%M:%S UTC %Y", &utc);
    struct duplicate_counts *counts = count_libraries(outcome);
    markdup_metrics_write(to, from->settings->command_line, started, counts, outcome->groups);
    free(counts);
}

int markdup_report_write(struct markdup_report *paths, const struct sort_settings *settings,
                         const struct sort_report *report, struct output_set *set)
{
    const struct markdup_rules *rules = &settings->markdup_rules;
    const struct report_sources sources = {settings, report};
    struct output_path *statistics = &paths->statistics, *metrics = &paths->metrics;
    if (!settings->markdup) return 0;
    if (set) output_set_add(set, statistics, OUTPUT_EXTRA);
    if (set) output_set_add(set, metrics, OUTPUT_EXTRA);
    bool in_place = !set;
    if (rules->prints_statistics && !rules->statistics_path && in_place)
        put_statistics(stderr, &sources);
    if (rules->statistics_path && !statistics->temporary == in_place &&
        report_file_write(statistics, "statistics", put_statistics, &sources) < 0)
        return -1;
    if (!rules->metrics_path || !metrics->temporary != in_place) return 0;
    return report_file_write(metrics, "metrics", put_metrics, &sources);
}

void markdup_report_release(struct markdup_report *paths)
{
    output_path_release(&paths->statistics);
    output_path_release(&paths->metrics);
}
