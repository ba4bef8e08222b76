/*
 * stale_index.h -- indexes that lie beside a new output and belong to an older file of its name.
 *
 * Programs would read them without a word, or with one of htslib's that scrolls by, and find wrong
 * records or none. Nothing is removed: the files are the user's. Any thread. Nothing fails.
 */
#ifndef ROCKSORT_OUTPUT_STALE_INDEX_H
#define ROCKSORT_OUTPUT_STALE_INDEX_H

#include "output/output_path.h"

#include <htslib/hts.h>

/* Warns of each of them when an output is complete. `index`: the one that was written with it; its
   name is NULL if there is none. */
void stale_index_tell(const struct output_path *output, const struct output_path *index,
                      const htsFormat *format);

#endif
