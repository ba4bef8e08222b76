/* sort_setup.c -- see sort_setup.h. */
#include "sort/sort_setup.h"

#include "output/count_files.h"
#include "sort/sorted_output.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Maximum memory of --checksum-only and --verify, and in addition for each thread. */
enum { SUM_BYTES = 32 << 20, SUM_THREAD_BYTES = 16 << 20 };

void sort_plan_memory(const struct sort_settings *s, size_t total_bytes,
                      struct memory_budget *budget)
{
    /* Records are not kept: few sort buffers that stay in the cache are better than many. */
    size_t enough = SUM_BYTES + SUM_THREAD_BYTES * (size_t)s->n_threads;
    if (s->sum_only && total_bytes > enough) total_bytes = enough;
    if (s->markdup) total_bytes -= markdup_memory(total_bytes);
    memory_budget_plan(budget, total_bytes, s->n_threads);
    if (s->fixmate) memory_budget_fix_templates(budget);
    unsigned n_columns = output_format_has_columns(&s->output_format) ? 1 : 0;
    if (s->also && output_format_has_columns(&s->also_format)) n_columns++;
    memory_budget_plan_outputs(budget, s->also ? 2 : 1, n_columns);
    if (s->test_file_bytes) budget->file_bytes = s->test_file_bytes;
    if (!s->test_buffer_bytes) return;
    budget->sort_buffer_bytes = (size_t)s->test_buffer_bytes;
    budget->run_buffers = budget->full_buffers = budget->first_full_buffers = 1;
}

/* A resumed sort uses the first directory of the checkpoint, besides those of -T. */
static void list_temp_places(struct sort_context *sort)
{
    const struct sort_settings *s = sort->settings;
    size_t n = s->n_temp_prefixes;
    sort->temp_prefixes = xcalloc(n + 1, sizeof *sort->temp_prefixes);
    for (size_t i = 0; i < n; i++) sort->temp_prefixes[i] = s->temp_prefixes[i];
    if (s->resumed) sort->temp_prefixes[n++] = s->resumed->dirs[0].path;
    sort->temp_places = (struct temp_places){sort->temp_prefixes, n, s->output};
}

static void create_duplicates(struct sort_context *sort)
{
    const struct sort_settings *s = sort->settings;
    sort->markdup_rules = s->markdup_rules;
    sort->markdup = markdup_create(sort->threads, s->n_threads, &sort->markdup_rules,
                                      markdup_memory(s->memory_bytes), &sort->temp_places);
    record_observers_add(&sort->observers_run, markdup_observer(sort->markdup));
}

static void create_output(struct sort_context *sort)
{
    const struct sort_settings *s = sort->settings;
    sort->output.n_files = s->also ? 2 : 1;
    sort->output.files[0].settings = (struct output_settings){
        .path = &sort->output_path, .index_path = &sort->index_path, .format = s->output_format,
        .method = sort_settings_method(s), .pool = thread_pool_hts(sort->threads),
        .index_is_bai = s->index_path && output_index_is_bai(s->index_path),
    };
    sort->columns[0].request = &s->columns;
    sort->output.files[1].settings = (struct output_settings){
        .path = &sort->also_path, .index_path = &sort->no_path, .format = s->also_format,
        .method = {-1, BGZF_ENGINE_AUTO, s->also_format.kind == OUTPUT_SAM_GZ},
        .pool = thread_pool_hts(sort->threads),
    };
    sort->columns[1].request = &s->also_columns;
    for (unsigned i = 0; i < MOST_OUTPUTS; i++) {
        struct output_settings *settings = &sort->output.files[i].settings;
        settings->doubt = &sort->cram_doubt;
        if (i >= sort->output.n_files || !output_format_has_columns(&settings->format)) {
            sort->columns[i].request = NULL;
            continue;
        }
        settings->columns = &sort->columns[i];
        sort->output.files[i].spool_bytes = OUTPUT_SPOOL_BYTES;
        sort->output.files[i].places = &sort->temp_places;
    }
}

/* Creates each object with its settings. */
static void create_objects(struct sort_context *sort)
{
    const struct sort_settings *s = sort->settings;
    list_temp_places(sort);
    sort->pool = sort_buffer_pool_create(sort->threads, &sort->budget);
    sort->totals = xcalloc(1, sizeof *sort->totals);
    *sort->totals = (struct load_totals){.threads = sort->threads,
                                         .size_is_given = s->input_bytes > 0,
                                         .counts.expected_bytes = s->input_bytes};
    sort->resume = (struct resume){.checkpoint = s->resumed, .partial = s->partial};
    sort->rules_maker = (struct rules_maker){
        .header_name = s->resumed ? s->resumed->dirs[0].path : s->inputs[0],
        /* Runs of an earlier process hold the minimisers of their records. */
        .fasta = resume_reads_input(&sort->resume) ? s->minhash_fasta : NULL,
        .minhash_window = s->minhash_window,
    };
    const struct checkpoint_sort_parts parts = {
        .threads = sort->threads, .totals = sort->totals, .output_path = &sort->output_path,
        .index_path = &sort->index_path, .also_path = &sort->also_path,
        .groups = &sort->groups_dir, .reads_input = resume_reads_input(&sort->resume),
    };
    sort->checkpoint = checkpoint_writer_create(s, &parts);
    const struct temp_store_settings store = {
        .sort = s, .threads = sort->threads, .pool = sort->pool, .totals = sort->totals,
        .checkpoint = sort->checkpoint, .reads_input = resume_reads_input(&sort->resume),
    };
    sort->store = temp_store_create(&store);
    if (s->markdup) create_duplicates(sort);
    create_output(sort);
}

