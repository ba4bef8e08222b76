/*
 * sort_options_resume.c -- --resume: refuses options that contradict the checkpoint, and takes the
 * others from it.
 */
#include "cli/sort_options.h"

#include "cli/option_table.h"
#include "cli/sort_options_markdup.h"
#include "output/output_format.h"
#include "output/output_path.h"
#include "resume/resume.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

int sort_options_check_modes(const struct sort_options *o, int n_args)
{
    const struct sort_settings *s = &o->settings;
    const struct option_clash clashes[] = {
        {o->resume && (o->clean || s->no_resume || s->sum_only || o->verify || o->plan),
         "--resume cannot be used together with --clean, --no-resume, --checksum-only, "
         "--verify or --plan"},
        {o->resume && n_args > 0,
         "with --resume no input is named: the checkpoint knows its inputs, and the "
         "output is named with -o"},
        {o->clean && (*o->clean_place != '\0') + n_args != 1,
         "--clean takes one directory or output file and nothing else"},
        {o->resume && o->input_option_given,
         "with --resume the input is read as before: --input-fmt-option cannot be given"},
        {s->fixmate && (s->sum_only || o->verify),
         "--fixmate changes records: it cannot be used together with --checksum-only or "
         "--verify"},
        {s->markdup && (s->sum_only || o->verify || o->print_checksum),
         "--markdup cannot be used together with --checksum, --checksum-only or --verify"},
        {s->split_by && (s->sum_only || o->clean),
         "--split-by cannot be used together with --checksum-only, --verify or --clean"},
        {s->also && (s->sum_only || o->clean),
         "--also cannot be used together with --checksum-only, --verify or --clean"},
        {s->also && s->split_by, "--also cannot be used together with --split-by"},
        {s->split_by && o->tag, "--split-by and -t cannot be used together"},
        {s->markdup && !o->resume && s->rules.order != SORT_COORDINATE,
         "--markdup needs the order by coordinate, where duplicates lie together: leave "
         "out other orders"},
        {s->merge && (o->resume || o->clean || s->keep_checkpoint || s->sum_only || o->plan),
         "--merge cannot be used together with -k, --resume, --clean, --checksum-only, "
         "--verify or --plan"},
        {s->merge && s->fixmate,
         "--fixmate needs reads of one name together: give it where inputs are sorted, not "
         "with --merge"},
        {s->merge && s->rules.order == SORT_MINHASH && s->minhash_fasta &&
         !s->rules.minhash.forward_only,
         "--merge cannot tell the order of -I without -R, which turns reads around"},
        {s->partial && !o->resume, "--partial can be used with --resume only"},
        {o->stats && (o->clean || o->verify || o->plan),
         "--stats can be used with a sort only, not with --clean, --verify or --plan"},
        {sort_options_ask_for_counts(o) && (o->clean || s->sum_only || o->verify),
         "counts such as --flagstat go with a sort only, not with --clean, --checksum-only "
         "or --verify"},
        {o->yes && !o->clean, "--yes can be used with --clean only"},
    };
    return option_refuse_clash("", clashes, sizeof clashes / sizeof *clashes);
}

/* Refuses --also if the checkpoint has groups. */
static int refuse_groups(const struct sort_options *o)
{
    if (!o->settings.also || !o->settings.split_by) return 0;
    diag_error("cannot resume '%s' with --also: its output is divided into groups (--split-by)",
               o->resume);
    return -1;
}

static bool same_file(const char *a, const char *b)
{
    if (!a || !b) return a == b;
    char *real = realpath(a, NULL);
    bool same = strcmp(real ? real : a, b) == 0;
    free(real);
    return same;
}

/* True if the requested order is that of the checkpoint. */
static bool same_order(const struct sort_options *o, const struct checkpoint_file *file)
{
    const struct sort_rules *a = &o->settings.rules, *b = &file->rules;
    const struct minhash_settings *m = &a->minhash, *n = &b->minhash;
    /* With --split-by a tag, the requested order is that within groups. */
    if (file->output.split_by && b->order == SORT_TAG && !o->tag) return a->order == b->below;
    return a->order == b->order && a->below == b->below && memcmp(a->tag, b->tag, 2) == 0 &&
           a->seed == b->seed && m->k == n->k && m->forward_only == n->forward_only &&
           m->squeeze == n->squeeze && o->settings.minhash_window == file->minhash_window &&
           same_file(o->settings.minhash_fasta, file->fasta.path);
}

/* True if the extension of a new output's name agrees with `option`, the -O of the old output. */
static bool may_have_format(const char *name, const char *option)
{
    char mode[8] = "";
    struct output_format by_name, by_option;
    if (!option || sam_open_mode(mode, name, NULL) != 0) return true;
    if (output_format_choose(NULL, name, &by_name) < 0 ||
        output_format_choose(option, NULL, &by_option) < 0)
        return false;
    hts_opt_free(by_option.hts.specific);
    return by_name.kind == by_option.kind;
}

/* Takes the temporary directories. -T matters only for a sort that still reads input: others write
   no runs. */
static void adopt_places(struct sort_options *o)
{
    struct sort_settings *s = &o->settings;
    const struct resume resume = {.checkpoint = s->resumed, .partial = s->partial};
    bool reads_input = resume_reads_input(&resume);
    if (o->temp_prefixes && !reads_input)
        diag_warning("-T is ignored: nothing more is written beside the checkpoint '%s'",
                     o->resume);
    if (!o->temp_prefixes || !reads_input) s->n_temp_prefixes = 0;
}

