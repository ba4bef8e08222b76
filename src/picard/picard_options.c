/*
 * picard_options.c -- see picard_options.h. Turns each word NAME=VALUE into --NAME=VALUE, for the
 * option table.
 */
#include "picard/picard_options.h"

#include "util/diag.h"
#include "util/words.h"
#include "util/xalloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int take_levels(void *target, const char *argument)
{
    static const char *const names[N_LEVELS] = {"ALL_READS", "SAMPLE", "LIBRARY", "READ_GROUP"};
    struct picard_options *options = target;
    size_t n_bytes = 0;
    memset(options->levels, 0, sizeof options->levels);
    for (int i = 0; i < N_LEVELS; i++) {
        options->levels[i] = words_list_has(argument, names[i]);
        if (options->levels[i]) n_bytes += strlen(names[i]) + 1;
    }
    return n_bytes == strlen(argument) + 1 ? 0 : OPTION_WRONG;
}

static int take_number(const char *text, double most, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return end != text && !*end && *value >= 0 && *value <= most ? 0 : OPTION_WRONG;
}

static int take_share(void *target, const char *argument)
{
    /* Picard keeps it in single precision. */
    struct picard_options *options = target;
    int r = take_number(argument, 0.5, &options->minimum_share);
    options->minimum_share = (double)(float)options->minimum_share;
    return r;
}

static int take_deviations(void *target, const char *argument)
{
    return take_number(argument, 1e9, &((struct picard_options *)target)->deviations);
}

static int take_duplicates(void *target, const char *argument)
{
    struct picard_options *options = target;
    options->with_duplicates = strcmp(argument, "true") == 0;
    return options->with_duplicates || strcmp(argument, "false") == 0 ? 0 : OPTION_WRONG;
}

#define CALL(name_, argument_, take_, takes_)                                                      \
    {.name = name_, .argument = argument_, .kind = OPTION_CALL, .take = take_, .takes = takes_}
#define TAKES_LEVELS "names of ALL_READS, SAMPLE, LIBRARY and READ_GROUP, separated by commas"

static const struct option_row rows[] = {
    CALL("LEVELS", "LIST", take_levels, TAKES_LEVELS),
    CALL("LEVEL", "LIST", take_levels, TAKES_LEVELS),
    CALL("METRIC_ACCUMULATION_LEVEL", "LIST", take_levels, TAKES_LEVELS),
    {.name = "R", .argument = "FILE", .kind = OPTION_TEXT,
     .member = offsetof(struct picard_options, reference), .whole = option_whole_file},
    {.name = "REFERENCE_SEQUENCE", .argument = "FILE", .kind = OPTION_TEXT,
     .member = offsetof(struct picard_options, reference), .whole = option_whole_file},
    {.name = "MAX_INSERT_SIZE", .argument = "INT", .kind = OPTION_NUMBER,
     .member = offsetof(struct picard_options, most_insert), .low = 0, .high = INT32_MAX},
    CALL("MINIMUM_PCT", "NUM", take_share, "a number from 0 to 0.5"),
    CALL("DEVIATIONS", "NUM", take_deviations, "a number of at least 0"),
    CALL("INCLUDE_DUPLICATES", "BOOL", take_duplicates, "true or false"),
};

static const struct option_table table = {.rows = rows, .n_rows = sizeof rows / sizeof *rows,
                                          .option = "--picard",
                                          .list = offsetof(struct picard_options, list)};

void picard_options_free(void *arg)
{
    struct picard_options *options = arg;
    if (!options) return;
    option_list_release(&options->list);
    for (size_t i = 0; options->memory[i]; i++) free(options->memory[i]);
    free(options->memory);
    free(options);
}

void *picard_options_parse(int argc, char **argv)
{
    struct picard_options *options = xcalloc(1, sizeof *options);
    options->levels[LEVEL_ALL_READS] = true;
    options->minimum_share = (double)0.05f;
    options->deviations = 10;
    options->most_insert = 100000;
    char **words = xcalloc((size_t)argc + 1, sizeof *words);
    words[0] = argv[0];
    options->memory = xcalloc((size_t)argc + 1, sizeof *words);
    for (int i = 1; i < argc; i++)
        words[i] = options->memory[i - 1] =
            xasprintf("%s%s", argv[i][0] == '-' ? "" : "--", argv[i]);
    int r = option_table_parse_all(&table, argc, words, options);
    free(words);
    if (r == 0) return options;
    picard_options_free(options);
    return NULL;
}
