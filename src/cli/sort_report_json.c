/*
 * sort_report_json.c -- the report of --report; see report_file.h.
 *
 * Every file has every field; null if it has no value. So readers need no defaults, and a test can
 * compare doc/report.md with any file.
 */
#include "cli/report_file.h"

#include "cli/library_versions.h"
#include "os/memory.h"
#include "util/diag.h"
#include "util/json_writer.h"
#include "util/version.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { SCHEMA_VERSION = 1 };

/* ---- the fields ---- */

static void write_known(struct json_writer *json, const char *name, uint64_t value)
{
    if (value > 0)
        json_unsigned(json, name, value);
    else
        json_string(json, name, NULL);
}

static void write_checksum(struct json_writer *json, uint64_t checksum)
{
    char digits[sizeof "0123456789abcdef"];
    (void)snprintf(digits, sizeof digits, "%016" PRIx64, checksum);
    json_string(json, "checksum", digits);
}

static void write_time(struct json_writer *json, const char *name, time_t time)
{
    struct tm utc;
    char text[sizeof "2026-11-22T01:02:03Z" + 16];
    bool known = gmtime_r(&time, &utc) && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    json_string(json, name, known ? text : NULL);
}

static void write_versions(struct json_writer *json)
{
    struct library_version libraries[LIBRARY_COUNT];
    library_versions(libraries);
    const struct library_version *inflates = &libraries[LIBRARY_LIBDEFLATE];
    if (!inflates->name) inflates = &libraries[LIBRARY_ZLIB];
    char text[2 * LIBRARY_VERSION_BYTES];
    (void)snprintf(text, sizeof text, "%s %s", inflates->name, inflates->version);
    json_begin_object(json, "versions");
    json_string(json, "rocksort", ROCKSORT_VERSION);
    json_string(json, "deflate", text);
    for (int i = 0; i < LIBRARY_COUNT; i++)
        if (libraries[i].field)
            json_string(json, libraries[i].field, libraries[i].name ? libraries[i].version : NULL);
    json_end(json);
}

static void write_machine(struct json_writer *json)
{
    struct utsname system;
    bool known = uname(&system) == 0;
    uint64_t available = memory_available();
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    json_begin_object(json, "machine");
    json_string(json, "host", known ? system.nodename : NULL);
    json_string(json, "kernel", known ? system.release : NULL);
    write_known(json, "cpus", cpus > 0 ? (uint64_t)cpus : 0);
    write_known(json, "memory_available_bytes", available < UINT64_MAX ? available : 0);
    json_end(json);
}

static void write_options(struct json_writer *json, const struct sort_settings *s)
{
    static const char *const compaction_modes[] = {
        [COMPACTION_AUTO] = "auto", [COMPACTION_OFF] = "off", [COMPACTION_ON] = "on"};
    const struct sort_rules *rules = &s->rules;
    bool by_tag = rules->order == SORT_TAG && !s->sum_only;
    char tag[3] = {rules->tag[0], rules->tag[1], '\0'};
    json_begin_object(json, "options");
    json_string(json, "order", s->sum_only ? NULL : sort_order_name(rules->order));
    json_string(json, "tag", by_tag ? tag : NULL);
    json_string(json, "order_below_tag", by_tag ? sort_order_name(rules->below) : NULL);
    json_unsigned(json, "threads", s->n_threads);
    json_unsigned(json, "memory_bytes", s->memory_bytes);
    json_string(json, "output_format",
                s->sum_only ? NULL : output_format_option(&s->output_format));
    json_string(json, "split_by", s->split_by);
    if (s->level < 0 || s->sum_only)
        json_string(json, "level", NULL);
    else
        json_unsigned(json, "level", (uint64_t)s->level);
    json_string(json, "deflate", bgzf_engine_name(s->engine));
    json_string(json, "temp_codec", s->codec_auto ? "auto" : temp_codec_name(s->codec));
    json_string(json, "compaction", compaction_modes[s->compaction]);
    write_known(json, "expected_raw_bytes", s->input_bytes);
    json_begin_array(json, "temp_prefixes");
    for (size_t i = 0; i < s->n_temp_prefixes; i++)
        if (s->temp_prefixes[i]) json_string(json, NULL, s->temp_prefixes[i]);
    json_end(json);
    json_bool(json, "keep_store", s->keep_checkpoint);
    json_bool(json, "checksum_only", s->sum_only);
    json_end(json);
}

