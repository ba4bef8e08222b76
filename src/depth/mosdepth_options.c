/* mosdepth_options.c -- see mosdepth_options.h. */
#include "depth/mosdepth_options.h"

#include "util/diag.h"
#include "util/option_table.h"
#include "util/xalloc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- lists of numbers ---- */

static int compare_numbers(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Parses numbers between separators, and sorts them. An empty first one is 0, an empty last one has
   no limit, if may_be_open. Returns NULL if the text is something else. */
static int64_t *parse_list(const char *text, char separator, bool may_be_open, size_t *n)
{
    int64_t *numbers = NULL;
    size_t room = 0;
    *n = 0;
    for (const char *at = text;; at++) {
        char *end;
        bool is_empty = *at == separator || *at == '\0';
        long long value = strtoll(at, &end, 10);
        bool is_last = *end == '\0';
        bool is_good = is_empty ? may_be_open && (at == text || is_last)
                                : (is_last || *end == separator) && value >= 0 && *at != ' ';
        if (!is_good) {
            free(numbers);
            return NULL;
        }
        xgrow(&numbers, &room, *n + 1, *n + 4, sizeof *numbers);
        numbers[(*n)++] = !is_empty ? value : at == text ? 0 : INT64_MAX;
        if (is_empty) end = (char *)(uintptr_t)at;
        if (*end == '\0') break;
        at = end;
    }
    if (*n > 1) qsort(numbers, *n, sizeof *numbers, compare_numbers);
    return numbers;
}

static int take_thresholds(void *target, const char *text)
{
    struct mosdepth_options *to = target;
    free(to->thresholds);
    to->thresholds = parse_list(text, ',', false, &to->n_thresholds);
    return to->thresholds ? 0 : OPTION_WRONG;
}

/* mosdepth takes one number N as :N:. */
static int take_quantize(void *target, const char *text)
{
    struct mosdepth_options *to = target;
    char *whole = strchr(text, ':') ? xstrdup(text) : xasprintf(":%s:", text);
    free(to->quantize);
    to->quantize = parse_list(whole, ':', true, &to->n_quantize);
    free(whole);
    return to->quantize ? 0 : OPTION_WRONG;
}

static bool is_window(const char *by)
{
    return *by && by[strspn(by, "0123456789")] == '\0';
}

static char *whole_by(const char *by)
{
    return is_window(by) ? NULL : option_whole_file(by);
}

static int take_by(void *target, const char *text)
{
    enum { MOST_WINDOW = 2147483647 };
    struct mosdepth_options *to = target;
    to->by = text;
    to->window = 0;
    if (!is_window(text)) return *text ? 0 : OPTION_WRONG;
    to->window = strtoll(text, NULL, 10);
    return to->window > 0 && to->window <= MOST_WINDOW ? 0 : OPTION_WRONG;
}

/* ---- the table ---- */

#define AT(of) offsetof(struct mosdepth_options, of)
#define FLAG(of) .kind = OPTION_FLAG, .member = AT(of)
#define TEXT(of) .kind = OPTION_TEXT, .member = AT(of)
#define NUMBER(of, least, most)                                                 \
    .kind = OPTION_NUMBER, .member = AT(of), .low = (least), .high = (most),    \
    .takes = "a whole number from " #least " to " #most
#define CALL(function, what) .kind = OPTION_CALL, .take = (function), .takes = (what)

static const struct option_row rows[] = {
    {"threads", 't', "INT", NUMBER(n_threads, 0, 2147483647)},
    {"chrom", 'c', "NAME", TEXT(chrom)},
    {"by", 'b', "FILE|INT", CALL(take_by, "a BED file or the size of windows, at most 2147483647"),
     .whole = whole_by},
    {"no-per-base", 'n', NULL, FLAG(no_per_base)},
    {"fasta", 'f', "FILE", TEXT(fasta)},
    {"flag", 'F', "INT", NUMBER(left_out, 0, 65535)},
    {"include-flag", 'i', "INT", NUMBER(needed, 0, 65535)},
    {"fast-mode", 'x', NULL, FLAG(is_fast)},
    {"fragment-mode", 'a', NULL, FLAG(is_fragment)},
    {"quantize", 'q', "LIST", CALL(take_quantize, "depths as 0:1:4:100:")},
    {"mapq", 'Q', "INT", NUMBER(mapq, 0, 255)},
    {"min-frag-len", 'l', "INT", NUMBER(least_fragment, -1, 2147483647)},
    {"max-frag-len", 'u', "INT", NUMBER(most_fragment, -1, 2147483647)},
    {"thresholds", 'T', "LIST", CALL(take_thresholds, "depths as 1,10,20")},
    {"use-median", 'm', NULL, FLAG(takes_median)},
    {"read-groups", 'R', "LIST", TEXT(read_groups)},
};

static char *label(const int64_t *range, size_t i)
{
    char *variable = xasprintf("MOSDEPTH_Q%zu", i);
    const char *name = getenv(variable);
    free(variable);
    if (name && *name) return xstrdup(name);
    if (range[1] == INT64_MAX) return xasprintf("%" PRId64 ":inf", range[0]);
    return xasprintf("%" PRId64 ":%" PRId64, range[0], range[1]);
}

/* Completes the options. Returns 0, or -1 after a message. */
static int finish(struct mosdepth_options *options, const char *name)
{
    const struct option_clash clashes[] = {
        {options->n_thresholds > 0 && !options->by, ": -T needs --by"},
        {options->is_fast && options->is_fragment, ": -x cannot be used together with -a"},
    };
    if (option_refuse_clash(name, clashes, sizeof clashes / sizeof *clashes) < 0) return -1;
    const char *precision = getenv("MOSDEPTH_PRECISION");
    long n_decimals = 0;
    bool has_precision = precision && option_number(precision, &n_decimals) == 0;
    bool is_valid = has_precision && n_decimals >= 0 && n_decimals <= 32;
    options->n_decimals = is_valid ? (int)n_decimals : 2;
    options->labels = xcalloc(options->n_quantize + 1, sizeof *options->labels);
    for (size_t i = 0; i + 1 < options->n_quantize; i++)
        options->labels[i] = label(options->quantize + i, i);
    return 0;
}

void *mosdepth_options_parse(int argc, char **argv)
{
    static const struct option_table table = {
        .rows = rows, .n_rows = sizeof rows / sizeof *rows, .option = "--mosdepth",
        .list = AT(given)};
    const int unmapped_secondary_failed_duplicate = 1796;
    struct mosdepth_options *options = xcalloc(1, sizeof *options);
    options->left_out = unmapped_secondary_failed_duplicate;
    options->least_fragment = options->most_fragment = -1;
    if (option_table_parse_all(&table, argc, argv, options) == 0 && finish(options, argv[0]) == 0)
        return options;
    mosdepth_options_free(options);
    return NULL;
}

void mosdepth_options_free(void *arg)
{
    struct mosdepth_options *options = arg;
    if (!options) return;
    for (size_t i = 0; options->labels && options->labels[i]; i++) free(options->labels[i]);
    free(options->labels);
    option_list_release(&options->given);
    free(options->quantize);
    free(options->thresholds);
    free(options);
}

/* ---- files ---- */

static bool is_wanted(const struct mosdepth_options *options, enum mosdepth_file file)
{
    switch (file) {
    case MOSDEPTH_SUMMARY:
    case MOSDEPTH_GLOBAL_DIST: return true;
    case MOSDEPTH_PER_BASE:
    case MOSDEPTH_PER_BASE_INDEX: return !options->no_per_base;
    case MOSDEPTH_QUANTIZED:
    case MOSDEPTH_QUANTIZED_INDEX: return options->n_quantize > 0;
    case MOSDEPTH_THRESHOLDS:
    case MOSDEPTH_THRESHOLDS_INDEX: return options->n_thresholds > 0;
    default: return options->by != NULL;
    }
}

int mosdepth_file_number(const struct mosdepth_options *options, enum mosdepth_file file)
{
    int n = 0;
    for (enum mosdepth_file i = 0; i < file; i++) n += is_wanted(options, i);
    return is_wanted(options, file) ? n : -1;
}

/* The file with a number among the wanted ones; MOSDEPTH_N_FILES: there are fewer. */
static enum mosdepth_file numbered_file(const struct mosdepth_options *options, unsigned i)
{
    enum mosdepth_file file = 0;
    while (file < MOSDEPTH_N_FILES && mosdepth_file_number(options, file) != (int)i) file++;
    return file;
}

const char *mosdepth_suffix(const void *options, unsigned i)
{
    static const char *const suffixes[MOSDEPTH_N_FILES + 1] = {
        [MOSDEPTH_SUMMARY] = ".mosdepth.summary.txt",
        [MOSDEPTH_GLOBAL_DIST] = ".mosdepth.global.dist.txt",
        [MOSDEPTH_REGION_DIST] = ".mosdepth.region.dist.txt",
        [MOSDEPTH_PER_BASE] = ".per-base.bed.gz",
        [MOSDEPTH_PER_BASE_INDEX] = ".per-base.bed.gz.csi",
        [MOSDEPTH_REGIONS] = ".regions.bed.gz",
        [MOSDEPTH_REGIONS_INDEX] = ".regions.bed.gz.csi",
        [MOSDEPTH_QUANTIZED] = ".quantized.bed.gz",
        [MOSDEPTH_QUANTIZED_INDEX] = ".quantized.bed.gz.csi",
        [MOSDEPTH_THRESHOLDS] = ".thresholds.bed.gz",
        [MOSDEPTH_THRESHOLDS_INDEX] = ".thresholds.bed.gz.csi",
    };
    return suffixes[numbered_file(options, i)];
}

bool mosdepth_is_streamed(const void *options, unsigned i)
{
    switch (numbered_file(options, i)) {
    case MOSDEPTH_PER_BASE_INDEX:
    case MOSDEPTH_REGIONS_INDEX:
    case MOSDEPTH_QUANTIZED_INDEX:
    case MOSDEPTH_THRESHOLDS_INDEX: return false;
    default: return true;
    }
}
