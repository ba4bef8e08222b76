/*
 * prepare.h -- checks and prepares everything that can fail before hours of work.
 *
 * Order of calls: as here; --plan calls only prepare_path and prepare_fixmate. Threads: one.
 * Functions return 0, or -1 after a message.
 */
#ifndef ROCKSORT_SORT_PREPARE_H
#define ROCKSORT_SORT_PREPARE_H

#include "sort/sort_setup.h"

/* Chooses the path of the output or of its index. name: from the settings, or NULL. */
int prepare_path(const struct sort_settings *settings, const char *name, struct output_path *path);

/* Chooses the paths of output and index, and checks the temporary directories. */
int prepare_outputs(struct sort_context *sort);

/* Opens the checkpoint to resume, if any, and the inputs, if any are to be read. */
int prepare_inputs(struct sort_context *sort);

/* Makes the rules of the order, the verification and the index. Sets *nothing_to_check if the
   header of a file to verify claims no order. */
int prepare_rules(struct sort_context *sort, bool *nothing_to_check);

/* Completes the rules of --fixmate from those of the order. prepare_rules calls it. */
void prepare_fixmate(struct sort_context *sort);

/* Sets the sort order in the output's header. Call it after loading. */
int prepare_output_header(struct sort_context *sort);

#endif
