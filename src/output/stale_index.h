/*
 * stale_index.h -- indexes that lie beside an output and belong to the file that it replaces.
 *
 * Programs would read such an index, with no warning or with one of htslib's that scrolls by, and
 * find wrong records or none. So they go when the new output gets its name (output_set.h). Any
 * thread. Nothing fails.
 */
#ifndef ROCKSORT_OUTPUT_STALE_INDEX_H
#define ROCKSORT_OUTPUT_STALE_INDEX_H

#include "output/output_format.h"
#include "output/output_path.h"

/*
 * Calls found(arg, name) for each file that readers of the output would take for its index, and for
 * an older one at `index`, the name of the output's own index, or NULL. These are the names that
 * htslib tries, beside the output and, if its name is a link, beside that. x.csi stays out for x.bam
 * if there is x.bcf, whose index it may be. SAM text and columns have no such names.
 */
void stale_index_find(const struct output_path *output, const char *index,
                      const struct output_format *format,
                      void (*found)(void *arg, const char *name), void *arg);

#endif
