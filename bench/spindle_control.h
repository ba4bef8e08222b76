/*
 * spindle_control.h -- the control directory, .spindle in the mount's root, which no listing shows,
 * and its files:
 *
 *   report.json  the counters; a new report each time it is opened
 *   reset        what is written to it becomes the label of a new period of counting; fsync waits
 *                until the write buffer is empty
 *   rotational   0 or 1, as in a block device's queue/rotational
 *   pid          the server's
 *
 * Calls: control_is says whether a request is for one of them. control_open makes the text that
 * control_read reads from, control_release frees it. The other functions answer the request of
 * their name. Only the thread that takes requests calls them. Errors: an errno, or 0; those that
 * take the request reply to it themselves.
 */
#ifndef SPINDLE_CONTROL_H
#define SPINDLE_CONTROL_H

#include "spindle_client.h"
#include "spindle_node.h"

#define CONTROL_DIR_INO 2
#define CONTROL_FIRST_INO 3

bool control_is(fuse_ino_t ino);
int control_lookup(fuse_ino_t parent, const char *name, struct fuse_entry_param *entry);
int control_attr(fuse_ino_t ino, struct stat *attr);
int control_open(struct fs *fs, fuse_ino_t ino, struct fuse_file_info *info);
void control_read(fuse_req_t req, size_t size, off_t offset, const struct fuse_file_info *info);
void control_write(fuse_req_t req, fuse_ino_t ino, struct fuse_bufvec *data);
void control_drain(fuse_req_t req);
void control_release(const struct fuse_file_info *info);

#endif
