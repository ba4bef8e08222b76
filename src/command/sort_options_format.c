/* sort_options_format.c -- see sort_options_format.h. */
#include "command/sort_options_format.h"

#include "util/diag.h"
#include "util/xalloc.h"

#include <htslib/kstring.h>
#include <stdlib.h>
#include <string.h>

void sort_options_drop_threads(hts_opt **list)
{
    while (*list) {
        hts_opt *option = *list;
        if (option->opt != HTS_OPT_NTHREADS) {
            list = &option->next;
            continue;
        }
        diag_warning("format option nthreads is ignored: give threads with -@");
        *list = option->next;
        option->next = NULL;
        hts_opt_free(option);
    }
}

int sort_options_add_format(const char *option, const char *text, hts_opt **list)
{
    if (hts_opt_add(list, text) < 0) {
        diag_error("option %s: htslib does not know '%s'; 'man samtools' lists what it takes",
                   option, text);
        return -1;
    }
    sort_options_drop_threads(list);
    return 0;
}

char *sort_options_whole_paths(const char *options, bool is_list)
{
    static const char key[] = "reference=";
    const size_t n_key = sizeof key - 1;
    kstring_t text = {0, 0, NULL};
    bool had_memory = kputs("", &text) >= 0;
    for (const char *at = options; *at && had_memory;) {
        size_t n = is_list ? strcspn(at, ",") : strlen(at);
        bool is_file = n > n_key && strncmp(at, key, n_key) == 0;
        char *file = is_file ? xmemdup(at, n + 1) : NULL;
        if (file) file[n] = '\0';
        char *real = file ? realpath(file + n_key, NULL) : NULL;
        bool fits = real && !(is_list && strchr(real, ','));
        had_memory = (fits ? ksprintf(&text, "%s%s", key, real) : kputsn(at, n, &text)) >= 0;
        free(real);
        free(file);
        at += n;
        if (*at) had_memory = had_memory && kputc(*at++, &text) >= 0;
    }
    xalloc_require(had_memory);
    return ks_release(&text);
}

int sort_options_add_output_format(struct sort_options *o, const char *option, const char *text)
{
    size_t n = o->n_output_texts++;
    o->output_texts = xrealloc(o->output_texts, (n + 1) * sizeof *o->output_texts);
    o->output_texts[n] = sort_options_whole_paths(text, false);
    return sort_options_add_format(option, text, &o->output_options);
}

int sort_options_add_reference(struct sort_options *o, const char *fasta)
{
    /* The name of the index stands for that of the FASTA file, as in htslib. */
    static const char index[] = ".fai";
    size_t n = strlen(fasta), n_index = sizeof index - 1;
    if (n > n_index && strcmp(fasta + n - n_index, index) == 0) n -= n_index;
    char *text = xasprintf("reference=%.*s", (int)n, fasta);
    int r = sort_options_add_format("--reference", text,
                                    (hts_opt **)&o->settings.input_format.specific);
    if (r == 0) r = sort_options_add_output_format(o, "--reference", text);
    free(text);
    return r;
}
