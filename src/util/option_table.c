/* option_table.c -- see option_table.h. */
#include "util/option_table.h"

#include "util/diag.h"
#include "util/words.h"
#include "util/xalloc.h"

#include <ctype.h>
#include <getopt.h>
#include <htslib/sam.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* getopt_long returns an option's letter, or FIRST_ROW plus the number of its row. */
enum { FIRST_ROW = 256, NAME_BYTES = 64 };

int option_number(const char *text, long *value)
{
    char *end;
    *value = strtol(text, &end, 10);
    return isdigit((unsigned char)text[text[0] == '-']) && *end == 0 ? 0 : -1;
}

/* htslib ignores what follows a number. */
int option_flags(const char *text, int *flags)
{
    char *end;
    long number = strtol(text, &end, 0);
    *flags = end == text ? bam_str2flag(text) : *end || number > INT_MAX ? -1 : (int)number;
    return *flags >= 0 ? 0 : -1;
}

int option_refuse_clash(const char *of, const struct option_clash *clashes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!clashes[i].is_there) continue;
        diag_error("%s%s", of, clashes[i].problem);
        return -1;
    }
    return 0;
}

/* The row for a return value of getopt_long. */
static const struct option_row *find_row(const struct option_table *table, int c)
{
    if (c >= FIRST_ROW) return &table->rows[c - FIRST_ROW];
    size_t i = 0;
    while (table->rows[i].letter != c) i++;
    return &table->rows[i];
}

static const char *name_of(const struct option_row *row, char name[NAME_BYTES])
{
    if (row->letter)
        (void)snprintf(name, NAME_BYTES, "-%c", row->letter);
    else
        (void)snprintf(name, NAME_BYTES, "--%s", row->name);
    return name;
}

static int take_number(const struct option_row *row, const char *text, int *number)
{
    long value;
    if (option_number(text, &value) < 0 || value < row->low || value > row->high)
        return OPTION_WRONG;
    *number = (int)value;
    return 0;
}

static int take_flags(const struct option_row *row, const char *text, int *member)
{
    int flags;
    if (option_flags(text, &flags) < 0 || flags > row->high) return OPTION_WRONG;
    *member = flags;
    return 0;
}

static int take_value(const struct option_row *row, const char *text, void *target)
{
    char *member = (char *)target + row->member;
    if (row->given) *((bool *)target + row->given) = true;
    switch (row->kind) {
    case OPTION_FLAG: *(bool *)member = true; return 0;
    case OPTION_OFF: *(bool *)member = false; return 0;
    case OPTION_TEXT: *(const char **)member = text ? text : ""; return 0;
    case OPTION_VALUE: *(int *)member = (int)row->low; return 0;
    case OPTION_NUMBER: return take_number(row, text, (int *)member);
    case OPTION_FLAGS: return take_flags(row, text, (int *)member);
    default: return row->take ? row->take(target, text) : 0;
    }
}

void option_list_cut(struct option_list *list, size_t n)
{
    while (list->n > n) free((char *)(uintptr_t)list->words[--list->n]);
}

void option_list_release(struct option_list *list)
{
    option_list_cut(list, 0);
    free(list->words);
    free(list->kinds);
    *list = (struct option_list){0};
}

bool option_list_has(const struct option_list *list, size_t n, const char *word)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list->words[i], word) == 0) return true;
    return false;
}

void option_list_add(struct option_list *list, enum option_kept kind, char *word)
{
    list->words = xrealloc(list->words, (list->n + 1) * sizeof *list->words);
    list->kinds = xrealloc(list->kinds, (list->n + 1) * sizeof *list->kinds);
    list->kinds[list->n] = kind;
    list->words[list->n++] = word;
}

char *option_whole_file(const char *file)
{
    return realpath(file, NULL);
}

static void keep(struct option_list *list, const struct option_row *row, const char *text)
{
    char name[NAME_BYTES], *whole = row->whole ? row->whole(text) : NULL;
    option_list_add(list, row->kept,
                    xasprintf("%s%s%s", name_of(row, name), text && !row->letter ? "=" : "",
                              whole ? whole : text ? text : ""));
    free(whole);
}

