/* sort_report.c -- see sort_report.h. */
#include "sort/sort_report.h"

#include "os/memory.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

const char *sort_phase_name(enum sort_phase phase)
{
    static const char *const names[SORT_N_PHASES] = {"load", "settle", "mark", "merge", "close"};
    return names[phase];
}

void sample_series_start(struct sample_series *series)
{
    *series = (struct sample_series){
        .samples = xmalloc(SAMPLE_MOST * sizeof *series->samples),
        .interval_seconds = SAMPLE_SECONDS,
    };
}

double sample_series_due(const struct sample_series *series)
{
    return series->n > 0 ? series->samples[series->n - 1].seconds + series->interval_seconds : 0;
}

void sample_series_add(struct sample_series *series, const struct sample *sample)
{
    if (!series->samples) return;
    if (series->n == SAMPLE_MOST) {
        for (size_t i = 1; i < SAMPLE_MOST / 2; i++) series->samples[i] = series->samples[2 * i];
        series->n = SAMPLE_MOST / 2;
        series->interval_seconds *= 2;
    }
    series->samples[series->n++] = *sample;
}

void sample_series_release(struct sample_series *series)
{
    free(series->samples);
    *series = (struct sample_series){0};
}

static double wall_seconds(const struct sort_report *report)
{
    double seconds = 0;
    for (int i = 0; i < SORT_N_PHASES; i++) seconds += report->phases[i].wall_seconds;
    return seconds;
}

void sort_report_print_checksum(const struct sort_report *report, FILE *to)
{
    (void)fprintf(to, "xxh3sum:%016" PRIx64 " records:%" PRIu64 " bytes:%" PRIu64 "\n",
                  report->checksum, report->n_records, report->raw_bytes);
}

static double megabytes(uint64_t n_bytes)
{
    return 1e-6 * (double)n_bytes;
}

static double cpu_seconds(const struct sort_report *r)
{
    double cpu = 0;
    for (int i = 0; i < SORT_N_PHASES; i++)
        cpu += r->phases[i].user_seconds + r->phases[i].system_seconds;
    return cpu;
}

enum { MORE_TEXT_BYTES = PATH_MAX + 128 };

/* Text after the name of the output: none, or ", also 1.5 MB to 'out.parquet'; 1 input is probably
   truncated". */
static void add_to_output(const struct sort_report *r, char text[MORE_TEXT_BYTES])
{
    int n = 0;
    *text = '\0';
    if (r->also)
        n = snprintf(text, MORE_TEXT_BYTES, ", also %.1f MB to '%s'", megabytes(r->also_bytes),
                     r->also);
    if (r->n_inputs_cut > 0 && n >= 0 && n < MORE_TEXT_BYTES)
        (void)snprintf(text + n, (size_t)(MORE_TEXT_BYTES - n), "; %zu %s probably truncated",
                       r->n_inputs_cut, r->n_inputs_cut == 1 ? "input is" : "inputs are");
}

/* The closing line with --merge. */
static void print_merged_line(const struct sort_report *r)
{
    char more[MORE_TEXT_BYTES];
    add_to_output(r, more);
    diag_note("merged %" PRIu64 " records of %zu inputs; %.1f MB in, %.1f MB out, of which %.1f MB "
              "of %zu inputs were copied; written to '%s'%s; %.1f s wall, %.1f s CPU, "
              "%.1f MiB peak memory",
              r->n_records, r->n_inputs_merged + r->n_inputs_copied, megabytes(r->input_bytes),
              megabytes(r->output_bytes), megabytes(r->copied_bytes), r->n_inputs_copied,
              r->output ? r->output : "standard output", more, wall_seconds(r),
              cpu_seconds(r), (double)memory_peak() / (1 << 20));
}