void sort_init(struct sort_context *sort, const struct sort_settings *settings,
               struct sort_report *report)
{
    *sort = (struct sort_context){
        .settings = settings, .report = report, .cut_names = CUT_NAMES_START,
        .spiller.totals.last_run = RUN_LABEL_NONE};
    *report = (struct sort_report){.begun = time(NULL), .output = settings->output,
                                   .also = settings->also};
    sort_plan_memory(settings, settings->memory_bytes, &sort->budget);
    sort->threads = thread_pool_create();
    create_objects(sort);
}

/* Fills the report, after all threads that count have ended. */
static void fill_report(struct sort_context *sort)
{
    struct sort_report *report = sort->report;
    struct load_counts counts;
    struct memory_budget last;
    load_totals_look(sort->totals, &counts);
    sort_buffer_pool_budget(sort->pool, &last);
    /* The initial budget, including sort buffers that compactions took, but with the longer runs of
       a disk that is slow to seek. */
    report->budget = sort->budget;
    if (last.long_runs) memory_budget_lengthen_runs(&report->budget);
    thread_pool_waits(sort->threads, report->waits);
    report->n_records = counts.sum.n_records;
    report->raw_bytes = counts.sum.n_bytes;
    report->checksum = counts.sum.hash;
    report->input_bytes = counts.file_bytes_read;
    if (sort->inputs) report->n_inputs_cut = sort->inputs->n_cut;
    report->n_records_out = sort->sum_out.n_records;
    report->codec_reason = sort->spiller.codec_reason;
    thread_pool_lock(sort->threads);
    const struct committer_totals *ended = temp_store_totals(sort->store);
    report->spilled_bytes = ended->raw_bytes;
    memcpy(report->runs_of_codec, ended->n_of_codec, sizeof report->runs_of_codec);
    report->waits[WAIT_SPILLER_RUNS] = ended->wait_seconds;
    report->waits[WAIT_RUNS_DISK] = ended->end_seconds;
    thread_pool_unlock(sort->threads);
}

/* Moves the counts of --markdup to the report. */
static void report_duplicates(struct sort_context *sort)
{
    struct duplicate_outcome *outcome = &sort->report->duplicates;
    const struct duplicate_counts *counts = markdup_counts(
        sort->markdup, &outcome->n_counts, &outcome->read_ends_bytes, &outcome->file_bytes);
    outcome->counts = xmemdup(counts, outcome->n_counts * sizeof *counts);
    outcome->by_read_group = sort->markdup_rules.use_read_groups;
    outcome->groups = sort->read_groups;
    sort->read_groups = NULL;
}

void sort_close_store(struct sort_context *sort, bool directories_stay)
{
    temp_store_close(sort->store, directories_stay, &sort->report->store);
    fill_report(sort);
    if (sort->markdup) report_duplicates(sort);
}

void sort_publish(struct sort_context *sort, int *result)
{
    const struct sort_settings *s = sort->settings;
    if (sort->outputs.state != OUTPUT_SET_COMPLETE) return;
    if (*result == 0 && s->write_reports)
        s->write_reports(s->reports_arg, sort->report, &sort->outputs);
    if (output_set_publish(&sort->outputs) < 0) *result = -1;
}

void sort_close(struct sort_context *sort, bool directories_stay)
{
    checkpoint_writer_end_syncs(sort->checkpoint, directories_stay);
    count_files_close(sort->settings->counts);
    output_set_drop(&sort->outputs);
    checkpoint_writer_remove_directories(sort->checkpoint, directories_stay);
    if (sort->outputs.state != OUTPUT_SET_NAMING) group_dir_remove(&sort->groups_dir);
}

void sort_release(struct sort_context *sort)
{
    bam_inputs_close(sort->inputs);
    sort_buffer_pool_destroy(sort->pool);
    temp_store_destroy(sort->store);
    read_groups_destroy(sort->read_groups);
    record_observers_destroy(&sort->observers_in);
    record_observers_destroy(&sort->observers_out);
    record_observers_destroy(&sort->observers_run);
    sorted_output_release(&sort->output);
    free(sort->temp_prefixes);          /* after the output, which uses them */
    split_plan_destroy(sort->split);
    if (sort->groups != sort->report->groups) group_list_destroy(sort->groups);
    rules_release(&sort->rules_maker);
    checkpoint_writer_destroy(sort->checkpoint);
    resume_release(&sort->resume);
    free(sort->totals);
    thread_pool_destroy(sort->threads);
    for (int i = 0; i < MOST_OUTPUTS; i++)
        column_schema_destroy(sort->columns[i].schema); /* after the workers */
    output_path_release(&sort->output_path);
    output_path_release(&sort->index_path);
    output_path_release(&sort->also_path);
}
