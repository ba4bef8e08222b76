/*
 * index_names.h -- the names under which readers look for the index of a file.
 *
 * htslib adds the extension of an index to the file name, or replaces the extension with it. Any
 * thread; no errors.
 */
#ifndef ROCKSORT_OUTPUT_INDEX_NAMES_H
#define ROCKSORT_OUTPUT_INDEX_NAMES_H

#include "output/output_format.h"
#include "output/output_path.h"

/* The names that the index of a file may have, in the order in which htslib tries them; ends with
   NULL. index_names_free frees them. */
char **index_names_of(const char *file, bool is_cram);

void index_names_free(char **names);

/*
 * Calls found(arg, name) for each stale index: a file that readers would take for the index of the
 * output although it belongs to the file that the output replaces, or an older file at `index`, the
 * name of the output's own index, or NULL. Looks beside the output and, if its name is a link,
 * beside the link. Skips x.csi for x.bam if x.bcf exists, whose index it may be. SAM text and
 * columns have no index.
 */
void index_names_find_stale(const struct output_path *output, const char *index,
                            const struct output_format *format,
                            void (*found)(void *arg, const char *name), void *arg);

#endif
