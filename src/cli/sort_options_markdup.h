/*
 * sort_options_markdup.h -- the options of other programs in one text: those of samtools fixmate, as
 * --fixmate takes them, and those of samtools markdup and some more, as --markdup takes them.
 *
 * Threads: one at a time, because the parser uses getopt.
 */
#ifndef ROCKSORT_CLI_SORT_OPTIONS_MARKDUP_H
#define ROCKSORT_CLI_SORT_OPTIONS_MARKDUP_H

#include "fixmate/fixmate.h"
#include "markdup/markdup_rules.h"

/* Parses `text`, such as "-r -z off", and sets the rules except for the references. Returns 0, or -1
   after a message. */
int sort_options_parse_fixmate(const char *text, struct fixmate_rules *rules);

/*
 * Parses `text`, such as "-S -d 2500 -f stats.txt", and sets the rules but for the read groups.
 * Returns 0, or -1 after a message. Both times the rules hold memory only until
 * sort_options_release_markdup.
 */
int sort_options_parse_markdup(const char *text, struct markdup_rules *rules);

/* Frees what rules of the parser hold. Rules that are {0} are accepted. */
void sort_options_release_markdup(struct markdup_rules *rules);

#endif
