/* sort_options_modes.c -- refuses options that cannot be used together. */
#include "cli/sort_options.h"

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
         "--markdup needs the order by coordinate: leave out other orders"},
        {s->merge && (o->resume || o->clean || s->keep_checkpoint || s->sum_only || o->plan),
         "--merge cannot be used together with -k, --resume, --clean, --checksum-only, "
         "--verify or --plan"},
        {s->merge && s->fixmate,
         "--fixmate needs reads of one name together: give it where inputs are sorted, not "
         "with --merge"},
        {s->merge && s->rules.order == SORT_MINHASH && s->minhash_fasta &&
         !s->rules.minhash.forward_only,
         "--merge cannot check the order of -I without -R, which reverses reads"},
        {s->partial && !o->resume, "--partial can be used with --resume only"},
        {o->report && (o->clean || o->verify || o->plan),
         "--report can be used with a sort only, not with --clean, --verify or --plan"},
        {sort_options_ask_for_counts(o) && (o->clean || s->sum_only || o->verify),
         "counts such as --flagstat go with a sort only, not with --clean, --checksum-only "
         "or --verify"},
        {o->yes && !o->clean, "--yes can be used with --clean only"},
    };
    return option_refuse_clash("", clashes, sizeof clashes / sizeof *clashes);
}
