/*
 * sort_options_markdup.c -- parses the arguments of --fixmate and --markdup: options of samtools
 * fixmate, and options of samtools markdup and some of our own.
 *
 * Options are collected first: their order does not matter, and the last of equal options applies.
 * Regular expressions are compiled when all options are known.
 */
#include "cli/sort_options.h"

#include "util/option_table.h"
#include "markdup/read_names.h"
#include "util/diag.h"
#include "util/words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define N_ROWS(rows) (sizeof(rows) / sizeof *(rows))

/* ---- --fixmate ---- */

static int take_sanitize(void *arg, const char *text)
{
    struct fixmate_rules *rules = arg;
    int flags = sanitize_parse(text);
    if (flags < 0) return OPTION_WRONG;
    rules->sanitize = (unsigned)flags;
    return 0;
}

#define FIXMATE_FLAG(of) .kind = OPTION_FLAG, .member = offsetof(struct fixmate_rules, of)

static const struct option_row fixmate_rows[] = {
    {NULL, 'r', NULL, FIXMATE_FLAG(removes)},
    {NULL, 'p', NULL, FIXMATE_FLAG(any_orientation)},
    {NULL, 'c', NULL, FIXMATE_FLAG(template_cigar)},
    {NULL, 'M', NULL, FIXMATE_FLAG(base_mods)},
    {NULL, 'm', NULL, .kind = OPTION_CALL},     /* mate scores are always written */
    {"sanitize", 'z', "FLAGS", .kind = OPTION_CALL, .take = take_sanitize,
     .takes = "all, on, off or a list of pos, mqual, unmap, cigar, cigdup, cigarx and aux"},
};

int sort_options_parse_fixmate(const char *text, struct fixmate_rules *rules)
{
    static const struct option_table table = {.rows = fixmate_rows, .n_rows = N_ROWS(fixmate_rows),
                                              .option = "--fixmate"};
    char **words;
    *rules = (struct fixmate_rules){.sanitize = SANITIZE_ALL};
    int r = option_table_parse_text(&table, text, rules, &words);
    free(words);
    return r;
}

/* ---- --markdup ---- */

struct gathered {
    struct markdup_rules rules;
    const char *coords, *coords_order, *barcode;        /* arguments; or NULL */
    bool barcode_in_name, mismatches_given;
    int distance;
    int read_length;                    /* not used: duplicates are found at any distance */
};

static int take_mode(void *arg, const char *text)
{
    struct gathered *to = arg;
    to->rules.by_sequence = strcmp(text, "s") == 0;
    return to->rules.by_sequence || strcmp(text, "t") == 0 ? 0 : OPTION_WRONG;
}

static int take_barcode_tag(void *arg, const char *text)
{
    struct gathered *to = arg;
    if (strlen(text) != 2 || !isalpha((unsigned char)text[0]) || !isalnum((unsigned char)text[1]))
        return OPTION_WRONG;
    to->rules.barcode_source = BARCODE_TAG;
    memcpy(to->rules.barcode_tag, text, 2);
    return 0;
}

static int take_separator(void *arg, const char *text)
{
    struct gathered *to = arg;
    if (strlen(text) != 1) return OPTION_WRONG;
    to->rules.umi_separator = *text;
    return 0;
}

#define AT(of) offsetof(struct gathered, of)
#define FLAG(of) .kind = OPTION_FLAG, .member = AT(of)
#define TEXT(of) .kind = OPTION_TEXT, .member = AT(of)
#define NUMBER(of, most)                                                        \
    .kind = OPTION_NUMBER, .member = AT(of), .high = (most),                    \
    .takes = "a whole number from 0 to " #most
#define CALL(function, what) .kind = OPTION_CALL, .take = (function), .takes = (what)

