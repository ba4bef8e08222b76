/* option_text.c -- see option_text.h. */
#include "command/option_text.h"

#include "util/diag.h"
#include "util/words.h"
#include "util/xalloc.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Takes what getopt_long returned. `name` is the option as it was given, for messages. */
static int take_option(const struct option_text *options, int c, const char *name, void *rules)
{
    if (c == ':') {
        diag_error("%s: option %s needs a value", options->option, name);
        return -1;
    }
    if (c == '?') {
        diag_error("%s: %s has no option %s", options->option, options->program, name);
        return -1;
    }
    if (c == OPTION_TEXT_REFUSED || (c < OPTION_TEXT_FIRST && strchr(options->refused, c))) {
        diag_error("%s does not take %s: give %s to rocksort itself", options->option, name, name);
        return -1;
    }
    return options->take(c, optarg, rules);
}

/* The option that getopt_long stopped at, as the user knows it; the caller frees it. */
static char *name_option(const struct option_text *options, int c, int index, char **argv)
{
    bool is_wrong = c == '?' || c == ':';
    int number = is_wrong ? optopt : c;
    /* A letter may stand in the middle of a word; optind says nothing of it. */
    if (number > 0 && number < OPTION_TEXT_FIRST) return xasprintf("-%c", number);
    return is_wrong ? xstrdup(argv[optind - 1])
                    : xasprintf("--%s", options->long_options[index].name);
}

static int take_words(const struct option_text *options, int argc, char **argv, void *rules)
{
    char *letters = xasprintf("+:%s", options->letters);
    int c, index = 0, r = 0;
    optind = 0;                 /* begins anew */
    while (r == 0 &&
           (c = getopt_long(argc, argv, letters, options->long_options, &index)) != -1) {
        char *name = name_option(options, c, index, argv);
        r = take_option(options, c, name, rules);
        free(name);
    }
    free(letters);
    if (r < 0 || optind >= argc) return r;
    diag_error("%s takes options only, not '%s'", options->option, argv[optind]);
    return -1;
}

int option_text_parse(const struct option_text *options, const char *text, void *rules,
                      char ***words)
{
    static char name[] = "rocksort";    /* getopt_long skips the first word */
    size_t n;
    *words = words_split(text, &n);
    if (!*words) {
        diag_error("%s: a quote in '%s' has no end", options->option, text);
        return -1;
    }
    char **argv = xcalloc(n + 2, sizeof *argv);
    argv[0] = name;
    memcpy(argv + 1, *words, n * sizeof *argv);
    int r = take_words(options, (int)n + 1, argv, rules);
    free(argv);
    if (r == 0) return 0;
    words_free(*words);
    *words = NULL;
    return -1;
}
