/*
 * sort_options_output.c -- options of the output: format options of htslib, --split-by, and, once
 * all options are known, the names and formats of output and index.
 */
#include "cli/sort_options.h"

#include "util/option_table.h"
#include "columns/column_schema.h"
#include "input/bam_reader.h"
#include "util/diag.h"
#include "util/path.h"
#include "util/xalloc.h"

#include <htslib/kstring.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- format options ---- */

/* Removes nthreads from a list: htslib would start threads besides those of -@. */
static void drop_threads(hts_opt **list)
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

/* Adds a format option of htslib, "name" or "name=value", to a list. `option` is for messages. */
static int add_format(const char *option, const char *text, hts_opt **list)
{
    if (hts_opt_add(list, text) < 0) {
        diag_error("option %s: htslib does not know '%s'; 'man samtools' lists what it takes",
                   option, text);
        return -1;
    }
    drop_threads(list);
    return 0;
}

char *sort_options_whole_formats(const char *options)
{
    static const char key[] = "reference=";
    const size_t n_key = sizeof key - 1;
    kstring_t text = {0, 0, NULL};
    bool had_memory = kputs("", &text) >= 0;
    for (const char *at = options; *at && had_memory;) {
        size_t n = strcspn(at, ",");
        char *option = xasprintf("%.*s", (int)n, at);
        char *real = strncmp(option, key, n_key) == 0 ? realpath(option + n_key, NULL) : NULL;
        bool fits = real && !strchr(real, ',');
        had_memory = ksprintf(&text, "%s%s", fits ? key : option, fits ? real : "") >= 0;
        free(real);
        free(option);
        at += n;
        if (*at) had_memory = had_memory && kputc(*at++, &text) >= 0;
    }
    xalloc_require(had_memory);
    return ks_release(&text);
}

/* The same for the output; keeps the text for --also. */
static int add_output_format(struct sort_options *o, const char *option, const char *text)
{
    size_t n = o->n_output_texts++;
    o->output_texts = xrealloc(o->output_texts, (n + 1) * sizeof *o->output_texts);
    o->output_texts[n] = xstrdup(text);
    return add_format(option, text, &o->output_options);
}

char *sort_options_whole_split(const char *how)
{
    struct split_request request;
    bool is_bed = split_request_parse(how, &request) == 0 && request.kind == SPLIT_BED;
    return is_bed ? realpath(how, NULL) : NULL;
}

int sort_options_take_input_option(void *options, const char *text)
{
    struct sort_options *o = options;
    return add_format("--input-fmt-option", text,
                      (hts_opt **)&o->settings.input_format.specific);
}

int sort_options_take_output_option(void *options, const char *text)
{
    return add_output_format(options, "--output-fmt-option", text);
}

int sort_options_take_reference(void *options, const char *fasta)
{
    struct sort_options *o = options;
    /* As in htslib, the name of the index may replace that of the FASTA file. */
    static const char key[] = "reference=", index[] = ".fai";
    size_t n = strlen(fasta), n_index = sizeof index - 1, n_key = sizeof key - 1;
    if (n > n_index && strcmp(fasta + n - n_index, index) == 0) n -= n_index;
    char *text = xasprintf("%s%.*s", key, (int)n, fasta);
    int r = add_format("--reference", text,
                                    (hts_opt **)&o->settings.input_format.specific);
    if (r == 0) r = add_output_format(o, "--reference", text);
    if (r == 0) o->settings.reference = o->output_texts[o->n_output_texts - 1] + n_key;
    free(text);
    return r;
}

/* ---- --split-by ---- */

/* Sets the order to the tag, then the requested order. */
static int divide_by_tag(struct sort_options *o)
{
    struct sort_rules *rules = &o->settings.rules;
    if (o->settings.merge) {
        diag_error("--merge cannot divide by a tag: leave it out, and the inputs are sorted by the "
                   "tag");
        return -1;
    }
    if (rules->order != SORT_COORDINATE && rules->order != SORT_NAME_NATURAL &&
        rules->order != SORT_NAME_LEXICAL) {
        diag_error("--split-by %s divides output by coordinate or by name: leave out other orders",
                   o->settings.split_by);
        return -1;
    }
    rules->below = rules->order;
    rules->order = SORT_TAG;
    memcpy(rules->tag, o->settings.split.tag, sizeof rules->tag);
    return 0;
}

int sort_options_choose_split(struct sort_options *o)
{
    struct sort_settings *s = &o->settings;
    if (split_request_parse(s->split_by, &s->split) < 0) return -1;
    if (split_is_by_tag(s->split.kind)) return divide_by_tag(o);
    if (s->rules.order == SORT_COORDINATE || s->rules.order == SORT_MINHASH) return 0;
    diag_error("--split-by %s divides output by coordinate: leave out other orders", s->split_by);
    return -1;
}