static void write_input(struct json_writer *json, const struct sort_settings *s,
                        const struct sort_report *r)
{
    json_begin_object(json, "input");
    json_begin_array(json, "files");
    for (size_t i = 0; i < s->n_inputs; i++) json_string(json, NULL, s->inputs[i]);
    json_end(json);
    write_known(json, "bytes", r->input_bytes);
    json_unsigned(json, "records", r->n_records);
    json_unsigned(json, "raw_bytes", r->raw_bytes);
    write_checksum(json, r->checksum);
    json_unsigned(json, "truncated", r->n_inputs_cut);
    json_end(json);
}

/* The engine that deflated the output, or NULL. */
static const char *deflated_by(const struct sort_settings *s)
{
    bool deflates = !s->sum_only && output_format_is_bgzf(&s->output_format) && s->level != 0;
    return deflates ? bgzf_engine_name(bgzf_engine_choose(sort_settings_method(s))) : NULL;
}

/* Writes a group of --split-by. */
static void write_group(struct json_writer *json, struct group_list *groups, size_t group)
{
    const struct split_group *counts = &groups->all[group];
    char *file = group_list_file(groups, group), *index = group_list_index(groups, group);
    json_begin_object(json, NULL);
    json_string(json, "name", groups->all[group].title);
    json_string(json, "begin", groups->all[group].begin);
    json_string(json, "file", file);
    json_string(json, "index", index);
    json_unsigned(json, "bytes", counts->n_bytes);
    json_unsigned(json, "records", counts->n_records);
    json_end(json);
    free(file);
    free(index);
}

static void write_output(struct json_writer *json, const struct sort_settings *s,
                         const struct sort_report *r)
{
    json_begin_object(json, "output");
    json_string(json, "file", s->sum_only ? NULL : s->output ? s->output : "-");
    json_string(json, "index", s->sum_only ? NULL : s->index_path);
    json_string(json, "deflate", deflated_by(s));
    write_known(json, "bytes", r->output_bytes);
    json_unsigned(json, "records", r->n_records_out);
    json_string(json, "also", s->also);
    write_known(json, "also_bytes", r->also_bytes);
    json_begin_array(json, "groups");
    for (size_t i = 0; r->groups && i < r->groups->n; i++)
        write_group(json, r->groups, i);
    json_end(json);
    json_end(json);
}

/* Writes the counts of --merge. */
static void write_merge(struct json_writer *json, const struct sort_report *r)
{
    json_begin_object(json, "merge");
    json_unsigned(json, "inputs_merged", r->n_inputs_merged);
    json_unsigned(json, "inputs_copied", r->n_inputs_copied);
    json_unsigned(json, "copied_bytes", r->copied_bytes);
    json_end(json);
}

static void write_memory(struct json_writer *json, const struct memory_budget *budget)
{
    json_begin_object(json, "memory");
    json_unsigned(json, "budget_bytes", budget->total_bytes);
    json_unsigned(json, "allowance_bytes", MEM_ALLOWANCE_BYTES);
    json_unsigned(json, "peak_resident_bytes", memory_peak());
    json_unsigned(json, "sort_buffers", budget->n_buffers);
    json_unsigned(json, "sort_buffer_bytes", budget->sort_buffer_bytes);
    json_unsigned(json, "sort_buffers_a_run", budget->run_buffers);
    json_unsigned(json, "spans", budget->n_spans);
    json_unsigned(json, "span_bytes", budget->span_bytes);
    json_unsigned(json, "spill_chunks", budget->n_spill_chunks);
    json_unsigned(json, "spill_chunk_bytes", budget->spill_chunk_bytes);
    json_unsigned(json, "output_chunks", budget->n_chunks);
    json_unsigned(json, "output_chunk_bytes", budget->chunk_bytes);
    json_unsigned(json, "scan_bytes", memory_budget_scan_bytes(budget));
    json_unsigned(json, "compaction_bytes", memory_budget_compaction_bytes(budget));
    json_end(json);
}

static void write_known_bool(struct json_writer *json, const char *name, bool known, bool value)
{
    if (known)
        json_bool(json, name, value);
    else
        json_string(json, name, NULL);
}

static void write_disk(struct json_writer *json, const struct disk_traits *disk, bool used)
{
    bool measured = used && disk->seek_seconds > 0;
    json_begin_object(json, "disk");
    json_string(json, "file_system", used ? disk->file_system : NULL);
    write_known_bool(json, "is_memory", used, disk->is_memory);
    write_known_bool(json, "is_network", used, disk->is_network);
    json_number(json, "seek_s", measured ? disk->seek_seconds : NAN);
    json_number(json, "seeks_at_a_time", measured ? disk->parallel : NAN);
    json_number(json, "read_bytes_per_s",
                measured && disk->bytes_per_second > 0 ? disk->bytes_per_second : NAN);
    json_end(json);
}

