/*
 * stale_index.h -- indexes that lie beside a new output and belong to an older file of its name.
 *
 * Programs would read such an index, with no warning or with one of htslib's that scrolls by, and
 * find wrong records or none. Nothing is removed: the files belong to the user. Any thread may call
 * this function. It cannot fail.
 */
#ifndef ROCKSORT_OUTPUT_STALE_INDEX_H
#define ROCKSORT_OUTPUT_STALE_INDEX_H

#include "output/output_format.h"
#include "output/output_path.h"

/* Warns of each such index when an output is complete. `index`: the index that was written with the
   output; its name is NULL if there is none. */
void stale_index_tell(const struct output_path *output, const struct output_path *index,
                      const struct output_format *format);

#endif
