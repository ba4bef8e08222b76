/*
 * sort_options_markdup.h -- parses the arguments of --fixmate and --markdup: the options of
 * samtools fixmate, and those of samtools markdup and some more, in one text.
 *
 * Threads: one at a time (getopt).
 */
#ifndef ROCKSORT_CLI_SORT_OPTIONS_MARKDUP_H
#define ROCKSORT_CLI_SORT_OPTIONS_MARKDUP_H

#include "fixmate/fixmate.h"
#include "markdup/markdup_rules.h"

/* Parses `text`, such as "-r -z off", and sets the rules except for the references. Returns 0, or -1
   after a message. */
int sort_options_parse_fixmate(const char *text, struct fixmate_rules *rules);

/*
 * Parses `text`, such as "-S -d 2500 -f stats.txt", and sets the rules except for the read groups.
 * Returns 0, or -1 after a message. sort_options_release_markdup frees the rules' memory, also
 * after a failure.
 */
int sort_options_parse_markdup(const char *text, struct markdup_rules *rules);

/* Accepts {0}. */
void sort_options_release_markdup(struct markdup_rules *rules);

#endif