/* Writes the runs, their compaction, the scan, the disk, and the reasons. */
static void write_store(struct json_writer *json, const struct sort_report *r)
{
    const struct run_store_stats *store = &r->store;
    bool used = store->n_runs > 0;
    json_begin_object(json, "runs");
    json_unsigned(json, "runs", store->n_runs);
    json_unsigned(json, "bytes", store->run_bytes);
    json_unsigned(json, "raw_bytes", r->spilled_bytes);
    json_unsigned(json, "sort_buffers_from_memory", r->n_buffers_kept);
    json_begin_object(json, "runs_by_codec");
    for (int i = 0; i < TEMP_CODEC_COUNT; i++)
        json_unsigned(json, temp_codec_name((enum temp_codec)i), r->runs_of_codec[i]);
    json_end(json);
    json_string(json, "codec_reason", used ? codec_reason_text(r->codec_reason) : NULL);
    json_end(json);
    json_begin_object(json, "compaction");
    json_bool(json, "done", store->compacted);
    json_string(json, "reason", used ? compaction_reason_text(store->reason) : NULL);
    json_unsigned(json, "bytes", store->compacted_bytes);
    write_known(json, "files_at_a_time", store->compacted ? store->width : 0);
    write_known(json, "files_before", store->compacted ? store->max_files : 0);
    write_known(json, "read_bytes_at_a_time", store->compacted ? store->compaction_read_bytes : 0);
    json_end(json);
    json_begin_object(json, "scan");
    json_unsigned(json, "files", store->n_files);
    write_known(json, "read_bytes_at_a_time", store->scan_read_bytes);
    json_bool(json, "past_page_cache", store->direct);
    json_unsigned(json, "seeks", store->n_seeks);
    json_end(json);
    write_disk(json, &store->disk, used);
}

/* Writes the totals of --markdup over all groups; zeros without it. */
static void write_duplicates(struct json_writer *json, const struct duplicate_outcome *outcome)
{
    const struct duplicate_counts sum = duplicate_counts_sum(outcome->counts, outcome->n_counts);
    json_begin_object(json, "duplicates");
    json_unsigned(json, "examined", sum.examined);
    json_unsigned(json, "paired", sum.paired);
    json_unsigned(json, "paired_duplicates", sum.paired_duplicates);
    json_unsigned(json, "single_duplicates", sum.single_duplicates);
    json_unsigned(json, "paired_optical", sum.paired_optical);
    json_unsigned(json, "single_optical", sum.single_optical);
    json_unsigned(json, "other_duplicates", sum.other_duplicates);
    json_unsigned(json, "read_ends_bytes", outcome->read_ends_bytes);
    json_unsigned(json, "file_bytes", outcome->file_bytes);
    json_end(json);
}

static void write_usage(struct json_writer *json, const char *name,
                        const struct process_usage *usage)
{
    json_begin_object(json, name);
    json_number(json, "wall_s", usage->wall_seconds);
    json_number(json, "user_cpu_s", usage->user_seconds);
    json_number(json, "system_cpu_s", usage->system_seconds);
    json_unsigned(json, "minor_faults", usage->minor_faults);
    json_unsigned(json, "major_faults", usage->major_faults);
    const struct {
        const char *name;
        uint64_t n_bytes;
    } counted[] = {
        {"read_bytes", usage->read_bytes},
        {"written_bytes", usage->written_bytes},
        {"disk_read_bytes", usage->disk_read_bytes},
        {"disk_written_bytes", usage->disk_written_bytes},
    };
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) {
        if (usage->has_io)
            json_unsigned(json, counted[i].name, counted[i].n_bytes);
        else
            json_string(json, counted[i].name, NULL);
    }
    json_end(json);
}

static void write_phases(struct json_writer *json, const struct sort_report *r)
{
    const struct process_usage none = {.has_io = true};
    struct process_usage total = {0};
    json_begin_object(json, "phases");
    for (int i = 0; i < SORT_N_PHASES; i++) {
        write_usage(json, sort_phase_name((enum sort_phase)i), &r->phases[i]);
        process_usage_add(&total, &none, &r->phases[i]);
    }
    json_end(json);
    total.has_io = r->phases[SORT_PHASE_LOAD].has_io;   /* a failed sort has no later phases */
    write_usage(json, "total", &total);
}