/* Scripts parse this line: do not change its words; add new ones before the wall time. */
static void print_closing_line(const struct sort_report *r)
{
    const struct process_usage *phases = r->phases;
    const struct process_usage *last = &phases[SORT_PHASE_CLOSE];
    double wall = wall_seconds(r);
    double load = phases[SORT_PHASE_LOAD].wall_seconds + phases[SORT_PHASE_SETTLE].wall_seconds;
    double merge = phases[SORT_PHASE_MERGE].wall_seconds + last->wall_seconds;
    char input[32] = "?";       /* unknown if htslib decodes a pipe */
    char mark[32] = "", more[MORE_TEXT_BYTES];
    add_to_output(r, more);
    if (r->input_bytes > 0)
        (void)snprintf(input, sizeof input, "%.1f", megabytes(r->input_bytes));
    if (r->duplicates.n_counts > 0)
        (void)snprintf(mark, sizeof mark, "mark %.1f, ", phases[SORT_PHASE_MARK].wall_seconds);
    diag_note("sorted %" PRIu64 " records, %.1f MB; %s MB in, %.1f MB out; %u runs on disk, %.1f "
              "MB temporary, %.1f MB compacted; written to '%s'%s; %.1f s wall (load %.1f, %smerge "
              "%.1f), %.1f s CPU, %.1f MiB peak memory, %.1f MB/s",
              r->n_records, megabytes(r->raw_bytes), input, megabytes(r->output_bytes),
              r->store.n_runs, megabytes(r->store.run_bytes), megabytes(r->store.compacted_bytes),
              r->output ? r->output : "standard output", more, wall, load, mark, merge,
              cpu_seconds(r), (double)memory_peak() / (1 << 20),
              wall > 0 ? megabytes(r->raw_bytes) / wall : 0);
}

static void print_store_details(const struct sort_report *r)
{
    const struct run_store_stats *store = &r->store;
    const struct disk_traits *disk = &store->disk;
    diag_note("temporary disk: %s%s", disk->file_system,
              disk->is_memory    ? ", which is memory"
              : disk->is_network ? ", a network file system"
                                 : "");
    if (disk->seek_seconds > 0)
        diag_note("temporary disk (%s): a seek takes %.2f ms, %.1f at a time, reading in order "
                  "%.0f MB/s", disk->file_system, 1e3 * disk->seek_seconds, disk->parallel,
                  1e-6 * disk->bytes_per_second);
    const unsigned *n = r->runs_of_codec;
    /* A resumed sort may not have written a run itself. */
    if (n[TEMP_CODEC_NONE] + n[TEMP_CODEC_SNAPPY] + n[TEMP_CODEC_LZ4] + n[TEMP_CODEC_ZSTD] > 0)
        diag_note("codec: %u runs none, %u snappy, %u lz4, %u zstd; the last one because %s",
                  n[TEMP_CODEC_NONE], n[TEMP_CODEC_SNAPPY], n[TEMP_CODEC_LZ4],
                  n[TEMP_CODEC_ZSTD], codec_reason_text(r->codec_reason));
    diag_note("compaction %s, because %s", store->compacted ? "on" : "off",
              compaction_reason_text(store->reason));
    if (store->compacted)
        diag_note("compacted %u files at a time beyond %u, reading %zu KiB at a time",
                  store->width, store->max_files, store->compaction_read_bytes >> 10);
    char size[32] = "read ahead by the kernel";
    if (store->scan_read_bytes > 0)
        (void)snprintf(size, sizeof size, "%zu KiB at a time", store->scan_read_bytes >> 10);
    diag_note("the merge read %u files, %s%s, with about %" PRIu64 " seeks in all", store->n_files,
              size, store->direct ? " past the page cache" : "", store->n_seeks);
}

void sort_report_print(const struct sort_report *report, bool details)
{
    if (report->n_inputs_merged + report->n_inputs_copied > 0) {
        print_merged_line(report);
        return;
    }
    print_closing_line(report);
    if (details) {
        diag_note("%u sort buffers merged from memory, reader waited %.2f s for memory",
                  report->n_buffers_kept, report->waits[WAIT_READER_MEMORY]);
        if (report->store.n_runs > 0) print_store_details(report);
    }
    for (char **path = report->kept_directories; path && *path; path++)
        diag_note("the temporary data are kept in '%s'", *path);
}

void sort_report_release(struct sort_report *report)
{
    free(report->kept_directories);
    free(report->duplicates.counts);
    read_groups_destroy(report->duplicates.groups);
    group_list_destroy(report->groups);
    report->groups = NULL;
    report->duplicates = (struct duplicate_outcome){0};
    report->kept_directories = NULL;
    sample_series_release(&report->series);
}
