/* duplicate_report.c -- see duplicate_report.h. */
#include "command/duplicate_report.h"

#include "command/report_file.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char statistics_option[] = "-f of --markdup";
static const char metrics_option[] = "--metrics of --markdup";

int duplicate_report_choose(struct duplicate_report *paths, struct sort_settings *settings,
                            const struct output_path *stats)
{
    const struct duplicate_rules *rules = &settings->duplicate_rules;
    *paths = (struct duplicate_report){0};
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
        if (report_file_keep_apart(&reports[i], &reports[(i + 1) % N_REPORTS]) < 0) return -1;
    return 0;
}

/* What the reports are made of. */
struct report_sources {
    const struct sort_settings *settings;
    const struct sort_report *report;
};

static void put_statistics(FILE *to, const void *arg)
{
    const struct report_sources *from = arg;
    const struct duplicate_outcome *outcome = &from->report->duplicates;
    struct duplicate_counts sum = {0};
    char *command = xasprintf("samtools markdup %s, by samtools rocksort", from->settings->markdup);
    bool by_group = outcome->by_read_group;
    for (size_t i = 0; i < outcome->n_counts; i++)
        duplicate_counts_join(&sum, &outcome->counts[i]);
    duplicate_stats_write(to, from->settings->duplicate_rules.json, command,
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
    duplicate_metrics_write(to, from->settings->command_line, started, counts, outcome->groups);
    free(counts);
}

int duplicate_report_write(struct duplicate_report *paths, const struct sort_settings *settings,
                           const struct sort_report *report, struct output_set *set)
{
    const struct duplicate_rules *rules = &settings->duplicate_rules;
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

void duplicate_report_release(struct duplicate_report *paths)
{
    output_path_release(&paths->statistics);
    output_path_release(&paths->metrics);
}
