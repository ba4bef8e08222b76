/*
 * sort_options_markdup.c -- see sort_options_markdup.h.
 *
 * Options are gathered first: the order in which they stand plays no part, and if one is given
 * twice the last counts. Regular expressions are compiled when all options are known.
 */
#include "command/sort_options_markdup.h"

#include "command/option_text.h"
#include "duplicates/read_names.h"
#include "util/diag.h"
#include "util/words.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPTION_INCLUDE_FAILS = OPTION_TEXT_FIRST,
    OPTION_IGNORE_STRAND,
    OPTION_OPTICAL_ONLY,
    OPTION_NO_MULTI_DUP,
    OPTION_READ_COORDS,
    OPTION_COORDS_ORDER,
    OPTION_BARCODE_TAG,
    OPTION_BARCODE_NAME,
    OPTION_BARCODE_RGX,
    OPTION_USE_READ_GROUPS,
    OPTION_USE_LIBRARIES,
    OPTION_JSON,
    OPTION_METRICS,
    OPTION_DUPLICATE_COUNT,
    OPTION_MOVE_UMI,
    OPTION_UMI_SEPARATOR,
    OPTION_BARCODE_MISMATCHES,
    OPTION_BARCODE_OWN,
    OPTION_INPUT_FMT,
};

static const struct option long_options[] = {
    {"include-fails", no_argument, NULL, OPTION_INCLUDE_FAILS},
    {"mode", required_argument, NULL, 'm'},
    {"ignore-strand", no_argument, NULL, OPTION_IGNORE_STRAND},
    {"optical-only", no_argument, NULL, OPTION_OPTICAL_ONLY},
    {"no-multi-dup", no_argument, NULL, OPTION_NO_MULTI_DUP},
    {"read-coords", required_argument, NULL, OPTION_READ_COORDS},
    {"coords-order", required_argument, NULL, OPTION_COORDS_ORDER},
    {"barcode-tag", required_argument, NULL, OPTION_BARCODE_TAG},
    {"barcode-name", no_argument, NULL, OPTION_BARCODE_NAME},
    {"barcode-rgx", required_argument, NULL, OPTION_BARCODE_RGX},
    {"barcode-mismatches", required_argument, NULL, OPTION_BARCODE_MISMATCHES},
    {"barcode-own", no_argument, NULL, OPTION_BARCODE_OWN},
    {"use-read-groups", no_argument, NULL, OPTION_USE_READ_GROUPS},
    {"use-libraries", no_argument, NULL, OPTION_USE_LIBRARIES},
    {"json", no_argument, NULL, OPTION_JSON},
    {"metrics", required_argument, NULL, OPTION_METRICS},
    {"duplicate-count", no_argument, NULL, OPTION_DUPLICATE_COUNT},
    {"move-umi-to-tag", no_argument, NULL, OPTION_MOVE_UMI},
    {"umi-separator", required_argument, NULL, OPTION_UMI_SEPARATOR},
    {"input-fmt", required_argument, NULL, OPTION_INPUT_FMT},
    OPTION_TEXT_OURS,
};

struct gathered {
    struct duplicate_rules rules;
    const char *coords, *coords_order, *barcode;        /* of options; or NULL */
    bool barcode_in_name;
    bool mismatches_given;
};

/* Parses a whole number from 0 to `high`. Returns 0, or -1 after a message. */
static int parse_number(const char *option, const char *text, long high, long *value)
{
    char *end;
    errno = 0;
    *value = strtol(text, &end, 10);
    if (isdigit((unsigned char)*text) && *end == '\0' && errno == 0 && *value <= high) return 0;
    diag_error("--markdup: %s takes a whole number from 0 to %ld, not '%s'", option, high, text);
    return -1;
}

/* The window of samtools: duplicates are found at any distance. */
static int take_read_length(const char *text)
{
    long bases;
    return parse_number("-l", text, INT32_MAX, &bases);
}

static int take_distance(const char *text, struct duplicate_rules *rules)
{
    long distance;
    if (parse_number("-d", text, INT32_MAX, &distance) < 0) return -1;
    rules->optical_distance = distance;
    return 0;
}

