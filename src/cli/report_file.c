/* report_file.c -- see report_file.h. */
#include "cli/report_file.h"

#include "input/input_file.h"
#include "sort/prepare.h"
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

/* ---- choosing ---- */

int report_file_choose(struct output_path *path, const char *option, const char *name)
{
    *path = (struct output_path){0};
    if (!name || strcmp(name, "-") == 0) return 0;
    if (!path_is_url(name)) return output_path_choose(path, name);
    diag_error("option %s takes the name of a file, not '%s'", option, name);
    return -1;
}

int report_file_choose_counts(struct sort_options *o)
{
    struct checkpoint_output *asked = &o->settings.asked_output;
    size_t n = 0;
    o->count_temporaries = xcalloc((size_t)COUNT_N_KINDS * MOST_COUNT_FILES,
                                   sizeof *o->count_temporaries);
    for (int kind = 0; kind < COUNT_N_KINDS; kind++) {
        struct count_report *report = &o->reports[kind];
        if (count_files_choose(kind, o->counts[kind], report) < 0) return -1;
        asked->counts[kind] = report->final;
        asked->count_options[kind] = report->final ? report->request.words : NULL;
        for (unsigned i = 0; i < report->n_files; i++)
            if (report->files[i].is_streamed && report->files[i].path.temporary)
                o->count_temporaries[n++] = report->files[i].path.temporary;
    }
    asked->count_temporaries = o->count_temporaries;
    asked->n_count_temporaries = n;
    return 0;
}

static const char statistics_option[] = "-f of --markdup";
static const char metrics_option[] = "--metrics of --markdup";

int markdup_report_choose(struct markdup_report *paths, struct sort_settings *settings)
{
    const struct markdup_rules *rules = &settings->markdup_rules;
    *paths = (struct markdup_report){0};
    if (!settings->markdup) return 0;
    if (report_file_choose(&paths->statistics, statistics_option, rules->statistics_path) < 0 ||
        report_file_choose(&paths->metrics, metrics_option, rules->metrics_path) < 0)
        return -1;
    settings->asked_output.statistics = paths->statistics.final;
    settings->asked_output.metrics = paths->metrics.final;
    return 0;
}

/* ---- names for one thing only ---- */

struct named {                  /* what the sort writes */
    const char *what;           /* for messages */
    const struct output_path *path;     /* without a name: standard output */
    bool is_pattern;            /* of groups */
};

enum { MOST_NAMED = 6 + COUNT_N_KINDS * MOST_COUNT_FILES };

struct all_named {
    struct named list[MOST_NAMED];
    size_t n;
};

