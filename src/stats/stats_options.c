/* stats_options.c -- see stats_options.h. */
#include "stats/stats_options.h"

#include "util/diag.h"
#include "util/xalloc.h"

#include <htslib/sam.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Several of them add up, as in samtools. */
static int take_excluded(void *arg, const char *text)
{
    int flags;
    if (option_flags(text, &flags) < 0) return OPTION_WRONG;
    ((struct stats_options *)arg)->excluded_flags |= flags;
    return 0;
}

/* The depths from least to most in steps: as in samtools, the last step is whole. */
static int take_depths(void *arg, const char *text)
{
    enum { MOST_DEPTHS = 100000 };
    struct stats_options *to = arg;
    long values[3];
    char *end = (char *)(uintptr_t)text;
    for (int i = 0; i < 3; i++) {
        const char *from = i > 0 ? end + 1 : end;
        if (i > 0 && *end != ',') return OPTION_WRONG;
        values[i] = strtol(from, &end, 10);
        if (end == from || values[i] < 0 || values[i] > INT_MAX / 2) return OPTION_WRONG;
    }
    const long range = values[1] - values[0];
    if (*end || range < 0 || values[2] < 1) return OPTION_WRONG;
    if (values[2] > range + 1) values[2] = range > 0 ? range : 1;
    if (range / values[2] > MOST_DEPTHS) return OPTION_WRONG;
    to->least_depth = (int)values[0];
    to->depth_step = (int)values[2];
    to->n_depths = 3 + (size_t)(range / values[2]);
    to->most_depth = (int)(values[0] + (range / values[2] + 1) * values[2] - 1);
    return 0;
}

/* Returns a number from `low` to `high`, or -1. */
static double real_number(const char *text, double low, double high)
{
    char *end;
    double value = strtod(text, &end);
    return end != text && *end == 0 && value >= low && value <= high ? value : -1;
}

static int take_share(void *arg, const char *text)
{
    double value = real_number(text, 0, 1);
    ((struct stats_options *)arg)->main_inserts = (float)value;
    return value < 0 ? OPTION_WRONG : 0;
}

static int take_bin(void *arg, const char *text)
{
    double value = real_number(text, 1, 1e9);
    ((struct stats_options *)arg)->bin_bases = (int)value;
    return value < 0 ? OPTION_WRONG : 0;
}

#define AT(of) offsetof(struct stats_options, of)
#define FLAG(of) .kind = OPTION_FLAG, .member = AT(of)
#define TEXT(of) .kind = OPTION_TEXT, .member = AT(of)
#define FILE_NAME(of) TEXT(of), .whole = option_whole_file
#define NUMBER(of) .kind = OPTION_NUMBER, .member = AT(of), .high = INT_MAX - 1, \
                   .takes = "a whole number that is not negative"
#define CALL(function, what) .kind = OPTION_CALL, .take = (function), .takes = (what)

static const struct option_row rows[] = {
    {"coverage", 'c', "MIN,MAX,STEP", CALL(take_depths, "MIN,MAX,STEP such as 1,1000,1")},
    {"remove-dups", 'd', NULL, FLAG(excludes_duplicates)},
    {"required-flag", 'f', "FLAGS", .kind = OPTION_FLAGS, .member = AT(required_flags),
     .high = INT_MAX, .takes = "flags such as 2 or PROPER_PAIR"},
    {"filtering-flag", 'F', "FLAGS", CALL(take_excluded, "flags such as 1024 or DUP,QCFAIL")},
    {"GC-depth", 0, "BASES", CALL(take_bin, "a number of bases such as 20000")},
    {"cov-threshold", 'g', "DEPTH", NUMBER(target_depth)},
    {"id", 'I', "ID", TEXT(group)},
    {"insert-size", 'i', "BASES", NUMBER(most_insert)},
    {"read-length", 'l', "BASES", NUMBER(n_bases)},
    {"most-inserts", 'm', "SHARE", CALL(take_share, "a share from 0 to 1")},
    {"remove-overlaps", 'p', NULL, FLAG(removes_overlaps)},
    {"trim-quality", 'q', "QUALITY", NUMBER(trim_quality)},
    {"ref-seq", 'r', "FASTA", FILE_NAME(reference)},
    {"target-regions", 't', "FILE", FILE_NAME(targets)},
    {"sparse", 'x', NULL, FLAG(is_sparse)},
};

void *stats_options_parse(int argc, char **argv)
{
    static const struct option_table table = {.rows = rows, .n_rows = sizeof rows / sizeof *rows,
                                              .option = "--stats",
                                              .list = offsetof(struct stats_options, list)};
    struct stats_options *options = xcalloc(1, sizeof *options);
    *options = (struct stats_options){.n_bases = -1, .most_insert = 8000, .main_inserts = 0.99F,
                                      .bin_bases = 20000};
    (void)take_depths(options, "1,1000,1");
    int r = option_table_parse_all(&table, argc, argv, options);
    if (options->excludes_duplicates) options->excluded_flags |= BAM_FDUP;
    const struct option_clash clash = {options->target_depth > 0 && !options->targets,
                                       "-g needs the targets of -t"};
    if (r == 0) r = option_refuse_clash("--stats: ", &clash, 1);
    if (r == 0) return options;
    stats_options_free(options);
    return NULL;
}

void stats_options_free(void *arg)
{
    struct stats_options *options = arg;
    option_list_release(&options->list);
    free(options);
}