/* True if a pattern has a % in a directory above that of the file. */
static bool is_too_high(const char *pattern)
{
    char *fixed = path_fixed_parent(pattern);
    bool has_percent = strchr(fixed, '%') != NULL;
    free(fixed);
    return has_percent;
}

/* Checks the names of output and index, once they are known; with --split-by only. */
static int check_pattern(const struct sort_options *o)
{
    const struct sort_settings *s = &o->settings;
    if (!s->split_by) return 0;
    const char *name = s->output, *problem = NULL;
    if (!name)
        problem = "--split-by writes files: give -o DIR/%.bam, where % stands for the name of a "
                  "group";
    else if (path_is_url(name))
        problem = "--split-by writes files in a local directory, not to a URL";
    else if (!strchr(name, '%'))
        problem = "--split-by needs a % in the name of -o, as in DIR/%.bam or DIR/%/reads.bam: it "
                  "stands for the name of a group";
    else if (is_too_high(name) || (o->index_name && is_too_high(o->index_name)))
        problem = "--split-by takes a % in the name of the file and in that of its directory, not "
                  "further up";
    else if (o->index_name && path_is_url(o->index_name))
        problem = "--split-by writes indexes in a local directory, not to a URL";
    else if (o->index_name && !strchr(o->index_name, '%'))
        problem = "--split-by needs a % in the name of the index, too";
    if (problem) diag_error("%s", problem);
    return problem ? -1 : 0;
}

/* The order of records within a file of the output. */
static enum sort_order file_order(const struct sort_options *o)
{
    const struct sort_rules *rules = &o->settings.rules;
    return split_is_by_tag(o->settings.split.kind) ? rules->below : rules->order;
}

/* ---- names and formats ---- */

/* True for an order by reference and position, which unplaced reads follow in any order. */
static bool is_by_position(enum sort_order order)
{
    return order == SORT_COORDINATE || order == SORT_MINHASH;
}

/* Refuses --coverage and the like in other orders: depths are counted as records pass in coordinate
   order. */
static int check_counts(const struct sort_options *o)
{
    if (is_by_position(o->settings.rules.order)) return 0;
    for (int i = 0; i < COUNT_N_KINDS; i++) {
        if (!o->counts[i] || !count_kinds[i]->in_coordinate_order) continue;
        diag_error("%s counts output in coordinate order only: leave it out, or the option of the "
                   "other order", count_kind_option(i));
        return -1;
    }
    return 0;
}

/* Makes the argument of one of the options that --qc stands for, if there is such a kind. */
static void expand_one(struct sort_options *o, const char *name, const char *options,
                       const char *ending)
{
    int kind = 0;
    while (kind < COUNT_N_KINDS && strcmp(count_kind_name(kind), name) != 0) kind++;
    if (kind == COUNT_N_KINDS || o->counts[kind]) return;
    if (count_kinds[kind]->in_coordinate_order && !is_by_position(o->settings.rules.order)) return;
    char *file = xasprintf("%s%s", o->qc, ending);
    o->counts[kind] = o->qc_counts[kind] = count_request_text(options, file);
    free(file);
}

void sort_options_expand_qc(struct sort_options *o)
{
    struct markdup_rules *markdup = &o->settings.markdup_rules;
    expand_one(o, "flagstat", "", ".flagstat");
    expand_one(o, "idxstats", "", ".idxstats");
    expand_one(o, "stats", "", ".sorted.stats");
    expand_one(o, "mosdepth", "-n -x --by 500", "");
    expand_one(o, "picard", "", "");
    if (!o->settings.markdup || markdup->metrics_path) return;
    markdup->metrics_path = o->qc_metrics = xasprintf("%s.markdup.metrics", o->qc);
}

/* Decides whether there is an index, and names it if the user did not. */
static int choose_index(struct sort_options *o)
{
    struct sort_settings *s = &o->settings;
    enum sort_order order = file_order(o);
    bool can_index = output_format_can_have_index(&s->output_format);
    const char *format = output_format_has_columns(&s->output_format)
                             ? output_format_name(&s->output_format) : "uncompressed SAM";
    /* Groups get indexes if possible. */
    if (s->split_by && is_by_position(order) && can_index) o->write_index = true;
    if (!o->write_index) return 0;
    if (!is_by_position(order)) {
        diag_warning("no index is written: the output is not in coordinate order");
        return 0;
    }
    if (!s->output) {
        diag_warning("no index is written: the output has no name; give one with -o");
        return 0;
    }
    if (!can_index && o->index_of_checkpoint) {
        diag_warning("no index is written: %s has none", format);
        return 0;
    }
    if (!can_index) {
        diag_error("--write-index cannot index %s; write sam.gz, bam or cram%s", format,
                   s->also ? " with -o, and the other file with --also" : "");
        return -1;
    }
    if (!o->index_name)
        o->index_name = xasprintf("%s%s", s->output,
                                  s->output_format.kind == OUTPUT_CRAM ? ".crai" : ".csi");
    s->index_path = o->index_name;
    return 0;
}