static void add(struct all_named *all, bool is_wanted, const char *what,
                const struct output_path *path, bool is_pattern)
{
    if (is_wanted) all->list[all->n++] = (struct named){what, path, is_pattern};
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

static bool look_up(const struct output_path *path, struct stat *st)
{
    return (path->name ? stat(path->name, st) : fstat(STDOUT_FILENO, st)) == 0 &&
           !S_ISCHR(st->st_mode);
}

/* True if both would be written to the same file, pipe or object, or one is written in place to the
   file that the other replaces. */
static bool is_same_place(const struct named *a, const struct named *b)
{
    const struct output_path *x = a->path, *y = b->path;
    struct stat of_x, of_y;
    if (!x->name && !y->name) return true;
    if (output_path_same(x, y)) return true;
    if (a->is_pattern && !b->is_pattern && x->final && y->final && fits_pattern(y->final, x->final))
        return true;
    if (x->is_url || y->is_url) return x->is_url && y->is_url && strcmp(x->name, y->name) == 0;
    return !(x->temporary && y->temporary) && look_up(x, &of_x) && look_up(y, &of_y) &&
           of_x.st_dev == of_y.st_dev && of_x.st_ino == of_y.st_ino;
}

/* Refuses a name for two things. Only the output may have the name of an input. */
static int refuse_same_names(const struct all_named *all, const struct sort_settings *settings)
{
    for (size_t i = 0; i < all->n; i++) {
        const struct named *one = &all->list[i];
        const char *name = one->path->name, *other = NULL;
        for (size_t k = 0; k < i && !other; k++)
            if (is_same_place(&all->list[k], one)) other = all->list[k].what;
        bool is_output = one->path == all->list[0].path;
        if (!other && name && !is_output &&
            input_is_among(settings->inputs, settings->n_inputs, name))
            other = "an input";
        if (!other) continue;
        if (name)
            diag_error("'%s' is named for %s and for %s: give another name to one of them", name,
                       other, one->what);
        else
            diag_error("%s and %s would mix on standard output: name a file for one of them", other,
                       one->what);
        return -1;
    }
    return 0;
}

int report_files_check(const struct sort_options *o, const struct output_path *json,
                       const struct markdup_report *duplicates)
{
    const struct sort_settings *s = &o->settings;
    const struct markdup_rules *rules = &s->markdup_rules;
    const bool is_pattern = s->split_by != NULL, writes = !s->sum_only;
    struct output_path output = {0}, index = {0}, also = {0};
    struct all_named all = {.n = 0};
    int r = prepare_path(s, writes ? s->output : NULL, &output);
    if (r == 0) r = prepare_path(s, writes ? s->index_path : NULL, &index);
    if (r == 0) r = prepare_path(s, s->also, &also);
    add(&all, true, writes ? "the output" : "the checksum", &output, is_pattern && output.final);
    add(&all, writes && s->index_path, "the index", &index, is_pattern);
    add(&all, s->also, "--also", &also, is_pattern);
    add(&all, o->report, "--report", json, false);
    for (int kind = 0; kind < COUNT_N_KINDS; kind++)
        for (unsigned i = 0; i < o->reports[kind].n_files; i++)
            add(&all, true, count_kind_option(kind), &o->reports[kind].files[i].path, false);
    add(&all, s->markdup && rules->statistics_path, statistics_option, &duplicates->statistics,
        false);
    add(&all, s->markdup && rules->metrics_path, metrics_option, &duplicates->metrics, false);
    if (r == 0) r = refuse_same_names(&all, s);
    output_path_release(&output);
    output_path_release(&index);
    output_path_release(&also);
    return r;
}

/* ---- writing ---- */

int report_file_write(struct output_path *path, const char *what,
                      int (*put)(FILE *to, const void *arg), const void *arg)
{
    /* Block signals for some milliseconds, so that no temporary file is left. */
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = output_path_print(path, what, put, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r;
}

/* ---- the reports of --markdup ---- */

/* The data for the reports. */
struct report_sources {
    const struct sort_settings *settings;
    const struct sort_report *report;
};

static int put_statistics(FILE *to, const void *arg)
{
    const struct report_sources *from = arg;
    const struct duplicate_outcome *outcome = &from->report->duplicates;
    const struct duplicate_counts sum = duplicate_counts_sum(outcome->counts, outcome->n_counts);
    char *command = xasprintf("samtools markdup %s, by samtools rocksort", from->settings->markdup);
    bool by_group = outcome->by_read_group;
    markdup_stats_write(to, from->settings->markdup_rules.json, command,
                        by_group ? outcome->counts : &sum, by_group ? outcome->groups : NULL);
    free(command);
    return 0;
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

static int put_metrics(FILE *to, const void *arg)
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
    return 0;
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
        (void)put_statistics(stderr, &sources);
    if (rules->statistics_path && !statistics->temporary == in_place &&
        report_file_write(statistics, "the statistics", put_statistics, &sources) < 0)
        return -1;
    if (!rules->metrics_path || !metrics->temporary != in_place) return 0;
    return report_file_write(metrics, "the metrics", put_metrics, &sources);
}

void markdup_report_release(struct markdup_report *paths)
{
    output_path_release(&paths->statistics);
    output_path_release(&paths->metrics);
}
