/*
 * option_text.h -- the options of another program, which one option of ours takes as a text, such
 * as --fixmate="-r -z off".
 *
 * Pure but for getopt_long, so one thread at a time.
 */
#ifndef ROCKSORT_COMMAND_OPTION_TEXT_H
#define ROCKSORT_COMMAND_OPTION_TEXT_H

#include <getopt.h>

/* Numbers of long options without a letter. */
enum {
    OPTION_TEXT_FIRST = 256,
    OPTION_TEXT_REFUSED = 512,  /* all that are options of ours, too */
};

/* The last rows of a table of long options: those that are options of ours, too. */
#define OPTION_TEXT_OURS                                                  \
    {"input-fmt-option", required_argument, NULL, OPTION_TEXT_REFUSED},   \
    {"output-fmt", required_argument, NULL, 'O'},                         \
    {"output-fmt-option", required_argument, NULL, OPTION_TEXT_REFUSED},  \
    {"reference", required_argument, NULL, OPTION_TEXT_REFUSED},          \
    {"threads", required_argument, NULL, '@'},                            \
    {"write-index", no_argument, NULL, OPTION_TEXT_REFUSED},              \
    {"verbosity", required_argument, NULL, OPTION_TEXT_REFUSED},          \
    {"no-PG", no_argument, NULL, OPTION_TEXT_REFUSED},                    \
    {NULL, 0, NULL, 0}

struct option_text {
    const char *option;         /* ours: "--fixmate" */
    const char *program;        /* "samtools fixmate" */
    const char *letters;        /* of getopt, without "+:" */
    const struct option *long_options;
    const char *refused;        /* letters of options that are options of ours, too */
    /* Takes one of the others. Returns 0, or -1 after a message. */
    int (*take)(int c, const char *value, void *rules);
};

/*
 * Splits `text` into words (words.h), and calls take(c, value, rules) for each option. Returns 0,
 * or -1 after a message that names the option. The values point into *words, which the caller frees
 * with words_free; NULL on failure.
 */
int option_text_parse(const struct option_text *options, const char *text, void *rules,
                      char ***words);

#endif
