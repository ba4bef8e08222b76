/* sort_options.c -- see sort_options.h. */
#include "command/sort_options.h"

#include "command/sort_options_markdup.h"
#include "util/size.h"

#include <stdlib.h>

/* Temporary data are not synced during their first DURABLE_AFTER_SECONDS, so a power failure then
   may damage the checkpoint (durable.h). That loses less time than the machine takes to boot. */
enum { DURABLE_AFTER_SECONDS = 30 };

static const double progress_seconds = 10;      /* between lines of --progress */

void sort_options_init(struct sort_options *options, enum sort_dialect dialect)
{
    static const char *const no_prefix[] = {NULL};
    *options = (struct sort_options){
        .dialect = dialect,
        .settings = {
            .temp_prefixes = no_prefix,
            .n_temp_prefixes = 1,
            .level = -1,
            .codec_auto = true,
            .n_threads = 1,
            .add_pg = true,
            .progress_seconds = progress_seconds,
            .durable_after_seconds = DURABLE_AFTER_SECONDS,
            .minhash_window = MINHASH_WINDOW,
            .rules = {.minhash = {.k = MINHASH_K}},
        },
    };
    options->settings.count_files = options->count_files;
    (void)size_parse(DEFAULT_MEMORY, &options->thread_memory_bytes);
}

void sort_options_release(struct sort_options *o)
{
    sort_options_release_markdup(&o->settings.duplicate_rules);
    hts_opt_free(o->settings.input_format.specific);
    hts_opt_free(o->settings.output_format.hts.specific);
    hts_opt_free(o->settings.also_format.hts.specific);
    hts_opt_free(o->output_options);
    for (size_t i = 0; i < o->n_output_texts; i++) free(o->output_texts[i]);
    free(o->output_texts);
    free(o->format_text);
    free(o->split_text);
    for (char **name = o->input_names; name && *name; name++) free(*name);
    free(o->input_names);
    free(o->resumed_inputs);
    free(o->temp_prefixes);
    free(o->output_name);
    free(o->index_name);
    for (int i = 0; i < COUNT_N_KINDS; i++) output_path_release(&o->count_files[i].path);
}