/* Splits FILE##idx##INDEX. */
static void divide_output_name(struct sort_options *o)
{
    const char *delimiter = o->output ? strstr(o->output, HTS_IDX_DELIM) : NULL;
    if (!delimiter) return;
    char *file = xstrdup(o->output);
    file[delimiter - o->output] = '\0';
    o->index_name = xstrdup(delimiter + strlen(HTS_IDX_DELIM));
    free(o->output_name);
    o->output = o->output_name = file;
}

/* Chooses the format. --output-fmt-option follows the options in -O, and so overrides them. */
static int choose_format(struct sort_options *o)
{
    struct sort_settings *s = &o->settings;
    if (output_format_choose(o->format_option, s->output, &s->output_format) < 0) return -1;
    hts_opt **last = (hts_opt **)&s->output_format.hts.specific;
    drop_threads(last);
    while (*last) last = &(*last)->next;
    *last = o->output_options;
    o->output_options = NULL;
    if (s->output_format.kind == OUTPUT_CRAM &&
        bam_reader_check_reference(&s->output_format.hts) < 0)
        return -1;
    /* For CRAM htslib applies the options itself. */
    for (const hts_opt *option = s->output_format.hts.specific; option; option = option->next) {
        if (option->opt != HTS_OPT_COMPRESSION_LEVEL) continue;
        if (option->val.i < 0 || option->val.i > 9) {
            diag_error("output option level takes a number from 0 to 9, not '%d'",
                       option->val.i);
            return -1;
        }
        s->level = option->val.i;
        output_format_compress(&s->output_format);
    }
    return 0;
}

/* ---- a second output, and columns ---- */

/* Chooses the format of the second output, if any, by its name. */
static int choose_also(struct sort_options *o)
{
    struct sort_settings *s = &o->settings;
    if (!s->also) return 0;
    if (path_is_standard_output(s->also)) {
        diag_error("--also writes a file: leave -o out to write to standard output, and name the "
                   "file with --also");
        return -1;
    }
    if (strstr(s->also, HTS_IDX_DELIM)) {
        diag_error("--also writes no index: name the file only, not '%s'", s->also);
        return -1;
    }
    if (output_format_choose_also(s->also, &s->also_format) < 0) return -1;
    if (s->also_format.kind != OUTPUT_CRAM) return 0;
    for (size_t i = 0; i < o->n_output_texts; i++)
        if (add_format("--output-fmt-option", o->output_texts[i],
                                    (hts_opt **)&s->also_format.hts.specific) < 0)
            return -1;
    return bam_reader_check_reference(&s->also_format.hts);
}

/* Arrow gets LZ4, which costs next to nothing, up to level 1, and zstd above. Parquet gets zstd:
   level 1 makes it 0.8 times as large as BAM, and higher levels gain little. */
static void choose_codec(const struct output_format *format, int level,
                         struct column_request *columns)
{
    bool is_parquet = format->kind == OUTPUT_PARQUET;
    columns->codec = level == 0 ? COLUMN_CODEC_NONE
                                : is_parquet || level > 1 ? COLUMN_CODEC_ZSTD : COLUMN_CODEC_LZ4;
    columns->level = level < 1 ? 1 : level;
}

static enum column_format column_format_of(enum output_kind kind)
{
    switch (kind) {
    case OUTPUT_PARQUET: return COLUMN_FORMAT_PARQUET;
    case OUTPUT_ARROW_STREAM: return COLUMN_FORMAT_ARROW_STREAM;
    default: return COLUMN_FORMAT_ARROW;
    }
}

/* Warns of a tag whose type is not that of the specification: usually a mistake, which makes its
   column all null. */
static void warn_of_types(const struct column_schema *schema)
{
    for (unsigned i = 0; i < schema->n_columns; i++) {
        const struct column *column = &schema->columns[i];
        const struct column *standard =
            column->field == FIELD_TAG ? standard_tag_find(column->name) : NULL;
        if (standard && standard->type != column->type)
            diag_warning("--columns gives '%s' another type than the SAM specification, so it "
                         "may be empty: write '%s'", column->name, column->name);
    }
}