/* Returns 0, or -1 after a message. */
static int take(const struct option_table *table, const struct option_row *row, const char *text,
                void *target)
{
    char name[NAME_BYTES];
    (void)name_of(row, name);
    int r = take_value(row, text, target);
    if (r == 0 && (row->kept != OPTION_ONCE || table->option) && table->list)
        keep((struct option_list *)((char *)target + table->list), row, text);
    if (r != OPTION_WRONG) return r;
    if (table->option)
        diag_error("%s: %s takes %s, not '%s'", table->option, name, row->takes, text);
    else
        diag_error("option %s takes %s, not '%s'", name, row->takes, text);
    return -1;
}

/* Refuses an unknown option of another program, or one without its argument. */
static int refuse(const struct option_table *table, int c, char **argv)
{
    char name[NAME_BYTES];
    if (c == ':') {
        diag_error("%s: option %s needs a value", table->option,
                   name_of(find_row(table, optopt), name));
        return -1;
    }
    /* optind does not show it: the letter may be in the middle of a word. */
    (void)snprintf(name, sizeof name, "-%c", optopt);
    diag_error("%s does not take %s: give options such as -@ and -O to rocksort itself",
               table->option, optopt > 0 && optopt < FIRST_ROW ? name : argv[optind - 1]);
    return -1;
}

int option_table_parse(const struct option_table *table, int argc, char **argv, void *target)
{
    struct option *longs = xcalloc(table->n_rows + 1, sizeof *longs);
    char *letters = xcalloc(2 * table->n_rows + 3, 1);
    size_t n_longs = 0, n_letters = 0;
    if (table->option) {        /* no message of getopt_long, no option after another argument */
        letters[n_letters++] = '+';
        letters[n_letters++] = ':';
    }
    for (size_t i = 0; i < table->n_rows; i++) {
        const struct option_row *row = &table->rows[i];
        int has_argument = !row->argument          ? no_argument
                           : *row->argument == '[' ? optional_argument : required_argument;
        if (row->name)
            longs[n_longs++] = (struct option){row->name, has_argument, NULL, FIRST_ROW + (int)i};
        if (row->letter) letters[n_letters++] = row->letter;
        if (row->letter && row->argument) letters[n_letters++] = ':';
    }
    int c, r = 0;
    int (*next)(int, char *const *, const char *, const struct option *, int *) =
        table->has_one_dash ? getopt_long_only : getopt_long;
    optind = 0;                 /* reset, and read the '+' */
    while (r == 0 && (c = next(argc, argv, letters, longs, NULL)) != -1) {
        if (c != '?' && c != ':')
            r = take(table, find_row(table, c), optarg, target);
        else
            r = table->option ? refuse(table, c, argv) : -1;
    }
    free(letters);
    free(longs);
    return r < 0 ? -1 : optind;
}

int option_table_parse_all(const struct option_table *table, int argc, char **argv, void *target)
{
    int next = option_table_parse(table, argc, argv, target);
    if (next >= 0 && next < argc)
        diag_error("%s takes options only, not '%s'", table->option, argv[next]);
    return next == argc ? 0 : -1;
}

int option_table_parse_text(const struct option_table *table, const char *text, void *target,
                            char ***words)
{
    static char name[] = "rocksort";    /* getopt_long skips the first word */
    size_t n;
    *words = words_split(text, &n);
    if (!*words) {
        diag_error("%s: a quote in '%s' has no end", table->option, text);
        return -1;
    }
    char **argv = xcalloc(n + 2, sizeof *argv);
    argv[0] = name;
    memcpy(argv + 1, *words, n * sizeof *argv);
    int r = option_table_parse_all(table, (int)n + 1, argv, target);
    free(argv);
    if (r == 0) return 0;
    free(*words);
    *words = NULL;
    return -1;
}
