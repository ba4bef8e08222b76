/*
 * spindle_fs_names.h -- requests about names, attributes and directories.
 *
 * Changes of names take no time on the device until something is synced: the journal contains them.
 */
#ifndef SPINDLE_FS_NAMES_H
#define SPINDLE_FS_NAMES_H

#include "spindle_node.h"

/* Fills in the functions for these requests. */
void names_ops(struct fuse_lowlevel_ops *ops);

#endif
