/*
 * index_names.h -- where readers look for the index of a file.
 *
 * htslib tries the name of the file with an ending of indexes added, and with its own ending
 * replaced by that one. Any thread; nothing fails.
 */
#ifndef ROCKSORT_OUTPUT_INDEX_NAMES_H
#define ROCKSORT_OUTPUT_INDEX_NAMES_H

#include <stdbool.h>

/* The names that the index of a file may have, in the order in which htslib tries them; ends with
   NULL. index_names_free frees them. */
char **index_names_of(const char *file, bool is_cram);

void index_names_free(char **names);

#endif
