/*
 * temp_clean.h -- option --clean: what sorts that ended early have left in a place: temporary
 * directories, many of them checkpoints, and outputs that are not complete.
 */
#ifndef ROCKSORT_CLI_TEMP_CLEAN_H
#define ROCKSORT_CLI_TEMP_CLEAN_H

#include <stdbool.h>

/*
 * Lists on standard output what there is in the directory `path`; or beside the output file `path`,
 * which need not exist, what belongs to it; or `path` itself, if it is a temporary directory or an
 * unfinished output. Each gets a line with its age and size, and a checkpoint a second one with its
 * output and the command that goes on with it. Outputs that a checkpoint names are listed with it,
 * wherever they are. With `remove` it removes what no process uses. Everything else is neither
 * listed nor touched. Returns 0, or -1 after a message.
 */
int temp_clean(const char *path, bool remove);

#endif
