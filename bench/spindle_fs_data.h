/*
 * spindle_fs_data.h -- requests about contents, and syncing.
 *
 * Data are written to the backing file when the request arrives, and read from it when the model
 * says that the device has read them, so that nothing is held in memory meanwhile. Only replies
 * wait for the model. The backing file is never synced: what the model calls durable need not
 * outlive this process.
 */
#ifndef SPINDLE_FS_DATA_H
#define SPINDLE_FS_DATA_H

#include "spindle_node.h"

/* Fills in the functions for these requests. */
void data_ops(struct fuse_lowlevel_ops *ops);

#endif