static void write_waits(struct json_writer *json, const struct sort_report *r)
{
    static const char *const names[SORT_N_WAITS] = {
        [WAIT_READER_INPUT] = "reader_for_input_s",
        [WAIT_READER_WORKERS] = "reader_for_workers_s",
        [WAIT_READER_MEMORY] = "reader_for_memory_s",
        [WAIT_SPILLER_BUFFERS] = "spiller_for_sort_buffers_s",
        [WAIT_SPILLER_WORKERS] = "spiller_for_workers_s",
        [WAIT_SPILLER_RUNS] = "spiller_for_runs_s",
        [WAIT_RUNS_DISK] = "runs_for_disk_s",
        [WAIT_DISPATCHER_BLOCKS] = "dispatcher_for_blocks_s",
        [WAIT_DISPATCHER_CHUNKS] = "dispatcher_for_output_chunks_s",
        [WAIT_DISPATCHER_MEMORY] = "dispatcher_for_memory_s",
        [WAIT_RUN_READERS_QUEUE] = "run_readers_for_queue_s",
        [WAIT_WRITER_CHUNKS] = "writer_for_output_chunks_s",
        [WAIT_WRITER_OUTPUT] = "writer_for_output_s",
    };
    json_begin_object(json, "waits");
    for (int i = 0; i < SORT_N_WAITS; i++) json_number(json, names[i], r->waits[i]);
    json_end(json);
}

/* ---- samples over time ---- */

/* Writes one column: the number at `offset` in each sample. */
static void write_counts(struct json_writer *json, const char *name,
                         const struct sample_series *series, size_t offset)
{
    json_begin_array(json, name);
    for (size_t i = 0; i < series->n; i++) {
        uint64_t value;
        memcpy(&value, (const char *)&series->samples[i] + offset, sizeof value);
        json_unsigned(json, NULL, value);
    }
    json_end(json);
}

static void write_series(struct json_writer *json, const struct sort_report *r)
{
    static const struct {
        const char *name;
        size_t offset;
    } counts[] = {
        {"records_in", offsetof(struct sample, records_in)},
        {"raw_bytes_in", offsetof(struct sample, raw_bytes_in)},
        {"records_out", offsetof(struct sample, records_out)},
        {"output_bytes", offsetof(struct sample, output_bytes)},
        {"runs", offsetof(struct sample, n_runs)},
        {"spilled_bytes", offsetof(struct sample, spilled_bytes)},
        {"rss_bytes", offsetof(struct sample, resident_bytes)},
        {"read_bytes", offsetof(struct sample, disk_read_bytes)},
        {"write_bytes", offsetof(struct sample, disk_written_bytes)},
    };
    const struct sample_series *series = &r->series;
    json_begin_object(json, "series");
    json_number(json, "interval_s", series->interval_seconds);
    json_begin_object(json, "columns");
    json_begin_array(json, "t_s");
    for (size_t i = 0; i < series->n; i++) json_number(json, NULL, series->samples[i].seconds);
    json_end(json);
    json_begin_array(json, "phase");
    for (size_t i = 0; i < series->n; i++)
        json_string(json, NULL, sort_phase_name(series->samples[i].phase));
    json_end(json);
    json_begin_array(json, "cpu_s");
    for (size_t i = 0; i < series->n; i++) json_number(json, NULL, series->samples[i].cpu_seconds);
    json_end(json);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        write_counts(json, counts[i].name, series, counts[i].offset);
    json_end(json);
    json_end(json);
}

static void write_all(struct json_writer *json, const struct sort_settings *s,
                      const struct sort_report *r, bool failed)
{
    json_begin_object(json, NULL);
    json_string(json, "schema", "samtools-rocksort-report");
    json_unsigned(json, "schema_version", SCHEMA_VERSION);
    json_string(json, "status", failed ? "failed" : "ok");
    json_string(json, "error", failed ? diag_error_text() : NULL);
    json_string(json, "command_line", s->command_line);
    write_time(json, "begun", r->begun);
    write_versions(json);
    write_machine(json);
    write_options(json, s);
    write_input(json, s, r);
    write_output(json, s, r);
    write_merge(json, r);
    write_memory(json, &r->budget);
    write_store(json, r);
    write_duplicates(json, &r->duplicates);
    write_phases(json, r);
    write_waits(json, r);
    write_series(json, r);
    json_end(json);
}

struct json_sources {
    const struct sort_settings *settings;
    const struct sort_report *report;
    bool failed;
};

static int put_json(FILE *to, const void *arg)
{
    const struct json_sources *from = arg;
    struct json_writer json;
    json_start(&json, to);
    write_all(&json, from->settings, from->report, from->failed);
    return 0;
}

int sort_report_write_json(struct output_path *path, const struct sort_settings *settings,
                     const struct sort_report *report, bool failed)
{
    const struct json_sources sources = {settings, report, failed};
    return report_file_write(path, "the report", put_json, &sources);
}
