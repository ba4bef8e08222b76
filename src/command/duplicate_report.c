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

/* Text that is being written; it ends with a NUL. */
struct memory_file {
    FILE *stream;
    char *text;
    size_t n_bytes;
};

static void open_memory(struct memory_file *file)
{
    file->stream = open_memstream(&file->text, &file->n_bytes);
    xalloc_require(file->stream != NULL);
}

static void close_memory(struct memory_file *file)
{
    bool had_memory = !ferror(file->stream);
    xalloc_require(fclose(file->stream) == 0 && had_memory);
}

static int write_statistics(struct duplicate_report *paths, const struct sort_settings *settings,
                            const struct duplicate_outcome *outcome)
{
    const struct duplicate_rules *rules = &settings->duplicate_rules;
    struct memory_file file = {0};
    struct duplicate_counts sum = {0};
    char *command = xasprintf("samtools markdup %s, by samtools rocksort", settings->markdup);
    bool by_group = outcome->by_read_group;
    for (size_t i = 0; i < outcome->n_counts; i++)
        duplicate_counts_join(&sum, &outcome->counts[i]);
    open_memory(&file);
    duplicate_stats_write(file.stream, rules->json, command, by_group ? outcome->counts : &sum,
                          by_group ? outcome->groups : NULL);
    close_memory(&file);
    free(command);
    int r = 0;
    if (rules->statistics_path)
        r = report_file_write(&paths->statistics, "statistics", file.text, file.n_bytes);
    else
        (void)fputs(file.text, stderr);
    free(file.text);
    return r;
}

/* Counts of read groups as counts of their libraries. */
static struct duplicate_counts *count_libraries(const struct duplicate_outcome *outcome)
{
    size_t n = read_groups_count_libraries(outcome->groups) + 1;
    struct duplicate_counts *counts = xcalloc(n, sizeof *counts);
    for (size_t i = 0; i < outcome->n_counts; i++) {
        size_t library = outcome->by_read_group ? read_groups_library(outcome->groups, i) : i;
        duplicate_counts_join(&counts[library], &outcome->counts[i]);
    }
    return counts;
}

static int write_metrics(struct duplicate_report *paths, const struct sort_settings *settings,
                         const struct sort_report *report)
{
    const struct duplicate_outcome *outcome = &report->duplicates;
    struct memory_file file = {0};
    char started[64] = "";
    struct tm utc;
    if (gmtime_r(&report->begun, &utc))
        (void)strftime(started, sizeof started, "%a %b %d %H:%M:%S UTC %Y", &utc);
    struct duplicate_counts *counts = count_libraries(outcome);
    open_memory(&file);
    duplicate_metrics_write(file.stream, settings->command_line, started, counts,
                            outcome->groups);
    close_memory(&file);
    free(counts);
    int r = report_file_write(&paths->metrics, "metrics", file.text, file.n_bytes);
    free(file.text);
    return r;
}

int duplicate_report_write(struct duplicate_report *paths, const struct sort_settings *settings,
                           const struct sort_report *report, struct output_set *set)
{
    const struct duplicate_rules *rules = &settings->duplicate_rules;
    if (!settings->markdup) return 0;
    if (set) output_set_add(set, &paths->statistics, OUTPUT_EXTRA);
    if (set) output_set_add(set, &paths->metrics, OUTPUT_EXTRA);
    if (rules->prints_statistics && (paths->statistics.temporary != NULL) == (set != NULL) &&
        write_statistics(paths, settings, &report->duplicates) < 0)
        return -1;
    if (!rules->metrics_path || (paths->metrics.temporary != NULL) != (set != NULL)) return 0;
    return write_metrics(paths, settings, report);
}

void duplicate_report_release(struct duplicate_report *paths)
{
    output_path_release(&paths->statistics);
    output_path_release(&paths->metrics);
}
