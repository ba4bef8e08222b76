/* prepare.c -- see prepare.h. */
#include "sort/prepare.h"

#include "bam/bam_long.h"
#include "input/input_file.h"
#include "order/minhash_index.h"
#include "os/temp_dir.h"
#include "output/count_files.h"
#include "output/cram_reference.h"
#include "sort/sorted_output.h"
#include "sort/verify.h"
#include "util/diag.h"
#include "util/xalloc.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <string.h>

/* Checks the directories of -T now: they may be used only hours later, or never. */
static int check_places(const struct sort_settings *s)
{
    for (size_t i = 0; !s->sum_only && i < s->n_temp_prefixes; i++)
        if (s->temp_prefixes[i] && temp_dir_check(s->temp_prefixes[i]) < 0) return -1;
    return 0;
}

int prepare_path(const struct sort_settings *s, const char *name, struct output_path *path)
{
    *path = (struct output_path){0};
    if (!name) return 0;
    return s->split_by ? output_path_choose_pattern(path, name) : output_path_choose(path, name);
}

/* Chooses the path of an output. */
static int prepare_one(struct sort_context *sort, const char *name, struct output_path *path,
                       enum output_role role)
{
    struct output_path chosen;
    if (prepare_path(sort->settings, name, &chosen) < 0) return -1;
    chosen.lock = thread_pool_mutex(sort->threads);
    chosen.durable = sort->settings->durable;
    thread_pool_lock(sort->threads);
    *path = chosen;
    if (!sort->settings->split_by) output_set_add(&sort->outputs, path, role);
    thread_pool_unlock(sort->threads);
    return 0;
}

int prepare_outputs(struct sort_context *sort)
{
    const struct sort_settings *s = sort->settings;
    /* The output is renamed after the second one, because users check whether it exists. */
    if (prepare_one(sort, s->also, &sort->also_path, OUTPUT_MAIN) < 0 ||
        prepare_one(sort, s->output, &sort->output_path, OUTPUT_MAIN) < 0 ||
        prepare_one(sort, s->index_path, &sort->index_path, OUTPUT_EXTRA) < 0)
        return -1;
    const char *output = sort->output_path.final ? sort->output_path.final : s->output;
    sort->outputs.output = output ? output : "standard output";
    thread_pool_lock(sort->threads);
    count_files_guard(s->counts, thread_pool_mutex(sort->threads), s->durable, &sort->outputs);
    thread_pool_unlock(sort->threads);
    checkpoint_writer_look_at_output(sort->checkpoint);
    if (s->split_by && group_dir_make(&sort->groups_dir, sort->output_path.name,
                                      thread_pool_mutex(sort->threads)) < 0)
        return -1;
    return check_places(s);
}

/* Opens the checkpoint to resume, if any. */
static int open_checkpoint(struct sort_context *sort)
{
    struct load_counts counts;
    struct spill_totals spilled;
    if (resume_open(&sort->resume, sort->checkpoint, sort->store, sort->totals, &spilled) < 0)
        return -1;
    thread_pool_lock(sort->threads);    /* the progress thread reads the totals */
    sort->spiller.totals = spilled;
    thread_pool_unlock(sort->threads);
    sort->header = sort->resume.header;
    load_totals_look(sort->totals, &counts);
    sort->first_own_run = spilled.next_run;
    if (resume_check_part(&sort->resume, sort->settings, &sort->output_path,
                          counts.sum.n_records) < 0)
        return -1;
    return checkpoint_writer_adopted(sort->checkpoint, spilled.n_runs);
}

/* --fixmate needs reads of one name next to each other. */
static int refuse_coordinate_order(const struct bam_inputs *inputs)
{
    const char *name = bam_inputs_sorted_by_coordinate(inputs);
    if (!name) return 0;
    diag_error("--fixmate needs reads of one name together, and '%s' is sorted by coordinate: sort "
               "it with -n first", name);
    return -1;
}

/* True if columns of an output depend on the tags of the records. */
static bool needs_tag_scan(const struct sort_context *sort)
{
    for (int i = 0; i < MOST_OUTPUTS; i++) {
        const struct column_request *request = sort->columns[i].request;
        if (request && column_schema_needs_tag_scan(request->list)) return true;
    }
    return false;
}

