/*
 * sort_options_output.c -- options of what is written: htslib's format options, and output, index
 * and their formats from all that were given. See sort_options.h.
 */
#include "command/sort_options.h"

#include "command/sort_options_internal.h"
#include "input/bam_reader.h"
#include "output/bam_writer.h"
#include "util/diag.h"

#include <htslib/kstring.h>
#include <stdlib.h>
#include <string.h>

/* Takes nthreads out of a list: threads of htslib's own would read and write behind our back. */
static void drop_thread_options(hts_opt **list)
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
    drop_thread_options(list);
    return 0;
}

/* A format option, or a list of them with commas between, as whoever resumes in another directory
   needs it: the file of a reference with its whole path. NULL without memory. */
static char *with_whole_paths(const char *options, bool is_list)
{
    static const char key[] = "reference=";
    kstring_t text = {0, 0, NULL};
    int r = kputs("", &text);
    for (const char *at = options; r >= 0 && *at;) {
        size_t n = is_list ? strcspn(at, ",") : strlen(at), n_key = sizeof key - 1;
        bool is_file = n > n_key && strncmp(at, key, n_key) == 0;
        char *file = is_file ? strndup(at + n_key, n - n_key) : NULL;
        char *real = file ? realpath(file, NULL) : NULL;
        if (is_file && !file) r = -1;
        bool fits = real && !(is_list && strchr(real, ','));
        if (r >= 0)
            r = fits ? ksprintf(&text, "%s%s", key, real) : kputsn(at, n, &text);
        free(real);
        free(file);
        at += n;
        if (r >= 0 && *at) r = kputc(*at++, &text);
    }
    if (r >= 0) return ks_release(&text);
    ks_free(&text);
    return NULL;
}

int sort_options_add_output_format(struct sort_options *o, const char *option, const char *text)
{
    char **grown = realloc(o->output_texts, (o->n_output_texts + 1) * sizeof *grown);
    if (grown) {
        o->output_texts = grown;
        grown[o->n_output_texts] = with_whole_paths(text, false);
    }
    if (!grown || !grown[o->n_output_texts]) {
        diag_no_memory();
        return -1;
    }
    o->n_output_texts++;
    return sort_options_add_format(option, text, &o->output_options);
}

int sort_options_add_reference(struct sort_options *o, const char *fasta)
{
    size_t room = strlen(fasta) + sizeof "reference=";
    char *text = malloc(room);
    if (!text) {
        diag_no_memory();
        return -1;
    }
    (void)snprintf(text, room, "reference=%s", fasta);
    int r = sort_options_add_format("--reference", text,
                                    (hts_opt **)&o->settings.input_format.specific);
    if (r == 0) r = sort_options_add_output_format(o, "--reference", text);
    free(text);
    return r;
}

/* Divides FILE##idx##INDEX, and names the index where only the file is named. */
static int choose_index(struct sort_options *o)
{
    struct sort_settings *s = &o->settings;
    enum sort_order order = s->rules.order;
    if (!o->write_index) return 0;
    if (order != SORT_COORDINATE && order != SORT_MINHASH) {
        diag_warning("no index is written: the output is not in coordinate order");
        return 0;
    }
    if (!s->output) {
        diag_warning("no index is written: the output has no name; give one with -o");
        return 0;
    }
    bool can_index = s->output_format.format != sam || s->output_format.compression == bgzf;
    if (!can_index && o->index_of_store) {
        diag_warning("no index is written: uncompressed SAM has none");
        return 0;
    }
    if (!can_index) {
        diag_error("--write-index cannot index uncompressed SAM; write sam.gz, bam or cram");
        return -1;
    }
    if (!o->index_name) {
        size_t room = strlen(s->output) + sizeof ".crai";
        o->index_name = malloc(room);
        if (!o->index_name) {
            diag_no_memory();
            return -1;
        }
        (void)snprintf(o->index_name, room, "%s%s", s->output,
                       s->output_format.format == cram ? ".crai" : ".csi");
    }
    s->index_path = o->index_name;
    return 0;
}

/* Takes the index's name out of FILE##idx##INDEX. */
static int divide_output_name(struct sort_options *o)
{
    const char *delimiter = o->output ? strstr(o->output, HTS_IDX_DELIM) : NULL;
    if (!delimiter) return 0;
    char *file = strndup(o->output, (size_t)(delimiter - o->output));
    o->index_name = strdup(delimiter + strlen(HTS_IDX_DELIM));
    if (!file || !o->index_name) {
        free(file);
        diag_no_memory();
        return -1;
    }
    free(o->output_name);
    o->output = o->output_name = file;
    return 0;
}

/* The output's format, with the options given for it behind those in -O. */
static int choose_format(struct sort_options *o)
{
    struct sort_settings *s = &o->settings;
    if (bam_writer_choose_format(o->format_option, s->output, &s->output_format) < 0) return -1;
    hts_opt **last = (hts_opt **)&s->output_format.specific;
    drop_thread_options(last);
    while (*last) last = &(*last)->next;
    *last = o->output_options;
    o->output_options = NULL;
    if (s->output_format.format == cram && bam_reader_check_reference(&s->output_format) < 0)
        return -1;
    /* For CRAM htslib applies the options itself. */
    for (const hts_opt *option = s->output_format.specific; option; option = option->next) {
        if (option->opt != HTS_OPT_COMPRESSION_LEVEL) continue;
        if (option->val.i < 0 || option->val.i > 9) {
            diag_error("output option level takes a number from 0 to 9, not '%d'",
                       option->val.i);
            return -1;
        }
        s->level = option->val.i;
        if (s->output_format.format == sam) s->output_format.compression = bgzf;
    }
    return 0;
}

/* The other names are of the same open file, but opening it by one would cut it off. */
static bool is_standard_output(const char *name)
{
    static const char *const names[] = {"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

int sort_options_choose_output(struct sort_options *o)
{
    struct sort_settings *s = &o->settings;
    int level = s->level;
    if (divide_output_name(o) < 0) return -1;
    s->output = o->output && !is_standard_output(o->output) ? o->output : NULL;
    free(o->format_text);
    o->format_text = o->format_option ? with_whole_paths(o->format_option, true) : NULL;
    if (o->format_option && !o->format_text) {
        diag_no_memory();
        return -1;
    }
    s->asked_output = (struct checkpoint_output){
        .format = o->format_text,
        .level = level,
        .n_options = o->n_output_texts,
        .options = (const char **)o->output_texts,
    };
    return choose_format(o) < 0 ? -1 : choose_index(o);
}