static const struct option_row markdup_rows[] = {
    {NULL, 'l', "INT", NUMBER(read_length, 2147483647)},
    {NULL, 'r', NULL, FLAG(rules.removes)},
    {NULL, 'c', NULL, FLAG(rules.clears)},
    {NULL, 'S', NULL, FLAG(rules.marks_others)},
    {NULL, 't', NULL, FLAG(rules.names_original)},
    {NULL, 'd', "INT", NUMBER(distance, 2147483647)},
    {NULL, 's', NULL, FLAG(rules.prints_statistics)},
    {NULL, 'f', "FILE", TEXT(rules.statistics_path), .given = AT(rules.prints_statistics)},
    {"json", 0, NULL, FLAG(rules.json), .given = AT(rules.prints_statistics)},
    {"metrics", 0, "FILE", TEXT(rules.metrics_path)},
    {"include-fails", 0, NULL, FLAG(rules.include_fails)},
    {"mode", 'm', "TYPE", CALL(take_mode, "t (ends of templates) or s (ends of reads)")},
    {"ignore-strand", 0, NULL, FLAG(rules.ignores_strand)},
    {"optical-only", 0, NULL, FLAG(rules.only_optical)},
    {"no-multi-dup", 0, NULL, .kind = OPTION_OFF, .member = AT(rules.checks_chains)},
    {"duplicate-count", 0, NULL, FLAG(rules.counts)},
    {"read-coords", 0, "REGEX", TEXT(coords)},
    {"coords-order", 0, "STR", TEXT(coords_order)},
    {"barcode-tag", 0, "TAG", CALL(take_barcode_tag, "a tag of two characters such as RX")},
    {"barcode-name", 0, NULL, FLAG(barcode_in_name)},
    {"barcode-rgx", 0, "REGEX", TEXT(barcode), .given = AT(barcode_in_name)},
    {"barcode-mismatches", 0, "INT", NUMBER(rules.barcode_mismatches, 1),
     .given = AT(mismatches_given)},
    {"barcode-own", 0, NULL, FLAG(rules.own_barcodes)},
    {"use-read-groups", 0, NULL, FLAG(rules.use_read_groups)},
    {"use-libraries", 0, NULL, FLAG(rules.use_libraries)},
    {"move-umi-to-tag", 0, NULL, FLAG(rules.moves_umi)},
    {"umi-separator", 0, "CHAR", CALL(take_separator, "one character")},
};

/* Returns which group of the pattern is named by the letter; 0: none. */
static unsigned group_of(const char *order, char letter)
{
    const char *at = strchr(order, letter);
    return at ? (unsigned)(at - order) + 1 : 0;
}

/* Sets which group of the pattern is x, y and t. */
static int finish_order(const char *text, struct markdup_rules *rules)
{
    rules->coords_t = group_of(text, 't');
    rules->coords_x = group_of(text, 'x');
    rules->coords_y = group_of(text, 'y');
    size_t n = rules->coords_t ? 3 : 2;
    if (rules->coords_x && rules->coords_y && strlen(text) == n) return 0;
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
    struct markdup_rules *rules = &from->rules;
    if (finish_order(from->coords_order ? from->coords_order : "txy", rules) < 0) return -1;
    if (!from->coords) return 0;
    size_t n_groups = rules->coords_t > 0 ? 3 : 2;
    rules->coords = compile("--read-coords", from->coords, n_groups);
    return rules->coords ? 0 : -1;
}

static int finish_barcode(struct gathered *from)
{
    struct markdup_rules *rules = &from->rules;
    if (from->barcode_in_name) rules->barcode_source = BARCODE_NAME;
    if (!from->barcode) return 0;
    rules->barcode_pattern = compile("--barcode-rgx", from->barcode, 1);
    return rules->barcode_pattern ? 0 : -1;
}

static int check_together(const struct gathered *from)
{
    const struct markdup_rules *rules = &from->rules;
    bool has_tag = rules->barcode_source == BARCODE_TAG;
    const struct option_clash clashes[] = {
        {has_tag && from->barcode_in_name,
         "--barcode-tag cannot be used together with --barcode-name or --barcode-rgx"},
        {rules->moves_umi && !from->barcode_in_name,
         "--move-umi-to-tag needs --barcode-name or --barcode-rgx"},
        {from->mismatches_given && !has_tag && !from->barcode_in_name,
         "--barcode-mismatches needs --barcode-tag, --barcode-name or --barcode-rgx"},
        {rules->own_barcodes && !has_tag, "--barcode-own needs --barcode-tag"},
        {rules->use_read_groups && rules->use_libraries,
         "--use-read-groups and --use-libraries cannot be used together"},
        {rules->only_optical && rules->optical_distance == 0,
         "--optical-only needs -d N, the distance of optical duplicates in pixels"},
        {rules->statistics_path && !*rules->statistics_path, "-f takes the name of a file"},
        {rules->metrics_path && !*rules->metrics_path, "--metrics takes the name of a file"},
    };
    return option_refuse_clash("--markdup: ", clashes, N_ROWS(clashes));
}

int sort_options_parse_markdup(const char *text, struct markdup_rules *rules)
{
    static const struct option_table table = {.rows = markdup_rows, .n_rows = N_ROWS(markdup_rows),
                                              .option = "--markdup"};
    struct gathered found = {.rules = {.checks_chains = true, .umi_separator = ':'}};
    int r = option_table_parse_text(&table, text, &found, &found.rules.words);
    found.rules.optical_distance = found.distance;
    if (r == 0 && (check_together(&found) < 0 || finish_coords(&found) < 0 ||
                   finish_barcode(&found) < 0))
        r = -1;
    *rules = found.rules;
    return r;
}

void sort_options_release_markdup(struct markdup_rules *rules)
{
    free(rules->words);
    name_pattern_destroy(rules->coords);
    name_pattern_destroy(rules->barcode_pattern);
    *rules = (struct markdup_rules){0};
}
