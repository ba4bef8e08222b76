/*
 * sort_options_resume.c -- --resume: takes options from the checkpoint.
 */
#include "cli/sort_options.h"

#include "util/option_table.h"
#include "output/output_format.h"
#include "output/output_path.h"
#include "resume/resume.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

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

/* Takes the temporary directories. -T matters only for a sort that still reads input: any other
   writes no runs. */
static void adopt_places(struct sort_options *o)
{
    struct sort_settings *s = &o->settings;
    const struct resume resume = {.checkpoint = s->resumed, .partial = s->partial};
    bool reads_input = resume_reads_input(&resume);
    if (o->temp_prefixes && !reads_input)
        diag_warning("-T is ignored: finishing '%s' writes no more runs", o->resume);
    if (!o->temp_prefixes || !reads_input) s->n_temp_prefixes = 0;
}

/* Replaces file names in --markdup, which may be relative to the directory of the first command. */
static void adopt_reports(struct markdup_rules *rules, const struct checkpoint_output *output)
{
    if (output->statistics) rules->statistics_path = output->statistics;
    if (output->metrics) rules->metrics_path = output->metrics;
}

/* Takes the names of files from the checkpoint, unless `given` has others. */
static void adopt_files(struct sort_options *o, const struct sort_options *given,
                        const struct checkpoint_output *output)
{
    struct sort_settings *s = &o->settings;
    if (!o->output) {
        o->output = output->path;
        o->index_name = output->index ? xstrdup(output->index) : NULL;
    }
    if (!s->also) s->also = output->also;
    for (int i = 0; i < COUNT_N_KINDS; i++) {
        if (!output->counts[i]) continue;
        o->adopted_counts[i] = count_request_text(output->count_options[i], output->counts[i]);
        if (!o->counts[i]) o->counts[i] = o->adopted_counts[i];
    }
    if (!given->settings.markdup) adopt_reports(&s->markdup_rules, output);
}

/* Makes options and settings again: from the options of the checkpoint and from `given`, those of
   the command line, which take precedence. */
static int adopt(struct sort_options *o, const struct sort_options *given,
                 const struct checkpoint *checkpoint)
{
    const struct checkpoint_file *file = &checkpoint->file;
    struct sort_settings *s = &o->settings;
    if (sort_options_parse_again(o, file) < 0) return -1;
    s->resumed = checkpoint;
    o->resumed_inputs = xcalloc(file->n_inputs + 1, sizeof *o->resumed_inputs);
    for (size_t i = 0; i < file->n_inputs; i++) o->resumed_inputs[i] = file->inputs[i].path;
    s->inputs = o->resumed_inputs;
    s->n_inputs = file->n_inputs;
    adopt_places(o);
    if (given->thread_memory_given && !given->total_memory_bytes && !given->auto_memory) {
        o->total_memory_bytes = 0;      /* -m replaces the --max-memory of the checkpoint */
        o->auto_memory = false;
    }
    if (sort_options_finish_resources(o) < 0) return -1;
    if (given->output && !given->format_option && !may_have_format(o->output, o->format_option))
        o->format_option = NULL;
    adopt_files(o, given, &file->output);
    if (!given->engine_given && !bgzf_engine_has_level(s->engine, s->level))
        s->engine = BGZF_ENGINE_AUTO;
    o->engine_given = given->engine_given;
    o->index_of_checkpoint = o->write_index && !given->write_index;
    return sort_options_choose_output(o);
}

int sort_options_adopt(struct sort_options *o, const struct checkpoint *checkpoint)
{
    struct sort_options given = *o;
    sort_options_init(o, given.dialect);
    o->argc = given.argc;
    o->argv = given.argv;
    o->settings.command_line = given.settings.command_line;
    int r = adopt(o, &given, checkpoint);
    sort_options_release(&given);
    return r;
}

/* ---- whether anything is left to do ---- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* True if a name refers to the file with this absolute name. */
static bool leads_to(const char *name, const char *file)
{
    struct output_path path = {0};
    bool same = file && output_path_choose_pattern(&path, name) == 0 && path.final &&
                strcmp(path.final, file) == 0;
    output_path_release(&path);
    return same;
}

/* True if output (perhaps without -o) and index are those of the checkpoint. */
static bool same_names(const struct sort_options *o, const struct checkpoint_output *was)
{
    const struct sort_settings *s = &o->settings;
    if (!s->output) return !o->output;
    return leads_to(s->output, was->path) &&
           (!s->index_path || s->split_by || leads_to(s->index_path, was->index));
}

bool sort_options_ask_for_more(const struct sort_options *o, const struct checkpoint *checkpoint)
{
    const struct checkpoint_output *was = &checkpoint->file.output;
    bool same = !o->report && !o->print_checksum && same_names(o, was) &&
                same_text(o->settings.also, was->also);
    for (size_t i = o->n_adopted; same && i < o->kept.n; i++)
        same = o->kept.kinds[i] != OPTION_OF_OUTPUT ||
               option_list_has(&o->kept, o->n_adopted, o->kept.words[i]);
    for (int i = 0; same && i < COUNT_N_KINDS; i++)
        same = same_text(o->counts[i], o->adopted_counts[i]);
    return !same;
}
