/*
 * option_table.h -- a table of options and what takes them: from words to the members of a struct.
 *
 * Each option is one row. The words are those of a command line, or those of one argument that
 * holds the options of another program, such as --fixmate="-r -z off".
 *
 * Threads: one at a time, as getopt_long has state of its own.
 */
#ifndef ROCKSORT_CLI_OPTION_TABLE_H
#define ROCKSORT_CLI_OPTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>

enum option_kind {
    OPTION_FLAG,                /* sets a bool */
    OPTION_OFF,                 /* clears a bool */
    OPTION_TEXT,                /* sets a text to its argument, or to "" without one */
    OPTION_VALUE,               /* sets an int or an enum to `low` */
    OPTION_NUMBER,              /* sets an int to its argument, a whole number from low to high */
    OPTION_CALL,                /* calls `take`, if there is one */
    OPTION_REFUSED,             /* an option of the other program that is one of ours, too */
};

struct option_row {
    const char *name;           /* without its dashes; NULL: it has only a letter */
    char letter;                /* 0: it has only a name */
    const char *argument;       /* what the usage text calls it; in brackets: it can be left out;
                                   NULL: there is none */
    enum option_kind kind;
    size_t member;              /* its offset in the struct */
    long low, high;
    /* `target` is the struct. Returns 0, -1 after a message, or OPTION_WRONG. */
    int (*take)(void *target, const char *argument);
    const char *takes;          /* what the option takes, in the message for OPTION_WRONG */
    size_t given;               /* offset of a bool that says that the option was given; 0: none */
};

enum { OPTION_WRONG = 1 };      /* no message: the argument is not what the option takes */

struct option_table {
    const struct option_row *rows;
    size_t n_rows;
    /* of a table of another program's options, for messages */
    const char *option;         /* ours: "--fixmate" */
    const char *program;        /* "samtools fixmate" */
};

/* Options that cannot be used together. */
struct option_clash {
    bool is_there;
    const char *problem;
};

/* Refuses the first clash that is there. Returns 0, or -1 after a message that begins with `of`. */
int option_refuse_clash(const char *of, const struct option_clash *clashes, size_t n);

/* Takes the options of a command line. Returns the number of the first argument that is none, or
   -1: then there was a message of ours or of getopt_long, which calls the program argv[0]. */
int option_table_parse(const struct option_table *table, int argc, char **argv, void *target);

/* Parses a whole decimal number. One that does not fit a long becomes the nearest that does.
   Returns 0 or -1. */
int option_number(const char *text, long *value);

/*
 * Splits `text` into words (words.h) and takes the options in them. Returns 0, or -1 after a
 * message that names the option. The target points into *words, which the caller frees with
 * words_free; NULL on failure.
 */
int option_table_parse_text(const struct option_table *table, const char *text, void *target,
                            char ***words);

#endif
