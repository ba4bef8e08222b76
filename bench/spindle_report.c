/*
 * spindle_report.c -- see spindle_report.h. The report has what was measured, and the means, ratios
 * and shares of time that follow from it, so that readers need no arithmetic.
 */
#include "spindle_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static double unix_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double cpu_now(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* Begins a period. Drops characters of the label that JSON would escape. */
static void period_begin(struct period *period, const char *label)
{
    size_t n = 0;
    *period = (struct period){0};
    for (; *label && n + 1 < sizeof period->label; label++)
        if ((unsigned char)*label >= ' ' && *label != '"' && *label != '\\' &&
            (unsigned char)*label < 127)
            period->label[n++] = *label;
    period->begin_unix = unix_now();
    period->cpu_begin = cpu_now();
}

static void period_end(struct period *period)
{
    period->end_unix = unix_now();
    period->cpu_end = cpu_now();
}

void report_init(struct report *report, const char *label)
{
    period_begin(&report->current, label);
}

void report_release(struct report *report)
{
    free(report->past);
    report->past = NULL;
    report->n_past = 0;
}

int report_next(struct report *report, const char *label)
{
    struct period *past = realloc(report->past, (report->n_past + 1) * sizeof *past);
    if (!past) return -1;
    report->past = past;
    model_count(report->model, &report->current.counters, true);
    period_end(&report->current);
    past[report->n_past++] = report->current;
    period_begin(&report->current, label);
    return 0;
}

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

static void print_counts(FILE *out, const struct period *period)
{
    const struct counters *c = &period->counters;
    const struct {
        const char *name;
        uint64_t value;
    } counts[] = {
        {"requests", c->reads + c->writes},
        {"reads", c->reads},
        {"writes", c->writes},
        {"read_bytes", c->read_bytes},
        {"write_bytes", c->write_bytes},
        {"seeks", c->seeks},
        {"read_seeks", c->read_seeks},
        {"skips", c->skips},
        {"consecutive", c->consecutive},
        {"small_reads", c->small_reads},
        {"syncs", c->syncs},
        {"buffer_hits", c->buffer_hits},
        {"buffer_hit_bytes", c->buffer_hit_bytes},
        {"absorbed_bytes", c->absorbed_bytes},
        {"discarded_bytes", c->discarded_bytes},
        {"stalls", c->stalls},
        {"max_buffered_bytes", c->max_buffered_bytes},
    };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        fprintf(out, "\"%s\": %" PRIu64 ", ", counts[i].name, counts[i].value);
}

static void print_period(FILE *out, const struct device *device, const struct period *period)
{
    const struct counters *c = &period->counters;
    double elapsed = (double)(c->end_ns - c->begin_ns) / 1e9;
    double busy = (double)(c->read_busy_ns + c->write_busy_ns) / 1e9;
    double reads = (double)c->reads, writes = (double)c->writes;
    double read_bytes = (double)c->read_bytes, write_bytes = (double)c->write_bytes;
    double transfer = 0;
    if (device->read_rate > 0) transfer += read_bytes / device->read_rate;
    if (device->write_rate > 0) transfer += write_bytes / device->write_rate;
    double drive_seconds = elapsed * device->n_drives;
    const struct {
        const char *name;
        double value;
    } numbers[] = {
        {"begin_unix_s", period->begin_unix},
        {"end_unix_s", period->end_unix},
        {"elapsed_s", elapsed},
        {"busy_s", busy},
        {"read_busy_s", (double)c->read_busy_ns / 1e9},
        {"write_busy_s", (double)c->write_busy_ns / 1e9},
        {"small_read_busy_s", (double)c->small_read_busy_ns / 1e9},
        {"read_wait_s", (double)c->read_wait_ns / 1e9},
        {"stall_s", (double)c->stall_ns / 1e9},
        {"mean_read_bytes", share(read_bytes, reads)},
        {"mean_write_bytes", share(write_bytes, writes)},
        {"consecutive_ratio", share((double)c->consecutive, reads + writes)},
        {"read_iops", share(reads, elapsed)},
        {"write_iops", share(writes, elapsed)},
        {"utilisation", share(busy, drive_seconds)},
        {"bandwidth_utilisation", share(transfer, drive_seconds)},
        {"spindle_cpu_s", period->cpu_end - period->cpu_begin},
    };
    fprintf(out, "{\"label\": \"%s\", ", period->label);
    print_counts(out, period);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        fprintf(out, "%s\"%s\": %.6f", i ? ", " : "", numbers[i].name, numbers[i].value);
    fprintf(out, "}");
}

char *report_json(struct report *report)
{
    const struct device *d = report->device;
    char *text = NULL;
    size_t n_bytes;
    FILE *out = open_memstream(&text, &n_bytes);
    if (!out) return NULL;

    model_count(report->model, &report->current.counters, false);
    period_end(&report->current);
    fprintf(out,
            "{\"device\": {\"name\": \"%s\", \"title\": \"%s\", \"rotational\": %s, "
            "\"drives\": %u, \"stripe_bytes\": %" PRIu64 ", \"io_cap_bytes\": %" PRIu64
            ", \"read_bytes_s\": %.0f, \"write_bytes_s\": %.0f, \"read_iops\": %.6g, "
            "\"write_iops\": %.6g, \"write_buffer_bytes\": %" PRIu64 "},\n \"history\": [",
            d->name, d->title, d->rotates ? "true" : "false", d->n_drives, d->stripe_bytes,
            d->io_cap_bytes, d->read_rate, d->write_rate, d->read_iops, d->write_iops,
            report->write_buffer_bytes);
    for (size_t i = 0; i < report->n_past; i++) {
        print_period(out, d, &report->past[i]);
        fprintf(out, i + 1 < report->n_past ? ",\n  " : "");
    }
    fprintf(out, "],\n \"current\": ");
    print_period(out, d, &report->current);
    fprintf(out, "}\n");
    if (fclose(out)) {
        free(text);
        return NULL;
    }
    return text;
}