/* A merge that needs an input scan reads its inputs twice, so they must be named regular files. */
static int refuse_pipes(const struct sort_context *sort)
{
    const struct sort_settings *s = sort->settings;
    const char *option = NULL, *advice = "";
    if (s->markdup) {
        option = "--markdup";
    } else if (s->split.kind == SPLIT_RANGES) {
        option = "--split-by ranges";
    } else if (needs_tag_scan(sort)) {
        option = "all columns";
        advice = ": name the columns with --columns, or make it a file";
    }
    if (!s->merge || !option) return 0;
    for (size_t i = 0; i < s->n_inputs; i++) {
        /* Standard input cannot be reopened, even if it is a file. */
        bool is_name = strcmp(s->inputs[i], "-") != 0;
        if (is_name && bam_inputs_file(sort->inputs, i)) continue;
        diag_error("--merge with %s reads its inputs twice, and '%s' is not %s%s", option,
                   input_shown_name(s->inputs[i]), is_name ? "a regular file" : "a named file",
                   advice);
        return -1;
    }
    return 0;
}

/* Suggests --merge if the inputs seem to be sorted already. */
static void tell_of_merge(const struct sort_context *sort)
{
    const struct sort_settings *s = sort->settings;
    enum sort_order order = s->rules.order;
    if (s->n_inputs < 2 || s->merge || s->sum_only || s->fixmate) return;
    if (order != SORT_COORDINATE && order != SORT_NAME_NATURAL && order != SORT_NAME_LEXICAL)
        return;
    if (strcmp(sort->inputs->common_order, sort_order_name(order)) == 0)
        diag_note("all inputs say that they are in this order (%s): with --merge they need not be "
                  "sorted again", sort_order_name(order));
}

/* Opens the inputs and reads their header. */
static int open_inputs(struct sort_context *sort)
{
    const struct sort_settings *s = sort->settings;
    sort->inputs = bam_inputs_open(s->inputs, s->n_inputs, &s->input_format,
                                   thread_pool_hts(sort->threads), s->merge);
    if (!sort->inputs || refuse_pipes(sort) < 0) return -1;
    if (s->fixmate && refuse_coordinate_order(sort->inputs) < 0) return -1;
    tell_of_merge(sort);
    if (s->resumed) return resume_open_inputs(&sort->resume, sort->inputs, sort->totals);
    sort->header = sort->inputs->header;
    if (s->add_pg && rules_add_program(&sort->rules_maker, sort->header, s->command_line) < 0)
        return -1;
    checkpoint_writer_remember_inputs(sort->checkpoint, sort->inputs, sort->header);
    return 0;
}

int prepare_inputs(struct sort_context *sort)
{
    if (sort->settings->resumed && open_checkpoint(sort) < 0) return -1;
    return resume_reads_input(&sort->resume) ? open_inputs(sort) : 0;
}

/* Makes the groups of the output. Ranges are chosen after the input is read. */
static int prepare_groups(struct sort_context *sort)
{
    const struct split_request *request = &sort->settings->split;
    sort->groups = group_list_create();
    sort->split = split_plan_create(request, sort->header, sort->groups);
    if (request->kind == SPLIT_RANGES) {
        sort->scan.ranges = range_counts_create(sort->header);
        record_observers_add(&sort->observers_in, &sort->scan.ranges->base);
    }
    if (request->kind == SPLIT_TAG)
        record_observers_add(&sort->observers_in, split_values_observer(request->tag));
#ifdef __GLIBC__
    (void)malloc_trim(0);       /* return the memory of the parsed BED file */
#endif
    return sort->split ? 0 : -1;
}

/* Subtracts the minimiser index, the intervals of groups and the reports from the memory
   budget. */
static void plan_around_tables(struct sort_context *sort)
{
    const struct sort_settings *s = sort->settings;
    size_t total = s->memory_bytes, n_bytes = 0;
    if (sort->rules_maker.minhash_index)
        n_bytes = minhash_index_bytes(sort->rules_maker.minhash_index);
    if (n_bytes > total / 2)
        diag_warning("the index of '%s' takes %zu MiB of memory, more than half of what may be "
                     "used: give more with -m, or a larger -w", s->minhash_fasta, n_bytes >> 20);
    if (sort->split) n_bytes += split_plan_bytes(sort->split);
    n_bytes += count_files_memory(s->counts, total);
    if (n_bytes == 0) return;
    /* Leave at least half: a sort with less memory would be too slow. */
    if (n_bytes > total / 2) n_bytes = total / 2;
    sort_plan_memory(s, total - n_bytes, &sort->budget);
    sort_buffer_pool_set_budget(sort->pool, &sort->budget);
}