/* Replaces file names in --markdup, which may be relative to the directory of the first command. */
static void adopt_reports(struct markdup_rules *rules, const struct checkpoint_output *output)
{
    if (output->statistics) rules->statistics_path = output->statistics;
    if (output->metrics) rules->metrics_path = output->metrics;
}

/* Takes options that change records from the checkpoint, because its runs were made with them. */
static int adopt_changes(struct sort_options *o, const struct checkpoint_file *file)
{
    struct sort_settings *s = &o->settings;
    if (s->fixmate && (!file->fixmate || strcmp(s->fixmate, file->fixmate) != 0)) {
        diag_error("cannot resume '%s' with another --fixmate: its records are changed already; "
                   "leave the option out", o->resume);
        return -1;
    }
    if (s->markdup && (!file->markdup || strcmp(s->markdup, file->markdup) != 0)) {
        diag_error("cannot resume '%s' with another --markdup: its runs were made with what it had "
                   "then; leave the option out", o->resume);
        return -1;
    }
    bool names_reports = s->markdup != NULL;
    s->fixmate = file->fixmate;
    s->markdup = file->markdup;
    sort_options_release_markdup(&s->markdup_rules);
    if (s->fixmate && sort_options_parse_fixmate(s->fixmate, &s->fixmate_rules) < 0) return -1;
    if (!s->markdup) return 0;
    if (sort_options_parse_markdup(s->markdup, &s->markdup_rules) < 0) return -1;
    if (!names_reports) adopt_reports(&s->markdup_rules, &file->output);
    return 0;
}

int sort_options_adopt(struct sort_options *o, const struct checkpoint *checkpoint)
{
    const struct checkpoint_file *file = &checkpoint->file;
    const struct checkpoint_output *output = &file->output;
    struct sort_settings *s = &o->settings;
    if ((o->order_given || o->minimiser_given) && !same_order(o, file)) {
        diag_error("cannot resume '%s' in another order: its runs are sorted; leave the order out",
                   o->resume);
        return -1;
    }
    if (adopt_changes(o, file) < 0) return -1;
    s->resumed = checkpoint;
    s->rules = file->rules;
    s->minhash_fasta = file->fasta.path;
    s->minhash_window = file->minhash_window;
    o->resumed_inputs = xcalloc(file->n_inputs + 1, sizeof *o->resumed_inputs);
    for (size_t i = 0; i < file->n_inputs; i++) o->resumed_inputs[i] = file->inputs[i].path;
    s->inputs = o->resumed_inputs;
    s->n_inputs = file->n_inputs;
    if (sort_options_adopt_split(o, output->split_by) < 0 || refuse_groups(o) < 0) return -1;
    adopt_places(o);
    sort_options_adopt_resources(o, &file->resources);
    if (sort_options_finish_resources(o) < 0) return -1;
    bool is_new_name = o->output != NULL;
    if (!is_new_name) o->output = output->path;
    if (!o->format_option && (!is_new_name || may_have_format(o->output, output->format)))
        o->format_option = output->format;
    if (!s->columns.list) s->columns.list = output->columns;
    if (!s->also) s->also = output->also;
    if (s->level < 0) s->level = output->level;
    sort_options_adopt_engine(o, output->engine);
    if (output->durable) s->durable = true;
    for (int i = 0; i < COUNT_N_KINDS; i++)
        if (!o->counts[i]) o->counts[i] = output->counts[i];
    if (output->write_index && !o->write_index) o->write_index = o->index_of_checkpoint = true;
    bool has_options = o->n_output_texts > 0;
    for (size_t i = 0; !has_options && i < output->n_options; i++)
        if (sort_options_take_output_option(o, output->options[i]) < 0)
            return -1;
    return sort_options_choose_output(o);
}

/* ---- whether anything is left to do ---- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* True if a name refers to the file with this absolute name, of n bytes. */
static bool leads_to(const char *name, const char *file, size_t n)
{
    struct output_path path = {0};
    bool same = output_path_choose_pattern(&path, name) == 0 && path.final &&
                strlen(path.final) == n && strncmp(path.final, file, n) == 0;
    output_path_release(&path);
    return same;
}

/* True if output (perhaps without -o) and index are those of the checkpoint. */
static bool same_names(const struct sort_options *o, const char *output)
{
    const struct sort_settings *s = &o->settings;
    if (!s->output) return !o->output;
    if (!output) return false;
    size_t n = checkpoint_output_length(output);
    const char *index = output[n] ? output + n + strlen(HTS_IDX_DELIM) : NULL;
    return leads_to(s->output, output, n) &&
           (!s->index_path || s->split_by ||
            (index && leads_to(s->index_path, index, strlen(index))));
}

bool sort_options_ask_for_more(const struct sort_options *o, const struct checkpoint *checkpoint)
{
    const struct sort_settings *s = &o->settings;
    const struct checkpoint_output *was = &checkpoint->file.output, *is = &s->asked_output;
    bool same = !o->stats && !o->print_checksum && same_names(o, was->path) &&
                same_text(is->format, was->format) && is->level == was->level &&
                is->engine == was->engine && is->durable == was->durable &&
                same_text(is->columns, was->columns) && same_text(is->split_by, was->split_by) &&
                same_text(is->also, was->also) && is->n_options == was->n_options;
    for (size_t i = 0; same && i < is->n_options; i++)
        same = strcmp(is->options[i], was->options[i]) == 0;
    for (int i = 0; same && i < COUNT_N_KINDS; i++) same = same_text(o->counts[i], was->counts[i]);
    return !same;
}
