/*
 * option_table.h -- parses options into the members of a struct, with a table.
 *
 * Each option is one row. The options come from a command line, or from one argument that holds
 * options of another program, such as --fixmate="-r -z off".
 *
 * Threads: one at a time, as getopt_long has state of its own.
 */
#ifndef ROCKSORT_UTIL_OPTION_TABLE_H
#define ROCKSORT_UTIL_OPTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>

enum option_kind {
    OPTION_FLAG,                /* sets a bool */
    OPTION_OFF,                 /* clears a bool */
    OPTION_TEXT,                /* sets a text to its argument, or to "" without one */
    OPTION_VALUE,               /* sets an int or an enum to `low` */
    OPTION_NUMBER,              /* sets an int to its argument, a whole number from low to high */
    OPTION_FLAGS,               /* sets an int to flags of SAM, at most `high` */
    OPTION_CALL,                /* calls `take`, if there is one */
};

/* Whether a checkpoint keeps the option, so that a resumed sort has it. */
enum option_kept {
    OPTION_ONCE,                /* it does not */
    OPTION_KEPT,                /* it does */
    OPTION_OF_OUTPUT,           /* also: the output depends on it */
    OPTION_OF_RUNS,             /* also: the runs depend on it, so it cannot be changed */
};

struct option_row {
    const char *name;           /* without dashes; NULL: only a letter */
    char letter;                /* 0: only a name */
    const char *argument;       /* its name in the usage text, in brackets if optional; NULL:
                                   none */
    enum option_kind kind;
    size_t member;              /* its offset in the struct */
    long low, high;
    /* `target` is the struct. Returns 0, -1 after a message, or OPTION_WRONG. */
    int (*take)(void *target, const char *argument);
    const char *takes;          /* what it accepts, in the message for OPTION_WRONG */
    size_t given;               /* offset of a bool that is set if the option is given; 0: none */
    enum option_kept kept;
    /* Returns the argument with absolute paths, for a process in another directory; the caller
       frees it. NULL: it has none. */
    char *(*whole)(const char *argument);
};

/* Options that were parsed and are kept, in their order. Starts as {0}. */
struct option_list {
    const char **words;         /* each an option with its argument; owned */
    enum option_kept *kinds;
    size_t n;
};

/* Returns the absolute path of a file, or NULL: for `whole` of an option that takes a file. */
char *option_whole_file(const char *file);

/* Takes ownership of the word. */
void option_list_add(struct option_list *list, enum option_kept kind, char *word);

/* Keeps the first n words. */
void option_list_cut(struct option_list *list, size_t n);

void option_list_release(struct option_list *list);

/* True if one of the first n words of the list is this one. */
bool option_list_has(const struct option_list *list, size_t n, const char *word);

enum { OPTION_WRONG = 1 };      /* no message yet: the argument is invalid */

struct option_table {
    const struct option_row *rows;
    size_t n_rows;
    const char *option;         /* that has the options of another program: "--fixmate" */
    size_t list;                /* offset of a struct option_list in the struct; 0: none. Those of
                                   another program are all kept in it */
    bool has_one_dash;          /* long names may have one dash, as in bedtools */
};

/* Options that cannot be used together. */
struct option_clash {
    bool is_there;
    const char *problem;
};

/* Refuses the first clash whose is_there is set. Returns 0, or -1 after a message that begins with
   `of`. */
int option_refuse_clash(const char *of, const struct option_clash *clashes, size_t n);

/* Parses the options of a command line. Returns the index of the first argument that is not an
   option, or -1 after a message of ours or of getopt_long, which begins with argv[0]. */
int option_table_parse(const struct option_table *table, int argc, char **argv, void *target);

/* The same for options of another program, without other arguments, which are refused. Returns 0,
   or -1 after a message. */
int option_table_parse_all(const struct option_table *table, int argc, char **argv, void *target);

/* Parses a whole decimal number; clamps it to the range of long. Returns 0 or -1. */
int option_number(const char *text, long *value);

/* Parses flags of SAM: a number such as 1024 or 0x400, or names such as DUP,QCFAIL. Returns 0 or
   -1. */
int option_flags(const char *text, int *flags);

/*
 * Splits `text` into words (words.h) and parses the options in them. Returns 0, or -1 after a
 * message that names the option. The target points into *words, which the caller frees with
 * free; NULL on failure.
 */
int option_table_parse_text(const struct option_table *table, const char *text, void *target,
                            char ***words);

#endif