void prepare_fixmate(struct sort_context *sort)
{
    enum { LARGE_TEMPLATE_BYTES = 8 << 20 };    /* for any memory limit: all copies of a smaller
                                                   template fit the allowance */
    sort->fixmate = sort->settings->fixmate_rules;
    rules_complete_fixmate(&sort->rules_maker, sort->header, &sort->fixmate);
    sort->fixmate.long_positions = sort->rules.long_positions;
    sort->fixmate.cut_names = &sort->cut_names;
    size_t template_bytes = sort->budget.total_bytes / 16;
    if (template_bytes < LARGE_TEMPLATE_BYTES) template_bytes = LARGE_TEMPLATE_BYTES;
    sort->fixmate.max_template_bytes = 2 * template_bytes;
    sort->fixmate.usual_bytes = 2 * sort->budget.span_bytes;
    if (markdup_rules_share_barcodes(&sort->markdup_rules))
        memcpy(sort->fixmate.barcode_tag, sort->markdup_rules.barcode_tag, 2);
}

/* Makes the read groups for --markdup. */
static void prepare_duplicates(struct sort_context *sort)
{
    struct markdup_rules *rules = &sort->markdup_rules;
    if (rules->use_read_groups || rules->use_libraries || rules->metrics_path) {
        sort->read_groups = read_groups_create(sort->header);
        rules->groups = sort->read_groups;
        if (rules->use_read_groups && sort->read_groups->ids.n == 0) {
            diag_warning("the header has no read groups: --markdup goes on as without "
                         "--use-read-groups");
            rules->use_read_groups = false;
        }
    }
    markdup_prepare(sort->markdup);
}

/* Chooses the columns of the outputs, or postpones that until all tags are known. */
static int prepare_columns(struct sort_context *sort)
{
    if (needs_tag_scan(sort)) {
        sort->scan.tags = tag_schema_scan_create();
        record_observers_add(&sort->observers_in, &sort->scan.tags->base);
        return 0;
    }
    for (int i = 0; i < MOST_OUTPUTS; i++) {
        struct column_output *columns = &sort->columns[i];
        if (!columns->request) continue;
        columns->schema = column_schema_create(columns->request->list, NULL);
        if (!columns->schema) return -1;
    }
    return 0;
}

/* Checks that the output formats can hold the references of the header. */
static int check_formats(const struct sort_context *sort)
{
    for (unsigned i = 0; i < sort->output.n_files; i++) {
        const struct output_settings *output = &sort->output.files[i].settings;
        const char *name = output->path->name ? output->path->name : "standard output";
        if (rules_check_format(sort->header, &output->format) < 0 ||
            cram_reference_check(sort->header, &output->format.hts, name) < 0)
            return -1;
    }
    return 0;
}

static int prepare_counts(struct sort_context *sort)
{
    const struct sort_settings *s = sort->settings;
    const struct count_setup setup = {
        .header = sort->header, .reference = s->reference, .command_line = s->command_line,
        .memory_bytes = s->memory_bytes, .places = &sort->temp_places, .threads = sort->threads,
        .is_in_coordinate_order = s->rules.order == SORT_COORDINATE ||
                                  s->rules.order == SORT_MINHASH,
    };
    return count_files_observe(s->counts, &setup, &sort->observers_out);
}

int prepare_rules(struct sort_context *sort, bool *nothing_to_check)
{
    const struct sort_settings *s = sort->settings;
    *nothing_to_check = false;
    if (s->sum_only) {          /* no sort: default rules */
        sort->rules.long_positions = bam_header_long_reference(sort->header) >= 0;
    } else {
        sort->rules = s->rules;
        if (s->markdup) sort->rules.duplicates = &sort->markdup_rules;
        if (check_formats(sort) < 0 ||
            rules_complete(&sort->rules_maker, sort->header, &sort->rules) < 0)
            return -1;
    }
    sort->rules.cut_names = &sort->cut_names;
    if (s->verify) {
        if (verification_create(sort) < 0) return -1;
        *nothing_to_check = !sort->verification;
    }
    if (s->split_by && prepare_groups(sort) < 0) return -1;
    plan_around_tables(sort);
    if (s->fixmate) prepare_fixmate(sort);
    if (sort->markdup) prepare_duplicates(sort);
    if (prepare_counts(sort) < 0 || prepare_columns(sort) < 0) return -1;
    return sorted_output_prepare(sort);
}

int prepare_output_header(struct sort_context *sort)
{
    struct load_counts read;
    load_totals_look(sort->totals, &read);
    /* With --merge nothing was read yet: the headers tell whether reads are placed. */
    bool any_placed = sort->settings->merge
                          ? bam_inputs_sorted_by_coordinate(sort->inputs) != NULL : read.any_placed;
    /* With --split-by a tag, the header gets the order within groups. */
    struct sort_rules rules = sort->rules;
    if (split_is_by_tag(sort->settings->split.kind)) rules.order = rules.below;
    if (sort_rules_update_header(&rules, any_placed, sort->header) == 0) return 0;
    return rules_header_error(sort->rules_maker.header_name);
}