/* Once the formats are known: checks --columns and chooses the compression. */
static int choose_columns(struct sort_options *o)
{
    struct sort_settings *s = &o->settings;
    bool has_columns = output_format_has_columns(&s->output_format);
    bool also_has = s->also && output_format_has_columns(&s->also_format);
    if (!has_columns && !also_has) {
        if (!s->columns.list) return 0;
        diag_error("--columns needs an output in Arrow or Parquet: add -O parquet, or leave "
                   "--columns out");
        return -1;
    }
    s->columns.format = column_format_of(s->output_format.kind);
    choose_codec(&s->output_format, s->level, &s->columns);
    s->also_columns.list = s->columns.list;
    s->also_columns.format = column_format_of(s->also_format.kind);
    choose_codec(&s->also_format, -1, &s->also_columns);
    struct column_schema *schema = column_schema_create(s->columns.list, NULL);
    if (schema) warn_of_types(schema);
    column_schema_destroy(schema);
    return schema ? 0 : -1;
}

/* ---- the engine ---- */

int sort_options_take_engine(void *options, const char *name)
{
    struct sort_options *o = options;
    enum bgzf_engine *engine = &o->settings.engine;
    if (bgzf_engine_parse(name, engine) < 0) return OPTION_WRONG;
    if (bgzf_engine_is_built_in(*engine)) return 0;
    if (o->is_adopting) {
        diag_warning("the checkpoint says --deflate %s, which is not built in here: %s is taken",
                     name, bgzf_engine_name(BGZF_ENGINE_AUTO));
        *engine = BGZF_ENGINE_AUTO;
        return 0;
    }
    bool is_igzip = *engine == BGZF_ENGINE_IGZIP;
    bool has_other =
        bgzf_engine_is_built_in(is_igzip ? BGZF_ENGINE_LIBDEFLATE : BGZF_ENGINE_IGZIP);
    diag_error("--deflate %s is not built in: give %s%szlib or auto, or build rocksort with %s",
               name, !has_other ? "" : is_igzip ? "libdeflate" : "igzip", has_other ? ", " : "",
               is_igzip ? "libisal-dev (conda: isa-l)" : "libdeflate-dev (conda: libdeflate)");
    return -1;
}

/* Refuses an engine that lacks the compression level. */
static int check_engine(const struct sort_options *o)
{
    const struct sort_settings *s = &o->settings;
    const char *name = bgzf_engine_name(s->engine);
    if (s->engine == BGZF_ENGINE_AUTO || s->sum_only) return 0;
    if (!output_format_is_bgzf(&s->output_format)) {
        if (o->engine_given)
            diag_warning("--deflate %s is ignored: it is for BAM and compressed SAM", name);
        return 0;
    }
    if (bgzf_engine_has_level(s->engine, s->level)) return 0;
    if (s->engine == BGZF_ENGINE_OWN)
        diag_error("--deflate %s has levels 1 to 5, not %d: give one of them, or leave --deflate "
                   "out", name, s->level);
    else if (s->level < 0)
        diag_error("--deflate %s has level 1 only: give -l 1, too, or leave --deflate out", name);
    else
        diag_error("--deflate %s has level 1 only, not %d: give -l 1, or leave --deflate out",
                   name, s->level);
    return -1;
}

int sort_options_check_terminal(const struct sort_options *o)
{
    const struct sort_settings *s = &o->settings;
    const struct output_format *format = &s->output_format;
    if (s->output || s->sum_only || format->kind == OUTPUT_SAM || !isatty(STDOUT_FILENO)) return 0;
    diag_error("%s cannot be read on a terminal: give -o FILE, send it into a pipe, or write SAM "
               "with -O sam", output_format_name(format));
    return -1;
}

bool sort_options_ask_for_counts(const struct sort_options *o)
{
    for (int i = 0; i < COUNT_N_KINDS; i++)
        if (o->counts[i]) return true;
    return false;
}

/* True if --merge may copy compressed blocks: no option changes the compression or needs the
   records. */
static bool may_copy(const struct sort_options *o)
{
    const struct sort_settings *s = &o->settings;
    return s->merge && s->rules.order == SORT_COORDINATE && s->output_format.kind == OUTPUT_BAM &&
           s->level < 0 && !o->engine_given && !o->print_checksum && !s->markdup &&
           !s->split_by && !s->also && !sort_options_ask_for_counts(o);
}

int sort_options_choose_output(struct sort_options *o)
{
    struct sort_settings *s = &o->settings;
    divide_output_name(o);
    s->output = o->output && !path_is_standard_output(o->output) ? o->output : NULL;
    if (check_pattern(o) < 0 || choose_format(o) < 0 ||
        choose_also(o) < 0 || choose_columns(o) < 0 ||
        check_engine(o) < 0 || check_counts(o) < 0)
        return -1;
    s->merge_may_copy = may_copy(o);
    return choose_index(o);
}
