/*
 * prepare.h -- the beginning of a sort: everything that can go wrong before hours of work.
 *
 * Order of calls: as here, but --plan calls prepare_path and prepare_fixmate alone. Threads: one.
 * Functions return 0, or -1 after a message.
 */
#ifndef ROCKSORT_SORT_PREPARE_H
#define ROCKSORT_SORT_PREPARE_H

#include "sort/sort_parts.h"

/* Chooses where the output or its index is written. name: that of one of them in the settings, or
   NULL. */
int prepare_path(const struct sort_settings *settings, const char *name, struct output_path *path);

/* Chooses where output and index are written, and checks the places of temporary data. */
int prepare_outputs(struct sort_context *sort);

/* Opens the checkpoint that the sort goes on with, if there is one, and the inputs, if there is
   something to be read. */
int prepare_inputs(struct sort_context *sort);

/* Makes the rules of the order, the verification and the index. Sets *nothing_to_check if a file is
   to be verified that claims no order. */
int prepare_rules(struct sort_context *sort, bool *nothing_to_check);

/* Completes the rules of --fixmate when those of the order are complete. For --plan; prepare_rules
   calls it. */
void prepare_fixmate(struct sort_context *sort);

/* Puts the order into the header of the output. To be called after loading. */
int prepare_output_header(struct sort_context *sort);

#endif