static int take_mode(const char *text, struct duplicate_rules *rules)
{
    rules->by_sequence = strcmp(text, "s") == 0;
    if (rules->by_sequence || strcmp(text, "t") == 0) return 0;
    diag_error("--markdup: --mode takes t (ends of templates) or s (ends of reads), not '%s'", text);
    return -1;
}

static int take_barcode_tag(const char *text, struct duplicate_rules *rules)
{
    if (strlen(text) != 2 || !isalpha((unsigned char)text[0]) ||
        !isalnum((unsigned char)text[1])) {
        diag_error("--markdup: --barcode-tag takes a tag of two characters such as RX, not '%s'",
                   text);
        return -1;
    }
    rules->barcode_source = BARCODE_TAG;
    memcpy(rules->barcode_tag, text, 2);
    return 0;
}

static int take_mismatches(const char *text, struct gathered *to)
{
    long n;
    if (parse_number("--barcode-mismatches", text, 1, &n) < 0) return -1;
    to->mismatches_given = true;
    to->rules.barcode_mismatches = (unsigned)n;
    return 0;
}

static int take_separator(const char *text, struct duplicate_rules *rules)
{
    if (strlen(text) != 1) {
        diag_error("--markdup: --umi-separator takes one character, not '%s'", text);
        return -1;
    }
    rules->umi_separator = *text;
    return 0;
}

static int take_path(const char *option, const char *text, const char **path)
{
    if (!*text) {
        diag_error("--markdup: %s takes the name of a file", option);
        return -1;
    }
    *path = text;
    return 0;
}

/* Takes an option of what duplicates are. */
static int take_definition(int c, const char *value, struct gathered *to)
{
    switch (c) {
    case 'l': return take_read_length(value);
    case 'm': return take_mode(value, &to->rules);
    case OPTION_IGNORE_STRAND: to->rules.ignores_strand = true; return 0;
    case OPTION_INCLUDE_FAILS: to->rules.include_fails = true; return 0;
    case OPTION_USE_READ_GROUPS: to->rules.use_read_groups = true; return 0;
    case OPTION_USE_LIBRARIES: to->rules.use_libraries = true; return 0;
    case OPTION_BARCODE_TAG: return take_barcode_tag(value, &to->rules);
    case OPTION_BARCODE_NAME: to->barcode_in_name = true; return 0;
    case OPTION_BARCODE_RGX:
        to->barcode_in_name = true;
        to->barcode = value;
        return 0;
    case OPTION_BARCODE_MISMATCHES: return take_mismatches(value, to);
    case OPTION_BARCODE_OWN: to->rules.own_barcodes = true; return 0;
    default:
        diag_error("--markdup does not take --input-fmt: rocksort finds out the format itself");
        return -1;
    }
}

static int take_option(int c, const char *value, void *arg)
{
    struct gathered *to = arg;
    struct duplicate_rules *rules = &to->rules;
    switch (c) {
    case 'r': rules->removes = true; return 0;
    case 'c': rules->clears = true; return 0;
    case 'S': rules->marks_others = true; return 0;
    case 't': rules->names_original = true; return 0;
    case 'd': return take_distance(value, rules);
    case OPTION_DUPLICATE_COUNT: rules->counts = true; return 0;
    case OPTION_OPTICAL_ONLY: rules->only_optical = true; return 0;
    case OPTION_NO_MULTI_DUP: rules->checks_chains = false; return 0;
    case OPTION_READ_COORDS: to->coords = value; return 0;
    case OPTION_COORDS_ORDER: to->coords_order = value; return 0;
    case OPTION_MOVE_UMI: rules->moves_umi = true; return 0;
    case OPTION_UMI_SEPARATOR: return take_separator(value, rules);
    case 's': rules->prints_statistics = true; return 0;
    case 'f':
        rules->prints_statistics = true;
        return take_path("-f", value, &rules->statistics_path);
    case OPTION_JSON: rules->json = rules->prints_statistics = true; return 0;
    case OPTION_METRICS: return take_path("--metrics", value, &rules->metrics_path);
    default: return take_definition(c, value, to);
    }
}

/* Sets which group of the pattern is x, y and t. Both orders of x and y mean the same: what counts
   is how far each of them is away. */
