/*
 * sort_options_markdup.h -- the options of samtools markdup and some more, as --markdup takes them
 * in one text.
 */
#ifndef ROCKSORT_COMMAND_SORT_OPTIONS_MARKDUP_H
#define ROCKSORT_COMMAND_SORT_OPTIONS_MARKDUP_H

#include "duplicates/duplicate_rules.h"

/*
 * Parses `text`, such as "-S -d 2500 -f stats.txt", and sets the rules but for the read groups.
 * Returns 0, or -1 after a message. Both times the rules hold memory only until
 * sort_options_release_markdup. Threads: one at a time; it uses getopt.
 */
int sort_options_parse_markdup(const char *text, struct duplicate_rules *rules);

/* Frees what rules of the parser hold. Rules that are {0} are accepted. */
void sort_options_release_markdup(struct duplicate_rules *rules);

#endif
