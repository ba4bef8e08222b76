/*
 * sort_options_fixmate.h -- the options of samtools fixmate, as --fixmate takes them in one text.
 */
#ifndef ROCKSORT_COMMAND_SORT_OPTIONS_FIXMATE_H
#define ROCKSORT_COMMAND_SORT_OPTIONS_FIXMATE_H

#include "template/fixmate.h"

/* Parses `text`, such as "-r -z off", and sets the rules but for the references. Returns 0, or -1
   after a message. Threads: one at a time; it uses getopt. */
int sort_options_parse_fixmate(const char *text, struct fixmate_rules *rules);

#endif