static int finish_order(const char *text, struct duplicate_rules *rules)
{
    static const struct {
        const char *name;
        unsigned t, x, y;
    } orders[] = {
        {"txy", 1, 2, 3}, {"tyx", 1, 3, 2}, {"xty", 2, 1, 3}, {"ytx", 2, 3, 1},
        {"xyt", 3, 1, 2}, {"yxt", 3, 2, 1}, {"xy", 0, 1, 2},  {"yx", 0, 2, 1},
    };
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        if (strcmp(orders[i].name, text) != 0) continue;
        rules->coords_t = orders[i].t;
        rules->coords_x = orders[i].x;
        rules->coords_y = orders[i].y;
        return 0;
    }
    diag_error("--markdup: --coords-order takes txy, xyt, xty, xy, or these with x and y "
               "exchanged, not '%s'", text);
    return -1;
}

/* Compiles a pattern that must have at least n_groups. Returns NULL after a message. */
static struct name_pattern *compile(const char *option, const char *text, size_t n_groups)
{
    char why[NAME_PATTERN_WHY_BYTES];
    struct name_pattern *pattern = name_pattern_compile(text, why);
    if (!pattern) {
        diag_error("--markdup: %s '%s' is not a regular expression: %s", option, text, why);
        return NULL;
    }
    if (name_pattern_n_groups(pattern) >= n_groups) return pattern;
    diag_error("--markdup: %s '%s' needs %zu group%s in parentheses, and has %zu", option, text,
               n_groups, n_groups == 1 ? "" : "s", name_pattern_n_groups(pattern));
    name_pattern_destroy(pattern);
    return NULL;
}

static int finish_coords(struct gathered *from)
{
    struct duplicate_rules *rules = &from->rules;
    if (finish_order(from->coords_order ? from->coords_order : "txy", rules) < 0) return -1;
    if (!from->coords) return 0;
    size_t n_groups = rules->coords_t > 0 ? 3 : 2;
    rules->coords = compile("--read-coords", from->coords, n_groups);
    return rules->coords ? 0 : -1;
}

static int finish_barcode(struct gathered *from)
{
    struct duplicate_rules *rules = &from->rules;
    if (from->barcode_in_name) rules->barcode_source = BARCODE_NAME;
    if (!from->barcode) return 0;
    rules->barcode_pattern = compile("--barcode-rgx", from->barcode, 1);
    return rules->barcode_pattern ? 0 : -1;
}

static int check_together(const struct gathered *from)
{
    const struct duplicate_rules *rules = &from->rules;
    const char *problem = NULL;
    bool has_tag = rules->barcode_source == BARCODE_TAG;
    if (has_tag && from->barcode_in_name)
        problem = "--barcode-tag cannot be used together with --barcode-name or --barcode-rgx";
    else if (rules->moves_umi && !from->barcode_in_name)
        problem = "--move-umi-to-tag needs --barcode-name or --barcode-rgx";
    else if (from->mismatches_given && !has_tag && !from->barcode_in_name)
        problem = "--barcode-mismatches needs --barcode-tag, --barcode-name or --barcode-rgx";
    else if (rules->own_barcodes && !has_tag)
        problem = "--barcode-own needs --barcode-tag";
    else if (rules->use_read_groups && rules->use_libraries)
        problem = "--use-read-groups and --use-libraries cannot be used together";
    else if (rules->only_optical && rules->optical_distance == 0)
        problem = "--optical-only needs -d N, the distance of optical duplicates in pixels";
    if (problem) diag_error("--markdup: %s", problem);
    return problem ? -1 : 0;
}

int sort_options_parse_markdup(const char *text, struct duplicate_rules *rules)
{
    static const struct option_text options = {
        .option = "--markdup", .program = "samtools markdup",
        .letters = "rsl:StT:O:@:f:d:cm:u", .long_options = long_options, .refused = "TO@u",
        .take = take_option,
    };
    struct gathered found = {.rules = {.checks_chains = true, .umi_separator = ':'}};
    int r = option_text_parse(&options, text, &found, &found.rules.words);
    if (r == 0 && (check_together(&found) < 0 || finish_coords(&found) < 0 ||
                   finish_barcode(&found) < 0))
        r = -1;
    *rules = found.rules;
    return r;
}

void sort_options_release_markdup(struct duplicate_rules *rules)
{
    words_free(rules->words);
    name_pattern_destroy(rules->coords);
    name_pattern_destroy(rules->barcode_pattern);
    *rules = (struct duplicate_rules){0};
}
